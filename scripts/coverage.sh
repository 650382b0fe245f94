#!/bin/sh
# Runs the tests in config=coverage and prints the share of lines of loader/ that they reach, whole and by file.
set -eu
out=build/coverage
find "$out" -name '*.gcda' -delete 2>/dev/null || true
make --no-print-directory check config=coverage
lcov --quiet --capture --directory "$out/obj/loader" --base-directory . --output-file "$out/coverage.info"
lcov --quiet --extract "$out/coverage.info" "$PWD/loader/*" --output-file "$out/loader.info"
lcov --list "$out/loader.info"
