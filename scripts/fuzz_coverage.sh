#!/bin/sh
# The share of each parser's lines that its committed inputs reach: $1 is a build with coverage that has
# tests/fuzz/replay_test. Exit status 1 if one is below 95 %.
set -eu
least=95
failed=0
rows=$(sed -n 's/^ *X(\([a-z0-9]*\), *"\([^"]*\)").*/\1 \2/p' tests/fuzz/targets.h)
while read -r target source; do
    object=$1/obj/${source%.c}
    rm -f "$object.gcda"
    "$1/tests/fuzz/replay_test" "$target" >/dev/null 2>&1 || echo "fuzz-coverage: $target: the replay failed"
    share=$(gcov -n -o "$object.o" "$source" 2>/dev/null | awk -v file="File '$source'" '
        $0 == file { found = 1 }
        found && sub(/^Lines executed:/, "") { sub(/%.*/, ""); print; exit }')
    echo "fuzz-coverage: $target: ${share:-0} % of the lines of $source"
    awk -v share="${share:-0}" -v least=$least 'BEGIN { exit !(share < least) }' && failed=1
done <<END
$rows
END
exit $failed
