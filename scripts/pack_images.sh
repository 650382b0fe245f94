#!/bin/sh
# Packs the images that the operators' manifests list into their archives, embedded/OP/images.tar.xz:
#   pack_images.sh OP...
set -eu
cd "$(dirname "$0")/.."
for op in "$@"; do
    [ ! -f "embedded/$op/manifest" ] || echo "embedded/$op"
done | xargs -P "$(nproc)" -I{} sh -c 'scripts/archive.sh pack {}/images.tar.xz $(sed -n "s/^file=\([^ ]*\) .*/\1/p" {}/manifest)'
