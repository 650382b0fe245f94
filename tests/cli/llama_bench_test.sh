# `llama --bench`: the same tokens on every backend, in every batch and from a graph as from calls; its JSON, and what it says of
# wrong options. Times are not judged. The peers' scripts write the model that they hold it against.
. tests/tap.sh
llama=$KILN_BUILD/examples/llama sim=$KILN_BUILD/sim
bench=("$llama" --bench --shape tiny --prompt 20)
quantised= # options

tokens() { # STEPS BATCH OPTION...: after so many steps
    local steps=$1 batch=$2
    shift 2
    "${bench[@]}" --json --steps "$steps" --batch "$batch" "$@" | tee out | sed -n 's/.*"last_tokens": \[\(.*\)\]/\1/p'
}

# Greedy tokens of random weights hardly repeat: the caches of all steps have a part in them.
goes_on() {
    local steps
    for steps in 1 2 3 5 9; do
        tokens $steps 1 --device cpu --precision f32
    done >seen
    cat seen
    [ "$(sort -u seen | wc -l)" -ge 4 ]
}

same() { # STEPS PRECISION OPTION...: as on the CPU, in a batch of one and of three, with the same $quantised
    local steps=$1 precision=$2 one three
    shift 2
    one=$(tokens "$steps" 1 --device cpu --precision "$precision" $quantised)
    three=$(tokens "$steps" 3 --precision "$precision" $quantised "$@")
    echo "$one; $three"
    [ -n "$one" ] && [ "$three" = "$one, $one, $one" ]
}

simulated() { # DEVICE TARGET GRAPHS
    KILN_SIM_DEVICES=$2 LD_LIBRARY_PATH=$sim same 4 f32 --device "$1" && grep -q "\"graphs\": $3," out
}

# Weights and a cache in fewer bits; the bytes of weights are those of the matrices' codes and scales, and of the classifier.
quantised() { # BYTES OPTION...
    local bytes=$1 quantised=${*:2}
    same 4 f32 --device cpu && grep -q "\"weight_bytes\": $bytes," out && simulated cuda:0 sm_80 true
}

# Kernels of sm_90a that begin early give the same tokens as those that do not: the simulated driver has them touch what is
# not theirs yet where they do not wait.
programmatic() {
    local late early
    late=$(KILN_SIM_DEVICES=sm_90 LD_LIBRARY_PATH=$sim tokens 3 2 --device cuda:0)
    early=$(KILN_SIM_DEVICES=sm_90 LD_LIBRARY_PATH=$sim tokens 3 2 --device cuda:0 --programmatic)
    echo "$late; $early"
    [ -n "$late" ] && [ "$early" = "$late" ] && grep -q '"programmatic": true' out
}

# Two batches: the table has a line for each, and shares of what was measured.
prints_a_table() {
    "${bench[@]}" --steps 2 --batch 1,2 --device cpu --precision f32 --peak 0.5 >out || return 1
    cat out
    grep -q '^tiny f32 on .*: 0.00 GB of weights$' out && grep -q 'products 0.500 TFLOP/s (--peak)' out &&
        [ "$(grep -cE '^batch [12]: .* ms a step, .* tokens/s, [0-9]+% of reading$' out)" -eq 2 ]
}

# The bytes that a step reads of an 8B model are those of its published count of parameters, less the embedding.
counts_weights() {
    python3 - <<'END'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, "scripts")
from llama_shapes import shapes, weights
found = shapes()
eight = found["llama3-8b"]
norms = (2 * eight["layers"] + 1) * eight["size"]
assert weights(eight) + norms + eight["vocabulary"] * eight["size"] == 8030261248, weights(eight)
one = found["llama3.2-1b"]
assert weights(one) + (2 * one["layers"] + 1) * one["size"] == 1235814400, weights(one)
shard = found["llama3-70b-shard"]
assert shard["heads"] * 8 == 64 and shard["hidden"] * 8 == 28672 and shard["vocabulary"] * 8 == 128256
END
}

is_json() {
    tokens 2 1,3 --device cpu --precision f16 >/dev/null
    python3 - <<'END'
import json
found = json.load(open("out"))
assert found["weight_bytes"] == 2 * (2 * 64 * (128 + 64 + 3 * 128) + 256 * 64), found["weight_bytes"]
assert [one["batch"] for one in found["decode"]] == [1, 3] and len(found["last_tokens"]) == 3
assert found["prefill"]["tokens"] == 20 and 0 < found["prefill"]["share_of_peak"]
assert found["seconds"]["first_token"] >= found["seconds"]["weights"] > 0
END
}

# The file of the peer's model is one: all of it is where its header says.
writes_gguf() {
    python3 - <<'END'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, "scripts")
import struct
import bench_llama_cpp
from llama_shapes import shapes
tiny = shapes()["tiny"]
bench_llama_cpp.write_model("model.gguf", tiny, "bf16", None, 32)
data = open("model.gguf", "rb").read()
assert data[:8] == b"GGUF\3\0\0\0"
tensors, keys = struct.unpack_from("<QQ", data, 8)
assert tensors == 3 + 9 * tiny["layers"] and keys == 15, (tensors, keys)
assert len(data) % 32 == 0 and data[-4 * tiny["size"]:] == struct.pack("<f", 1) * tiny["size"]
END
}

unsupported() {
    "${bench[@]}" --device cpu --programmatic 2>err
    [ $? -eq 1 ] && grep -q 'cpu has no programmatic dependent launches' err
}

says() { # TEXT OPTION...
    local text=$1 status
    shift
    "$llama" --bench "$@" >out 2>err
    status=$?
    cat err
    [ $status -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e "$text" err
}

root=$PWD
cd "$KILN_SCRATCH" || exit 1
ln -s "$root/scripts" scripts
for path in llama sim; do
    [ "${!path#/}" != "${!path}" ] || printf -v "$path" '%s' "$root/${!path}"
done
bench[0]=$llama

check "tokens that differ" goes_on
check "a batch of three on the CPU" same 5 f32 --device cpu
check "a batch of three in bf16" same 5 bf16 --device cpu
check "x86-64-v2" same 3 f32 --device cpu --cpu-level x86-64-v2
check "sm_80, as graphs" simulated cuda:0 sm_80 true
check "gfx1100" simulated rocm:0 gfx1100 false
check "weights of 4 bits" quantised 117760 --weights w4a16
check "weights of int8" quantised 143360 --weights int8
check "weights and a cache of fp8" quantised 143360 --weights fp8 --cache fp8
check "kernels that begin early, on sm_90" programmatic
check "kernels that begin early, where there are none" unsupported
check "the table" prints_a_table
check "the JSON" is_json
check "the weights of the shapes" counts_weights
check "the model of llama.cpp" writes_gguf
check "no shape" says 'wants a --shape' --device cpu
check "an unknown shape" says '--shape llama4: must be llama3-8b' --shape llama4
check "an argument too many" says 'wants options alone' --shape tiny more
check "unknown weights" says '--weights int4: must be w4a16, fp8 or int8' --shape tiny --weights int4
check "an unknown cache" says '--cache int8: must be same or fp8' --shape tiny --cache int8
check "no batch" says '--batch : must be' --shape tiny --batch ''
check "a batch of zero" says '--batch 1,0: must be' --shape tiny --batch 1,0
check "a batch that is missing" says '--batch 1,,2: must be' --shape tiny --batch 1,,2
check "a peak of zero" says '--peak 0: must be' --shape tiny --peak 0
check "no steps" says '--steps 0: must be' --shape tiny --steps 0
check "an option that is none" says '--stepz: is no option' --shape tiny --stepz 3
finish
