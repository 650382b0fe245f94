#!/bin/bash
# Removes or alters, one at a time, each barrier, wait, fence and integer comparison of the images that ship, and runs the
# operator's own test and that of the counters on a simulated device against each such mutant. A test must fail, or the
# simulated device complain; else tests/sim/mutants/harmless has the reason why it changes nothing.
#
#   mutants.sh list [REGEX]               the mutants of the images whose file name matches, a line each
#   mutants.sh run [REGEX]                runs them all, and writes each image without a surprise into the record. Begun
#                                         again, it goes on where it was: what was killed is not run again, nor what
#                                         was alive, as long as tests and simulated drivers are as they were
#   mutants.sh sample COUNT SEED [REGEX]  runs so many that must be killed, each of another image, drawn by the seed from
#                                         those that are as the record has them
#   mutants.sh table                      what the record has, for docs/simulators.md
#
# The record, tests/sim/mutants/settled, has a line for each image all of whose mutants were run, and no surprise was left:
# the digest of its code, its name, how many were killed, and its survivors: "b1 c4n c8a" are its first barrier, removed,
# and its fourth and eighth comparison, that never or always hold. Images of the same code count as one: "= IMAGE" says in
# whose place.
#
# Reads KILN_BUILD (a build with its test programs and build/sim) and JOBS. A line is IMAGE, DEVICE, the place (a line of
# PTX, an address of machine code) with the edit, and the instruction, between tabs. An edit is "comparison 5 always": of
# the image's fifth, which it stays more often than its place stays when the image is fired again. Survivors without a
# reason are named with their place in the source, and the exit status is 1.
set -eu
cd "$(dirname "$0")/.."
build=${KILN_BUILD:-build}
jobs=${JOBS:-$(nproc)}
settled=tests/sim/mutants/settled
verdicts=$build/mutants

# What must notice a mutant of an operator.
tests_of() { # OP
    case $1 in
    gemm) echo ops/gemm_test ops/gemm_fused_test sim/tests/operators/counters_test sim/tests/operators/gemm_counters_test ;;
    gemm_w4a16) echo ops/gemm_w4a16_test sim/tests/operators/counters_test sim/tests/operators/gemm_w4a16_counters_test ;;
    gemm_fp8 | gemm_int8) echo ops/w8a8_test sim/tests/operators/counters_test sim/tests/operators/w8a8_counters_test ;;
    mha) echo ops/mha_test ops/mha_mask_test sim/tests/operators/counters_test sim/tests/operators/mha_counters_test ;;
    mha_*_fwd) echo ops/mha_codes_test sim/tests/operators/counters_test ;;
    add_rmsnorm) echo ops/rmsnorm_test sim/tests/operators/counters_test ;;
    dequantize_*) echo ops/dequantize_test sim/tests/operators/counters_test ;;
    amax | quantize_nvfp4)
        echo "ops/$1_test ops/quantize_transposed_test" sim/tests/operators/counters_test sim/tests/operators/transposed_counters_test
        ;;
    quantize_fp8 | quantize_int8)
        echo ops/quantize_test ops/quantize_transposed_test sim/tests/operators/counters_test \
            sim/tests/operators/transposed_counters_test
        ;;
    quantize_embedding) echo ops/vector_search_test sim/tests/operators/counters_test ;;
    *) echo "ops/$1_test sim/tests/operators/counters_test" ;;
    esac
}

# Instructions of a block after which it is endless: more than its tests' blocks take.
budget_of() { # OP
    case $1 in
    sample | mha | mha_*_fwd | mha_paged) echo 5000000 ;;
    *) echo 1000000 ;;
    esac
}

# The simulated device of an image: of a family's, a member.
device_of() { # IMAGE
    local target=${1#*.}
    target=${target%.*}
    case $target in
    gfx9-generic) echo gfx906 ;;
    gfx10-1-generic) echo gfx1010 ;;
    gfx10-3-generic) echo gfx1032 ;;
    gfx11-generic) echo gfx1102 ;;
    gfx12-generic) echo gfx1200 ;;
    sm_*a) echo "${target%a}" ;;
    *) echo "$target" ;;
    esac
}

file_of() { # IMAGE
    local part=${1%%.*}
    echo "embedded/${part%_*}/$1"
}

# Each image that a simulated device executes.
images() { # REGEX
    local op file
    for op in $(scripts/targets.sh operators); do
        for file in embedded/"$op"/*.ptx embedded/"$op"/*.hsaco; do
            [[ ${file##*/} =~ $1 ]] && echo "${file##*/}"
        done
    done
    return 0
}

instructions() { # IMAGE
    case $1 in
    *.ptx) awk '{ print FNR, $0 }' "$(file_of "$1")" ;;
    *) "$build"/tests/sim/mutants/instructions "$(file_of "$1")" "$(device_of "$1")" ;;
    esac
}

# The digest of an image's code: the text but for its target, what the machine code reads as.
code_of() { # IMAGE
    local file digest
    file=$(file_of "$1")
    case $1 in
    *.ptx) digest=$(grep -vE '^(\.version|\.target|//)' "$file" | sha256sum) ;;
    *) digest=$(instructions "$1" | sha256sum) ;;
    esac
    echo "${digest%% *}"
}

# The digest and the name of each image, of which the first of the same code stands for all. What was disassembled is kept
# for the next time, with the digest of its file.
codes() {
    local known=$verdicts/codes digest image
    mkdir -p "$verdicts"
    touch "$known"
    images '' | while read -r image; do file_of "$image"; done | xargs sha256sum |
        awk -v known="$known" 'BEGIN { while ((getline <known) > 0) code[$1] = $2 }
            { sub(/.*\//, "", $2); print $1, ($1 in code ? code[$1] : "-"), $2 }' |
        while read -r digest code image; do
            if [ "$code" = - ]; then
                code=$(code_of "$image")
                echo "$digest $code" >>"$known"
            fi
            echo "$code $image"
        done
}

list() { # IMAGE
    local vendor=amd
    [ "${1##*.}" = ptx ] && vendor=ptx
    instructions "$1" | awk -v vendor=$vendor -f tests/sim/mutants/edits.awk
}

# Reads lines of a list, runs a test on each of these mutants in the image's precision, up to the first sign of it, and adds
# the verdicts to the file.
run_test() { # IMAGE TEST FILE
    local part=${1%%.*} digest ordinal=rocm:0 mutants
    [ "${1##*.}" = ptx ] && ordinal=cuda:0
    digest=$(sha256sum <"$(file_of "$1")")
    mutants=$(mktemp)
    awk -F '\t' -v digest="${digest%% *}" '{ split($1, word, " "); print digest, word[1], word[4] }' >"$mutants"
    [ -s "$mutants" ] || return 0
    LD_PRELOAD=$build/tests/sim/mutants/one_process.so \
        KILN_SIM_MUTANTS=$mutants KILN_SIM_VERDICTS=$3 KILN_SIM_DEVICES=$(device_of "$1") KILN_SIM_SEED=1 KILN_SIM_THREADS=0 \
        KILN_SIM_BUDGET=$(budget_of "${part%_*}") KILN_SIM_UNALIGNED=0 KILN_SIM_SAME_STORE=0 KILN_TEST_DEVICES=$ordinal KILN_TEST_SEED=1 \
        KILN_TEST_PRECISION=${part##*_} KILN_TEST_OPERATOR=${part%_*} LD_LIBRARY_PATH=$build/sim CMOCKA_TEST_ABORT=1 \
        CMOCKA_MESSAGE_OUTPUT=TAP "$build/tests/$2" >/dev/null ||
        sed "s|.*|broken\t&\t$2 failed without a mutant|" "$mutants" >>"$3"
    rm "$mutants"
}

# Takes out what tests or simulated drivers made since could change, and what a test that failed without a mutant left.
refresh() { # FILE TEST
    touch -a "$1"
    grep -q ^broken "$1" && : >"$1"
    [ -n "$(find "$build/tests/$2" "$build"/sim/*.so.1 -newer "$1")" ] || return 0
    { grep ^killed "$1" || true; } >"$1.new"
    mv "$1.new" "$1"
}

# Reads a list, writes its lines behind the verdicts that the files have: of several broken, else killed, or else alive.
judged() { # FILE...
    awk -F '\t' '
        BEGIN { rank["absent"] = 1; rank["alive"] = 2; rank["killed"] = 3; rank["broken"] = 4 }
        !listed {
            sub(/^[^ ]* /, "", $2)
            if (rank[$1] > rank[verdict[$2]]) verdict[$2] = $1
            next
        }
        {
            split($1, word, " ")
            print verdict[word[1] " " word[4]] "\t" $0
        }' "$@" listed=1 -
}

# Reads a list and runs it, test by test: what one has killed the next does not see. Writes it behind the verdicts.
run_list() { # IMAGE FILES
    local all test part=${1%%.*} files=()
    all=$(cat)
    for test in $(tests_of "${part%_*}"); do
        files+=("$2.${#files[@]}")
        refresh "${files[-1]}" "$test"
        # What was not killed before, and has no verdict of this test.
        echo "$all" | judged "${files[@]:0:${#files[@]}-1}" | sed -n '/^killed\t/!s/^[a-z]*\t//p' | judged "${files[-1]}" |
            sed -n 's/^\t//p' | run_test "$1" "$test" "${files[-1]}"
    done
    echo "$all" | judged "${files[@]}"
}

# Reads a list behind its verdicts, adds the places in the source of those that are alive.
with_places() { # IMAGE
    local all alive
    all=$(cat)
    alive=$(echo "$all" | sed -n 's/^alive\t\([^ ]*\) .*/\1/p' | sort -u)
    { [ -z "$alive" ] || echo "$alive" | scripts/mutants_places.sh "$(file_of "$1")"; } |
        awk -F '\t' '!listed { place = $1; sub(/^[^\t]*/, ""); source[place] = $0; next }
            { split($2, word, " "); print $0 ($1 == "alive" ? source[word[1]] : "") }' - listed=1 <(echo "$all")
}

# Adds the image and all of the same code to the record.
settle() { # CODE IMAGE KILLED-AND-SURVIVORS
    local same
    same=$(codes | sed -n "s/^$1 //p")
    {
        flock 9
        {
            grep -vwF "$same" "$settled" || true
            echo "$same" | sed "s/.*/$1 & = $2/; s/ $2 = $2\$/ $2 $3/"
        } | LC_ALL=C sort -k 2,2 >"$verdicts/settled"
        cp "$verdicts/settled" "$settled"
    } 9>"$verdicts/lock"
}

# Runs all mutants of an image.
image() { # CODE IMAGE
    local counts said status=0
    counts=$(mktemp)
    said=$(list "$2" | run_list "$2" "$verdicts/$1" | with_places "$2" |
        awk -F '\t' -v image="$2" -v settled="$counts" -f tests/sim/mutants/reasons.awk tests/sim/mutants/harmless listed=1 -) ||
        status=1
    [ $status -ne 0 ] || settle "$1" "$2" "$(<"$counts")"
    rm "$counts"
    echo "$2: $said"
    return $status
}

# The first image of each code that the record lacks.
run() { # REGEX
    codes | grep -vxFf <(sed 's/^\([^ ]* [^ ]*\).*/\1/' "$settled") |
        awk -v wanted="$1" '!seen[$1]++ && $2 ~ wanted' | xargs -r -P "$jobs" -L 1 "$0" image
}

# A mutant of each image that is read, up to so many, without the survivors that are read behind.
draw() { # COUNT SEED
    local left=$1 code image survivors
    while [ "$left" -gt 0 ] && read -r code image _ survivors; do
        [ "$(code_of "$image")" = "$code" ] || continue
        list "$image" | awk -v survivors=" $survivors " -v image="$image" '
            { name = substr($2, 1, 1) $3 ($4 ~ /^removed/ ? "" : substr($4, 1, 1)) }
            !index(survivors, " " name " ") { print image "\t" $0 }' |
            shuf -n 1 --random-source=<(yes "$2") | grep . || continue
        left=$((left - 1))
    done
}

sample() { # COUNT SEED REGEX
    local scratch image line verdict failed=0 drawn=0
    scratch=$(mktemp -d)
    while IFS=$'\t' read -r image line; do
        drawn=$((drawn + 1))
        verdict=$(echo "$line" | run_list "$image" "$scratch/$drawn")
        [ "${verdict%%$'\t'*}" = killed ] && continue
        echo "$image: $verdict"
        failed=1
    done < <(awk -v wanted="$3" '$3 != "=" && $2 ~ wanted' "$settled" | shuf --random-source=<(yes "$2") | draw "$1" "$2")
    rm -r "$scratch"
    echo "$drawn drawn"
    [ $failed -eq 0 ] && [ $drawn -gt 0 ]
}

# A line of operators and precisions: images, how many of them were run, killed, harmless.
table() {
    awk '
        BEGIN { print "| images of | settled | of other code | killed | harmless |\n|---|---|---|---|---|" }
        function row(part) { printf "| %s | %d | %d | %d | %d |\n", part, images[part], codes[part], killed[part], alive[part] }
        function count(part) { images[part]++; if ($3 != "=") { codes[part]++; killed[part] += $3; alive[part] += NF - 3 } }
        { part = $2; sub(/[.].*/, "", part); if (!(part in images)) name[++names] = part; count("`" part "`"); images[part]; count("together") }
        END { for (n = 1; n <= names; n++) row("`" name[n] "`"); row("together") }' "$settled"
}

case ${1-} in
list) images "${2-}" | while read -r name; do list "$name" | sed "s/^/$name\t$(device_of "$name")\t/"; done ;;
image) image "$2" "$3" ;; # for xargs
run) run "${2-}" ;;
sample) sample "$2" "$3" "${4-}" ;;
table) table ;;
*) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" && exit 2 ;;
esac
