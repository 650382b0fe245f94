#!/bin/bash
# Assembles one part of an operator for one NVIDIA target from a text that ships:
#   fire_cubin.sh DIR OP PART TARGET ASSEMBLER SOURCE PARENT
# writes DIR/OP_PART.TARGET.cubin from DIR/OP_PART.PARENT.ptx and beside it its line of the manifest. Fails on a spill.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/fire_common.sh
dir=$1 op=$2 part=$3 target=$4 assembler=$5 source=$6 parent=$7
name=${op}_$part.$target text=${op}_$part.$parent.ptx
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# For sm_90, ptxas 12.4 takes d for c in a matrix product of 8-bit floats whose d and c are the same registers.
case $target:$assembler in
sm_90*:12.[0-7].*)
    ! grep -q 'mma\.sync.*\.e[45]m[23]\.e[45]m[23]' "$dir/$text" || {
        echo "$name: ptxas $assembler miscompiles mma.sync of 8-bit floats for sm_90: KILN_TUNED_ASSEMBLER(12.8.93)" >&2
        exit 1
    }
    ;;
esac

# shellcheck disable=SC2046
$(scripts/ptxas.sh "$assembler") -v $(fire_flags "$part" "$target" cubin "$assembler") -o "$dir/$name.cubin" "$dir/$text" \
    >"$work/log" 2>&1 || {
    echo "$name: ptxas $assembler refuses $text:" >&2
    cat "$work/log" >&2
    exit 1
}
chmod 644 "$dir/$name.cubin"

driver=$(fire_cubin_driver "$target" "$assembler")
kernels=$(fire_cuda_kernels "$name" "$dir/$text" "$work/log" | fire_shapes "$source" "$part")
fire_line "$dir" "$name.cubin" "target=$target kind=cubin part=$part role=linked driver=$driver parent=$text" "$source" \
    "$(fire_all_flags "$part" "$target" cubin "$assembler" "$parent")" "$assembler" "$kernels"
