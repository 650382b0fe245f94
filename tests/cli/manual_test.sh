#!/bin/bash
# docs/kiln.1 and --help say the same: the commands, each command's options with their arguments, the exit codes.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
build=${KILN_BUILD:-$PWD/build}
manual=docs/kiln.1

# "name ARGUMENT" for each option of a command, sorted: from the manual's list in its section, and from --help.
manual_options() {
    sed -n "/^\.Ss kiln $1\$/,/^\.S[sh] /s/^\.It Fl -\([a-z-]*\)\( Ar \(.*\)\)*\$/\1 \3/p" "$manual" | sort
}
help_options() {
    "$build/kiln" help "$1" | awk '/^  --/ { print substr($1, 3), ($2 ~ /^[A-Z=]+$/ ? $2 : "") }' | sort
}
same_options() {
    diff -u --label manual --label help <(manual_options "$1") <(help_options "$1")
}

manual_devices() {
    sed -n '/^\.Ar device$/,/^If none/s/^\.Cm \([a-z]*\).*/\1/p' "$manual" | sort
}
help_devices() {
    "$build/kiln" help run | sed -n 's/^  --device DEVICE  *//p' | grep -oE 'cpu|[a-z]+:N' | sed 's/:N//' | sort
}

manual_exits() {
    sed -n '/^\.Sh EXIT STATUS$/,/^\.El$/p' "$manual" | sed -n '/^\.It/{s/^\.It //;N;s/\n/  /;p;}'
}
help_exits() {
    "$build/kiln" help | sed -n 's/^  \([0-9]  .*\)/\1/p'
}

commands=$("$build/kiln" help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p')
check 'the help lists commands' test "$(echo "$commands" | wc -l)" -ge 8
check 'the manual has a section for each command' diff -u <(sed -n 's/^\.Ss kiln //p' "$manual") <(echo "$commands")
for command in $commands; do
    check "$command: the manual has the options of --help" same_options "$command"
done
check 'the manual has the exit codes of the help' diff -u <(manual_exits) <(help_exits)
check 'the manual has the kinds of devices of the help' diff -u <(manual_devices) <(help_devices)
check 'a command has options here' test -n "$(manual_options bench)"
finish
