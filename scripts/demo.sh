#!/bin/sh
# The main job on this machine, with what `make` built in the folder $1: find the devices, run softmax on a real matrix
# (the token embeddings of a small language model), look at the result. Ends with "demo: ok (...)".
set -eu
build=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

show() {
    echo "\$ $*"
    "$@"
}

show "$build/kiln" info
echo
show "$build/examples/quickstart"
echo
show "$build/kiln" run softmax_f32 --in x=docs/examples/embedding.npy --out "y=$work/y.npy"

# The file is a header of 128 bytes and 512 rows of 64 floats; each row of a softmax adds up to 1.
od -A n -v -t f4 -w256 -j 128 "$work/y.npy" | LC_ALL=C awk '
    { sum = 0; for (i = 1; i <= NF; i++) { sum += $i; if ($i < 0 || $i > 1) bad++ }
      if (NF != 64 || sum < 0.99999 || sum > 1.00001) bad++
      rows++ }
    END {
        if (rows != 512 || bad) { print "demo: the result is wrong: " rows " rows, " bad + 0 " bad"; exit 1 }
        print "demo: ok (softmax_f32 of 512 x 64 token embeddings: every row adds up to 1)"
    }'
