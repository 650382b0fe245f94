#!/bin/sh
# Packs the images that an operator's manifest lists into its archive, embedded/OP/images.tar.xz:
#   pack_images.sh OP...
set -eu
cd "$(dirname "$0")/.."
if [ $# -gt 1 ]; then
    printf '%s\n' "$@" | xargs -P "$(nproc)" -n 1 scripts/pack_images.sh
else
    [ -f "embedded/$1/manifest" ] || exit 0
    # shellcheck disable=SC2046 # a word is a file
    scripts/archive.sh pack "embedded/$1/images.tar.xz" $(sed -n 's/^file=\([^ ]*\) .*/\1/p' "embedded/$1/manifest")
fi
