# Data races: the tests in which several threads use the library at once run once more with everything, the simulated
# drivers too, built for ThreadSanitizer. (`make check config=thread` runs all tests so.)
. tests/tap.sh

[ "$KILN_CONFIG" = release ] || skip_all "config is $KILN_CONFIG"
# Some kernels place a program where the sanitizer of an older compiler cannot run.
echo 'int main(void) { return 0; }' >"$KILN_SCRATCH/probe.c"
"${CC:-cc}" -fsanitize=thread -o "$KILN_SCRATCH/probe" "$KILN_SCRATCH/probe.c" && "$KILN_SCRATCH/probe" ||
    skip_all "ThreadSanitizer does not run here"

programs=(unit/device unit/module unit/trace unit/cpu_pool unit/cuda_launch unit/rocm_launch unit/rocm_lost
    unit/rocm_device sim/tests/operators/mixed_devices)

# The library has the operators that these programs call, and no other: without one of them a program does not link.
build() {
    MAKEFLAGS='' make -s -j2 config=thread OPERATORS='add_gelu mul_add silu_mul softmax' sim "${programs[@]/%/_test}"
}
programs=("${programs[@]/#/build/thread/tests/}")

# Its exit status is not 0 either if a thread raced, whatever the test thought of the result.
has_no_race() {
    TSAN_OPTIONS='halt_on_error=0 exitcode=66' KILN_BUILD=$PWD/build/thread KILN_CONFIG=thread "$1_test"
}

check "the library is built for ThreadSanitizer" build
for program in "${programs[@]}"; do
    check "no race in ${program#build/thread/}" has_no_race "$program"
done
finish
