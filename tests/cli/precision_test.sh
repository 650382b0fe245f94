# The model of docs/examples/llama in f16 and bf16: fed its own story, the logits of each step stay within a bound of those
# in f32. They are up to 22; half of a step of that size is 0.008 in f16, and 0.06 in bf16, and each layer adds its own.
# With a cache of E4M3, whose numbers have four bits, they are off by more; what counts is the perplexity of the story.
. tests/tap.sh
model=$MODEL_DIR/stories260K.bin tokenizer=$MODEL_DIR/tok512.bin
if ! [ -r "$model" ] || ! [ -r "$tokenizer" ]; then
    skip_all "there is no model in $MODEL_DIR: no logits are compared"
fi
story=$(cat docs/examples/llama/story.txt)

cache_of() { # NAME
    case $1 in *-fp8) echo fp8 ;; *) echo same ;; esac
}

# NAME is of the file that has them: the precision, and -fp8 with such a cache.
logits() { # NAME
    "$KILN_BUILD/examples/llama" "$model" "$tokenizer" --device cpu --precision "${1%-fp8}" --cache "$(cache_of "$1")" \
        --prompt "$story" --logits "$KILN_SCRATCH/$1" >"$KILN_SCRATCH/story" && cmp "$KILN_SCRATCH/story" docs/examples/llama/story.txt
}

# The same of the story's beginning on a simulated device.
beginning="Once upon a time, there was a little girl named Lily."
beginning_steps=15
logits_on_gpu() { # TARGET DEVICE NAME
    KILN_SIM_DEVICES=$1 LD_LIBRARY_PATH=$KILN_BUILD/sim "$KILN_BUILD/examples/llama" "$model" "$tokenizer" --device "$2" \
        --precision "${3%-fp8}" --cache "$(cache_of "$3")" --prompt "$beginning" --steps $beginning_steps \
        --logits "$KILN_SCRATCH/$3" >"$KILN_SCRATCH/story" 2>"$KILN_SCRATCH/log" || { cat "$KILN_SCRATCH/log" && return 1; }
    grep '^sim:' "$KILN_SCRATCH/log" && return 1
    printf '%s\n' "$beginning" | cmp - "$KILN_SCRATCH/story"
}

numbers() { # NAME STEPS
    od -An -v -t f4 -w4 -N $(($2 * 512 * 4)) "$KILN_SCRATCH/$1"
}

# Whether the logits of so many steps are within a bound of those in f32.
are_near() { # NAME BOUND STEPS
    paste <(numbers f32 "$3") <(numbers "$1" "$3") | awk -v bound="$2" -v steps="$3" '
        { off = $1 - $2; if (off < 0) off = -off; if (!(off <= most)) most = off; count++ }
        END { print count " logits, the most that one is off is " most; exit !(count == steps * 512 && most < bound) }'
}

# The perplexity of the story, which f32 tells: its next token is always the greatest of f32's logits. It must be within
# some per cent of f32's own.
perplexity_is_near() { # NAME PERCENT
    paste <(numbers f32 200) <(numbers "$1" 200) | awk -v percent="$2" '
        { own += exp($1); sum += exp($2); if (++count == 1 || $1 > most) { most = $1; other = $2 } }
        count == 512 { nats += log(own) - most; other_nats += log(sum) - other; steps++; count = own = sum = 0 }
        END {
            before = exp(nats / steps)
            after = exp(other_nats / steps)
            off = 100 * (after / before - 1)
            printf "the perplexity of %d tokens is %.4f, and %.4f in f32: %+.2f %%\n", steps, after, before, off
            exit !(steps == 200 && off < percent && off > -percent)
        }'
}

differ_less() { # NAME BOUND
    logits "$1" && are_near "$1" "$2" 200
}

differ_less_on_gpu() { # TARGET DEVICE NAME BOUND
    logits_on_gpu "$1" "$2" "$3" && are_near "$3" "$4" $beginning_steps
}

check "f32" logits f32
check "f16 within 0.1 of f32" differ_less f16 0.1
check "bf16 within 0.5 of f32" differ_less bf16 0.5
for precision in f32 bf16; do
    check "$precision with an fp8 cache within 4 of f32" differ_less $precision-fp8 4
    check "its perplexity within 2 % of f32's" perplexity_is_near $precision-fp8 2
done
check "f32 with an fp8 cache on simulated sm_75" differ_less_on_gpu sm_75 cuda:0 f32-fp8 4
check "f16 within 0.1 on simulated sm_75" differ_less_on_gpu sm_75 cuda:0 f16 0.1
check "bf16 within 0.5 on simulated sm_75" differ_less_on_gpu sm_75 cuda:0 bf16 0.5
if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    check "f16 within 0.1 on simulated gfx942" differ_less_on_gpu gfx942 rocm:0 f16 0.1
    check "bf16 within 0.5 on simulated gfx942" differ_less_on_gpu gfx942 rocm:0 bf16 0.5
    check "f32 with an fp8 cache on simulated gfx942" differ_less_on_gpu gfx942 rocm:0 f32-fp8 4
else
    skip "f16, bf16 and an fp8 cache on simulated gfx942" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
fi
finish
