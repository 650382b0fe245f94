# The container images of scripts/oci.sh: nothing in them that is not needed, nothing missing, the same bytes each time; what
# is in them runs in a root of its own, as the user that they name, with the drivers that a container runtime would put in.
. tests/tap.sh
[ "$KILN_CONFIG" = release ] || skip_all "config is $KILN_CONFIG"
command -v umoci >/dev/null || skip_all "umoci is not installed"
[ "$(id -u)" -eq 0 ] || skip_all "needs root for chroot"

layout=$KILN_BUILD/oci
export SOURCE_DATE_EPOCH=1700000000

make_images() { make -s --no-print-directory oci-layout; }
images() { (cd "$layout" && find . -type f -exec sha256sum {} + | sort); }
same_again() {
    images >"$KILN_SCRATCH/first"
    make_images && images | diff "$KILN_SCRATCH/first" -
}

unpack() { umoci unpack --image "$layout:$1" "$KILN_SCRATCH/$1"; }
root() { echo "$KILN_SCRATCH/$1/rootfs"; }

size_is_below() { # TAG MEGABYTES
    local size
    size=$(du -sb --apparent-size "$(root "$1")" | cut -f1)
    echo "$size bytes"
    [ "$size" -lt "$2"000000 ]
}

# Programs, libraries and two files of configuration; each library that one of them names is there.
contents() { # TAG NAME...
    local names
    names=$(printf '%s\n' ld-linux-x86-64.so.2 ld-linux-aarch64.so.1 ld.so.conf lib{c,m}.so.6 libdl.so.2 libpthread.so.0 librt.so.1 "${@:2}")
    find "$(root "$1")" -type f -printf '%f\n' | grep -vxF "$names" && return 1
    find "$(root "$1")" -type f ! -name ld.so.conf | while read -r file; do
        LC_ALL=C readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
    done | sort -u | while read -r needed; do
        find "$(root "$1")" -name "$needed" | grep -q . || { echo "$needed is missing" && exit 1; }
    done
}

describes() { # TAG WORD...
    local stat word
    stat=$(umoci stat --json --image "$layout:$1" && cat "$KILN_SCRATCH/$1/config.json")
    for word in "${@:2}"; do
        printf '%s\n' "$stat" | grep -qF -- "$word" || { echo "no $word" && return 1; }
    done
}

# As the image's user.
inside() { chroot --userspec=65534:65534 "$(root "$1")" "${@:2}"; }

prints() { # EXPECTED COMMAND...
    local output
    output=$("${@:2}") && printf '%s\n' "$output" && printf '%s\n' "$output" | grep -q -- "$1"
}

softmax_is_right() {
    diff <(inside kiln-softmax /usr/bin/quickstart) <("$KILN_BUILD/examples/quickstart")
}

tells_the_story() {
    cp "$MODEL_DIR"/stories260K.bin "$MODEL_DIR"/tok512.bin "$(root kiln)/tmp/"
    diff <(inside kiln /usr/bin/llama /tmp/stories260K.bin /tmp/tok512.bin --steps 20 2>/dev/null) \
        <("$KILN_BUILD/examples/llama" "$MODEL_DIR"/stories260K.bin "$MODEL_DIR"/tok512.bin --steps 20 2>/dev/null)
}

# Where a container runtime puts drivers.
puts_driver_in() { # TAG
    local libraries
    libraries=$(dirname "$(find "$(root "$1")" -name libm.so.6)")
    cp "$KILN_BUILD/sim/libcuda.so.1" "$libraries/"
}

serves_fleet() { # TARGET...
    local target
    for target in "$@"; do
        inside kiln /usr/bin/kiln explain --all --target "$target" >"$KILN_SCRATCH/out" || { tail -n 1 "$KILN_SCRATCH/out" && return 1; }
    done
}

check "the images are made" make_images
check "and the same bytes again" same_again
for tag in kiln kiln-softmax; do
    check "$tag unpacks" unpack $tag
done
check "kiln has under 60 MB" size_is_below kiln 60
check "kiln-softmax has under 5 MB" size_is_below kiln-softmax 5
check "kiln has what it needs, and nothing else" contents kiln kiln llama libkiln.so.0
check "kiln-softmax has what it needs, and nothing else" contents kiln-softmax quickstart
check "a runtime is told the program, the user and the drivers" describes kiln '"/usr/bin/kiln"' '"uid": 65534' \
    NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility 2023-11-14T22:13:20Z
check "kiln finds the CPU" prints cpu inside kiln /usr/bin/kiln info
check "softmax runs" softmax_is_right
if [ -e "${MODEL_DIR-}/stories260K.bin" ]; then
    check "llama tells its story with the shared library" tells_the_story
else
    skip "llama tells its story with the shared library" "there is no model in MODEL_DIR"
fi
check "a driver is put in" puts_driver_in kiln
check "and found" prints 'cuda:0' env KILN_SIM_DEVICES=sm_90 chroot --userspec=65534:65534 "$(root kiln)" /usr/bin/kiln info
check "a fleet that it serves" serves_fleet sm_80 sm_90 sm_120 gfx942 gfx1201
refuse "a fleet that it does not serve" serves_fleet sm_90 sm_70
finish
