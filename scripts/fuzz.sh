#!/bin/sh
# Fuzzes the parsers of tests/fuzz/targets.h with libFuzzer.
#
#   scripts/fuzz.sh run SECONDS   runs each; what it finds goes to build/fuzz/corpus/<target>
#   scripts/fuzz.sh one SECONDS TARGET
#   scripts/fuzz.sh merge         takes into tests/fuzz/corpus the fewest inputs that reach as much
#
# run exits with 1 if a target crashed, and keeps the input and the log in build/fuzz/fuzz.
set -eu
out=build/fuzz
targets=$(sed -n 's/^ *X(\([a-z0-9]*\), .*/\1/p' tests/fuzz/targets.h)
longest=16384 # bytes of an input

has_libfuzzer() {
    echo 'int LLVMFuzzerTestOneInput(void); int LLVMFuzzerTestOneInput(void) { return 0; }' |
        clang -fsanitize=fuzzer -x c -o /dev/null - 2>/dev/null
}

one() { # SECONDS TARGET
    mkdir -p "$out/corpus/$2"
    dictionary=
    [ ! -f "tests/fuzz/$2.dict" ] || dictionary=-dict=tests/fuzz/$2.dict
    # shellcheck disable=SC2086
    if "$out/fuzz/$2" -max_total_time="$1" -max_len=$longest -timeout=10 -rss_limit_mb=1024 $dictionary \
        -artifact_prefix="$out/fuzz/$2-" -print_final_stats=1 \
        "$out/corpus/$2" "tests/fuzz/corpus/$2" >"$out/fuzz/$2.log" 2>&1; then
        echo "fuzz: $2: ok, $(sed -n 's/^stat::number_of_executed_units: *//p' "$out/fuzz/$2.log") inputs"
    else
        echo "fuzz: $2: FAILED, see $out/fuzz/$2.log"
        return 1
    fi
}

# As many at once as there are processors.
run() { # SECONDS
    if ! has_libfuzzer; then
        echo "fuzz: SKIPPED: no clang with libFuzzer here (Debian: apt-get install clang)"
        return 0
    fi
    make --silent --no-print-directory config=fuzz fuzzers
    echo "$targets" | xargs -P "$(nproc)" -n 1 scripts/fuzz.sh one "$1"
}

merge() {
    for target in $targets; do
        merged=$out/merged/$target
        rm -rf "$merged"
        mkdir -p "$merged" "$out/corpus/$target"
        "$out/fuzz/$target" -set_cover_merge=1 -max_len=$longest -use_counters=0 \
            "$merged" "tests/fuzz/corpus/$target" "$out/corpus/$target" >"$out/fuzz/$target-merge.log" 2>&1
        find "tests/fuzz/corpus/$target" -type f -delete
        cp "$merged"/* "tests/fuzz/corpus/$target/"
        echo "fuzz: $target: $(find "$merged" -type f | wc -l) inputs, $(cat "$merged"/* | wc -c) bytes"
    done
}

case ${1-} in
run) run "${2:-60}" ;;
one) one "$2" "$3" ;;
merge) merge ;;
*)
    sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//;p}' "$0" >&2
    exit 2
    ;;
esac
