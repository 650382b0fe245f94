#!/bin/bash
# What CPU kernels have of instructions that their level need not have: those that a kernel asks the machine for
# (kernels/common/extensions.h), and no others.
. tests/tap.sh

[ "$(uname -m)" = x86_64 ] || skip_all "the levels of this machine have no extensions"

# Level, operator, instructions.
allowed='x86-64-v3 gemm_int8 vpdp
x86-64-v4 gemm dpbf16
x86-64-v4 gemm amx
x86-64-v4 gemm_int8 vpdp
x86-64-v4 gemm_int8 amx
x86-64-v4 vector_search vpdp
x86-64-v4 vector_search vpopcnt'

found() {
    local level
    for level in $(scripts/targets.sh cpu x86_64); do
        objdump -d --no-show-raw-insn "$KILN_BUILD"/obj/kernels/*/"$level".o | awk -v level="$level" '
            /file format/ { count = split($1, path, "/"); operator = path[count - 1] }
            { name = $2 ~ /^{e?vex}$/ ? $3 : $2 }
            name ~ /^(vdpbf16ps|vcvtne2?ps2bf16)$/ { print level, operator, "dpbf16" }
            name ~ /^(tdp|tile|[ls][dt]tilecfg)/ { print level, operator, "amx" }
            name ~ /^vpdp/ { print level, operator, "vpdp" }
            name ~ /^vpopcnt/ { print level, operator, "vpopcnt" }
            name ~ /^(v?aes|v?gf2p8|vp(expand|compress)[bw]|vpsh[lr]d|vpermb|vperm[it]2b|vpmadd52|vp2intersect|v[a-z0-9]+[ps]h$)/ &&
                name !~ /^vcvt(ps2ph|ph2ps)$/ { print level, operator, name }
            /%zmm/ && level != "x86-64-v4" || /%[yz]mm/ && level == "x86-64-v2" { print level, operator, "wider vectors" }'
    done | sort -u
}

none_but() { # ALLOWED
    ! found | grep -vxF -- "$1"
}

check "no kernel has instructions beyond its level but those that it asks for" none_but "$allowed"
refuse "those of one that is not on the list are found" none_but "$(grep -v dpbf16 <<<"$allowed")"
finish
