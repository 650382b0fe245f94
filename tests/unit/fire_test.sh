# Firing: what it refuses, that a refusal leaves everything as it was, and that the same source gives the same bytes in
# any folder. On a small operator of its own.
. tests/tap.sh

for tool in nvcc ptxas clang-19 ld.lld-19 llvm-strip-19 llvm-readelf-19; do
    command -v "$tool" >/dev/null || skip_all "$tool is not installed"
done

# A tree with one operator, probe.
plant() { # FOLDER
    mkdir -p "$1/kernels/probe" "$1/kernels/common" "$1/loader"
    cp -r scripts "$1/"
    cp loader/targets.def "$1/loader/"
    cp kernels/common/operators.h "$1/kernels/common/"
    echo 'KILN_OPERATOR(probe)' >"$1/kernels/ops.def"
    echo 'KILN_KERNEL(probe)' >"$1/kernels/probe/probe.def"
    echo 'typedef struct probe_args { float *y; unsigned long long count; } probe_args;' >"$1/kernels/probe/probe_args.h"
    cat >"$1/kernels/probe/probe_gpu.c" <<'END'
#include "kernels/probe/probe_args.h"
#if defined(__HIP__)
#define ENTRY extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64))) void
#define THREAD __builtin_amdgcn_workitem_id_x()
#else
#define ENTRY extern "C" __global__ __launch_bounds__(64) void
#define THREAD threadIdx.x
#endif
#if defined(KILN_PART_f32)
#define NAME(kernel) kiln_##kernel##_f32
#elif defined(KILN_PART_f16)
#define NAME(kernel) kiln_##kernel##_f16
#else
#define NAME(kernel) kiln_##kernel##_bf16
#endif

ENTRY NAME(probe)(probe_args args) {
    if (THREAD < args.count) args.y[THREAD] = 1.0f;
}
END
}

tree=$KILN_SCRATCH/tree
source=$tree/kernels/probe/probe_gpu.c

fire() { # ARCH
    "$tree/scripts/fire.sh" "$tree/embedded" probe "$1"
}

fire_good() {
    plant "$tree"
    fire sm_80 && fire gfx1100 && cp -r "$tree/embedded" "$tree/before" && cp -r "$tree" "$KILN_SCRATCH/good"
}

# The tree as it was after fire_good.
replant() {
    rm -rf "$tree"
    cp -r "$KILN_SCRATCH/good" "$tree"
}

# refused ARCH WORDS: firing fails, says the words and changes nothing
refused() {
    local output
    output=$(fire "$1" 2>&1) && return 1
    printf '%s\n' "$output"
    printf '%s\n' "$output" | grep -qF "$2" && diff -rq "$tree/before" "$tree/embedded"
}

same_elsewhere() {
    plant "$KILN_SCRATCH/else/where"
    CCACHE_DISABLE=1 "$KILN_SCRATCH/else/where/scripts/fire.sh" "$KILN_SCRATCH/else/where/embedded" probe sm_80 &&
        CCACHE_DISABLE=1 "$KILN_SCRATCH/else/where/scripts/fire.sh" "$KILN_SCRATCH/else/where/embedded" probe gfx1100 &&
        diff -rq "$tree/embedded" "$KILN_SCRATCH/else/where/embedded"
}

untouched_again() {
    touch "$KILN_SCRATCH/mark"
    fire sm_80 && fire gfx1100 && [ -z "$(find "$tree/embedded" -type f -newer "$KILN_SCRATCH/mark")" ]
}

check "a good source is fired" fire_good
check "the same bytes in another folder" same_elsewhere
check "firing again touches no file" untouched_again

stack='float kept[64]; for (int i = 0; i < 64; i++) kept[i] = args.y[i]; kept[args.count % 64] = 0.0f;'
stack+=' for (int i = 0; i < 64; i++) args.y[i * 2] = kept[(i * args.count) % 64];'
replant && sed -i "s/^    if (THREAD/    $stack\n&/" "$source"
check "a stack on NVIDIA" refused sm_80 "spills or has a stack"
check "a private segment on AMD" refused gfx1100 "spills or has a private segment"

replant && sed -i 's/(probe_args args)/(probe_args args, int more)/' "$source"
check "a second argument on NVIDIA" refused sm_80 "does not take one struct by value"
check "a second argument on AMD" refused gfx1100 "does not take one struct by value and nothing else"

replant && sed -i 's/args.count)/args.count + __builtin_amdgcn_workgroup_size_x())/' "$source"
check "a hidden argument on AMD" refused gfx11-generic "does not take one struct by value and nothing else"

replant && echo 'KILN_KERNEL(absent)' >>"$tree/kernels/probe/probe.def"
check "a kernel of the description that is not there" refused sm_80 "lacks kiln_absent_"
replant && echo 'ENTRY NAME(other)(probe_args args) { args.y[0] = 0.0f; }' >>"$source"
check "a kernel that the description does not have" refused sm_80 "has kernels that kernels/probe/probe.def does not list"
replant && sed -i 's/count;/count, more;/' "$tree/kernels/probe/probe_args.h"
check "images of a part whose arguments differ" refused sm_80 "bytes, elsewhere"
finish
