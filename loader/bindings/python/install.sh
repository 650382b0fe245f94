#!/bin/sh
# Puts a Python with the packages of a list into a folder: install.sh LIST FOLDER [PACKAGE...], those named here without what
# they ask for. What was done before is left alone, unless the list is another one now. Exit status 77: it cannot be had here.
set -eu
list=$1 folder=$2
shift 2
wanted=$(cat "$(dirname "$list")"/hosts*.txt && echo "$list $*")
[ "$(cat "$folder/installed" 2>/dev/null)" != "$wanted" ] || exit 0
unavailable() {
    echo "python: $1" >&2
    exit 77
}
rm -rf "$folder"
mkdir -p "$folder"
python3 -m venv "$folder" || unavailable "python3 makes no virtual environment"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$list" ||
    unavailable "the packages of $list cannot be installed"
for package in "$@"; do
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$package" ||
        unavailable "$package cannot be installed"
done
echo "$wanted" >"$folder/installed"
