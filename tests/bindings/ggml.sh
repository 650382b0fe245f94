#!/bin/bash
# llama.cpp on libggml-kiln.so, as TAP: its own test of operators on the CPU, all of it or with GGML_CASES=sample a sample,
# and that sample on simulated GPUs; a model's text; the same from another process, by RPC. KILN_BUILD has the library and the simulated drivers, GGML_DIR
# what loader/bindings/ggml/build.sh made, MODEL_DIR the model, PYTHON_DIR a Python with the gguf package.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
build=$(realpath "$KILN_BUILD")
programs=$GGML_DIR/build/bin
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$work"' EXIT
export GGML_BACKEND_PATH=$build/libggml-kiln.so LD_LIBRARY_PATH=$programs

# ---- Operators ----

# The cases with this result, a line each, and how many they are.
results() { # RESULT
    sed 's/\x1b\[[0-9;]*m//g' "$work/cases" | grep -E "^  [A-Z0-9_]+\(.*\): $1\$"
}
cases() { # RESULT
    results "$1" | wc -l
}

# Runs ggml's test on the first device of kiln's and prints what came of it. A simulator that complains has found something;
# ggml closes no device, and what is left of those at the end is no fault.
operators() { # WHERE ARGUMENT...
    local where=$1 passed status
    shift
    "$programs/test-backend-ops" test -b kiln0 "$@" >"$work/cases" 2>&1
    status=$?
    passed=$(cases OK)
    [ $status -eq 0 ] && [ "$passed" -gt 0 ] && [ "$(cases FAIL)" -eq 0 ] && grep -q 'Backend kiln0: .*OK' "$work/cases" &&
        ! grep -v '^sim: leak: ' "$work/cases" | grep '^sim:'
    tap_result $? "$where: $passed cases pass, $(cases 'not supported.*') are left to others" \
        "$(grep -aE 'FAIL|^sim:' "$work/cases") (status $status)"
}

# The cases of the sample, each of which kiln does.
sample() { # WHERE
    grep -v '^#' tests/bindings/ggml_sample | sort >"$work/sample"
    operators "$1" -o "$(paste -sd, "$work/sample")"
    results OK | sed 's/^  \(.*\): OK$/\1/' | sort -u >"$work/passed"
    check "$1 did all of the sample" diff "$work/sample" "$work/passed"
}
sample_on_simulated() { # DEVICE
    local -x LD_LIBRARY_PATH=$build/sim:$programs KILN_SIM_DEVICES=$1 KILN_SIM_SEED=1 KILN_SIM_UNALIGNED=0 KILN_SIM_SAME_STORE=0
    sample "simulated $1"
}

check "map's images are those of its source" loader/bindings/ggml/fire.sh fresh
if [ "${GGML_CASES:-all}" = all ]; then operators "the CPU"; else sample "the CPU"; fi
for device in sm_80 sm_90 gfx942 gfx1100; do
    case $device in
    gfx*)
        ldconfig -p | grep -q 'libLLVM\.so\.19\.1' || {
            skip "simulated $device" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
            continue
        }
        ;;
    esac
    sample_on_simulated $device
done

# ---- A model ----

if ! [ -r "$MODEL_DIR/stories260K.bin" ]; then
    skip "the model" "there is none in $MODEL_DIR"
    finish
fi
check "the model becomes a GGUF" "$programs/llama-convert-llama2c-to-ggml" --copy-vocab-from-model "$MODEL_DIR/tok512.bin" \
    --llama2c-model "$MODEL_DIR/stories260K.bin" --llama2c-output-model "$work/story.gguf"

# Writes the greedy text of so many tokens into a file, and what llama.cpp said beside it.
tell() { # FILE TOKENS ARGUMENT...
    "$programs/llama-completion" -m "$work/${model:-story}.gguf" -no-cnv -p Once -n "$2" --temp 0 -t 2 --no-warmup "${@:3}" \
        >"$work/$1" 2>"$work/$1.log"
}

# llama.cpp writes by way of a thread that it does not wait for at the end (common/log.cpp): what a loaded machine has cut
# off is told again.
told_alike() { # FILE EXPECTED TOKENS ARGUMENT...
    for _ in $(seq 20); do
        tell "$1" "${@:3}" || return
        ! cmp -s "$work/$1" "$work/$2" || return 0
        [ "$(cat "$work/$1")" = "$(head -c "$(wc -c <"$work/$1")" "$work/$2")" ] || break
    done
    diff "$work/$1" "$work/$2"
}

# Every layer is there, attention is one operator, and the graph is in one piece.
wholly_on_kiln() {
    tell whole 1 -dev kiln0 -ngl 99 -v && grep 'offloaded 6/6 layers' "$work/whole.log" &&
        grep 'Flash Attention enabled' "$work/whole.log" && grep 'sched_reserve: graph.* splits = 1,' "$work/whole.log"
}

# Once there is as much of it as the tokens have.
tells_the_story() {
    for _ in $(seq 20); do
        tell cpu 190 -dev none && grep -qF "$(head -n 1 docs/examples/llama/story.txt)" "$work/cpu" &&
            grep -q 'tokens per second' "$work/cpu.log" && return
    done
    return 1
}

told_alike_on_simulated() { # DEVICES ARGUMENT...
    local -x LD_LIBRARY_PATH=$build/sim:$programs KILN_SIM_DEVICES=$1
    told_alike simulated begin 6 -ngl 99 "${@:2}"
}

# A long run allocates device memory no more often than a short one: with the allocation refused that the short one does
# not come to, it ends as well. Launches are recorded and not executed, which is fast.
allocates_once() {
    local -x LD_LIBRARY_PATH=$build/sim:$programs KILN_SIM_DEVICES=sm_90 KILN_SIM_RECORD=1 KILN_SIM_FAULT=cuMemAlloc_v2,1,2
    local nth=1
    until tell short 2 -dev kiln0 -ngl 99; do
        nth=$((nth + 1))
        [ $nth -lt 40 ] || return 1
        KILN_SIM_FAULT=cuMemAlloc_v2,$nth,2
    done
    [ $nth -gt 1 ] && tell long 40 -dev kiln0 -ngl 99 --ignore-eos
}

check "ggml's CPU tells the story" tells_the_story
check "kiln on the CPU tells the same" told_alike kiln cpu 190 -dev kiln0 -ngl 99
check "with nothing left to ggml's CPU" wholly_on_kiln
check "a graph like one before allocates nothing" allocates_once
check "ggml's CPU begins it" tell begin 6 -dev none
for device in sm_80 gfx942; do
    check "kiln on simulated $device begins it the same" told_alike_on_simulated $device -dev kiln0
done
check "kiln with half the layers on each of two simulated GPUs, too" told_alike_on_simulated sm_90,gfx1100 -dev kiln0,kiln1 -ts 1,1

# ---- Quantised weights ----

# Those of Q4_0 are multiplied by gemm_w4a16, for which the first graph allocates and the next ones do not; those of Q8_0
# by mul_vec. ggml's CPU rounds activations to 8 bits, kiln does not: the text may differ some time later.
quantised() { # TYPE TOKENS DEVICE
    local model=quantised
    check "the model is quantised to $1" "$PYTHON_DIR/bin/python3" tests/bindings/ggml_quantise.py "$work/story.gguf" \
        "$work/quantised.gguf" "$1"
    check "$1: ggml's CPU tells what it knows" tell begin "$2" -dev none
    check "$1: kiln on the CPU begins it the same" told_alike quantised begin "$2" -dev kiln0 -ngl 99
    check "$1: a graph like one before allocates nothing" allocates_once
    check "$1: ggml's CPU begins it in few words" tell begin 6 -dev none
    check "$1: kiln on simulated $3 begins it the same" told_alike_on_simulated "$3" -dev kiln0
}

if "$PYTHON_DIR/bin/python3" -c 'import gguf' 2>"$work/gguf.log"; then
    quantised Q4_0 40 sm_80
    quantised Q8_0 190 gfx942
else
    skip "quantised weights" "there is no gguf package in $PYTHON_DIR, where make check-python puts it"
fi

# ---- Another process ----

# Starts a server on a port of loopback that is free, or says why it cannot.
serve() {
    local port
    while [ "$(wc -l 2>/dev/null <"$work/ports" || echo 0)" -lt 5 ]; do
        port=$((20000 + RANDOM % 10000))
        echo $port >>"$work/ports"
        "$programs/ggml-rpc-server" -H 127.0.0.1 -p $port -d kiln0 >"$work/server.log" 2>&1 &
        server=$!
        while kill -0 $server 2>/dev/null; do
            sleep 0.1
            (echo >/dev/tcp/127.0.0.1/$port) 2>/dev/null || continue
            address=127.0.0.1:$port
            return 0
        done
    done
    server=
    return 1
}

# From a process that has no kiln.
told_alike_by_rpc() (
    unset GGML_BACKEND_PATH
    told_alike rpc cpu 190 --rpc "$address" -dev RPC0 -ngl 99
)

serve
tap_result $? "llama.cpp's RPC server serves kiln0" "$(cat "$work/server.log")"
check "another process tells the same through it" told_alike_by_rpc
check "the server is alive" kill -0 "$server"
finish
