# A sample of the mutants of the images that ship, drawn by a seed: removed barriers and waits, comparisons that always or
# never hold. Each must be noticed. `make check-mutants` runs all, KILN_TEST_SEED this sample again.
#
# Drawn from the images whose mutants were all run since they were fired, by the record of them: a commit always draws the
# same, and the next firing others.
. tests/tap.sh

# Each line of the list has its form, and a reason; what it quotes stands in a file of that name.
reasons_hold() {
    local line files quote status=0
    while read -r line; do
        [[ $line =~ ^[^\ ]+\ [a-z]+\ ([^\ \"]+|[^\ \"]+\ \"[^\"]+\"( itself| from [^\ \"]+\ \"[^\"]+\")?)\ [^\ :]+:\ .+ ]] || {
            echo "of no known form: $line"
            status=1
        }
        while read -r files quote; do
            find kernels -path "$files" -exec grep -qF -- "$quote" {} + || {
                echo "$files has no \"$quote\""
                status=1
            }
        done < <(grep -o 'kernels/[^ ]* "[^"]*"' <<<"$line" | sed 's/ "/ /; s/"$//')
    done < <(grep -v '^#' tests/sim/mutants/harmless)
    return $status
}

check "what is harmless is said of the sources as they are" reasons_hold
seed=${KILN_TEST_SEED:-$(cksum <tests/sim/mutants/settled | cut -d " " -f 1)}
check "mutants of PTX, seed $seed" scripts/mutants.sh sample 12 "$seed" '[.]ptx$'
if ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    check "mutants of AMD code, seed $seed" scripts/mutants.sh sample 12 "$seed" '[.]hsaco$'
else
    skip "mutants of AMD code" "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
fi
finish
