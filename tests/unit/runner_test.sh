# The test runner itself: tests/run.c.
. tests/tap.sh
run=$KILN_BUILD/tests/run
cd "$KILN_SCRATCH" || exit 1

# test_script NAME: makes NAME.sh of the lines on standard input
test_script() { cat >"$1.sh"; }

# said WORDS STATUS TEST...: runs the tests; the last line must be WORDS and the status STATUS
said() {
    local words=$1 status=$2 output
    shift 2
    output=$("$run" -d log -t 2 -j 2 "$@" 2>&1)
    set -- $?
    printf '%s\n' "$output"
    [ "$1" -eq "$status" ] && [ "$(printf '%s\n' "$output" | tail -n 1)" = "$words" ]
}

# named LINE TEST...: LINE must stand above the last line
named() {
    local line=$1 output
    shift
    output=$("$run" -d log -t 2 "$@" 2>&1)
    printf '%s\n' "$output"
    printf '%s\n' "$output" | sed '$d' | grep -qxF "$line"
}

test_script passing <<'END'
echo 1..2
echo ok 1 - a
echo ok 2 - b >&2
END
test_script failing <<'END'
echo 1..2
echo ok 1 - a
echo not ok 2 - b
exit 1
END
test_script short <<'END'
echo 1..3
echo ok 1 - a
END
test_script long <<'END'
echo ok 1 - a
echo ok 2 - b
echo 1..1
END
test_script planless <<'END'
echo ok 1 - a
END
test_script silent <<'END'
exit 0
END
test_script dying <<'END'
echo 1..1
echo ok 1 - a
kill -SEGV $$
END
test_script grumbling <<'END'
echo 1..1
echo ok 1 - a
exit 3
END
test_script slow <<'END'
for i in 1 2 3 4; do
    sleep 0.8
    echo ok $i
done
echo 1..4
END
test_script hanging <<'END'
echo 1..1
echo ok 1 - a
sleep 60 & sleep 60
END
test_script endless <<'END'
echo 1..1
sleep 60 &
echo "$$ $!" >pids
wait
END
test_script skipping <<'END'
echo 1..3
echo ok 1 - a
echo 'ok 2 - b # SKIP no such device'
echo 'not ok 3 # SKIP c'
END
test_script skipped <<'END'
echo '1..0 # SKIP no compiler here'
END
test_script groups <<'END'
echo 1..1
echo ok 1 - a
echo 1..2
echo ok 1 - a
echo ok 2 - b
END
test_script busy <<'END'
echo 1..1
echo ok 1 - a
bash -c 'for i in {1..200000}; do :; done'
END
test_script scratch <<'END'
echo 1..1
[ -d "$KILN_SCRATCH" ] && [ -z "$(ls -A "$KILN_SCRATCH")" ] && [ "$CMOCKA_MESSAGE_OUTPUT" = TAP ] && echo ok 1 - a
touch "$KILN_SCRATCH/x"
END

check "passing tests are counted from both outputs" said "2 passed, 0 failed, 0 skipped" 0 passing.sh
check "a failure is counted" said "1 passed, 1 failed, 0 skipped" 1 failing.sh
check "a failure is named" named "failed: failing.sh: b" failing.sh
check "fewer results than planned" said "1 passed, 1 failed, 0 skipped" 1 short.sh
check "more results than planned" said "2 passed, 1 failed, 0 skipped" 1 long.sh
check "the counts of a short plan are named" named "failed: short.sh: planned 3 tests and reported 1" short.sh
check "results without a plan" said "1 passed, 1 failed, 0 skipped" 1 planless.sh
check "no output at all" said "0 passed, 1 failed, 0 skipped" 1 silent.sh
check "a program that dies" said "1 passed, 1 failed, 0 skipped" 1 dying.sh
check "the signal is named" named "failed: dying.sh: died of signal 11 (Segmentation fault)" dying.sh
check "a bad exit status without a failed test" said "1 passed, 1 failed, 0 skipped" 1 grumbling.sh
check "a program that takes longer and goes on talking" said "4 passed, 0 failed, 0 skipped" 0 slow.sh
check "a program that hangs" said "1 passed, 1 failed, 0 skipped" 1 hanging.sh
# gone PID: soon there is no such process, or a zombie that nobody collects
gone() {
    local tries
    for ((tries = 0; tries < 200; tries++)); do
        grep -qs '^State:[[:space:]]*[^Z]' "/proc/$1/status" || return 0
        sleep 0.05
    done
    return 1
}

# stopped SIGNAL STATUS: while a test runs the runner gets the signal; it ends so, and the test and its child with it
stopped() {
    local runner status test child
    rm -f pids
    env --default-signal="$1" "$run" -d log endless.sh &
    runner=$!
    until [ -s pids ]; do sleep 0.05; done
    read -r test child <pids
    kill -s "$1" "$runner"
    wait "$runner"
    status=$?
    echo "status $status"
    [ "$status" -eq "$2" ] && gone "$test" && gone "$child" && [ ! -e log/endless.sh.scratch ]
}
check "SIGTERM ends the runner, its tests and what they started" stopped TERM 143
check "so does SIGINT" stopped INT 130
check "so does SIGHUP" stopped HUP 129
check "a program that is not there" said "0 passed, 1 failed, 0 skipped" 1 ./absent
check "skips of both forms are no failures" said "1 passed, 0 failed, 2 skipped" 0 skipping.sh
check "a skip is named" named "skipped: skipping.sh: c" skipping.sh
check "a whole script can be skipped" said "2 passed, 0 failed, 1 skipped" 0 skipped.sh passing.sh
check "nothing but skips is no success" said "0 passed, 0 failed, 1 skipped" 1 skipped.sh
check "plans of several groups add up" said "3 passed, 0 failed, 0 skipped" 0 groups.sh
check "several tests add up, two at a time" said "6 passed, 2 failed, 0 skipped" 1 passing.sh short.sh failing.sh passing.sh
check "words choose tests" said "2 passed, 0 failed, 0 skipped" 0 -o pass passing.sh failing.sh
check "a word may name the folder too" said "2 passed, 0 failed, 0 skipped" 0 -o tests/pass passing.sh failing.sh
check "a test has an empty folder of its own" said "1 passed, 0 failed, 0 skipped" 0 scratch.sh
check "the folder is empty again the next time" said "1 passed, 0 failed, 0 skipped" 0 scratch.sh
dearest_first() {
    "$run" -d log passing.sh busy.sh skipping.sh | grep -A 1 '^the most processor time, of [0-9.]* s:$' | grep -E '^ +busy\.sh '
}
check "the test that computed most is named first, with its children" dearest_first
refuse "an unknown option" "$run" -x passing.sh
refuse "no tests" "$run"
finish
