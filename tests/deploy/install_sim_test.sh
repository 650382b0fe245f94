# make install-sim: two drivers under libexec/kiln/sim and nothing else, which give devices only when asked for.
. tests/tap.sh
case $KILN_CONFIG in sanitize | thread | coverage | fuzz) skip_all "config=$KILN_CONFIG is not for installing" ;; esac
prefix=/opt/kiln
root=$KILN_SCRATCH/root
sim=$root$prefix/libexec/kiln/sim

install_into_root() { # GOAL
    make -s --no-print-directory config="$KILN_CONFIG" DESTDIR="$root" PREFIX=$prefix "$1"
}

only_the_drivers() {
    diff <(printf '%s\n' "$sim/libcuda.so.1" "$sim/libhsa-runtime64.so.1") <(find "$root" ! -type d | sort)
}

# ldconfig reads /etc/ld.so.conf and what it names, and a library's own folders.
not_where_a_linker_looks() {
    ldconfig -v 2>/dev/null | sed -n 's/^\(\/[^:]*\):.*/\1/p' >"$KILN_SCRATCH/folders"
    [ -s "$KILN_SCRATCH/folders" ] && ! grep -q libexec "$KILN_SCRATCH/folders" && ! ldconfig -p | grep -q libexec
}

info() { # DEVICES
    KILN_SIM_DEVICES=$1 LD_LIBRARY_PATH=$sim "$KILN_BUILD/kiln" info
}

no_device_unasked() {
    ! (unset KILN_SIM_DEVICES && LD_LIBRARY_PATH=$sim "$KILN_BUILD/kiln" info) | grep 'kiln simulated'
}

devices_by_their_names() {
    info sm_90,gfx942 >"$KILN_SCRATCH/info"
    grep 'kiln simulated sm_90' "$KILN_SCRATCH/info" && grep 'kiln simulated gfx942' "$KILN_SCRATCH/info"
}

# Whatever else they need is opened when they run.
needs_libc_alone() {
    local library
    for library in "$sim"/*; do
        objdump -p "$library" | awk '$1 == "NEEDED" && $2 !~ /^(libc|libm)\.so|^ld-linux/ { print; bad = 1 } END { exit bad }' ||
            return 1
    done
}

check 'make install-sim' install_into_root install-sim
check 'it installs the two drivers and nothing else' only_the_drivers
check 'no linker looks there' not_where_a_linker_looks
check 'they need the C library alone' needs_libc_alone
check 'no device without KILN_SIM_DEVICES' no_device_unasked
check 'their devices are called kiln simulated' devices_by_their_names
rm -rf "$root"
check 'make install' install_into_root install
check 'it installs no simulated driver' test -z "$(find "$root" -name 'libcuda*' -o -name 'libhsa*' -o -name sim)"
finish
