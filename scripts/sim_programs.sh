#!/bin/sh
# Writes the PTX and the HSACO in tests/sim/tests/programs: with nvcc and clang-19, without and with optimisation.
set -eu
cd "$(dirname "$0")/../tests/sim/tests/programs"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
# Without the sections for debuggers, which name this machine's folders.
for source in programs serving; do
    "$nvcc" -arch=sm_80 -ptx -G -o - "$source.cu" | sed '/^[[:space:]]*\.section/,/}/d; /^[[:space:]]*\.file/d' >"$source.nvcc-O0.ptx"
    "$nvcc" -arch=sm_80 -ptx -O3 -o "$source.nvcc-O3.ptx" "$source.cu"
done
for target in sm_75 sm_80; do
    "$nvcc" "-arch=$target" -ptx -O3 -o "tiles.$target.ptx" tiles.cu
done
for level in 0 3; do
    clang-19 -x cuda --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version --cuda-gpu-arch=sm_80 \
        "-O$level" -S -o "programs.clang-O$level.ptx" programs.cu
done

# hip SOURCE TARGET OUT FLAGS...: code object version 5 is what the tests give hidden arguments for; a later flag wins.
hip() {
    source=$1 target=$2 out=$3
    shift 3
    clang-19 -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -fuse-cuid=none \
        -mcode-object-version=5 "--offload-arch=$target" "$@" -o "$out" "$source"
    llvm-strip-19 --strip-all --remove-section=.comment "$out"
    chmod 644 "$out"
}
for level in 0 3; do
    for target in gfx90a gfx942 gfx1030 gfx1100 gfx1201; do
        hip programs.cu "$target" "programs.$target-O$level.hsaco" "-O$level"
    done
done
hip preload.cu gfx942 preload.gfx942.hsaco -O3 -mllvm -amdgpu-kernarg-preload-count=6
hip wave_sizes.cu gfx1100 wave_sizes.gfx1100.hsaco -O3
hip meet.cu gfx942 meet.gfx942.hsaco -O3
hip partial.cu gfx942 partial.gfx942-4.hsaco -O3 -mcode-object-version=4 -DPACKET
hip partial.cu gfx942 partial.gfx942-5.hsaco -O3 -fno-offload-uniform-block
hip partial.cu gfx1100 partial.gfx1100-5.hsaco -O3 -fno-offload-uniform-block
hip partial.cu gfx1100 partial.gfx1100-5-whole.hsaco -O3
for target in gfx942 gfx1100; do
    hip variables.cu "$target" "variables.$target.hsaco" -O3
done
hip variables.cu gfx942 variables.gfx942-managed.hsaco -O3 -DMANAGED
hip variables.cu gfx942 variables.gfx942-elsewhere.hsaco -O3 -DELSEWHERE -Xoffload-linker --unresolved-symbols=ignore-all
for target in gfx90a gfx942 gfx1100; do
    hip habits.cu "$target" "habits.$target.hsaco" -O3
    for level in 0 3; do
        hip undefined.cu "$target" "undefined.$target-O$level.hsaco" "-O$level"
    done
done
