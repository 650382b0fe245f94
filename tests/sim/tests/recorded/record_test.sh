# What tests/gpu/instructions_test.sh records is what kernels_test replays: with the simulated driver in place of a GPU's, of
# approximations, NaN, moves of matrices and memory; and a record with a bit turned, or cut off, is noticed.
. tests/tap.sh
records=$KILN_SCRATCH/all.kernels

records_itself() { # PROGRAM
    rm -f "$KILN_SCRATCH/$1.kernels"
    KILN_TEST_REAL_CUDA=$KILN_BUILD/sim/libcuda.so.1 KILN_SIM_DEVICES=sm_90 KILN_TEST_RECORD=$KILN_SCRATCH/$1.kernels \
        "$KILN_BUILD/tests/sim/tests/ptx/$1_test" >"$KILN_SCRATCH/out" 2>&1 || tail -n 20 "$KILN_SCRATCH/out" >&2
    cat "$KILN_SCRATCH/$1.kernels" >>"$records"
}

replays() { # FILE
    "$KILN_BUILD/tests/sim/tests/recorded/kernels_test" "$1" >"$KILN_SCRATCH/out" 2>&1
}

all_are_equal() {
    replays "$records" && grep -E '^# recorded: ([1-9][0-9]*) of \1 kinds equal$' "$KILN_SCRATCH/out"
}

a_turned_bit_is_noticed() {
    local size
    size=$(stat -c %s "$records")
    cp "$records" "$KILN_SCRATCH/turned"
    printf '\x5a' | dd of="$KILN_SCRATCH/turned" bs=1 seek=$((size - 1)) conv=notrunc status=none
    cmp -s "$records" "$KILN_SCRATCH/turned" && return 1
    ! replays "$KILN_SCRATCH/turned" && grep -q '^# different: ' "$KILN_SCRATCH/out"
}

a_cut_off_file_is_noticed() {
    head -c -1 "$records" >"$KILN_SCRATCH/cut"
    ! replays "$KILN_SCRATCH/cut" && grep -q 'is broken' "$KILN_SCRATCH/out"
}

: >"$records"
for program in ptx_special ptx_float ptx_matrix_move ptx_memory; do
    check "$program is recorded" records_itself "$program"
done
check 'all that was recorded is equal' all_are_equal
check 'a turned bit is noticed' a_turned_bit_is_noticed
check 'a file that is cut off is noticed' a_cut_off_file_is_noticed
finish
