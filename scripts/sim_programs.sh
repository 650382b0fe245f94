#!/bin/sh
# Writes the PTX beside tests/sim/programs/programs.cu: with nvcc and clang-19, without and with optimisation.
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
