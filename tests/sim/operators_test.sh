# The operators' own tests, unchanged, on a simulated device of every NVIDIA target: the images that ship are executed
# (PTX; for a cubin the PTX that it was assembled from) and compared with the f64 reference. Three seeds order the blocks
# and warps; the longest rows run under one of them.
. tests/tap.sh

passes() { # DEVICE SEED PROGRAM
    KILN_SIM_DEVICES=$1 KILN_SIM_SEED=$2 KILN_TEST_DEVICES=cuda:0 LD_LIBRARY_PATH=$KILN_BUILD/sim \
        CMOCKA_MESSAGE_OUTPUT=TAP "$KILN_BUILD/tests/ops/$3_test" >"$KILN_SCRATCH/out" 2>&1
    local status=$?
    cat "$KILN_SCRATCH/out"
    # A simulator that complains has found something, whatever the test thought of the result.
    [ $status -eq 0 ] && ! grep -q '^sim:' "$KILN_SCRATCH/out"
}

for device in sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120; do
    for program in mul_add silu_mul add_gelu softmax; do
        seeds='1 2 3'
        [ $program = softmax ] && seeds=1
        for seed in $seeds; do
            check "$program on simulated $device, seed $seed" passes $device "$seed" $program
        done
    done
done
finish
