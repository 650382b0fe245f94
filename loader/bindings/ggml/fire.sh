#!/bin/bash
# Fires map's images into loader/bindings/ggml/images, with a manifest as those of embedded/ have:
#   fire.sh          fires all
#   fire.sh fresh    checks that they are those of the sources as they are now; needs no compiler
# NVIDIA's drivers compile the one text; each AMD target has an image of its own.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. scripts/fire_common.sh
out=loader/bindings/ggml/images source=loader/bindings/ggml/map_gpu.c

targets() { # target, kind, version
    scripts/targets.sh nvidia | sed -n '1s/^\([^ ]*\) \([^ ]*\) .*/\1 ptx \2/p'
    scripts/targets.sh amd | sed 's/ / hsaco /'
}

fresh() {
    local target kind version flags status=0
    while read -r target kind version; do
        flags=$(fire_flags f32 "$target" "$kind" "$version")
        grep -q "^file=map_f32.$target.$kind .* source=$(fire_source_hash "$source" "$flags") .* sha256=$(
            sha256sum "$out/map_f32.$target.$kind" | cut -c1-64) " "$out/manifest" && continue
        echo "$out/map_f32.$target.$kind is stale: run loader/bindings/ggml/fire.sh"
        status=1
    done < <(targets)
    return $status
}

if [ "${1:-}" = fresh ]; then
    fresh
    exit
fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
targets | while read -r target kind version; do
    case $kind in
    ptx) scripts/fire_ptx.sh "$stage" map f32 "$target" "$version" "$source" ;;
    hsaco) scripts/fire_rocm.sh "$stage" map f32 "$target" "$version" "$source" ;;
    esac
done
LC_ALL=C sort "$stage"/*.line >"$stage/manifest"
rm "$stage"/*.line
mkdir -p "$out"
cp "$stage"/* "$out/"
