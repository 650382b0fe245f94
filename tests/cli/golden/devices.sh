# Devices of both vendors in one process, as recording drivers present them: found, described, checked.
. "$GOLDEN/lib.sh"
exec 2>&1
recorded sm_90,sm_120,gfx942 kiln info | tr -s ' ' | grep -v '^cpu:0'
recorded gfx1100 kiln info | tr -s ' ' | sed -n '/^default/,$p' | sed 's/libcuda.*/(tries)/'
recorded sm_75,gfx90a:xnack+ kiln info --check | sed -n 's/^  *\([a-z]*:[0-9] softmax .*\)/\1/p' | grep -v '^cpu'
# The exit status of a check where an image is missing for a device.
recorded sm_70 kiln info --check | sed -n '/cuda:0 softmax f16/,/sm_75/p' | grep -v ': is for another'
echo "exit ${PIPESTATUS[0]}"
recorded sm_90,sm_120 kiln explain --device cuda:1 softmax | grep -e '>' -e '^sm'
recorded gfx942 kiln explain --device rocm:0 softmax | grep -e '>' -e '^gfx'
recorded sm_90 kiln explain --device cuda:1
echo "exit $?"
# A device that is there and cannot be opened: the others are listed all the same.
KILN_SIM_FAULT=cuDevicePrimaryCtxRetain,1,2 recorded sm_90,sm_89 kiln info | tr -s ' ' | grep -v -e '^cpu:0' -e '^ rocm'
echo "exit ${PIPESTATUS[0]}"
