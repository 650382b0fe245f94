#!/bin/bash
# Has docs/examples/llama tell its story on every device that there can be here, as TAP: on the CPU at each level, with
# one thread and two, and on simulated GPUs. Each must print docs/examples/llama/story.txt, byte for byte: all 200 steps of
# it, or on simulated GPUs as much of it as STEPS make, if they are given.
#   story.sh BUILD MODEL_DIR [STEPS [DEVICE...]]
# With devices ("cuda:0") it is on these alone, by the drivers that the machine has.
cd "$(dirname "$0")/.." || exit 1
. tests/tap.sh
build=$1 models=$2 steps=${3:-200}
model=$models/stories260K.bin tokenizer=$models/tok512.bin
if ! [ -r "$model" ] || ! [ -r "$tokenizer" ]; then
    skip_all "there is no model in $models: no story is told"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tells() { # OPTION...
    "$build/examples/llama" "$model" "$tokenizer" "$@" >"$work/story" 2>"$work/log" || {
        cat "$work/log"
        return 1
    }
    grep '^sim:' "$work/log" && return 1
    diff "$work/expected" "$work/story"
}

# The story's beginning, which ends with a newline of its own.
expect() { # BYTES
    head -c "$1" docs/examples/llama/story.txt >"$work/expected"
    [ "$(tail -c 1 "$work/expected")" = "" ] || echo >>"$work/expected"
}

tells_on_simulated() { # TARGET DEVICE
    LD_LIBRARY_PATH=$build/sim KILN_SIM_DEVICES=$1 tells --device "$2" --steps "$steps"
}

# What the CPU tells in so many steps, which is a beginning of the story.
expect_steps() {
    "$build/examples/llama" "$model" "$tokenizer" --device cpu --steps "$steps" 2>/dev/null >"$work/short"
    expect $(($(wc -c <"$work/short") - 1))
    check "the CPU's first $steps steps are the story's" cmp "$work/expected" "$work/short"
}

if [ $# -gt 3 ]; then
    expect_steps
    for device in "${@:4}"; do
        check "$device" tells --device "$device" --steps "$steps"
    done
    finish
fi

best=$("$build/kiln" info --json | sed -n '/"device": "cpu:0"/,/"target"/s/.*"target": "\(.*\)".*/\1/p')
scripts/targets.sh cpu "$(uname -m)" >"$work/levels"
expect 100000
while read -r level; do
    for threads in 1 2; do
        check "the CPU at $level, $threads threads" tells --device cpu --cpu-level "$level" --threads $threads
    done
    [ "$level" = "$best" ] && break
done <"$work/levels"

expect_steps
for target in sm_75 sm_80 sm_90 sm_120; do
    check "simulated $target" tells_on_simulated $target cuda:0
done
for target in gfx90a gfx942 gfx1030 gfx1100 gfx1201; do
    if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
        check "simulated $target" tells_on_simulated $target rocm:0
    else
        skip "simulated $target" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
    fi
done
finish
