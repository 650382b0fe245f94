#!/bin/sh
# The tables of what operators compute, in README.md, and of what they ship, in docs/targets.md, from the lists; each stands
# between two marker comments.
#
#   scripts/readme_tables.sh            writes them
#   scripts/readme_tables.sh --check    fails if the files have others
set -eu
cd "$(dirname "$0")/.."

computes() {
    echo '| operator | computes |'
    echo '|---|---|'
    for op in $operators; do
        sed -n 's/^KILN_SUMMARY("\(.*\)")$/| `'"$op"'` | \1 |/p' "kernels/$op/$op.def"
    done
}

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

all_ship() {
    targets=$({ scripts/targets.sh nvidia; scripts/targets.sh amd; } | cut -d' ' -f1 | paste -sd' ')
    parts=$(scripts/targets.sh parts | paste -sd' ')
    levels=$({ scripts/targets.sh cpu x86_64; scripts/targets.sh cpu aarch64; } | paste -sd, | sed 's/,/, /g')
    echo '| operators | precisions | CUDA: PTX | CUDA: cubin | ROCm | CPU |'
    echo '|---|---|---|---|---|---|'
    # A row for all that ship the same.
    for op in $operators; do echo "$op | $(ships "$op")"; done | awk '
        { op = "`" $1 "`"; $1 = "" }
        !($0 in sharing) { rows[++count] = $0 }
        { sharing[$0] = sharing[$0] (sharing[$0] == "" ? "" : ", ") op }
        END { for (i = 1; i <= count; i++) print "| " (count == 1 ? "all" : sharing[rows[i]]) rows[i] " |" }'
}

status=0
place() { # FILE COMMAND: the command's output into the file, or compared with it
    "$2" >"$text"
    awk -v text="$text" '
        /^<!-- the table of operators: written by/ { print; while ((getline line < text) > 0) print line; skip = 1 }
        /^<!-- end of the table/ { skip = 0 }
        !skip' "$1" >"$new"
    if [ "$check" = --check ]; then
        diff -u "$1" "$new" || {
            echo "$1: the table of operators is stale; scripts/readme_tables.sh writes it anew"
            status=1
        }
    else
        cat "$new" >"$1"
    fi
}

check=${1-}
operators=$(scripts/targets.sh operators)
new=$(mktemp)
text=$(mktemp)
trap 'rm -f "$new" "$text"' EXIT
place README.md computes
place docs/targets.md all_ship
exit $status
