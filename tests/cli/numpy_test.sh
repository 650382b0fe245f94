#!/bin/bash
# Runs numpy_test.py where there is a Python with NumPy.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
build=${KILN_BUILD:-$PWD/build}
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import numpy' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ "$python" ] || skip_all "no python3 with NumPy: kiln run is not compared with NumPy"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" tests/cli/numpy_test.py "$build/kiln" "$work"
