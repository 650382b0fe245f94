#!/bin/sh
# README.md's tables of what operators compute and of what they ship, from the lists; they stand between two marker
# comments.
#
#   scripts/readme_tables.sh            writes them into README.md
#   scripts/readme_tables.sh --check    fails if README.md has others
set -eu
cd "$(dirname "$0")/.."

# What an operator ships: precisions, and the targets of each kind of image, in the order of the lists, comma separated.
ships() { # OP
    scripts/targets.sh images "$1" | awk -v parts="$parts" -v levels="$levels" -v targets="$targets" '
        { ships[$1, $2] = 1 }
        function list(kind, text) {
            for (i = 1; i <= count; i++)
                if ((order[i], kind) in ships) text = text (text == "" ? "" : ", ") order[i]
            return text
        }
        END {
            count = split(targets, order, " ")
            print parts " | " list("ptx") " | " list("cubin") " | " list("hsaco") " | " levels
        }'
}

tables() {
    operators=$(scripts/targets.sh operators)
    targets=$({ scripts/targets.sh nvidia; scripts/targets.sh amd; } | cut -d' ' -f1 | paste -sd' ')
    parts=$(scripts/targets.sh parts | paste -sd' ')
    levels=$({ scripts/targets.sh cpu x86_64; scripts/targets.sh cpu aarch64; } | paste -sd, | sed 's/,/, /g')
    echo '| operator | computes |'
    echo '|---|---|'
    for op in $operators; do
        sed -n 's/^KILN_SUMMARY("\(.*\)")$/| `'"$op"'` | \1 |/p' "kernels/$op/$op.def"
    done
    echo
    echo '| operators | precisions | CUDA: PTX | CUDA: cubin | ROCm | CPU |'
    echo '|---|---|---|---|---|---|'
    # A row for all that ship the same.
    for op in $operators; do echo "$op | $(ships "$op")"; done | awk '
        { op = "`" $1 "`"; $1 = "" }
        !($0 in sharing) { rows[++count] = $0 }
        { sharing[$0] = sharing[$0] (sharing[$0] == "" ? "" : ", ") op }
        END { for (i = 1; i <= count; i++) print "| " (count == 1 ? "all" : sharing[rows[i]]) rows[i] " |" }'
}

new=$(mktemp)
text=$(mktemp)
trap 'rm -f "$new" "$text"' EXIT
tables >"$text"
awk -v text="$text" '
    /^<!-- the tables of operators: written by/ { print; while ((getline line < text) > 0) print line; skip = 1 }
    /^<!-- end of the tables/ { skip = 0 }
    !skip' README.md >"$new"

if [ "${1-}" = --check ]; then
    diff -u README.md "$new" || {
        echo "README.md: the tables of operators are stale; scripts/readme_tables.sh writes them anew"
        exit 1
    }
else
    cat "$new" >README.md
fi
