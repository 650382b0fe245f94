# A sample of the mutants of the images that ship, drawn by a seed: removed barriers and waits, comparisons that always or
# never hold. Each must be noticed. `make check-mutants` runs all, KILN_TEST_SEED another sample.
#
# Drawn from the images whose survivors are all on the list.
. tests/tap.sh

settled='^(add_gelu|mul_add|silu_mul|softmax)_f32'
seed=${KILN_TEST_SEED:-1}
check "mutants of PTX, seed $seed" scripts/mutants.sh sample 6 "$seed" "$settled\\.sm_(75|90|120)\\."
if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    check "mutants of AMD code, seed $seed" scripts/mutants.sh sample 6 "$seed" "$settled\\.gfx942\\."
else
    skip "mutants of AMD code" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
fi
finish
