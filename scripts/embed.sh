#!/bin/sh
# Writes OUTDIR/bundle.c: the linked images of an operator, compressed, as const arrays, and its bundle table
# (include/kiln/kiln.h, section 5), from embedded/OP/manifest, the kernels of kernels/OP/OP.def and the CPU rows of
# loader/targets.def. LEFT_OUT: a kind of image (cubin) that the bundle goes without; their parents are linked then. Needs
# sh, sed, awk, gzip and xxd alone: this is a part of every build.
#
# An array is initialised by string literals, \x7f\x45: C compilers read them some twenty times as fast as lists of
# numbers, 0x7f, 0x45, and take a fifth of the memory.
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

# A C compiler takes some 20 MB of memory for each MB of image: a larger set has to be split into several files.
bytes=$(rows | awk '/ role=linked / { sub(/.* size=/, ""); sum += $1 } END { print sum + 0 }')
if [ "$bytes" -gt 16777216 ]; then
    echo "embed.sh: $op has $bytes bytes of images: at most 16 MiB go into one file" >&2
    exit 1
fi

# Each program is started once for all images: for each of 51 images, three took longer to start than to do their work.
arrays() {
    packed=$out/packed
    files=$(rows | sed -n "s|^file=\([^ ]*\) .* role=linked .*|embedded/$op/\1|p")
    [ -n "$files" ] || return 0
    rm -rf "$packed"
    mkdir "$packed"
    # shellcheck disable=SC2086 # a word is a file
    cp $files "$packed"
    (
        cd "$packed"
        gzip -6 -n ./*
        wc -c ./*.gz >sizes
        cat ./*.gz | xxd -p -c 32 | awk '
            function next_image(    size) {
                getline size <"sizes"
                digits = 2 * size
                gsub(/^.*\/|\.gz$/, "", size)
                gsub(/[.-]/, "_", size)
                printf "\nstatic const unsigned char %s[] __attribute__((aligned(64))) =\n", size
            }
            {
                while ($0 != "") {
                    if (!digits) next_image()
                    bytes = substr($0, 1, digits)
                    $0 = substr($0, digits + 1)
                    digits -= length(bytes)
                    gsub(/../, "\\x&", bytes)
                    print "    \"" bytes "\"" (digits ? "" : "\n;")
                }
            }'
    )
    rm -rf "$packed"
}

table() {
    rows | awk -v op="$op" -v parts="$(scripts/targets.sh parts | tr '\n' ' ')" \
        -v levels="$(scripts/targets.sh cpu "$host" | tr '\n' ' ')" \
        -v names="$(scripts/targets.sh kernels "$op" | tr '\n' ' ')" \
        -f scripts/embed.awk
}

{
    echo "/* Written by scripts/embed.sh from $manifest. */"
    echo '#include <kiln/kiln.h>'
    arrays
    table
} >"$out/bundle.c"
