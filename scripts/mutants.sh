#!/bin/bash
# Removes or alters, one at a time, each barrier, wait, fence and integer comparison of the images that ship, and runs the
# operator's own test and that of the counters on a simulated device against each such mutant. A test must fail, or the
# simulated device complain; else the mutant stands in tests/sim/mutants/harmless with the reason why it changes nothing.
#
#   mutants.sh list [REGEX]               the mutants of the images whose file name matches, a line each
#   mutants.sh run [REGEX]                runs them all, and writes each image without a surprise into the record. Begun
#                                         again, it goes on where it was: what was killed is not run again, nor what
#                                         was alive, as long as tests and simulated drivers are as they were
#   mutants.sh sample COUNT SEED [REGEX]  runs so many that are not listed as harmless, drawn by the seed from the images
#                                         that are as the record has them
#
# The record, tests/sim/mutants/settled, has the sha256 of each image whose mutants were all run, and no surprise was left.
#
# Reads KILN_BUILD (a build with its test programs and build/sim) and JOBS. A line is IMAGE, DEVICE, the place (a line of
# PTX, an address of machine code) with the edit, the instruction, and what stands there instead, between tabs. An edit is
# "comparison 5 always": of the image's fifth, which it stays more often than its place stays when the image is fired
# again. Survivors that are not listed, listed ones that a test notices, and unchanged images that fail are named, and the
# exit status is 1.
set -eu
shopt -s extglob
cd "$(dirname "$0")/.."
build=${KILN_BUILD:-build}
jobs=${JOBS:-$(nproc)}
# What must notice a mutant of an operator.
tests_of() { # OP
    case $1 in
    gemm) echo ops/gemm_test sim/counters_test sim/gemm_counters_test ;;
    mha_paged) echo ops/mha_test sim/counters_test ;;
    add_rmsnorm) echo ops/rmsnorm_test sim/counters_test ;;
    *) echo "ops/$1_test sim/counters_test" ;;
    esac
}

# Instructions of a block after which it is endless: more than its tests' blocks take.
budget_of() { # OP
    case $1 in
    sample) echo 5000000 ;;
    *) echo 1000000 ;;
    esac
}

# Each image that a simulated device executes: operator, file, device. A family's image runs on a member of it.
images() {
    local op target
    for op in $(scripts/targets.sh operators); do
        for file in embedded/"$op"/*.ptx embedded/"$op"/*.hsaco; do
            target=${file##*/}
            target=${target#*.}
            target=${target%.*}
            case $target in
            gfx9-generic) target=gfx906 ;;
            gfx10-1-generic) target=gfx1010 ;;
            gfx10-3-generic) target=gfx1032 ;;
            gfx11-generic) target=gfx1102 ;;
            gfx12-generic) target=gfx1200 ;;
            esac
            echo "$op $file $target"
        done
    done
}

# Whether tests/sim/mutants/harmless has a line "IMAGE KIND NUMBER EDIT: reason" for it, all but the kind patterns of
# bash. An image that is unchanged is harmless too.
is_harmless() { # IMAGE PLACE-AND-EDIT
    local kind number edit image kinds numbers edits
    read -r _ kind number edit <<<"$2"
    [ "$edit" = unchanged ] && return
    while read -r image kinds numbers edits; do
        # shellcheck disable=SC2053
        [[ $kinds == "$kind" && $edit == ${edits%%:*} && $1 == $image && $number == $numbers ]] && return
    done < <(grep -v '^#' tests/sim/mutants/harmless)
    return 1
}

instructions() { # FILE DEVICE
    case $1 in
    *.ptx) awk '{ print FNR, $0 }' "$1" ;;
    *) "$build"/tests/sim/mutants/instructions "$1" "$2" ;;
    esac
}

# The line of the record for an image as it is.
record_of() { # FILE
    sha256sum "$1" | sed 's|  .*/|  |'
}

is_settled() { # FILE
    local record
    record=$(<tests/sim/mutants/settled)
    [[ $record == *"  ${1##*/}"* && $record == *"$(record_of "$1")"* ]]
}

settle() { # FILE
    local record
    record=$({ record_of "$1" && grep -v "  ${1##*/}\$" tests/sim/mutants/settled; } | sort -k 2)
    echo "$record" >tests/sim/mutants/settled
}

list() { # REGEX [FILTER]
    images | while read -r _ file device; do
        [[ ${file##*/} =~ $1 ]] || continue
        "${2-true}" "$file" || continue
        vendor=amd
        [ "${file##*.}" = ptx ] && vendor=ptx
        instructions "$file" "$device" | awk -v vendor=$vendor -f tests/sim/mutants/edits.awk |
            sed "s|^|${file##*/}\t$device\t|"
    done
}

# So many of the mutants that are read, in an order of the seed's.
draw() { # COUNT SEED
    local left=$1 image device place rest
    sort | shuf --random-source=<(yes "$2") | while [ "$left" -gt 0 ] && IFS=$'\t' read -r image device place rest; do
        is_harmless "$image" "$place" && continue
        printf '%s\t%s\t%s\t%s\n' "$image" "$device" "$place" "$rest"
        left=$((left - 1))
    done
}

# Runs the tests of the image's precision on one mutant, up to the first sign of it. Prints the verdict in front of the
# line.
one() { # LINE
    local image device place instead part op ordinal=rocm:0 digest output test pid status applied=0 sign=
    IFS=$'\t' read -r image device place _ instead <<<"$1"
    part=${image%%.*}
    op=${part%_*}
    [ "${image##*.}" = ptx ] && ordinal=cuda:0
    digest=$(sha256sum <"embedded/$op/$image")
    output=$(mktemp)
    for test in $(tests_of "$op"); do
        KILN_SIM_MUTANT="${digest%% *} ${place%% *} $instead" KILN_SIM_DEVICES=$device KILN_SIM_SEED=1 \
            KILN_SIM_BUDGET=$(budget_of "$op") KILN_SIM_UNALIGNED=0 KILN_TEST_DEVICES=$ordinal KILN_TEST_SEED=1 \
            KILN_TEST_PRECISION=${part##*_} LD_LIBRARY_PATH=$build/sim CMOCKA_MESSAGE_OUTPUT=TAP \
            stdbuf -oL timeout 600 "$build/tests/$test" >"$output" 2>&1 &
        pid=$!
        while kill -0 $pid 2>/dev/null && ! grep -qE '^(sim:|not ok)' "$output"; do
            sleep 0.1
        done
        kill $pid 2>/dev/null || true
        wait $pid 2>/dev/null && status=0 || status=$?
        grep -q '^mutant:' "$output" && applied=1
        sign=$(grep -m 1 -E '^(sim:|not ok)' "$output" || true)
        [ $status -eq 0 ] || break
    done
    rm -f "$output"
    if [ $applied -eq 0 ]; then
        echo "absent $1"
    elif [ $status -ne 0 ]; then
        echo "killed $1 # $sign"
    else
        echo "alive $1"
    fi
}

# Reads mutants, runs those that have no verdict in the file, and compares the verdicts with the list of the harmless ones.
judge() { # FILE
    local surprises=0 verdict image place rest
    awk -F '\t' -v verdicts="$1" 'BEGIN { while ((getline <verdicts) > 0) { sub(/^[a-z]+ /, ""); done[$1, $3] } }
        !(($1, $3) in done)' |
        tr '\n' '\0' | xargs -0 -r -P "$jobs" -n 1 "$0" one >>"$1"
    while IFS=$'\t' read -r image _ place rest; do
        verdict=${image%% *}
        image=${image#* }
        if is_harmless "$image" "$place"; then
            [ "$verdict" = alive ] && continue
            echo "listed as harmless, and yet $verdict: $image $place $rest"
        else
            [ "$verdict" = killed ] && continue
            echo "$verdict: $image $place $rest"
        fi
        surprises=$((surprises + 1))
    done <"$1"
    echo "$(grep -c ^killed "$1" || true) killed, $(grep -c ^alive "$1" || true) alive, $surprises unexpected"
    [ -s "$1" ] && [ $surprises -eq 0 ]
}

# The image's verdicts so far, in a file of the build. Those that tests or simulated drivers made since could change are
# taken out.
verdicts_of() { # OP FILE
    local verdicts killed test
    mkdir -p "$build/mutants"
    verdicts=$(sha256sum <"$2")
    verdicts=$build/mutants/${verdicts%% *}
    touch -a "$verdicts"
    for test in $(tests_of "$1"); do
        if [ -n "$(find "$build/tests/$test" "$build"/sim/*.so.1 -newer "$verdicts")" ]; then
            killed=$(grep ^killed "$verdicts" || true)
            echo "$killed" | sed '/^$/d' >"$verdicts"
        fi
    done
    echo "$verdicts"
}

# Image by image.
run() { # REGEX
    local failed=0 op file
    while read -r op file _; do
        [[ ${file##*/} =~ $1 ]] || continue
        echo "${file##*/}"
        if list "^${file##*/}\$" | judge "$(verdicts_of "$op" "$file")"; then
            settle "$file"
        else
            failed=1
        fi
    done < <(images)
    return $failed
}

sample() { # COUNT SEED REGEX
    local verdicts status=0
    verdicts=$(mktemp)
    list "$3" is_settled | draw "$1" "$2" | judge "$verdicts" || status=1
    rm -f "$verdicts"
    return $status
}

case ${1-} in
list) list "${2-}" ;;
one) one "$2" ;; # for xargs
run) run "${2-}" ;;
sample) sample "$2" "$3" "${4-}" ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
