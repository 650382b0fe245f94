#!/bin/sh
# Puts Triton Inference Server into a folder, out of PyPI's nvidia-pytriton: install.sh VERSION FOLDER. What is there
# already is left alone. Exit status 77: it cannot be had here.
set -eu
version=$1 folder=$2
server=$folder/pytriton/tritonserver/bin/tritonserver
[ ! -x "$server" ] || exit 0
unavailable() {
    echo "triton: $1: the backend is built and not run" >&2
    exit 77
}
[ "$(uname -m)" = x86_64 ] || unavailable "PyPI has the server for x86-64 alone"
mkdir -p "$folder"
python3 -m pip download --quiet --no-deps --dest "$folder/wheel" "nvidia-pytriton==$version" ||
    unavailable "nvidia-pytriton $version cannot be downloaded"
python3 -m zipfile -e "$folder"/wheel/nvidia_pytriton-*.whl "$folder.new"
rm -r "$folder/wheel"
chmod +x "$folder.new/pytriton/tritonserver/bin/tritonserver"
mv "$folder.new"/* "$folder"
rmdir "$folder.new"
"$server" --help >/dev/null 2>"$folder/help" || [ $? -eq 1 ] || # as it ends when it has shown its options
    unavailable "the server does not start: $(tail -n 1 "$folder/help")"
