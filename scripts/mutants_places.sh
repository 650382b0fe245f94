#!/bin/bash
# Where in the source the code of an image comes from:
#   mutants_places.sh IMAGE
# writes, for each line of its PTX or each address of its machine code that standard input has, that, and FILE:LINE of the
# instruction and of the calls that it was inlined by, the innermost first, between tabs. The image is compiled again with
# debug information of lines alone, which leaves the code as it is; if the code is not the same, the image was not fired from
# the sources as they are, or by other compilers, and the exit status is 1.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/fire_common.sh
file=$1
image=${file##*/}
part=${image%%.*}
target=${image#*.}
target=${target%.*}
export CCACHE_DISABLE=1 # a cache would answer with the places of another folder
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

need() { # TOOL...
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null && continue
        echo "mutants_places.sh: $tool is not on the PATH: the survivors' places in the source take CUDA's nvcc, or clang-19" \
            "and llvm-19" >&2
        exit 1
    done
}

read -r version source < <(scripts/targets.sh images "${part%_*}" "$target" |
    awk -v target="$target" -v part="${part##*_}" '$1 == target && $3 == part && $2 != "cubin" { print $4, $5 }')
case $image in
*.ptx)
    need nvcc
    # shellcheck disable=SC2046
    nvcc $(fire_flags "${part##*_}" "$target" ptx "$version") -lineinfo -o "$work/ptx" "$source"
    # The text without what -lineinfo adds, each line after its place.
    awk -v here="$PWD/" '
        FNR == NR {
            if ($1 == ".file") { sub(/^[^"]*"/, ""); sub(/".*/, ""); sub(here, ""); sub(/^\.\//, ""); name[++files] = $0 }
            next
        }
        $1 == ".file" || /^\t\.pragma "used_bytes_mask [0-9]*";$/ || /^\$L__tmp[0-9]*:$/ { next }
        $1 == ".loc" {
            at = $2 " " $3 " " ($4 + 0)
            by[at] = /inlined_at/ ? $(NF - 2) " " $(NF - 1) " " $NF : ""
            if ($3 == 0) next
            place = ""
            for (depth = 0; at && depth < 16; depth++) {
                split(at, part, " ")
                place = place "\t" name[part[1]] ":" part[2]
                at = by[at]
            }
            next
        }
        $1 == ".section" { exit }
        { print place "\r" $0 }' "$work/ptx" "$work/ptx" >"$work/places"
    awk -F '\r' 'BEGIN { while ((getline line <"'"$file"'") > 0) shipped[++lines] = line }
        FNR == NR { wanted[$1] = 1; next }
        /^\t?\r\.version/ { $2 = shipped[FNR] }
        FNR in shipped && $2 != shipped[FNR] { print "'"$image"': line " FNR " differs: " $2 >"/dev/stderr"; failed = 1; exit }
        FNR in wanted { print FNR $1 }
        END { exit failed || FNR < lines - 1 }' - "$work/places"
    ;;
*.hsaco)
    need clang-19 llvm-symbolizer-19 llvm-objcopy-19
    # shellcheck disable=SC2046
    clang-19 $(fire_flags "${part##*_}" "$target" hsaco "$version") -gline-tables-only \
        -o "$work/hsaco" "$source" 2> >(grep -v "code object v6 is still" >&2)
    for object in "$work/hsaco" "$file"; do
        llvm-objcopy-19 -O binary --only-section=.text "$object" "$work/text"
        sha256sum <"$work/text"
    done | uniq | wc -l | grep -qx 1 || {
        echo "$image: the code that the sources give is another" >&2
        exit 1
    }
    tee "$work/addresses" | llvm-symbolizer-19 --obj="$work/hsaco" --inlines --functions=none |
        sed "s|^$PWD/||; s|^\./||; s|:[0-9]*\$||" | awk '
            NF { place = place "\t" $0; next }
            { getline address <"'"$work/addresses"'"; print address place; place = "" }'
    ;;
esac
