#!/bin/bash
# kiln's backend in the real Triton Inference Server: what `make check-triton` runs. Each case of triton_cases.py has a server
# of its own; lines that begin with # are what it measured here, and pass or fail nothing.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
: "${KILN_BUILD:=build}" "${MODEL_DIR:=../shared/models}"
export KILN_BUILD MODEL_DIR TRITON_DIR
[ -r "$MODEL_DIR/stories260K.bin" ] || skip_all "there is no model in $MODEL_DIR"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What a case says of itself goes with its result, good or not.
run_case() { # NAME
    mkdir "$scratch/$1"
    timeout 300 python3 tests/bindings/triton_cases.py "$1" "$scratch/$1" >"$scratch/output" 2>&1
    local status=$?
    grep '^#' "$scratch/output"
    tap_result $status "${1//_/ }" "$(cat "$scratch/output")"
}

for case in $(python3 tests/bindings/triton_cases.py --list); do
    run_case "$case"
done
finish
