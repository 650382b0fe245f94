#!/bin/bash
# Checks embedded/ against the sources:
#   images_check.sh fresh        every image that the lists ask for is there, listed, whole, and fired from the sources as
#                                they are now. Needs no compiler.
#   images_check.sh again BACKEND [OPS [TARGET]]
#                                fires the images of cuda or rocm again, or those of some operators, or theirs for one
#                                target, and compares every byte; exit status 77, after saying why, where the very
#                                compilers of the manifests are not here.
#   images_check.sh [all|sample] all three, of all operators or of a third of them, which is another one each day; what
#                                could not be done is said and is no failure.
set -euo pipefail
export LC_ALL=C # else bash looks for characters of many bytes in all that sources say
cd "$(dirname "$0")/.."
. scripts/fire_common.sh
scripts/archive.sh unpack embedded/*

# The flags of an image and a cubin's first driver, which few images have for themselves: made once.
declare -A flags_made drivers_made
flags_read() { # PART TARGET KIND VERSION PARENT; leaves them in flags and driver
    local key="$1 $2 $3 $4 $5"
    [ -n "${flags_made[$key]:-}" ] || {
        flags_made[$key]=$(fire_all_flags "$1" "$2" "$3" "$4" "$5")
        drivers_made[$key]=$([ "$3" != cubin ] || fire_cubin_driver "$2" "$4")
    }
    flags=${flags_made[$key]} driver=${drivers_made[$key]}
}

# What is wrong with one image that the lists ask for, a line each. Reads the operator's lines, digests and source hashes.
image_faults() { # OP PART TARGET KIND VERSION SOURCE PARENT
    local file=$1_$2.$3.$4 line
    line=${lines[$file]:-}
    if [ -z "$line" ]; then
        echo "embedded/$1/$file: missing from the manifest"
        return
    fi
    if [ -z "${digests[$file]:-}" ]; then
        echo "embedded/$1/$file: missing"
        return
    fi
    [[ "$line " = *" ${digests[$file]} "* ]] || echo "embedded/$1/$file: its bytes are not those of the manifest"
    [ "$4" != cubin ] || [[ "$line " = *" compiler=ptxas-$5 "*" parent=$1_$2.$7.ptx "* || "$line " = *" parent=$1_$2.$7.ptx "*" compiler=ptxas-$5 "* ]] ||
        echo "embedded/$1/$file: stale: not assembled from the text of $7 by ptxas $5"
    if [ "$4" = cubin ]; then
        flags_read "$2" "$3" "$4" "$5" "$7"
        [[ "$line " = *" driver=$driver "* ]] || echo "embedded/$1/$file: stale: its first driver is $driver"
    fi
    [[ "$line " = *" source=${sources[$file]} "* ]] ||
        echo "embedded/$1/$file: stale: fired from another $6 or with other flags"
}

operator_faults() { # OP
    local line file size digest target kind part version source parent flags driver images hashed wanted=$'manifest\nimages.tar.xz'
    local -A lines digests sources
    images=$(scripts/targets.sh images "$1")
    while read -r line; do
        file=${line#file=}
        lines[${file%% *}]=$line
    done < <(grep '^file=' "embedded/$1/manifest")
    while read -r file size; do
        digests[$file]="size=$size"
    done < <(cd "embedded/$1" && stat -c '%n %s' -- *)
    while read -r digest file; do
        digests[$file]+=" sha256=$digest"
    done < <(cd "embedded/$1" && sha256sum -- *)
    hashed=$(mktemp -d)
    while read -r target kind part version source parent; do
        fire_read "$source"
        flags_read "$part" "$target" "$kind" "$version" "$parent"
        fire_hashed "$source" "$flags" >"$hashed/$1_$part.$target.$kind"
    done <<<"$images"
    while read -r digest file; do
        sources[$file]=$digest
    done < <(cd "$hashed" && sha256sum -- *)
    rm -r "$hashed"
    while read -r target kind part version source parent; do
        wanted+=$'\n'"$1_$part.$target.$kind"
        image_faults "$1" "$part" "$target" "$kind" "$version" "$source" "$parent"
    done <<<"$images"
    printf '%s\n' "${!lines[@]}" "${!digests[@]}" | sort -u | { grep -vxF "$wanted" || true; } |
        sed "s|.*|embedded/$1/&: no list asks for it|"
}

fresh() {
    local faults
    faults=$(for op in $(scripts/targets.sh operators); do operator_faults "$op"; done)
    if [ -n "$faults" ]; then
        echo "$faults"
        echo "images-check: stale, missing or unlisted images: run make images"
        return 1
    fi
    echo "images-check: every image is listed, whole and fresh"
}

again() { # BACKEND [OPS [TARGET]]
    local kinds version op here there file differing operators=${2:-$(scripts/targets.sh operators)} what=${2:+" $2"}${3:+" $3"}
    case $1 in
    cuda) kinds="ptx cubin" ;;
    rocm) kinds=hsaco ;;
    *) usage ;;
    esac
    for version in $([ "$1" = rocm ] || scripts/targets.sh nvidia | cut -d' ' -f4 | sort -u | grep -Fx -f <(
        sed -n 's/.* compiler=ptxas-\([^ ]*\) .*/\1/p' embedded/*/manifest | sort -u)); do
        scripts/ptxas.sh "$version" >/dev/null 2>&1 || {
            echo "images-check: $1: NOT FIRED AGAIN: ptxas $version is not here and could not be fetched"
            return 77
        }
    done
    for kind in ${kinds%cubin}; do # a cubin's line names the assembler that the lists ask for: fresh has seen to it
        here=$(fire_compiler "$kind" - 2>/dev/null) || here="none"
        there=$(sed -n "s/.* kind=$kind .* compiler=\([^ ]*\) .*/\1/p" embedded/*/manifest | sort -u)
        [ "$here" = "$there" ] || {
            echo "images-check: $1: NOT FIRED AGAIN: the manifests name ${there:-no compiler} for $kind, here is $here"
            return 77
        }
    done
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    CCACHE_DISABLE=1 scripts/fire.sh "$scratch" "${2:-}" "${3:-$1}"
    differing=$(for op in $operators; do
        comm -3 <(grep -E "^file=.* target=${3:-[^ ]*} .*kind=(${kinds// /|}) " "embedded/$op/manifest" | LC_ALL=C sort) \
            <(grep "^file=.* target=${3:-[^ ]*} " "$scratch/$op/manifest") | sed -n "s|^\t*file=\([^ ]*\) .*|embedded/$op/\1: its line differs|p" | uniq
        for file in "$scratch/$op"/*.*; do
            cmp -s "$file" "embedded/$op/${file##*/}" || echo "embedded/$op/${file##*/}: its bytes differ"
        done
    done)
    if [ -n "$differing" ]; then
        echo "$differing"
        echo "images-check: $1$what: fired again, other bytes: run make images"
        return 1
    fi
    echo "images-check: $1$what: fired again, the same bytes"
}

# All three of these operators, or of all if there are none.
check() { # [OPS]
    fresh
    for backend in cuda rocm; do "$0" again "$backend" "$@" || [ $? = 77 ]; done
}

# A third of the operators, which is another one each day.
sample() {
    scripts/targets.sh operators | awk -v day=$(($(date +%s) / 86400)) 'NR % 3 == day % 3' | tr '\n' ' '
}

usage() {
    sed -n '/^#   images_check/s/^# *//p' "$0" >&2
    exit 2
}

case ${1:-all} in
fresh) fresh ;;
again) again "${2:-}" "${3:-}" "${4:-}" ;;
all) check ;;
sample) check "$(sample)" ;;
*) usage ;;
esac
