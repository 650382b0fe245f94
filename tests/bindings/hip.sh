#!/bin/bash
# kiln inside a program that lives in HIP, as TAP: AMD's own libamdhip64 on the simulated HSA runtime, which is what
# `make check-hip` runs. KILN_BUILD has the programs and the simulated driver, HIP_DIR what hip_install.sh made.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
build=$(realpath "${KILN_BUILD:-build}")
hip=$(find "$HIP_DIR" -name libamdhip64.so.5 | head -n 1)
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# HIP packs its packets by the standard's rules alone, and knows no generic targets. It compiles kernels of its own at
# the start, which are simulated as well.
on() { # DEVICES COMMAND...
    local devices=$1
    shift
    env KILN_SIM_DEVICES="$devices" KILN_SIM_STANDARD=1 KILN_SIM_GENERIC=0 KILN_SIM_SEED=3 KILN_SIM_SAME_STORE=0 \
        LD_LIBRARY_PATH="$build/sim:${hip%/*}" CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 "$@" >"$output" 2>&1
    local status=$?
    [ $status -eq 0 ] && ! grep '^sim:' "$output"
}

# The program's own tests, each with a line of its own.
host() { # DEVICES
    on "$1" env KILN_HIP_LIBRARY="$hip" "$build/tests/bindings/hip_test"
    local status=$? name passed=0
    while read -r name; do
        passed=$((passed + 1))
        tap_result 0 "$1: ${name//_/ }"
    done < <(sed -n 's/^ok [0-9]* - //p' "$output")
    grep '^# kiln simulated' "$output"
    if [ $status -ne 0 ] || [ $passed -eq 0 ]; then tap_result 1 "$1: the program that lives in HIP" "$(cat "$output")"; fi
}

# An operator's tests: in programs that know nothing of HIP and get it before they start.
operator() { # DEVICE NAME
    on "$1" env KILN_TEST_DEVICES=hip:0 LD_PRELOAD="$hip" "$build/tests/ops/$2_test"
    tap_result $? "$1 through HIP: the tests of $2" "$(tail -n 40 "$output")"
}

# What kiln declares of HIP against its header: the compiler compares.
declarations_agree() {
    ${CC:-cc} -std=c11 -I. -Iinclude -isystem "$HIP_DIR/usr/include" -isystem /usr/include -fsyntax-only -Werror \
        -DKILN_HIP_HEADER tests/unit/hip_abi_test.c
}
check "kiln's declarations agree with HIP's header" declarations_agree

# Processors that HIP 5.2 knows and that have images of their own.
for device in gfx90a gfx1030; do
    host "$device,$device"
    for name in softmax gemm mha; do
        operator $device $name
    done
done
finish
