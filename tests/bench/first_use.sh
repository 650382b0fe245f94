#!/bin/sh
# Prints the median and the longest of many first uses, each by a new process: tests/bench/first_use.sh CLIENT CONFIG
set -eu

runs=101
for _ in $(seq "$runs"); do "$1"; done | sort -n | awk -v config="$2" '
    { time[NR] = $1 / 1000 }
    END {
        median = time[int((NR + 1) / 2)]
        verdict = median <= 1000 ? "ok" : "over the limit"
        printf "first-use: %.0f us median, %.0f us longest of %d (an operator on the CPU, from main; limit 1000: %s; config=%s)\n", \
            median, time[NR], NR, verdict, config
    }'
