#!/bin/bash
# The program's exact words: runs every tests/cli/golden/<case>.sh in an empty folder of its own, with `kiln` on the PATH,
# and compares its stdout, stderr and exit status with <case>.stdout, <case>.stderr and <case>.exit. A file that is
# missing stands for no output, or for 0.
#
#     tests/cli/golden_test.sh [CASE...]                      compare
#     tests/cli/golden_test.sh --set-exact-output [CASE...]   write the files from what came: read the difference
#
# The program, and the recording drivers that some cases use, are those of $KILN_BUILD (build).
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
golden=$PWD/tests/cli/golden
build=${KILN_BUILD:-$PWD/build}
for file in kiln sim/libcuda.so.1 sim/libhsa-runtime64.so.1; do
    [ -e "$build/$file" ] && continue
    echo "golden_test.sh: no $build/$file" >&2
    exit 1
done
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

# Runs a case; what came stands in $work/<case>.{stdout,stderr,exit}.
run_case() {
    local status
    mkdir "$work/$1"
    (cd "$work/$1" && PATH=$build:$PATH LC_ALL=C GOLDEN=$golden RECORDING=$build/sim timeout 60 bash -u "$golden/$1.sh") \
        >"$work/$1.stdout" 2>"$work/$1.stderr" </dev/null
    status=$?
    echo "$status" >"$work/$1.exit"
}

compare() {
    local name=$1 kind expected failed=0
    for kind in stdout stderr exit; do
        expected=$golden/$name.$kind
        if [ ! -e "$expected" ]; then
            expected=/dev/null
            [ "$kind" = exit ] && expected=$work/zero
        fi
        diff -u --label "expected $kind" --label "$kind" "$expected" "$work/$name.$kind" || failed=1
    done
    return "$failed"
}

set_expected() {
    local name=$1 kind
    for kind in stdout stderr exit; do
        cp "$work/$name.$kind" "$golden/$name.$kind"
    done
    for kind in stdout stderr; do
        [ -s "$golden/$name.$kind" ] || rm "$golden/$name.$kind"
    done
    if [ "$(cat "$golden/$name.exit")" = 0 ]; then rm "$golden/$name.exit"; fi
}

echo 0 >"$work/zero"
setting=
if [ "${1:-}" = --set-exact-output ]; then
    setting=1
    shift
fi
[ $# -gt 0 ] || set -- "$golden"/*.sh
for path; do
    name=$(basename "$path" .sh)
    [ "$name" = lib ] && continue
    if [ "$name" = progress ] && ! script -qec true /dev/null >/dev/null 2>&1; then
        skip "$name" "no terminal can be made here: /dev/pts is not mounted, or there is no script(1)"
        continue
    fi
    run_case "$name"
    if [ "$setting" ]; then set_expected "$name"; else check "$name" compare "$name"; fi
done
[ "$setting" ] || finish
