#!/bin/bash
# Runs the commands of docs/examples/softmax-and-gelu/README.md as they stand there, and compares what they print.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
build=${KILN_BUILD:-$PWD/build}
MODEL_DIR=$(realpath -m "${MODEL_DIR:-../shared/models}")
export MODEL_DIR
example=docs/examples/softmax-and-gelu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

[ -r "$MODEL_DIR/stories260K.bin" ] || skip_all "no $MODEL_DIR/stories260K.bin (MODEL_DIR)"
# The README says python3: whichever has NumPy takes that name.
find_numpy "the example's commands are not run"
mkdir "$work/bin"
ln -s "$(command -v "$python")" "$work/bin/python3"
ln -s "$build/kiln" "$work/bin/kiln"

block() { # NUMBER: the text between the fences of that block of the README
    awk -v number="$1" '/^```/ { inside = !inside; count += inside; next } inside && count == number' "$example/README.md"
}

block 1 >"$work/commands"
block 2 | sed 's/ on cpu:0 (.*)$/ on DEVICE/' >"$work/expected"
check 'the README has the commands' grep -q '^kiln run add_gelu_f32' "$work/commands"
cp "$example"/*.py "$work"
walk() {
    (cd "$work" && PATH=$work/bin:$PATH bash -eu commands >printed)
}
check 'they run, and NumPy agrees' walk
sed -i 's/ on [a-z]*:0 (.*)$/ on DEVICE/' "$work/printed"
check 'they print what the README says' diff -u "$work/expected" "$work/printed"
finish
