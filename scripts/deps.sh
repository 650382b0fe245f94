#!/bin/sh
# Sees to it that what a goal needs is on this machine:
#
#   scripts/deps.sh [--list] GOAL...     goals: build check gpu lint docs coverage bench launch images oci triton ggml python ci
#
# What is there already is left alone, wherever it came from. As root on Debian the rest is installed; otherwise the one
# apt-get line is printed and the exit status is 1. --list only names what is missing: a line "package<TAB>for what" each.
set -eu

# One row for each thing: goals, Debian package, how to see that it is there, what for.
# A probe is a command's name or the path of a file, in which * stands for the architecture.
rows() {
    cat <<'END'
build check gpu lint coverage bench launch oci ggml ci|gcc|cc|the C compiler
build check gpu coverage bench launch oci ggml ci|libc6-dev|/usr/include/stdio.h|the C library's headers
build check gpu coverage bench launch oci ggml ci|make|make|the build
build check gpu coverage bench launch oci ggml images ci|xz-utils|xz|unpacking images
check gpu coverage ci|libcmocka-dev|/usr/include/cmocka.h|unit tests
check coverage ggml ci|g++|c++|C++: the headers, llama.cpp
check coverage ci|pkg-config|pkg-config|the installed package's test
check coverage ggml ci|cmake|cmake|the installed package's test, llama.cpp
check coverage ci|libhsa-runtime-dev|/usr/include/hsa/hsa.h|comparing kiln's HSA declarations with AMD's
check coverage ci|python3-numpy|/usr/lib/python3/dist-packages/numpy/__init__.py|NumPy files
ci|libpython3-dev|/usr/include/python3*/Python.h|fast calls of the Python package
check ci|strace|strace|seeing which files the library opens
check gpu ci|libmpfr6|/usr/lib/*-linux-gnu/libmpfr.so.6|comparing approximate instructions with exact functions
check ggml ci|libllvm19|/usr/lib/*-linux-gnu/libLLVM.so.19.1|executing AMD code on the simulated driver
check lint triton coverage ci|libjsmn-dev|/usr/include/jsmn.h|reading a model's configuration
lint ci|clang-format|clang-format|the shape of the sources
lint ci|clang-tidy|clang-tidy|static checks
lint ci|shellcheck|shellcheck|checking the scripts
oci ci|umoci|umoci|container images
python ci|python3-venv|/usr/lib/python3*/ensurepip/__init__.py|fetching the Python package's hosts
ggml ci|ninja-build|ninja|building llama.cpp
ggml ci|python3-pip|pip3|fetching llama.cpp
docs|doxygen|doxygen|the API reference
coverage|lcov|lcov|counting lines
bench launch|valgrind|valgrind|counting instructions
bench|libopenblas0-pthread|/usr/lib/*-linux-gnu/openblas-pthread/libopenblas.so.0|comparing products of matrices
images ggml ci|clang-19|clang-19|firing AMD images, building llama.cpp
images ci|lld-19|ld.lld-19|firing AMD images
images ci|llvm-19|llvm-objdump-19|looking into AMD images
ci|clang|clang|fuzzing
ci|libclang-rt-14-dev|/usr/lib/llvm-14/lib/clang/14.0.6/lib/linux/libclang_rt.fuzzer-*.a|libFuzzer
ci|gcc-aarch64-linux-gnu|aarch64-linux-gnu-gcc|the aarch64 build
ci|libc6-dev-arm64-cross|/usr/aarch64-linux-gnu/include/stdio.h|the aarch64 build
ci|qemu-user|qemu-aarch64|running the aarch64 build
END
}

present() {
    case $1 in
    /*)
        for file in $1; do # unquoted: a pattern
            [ ! -e "$file" ] || return 0
        done
        return 1
        ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

missing() { # GOAL...
    rows | while IFS='|' read -r goals package probe purpose; do
        for goal in "$@"; do
            case " $goals " in
            *" $goal "*) present "$probe" || printf '%s\t%s\n' "$package" "$purpose" ;;
            esac
        done
    done | sort -u
}

known=$(rows | cut -d'|' -f1 | tr ' ' '\n' | sort -u | tr '\n' ' ')
list=0
if [ "${1-}" = --list ]; then
    list=1
    shift
fi
[ $# -gt 0 ] || set -- ''
for goal in "$@"; do
    case " $known" in
    *" $goal "*) ;;
    *)
        echo "deps.sh: '$goal' is no goal; the goals are: $known" >&2
        exit 2
        ;;
    esac
done

lines=$(missing "$@")
if [ $list -eq 1 ]; then
    [ -z "$lines" ] || printf '%s\n' "$lines"
    exit 0
fi
[ -n "$lines" ] || exit 0

packages=$(printf '%s\n' "$lines" | cut -f1 | sort -u | tr '\n' ' ' | sed 's/ $//')
echo "missing for $*:"
printf '%s\n' "$lines" | sed 's/^/  /'
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "Install it, on Debian with:"
    echo "  apt-get install -y --no-install-recommends $packages"
    exit 1
fi

export DEBIAN_FRONTEND=noninteractive
install_packages() {
    # Unquoted: several words.
    # shellcheck disable=SC2086
    apt-get install -y -qq --no-install-recommends $packages </dev/null
}
# A bare image has no package lists; lists that are there may be too old to install from.
install_packages >/dev/null 2>&1 || {
    apt-get update -qq
    install_packages >/dev/null
}
lines=$(missing "$@")
if [ -n "$lines" ]; then
    echo "deps.sh: still missing after the installation:" >&2
    printf '%s\n' "$lines" >&2
    exit 1
fi
echo "installed: $packages"
