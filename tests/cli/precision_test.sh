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

# The same of the story's beginning on a simulated device.
beginning="Once upon a time, there was a little girl named Lily."
beginning_steps=15
logits_on_gpu() { # TARGET DEVICE PRECISION
    KILN_SIM_DEVICES=$1 LD_LIBRARY_PATH=$KILN_BUILD/sim "$KILN_BUILD/examples/llama" "$model" "$tokenizer" --device "$2" \
        --precision "$3" --prompt "$beginning" --steps $beginning_steps --logits "$KILN_SCRATCH/$3" \
        >"$KILN_SCRATCH/story" 2>"$KILN_SCRATCH/log" || { cat "$KILN_SCRATCH/log" && return 1; }
    grep '^sim:' "$KILN_SCRATCH/log" && return 1
    printf '%s\n' "$beginning" | cmp - "$KILN_SCRATCH/story"
}

numbers() { # PRECISION STEPS
    od -An -v -t f4 -w4 -N $(($2 * 512 * 4)) "$KILN_SCRATCH/$1"
}

# Whether the logits of so many steps are within a bound of those in f32.
are_near() { # PRECISION BOUND STEPS
    paste <(numbers f32 "$3") <(numbers "$1" "$3") | awk -v bound="$2" -v steps="$3" '
        { off = $1 - $2; if (off < 0) off = -off; if (!(off <= most)) most = off; count++ }
        END { print count " logits, the most that one is off is " most; exit !(count == steps * 512 && most < bound) }'
}

differ_less() { # PRECISION BOUND
    logits "$1" && are_near "$1" "$2" 200
}

differ_less_on_gpu() { # TARGET DEVICE PRECISION BOUND
    logits_on_gpu "$1" "$2" "$3" && are_near "$3" "$4" $beginning_steps
}

check "f32" logits f32
check "f16 within 0.1 of f32" differ_less f16 0.1
check "bf16 within 0.5 of f32" differ_less bf16 0.5
check "f16 within 0.1 on simulated sm_75" differ_less_on_gpu sm_75 cuda:0 f16 0.1
check "bf16 within 0.5 on simulated sm_75" differ_less_on_gpu sm_75 cuda:0 bf16 0.5
if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    check "f16 within 0.1 on simulated gfx942" differ_less_on_gpu gfx942 rocm:0 f16 0.1
    check "bf16 within 0.5 on simulated gfx942" differ_less_on_gpu gfx942 rocm:0 bf16 0.5
else
    skip "f16 and bf16 on simulated gfx942" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
fi
finish
