# Promises that hold for the library as a whole: what it calls, what it opens, how much stack it takes; that every test
# that docs/contracts.md names exists; and what the heads of the kernels' sources say.
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

# Beneath the command and the bindings, nothing of the loader's knows an operator.
knows_no_operator() {
    local found
    found=$(grep -rlE '#include ("kernels/|<kiln/ops[./])' loader --include='*.[ch]' --exclude-dir=cli --exclude-dir=bindings)
    [ -z "$found" ] || { echo "include operators: $found"; return 1; }
}
check "the loader knows no operator" knows_no_operator

# Each header that kernels share has its place on their page.
page_has_every_header() {
    local header status=0
    for header in kernels/common/{,*/}*.h; do
        grep -q "(${header#kernels/common/})" kernels/common/README.md || { echo "$header is not on the page"; status=1; }
    done
    return $status
}
check "kernels/common/README.md has every header" page_has_every_header

# Device sources read as algorithms: raw instructions have wrappers. An empty template is none: it only says what a
# compiler may not know.
raw_instructions_are_wrapped() {
    local found
    found=$(grep -rnE 'asm(__)?( volatile)?\(\s*"[^"]' kernels --include='*.[ch]' --include='*.cu' |
        grep -vE '^kernels/(arch/|common/(cpu|vec)\.h:)|_cpu\.[ch]:')
    [ -z "$found" ] || { echo "raw instructions outside kernels/arch: $found"; return 1; }
}
check "raw instructions of devices are in kernels/arch alone" raw_instructions_are_wrapped

# The objects know what they refer to only without a sanitizer's own calls.
if [ "$KILN_CONFIG" = release ] || [ "$KILN_CONFIG" = debug ]; then
    check "the library calls nothing that prints, exits or reads the environment" calls_nothing_forbidden
else
    skip "the library calls nothing that prints, exits or reads the environment" "config is $KILN_CONFIG"
fi

# What two programs ask of the kernel with files, sockets and writes: one that finds no driver or a real one, and one
# that computes on simulated GPUs of both vendors and on the CPU. Writes to standard output and error are the programs'.
traced() {
    local program
    for program in unit/device_test sim/tests/operators/mixed_devices_test; do
        strace -f -qq -e signal=none -e 'trace=%file,%network,write,writev,pwrite64,pwritev,ftruncate,memfd_create' \
            -o "$KILN_SCRATCH/trace" "$KILN_BUILD/tests/$program" >/dev/null 2>&1 || return 1
        grep -v -E '^[0-9]+ +(writev?\([12],|<\.\.\. |execve)' "$KILN_SCRATCH/trace"
    done >"$KILN_SCRATCH/calls"
}

# The tests themselves read the headers. Libraries are looked for in many folders, and a real HSA runtime asks for /dev/kfd; what counts is any other name.
opens_nothing_else() {
    local opened
    opened=$(grep -E '^[0-9]+ +(open|creat)' "$KILN_SCRATCH/calls" | grep -o '"[^"]*"' | tr -d '"' | sort -u |
        grep -v -E '\.so(\.[0-9]+)*$|^/etc/ld\.so|^/proc/|^/sys/|^/dev/kfd$|^/usr/lib/wsl/|^include/kiln/')
    [ -z "$opened" ] || { echo "opened: $opened"; return 1; }
}

# What is neither a look at a file nor an open for reading alone.
writes_nothing() {
    local looks='access|faccessat2?|stat|lstat|newfstatat|statx|statfs|readlink|readlinkat|getcwd' wrote
    wrote=$(grep -v -E "^[0-9]+ +($looks)\(|\"/dev/kfd\"" "$KILN_SCRATCH/calls" |
        grep -E -v '^[0-9]+ +(open|openat)\(.*O_RDONLY(\|O_(CLOEXEC|NONBLOCK|DIRECTORY))*[) ]')
    [ -z "$wrote" ] || { echo "asked for: $wrote"; return 1; }
}

names=("the library opens nothing but drivers, /proc and /sys" "the library writes to no file and no socket")
if ! command -v strace >/dev/null; then
    for name in "${names[@]}"; do skip "$name" "there is no strace here"; done
elif [ "$KILN_CONFIG" != release ] && [ "$KILN_CONFIG" != debug ]; then
    for name in "${names[@]}"; do skip "$name" "config is $KILN_CONFIG"; done
else
    check "two programs' calls of the kernel are traced" traced
    check "${names[0]}" opens_nothing_else
    check "${names[1]}" writes_nothing
fi

# Beside each object the compiler has written a line for each function: what its frame takes, and whether that depends
# on what the function is called with.
frames_are_small() { # FILE.su...
    awk -F '\t' '$2 >= 4096 || $3 == "dynamic" { print; found = 1 } END { exit found }' "$@"
}

# The CPU kernels once more, by a compiler for aarch64.
small_frames_on_aarch64() {
    local kernels=()
    for operator in $(scripts/targets.sh operators); do kernels+=("$KILN_SCRATCH/obj/kernels/$operator/aarch64"); done
    for source in kernels/common/{,*/}*_cpu.c; do kernels+=("$KILN_SCRATCH/obj/${source%.c}/aarch64"); done
    make -s --no-print-directory -j"$(nproc)" OUT="$KILN_SCRATCH" CC=aarch64-linux-gnu-gcc "${kernels[@]/%/.o}" &&
        frames_are_small "${kernels[@]/%/.su}"
}

names=("no frame of the loader and the host sides reaches 4 KB"
    "no frame of a CPU kernel reaches 4 KB, at any level" "no frame of a CPU kernel reaches 4 KB on aarch64")
if [ "$KILN_CONFIG" != release ]; then
    for name in "${names[@]}"; do skip "$name" "config is $KILN_CONFIG"; done
elif grep -q clang "$KILN_BUILD/obj/flags"; then
    for name in "${names[@]}"; do skip "$name" "the bound is that of GCC's frames"; done
else
    host_sides=(loader/*.c loader/{blocks,tree,image,cuda,rocm,hip,cpu}/*.c)
    for source in kernels/common/{,*/}*.c; do
        case $source in *_cpu.c) ;; *) host_sides+=("$source") ;; esac
    done
    cpu_kernels=()
    for level in $(scripts/targets.sh cpu "$(uname -m)"); do
        for source in kernels/common/{,*/}*_cpu.c; do cpu_kernels+=("$KILN_BUILD/obj/${source%.c}/$level.su"); done
    done
    for operator in $(scripts/targets.sh operators); do
        host_sides+=("kernels/$operator/$operator.c")
        for level in $(scripts/targets.sh cpu "$(uname -m)"); do
            cpu_kernels+=("$KILN_BUILD/obj/kernels/$operator/$level.su")
        done
    done
    host_sides=("${host_sides[@]/#/$KILN_BUILD/obj/}")
    check "${names[0]}" frames_are_small "${host_sides[@]/%.c/.su}"
    check "${names[1]}" frames_are_small "${cpu_kernels[@]}"
    if command -v aarch64-linux-gnu-gcc >/dev/null; then
        check "${names[2]}" small_frames_on_aarch64
    else
        skip "${names[2]}" "there is no aarch64-linux-gnu-gcc here"
    fi
fi

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

# The head of a kernel's source says what bounds it, or which header does, and what tests and measures it.
heads_are_whole() {
    local source head test missing=0
    for source in kernels/*/*_{gpu,cpu}.c; do
        head=$(sed '/\*\//q' "$source")
        test=$(grep -oE 'Test: build/tests/[a-z0-9_/]+' <<<"$head")
        [[ $head == *[Ff]loor* && -f ${test#Test: build/}.c && $head == *"Bench: build/"* ]] && continue
        echo "$source: its head lacks a floor, a test that exists or a bench"
        missing=1
    done
    return "$missing"
}
check "every kernel's source says its floor, its test and its bench" heads_are_whole
finish
