# A program with libkiln.a runs in an empty root that holds nothing but it and the libraries that ldd names: on the CPU,
# without /proc and /sys, and, with the recording drivers put beside it, up to each driver's calls.
. tests/tap.sh
case $KILN_CONFIG in sanitize | thread | fuzz) skip_all "sanitizers need /proc" ;; esac
root=$KILN_SCRATCH/root

if [ "$(id -u)" -eq 0 ]; then
    enter() { chroot "$root" "$@"; }
elif unshare -r true 2>/dev/null; then
    enter() { unshare -r chroot "$root" "$@"; }
else
    skip_all "needs root, or user namespaces for unshare -r"
fi

# add FILE...: copies programs into the root, and libraries to where ldd says.
add() {
    local file
    for file in "$@"; do
        cp "$file" "$root/" || return 1
        ldd "$file" | grep -oE '/[^ ]+' | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
    done
}

mkdir -p "$root/drivers"
only_libc() {
    local others
    others=$(ldd "$KILN_BUILD/examples/quickstart" | awk '{ print $1 }' |
        grep -vE '^(linux-vdso|libc|libm|.*/ld-linux-[a-z0-9_-]*)\.so\.[0-9]$')
    printf '%s\n' "$others"
    [ -z "$others" ]
}

softmax_is_right() {
    enter /quickstart | tee "$KILN_SCRATCH/out"
    [ "$(cat "$KILN_SCRATCH/out")" = "$("$KILN_BUILD/examples/quickstart")" ]
}

info_says() { # WORD: of the devices in the root
    enter /kiln info | tee "$KILN_SCRATCH/out"
    grep -q "$1" "$KILN_SCRATCH/out"
}

simulated() { # DEVICE BACKEND
    enter /usr/bin/env LD_LIBRARY_PATH=/drivers "KILN_SIM_DEVICES=$1" /kiln info | tee "$KILN_SCRATCH/out"
    grep -q "$2:0" "$KILN_SCRATCH/out"
}

check "the program needs the C library alone" only_libc
check "copied" add "$KILN_BUILD/examples/quickstart" "$KILN_BUILD/kiln"
check "softmax runs there on the CPU" softmax_is_right
check "kiln info runs there" info_says cpu
drivers=("$KILN_BUILD"/sim/lib*.so.1)
if [ -e "${drivers[0]}" ]; then
    mkdir -p "$root/usr/bin"
    check "drivers put beside it" add "${drivers[@]}"
    mv "$root"/lib*.so.1 "$root/drivers/"
    cp /usr/bin/env "$root/usr/bin/"
    check "the CUDA driver is found there" simulated sm_90 cuda
    check "the HSA driver is found there" simulated gfx942 rocm
else
    skip "drivers put beside it" "they are not built"
fi
finish
