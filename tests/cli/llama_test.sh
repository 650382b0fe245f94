# What docs/examples/llama says of models, tokenizers and options that are wrong: one line, and no story.
. tests/tap.sh
model=$MODEL_DIR/stories260K.bin tokenizer=$MODEL_DIR/tok512.bin
if ! [ -r "$model" ] || ! [ -r "$tokenizer" ]; then
    skip_all "there is no model in $MODEL_DIR: none can be made wrong"
fi
cd "$KILN_SCRATCH" || exit 1
[ "${model#/}" = "$model" ] && model=$OLDPWD/$model tokenizer=$OLDPWD/$tokenizer
llama=$KILN_BUILD/examples/llama
[ "${llama#/}" = "$llama" ] && llama=$OLDPWD/$llama

# Fails unless llama ends with an error, prints nothing and says this in one line.
says() { # TEXT ARGUMENT...
    local text=$1 status
    shift
    "$llama" "$@" >out 2>err
    status=$?
    cat err
    [ $status -gt 0 ] && [ $status -lt 126 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$text" err
}

head -c 20 "$model" >short_header
head -c 500000 "$model" >truncated
{ cat "$model" && echo; } >longer
head -c 3000 "$tokenizer" >truncated_tokens
{ cat "$tokenizer" && head -c 9 /dev/zero; } >more_tokens
printf '\0%.0s' $(seq 100) >zeros
: >empty
long=$(printf 'once upon a time %.0s' $(seq 400))

check "a model that is not there" says 'absent: No such file' absent "$tokenizer"
check "an empty model" says 'empty: is empty' empty "$tokenizer"
check "a folder" says 'is empty, or no file' . "$tokenizer"
check "a model without a whole header" says 'short_header: is shorter than a header' short_header "$tokenizer"
check "a truncated model" says 'truncated: ends within' truncated "$tokenizer"
check "a model with bytes behind it" says 'longer: has 1 bytes behind' longer "$tokenizer"
check "zeros" says 'zeros: its header has a size' zeros "$tokenizer"
check "a tokenizer that is not there" says 'absent: No such file' "$model" absent
check "a truncated tokenizer" says 'truncated_tokens: ' "$model" truncated_tokens
check "another model's tokenizer" says 'more_tokens: has more tokens' "$model" more_tokens
check "an empty tokenizer" says 'empty: is no tokenizer' "$model" empty
check "too long a prompt" says 'the prompt is too long' "$model" "$tokenizer" --device cpu --prompt "$long"
check "a wrong device" says '--device gpu: must be' "$model" "$tokenizer" --device gpu
check "a wrong precision" says '--precision f8: must be' "$model" "$tokenizer" --precision f8
check "no steps" says '--steps 0: must be' "$model" "$tokenizer" --steps 0
check "a wrong temperature" says '--temperature -1: must be' "$model" "$tokenizer" --temperature -1
check "a wrong level" says 'device: ' "$model" "$tokenizer" --device cpu --cpu-level x86-64-v9
finish
