#!/bin/bash
# The Python package: from its wheel, installed as pip installs it, on the CPU and on a simulated GPU.
cd "$(dirname "$0")/../.." || exit 1
. tests/tap.sh
case $KILN_CONFIG in sanitize | thread | coverage | fuzz) skip_all "config=$KILN_CONFIG needs its runtime loaded before Python" ;; esac
find_numpy "the Python package is not tested"
build=$(realpath "${KILN_BUILD:-build}")
version=$("$build/kiln" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -n 1)

# A wheel is an archive of what is to stand in the folder of packages: unpacking it is installing it.
installs() {
    "$python" scripts/wheel.py "$KILN_SCRATCH/wheel" "$version" "$build/libkiln.so.0" "$build"/python/*.so &&
        "$python" -m zipfile -e "$KILN_SCRATCH"/wheel/*.whl "$KILN_SCRATCH/packages"
}

same_again() {
    "$python" scripts/wheel.py "$KILN_SCRATCH/again" "$version" "$build/libkiln.so.0" "$build"/python/*.so &&
        cmp "$KILN_SCRATCH"/wheel/*.whl "$KILN_SCRATCH"/again/*.whl
}

recorded() {
    (cd "$KILN_SCRATCH/packages" && "$python" -c '
import base64, csv, glob, hashlib
for name, digest, size in csv.reader(open(glob.glob("*.dist-info/RECORD")[0])):
    data = open(name, "rb").read()
    made = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    assert not digest or (digest, size) == ("sha256=" + made, str(len(data))), name')
}

on() { # NAME ARGUMENT...: python_test.py, whose line of failures is the test's output
    PYTHONPATH=$KILN_SCRATCH/packages KILN_LIBRARY='' "$python" tests/bindings/python_test.py "$@"
}

check "the wheel is written and unpacked" installs
check "the wheel is the same when it is written again" same_again
check "the wheel's record has every file" recorded
for line in $("$python" tests/bindings/python_test.py --list); do
    case=${line%:*}
    case $case in mypy | torch)
        if ! "$python" -c "import $case" 2>/dev/null; then
            skip "python: $case, on the CPU" "$case is not installed"
            continue
        fi
        ;;
    fast_*)
        if ! PYTHONPATH=$KILN_SCRATCH/packages "$python" -c 'import kiln; assert kiln._plan._fast' 2>/dev/null; then
            skip "python: $case, on the CPU" "the wheel has no extension for this Python"
            continue
        fi
        ;;
    esac
    check "python: $case, on the CPU" on "$case" cpu
    [ "${line#*:}" = any ] || continue
    check "python: $case, on a simulated sm_90" env KILN_SIM_DEVICES=sm_90 LD_LIBRARY_PATH="$build/sim" \
        PYTHONPATH="$KILN_SCRATCH/packages" "$python" tests/bindings/python_test.py "$case" cuda
done
installed() { # MODULE,MODULE...
    "$python" -c 'import importlib.util, sys
sys.exit(not all(importlib.util.find_spec(name) for name in sys.argv[1].split(",")))' "$1"
}

# What needs other packages: a case names those that it needs.
for test in convert jax torch; do
    for line in $("$python" "tests/bindings/${test}_test.py" --list); do
        case=${line%%:*} modules=${line#*:}
        if installed "$modules"; then
            check "python: $test: $case" env PYTHONPATH="$KILN_SCRATCH/packages" KILN_LIBRARY='' \
                "$python" "tests/bindings/${test}_test.py" "$case"
        else
            skip "python: $test: $case" "not all of $modules are installed"
        fi
    done
done
if installed torch; then
    check "python: the calls that bench-graphs times agree with PyTorch" env PYTHONPATH="$KILN_SCRATCH/packages" KILN_LIBRARY='' \
        "$python" scripts/bench_graphs.py --dry-run
else
    skip "python: the calls that bench-graphs times agree with PyTorch" "torch is not installed"
fi
finish
