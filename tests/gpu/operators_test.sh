# On each GPU of this machine: every image that fits it loads, and the operators' own tests pass, with their tolerances;
# on CUDA once more with the PTX alone, which the driver compiles. KILN_GPU_OPERATORS names some of them only.
. tests/tap.sh
. tests/sim/tests/operators/operators.sh
. tests/gpu/gpu.sh
find_gpus

passes() { # DEVICE PROGRAM
    operator_runs "$1" "$KILN_BUILD/tests/ops/$2_test"
}

passes_on_ptx() {
    CUDA_FORCE_PTX_JIT=1 KILN_SIM_NO_CUBIN=1 passes "$@"
}

# Whether the driver heeds the variable: what was chosen stands in the log at the end of a line.
takes_ptx_alone() {
    passes_on_ptx "$1" argmax >/dev/null
    grep -q '^# log: argmax .* ptx$' "$KILN_SCRATCH/out" && ! grep -q '^# log: argmax .* cubin$' "$KILN_SCRATCH/out"
}

for device in $gpus; do
    check "every image that fits $device loads" passes "$device" images
    for program in ${KILN_GPU_OPERATORS-$operator_programs}; do
        check "$program on $device" passes "$device" "$program"
    done
    case $device in cuda:*) ;; *) continue ;; esac
    if takes_ptx_alone "$device"; then
        for program in ${KILN_GPU_OPERATORS-$operator_programs}; do
            check "$program on $device, PTX alone" passes_on_ptx "$device" "$program"
        done
    else
        skip "the operators on $device, PTX alone" "its driver takes cubins although CUDA_FORCE_PTX_JIT is set"
    fi
done
finish
