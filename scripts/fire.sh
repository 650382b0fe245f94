#!/bin/bash
# Fires images and writes the manifests:
#   fire.sh DIR [OP] [ARCH]
# into DIR/<op>/, one operator or one architecture (a target, or cuda or rocm) alone where they are given. Everything is
# fired into a folder of its own first: a failure leaves DIR as it was, and an image whose bytes are the same is not touched.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1 only=${2:-} arch=${3:-}
operators=${only:-$(scripts/targets.sh operators)}
for op in $operators; do scripts/targets.sh images "$op" "$arch" >/dev/null; done

case $arch in
sm_* | cuda) tools="nvcc ptxas" ;;
gfx* | rocm) tools="clang-19 ld.lld-19 llvm-strip-19 llvm-readelf-19" ;;
*) tools="nvcc ptxas clang-19 ld.lld-19 llvm-strip-19 llvm-readelf-19" ;;
esac
for tool in $tools; do
    command -v "$tool" >/dev/null || {
        echo "fire.sh: $tool is not on the PATH: images are fired with CUDA's nvcc and ptxas, clang-19, lld-19 and llvm-19" >&2
        exit 1
    }
done
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT

fired=""
touch "$stage"/jobs.{ptx,cubin,hsaco}
for op in $operators; do
    scripts/targets.sh images "$op" "$arch" >"$stage/$op.targets"
    [ -s "$stage/$op.targets" ] || continue # no tuned source, and the portable one is not for this target
    fired+=" $op"
    mkdir -p "$stage/$op"
    while read -r target kind part version source parent; do
        case $kind in
        ptx) echo "scripts/fire_ptx.sh $stage/$op $op $part $target $version $source" ;;
        cubin) echo "scripts/fire_cubin.sh $stage/$op $op $part $target $version $source $parent" ;;
        hsaco) echo "scripts/fire_rocm.sh $stage/$op $op $part $target $version $source" ;;
        esac >>"$stage/jobs.$kind"
    done <"$stage/$op.targets"
done
[ -n "$fired" ] || {
    echo "fire.sh: no source of $(echo $operators) is fired for $arch" >&2
    exit 1
}
# Each assembler is fetched once, before several are asked for at once; cubins come after their texts.
cut -d' ' -f6 "$stage/jobs.cubin" | sort -u | while read -r version; do scripts/ptxas.sh "$version" >/dev/null; done
for kind in ptx cubin hsaco; do
    # shellcheck disable=SC2016
    xargs -r -P "$(nproc)" -L 1 bash -c '"$@" || exit 255' _ <"$stage/jobs.$kind" # 255 ends xargs: one failure is enough
done

# All images of a part must hold the kernels of <op>.def, with the same arguments.
agree() { # OP
    awk -v op="$1" -v names="$(scripts/targets.sh kernels "$1" | tr '\n' ' ')" '
        /^file=/ {
            part = $0
            sub(/.* part=/, "", part)
            sub(/ .*/, "", part)
            count = split(names, name)
            found = gsub(/ kernel=/, "&")
            absent = 0
            for (i = 1; i <= count; i++) {
                tuned = sub(/^tuned:/, "", name[i])
                kernel = "kiln_" name[i] "_" part
                if (!match($0, " kernel=" kernel ",[^ ]*")) {
                    if (!tuned) fault = $1 ": lacks " kernel
                    absent += tuned
                    continue
                }
                arguments = substr($0, RSTART, RLENGTH)
                sub(/.*,arguments=/, "", arguments)
                sub(/,.*/, "", arguments)
                if (!(kernel in size)) size[kernel] = arguments
                if (size[kernel] != arguments) fault = $1 ": " kernel " takes " arguments " bytes, elsewhere " size[kernel]
            }
            if (found + absent != count) fault = fault ? fault : $1 ": has kernels that kernels/" op "/" op ".def does not list"
        }
        END { if (fault) { print fault | "cat >&2"; exit 1 } }'
}

for op in $fired; do
    lines=$(cat "$stage/$op"/*.line)
    rm "$stage/$op"/*.line
    if [ -n "$arch" ] && [ -f "$out/$op/manifest" ]; then
        lines+=$'\n'$(grep '^file=' "$out/$op/manifest" |
            grep -vf <(sed 's/^\([^ ]*\) \([^ ]*\) \([^ ]*\) .*/ target=\1 kind=\2 part=\3 /' "$stage/$op.targets") || true)
    fi
    {
        echo "# The images of $op, written by \`make images\`. One line an image, sorted, key=value; docs/images.md says what"
        echo "# each key means."
        echo "$lines" | sed '/^$/d' | LC_ALL=C sort
    } >"$stage/$op/manifest"
    agree "$op" <"$stage/$op/manifest"
done

for op in $fired; do
    mkdir -p "$out/$op"
    for file in "$stage/$op"/*; do
        cmp -s "$file" "$out/$op/${file##*/}" || cp "$file" "$out/$op/"
    done
    for file in "$out/$op"/*; do
        case ${file##*/} in manifest | images.tar.xz) continue ;; esac
        grep -q "^file=${file##*/} " "$out/$op/manifest" || rm "$file"
    done
done
