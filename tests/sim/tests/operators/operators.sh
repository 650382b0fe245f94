# What the tests of the operators on simulated devices share.
# shellcheck shell=bash

# The programs of tests/ops, but for those that are of all operators at once and run where it matters.
operator_programs=
for program in "$KILN_BUILD"/tests/ops/*_test; do
    program=${program##*/}
    case $program in
    arguments_test | images_test | small_stack_test) ;;
    *) operator_programs="$operator_programs ${program%_test}" ;;
    esac
done

# One program under one seed, with launches in its own thread: other threads would cost a sixth more of a processor. A
# simulator that complains has found something, whatever the test thought of the result. Two programs whose longest tests
# are of more tiles than an NVIDIA GPU has multiprocessors run on an instance that has few.
operator_passes() { # ORDINAL DEVICE SEED PROGRAM
    case $2:$4 in
    sm_*:gemm_w4a16 | sm_*:w8a8) local -x KILN_SIM_MULTIPROCESSORS=20 ;;
    esac
    KILN_SIM_DEVICES=$2 KILN_SIM_SEED=$3 KILN_SIM_THREADS=0 KILN_SIM_UNALIGNED=0 KILN_SIM_SAME_STORE=0 KILN_TEST_DEVICES=$1 \
        LD_LIBRARY_PATH=$KILN_BUILD/sim CMOCKA_MESSAGE_OUTPUT=TAP "$KILN_BUILD/tests/ops/$4_test" >"$KILN_SCRATCH/out" 2>&1
    local status=$?
    cat "$KILN_SCRATCH/out"
    [ $status -eq 0 ] && ! grep -q '^sim:' "$KILN_SCRATCH/out"
}

# Whether a program's operator has kernels of its own for some of NVIDIA's targets (or AMD's), and not the portable ones
# alone; a program of several operators counts as one that has for NVIDIA, where most have, and for AMD if it is w8a8.
is_tuned() { # PROGRAM DEVICE
    case $2 in
    sm_*) [ ! -d "kernels/$1" ] || grep -sL "include \"kernels/$1/$1_gpu.c\"" "kernels/$1/$1"_sm*.cu | grep -q . ;;
    gfx*) [ "$1" = w8a8 ] || compgen -G "kernels/$1/$1_gfx*.c" >/dev/null ;;
    esac
}

# One of the precisions, whose kernels are of one source and differ in little but the type: another time it is another.
draw() { # PRECISION...
    shuf -n 1 -e "$@"
}

# The programs in one precision: every one, or those alone that are (not) of a tuned operator.
operators_pass() { # ORDINAL DEVICE SEED PRECISION [portable|tuned]
    local program
    local -x KILN_TEST_PRECISION=$4
    for program in $operator_programs; do
        case ${5-} in
        portable) ! is_tuned "$program" "$2" || continue ;;
        tuned) is_tuned "$program" "$2" || continue ;;
        esac
        check "$program on simulated $2, seed $3, $4" operator_passes "$1" "$2" "$3" "$program"
    done
}
