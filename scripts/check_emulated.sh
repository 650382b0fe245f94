#!/bin/sh
# Runs the unit and operator tests on a processor that is not this machine's, under qemu-user:
#
#   scripts/check_emulated.sh aarch64      the library cross-built by aarch64-linux-gnu-gcc, in build/aarch64
#   scripts/check_emulated.sh x86-64-v2    this machine's build on a Nehalem, which traps on every later instruction
#
# Without the tests of the GPU backends, which run themselves again with a recording driver: no emulator follows an exec.
# Where a tool is missing it says SKIPPED and which, and succeeds.
set -eu

skip() {
    echo "check-$target: SKIPPED, nothing was run: $1" >&2
    exit 0
}

need() { # COMMAND...
    for command in "$@"; do
        command -v "$command" >/dev/null || skip "$command is not installed (scripts/deps.sh ci)"
    done
}

# cmocka for arm64 stands in no package of this architecture: its packages are fetched and unpacked, beside dpkg's back.
fetch_cmocka() { # FOLDER
    [ -e "$1/usr/include/cmocka.h" ] && return
    need apt-get dpkg-deb
    apt=$1/apt
    mkdir -p "$apt/lists/partial" "$apt/archives/partial"
    : >"$apt/status"
    for step in update "download libcmocka0 libcmocka-dev"; do
        # shellcheck disable=SC2086 # a step is words
        (cd "$apt" && apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User= \
            -o Dir::State::lists="$PWD/lists" -o Dir::State::status="$PWD/status" -o Dir::Cache="$PWD" $step) ||
            skip "cmocka for arm64 could not be fetched"
    done
    for package in "$apt"/*.deb; do dpkg-deb -x "$package" "$1"; done
}

build() { # MAKE-ARGUMENT...
    make --no-print-directory -j"$(nproc)" config=release "$@"
}

# Writes for each test program a script of the same name that runs it in the emulator, and runs those.
run() { # EMULATOR-COMMAND
    rm -rf "$out/emulated"
    for program in "$out"/tests/unit/*_test "$out"/tests/ops/*_test; do
        [ -x "$program" ] || continue
        case ${program##*/} in cuda_* | rocm_*) continue ;; esac
        wrapper=$out/emulated/${program#"$out"/}
        mkdir -p "${wrapper%/*}"
        printf '#!/bin/sh\nexec %s %s\n' "$1" "$PWD/$program" >"$wrapper"
        chmod +x "$wrapper"
    done
    echo "check-$target: the programs of $out/tests/unit and $out/tests/ops but cuda_* and rocm_*, by $1"
    find "$out/emulated" -type f | sort |
        KILN_TEST_EMULATED=1 xargs build/tests/run -j "$(nproc)" -d "$out/emulated/log"
}

target=${1-}
case $target in
aarch64)
    need qemu-aarch64 aarch64-linux-gnu-gcc
    out=build/aarch64
    root=$PWD/$out/root
    fetch_cmocka "$root"
    library=$root/usr/lib/aarch64-linux-gnu
    build build/tests/run
    build emulated-tests OUT="$out" CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar LD=aarch64-linux-gnu-ld \
        CFLAGS="-I$root/usr/include" LDFLAGS="-L$library"
    run "qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH=$library"
    ;;
x86-64-v2)
    [ "$(uname -m)" = x86_64 ] || skip "this machine is no x86-64"
    need qemu-x86_64
    out=build
    build build/tests/run emulated-tests
    run "qemu-x86_64 -cpu Nehalem"
    ;;
*)
    echo "usage: scripts/check_emulated.sh aarch64|x86-64-v2" >&2
    exit 2
    ;;
esac
