# A sample of the mutants of the images that ship, drawn by a seed: removed barriers and waits, comparisons that always or
# never hold. Each must be noticed. `make check-mutants` runs all, KILN_TEST_SEED this sample again.
#
# Drawn from the images whose mutants were all run since they were fired, by the record of them: a commit always draws the
# same, and the next firing others.
. tests/tap.sh

seed=${KILN_TEST_SEED:-$(cksum <tests/sim/mutants/settled | cut -d " " -f 1)}
check "mutants of PTX, seed $seed" scripts/mutants.sh sample 12 "$seed" '\.ptx$'
if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    check "mutants of AMD code, seed $seed" scripts/mutants.sh sample 12 "$seed" '\.hsaco$'
else
    skip "mutants of AMD code" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
fi
finish
