#!/bin/bash
# Fires one part of an operator for one NVIDIA target:
#   fire_cuda.sh DIR OP PART TARGET KIND FLOOR SOURCE
# writes DIR/OP_PART.TARGET.ptx and, unless KIND is ptx, the cubin that is assembled from that very text; beside each its
# line of the manifest. FLOOR is the lowest PTX version to try. Fails on a spill.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/fire_common.sh
dir=$1 op=$2 part=$3 target=$4 kind=$5 floor=$6 source=$7
name=${op}_$part.$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=$(fire_flags "$part" "$target" ptx "$floor")
cubin_flags=$(fire_flags "$part" "$target" cubin "$floor")
# shellcheck disable=SC2046,SC2086
$(command -v ccache || true) nvcc $flags -o "$work/raw.ptx" "$source"

# nvcc names what is local to a file after the process that compiled it: the bytes would not come again.
! grep -q _INTERNAL_ "$work/raw.ptx" || {
    echo "$name: a variable of a function with internal linkage: declare it in the kernel" >&2
    exit 1
}

# A hint that only drivers from CUDA 12.3 on can read, where a vector of arguments is loaded and not all of it used.
sed -i '/^\t\.pragma "used_bytes_mask [0-9]*";$/d' "$work/raw.ptx"

# nvcc stamps its own version on every text, which would demand the newest driver: the lowest that ptxas takes is enough.
while read -r version driver; do
    sed "s/^\.version .*/.version $version/" "$work/raw.ptx" >"$dir/$name.ptx"
    # shellcheck disable=SC2086
    ptxas -v $cubin_flags -o "$work/cubin" "$dir/$name.ptx" >"$work/log" 2>&1 && break
    version=
done < <(scripts/targets.sh ptx | sed -n "/^$floor /,\$p")
[ -n "$version" ] || {
    echo "$name: ptxas takes it at no version from $floor on:" >&2
    cat "$work/log" >&2
    exit 1
}

# Of each entry: arguments and threads from the text; registers and shared memory from the assembler's report (the text
# itself has no register count).
kernels=$(awk -v name="$name" '
    /\.entry / { kernel = $0; sub(/.*\.entry */, "", kernel); sub(/[( ].*/, "", kernel) }
    /^\t\.param / { parameters[kernel]++; size = $0; sub(/.*\[/, "", size); arguments[kernel] = size + 0 }
    /^\.maxntid / { gsub(/,/, ""); threads[kernel] = $2 * ($3 ? $3 : 1) * ($4 ? $4 : 1) }
    /Function properties for / { kernel = $NF }
    /bytes stack frame/ { local[kernel] = $1 + $5 + $9 }
    /: Used / { registers[kernel] = $5; for (i = 6; i < NF; i++) if ($(i + 1) == "bytes" && $(i + 2) ~ /^smem/) shared[kernel] = $i }
    END {
        for (kernel in parameters) {
            if (parameters[kernel] != 1 || !arguments[kernel]) fault = kernel " does not take one struct by value"
            if (!(kernel in registers)) fault = "the assembler does not report " kernel
            if (local[kernel]) fault = kernel " spills or has a stack: " local[kernel] " bytes"
            printf "kernel=%s,registers=%d,spills=%d,shared=%d,threads=%d,arguments=%d\n", kernel, registers[kernel],
                local[kernel], shared[kernel], threads[kernel], arguments[kernel]
        }
        if (fault) { print name ": " fault | "cat >&2"; exit 1 }
    }' "$dir/$name.ptx" "$work/log" | LC_ALL=C sort | tr '\n' ' ')
kernels=${kernels% }

fire_kinds "$kind" | while read -r image role; do
    fields="target=$target kind=$image part=$part role=$role"
    if [ "$image" = ptx ]; then
        fire_line "$dir" "$name.ptx" "$fields ptx=$version driver=$driver" "$source" "$flags" \
            "$(echo "$kernels" | sed 's/registers=[0-9]*/registers=0/g')"
    else
        # A driver reads the cubins of its own major release and of earlier ones.
        driver=$(fire_compiler cubin | sed 's/ptxas-\([0-9]*\)\..*/\1.0/')
        mv "$work/cubin" "$dir/$name.cubin"
        fire_line "$dir" "$name.cubin" "$fields driver=$driver parent=$name.ptx" "$source" "$flags $cubin_flags" "$kernels"
    fi
done
