# docs/simulated-instructions.md is what the simulators' lists make, and no instruction of PTX is both simulated and refused.
. tests/tap.sh

once() {
    local names
    names=$(sed -n '/^## PTX/,/^## AMD/s/^| `\([^`]*\)` .*/\1/p' docs/simulated-instructions.md)
    [ "$(echo "$names" | wc -l)" -gt 100 ] && [ -z "$(echo "$names" | sort | uniq -d)" ]
}

current() {
    "$KILN_BUILD/tests/sim/document/instructions" | diff -u docs/simulated-instructions.md - ||
        { echo 'make docs-instructions writes it anew' && false; }
}

check 'each instruction of PTX is on one list' once
if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    check 'docs/simulated-instructions.md is current' current
else
    skip 'docs/simulated-instructions.md is current' "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
fi
finish
