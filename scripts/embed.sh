#!/bin/sh
# Writes OUTDIR/bundle.c: the linked images of an operator as const arrays, and its bundle table (include/kiln/kiln.h,
# section 5), from embedded/OP/manifest, the kernels of kernels/OP/OP.def and the CPU rows of loader/targets.def.
# Needs sh, sed, awk and xxd alone: this is a part of every build.
set -eu
[ $# = 3 ] || {
    echo "usage: embed.sh OP HOST OUTDIR" >&2
    exit 2
}
op=$1 host=$2 out=$3
cd "$(dirname "$0")/.."
manifest=embedded/$op/manifest

# The C compiler takes about 105 MB of memory for each MB of image: a larger set has to be split into several files.
bytes=$(awk '/ role=linked / { sub(/.* size=/, ""); sum += $1 } END { print sum + 0 }' "$manifest")
if [ "$bytes" -gt 5242880 ]; then
    echo "embed.sh: $op has $bytes bytes of images: at most 5 MiB go into one file" >&2
    exit 1
fi

arrays() {
    sed -n 's/^file=\([^ ]*\) .* role=linked .*/\1/p' "$manifest" | while read -r file; do
        printf '\nstatic const unsigned char %s[] __attribute__((aligned(64))) = {\n' "$(echo "$file" | tr .- __)"
        xxd -i <"embedded/$op/$file"
        case $file in *.ptx) echo '  , 0x00' ;; esac # the driver takes no length
        echo '};'
    done
}

table() {
    awk -v op="$op" -v parts="$(scripts/targets.sh parts | tr '\n' ' ')" \
        -v levels="$(scripts/targets.sh cpu "$host" | tr '\n' ' ')" \
        -v names="$(scripts/targets.sh kernels "$op" | tr '\n' ' ')" \
        -f scripts/embed.awk "$manifest"
}

{
    echo "/* Written by scripts/embed.sh from $manifest. */"
    echo '#include <kiln/kiln.h>'
    arrays
    table
} >"$out/bundle.c"
