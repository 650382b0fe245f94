# What earlier runs of scripts/check_gpu.sh found, sourced by tests/gpu/gpu.sh. A script's results are in
# KILN_GPU_RESULTS/<script>: lines that say what they are of, the devices and the build, and then one "ok - NAME" or
# "not ok - NAME" for each test that has ended. Without KILN_GPU_RESULTS nothing is kept.
# shellcheck shell=bash disable=SC2154 # gpus
#
#   open_results SCRIPT       once the devices are found; ends the script, as a failure, where the file is of something else
#   once NAME COMMAND...      check, unless an earlier run did it, whose result then holds, or the time is up. COMMAND exits
#                             with 124 if it was stopped for the time: then it is left to the next run, but has failed if
#                             this run had all its time for it
#   seconds_left              until KILN_GPU_END (seconds since 1970), at least 1; 0: for ever
results=
of=
begun=

open_results() { # SCRIPT
    local device
    [ -n "${KILN_GPU_RESULTS-}" ] || return 0
    results=$KILN_GPU_RESULTS/$1
    of=$(
        echo "# kiln check-gpu: $1"
        for device in $gpus; do
            echo "# $device: $(gpu_info "$device" name), $(gpu_info "$device" target), $(gpu_info "$device" driver)" \
                "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader -i "${device#*:}" 2>/dev/null | head -n 1)"
        done
        echo "# build: $(sha256sum <"$KILN_BUILD/kiln" | cut -c 1-64)"
    )
    [ -e "$results" ] || keep_results "$of"
    check_results "$results" >"$KILN_SCRATCH/refused" && return
    tap_result 1 "the results in $results" "$(cat "$KILN_SCRATCH/refused")"
    finish
}

check_results() { # FILE
    local other
    if ! head -n 1 "$1" | grep -q '^# kiln check-gpu: '; then
        echo "$1 has no results of check-gpu: --anew starts anew"
    elif [ "$(grep '^# ' "$1")" != "$of" ]; then
        echo "$1 has results of other devices, another driver or another build: --anew starts anew"
        diff <(grep '^# ' "$1") - <<<"$of"
    elif other=$(grep -nvE '^(# |(not )?ok - .)' "$1"); then
        echo "$1 is corrupt, --anew starts anew: line $other"
    else
        return 0
    fi
    return 1
}

keep_results() { # TEXT
    printf '%s\n' "$1" >"$results.part" && mv "$results.part" "$results"
}

seconds_left() {
    local left=0
    if [ -n "${KILN_GPU_END-}" ]; then
        left=$((KILN_GPU_END - $(date +%s)))
        [ $left -gt 0 ] || left=1
    fi
    echo $left
}

time_is_up() {
    [ -n "${KILN_GPU_END-}" ] && [ "$(date +%s)" -ge "$KILN_GPU_END" ]
}

once() { # NAME COMMAND...
    local before='' output status
    [ -z "$results" ] || before=$(grep -m 1 -xF -e "ok - $1" -e "not ok - $1" "$results")
    case $before in
    ok*) tap_result 0 "$1" && return ;;
    not*) tap_result 1 "$1" "it failed in an earlier run: --anew tries all again" && return ;;
    esac
    if time_is_up; then
        skip "$1" "the time is up"
        return
    fi
    output=$("${@:2}" 2>&1)
    status=$?
    if [ $status -eq 124 ] && [ -n "$begun" ]; then
        skip "$1" "the time is up"
        return
    fi
    begun=yes
    tap_result $status "$1" "$output (status $status)"
    [ -z "$results" ] || keep_results "$(cat "$results")"$'\n'"$([ $status -eq 0 ] || echo -n 'not ')ok - $1"
}
