#!/bin/bash
# Fires one part of an operator for one AMD target:
#   fire_rocm.sh DIR OP PART TARGET VERSION SOURCE
# writes DIR/OP_PART.TARGET.hsaco and beside it its line of the manifest. VERSION is the code object version. Fails on a
# spill, on a private segment and on any argument but the one struct.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/fire_common.sh
dir=$1 op=$2 part=$3 target=$4 version=$5 source=$6
name=${op}_$part.$target

flags=$(fire_flags "$part" "$target" hsaco "$version")
# clang calls version 6 unfinished whenever it is asked for; the generic targets have no other.
# shellcheck disable=SC2046,SC2086
$(command -v ccache || true) clang-19 $flags -o "$dir/$name.hsaco" "$source" 2> >(grep -v "code object v6 is still" >&2)
# What the loader reads stays: notes, dynamic symbols, descriptors, code.
llvm-strip-19 --strip-all --remove-section=.comment "$dir/$name.hsaco"
chmod 644 "$dir/$name.hsaco"

kernels=$(llvm-readelf-19 --notes "$dir/$name.hsaco" | awk -v name="$name" '
    function flush() {
        if (!("symbol" in value)) return
        kernel = value["name"]
        if (arguments != 1 || value["value_kind"] != "by_value" || value["size"] != value["kernarg_segment_size"])
            fault = kernel " does not take one struct by value and nothing else"
        spills = value["vgpr_spill_count"] + value["sgpr_spill_count"] + value["private_segment_fixed_size"]
        if (spills) fault = kernel " spills or has a private segment"
        if (value["uses_dynamic_stack"] == "true") fault = kernel " has a dynamic stack"
        printf "kernel=%s,registers=%d,spills=%d,shared=%d,threads=%d,arguments=%d\n", kernel, value["vgpr_count"],
            spills, value["group_segment_fixed_size"], value["max_flat_workgroup_size"], value["kernarg_segment_size"]
        split("", value)
        arguments = 0
    }
    /^  - / || /^amdhsa.target/ { flush() }
    /\.[a-z_]*:/ {
        key = $0
        sub(/^[ -]*\./, "", key)
        sub(/:.*/, "", key)
        value[key] = $NF
        if (key == "value_kind") arguments++
    }
    END {
        if (fault) { print name ": " fault | "cat >&2"; exit 1 }
    }' | LC_ALL=C sort | fire_shapes "$source" "$part")

fire_line "$dir" "$name.hsaco" "target=$target kind=hsaco part=$part role=linked code_object=$version" "$source" "$flags" - \
    "$kernels"
