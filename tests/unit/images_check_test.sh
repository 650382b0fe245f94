# scripts/images_check.sh and the lists behind it: what is committed is what the sources give, and each way of not being
# so is found.
. tests/tap.sh

# A copy of what the check reads of one operator, to spoil.
copy() {
    rm -rf "$KILN_SCRATCH/tree"
    mkdir -p "$KILN_SCRATCH/tree/embedded"
    cp -r scripts kernels loader "$KILN_SCRATCH/tree/"
    cp -a embedded/softmax "$KILN_SCRATCH/tree/embedded/"
    echo 'KILN_OPERATOR(softmax)' >"$KILN_SCRATCH/tree/kernels/ops.def"
}

# found WORDS: the check of the copy fails and says the words
found() {
    local output
    output=$("$KILN_SCRATCH/tree/scripts/images_check.sh" fresh 2>&1) && return 1
    printf '%s\n' "$output"
    printf '%s\n' "$output" | grep -qF "$1"
}

# named LIST COMMAND...: the command fails and names every word of the list
named() {
    local list=$1 output word
    shift
    output=$("$@" 2>&1) && return 1
    printf '%s\n' "$output"
    for word in $list; do printf '%s\n' "$output" | grep -qwF -- "$word" || return 1; done
}

check "the committed images are listed, whole and fresh" scripts/images_check.sh fresh

image=embedded/softmax/softmax_f16.sm_75.ptx
copy
check "a copy of one operator is fresh too" "$KILN_SCRATCH/tree/scripts/images_check.sh" fresh
copy && printf 'x' >>"$KILN_SCRATCH/tree/$image"
check "an image with other bytes is found" found "$image: its bytes are not those of the manifest"
copy && rm "$KILN_SCRATCH/tree/$image"
check "a missing image is found" found "$image: missing"
copy && sed -i '/^file=softmax_f16.sm_75.ptx /d' "$KILN_SCRATCH/tree/embedded/softmax/manifest"
check "an image that the manifest does not list is found" found "$image: missing from the manifest"
copy && touch "$KILN_SCRATCH/tree/embedded/softmax/extra.cubin"
check "an image that no list asks for is found" found "embedded/softmax/extra.cubin: no list asks for it"
copy && truncate -s -100 "$KILN_SCRATCH/tree/embedded/softmax/images.tar.xz"
check "an archive that was cut off is found" found "embedded/softmax/images.tar.xz cannot be unpacked"
copy && rm "$KILN_SCRATCH/tree/$image" "$KILN_SCRATCH/tree/embedded/softmax/.unpacked"
check "what is not unpacked is unpacked before it is checked" "$KILN_SCRATCH/tree/scripts/images_check.sh" fresh

# An archive of some of the images, packed elsewhere.
pack() { # FILE...
    rm -rf "$KILN_SCRATCH/packed" && cp -a embedded/softmax "$KILN_SCRATCH/packed" && rm "$KILN_SCRATCH/packed/images.tar.xz" &&
        scripts/archive.sh pack "$KILN_SCRATCH/packed/images.tar.xz" "$@"
}
committed_again() {
    # shellcheck disable=SC2046 # a word is a file
    pack $(sed -n 's/^file=\([^ ]*\) .*/\1/p' embedded/softmax/manifest) &&
        cmp embedded/softmax/images.tar.xz "$KILN_SCRATCH/packed/images.tar.xz"
}
unpacks_anew() {
    pack softmax_f16.sm_75.ptx && cp "$KILN_SCRATCH/packed/images.tar.xz" "$KILN_SCRATCH/tree/embedded/softmax/" &&
        scripts/archive.sh unpack "$KILN_SCRATCH/tree/embedded/softmax" &&
        [ "$(cd "$KILN_SCRATCH/tree/embedded/softmax" && echo *)" = "images.tar.xz manifest softmax_f16.sm_75.ptx" ]
}
copy
check "the same images give the same archive" committed_again
check "what is no longer in a changed archive is removed" unpacks_anew

copy && echo '/* changed */' >>"$KILN_SCRATCH/tree/kernels/common/device.h"
check "a changed header makes images stale" found "$image: stale"
copy && sed -i 's/-O3 -ptx/-O2 -ptx/' "$KILN_SCRATCH/tree/scripts/fire_common.sh"
check "a changed flag makes images stale" found "$image: stale"
copy && sed -i 's/^KILN_NVIDIA("sm_80", 80, 0, 70, cubin, "12.0.140")/&\nKILN_NVIDIA("sm_87", 87, 0, 74, cubin, "12.0.140")/' "$KILN_SCRATCH/tree/loader/targets.def"
check "a new row of the targets asks for its images" found "softmax_f16.sm_87.cubin: missing from the manifest"

check "a bad OP names the operators" named "$(scripts/targets.sh operators)" scripts/targets.sh images soft
check "a bad ARCH names the targets" named "sm_75 sm_90a gfx942 gfx12-generic" scripts/targets.sh images softmax sm_91
finish
