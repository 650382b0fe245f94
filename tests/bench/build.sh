#!/bin/bash
# Prints what a clean build costs: `make -j2` of a copy of the tree, without a cache of objects.
#
#   tests/bench/build.sh
#
# Memory is that of all processes of the build together, the sum of their resident sizes, looked at ten times a second.
# The seconds depend on what else the machine does; the processor time less so.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds_limit=60
megabytes_limit=1000
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$tree"

TIMEFORMAT='%R %U %S'
{
    time PATH=/usr/sbin:/usr/bin:/sbin:/bin setsid --wait \
        sh -c "echo \$\$ >'$tree.session'; exec make -s -C '$tree' -j2 all" >/dev/null 2>"$tree.errors"
} 2>"$tree.times" &
build=$!
trap 'rm -rf "$tree" "$tree".*' EXIT
until [ -s "$tree.session" ]; do sleep 0.01; done
session=$(cat "$tree.session")

# Pages of the session's processes. A process's name, the second field, may have blanks in it, in parentheses.
pages() {
    { cat /proc/[0-9]*/stat 2>/dev/null || true; } | sed 's/.*) //' |
        awk -v session="$1" '$4 == session { sum += $22 } END { print sum + 0 }'
}

most=0
while kill -0 $build 2>/dev/null; do
    now=$(pages "$session")
    [ "$now" -le "$most" ] || most=$now
    sleep 0.1
done
wait $build || {
    cat "$tree.errors" >&2
    exit 1
}

read -r real user kernel <"$tree.times"
awk -v real="$real" -v user="$user" -v kernel="$kernel" -v bytes=$((most * $(getconf PAGE_SIZE))) \
    -v seconds=$seconds_limit -v megabytes=$megabytes_limit 'BEGIN {
        verdict = real <= seconds && bytes <= megabytes * 1e6 ? "ok" : "over the limit"
        printf "clean-build: %.0f s, %.0f s of processor time, %.0f MB (make -j2; limits %d s, %d MB: %s)\n", real,
            user + kernel, bytes / 1e6, seconds, megabytes, verdict
    }'
