#!/bin/sh
# Writes the PTX and the HSACO beside tests/sim/programs/programs.cu: with nvcc and clang-19, without and with optimisation.
set -eu
cd "$(dirname "$0")/../tests/sim/programs"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
# Without the sections for debuggers, which name this machine's folders.
"$nvcc" -arch=sm_80 -ptx -G -o - programs.cu | sed '/^[[:space:]]*\.section/,/}/d; /^[[:space:]]*\.file/d' >programs.nvcc-O0.ptx
"$nvcc" -arch=sm_80 -ptx -O3 -o programs.nvcc-O3.ptx programs.cu
for level in 0 3; do
    clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version --cuda-gpu-arch=sm_80 \
        "-O$level" -S -o "programs.clang-O$level.ptx" programs.cu
done
for level in 0 3; do
    for target in gfx90a gfx942 gfx1030 gfx1100 gfx1201; do
        name=programs.$target-O$level.hsaco
        clang-19 -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -fuse-cuid=none "-O$level" \
            -mcode-object-version=5 "--offload-arch=$target" -o "$name" programs.cu
        llvm-strip-19 --strip-all --remove-section=.comment "$name"
        chmod 644 "$name"
    done
done
