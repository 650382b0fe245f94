#!/bin/bash
# The tests of tests/gpu on this machine's GPUs, or those that have one of the words in their names. docs/real-gpu.md
#   check_gpu.sh BUILD [--seconds N] [--anew] [WORD...]
# After N seconds (520; 0: never) it stops, and the next run goes on: what has passed or failed on these devices with this
# driver and this build is in BUILD/gpu/results and is not run again. --anew forgets it. The story,
# whose result is not kept, is told whole each time. Exit status: 0 if all has passed, 1 if something failed, 3 if something is
# left.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(cd "$1" && pwd) || exit 2
seconds=520 anew='' words=()
shift
while [ $# -gt 0 ]; do
    case $1 in
    --seconds)
        seconds=${2-}
        shift
        ;;
    --anew) anew=yes ;;
    -*)
        echo "check_gpu.sh: unknown option $1: --seconds N, --anew" >&2
        exit 2
        ;;
    *) words+=("-o$1") ;;
    esac
    shift || break
done
case $seconds in '' | *[!0-9]*)
    echo "check_gpu.sh: --seconds $seconds: must be a number" >&2
    exit 2
    ;;
esac
[ -z "$anew" ] || rm -rf "$build/gpu/results"
export KILN_BUILD=$build KILN_GPU_RESULTS=$build/gpu/results
[ "$seconds" = 0 ] || export KILN_GPU_END=$(($(date +%s) + seconds))
mkdir -p "$KILN_GPU_RESULTS"
"$build/tests/run" -t 3600 -d "$build/gpu/log" "${words[@]}" tests/gpu/{operators,story,instructions,sanitizer}_test.sh |
    tee "$build/gpu/summary"
status=${PIPESTATUS[0]}
left=$(grep -c '# SKIP the time is up$' "$build/gpu/summary")
[ "$left" -gt 0 ] || exit "$status"
echo "$left tests are left, for which there was no time: the same command goes on with them"
! tail -n 1 "$build/gpu/summary" | grep -q ', 0 failed,' || exit 3
exit "$status"
