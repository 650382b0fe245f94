#!/bin/sh
# Writes OUTDIR/packed, the linked images of an operator, compressed, and OUTDIR/bundle.c, which includes them, with its
# bundle table (include/kiln/kiln.h, section 5), from embedded/OP/manifest, the kernels of kernels/OP/OP.def and the CPU rows
# of loader/targets.def. OUTDIR is as the assembler finds it. LEFT_OUT: a kind of image (cubin) that the bundle goes without;
# their parents are linked then. Needs sh, sed, awk and gzip alone: this is a part of every build.
set -eu
[ $# = 3 ] || [ $# = 4 ] || {
    echo "usage: embed.sh OP HOST OUTDIR [LEFT_OUT]" >&2
    exit 2
}
op=$1 host=$2 out=$3 left_out=${4-}
cd "$(dirname "$0")/.."
manifest=embedded/$op/manifest

rows() {
    awk -v kind="$left_out" '
        kind && index($0, " kind=" kind " ") { next }
        kind { sub(/ role=parent /, " role=linked ") }
        { print }' "$manifest"
}

# Compresses the images, and prints their sizes. All by one gzip: of 51, each took longer to start than to do its work.
pack() {
    files=$(rows | sed -n "s|^file=\([^ ]*\) .* role=linked .*|embedded/$op/\1|p")
    rm -rf "$out/packed"
    [ -n "$files" ] || return 0
    mkdir "$out/packed"
    # shellcheck disable=SC2086 # a word is a file
    cp $files "$out/packed"
    gzip -6 -n "$out"/packed/*
    wc -c "$out"/packed/*.gz
}

table() {
    rows | awk -v op="$op" -v sizes="$(echo "$sizes" | tr '\n' ' ')" -v parts="$(scripts/targets.sh parts | tr '\n' ' ')" \
        -v levels="$(scripts/targets.sh cpu "$host" | tr '\n' ' ')" \
        -v names="$(scripts/targets.sh kernels "$op" | tr '\n' ' ')" \
        -f scripts/embed.awk
}

sizes=$(pack)
table >"$out/bundle.c"
