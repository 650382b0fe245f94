#!/bin/bash
# Prints the path of one release of NVIDIA's assembler, fetching it first where it is not on this machine:
#   ptxas.sh VERSION      12.0.140, as the last column of KILN_NVIDIA in loader/targets.def has them, and
#                         KILN_TUNED_ASSEMBLER of sources that need a newer one
# It is the ptxas on the PATH if that is the release; else it comes from PyPI's nvidia-cuda-nvcc-cu12, of which the assembler
# alone is kept, in ~/.cache/kiln. Fetching needs python3 with pip.
set -euo pipefail
version=${1:?ptxas.sh VERSION}
digests='
12.0.140 332c1b822fcab8d86db02236973deac3661cd4b122e0e54158ae38fd7f6d1def
12.4.131 1173444a1de6fd2d0f183409c91ef7d05f66a55839dad8d8ab642b2596b79b0b
12.8.93 c960a4f238b17d5c5d3c01ad2bbc1ebd2c5aecc459cb4d223bff10b45f9b8fca
12.9.86 983b0e9283855979f42cebfd80d43f9b6e786eb84f03f7570bf941c4d3a3c461
'

release() { # PTXAS
    "$1" --version 2>/dev/null | sed -n 's/.*, V\(.*\)/\1/p'
}

if [ "$(release ptxas)" = "$version" ]; then
    command -v ptxas
    exit
fi
kept=${XDG_CACHE_HOME:-$HOME/.cache}/kiln/ptxas-$version
if [ "$(release "$kept")" != "$version" ]; then
    digest=$(echo "$digests" | sed -n "s/^$version //p")
    [ -n "$digest" ] || {
        echo "ptxas.sh: $version is none that is fetched: $(echo "$digests" | cut -d' ' -f1 | xargs)" >&2
        exit 2
    }
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    python3 -m pip download -q --no-deps --disable-pip-version-check -d "$work" "nvidia-cuda-nvcc-cu12==$version" >&2
    python3 -m zipfile -e "$work"/*.whl "$work/wheel"
    echo "$digest  $work/wheel/nvidia/cuda_nvcc/bin/ptxas" | sha256sum --check --quiet >&2
    mkdir -p "${kept%/*}"
    install -m 755 "$work/wheel/nvidia/cuda_nvcc/bin/ptxas" "$kept.$$"
    mv "$kept.$$" "$kept" # whole, also if several fetch it at once
fi
echo "$kept"
