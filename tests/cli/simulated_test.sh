#!/bin/bash
# Runs simulated_test.py on every simulated target, where there is a Python with NumPy.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
build=${KILN_BUILD:-$PWD/build}
find_numpy "kiln run on simulated devices is not compared with the CPU"
devices='sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120'
# Without LLVM's disassembler AMD launches are not executed.
if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    devices="$devices gfx90a gfx942 gfx1030 gfx1100 gfx1201 gfx906 gfx1010 gfx1032 gfx1102 gfx1200"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086
"$python" tests/cli/simulated_test.py "$build/kiln" "$build/sim" "$work" $devices
