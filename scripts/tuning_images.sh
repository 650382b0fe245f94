#!/bin/bash
# Makes of kernels/tuning/VARIANT.patch a program with other tiles, BUILD/tuning/VARIANT/kiln, and beside it the tests of the
# operators that it changes, and `kernels`, a line "OPERATOR KERNEL" of each that it changes. Needs what `make images` needs, and
# patch; links what is in BUILD:
#   tuning_images.sh BUILD VARIANT HOST
# The sources are copied, patched and fired in BUILD/tuning/VARIANT/tree, beside the shipped images of other targets and parts.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "$1") variant=$2 host=$3
root=$PWD patch=$PWD/kernels/tuning/$variant.patch
out=$build/tuning/$variant tree=$build/tuning/$variant/tree
command -v patch >/dev/null || {
    echo "tuning_images.sh: patch is not on the PATH" >&2
    exit 1
}
target=$(sed -n 's/^Target: //p' "$patch")
rm -rf "$out"
mkdir -p "$tree/loader" "$tree/embedded"
awk -F'[/(,]' '/^\+\+\+ b\/kernels\// { op = $3 } /^[-+]KILN_(SHAPE|STAGES|CLUSTER|TENSOR_MAPS)\(/ { print op, $2 }' "$patch" | sort -u >"$out/kernels"
operators=$(cut -d' ' -f1 "$out/kernels" | sort -u)

cp -r kernels scripts "$tree"
cp loader/targets.def "$tree/loader"
patch -d "$tree" -p1 --fuzz=0 --quiet <"$patch"

for op in $operators; do
    scripts/archive.sh unpack "embedded/$op"
    cp -r "embedded/$op" "$tree/embedded"
    rm -f "$tree/kernels/$op/${op}_${target/_/}"_*.cu # of other parts, whose images stay
    "$tree/scripts/fire.sh" embedded "$op" "$target"
    "$tree/scripts/embed.sh" "$op" "$host" "$tree"
    # shellcheck disable=SC2086 # words
    (cd "$tree" && ${CC:-cc} -std=c11 -O1 -fPIC -I"$root" -I"$root/include" -c -o "bundle_$op.o" bundle.c)
    levels=$("$root/scripts/targets.sh" cpu "$host" | sed "s|.*|$build/obj/kernels/$op/&.o|")
    # shellcheck disable=SC2086 # words
    ld -r -o "$tree/$op.o" "$build/obj/kernels/$op/$op.o" $levels "$tree/bundle_$op.o"
done

# The patched operators stand before the library, which then gives the others.
objects=$(printf "$tree/%s.o " $operators)
linked() { # PROGRAM OBJECT...
    # shellcheck disable=SC2086 # words
    ${CC:-cc} -o "$out/$1" "${@:2}" $objects "$build/libkiln.a" -pthread -lm ${libraries-}
    strip "$out/$1"
}
linked kiln "$build"/obj/loader/cli/*.o
shared=$(find tests/ops -name '*.c' ! -name '*_test.c' | sed "s|\(.*\)\.c|$build/obj/\1.o|")
shared+=" $build/obj/tests/sim/amx/amx_sim.o"
for op in $operators; do
    # shellcheck disable=SC2086 # words
    libraries=-lcmocka linked "${op}_test" "$build/obj/tests/ops/${op}_test.o" $shared
done
rm -rf "$tree"
echo "$out/kiln: $(echo $operators) for $target"
