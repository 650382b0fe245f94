# docs/examples/same_gpu.c on simulated devices: a PCI address or UUID names one GPU to every library, in whatever order a
# driver shows its GPUs, while an ordinal does not.
. tests/tap.sh
build=${KILN_BUILD:-$PWD/build}
for file in examples/same_gpu kiln sim/libcuda.so.1 sim/libhsa-runtime64.so.1; do
    [ -r "$build/$file" ] || skip_all "$build/$file is not built"
done
export KILN_SIM_DEVICES=sm_80,sm_90,gfx90a,gfx942 LD_LIBRARY_PATH=$build/sim

names() { # DEVICE: what kiln info calls it: its PCI address and its UUID
    "$build/kiln" info | awk -v device="$1" '/^device +PCI address/ { inside = 1 } inside && $1 == device { print $2, $4 }'
}
opens() { # ID EXPECTED: what the example prints of the GPU begins so
    local printed
    printed=$("$build/examples/same_gpu" "$1") || return 1
    echo "$printed"
    [[ "$printed" == "$2"* ]]
}

# HIP applies HIP_VISIBLE_DEVICES above the runtime that kiln calls: its device 0 is then the second agent.
check "the GPU that HIP_VISIBLE_DEVICES=1 makes HIP's device 0" env HIP_VISIBLE_DEVICES=1 bash -c '
    printed=$("$0" 0000:04:00.0) && echo "$printed" && [[ "$printed" == "rocm:1 0000:04:00.0 "*gfx942* ]]' "$build/examples/same_gpu"

# The driver of CUDA, and ROCR_VISIBLE_DEVICES in that of ROCm, number the GPUs anew: each keeps its names.
for order in '' 1,0 1; do
    second=1
    if [ "$order" ]; then
        export KILN_SIM_VISIBLE=$order
        second=0
    fi
    for id in 0000:02:00.0 02:00.0 GPU-6b696c6e-2073-696d-756c-617465642001 6B696C6E-2073-696D-756C-617465642001; do
        check "sm_90 by $id, shown: ${order:-all}" opens "$id" "cuda:$second 0000:02:00.0 "
    done
    for id in 0000:04:00.0 GPU-51a0000000000001; do
        check "gfx942 by $id, shown: ${order:-all}" opens "$id" "rocm:$second 0000:04:00.0 "
    done
    for device in cuda:$second rocm:$second; do
        for id in $(names "$device"); do
            check "$device by $id of kiln info, shown: ${order:-all}" opens "$id" "$device "
        done
    done
done
refuse "a GPU that is not shown" "$build/examples/same_gpu" 0000:01:00.0
refuse "no such GPU" "$build/examples/same_gpu" GPU-00000000-0000-0000-0000-000000000000
refuse "no id" "$build/examples/same_gpu"
finish
