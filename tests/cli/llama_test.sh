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
sim=${llama%/examples/llama}/sim

# Fails unless llama ends with this status, prints nothing and says this in one line.
ends() { # STATUS TEXT ARGUMENT...
    local expected=$1 text=$2 status
    shift 2
    "$llama" "$@" >out 2>err
    status=$?
    cat err
    [ $status -eq "$expected" ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$text" err
}

says() { # TEXT ARGUMENT...
    ends 2 "$@"
}

# The same where output cannot be written.
cannot_write() { # STDOUT TEXT ARGUMENT...
    local file=$1 text=$2 status
    shift 2
    "$llama" "$@" >"$file" 2>err
    status=$?
    cat err
    [ $status -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$text" err
}

# A prompt that is all of the story that is told, in as many steps as it has tokens.
repeats() { # PROMPT STEPS
    "$llama" "$model" "$tokenizer" --device cpu --prompt "$1" --steps "$2" >out 2>err || return 1
    printf '%s\n' "$1" | cmp - out
}

# A story that would go on has as many tokens as the model's length, each with logits.
ends_at_length() { # PROMPT
    "$llama" "$model" "$tokenizer" --device cpu --steps 1000000 --logits logits --prompt "$1" >out 2>err &&
        [ "$(wc -c <logits)" -eq $((4 * 512 * 512)) ]
}

# Nothing but logits is in their file where the story cannot be told.
keeps_logits_apart() {
    "$llama" "$model" "$tokenizer" --device cpu --steps 3 --logits logits >&- 2>err
    [ $? -eq 1 ] && grep -q 'standard output: ' err && [ "$(wc -c <logits)" -eq $((4 * 512)) ]
}

# A line on a terminal tells how far loading is, and is gone before the story; none goes into a file.
shows_progress() {
    script -qec "'$llama' '$model' '$tokenizer' --device cpu --steps 2" /dev/null </dev/null >out &&
        grep -q $'^\rloading 0%\rloading [1-9].*%\r *\rOnce upon' out || return 1
    "$llama" "$model" "$tokenizer" --device cpu --steps 2 >out 2>err && ! grep loading err
}

# Bytes of the header's number at this place, in a copy of the model.
with_number() { # FILE PLACE BYTES
    cp "$model" "$1" && printf '%b' "$3" | dd of="$1" bs=4 seek="$2" conv=notrunc status=none
}

head -c 20 "$model" >short_header
head -c 500000 "$model" >truncated
{ cat "$model" && echo; } >longer
head -c 3000 "$tokenizer" >truncated_tokens
{ cat "$tokenizer" && head -c 9 /dev/zero; } >more_tokens
printf '\0%.0s' $(seq 100) >zeros
: >empty
mkfifo fifo
long=$(printf 'once upon a time %.0s' $(seq 400))
story=$(cat "$OLDPWD/docs/examples/llama/story.txt")
with_number negative_size 0 '\0300\0377\0377\0377'
with_number huge_size 0 '\0000\0000\0000\0100'
with_number no_heads 3 '\0\0\0\0'
with_number three_key_heads 4 '\0003\0\0\0'
with_number own_classifier 5 '\0000\0376\0377\0377'
{ head -c 28 "$model" && tail -c +29 "$model" | LC_ALL=C tr '\000-\377' '\377'; } >not_numbers
# A model of two tokens: 8 wide, one layer, one head, a length of 1.
printf '%b' '\0010\0\0\0\0010\0\0\0\0001\0\0\0\0001\0\0\0\0001\0\0\0\0002\0\0\0\0001\0\0\0' >two_tokens
head -c $((4 * (2 * 8 + 3 * 8 + 7 * 64 + 8))) /dev/zero >>two_tokens
printf '%b' '\0001\0\0\0\0\0\0\0\0001\0\0\0a\0\0\0\0\0001\0\0\0b' >two_names

check "a model that is not there" says 'absent: No such file' absent "$tokenizer"
check "an empty model" says 'empty: is empty' empty "$tokenizer"
check "a folder as a tokenizer" says '.: Is a directory' "$model" .
check "a tokenizer without begin and end" says 'two_names: has no tokens to begin' two_tokens two_names
check "a folder" says 'is empty, or no regular file' . "$tokenizer"
check "a FIFO, which nobody writes" says 'is empty, or no regular file' fifo "$tokenizer"
check "a model without a whole header" says 'short_header: is shorter than a header' short_header "$tokenizer"
check "a truncated model" says 'truncated: ends within' truncated "$tokenizer"
check "a model with bytes behind it" says 'longer: has 1 bytes behind' longer "$tokenizer"
for number in negative_size huge_size no_heads; do
    check "a header with $number" says "$number: its header has a size that is not from 1" $number "$tokenizer"
done
check "key heads that heads are no multiple of" says 'not a multiple of its key heads' three_key_heads "$tokenizer"
check "a classifier that is not there" says 'ends within classifier' own_classifier "$tokenizer"
check "weights that are no numbers" ends 1 'the model gave token -1' not_numbers "$tokenizer" --device cpu
check "zeros" says 'zeros: its header has a size' zeros "$tokenizer"
check "a tokenizer that is not there" says 'absent: No such file' "$model" absent
check "a truncated tokenizer" says 'truncated_tokens: ' "$model" truncated_tokens
check "another model's tokenizer" says 'more_tokens: has more tokens' "$model" more_tokens
check "an empty tokenizer" says 'empty: is no tokenizer' "$model" empty
check "too long a prompt" says '--prompt: has more tokens' "$model" "$tokenizer" --steps 512 --prompt "$long"
check "a prompt longer than the steps" says '--prompt: has more tokens' "$model" "$tokenizer" --steps 199 --prompt "$story"
check "a prompt of as many tokens as steps" repeats "$story" 200
check "a prompt of more bytes than the model's length" repeats "$story $story" 400
check "a prompt that is no UTF-8" repeats $'\xff\xc3(\x80' 5
check "a prompt of one token" repeats a 1
check "an option that is none" says 'llama: --stepz: is no option' "$model" "$tokenizer" --stepz 3
check "a letter that is no option" says 'llama: -x: is no option' "$model" "$tokenizer" -xyz
check "the beginning of two options" says 'llama: --t=1: is no option' "$model" "$tokenizer" --t=1
check "a value for an option that has none" says 'llama: --help=1: is no option' "$model" "$tokenizer" --help=1
check "an option without its value" says 'llama: --steps: wants a value' "$model" "$tokenizer" --steps
check "no arguments" says 'llama: wants MODEL and TOKENIZER, and was given 0'
check "an argument too many" says 'llama: wants MODEL and TOKENIZER, and was given 3' "$model" "$tokenizer" more
check "more steps than the model's length" ends_at_length "$story $story"
check "a wrong device" says '--device gpu: must be' "$model" "$tokenizer" --device gpu
check "a wrong precision" says '--precision f8: must be' "$model" "$tokenizer" --precision f8
check "a wrong cache" says '--cache f16: must be same or fp8' "$model" "$tokenizer" --cache f16
check "a draft with a cache of codes" says '--draft: cannot go with --cache fp8' "$model" "$tokenizer" --draft ngram \
    --cache fp8
for steps in 0 -1 99999999999999999999 1e3 ''; do
    check "--steps '$steps'" says "--steps $steps: must be a number" "$model" "$tokenizer" --steps "$steps"
done
for temperature in -1 nan inf 1e-45 1e-50 101 warm; do
    check "--temperature $temperature" says "--temperature $temperature: must be 0, or a number" \
        "$model" "$tokenizer" --temperature $temperature
done
check "a wrong level" ends 1 'device: ' "$model" "$tokenizer" --device cpu --cpu-level x86-64-v9
check "a device that is not there" ends 1 'device: ' "$model" "$tokenizer" --device cpu:9
lacks_images() {
    KILN_SIM_DEVICES=sm_60 LD_LIBRARY_PATH=$sim "$llama" "$model" "$tokenizer" --device cuda:0 >out 2>err
    [ $? -eq 1 ] && [ ! -s out ] && grep '^llama: loading: no image for this device: .* f32: ' err
}
check "a device without images" lacks_images
check "a story that cannot be written" cannot_write /dev/full 'standard output: ' "$model" "$tokenizer" --device cpu
check "a closed standard output" keeps_logits_apart
check "a help that cannot be written" cannot_write /dev/full 'standard output: ' --help
check "a file of logits that cannot be made" says '--logits absent/x: ' "$model" "$tokenizer" --logits absent/x
cp "$model" own && cp "$tokenizer" own_tokens
keeps_its_files() { # LOGITS
    says "--logits $1: must be another file" own own_tokens --device cpu --logits "$1" && cmp "$model" own &&
        cmp "$tokenizer" own_tokens
}
check "logits in place of the model" keeps_its_files ./own
check "logits in place of the tokenizer" keeps_its_files own_tokens
for steps in 1 3; do
    check "logits of $steps steps that cannot be written" cannot_write out '--logits: ' "$model" "$tokenizer" \
        --device cpu --logits /dev/full --steps $steps
done

if script -qec true /dev/null >/dev/null 2>&1; then
    check "progress on a terminal" shows_progress
else
    skip "progress on a terminal" "script has no terminal to give"
fi

# What the driver refuses of graphs leaves the calls, and the story as it was.
tells_without() { # FUNCTION,NTH,ERROR
    "$llama" "$model" "$tokenizer" --device cpu --steps 4 >expected 2>err &&
        KILN_SIM_FAULT=$1 KILN_SIM_DEVICES=sm_75 LD_LIBRARY_PATH=$sim "$llama" "$model" "$tokenizer" --device cuda:0 \
            --steps 4 >out 2>err && ! grep -e '^sim:' -e 'as a graph' err && cmp expected out
}

for fault in cuStreamBeginCapture_v2,1,900 cuGraphInstantiateWithFlags,1,2 cuGraphLaunch,2,2; do
    check "graphs without ${fault%%,*}" tells_without $fault
done
finish
