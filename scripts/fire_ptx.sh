#!/bin/bash
# Fires the text of one part of an operator for one NVIDIA target:
#   fire_ptx.sh DIR OP PART TARGET FLOOR SOURCE
# writes DIR/OP_PART.TARGET.ptx and beside it its line of the manifest. FLOOR is the lowest PTX version to try. Fails where
# the newest assembler spills.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/fire_common.sh
dir=$1 op=$2 part=$3 target=$4 floor=$5 source=$6
name=${op}_$part.$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=$(fire_flags "$part" "$target" ptx "$floor")
# shellcheck disable=SC2046,SC2086
$(command -v ccache || true) nvcc $flags -o "$work/raw.ptx" "$source"

# nvcc names what is local to a file after the process that compiled it: the bytes would not come again.
! grep -qE "_INTERNAL_|_GLOBAL__N_" "$work/raw.ptx" || {
    echo "$name: something of internal linkage has a name of its own: declare it in the kernel, and not in an unnamed namespace" >&2
    exit 1
}

# A hint that only drivers from CUDA 12.3 on can read, where a vector of arguments is loaded and not all of it used.
sed -i '/^\t\.pragma "used_bytes_mask [0-9]*";$/d' "$work/raw.ptx"

# Comments around each inline instruction: a tenth of some texts.
sed -i '/^\t\/\/ \(begin\|end\) inline asm$/d' "$work/raw.ptx"

# nvcc stamps its own version on every text, which would demand the newest driver: the lowest that ptxas takes is enough.
while read -r version driver; do
    sed "s/^\.version .*/.version $version/" "$work/raw.ptx" >"$dir/$name.ptx"
    ptxas -v -O3 -arch="$target" -o "$work/cubin" "$dir/$name.ptx" >"$work/log" 2>&1 && break
    version=
done < <(scripts/targets.sh ptx | sed -n "/^$floor /,\$p")
[ -n "$version" ] || {
    echo "$name: ptxas takes it at no version from $floor on:" >&2
    cat "$work/log" >&2
    exit 1
}

# The text of one chip, or of its family, runs where its cubin does, and nowhere else.
case $target in *[af]) role=parent ;; *) role=linked ;; esac
kernels=$(fire_cuda_kernels "$name" "$dir/$name.ptx" "$work/log" | sed 's/registers=[0-9]*/registers=0/g' | fire_shapes "$source" "$part")
fire_line "$dir" "$name.ptx" "target=$target kind=ptx part=$part role=$role ptx=$version driver=$driver" "$source" "$flags" - \
    "$kernels"
