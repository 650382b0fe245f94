# The operators' own tests, unchanged, on a simulated device of every NVIDIA target: the images that ship are executed
# (PTX; for a cubin the PTX that it was assembled from) and compared with the f64 reference. Three seeds order the blocks
# and warps; the longest rows run under one of them.
. tests/tap.sh
. tests/sim/operators.sh

for device in sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
    operators_pass cuda:0 $device
done
finish
