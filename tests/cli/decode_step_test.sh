# docs/examples/decode_step.c prints the same tokens on the CPU and on simulated devices.
. tests/tap.sh
build=${KILN_BUILD:-$PWD/build}
for file in examples/decode_step sim/libcuda.so.1 sim/libhsa-runtime64.so.1; do
    [ -r "$build/$file" ] || skip_all "$build/$file is not built"
done

expected='step 0: 373 732 228 444
step 1: 374 263 0 861
step 2: 818 841 595 792
step 3: 403 1 579 752'

tokens() { # [DEVICES]: the example's tokens are the expected ones, on the simulated devices if there are any
    local printed
    printed=$(KILN_SIM_DEVICES=${1-} LD_LIBRARY_PATH=${1:+$build/sim} "$build/examples/decode_step") || return 1
    diff <(echo "$printed") <(echo "$expected")
}

check "on the CPU" tokens
for device in sm_75 sm_80 sm_90 sm_120 gfx90a gfx942 gfx1100; do
    check "on a simulated $device" tokens "$device"
done
finish
