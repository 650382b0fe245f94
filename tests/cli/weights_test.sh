# The model of docs/examples/llama with its weights quantised as they are loaded: fed its own story, the logits of each step
# stay within a bound of those in f32, and the perplexity of the story, which is 1.605 in f32, is at most some hundredths
# more. Logits are up to 22. The layers are 64 and 172 columns wide, where each has few others to even out its error.
. tests/tap.sh
model=$MODEL_DIR/stories260K.bin tokenizer=$MODEL_DIR/tok512.bin
if ! [ -r "$model" ] || ! [ -r "$tokenizer" ]; then
    skip_all "there is no model in $MODEL_DIR: no logits are compared"
fi
beginning="Once upon a time, there was a little girl named Lily."
beginning_steps=15

# Feeds a text; leaves the logits, and what was said, under NAME.
feed() { # NAME TEXT STEPS OPTION...
    local name=$1 text=$2 steps=$3
    shift 3
    "$KILN_BUILD/examples/llama" "$model" "$tokenizer" --prompt "$text" --steps "$steps" --perplexity \
        --logits "$KILN_SCRATCH/$name" "$@" >"$KILN_SCRATCH/story" 2>"$KILN_SCRATCH/$name.log" || {
        cat "$KILN_SCRATCH/$name.log"
        return 1
    }
    ! grep '^sim:' "$KILN_SCRATCH/$name.log"
}

# Whether the logits of so many steps are within a bound of those in f32, and as near as that on an average of squares.
are_near() { # NAME REFERENCE STEPS BOUND MEAN
    paste <(od -An -v -t f4 -w4 "$KILN_SCRATCH/$2") <(od -An -v -t f4 -w4 "$KILN_SCRATCH/$1") |
        awk -v bound="$4" -v mean="$5" -v steps="$3" '
        { off = $1 - $2; squares += off * off; if (off < 0) off = -off; if (!(off <= most)) most = off; count++ }
        END {
            root = sqrt(squares / count)
            print count " logits, off by " root " in the root mean square and " most " at most"
            exit !(count == steps * 512 && most < bound && root < mean && root > 0)
        }'
}

foresees() { # NAME MOST
    sed -n 's/^perplexity \([0-9.]*\) over 200 tokens$/\1/p' "$KILN_SCRATCH/$1.log" | awk -v most="$2" '
        { print "perplexity " $1; found = $1 } END { exit !(found > 1 && found <= most) }'
}

on_cpu() { # WEIGHTS PRECISION BOUND MEAN PERPLEXITY
    feed "$1" "$story" 200 --device cpu --weights "$1" --precision "$2" && are_near "$1" f32 200 "$3" "$4" &&
        foresees "$1" "$5"
}

on_gpu() { # TARGET DEVICE WEIGHTS PRECISION BOUND MEAN
    KILN_SIM_DEVICES=$1 LD_LIBRARY_PATH=$KILN_BUILD/sim feed "$3" "$beginning" $beginning_steps --device "$2" \
        --weights "$3" --precision "$4" && are_near "$3" beginning $beginning_steps "$5" "$6"
}

story=$(cat docs/examples/llama/story.txt)
check "f32" feed f32 "$story" 200 --device cpu
check "f32 foresees the story" foresees f32 1.61
check "fp8 within 3 of f32, 0.5 in the mean" on_cpu fp8 f32 3 0.5 1.66
check "int8 within 1 of f32, 0.2 in the mean" on_cpu int8 f32 1 0.2 1.63
check "w4a16 within 6 of f32, 1.3 in the mean" on_cpu w4a16 f32 6 1.3 1.73
check "w4a16 in f16 within 6 of f32, 1.3 in the mean" on_cpu w4a16 f16 6 1.3 1.73
check "the beginning in f32" feed beginning "$beginning" $beginning_steps --device cpu
check "fp8 in f16 within 3 on simulated sm_89" on_gpu sm_89 cuda:0 fp8 f16 3 0.5
check "int8 in f16 within 1 on simulated sm_80" on_gpu sm_80 cuda:0 int8 f16 1 0.2
check "w4a16 in f16, packed for the device, within 6 on simulated sm_80" on_gpu sm_80 cuda:0 w4a16 f16 6 1.3
check "w4a16 in bf16, which sm_75 takes as it is, within 6 there" on_gpu sm_75 cuda:0 w4a16 bf16 6 1.3
if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    check "fp8 in bf16 within 3 on simulated gfx942" on_gpu gfx942 rocm:0 fp8 bf16 3 0.5
else
    skip "fp8 on simulated gfx942" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
fi
finish
