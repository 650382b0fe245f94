#!/bin/sh
# Prints what a launch costs the host in instructions, counted by valgrind's callgrind against drivers that do nothing:
#
#   tests/bench/launch_overhead.sh CLIENT NULL-DRIVERS-FOLDER CONFIG
#
# Each count is that of the whole thread in a loop of one length less that in a shorter one, by the difference of their
# lengths: start-up and loading cancel out. The lengths are multiples of a ring of kernargs, so that its turns count too.
set -eu

client=$1
drivers=$2
config=$3
short=1024
long=$((short * 11))

collected() { # CLIENT-ARGUMENT...
    LD_LIBRARY_PATH=$drivers valgrind --tool=callgrind --callgrind-out-file=/dev/null "$client" "$@" 2>&1 |
        sed -n 's/.*Collected : //p'
}

# Instructions of one call, rounded up.
per_call() { # MODE DEVICES [current]
    mode=$1
    devices=$2
    shift 2
    less=$(collected "$mode" "$devices" "$short" "$@")
    more=$(collected "$mode" "$devices" "$long" "$@")
    if [ -z "$less" ] || [ -z "$more" ]; then
        echo "launch_overhead.sh: callgrind counted nothing for $mode" >&2
        exit 1
    fi
    echo $(((more - less + long - short - 1) / (long - short)))
}

row() { # NAME INSTRUCTIONS LIMIT WHAT
    verdict=ok
    [ "$2" -le "$3" ] || verdict="over the limit"
    echo "$1: $2 instructions ($4; limit $3: $verdict; config=$config)"
}

direct=$(per_call direct 1 current)
echo "cuLaunchKernel, called directly: $direct instructions, loop and null driver included"
for devices in 1 4; do
    case $devices in
    1) where="one device" ;;
    4) where="four devices in turn, each with its own context" ;;
    esac
    row launch-overhead "$(($(per_call launch $devices current) - direct))" 60 "kiln_launch above that, $where"
    row operator-overhead "$(($(per_call operator $devices current) - direct))" 150 "kiln_mul_add_f16 above it, $where"
    row hsa-dispatch "$(per_call hsa $devices)" 150 "kiln_launch on ROCm in all, $where"
done

for mode in launch operator hsa; do
    printf '%s: ' "$mode"
    LD_LIBRARY_PATH=$drivers "$client" "$mode" 4 100000 sealed
done
