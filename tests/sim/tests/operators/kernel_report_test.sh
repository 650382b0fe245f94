# docs/kernel-report.md is what the images and the simulators' counters make: every kernel of every linked image has its
# row, with what the manifest says of it, and the whole page is made anew; in builds other than release, which take long,
# and where AMD's cannot be executed, the columns up to the occupancy, and the others of some images. Operators that read
# and write each byte once or twice are bound by memory by the report's own figures, but for the places on the list
# issue-bound: one that is mended leaves it.
. tests/tap.sh

report=docs/kernel-report.md
program=$KILN_BUILD/tests/sim/document/kernels

# Kernel, image, registers and spills of each row; of PTX dashes.
rows() {
    awk -F' *[|] *' '/^\| [a-z0-9_]+ \| (sm_|gfx)/ { print $2, $3, $4, $5 }' "$report" | sort
}

# Of a part that has a text for sm_89 or sm_100 as well, that for sm_80 is for drivers too old for it or for the cubins, and so
# are that for sm_89 of one that has a text for sm_100 and that for sm_75 of one that has a cubin for it: no device here has one.
manifests() {
    local of_89 of_100 cubins
    of_89=$(basename -a -s .sm_89.ptx embedded/*/*.sm_89.ptx | tr '\n' ' ')
    of_100=$(basename -a -s .sm_100.ptx embedded/*/*.sm_100.ptx | tr '\n' ' ')
    cubins=$(basename -a -s .sm_75.cubin embedded/*/*.sm_75.cubin | tr '\n' ' ')
    cat embedded/*/manifest | awk -v of_89=" $of_89" -v of_100=" $of_100" -v cubins=" $cubins" '
        / role=linked / {
            text = substr($1, 6)
            if (sub(/\.sm_80\.ptx$/, "", text) && index(of_89 of_100, " " text " ")) next
            if (sub(/\.sm_89\.ptx$/, "", text) && index(of_100, " " text " ")) next
            if (sub(/\.sm_75\.ptx$/, "", text) && index(cubins, " " text " ")) next
            target = $2
            sub(/.*=/, "", target)
            for (i = 3; i <= NF; i++) {
                if ($i !~ /^kernel=/) continue
                split($i, part, /[=,]/)
                sub(/^kiln_/, "", part[2])
                print part[2], target, / kind=ptx / ? "- -" : part[4] " " part[6]
            }
        }' | sort
}

complete() {
    [ "$(manifests | wc -l)" -gt 500 ] && diff <(rows) <(manifests)
}

# A page without the rows of other images, and without the ranges over all.
of_images() { # IMAGES
    awk -F' *[|] *' -v images=" $1 " '!/^\| [a-z0-9_]+_(f32|f16|bf16) / || index(images, " " $3 " ")'
}

current() { # [IMAGES: also the names of devices]
    if [ $# -eq 0 ]; then
        "$program" | diff -u "$report" -
    else
        diff -u <(of_images "$1" <"$report") <(KILN_SIM_DEVICES=${1// /,} "$program" | of_images "$1")
    fi || { echo 'make kernel-report writes it anew' && false; }
}

# Up to the occupancy: what is known without executing anything.
uncounted() {
    grep -E '^\| [a-z0-9_]+ \| (sm_|gfx)' | cut -d'|' -f1-8
}

resident() {
    diff <(uncounted <"$report") <(KILN_SIM_RECORD=1 "$program" | uncounted)
}

# What is no product and no attention, and not bound by memory.
issue_bound() {
    awk -F' *[|] *' '/^\| [a-z0-9_]+ \| (sm_|gfx)/ && $2 !~ /^(gemm|mha)_/ && $16 != "memory" { print $2, $3 }' "$report" |
        LC_ALL=C sort -u
}

listed() {
    diff <(issue_bound) tests/sim/document/issue-bound
}

export KILN_SIM_DIR=$KILN_BUILD/sim
check 'each kernel of each image has its row, with its registers and spills' complete
check 'operators on rows are bound by memory, but for those on the list' listed
if ! ldconfig -p | grep -q 'libLLVM\.so\.19\.1'; then
    check 'the blocks that each has room for are current' resident
    check 'what is counted is current: sm_75, sm_90' current 'sm_75 sm_90'
    skip 'what is counted on AMD is current' "there is no libLLVM.so.19.1 here (Debian's libllvm19)"
elif [ "$KILN_CONFIG" = release ]; then
    check 'the page is current' current
else
    check 'the blocks that each has room for are current' resident
    check 'what is counted is current: sm_90, gfx942, gfx1201' current 'sm_90 gfx942 gfx1201'
fi
finish
