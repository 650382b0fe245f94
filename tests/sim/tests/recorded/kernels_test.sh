# Single instructions as an H200 did them (tests/sim/recorded/h200), replayed on the interpreter.
. tests/tap.sh
unpack() {
    local file
    for file in tests/sim/recorded/h200/*.kernels.gz; do
        gzip -dc "$file" >"$KILN_SCRATCH/$(basename "$file" .gz)" || return
    done
}

replays() {
    "$KILN_BUILD/tests/sim/tests/recorded/kernels_test" "$KILN_SCRATCH"/*.kernels >"$KILN_SCRATCH/out" 2>&1
    local status=$?
    grep -E '^# (different|recorded)' "$KILN_SCRATCH/out"
    [ $status -eq 0 ] && grep -qE '^# recorded: ([1-9][0-9]*) of \1 kinds equal$' "$KILN_SCRATCH/out"
}

check 'the records are whole' unpack
check 'the interpreter does as was recorded' replays
finish
