#!/bin/sh
# README.md's table of operators, backends and targets, from the lists; it stands between two marker comments.
#
#   scripts/readme_table.sh            writes it into README.md
#   scripts/readme_table.sh --check    fails if README.md has another one
set -eu
cd "$(dirname "$0")/.."

# Names of the images of an operator that are of one of the kinds, comma separated.
names() { # OP KIND...
    op=$1
    shift
    for kind in "$@"; do
        scripts/targets.sh images "$op" | awk -v kind="$kind" '$2 == kind { print $1 }'
    done | paste -sd, | sed 's/,/, /g'
}

table() {
    parts=$(scripts/targets.sh parts | paste -sd' ')
    levels=$({ scripts/targets.sh cpu x86_64; scripts/targets.sh cpu aarch64; } | paste -sd, | sed 's/,/, /g')
    echo '| operator | precisions | CUDA: PTX | CUDA: cubin | ROCm | CPU |'
    echo '|---|---|---|---|---|---|'
    for op in $(scripts/targets.sh operators); do
        echo "| \`$op\` | $parts | $(names "$op" ptx both) | $(names "$op" cubin both) | $(names "$op" hsaco) | $levels |"
    done
}

new=$(mktemp)
text=$(mktemp)
trap 'rm -f "$new" "$text"' EXIT
table >"$text"
awk -v text="$text" '
    /^<!-- the table of operators: written by/ { print; while ((getline line < text) > 0) print line; skip = 1 }
    /^<!-- end of the table/ { skip = 0 }
    !skip' README.md >"$new"

if [ "${1-}" = --check ]; then
    diff -u README.md "$new" || {
        echo "README.md: the table of operators is stale; scripts/readme_table.sh writes it anew"
        exit 1
    }
else
    cat "$new" >README.md
fi
