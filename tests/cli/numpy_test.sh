#!/bin/bash
# Runs numpy_test.py where there is a Python with NumPy.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
build=${KILN_BUILD:-$PWD/build}
find_numpy "kiln run is not compared with NumPy"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tests/cli/numpy_test.py "$build/kiln" "$work"
