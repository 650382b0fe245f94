# A bundle without cubins, as tests/gpu/operators_test.sh uses them: an operator's tests pass from PTX alone, where the
# bundle with cubins loads one of these. The simulated devices are of the first and the last architecture with cubins.
. tests/tap.sh

# What was loaded, at the end of the log's lines.
loads() { # FOLDER DEVICE
    KILN_TEST_LOG=1 KILN_SIM_DEVICES=$2 KILN_TEST_DEVICES=cuda:0 LD_LIBRARY_PATH=$KILN_BUILD/sim \
        CMOCKA_MESSAGE_OUTPUT=TAP "$KILN_BUILD/tests/$1/argmax_test" >"$KILN_SCRATCH/out" 2>&1 || {
        cat "$KILN_SCRATCH/out" >&2
        return 1
    }
    sed -n 's/^# log: argmax .* \(ptx\|cubin\)$/\1/p' "$KILN_SCRATCH/out" | sort -u
}

for device in sm_80 sm_90 sm_120; do
    check "with cubins, one is loaded on $device" test "$(loads ops $device)" = cubin
    check "without cubins, PTX is loaded on $device" test "$(loads ops-ptx $device)" = ptx
done
finish
