# TAP for test scripts, to be sourced: `. tests/tap.sh`. tests/run.c says what surrounds a script.
#
#   check NAME COMMAND...    one test: passes if COMMAND succeeds; what it prints is shown if it does not
#   refuse NAME COMMAND...   one test: passes if COMMAND fails with a status below 126 (not killed, not missing)
#   skip NAME REASON         one test that could not run
#   skip_all REASON          ends a script that cannot run here at all
#   find_numpy REASON        sets python to a Python that has NumPy; ends a script, as skip_all, where there is none
#   finish                   prints the plan and ends the script; a script that dies before has no plan and is a failure
# shellcheck shell=bash
set -u
tap_count=0
tap_failed=0

tap_result() { # STATUS NAME OUTPUT
    tap_count=$((tap_count + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $tap_count - $2"
    else
        tap_failed=$((tap_failed + 1))
        echo "not ok $tap_count - $2"
        printf '%s\n' "$3" | sed 's/^/# /'
    fi
}

check() {
    local name=$1 output status
    shift
    output=$("$@" 2>&1)
    status=$?
    tap_result "$status" "$name" "$output (status $status)"
}

refuse() {
    local name=$1 output status
    shift
    output=$("$@" 2>&1)
    status=$?
    [ "$status" -gt 0 ] && [ "$status" -lt 126 ]
    tap_result $? "$name" "$output (status $status)"
}

skip() {
    tap_count=$((tap_count + 1))
    echo "ok $tap_count - $1 # SKIP $2"
}

skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

find_numpy() {
    for python in python3 /usr/bin/python3; do
        if "$python" -c 'import numpy' 2>/dev/null; then return; fi
    done
    skip_all "no python3 with NumPy: $1"
}

finish() {
    echo "1..$tap_count"
    [ "$tap_failed" -eq 0 ]
    exit
}
