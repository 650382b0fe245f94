#!/bin/bash
# Every operator of kernels/ops.def is on each list that is written by hand, where what is missing would not be noticed:
# the counters' tests, the benches, the page of the kernels, and the bindings' samples. A list without one is named with it.
. tests/tap.sh

# Says which operators no line of the file names.
complete() { # FILE PATTERN: with OP in place of the operator
    local op status=0
    for op in $(scripts/targets.sh operators); do
        grep -qE "${2//OP/$op}" "$1" && continue
        echo "$1 lacks $op"
        status=1
    done
    return $status
}

check "each is counted on simulated devices" complete tests/sim/tests/operators/counters_test.c '\{"OP", params_OP,'
check "each is on the page of the kernels" complete tests/sim/document/kernels.def '^REPORT_KERNEL\(OP,'
check "each has a case of the CPU's bench" complete tests/bench/cpu_ops_cases.h '\{"OP [^"]*" #part,'
check "each call's overhead is counted" complete tests/bench/launch_overhead.c '^    CALL\([a-z0-9_]*, OP,'
check "what is counted is reported" complete tests/bench/launch_overhead.sh '^(operators=|kept=|others=| ).*[" ]OP[" ]'
check "each is in the GPUs' bench" complete scripts/bench_gpu.py '[("]OP"'
check "PyTorch has each, or it is said" complete scripts/bench_torch.py '(^def OP\(|^(LACKING = \(| {11}).*"OP")'
check "each has a call for the bindings" complete tests/bindings/samples.py '^        "OP": '
check "a list that lacks one is found" eval '! complete tests/bench/launch_overhead.sh "no OP" >/dev/null'
finish
