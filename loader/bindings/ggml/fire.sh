#!/bin/bash
# Fires the images of the binding's own kernels into loader/bindings/ggml/images, with a manifest as those of embedded/ have:
#   fire.sh          fires all
#   fire.sh fresh    checks that they are those of the sources as they are now; needs no compiler
# NVIDIA's drivers compile the one text; each AMD target has an image of its own.
set -euo pipefail
cd "$(dirname "$0")/../../.."
. scripts/fire_common.sh
out=loader/bindings/ggml/images
kernels='map mul_vec'
source_of() { # KERNEL
    echo "loader/bindings/ggml/$1_gpu.c"
}

targets() { # target, kind, version
    scripts/targets.sh nvidia | sed -n '1s/^\([^ ]*\) \([^ ]*\) .*/\1 ptx \2/p'
    scripts/targets.sh amd | sed 's/ / hsaco /'
}

images() { # kernel, target, kind, version
    local kernel
    for kernel in $kernels; do targets | sed "s/^/$kernel /"; done
}

fresh() {
    local kernel target kind version file flags status=0
    while read -r kernel target kind version; do
        file=${kernel}_f32.$target.$kind flags=$(fire_flags f32 "$target" "$kind" "$version")
        grep -q "^file=$file .* source=$(fire_source_hash "$(source_of "$kernel")" "$flags") .* sha256=$(
            sha256sum "$out/$file" | cut -c1-64) " "$out/manifest" && continue
        echo "$out/$file is stale: run loader/bindings/ggml/fire.sh"
        status=1
    done < <(images)
    return $status
}

if [ "${1:-}" = fresh ]; then
    fresh
    exit
fi
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
images | while read -r kernel target kind version; do
    case $kind in
    ptx) scripts/fire_ptx.sh "$stage" "$kernel" f32 "$target" "$version" "$(source_of "$kernel")" ;;
    hsaco) scripts/fire_rocm.sh "$stage" "$kernel" f32 "$target" "$version" "$(source_of "$kernel")" ;;
    esac
done
LC_ALL=C sort "$stage"/*.line >"$stage/manifest"
rm "$stage"/*.line
mkdir -p "$out"
cp "$stage"/* "$out/"
