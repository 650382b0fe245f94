#!/bin/sh
# Makes OCI images from scratch, in one layout, with nothing in them but programs and the C library:
#
#   scripts/oci.sh BUILD VERSION      BUILD/oci: the layout, of two tags
#
#   kiln            the command, libkiln.so.0 and the llama example
#   kiln-softmax    one operator: docs/examples/quickstart.c with libkiln.a
#
# The same programs give the same bytes: every time is SOURCE_DATE_EPOCH (default: that of the last commit), every owner root.
# Drivers are no part of them: a container runtime puts the machine's own in. Needs umoci; root is not needed.
set -eu

build=$1 version=$2 layout=$1/oci
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

case $(uname -m) in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
*)
    echo "oci.sh: no name for the architecture $(uname -m)" >&2
    exit 1
    ;;
esac

rootless=
[ "$(id -u)" -eq 0 ] || rootless=--rootless

# What the dynamic linker looks for in the image, beside libc itself: drivers are linked with libraries that are empty since
# glibc 2.34 and yet are opened.
c_library() { # ROOT
    ldd "$build/kiln" | grep -oE '/[^ ]*/(ld-linux|libc)[^ ]*' | while read -r file; do
        install -D "$file" "$1$file"
        case $file in
        */libc.so.6)
            for name in libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
                install -D "${file%/*}/$name" "$1${file%/*}/$name"
            done
            # A runtime that puts drivers in runs ldconfig on these folders.
            mkdir -p "$1/etc"
            printf '%s\n' "${file%/*}" "/usr${file%/*}" >"$1/etc/ld.so.conf"
            ;;
        esac
    done
    install -d -m 1777 "$1/tmp"
}

program() { # ROOT FILE PATH
    install -D -s "$2" "$1$3"
}

image() { # TAG ROOT TITLE ENTRYPOINT
    find "$2" -exec touch -h -d "@$epoch" {} +
    umoci new --image "$layout:$1"
    # shellcheck disable=SC2086 # a word or none
    umoci insert $rootless --image "$layout:$1" --history.created "$created" --history.created_by scripts/oci.sh "$2" /
    umoci config --image "$layout:$1" --no-history --created "$created" --os linux --architecture "$architecture" \
        --config.user 65534:65534 --config.entrypoint "$4" --config.env PATH=/usr/bin \
        --config.env NVIDIA_VISIBLE_DEVICES=all --config.env NVIDIA_DRIVER_CAPABILITIES=compute,utility \
        --config.label "org.opencontainers.image.title=$3" --config.label "org.opencontainers.image.version=$version"
}

rm -rf "$layout"
umoci init --layout "$layout"

root=$scratch/kiln
c_library "$root"
library=$(dirname "$(find "$root" -name libm.so.6)")
program "$root" "$build/obj/oci/kiln" /usr/bin/kiln
program "$root" "$build/obj/oci/llama" /usr/bin/llama
install -D -m 755 "$build/libkiln.so.0" "$library/libkiln.so.0"
strip --strip-unneeded "$library/libkiln.so.0"
image kiln "$root" kiln /usr/bin/kiln

root=$scratch/softmax
c_library "$root"
program "$root" "$build/examples/quickstart" /usr/bin/quickstart
image kiln-softmax "$root" kiln-softmax /usr/bin/quickstart

umoci gc --layout "$layout"
chmod -R a+rX "$layout"
