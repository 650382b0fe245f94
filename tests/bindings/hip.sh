#!/bin/bash
# kiln inside a program that lives in HIP, as TAP: AMD's own libamdhip64 on the simulated HSA runtime, which is what
# `make check-hip` runs. KILN_BUILD has the programs and the simulated driver, HIP_DIR what hip_install.sh made.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
build=$(realpath "${KILN_BUILD:-build}")
hip=$(find "$HIP_DIR" -name libamdhip64.so.5 | head -n 1)
scratch=$(mktemp -d)
printed=$scratch/printed
trap 'rm -rf "$scratch"' EXIT

# HIP packs its packets by the standard's rules alone, and knows no generic targets. It compiles kernels of its own at
# the start, which are simulated as well.
on() { # DEVICES COMMAND...
    local devices=$1
    shift
    env KILN_SIM_DEVICES="$devices" KILN_SIM_STANDARD=1 KILN_SIM_GENERIC=0 KILN_SIM_SEED=3 KILN_SIM_SAME_STORE=0 \
        LD_LIBRARY_PATH="$build/sim:${hip%/*}" CMOCKA_MESSAGE_OUTPUT=TAP timeout 600 "$@" >"$printed" 2>&1
    local status=$?
    [ $status -eq 0 ] && ! grep '^sim:' "$printed"
}

# The program's own tests, each with a line of its own.
host() { # DEVICES
    on "$1" env KILN_HIP_LIBRARY="$hip" "$build/tests/bindings/hip_test"
    local status=$? name passed=0
    while read -r name; do
        passed=$((passed + 1))
        tap_result 0 "$1: ${name//_/ }"
    done < <(sed -n 's/^ok [0-9]* - //p' "$printed")
    grep '^# kiln simulated' "$printed"
    if [ $status -ne 0 ] || [ $passed -eq 0 ]; then tap_result 1 "$1: the program that lives in HIP" "$(cat "$printed")"; fi
}

# An operator's tests: in programs that know nothing of HIP and get it before they start.
operator() { # DEVICE NAME
    on "$1" env KILN_TEST_DEVICES=hip:0 LD_PRELOAD="$hip" "$build/tests/ops/$2_test"
    tap_result $? "$1 through HIP: the tests of $2" "$(tail -n 40 "$printed")"
}

# ---- The command, which loads HIP by itself ----

pci_address() { # DEVICE
    awk -v device="$1" '$1 == device && $2 ~ /^[0-9a-f]+:/ {print $2}' "$printed"
}

lists_them_too() { # DEVICE
    on "$1,$1" "$build/kiln" info --hip &&
        grep "^hip:0 .* $1.*kiln simulated.*libamdhip64.so.5, HIP 5.2" "$printed" && grep "^hip:1 .* $1" "$printed" &&
        [ "$(pci_address hip:1)" = "$(pci_address rocm:1)" ]
}

# What HIP leaves out unless it is asked for.
lists_none_unasked() { # DEVICE
    on "$1" "$build/kiln" info && ! grep -i 'hip' "$printed"
}

# Bit by bit.
runs_as_on_rocm() { # DEVICE
    local name
    for name in hip rocm; do
        on "$1" "$build/kiln" run softmax_f32 --device $name:0 --in x=docs/examples/embedding.npy --out y="$scratch/$name.npy" ||
            return
    done
    cmp "$scratch/hip.npy" "$scratch/rocm.npy"
}

explains_as_on_rocm() { # DEVICE
    local name
    for name in hip rocm; do
        on "$1" "$build/kiln" explain --device $name:0 softmax || return
        sed "s/$name:0/GPU/" "$printed" >"$scratch/$name"
    done
    grep '^ *> ' "$scratch/hip" && diff "$scratch/hip" "$scratch/rocm"
}

measures() { # DEVICE
    on "$1" "$build/kiln" bench --device hip:0 --size 1 softmax && grep '^softmax_f32' "$printed"
}

# Where there is no HIP.
says_that_there_is_none() {
    env LD_LIBRARY_PATH="$build/sim" KILN_SIM_DEVICES=gfx90a "$build/kiln" explain --device hip:0 softmax 2>"$printed"
    [ $? -eq 3 ] && grep '^kiln: explain: --device hip:0: HIP cannot be loaded: libamdhip64.so.7: .*; libamdhip64.so: ' "$printed"
}

command_line() { # DEVICE
    check "$1: kiln info --hip lists HIP's devices beside ROCm's" lists_them_too "$1"
    check "$1: kiln info does not without --hip" lists_none_unasked "$1"
    check "$1: kiln run on hip:0 gives what it gives on rocm:0" runs_as_on_rocm "$1"
    check "$1: kiln explain judges hip:0 as rocm:0" explains_as_on_rocm "$1"
    check "$1: kiln bench on hip:0" measures "$1"
}

# What kiln declares of HIP against its header: the compiler compares.
declarations_agree() {
    ${CC:-cc} -std=c11 -I. -Iinclude -isystem "$HIP_DIR/usr/include" -isystem /usr/include -fsyntax-only -Werror \
        -DKILN_HIP_HEADER tests/unit/hip_abi_test.c
}
check "kiln's declarations agree with HIP's header" declarations_agree

if ldconfig -p | grep -q libamdhip64; then
    skip "a command without HIP" "HIP is installed here"
else
    check "a command that is to use HIP says that there is none" says_that_there_is_none
fi

# Processors that HIP 5.2 knows and that have images of their own.
for device in gfx90a gfx1030; do
    host "$device,$device"
    command_line $device
    for name in softmax gemm mha; do
        operator $device $name
    done
done
finish
