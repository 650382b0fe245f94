# A program that calls one operator links the images of that operator, and of those that it calls, and no other's.
. tests/tap.sh
case $KILN_CONFIG in
release | debug) ;;
*) skip_all "config=$KILN_CONFIG links with flags of its own" ;;
esac

# links OP: makes KILN_SCRATCH/OP, a program that calls kiln_OP_f32 and prints the bundles that it links
links() {
    cat >"$KILN_SCRATCH/$1.c" <<END
#include <kiln/ops.h>
#include <stdio.h>

int main(void) {
    kiln_stream stream = {0};
    kiln_$1_params params = {0};
    const kiln_bundle *const *bundles;
    size_t count;
    if (kiln_$1_f32(&stream, &params) != KILN_ERROR_INVALID_ARGUMENT) return 1;
    if (kiln_linked_bundles(&bundles, &count)) return 1;
    for (size_t i = 0; i < count; i++) puts(bundles[i]->name);
    return 0;
}
END
    link "$1"
}

link() { # OP FLAG...
    local op=$1
    shift
    "${CC:-cc}" -std=c11 -Iinclude "$@" -o "$KILN_SCRATCH/$op" "$KILN_SCRATCH/$op.c" "$KILN_BUILD/libkiln.a" -pthread -lm
}

# The operators that an operator calls, and so links: attention quantises its tensors where its params ask for it.
called_by() { # OP
    case $1 in
    mha) echo mha_fp8_fwd mha_int8_x_fp8_fwd mha_nvfp4_fwd mha_quantize mha_quantize_nvfp4 ;;
    esac
}

lists_itself_alone() { # OP
    # shellcheck disable=SC2046
    diff <("$KILN_SCRATCH/$1" | sort) <(printf '%s\n' "$1" $(called_by "$1") | sort)
}

# The operators of whose kernels a program has names, which stand in every image and bundle table.
images_in() { # PROGRAM
    LC_ALL=C grep -oaE 'kiln_[a-z0-9_]+_(f32|f16|bf16)' "$KILN_SCRATCH/$1" | sort -u |
        awk 'NR == FNR { operator["kiln_" $2] = $1; next }
            { sub(/_[a-z0-9]*$/, "") } $0 in operator { print operator[$0] }' "$KILN_SCRATCH/kernels" - | sort -u
}

holds_images_of() { # OP IN_PROGRAM
    images_in "$2" | grep -qx "$1"
}

holds_no_other() { # OP
    local others
    # shellcheck disable=SC2046
    others=$(images_in "$1" | grep -vxF "$(printf '%s\n' "$1" $(called_by "$1"))")
    [ -z "$others" ] || { echo "images are in it of: $others" && return 1; }
}

# The bundles of libkiln.so are its own, all of them, whatever the program calls.
shared_lists_all() {
    "${CC:-cc}" -std=c11 -Iinclude -o "$KILN_SCRATCH/shared" "$KILN_SCRATCH/softmax.c" -L"$KILN_BUILD" -lkiln &&
        LD_LIBRARY_PATH=$KILN_BUILD "$KILN_SCRATCH/shared" | sort | diff <(tr ' ' '\n' <<<"$operators" | sort) -
}

operators=$(scripts/targets.sh operators)
for op in $operators; do
    sed -n "s/^KILN_KERNEL(\\([a-z0-9_]*\\)).*/$op \\1/p" "kernels/$op/$op.def"
done >"$KILN_SCRATCH/kernels"
for op in $operators; do
    check "a program calls $op" links "$op"
    check "$op is the one bundle on its list" lists_itself_alone "$op"
    check "the images of $op are in it" holds_images_of "$op" "$op"
    check "no other operator's images are" holds_no_other "$op"
done

check "libkiln.so lists every operator" shared_lists_all
check "a linker that collects unused sections" link softmax -Wl,--gc-sections
check "keeps the list" lists_itself_alone softmax
if command -v ld.lld >/dev/null; then
    check "LLVM's linker, which collects more" link softmax -Wl,--gc-sections -fuse-ld=lld
    check "keeps the list, too" lists_itself_alone softmax
else
    skip "LLVM's linker keeps the list" "ld.lld is not installed (package lld)"
fi
finish
