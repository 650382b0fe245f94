# On each GPU of this machine: every image that fits it loads, and the operators' own tests pass, with their tolerances;
# on CUDA once more from bundles without cubins, whose PTX the driver compiles. KILN_GPU_OPERATORS names some of them only.
. tests/tap.sh
. tests/sim/tests/operators/operators.sh
. tests/gpu/gpu.sh
find_gpus
open_results operators

passes() { # DEVICE PROGRAM
    operator_runs "$1" "$KILN_BUILD/tests/ops/$2_test"
}

# What was chosen stands in the log at the end of a line.
passes_on_ptx() { # DEVICE PROGRAM
    operator_runs "$1" "$KILN_BUILD/tests/ops-ptx/$2_test" && grep -q '^# log: .* ptx$' "$KILN_SCRATCH/out" &&
        ! grep -q '^# log: .* cubin$' "$KILN_SCRATCH/out"
}

for device in $gpus; do
    once "every image that fits $device loads" passes "$device" images
    for program in ${KILN_GPU_OPERATORS-$operator_programs}; do
        once "$program on $device" passes "$device" "$program"
    done
    case $device in cuda:*) ;; *) continue ;; esac
    for program in ${KILN_GPU_OPERATORS-$operator_programs}; do
        once "$program on $device, PTX alone" passes_on_ptx "$device" "$program"
    done
done
finish
