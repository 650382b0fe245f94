#!/bin/bash
# Builds the llama.cpp that libggml-kiln.so is built for and tested with: build.sh VERSION FOLDER
# It comes from PyPI, inside the source distribution of llama-cpp-python. FOLDER/source has it, FOLDER/build/bin the programs
# that the tests run and the libraries of ggml, loaded at run time. Does nothing where that was done before. Four minutes of a processor, once.
set -euo pipefail
version=$1 folder=$2
sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e

[ ! -e "$folder/built" ] || exit 0
echo "llama.cpp of llama-cpp-python $version is built in $folder"
mkdir -p "$folder"
cd "$folder"
rm -rf sdist source build
python3 -m pip download --quiet --no-deps --no-binary llama-cpp-python --dest sdist "llama-cpp-python==$version"
echo "$sha256  sdist/llama_cpp_python-$version.tar.gz" | sha256sum --check --quiet
mkdir source
tar -xzf "sdist/llama_cpp_python-$version.tar.gz" -C source --strip-components=3 "llama_cpp_python-$version/vendor/llama.cpp"
rm -r sdist

# What takes the time is llama.cpp's C++, which is to be right and need not be fast: it is not optimised; ggml is.
echo 'set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")' >ggml.cmake
cmake -S source -B build -G Ninja -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE="-O0 -DNDEBUG" -DCMAKE_PROJECT_ggml_INCLUDE="$PWD/ggml.cmake" -DBUILD_SHARED_LIBS=ON \
    -DGGML_BACKEND_DL=ON -DGGML_NATIVE=OFF -DGGML_RPC=ON -DGGML_OPENMP=OFF -DGGML_CCACHE=OFF -DGGML_LLAMAFILE=OFF \
    -DGGML_CPU_REPACK=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_BUILD_APP=OFF \
    >cmake.log 2>&1 || { cat cmake.log && exit 1; }
nice cmake --build build --target ggml-cpu ggml-rpc ggml-rpc-server llama-completion

# The test makes its own numbers, and is slow unless it is optimised a little.
clang++-19 -O1 -w -Isource/ggml/include -o build/bin/test-backend-ops source/tests/test-backend-ops.cpp \
    -Lbuild/bin -lggml -lggml-base -Wl,-rpath,"\$ORIGIN"
# CMake leaves this one out where backends are loaded at run time: it calls a function of the CPU's.
clang++-19 -O0 -w -Isource/include -Isource/common -Isource/ggml/include -Isource/vendor \
    -o build/bin/llama-convert-llama2c-to-ggml source/examples/convert-llama2c-to-ggml/convert-llama2c-to-ggml.cpp \
    -Lbuild/bin -lllama-common -lllama -lggml -lggml-base -l:libggml-cpu.so -Wl,-rpath,"\$ORIGIN"
find build -name '*.o' -delete
touch built
