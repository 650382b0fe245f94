# The model of docs/examples/llama in f16 and bf16: fed its own story, the logits of each step stay within a bound of those
# in f32. They are up to 22; half of a step of that size is 0.008 in f16, and 0.06 in bf16, and each layer adds its own.
. tests/tap.sh
model=$MODEL_DIR/stories260K.bin tokenizer=$MODEL_DIR/tok512.bin
if ! [ -r "$model" ] || ! [ -r "$tokenizer" ]; then
    skip_all "there is no model in $MODEL_DIR: no logits are compared"
fi
story=$(cat docs/examples/llama/story.txt)

logits() { # PRECISION
    "$KILN_BUILD/examples/llama" "$model" "$tokenizer" --device cpu --precision "$1" --prompt "$story" \
        --logits "$KILN_SCRATCH/$1" >"$KILN_SCRATCH/story" && cmp "$KILN_SCRATCH/story" docs/examples/llama/story.txt
}

numbers() { # PRECISION
    od -An -v -t f4 -w4 "$KILN_SCRATCH/$1"
}

differ_less() { # PRECISION BOUND
    logits "$1" && paste <(numbers f32) <(numbers "$1") | awk -v bound="$2" '
        { off = $1 - $2; if (off < 0) off = -off; if (!(off <= most)) most = off; count++ }
        END { print count " logits, the most that one is off is " most; exit !(count == 200 * 512 && most < bound) }'
}

check "f32" logits f32
check "f16 within 0.1 of f32" differ_less f16 0.1
check "bf16 within 0.5 of f32" differ_less bf16 0.5
finish
