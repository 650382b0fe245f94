# Speculative decoding in docs/examples/llama: whatever drafts, the story is that of one token a step, byte for byte, in
# fewer passes of the model; on the CPU, and its beginning on simulated GPUs.
. tests/tap.sh
model=$MODEL_DIR/stories260K.bin tokenizer=$MODEL_DIR/tok512.bin
if ! [ -r "$model" ] || ! [ -r "$tokenizer" ]; then
    skip_all "there is no model in $MODEL_DIR: nothing is drafted"
fi
story=$KILN_SCRATCH/story log=$KILN_SCRATCH/log expected=$KILN_SCRATCH/expected

tell() { # FILE OPTION...
    "$KILN_BUILD/examples/llama" "$model" "$tokenizer" "${@:2}" >"$1" 2>"$log" || { cat "$log" && return 1; }
    ! grep '^sim:' "$log"
}

# Whether this many passes, at most, were taken, and what is said of them is so.
took() { # PASSES
    tail -1 "$log"
    tail -1 "$log" | tr -d , | awk -v most="$1" '
        $2 == "passes" { said = $1 <= most && $1 < $4 && $6 == $4 - $1 && $9 + 0 > 0 && $9 + 0 <= 100 } END { exit !said }'
}

# The same story on the CPU without a draft and with one.
repeats() { # PASSES DRAFT_OPTIONS OPTION...
    local drafting
    read -ra drafting <<<"$2"
    tell "$expected" --device cpu "${@:3}" && tell "$story" --device cpu "${@:3}" --draft "${drafting[@]}" &&
        cmp "$expected" "$story" && took "$1"
}

best=$("$KILN_BUILD/kiln" info --json | sed -n '/"device": "cpu:0"/,/"target"/s/.*"target": "\(.*\)".*/\1/p')
for level in $(scripts/targets.sh cpu "$(uname -m)"); do
    check "n-grams on the CPU at $level" repeats 160 ngram --cpu-level "$level"
    [ "$level" = "$best" ] && break
done
check "n-grams, one token a pass" repeats 180 "ngram --draft-tokens 1"
check "n-grams, 63 tokens a pass" repeats 160 "ngram --draft-tokens 63"
check "n-grams of a long prompt" repeats 120 ngram --prompt "$(cat docs/examples/llama/story.txt) Once upon a time" --steps 330
check "n-grams to the end of the model's length" repeats 400 ngram --steps 600
check "the model's first two layers" repeats 195 "$model --draft-layers 2"
check "the model's first four layers" repeats 100 "$model --draft-layers 4"
check "the first four layers at a temperature" repeats 130 "$model --draft-layers 4" --temperature 0.8 --seed 5
check "the first four layers behind a prompt" repeats 110 "$model --draft-layers 4 --draft-tokens 7" --prompt "The cat sat"

check "a tree of n-grams" repeats 148 "ngram --tree 0,1,2,00,01,10,000,001,0000"
check "a tree of the first two layers" repeats 170 "$model --draft-layers 2 --tree 0,1,2,3,00,01,10,000"
check "a tree of the first four layers" repeats 80 "$model --draft-layers 4 --tree 0,1,2,3,00,01,02,10,11,20,000,001,010,100,0000"
check "a tree at a temperature" repeats 130 "$model --draft-layers 4 --tree 0,1,2,00,01,10,000" --temperature 0.8 --seed 5
check "a tree of 63 tokens behind a prompt" repeats 110 "$model --draft-layers 4 --tree $(
    printf '%s' 0; printf ',%s' {1..9} {0..4}{0..4} {0..2}{0..2}{0..2} 0000)" --prompt "The cat sat"

# Whatever else the tree has: where the model's own choice is in it, it is taken, and moved together in the cache.
agrees_in_branches() {
    repeats 40 "$model --tree 1,10,0,00,000,0000,01" && tail -1 "$log" | grep -q '^40 passes .* of 280 '
}
check "the model as its own draft, in a tree" agrees_in_branches

# A draft that is the model itself is right each time: 200 tokens of one to five a pass are 40 passes.
agrees_with_itself() {
    repeats 40 "$model" && tail -1 "$log" | grep -q '^40 passes .* 100\.0% of 160 '
}
check "the model as its own draft" agrees_with_itself

repeats_on_simulated() { # TARGET DEVICE DRAFT_OPTION...
    tell "$expected" --device cpu --steps 14 &&
        LD_LIBRARY_PATH=$KILN_BUILD/sim KILN_SIM_DEVICES=$1 tell "$story" --device "$2" --steps 14 --draft "${@:3}" --tree 0,1,00,01,000 &&
        cmp "$expected" "$story" && took 11
}
for target in sm_75 sm_90; do
    check "a tree of four layers on simulated $target" repeats_on_simulated $target cuda:0 "$model" --draft-layers 4
done
for target in gfx942 gfx1201; do
    if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
        check "a tree of four layers on simulated $target" repeats_on_simulated $target rocm:0 "$model" --draft-layers 4
    else
        skip "a tree of four layers on simulated $target" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
    fi
done

says() { # TEXT OPTION...
    local status
    "$KILN_BUILD/examples/llama" "$model" "$tokenizer" "${@:2}" >"$story" 2>"$log"
    status=$?
    cat "$log"
    [ $status -eq 2 ] && [ ! -s "$story" ] && [ "$(wc -l <"$log")" -eq 1 ] && grep -q -e "$1" "$log"
}
other=$KILN_SCRATCH/two_tokens
printf '%b' '\0010\0\0\0\0010\0\0\0\0001\0\0\0\0001\0\0\0\0001\0\0\0\0002\0\0\0\0001\0\0\0' >"$other"
head -c $((4 * (2 * 8 + 3 * 8 + 7 * 64 + 8))) /dev/zero >>"$other"
check "a draft that is not there" says 'absent: No such file' --draft absent
check "a draft that is no model" says 'tok512.bin: ' --draft "$tokenizer"
check "a draft of another vocabulary" says 'two_tokens: has another vocabulary' --draft "$other"
check "more layers than the draft has" says '--draft-layers 6: must be at most' --draft "$model" --draft-layers 6
check "layers of n-grams" says '--draft-layers: wants a model' --draft ngram --draft-layers 2
check "layers of no draft" says '--draft-layers: wants --draft' --draft-layers 2
check "tokens of no draft" says '--draft-tokens: wants --draft' --draft-tokens 2
check "a tree of no draft" says '--tree: wants --draft' --tree 0
check "a tree and a number of tokens" says '--tree: cannot go with --draft-tokens' --draft ngram --tree 0 --draft-tokens 2
for paths in '' ',' '0,' 0,a '0;1' -1; do
    check "--tree '$paths'" says '--tree: must be paths of digits' --draft ngram --tree="$paths"
done
check "a tree that lacks a node" says '--tree: .*path 1 lacks its parent' --draft ngram --tree 0,10
check "a tree with a path twice" says '--tree: .*are the same' --draft ngram --tree 0,1,0
check "a tree of 64 paths" says '--tree: has more than 63 paths' --draft ngram --tree "$(echo {0..9} {00..53} | tr ' ' ,)"
check "a draft and logits" says '--draft: cannot go with --logits' --draft ngram --logits "$KILN_SCRATCH/logits"
for count in 0 64 -1 few; do
    check "--draft-tokens $count" says "--draft-tokens $count: must be a number from 1" --draft ngram --draft-tokens $count
done
finish
