#!/bin/sh
# Puts Debian's HIP into a folder, with what of its libraries the machine lacks: hip_install.sh FOLDER. What is there
# already is left alone, and nothing is installed. Exit status 77: it cannot be had here.
set -eu
folder=$1
hip() {
    find "$folder" -name 'libamdhip64.so.5' 2>/dev/null | head -n 1
}
unavailable() {
    echo "hip: $1: kiln inside HIP is not tested" >&2
    exit 77
}
[ -z "$(hip)" ] || exit 0
command -v apt-get >/dev/null || unavailable "there is no apt-get"
mkdir -p "$folder.new/packages"
# HIP, its header, its compiler, and theirs: the runtime below, libhsa-runtime64, is the simulated one.
for package in libamdhip64-5 libamdhip64-dev libamd-comgr2 libllvm15 libz3-4 libnuma1; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" != installed ] || continue
    (cd "$folder.new/packages" && apt-get download -qq "$package" 2>/dev/null) ||
        unavailable "$package cannot be downloaded"
done
for package in "$folder.new"/packages/*.deb; do
    [ ! -e "$package" ] || dpkg-deb -x "$package" "$folder.new"
done
rm -r "$folder.new/packages" "$folder.new/usr/share"
mv "$folder.new" "$folder"
[ -n "$(hip)" ] || ln -s "$(ldconfig -p | awk '/libamdhip64.so.5 / {print $NF; exit}')" "$folder/libamdhip64.so.5"
