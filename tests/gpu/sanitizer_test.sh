# The operators' tests on each NVIDIA GPU of this machine under compute-sanitizer's memcheck: no access out of bounds or
# misaligned. What a driver's function answers to calls that are meant to fail is not its business here.
. tests/tap.sh
. tests/sim/tests/operators/operators.sh
. tests/gpu/gpu.sh
find_gpus cuda
sanitizer=$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer) || skip_all "there is no compute-sanitizer here"
open_results sanitizer

is_clean() { # DEVICE PROGRAM
    operator_runs "$1" "$sanitizer" --tool memcheck --error-exitcode 86 --report-api-errors no \
        "$KILN_BUILD/tests/ops/$2_test"
}

for device in $gpus; do
    for program in ${KILN_GPU_OPERATORS-$operator_programs}; do
        once "memcheck of $program on $device" is_clean "$device" "$program"
    done
done
finish
