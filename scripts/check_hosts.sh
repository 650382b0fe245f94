#!/bin/bash
# Runs the tests of all hosts, one after another: check_hosts.sh HOST=FOLDER... A host's tests are make check-HOST, what they
# need is kept in FOLDER. Then a table says how long each took, by the clock and of processors, and how large its folder is.
# Exit status 1: one failed.
set -u
table='' failed=0
scratch=$(mktemp)
trap 'rm -f "$scratch"' EXIT

processor_seconds() { # sets used: of all children so far
    times >"$scratch"
    used=$(awk 'NR == 2 {gsub("[ms]", " "); print int($1 * 60 + $2 + $3 * 60 + $4 + 0.5)}' "$scratch")
}

processor_seconds
for each in "$@"; do
    host=${each%%=*} folder=${each#*=} start=$SECONDS before=$used
    echo "==== $host"
    if ${MAKE:-make} --no-print-directory "check-$host"; then result=passed; else result=failed failed=1; fi
    processor_seconds
    size=$(du -sh "$folder" 2>/dev/null | cut -f 1)
    table+=$(printf '%-8s %-7s %5d s, %5d s of processors %8s' "$host" $result $((SECONDS - start)) $((used - before)) "$size")$'\n'
done
printf '\n%s' "$table"
exit $failed
