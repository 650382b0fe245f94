#!/bin/sh
# Fires kernels.cu, kernels.hip, limits.hip and long_name.cu into the images that the tests read. They are committed: run this only to change them.
# Needs nvcc 13, clang-19 and lld-19.
set -eu
cd "$(dirname "$0")"

for target in sm_75 sm_80 sm_90a sm_100f sm_120; do
    nvcc -cubin -arch=$target -o $target.cubin kernels.cu
done
nvcc -cubin -arch=sm_90 -o long_name.cubin long_name.cu
ptx() { # TARGET VERSION FILE [SOURCE]
    nvcc -ptx -arch="$1" -o "$3.ptx" "${4:-kernels.cu}"
    sed -i "s/^\.version .*/.version $2/" "$3.ptx"
    ptxas -arch="$1" -o /dev/null "$3.ptx"
}
ptx sm_75 6.3 sm_75
ptx sm_90a 8.0 sm_90a
ptx sm_120f 8.8 sm_120f
ptx sm_75 6.3 long_name long_name.cu

hsaco() { # TARGET CODE-OBJECT-VERSION FILE [SOURCE]
    clang-19 -x hip --cuda-device-only -nogpuinc -nogpulib --no-gpu-bundle-output -fuse-cuid=none -O3 -w \
        --offload-arch="$1" -mcode-object-version="$2" -o "$3.hsaco" "${4:-kernels.hip}"
    chmod -x "$3.hsaco"
}
hsaco gfx90a 4 gfx90a
hsaco gfx90a:xnack- 5 gfx90a_xnack_off
hsaco gfx942:sramecc+:xnack+ 5 gfx942_both_on
hsaco gfx1030 5 gfx1030
hsaco gfx1201 6 gfx1201
hsaco gfx11-generic 6 gfx11_generic
hsaco gfx1030 5 limits limits.hip
hsaco gfx942 4 long_name long_name.cu
