# Promises that hold for the library as a whole: what it calls, what it opens, how much stack it takes; and that every
# test that docs/contracts.md names exists.
. tests/tap.sh

library=$KILN_BUILD/libkiln.a

# Functions of libc that the library must not refer to.
forbidden=(printf fprintf vprintf vfprintf dprintf puts fputs fputc putchar putc fwrite perror psignal
    exit _exit _Exit quick_exit abort assert __assert_fail raise kill
    getenv secure_getenv setenv putenv unsetenv system popen)

calls_nothing_forbidden() {
    local found
    found=$(nm -u "$library" 2>/dev/null | awk '$1 == "U" { print $2 }' | sort -u |
        grep -Fx -f <(printf '%s\n' "${forbidden[@]}"))
    [ -z "$found" ] || { echo "refers to: $found"; return 1; }
}

# The objects know what they refer to only without a sanitizer's own calls.
if [ "$KILN_CONFIG" = release ] || [ "$KILN_CONFIG" = debug ]; then
    check "the library calls nothing that prints, exits or reads the environment" calls_nothing_forbidden
else
    skip "the library calls nothing that prints, exits or reads the environment" "config is $KILN_CONFIG"
fi

opens_nothing_else() {
    local opened
    strace -f -e trace=openat,open,creat,socket,unlink,rename -o "$KILN_SCRATCH/trace" \
        "$KILN_BUILD/tests/unit/device_test" >/dev/null 2>&1 || return 1
    # Libraries are looked for in many folders, and a real HSA runtime asks for /dev/kfd; what counts is any other name.
    opened=$(grep -o '"[^"]*"' "$KILN_SCRATCH/trace" | tr -d '"' | sort -u |
        grep -v -E '\.so(\.[0-9]+)*$|^/etc/ld\.so|^/proc/|^/sys/|^/dev/kfd$|^/usr/lib/wsl/')
    [ -z "$opened" ] || { echo "opened: $opened"; return 1; }
}

name="the library opens nothing but drivers, /proc and /sys"
if ! command -v strace >/dev/null; then
    skip "$name" "there is no strace here"
elif [ "$KILN_CONFIG" != release ] && [ "$KILN_CONFIG" != debug ]; then
    skip "$name" "config is $KILN_CONFIG"
else
    check "$name" opens_nothing_else
fi

# gcc and clang both warn of frames; the sources are compiled once more for it.
frames_are_small() {
    local source
    for source in loader/*.c loader/image/*.c loader/cuda/*.c loader/rocm/*.c loader/cpu/*.c kernels/*/*.c; do
        case $source in *_gpu.c | *_cpu.c) continue ;; esac
        "${CC:-cc}" -std=c11 -D_GNU_SOURCE -O2 -I. -Iinclude -Wframe-larger-than=4095 -Wvla -Werror -c -o /dev/null \
            "$source" || return 1
    done
}
check "no frame of the library reaches 4 KB" frames_are_small

# A row names its tests as `file: test`.
names_exist() {
    local file test missing=0
    while IFS='|' read -r file test; do
        grep -qF -- "$test" "$file" && continue
        echo "$file has no test \"$test\""
        missing=1
    done < <(tr '`' '\n' <docs/contracts.md | sed -n 's/^\(tests\/[^ ]*\): /\1|/p')
    return "$missing"
}
check "every test that docs/contracts.md names exists" names_exist
finish
