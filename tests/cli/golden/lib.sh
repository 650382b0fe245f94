# What the cases share: `. "$GOLDEN/lib.sh"`.
# shellcheck shell=bash

# npy FILE DESCR SHAPE [True]: a .npy file with that header (True: Fortran order) and its elements from stdin.
npy() {
    local dict size
    dict="{'descr': '$2', 'fortran_order': ${4:-False}, 'shape': $3, }"
    size=$(((10 + ${#dict} + 1 + 63) / 64 * 64 - 10))
    {
        printf '\x93NUMPY\x01\x00'
        # shellcheck disable=SC2059
        printf "\\x$(printf '%02x' $((size % 256)))\\x$(printf '%02x' $((size / 256)))"
        printf '%-*s\n' $((size - 1)) "$dict"
        cat
    } >"$1"
}

# f32 VALUE...: float32 numbers, little-endian, for values among those that the cases need.
f32() {
    local value
    for value; do
        case $value in
        0) printf '\x00\x00\x00\x00' ;;
        1) printf '\x00\x00\x80\x3f' ;;
        2) printf '\x00\x00\x00\x40' ;;
        3) printf '\x00\x00\x40\x40' ;;
        inf) printf '\x00\x00\x80\x7f' ;;
        -inf) printf '\x00\x00\x80\xff' ;;
        *) echo "f32: no $value" >&2 && return 1 ;;
        esac
    done
}

# show FILE TYPE: the dict of a .npy file and its elements as od writes TYPE (f4, u2, ...).
show() {
    head -c 128 "$1" | tail -c +11 | sed -n 's/ *$//;1p'
    tail -c +$((10 + $(od -A n -t u2 -j 8 -N 2 "$1") + 1)) "$1" | od -A n -v -t "$2" -w16 |
        sed 's/-nan/ nan/g' # a NaN's sign is not promised
}

# try COMMAND...: the command, what it prints on both outputs, and its exit status, all on stdout.
try() {
    local status
    echo "\$ $*"
    "$@" 2>&1
    status=$?
    echo "exit $status"
}

# recorded DEVICES COMMAND...: the command on a machine with these devices, by the recording drivers. They check every
# call and report what leaks on stderr; they execute nothing.
recorded() {
    local devices=$1
    shift
    KILN_SIM_RECORD=1 KILN_SIM_DEVICES=$devices LD_LIBRARY_PATH=$RECORDING "$@"
}
