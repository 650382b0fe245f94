#!/bin/bash
# Has docs/examples/llama tell its story on every device that there can be here, as TAP: on the CPU at each level, with
# one thread and two, and on simulated GPUs. Each must print docs/examples/llama/story.txt, byte for byte.
#   story.sh BUILD MODEL_DIR
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
build=$1 models=$2
model=$models/stories260K.bin tokenizer=$models/tok512.bin
[ -r "$model" ] && [ -r "$tokenizer" ] || skip_all "there is no model in $models: no story is told"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tells() { # OPTION...
    "$build/examples/llama" "$model" "$tokenizer" "$@" >"$work/story" 2>"$work/log" || {
        cat "$work/log"
        return 1
    }
    grep '^sim:' "$work/log" && return 1
    diff docs/examples/llama/story.txt "$work/story"
}

tells_on_gpu() { # TARGET DEVICE
    LD_LIBRARY_PATH=$build/sim KILN_SIM_DEVICES=$1 tells --device "$2"
}

best=$("$build/kiln" info --json | sed -n '/"device": "cpu:0"/,/"target"/s/.*"target": "\(.*\)".*/\1/p')
scripts/targets.sh cpu "$(uname -m)" >"$work/levels"
while read -r level; do
    for threads in 1 2; do
        check "the CPU at $level, $threads threads" tells --device cpu --cpu-level "$level" --threads $threads
    done
    [ "$level" = "$best" ] && break
done <"$work/levels"

for target in sm_75 sm_80 sm_90 sm_120; do
    check "simulated $target" tells_on_gpu $target cuda:0
done
for target in gfx90a gfx942 gfx1030 gfx1100 gfx1201; do
    if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
        check "simulated $target" tells_on_gpu $target rocm:0
    else
        skip "simulated $target" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
    fi
done
finish
