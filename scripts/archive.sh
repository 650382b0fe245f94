#!/bin/sh
# Folders whose files are kept as one archive, FOLDER/*.tar.xz: files that have most of their bytes in common, as the images
# of an operator for many targets. The archive is committed; the files stand beside it, unpacked and ignored by git.
#   archive.sh unpack FOLDER...         what has changed since it was last unpacked; FOLDER/.unpacked lists the files
#   archive.sh pack ARCHIVE FILE...     the files, named from the archive's folder; the same files give the same bytes
set -eu

unpack() { # FOLDER
    set -- "$1" "$1"/*.tar.xz
    if ! [ -e "$2" ]; then return 0; fi # a folder that is new
    if [ -e "$1/.unpacked" ] && [ -z "$(find "$2" -newer "$1/.unpacked")" ]; then return 0; fi
    new=$(mktemp -d "$1/.new.XXXXXX")
    trap 'rm -rf "$new"' EXIT
    if ! tar -xvf "$2" -C "$new" >"$new/.unpacked" 2>/dev/null; then
        echo "archive.sh: $2 cannot be unpacked" >&2
        exit 1
    fi
    # What was unpacked before and is no longer in the archive goes.
    [ ! -e "$1/.unpacked" ] || (cd "$1" && xargs -r rm -f <.unpacked)
    cp -rlf "$new/." "$1"
    touch "$1/.unpacked"
    rm -rf "$new"
}

pack() { # ARCHIVE FILE...
    archive=$1 folder=$(dirname "$1")
    shift
    printf '%s\n' "$@" | LC_ALL=C sort >"$folder/.unpacked.new"
    tar -cf - -C "$folder" --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -T "$folder/.unpacked.new" |
        xz -T1 --lzma2=preset=9e,dict=32MiB >"$archive.new"
    if cmp -s "$archive.new" "$archive"; then
        rm "$archive.new" "$folder/.unpacked.new"
    else
        mv "$archive.new" "$archive"
        mv "$folder/.unpacked.new" "$folder/.unpacked"
        touch "$folder/.unpacked"
    fi
}

command=${1-}
case $command:$# in
unpack:1 | pack:[12]) command='' ;;
unpack:* | pack:*) shift ;;
*) command='' ;;
esac
case $command in
unpack) for folder in "$@"; do unpack "$folder"; done ;;
pack) pack "$@" ;;
*)
    sed -n '/^#   archive.sh/s/^# *//p' "$0" >&2
    exit 2
    ;;
esac
