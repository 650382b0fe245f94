# make install, and consumers that find kiln by pkg-config and by CMake.
. tests/tap.sh
case $KILN_CONFIG in sanitize | thread | coverage | fuzz) skip_all "config=$KILN_CONFIG is not for installing" ;; esac
prefix=/opt/kiln
root=$KILN_SCRATCH/root
at=$root$prefix
libraries=$at/lib
CC=${CC:-cc}

installed() {
    local file
    for file in include/kiln/kiln.h include/kiln/ops.h lib/libkiln.a lib/libkiln.so lib/libkiln.so.0 lib/pkgconfig/kiln.pc \
        lib/cmake/kiln/kilnConfig.cmake lib/cmake/kiln/kilnConfigVersion.cmake bin/kiln share/man/man1/kiln.1; do
        [ -s "$at/$file" ] || {
            echo "$file is missing"
            return 1
        }
    done
    [ "$(readlink "$libraries/libkiln.so")" = libkiln.so.0 ]
}

no_placeholder() {
    ! grep -rn '@[A-Z]*@' "$libraries/pkgconfig" "$libraries/cmake"
}

flags() { # PKG-CONFIG-OPTIONS...
    PKG_CONFIG_PATH=$libraries/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root pkg-config "$@" kiln
}

# A folder that was moved: pkg-config takes the prefix from where kiln.pc is.
flags_follow_the_folder() {
    local found
    found=$(PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --define-prefix --variable=libdir kiln) && echo "$found" &&
        [ "$found" = "$libraries" ]
}

# The flags are several words.
# shellcheck disable=SC2046
shared_consumer() {
    "$CC" -o "$KILN_SCRATCH/shared" docs/examples/quickstart.c $(flags --cflags --libs) &&
        LD_LIBRARY_PATH=$libraries "$KILN_SCRATCH/shared"
}

# shellcheck disable=SC2046
static_consumer() {
    "$CC" -o "$KILN_SCRATCH/static" docs/examples/quickstart.c $(flags --cflags) "$libraries/libkiln.a" \
        $(flags --libs --static | tr ' ' '\n' | grep -vE '^-(lkiln|L)') && "$KILN_SCRATCH/static"
}

# A copy of the folder, made as its page says.
# shellcheck disable=SC2046
llama_consumer() {
    cp -r docs/examples/llama "$KILN_SCRATCH/copy" &&
        "$CC" -Wall -Werror "$KILN_SCRATCH"/copy/*.c $(flags --cflags --libs) -lm -o "$KILN_SCRATCH/llama" &&
        LD_LIBRARY_PATH=$libraries "$KILN_SCRATCH/llama" --help
}

version_agrees() {
    [ "$(flags --modversion)" = "$(awk '/define KILN_VERSION_(MAJOR|MINOR|PATCH)/ { v = v dot $3; dot = "." } END { print v }' \
        include/kiln/kiln.h)" ]
}

cmake_consumer() { # VERSION
    local project=$KILN_SCRATCH/cmake-$1
    mkdir -p "$project"
    cp docs/examples/quickstart.c "$project/"
    cat >"$project/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(consumer C)
find_package(Threads REQUIRED)
find_package(kiln $1 REQUIRED)
add_executable(shared quickstart.c)
target_link_libraries(shared kiln::kiln)
add_executable(static quickstart.c)
target_link_libraries(static kiln::static)
END
    env -u CFLAGS -u LDFLAGS cmake -S "$project" -B "$project/build" -DCMAKE_PREFIX_PATH="$at" -DCMAKE_C_COMPILER="$CC" &&
        env -u MAKEFLAGS cmake --build "$project/build" && "$project/build/shared" && "$project/build/static"
}

installed_program() {
    "$at/bin/kiln" --help
}

uninstalled() {
    make uninstall "config=$KILN_CONFIG" "DESTDIR=$root" "PREFIX=$prefix" && [ -z "$(find "$root" ! -type d)" ]
}

check "make install" make install "config=$KILN_CONFIG" "DESTDIR=$root" "PREFIX=$prefix"
check "everything is there" installed
check "no placeholder is left in kiln.pc and the CMake package" no_placeholder
if command -v pkg-config >/dev/null; then
    check "pkg-config gives the version of kiln.h" version_agrees
    check "pkg-config --define-prefix finds a folder that was moved" flags_follow_the_folder
    check "a consumer by pkg-config, shared" shared_consumer
    check "a consumer by pkg-config, static" static_consumer
    check "a copy of docs/examples/llama" llama_consumer
else
    skip "consumers by pkg-config" "there is no pkg-config here"
fi
if command -v cmake >/dev/null; then
    check "a consumer by CMake, shared and static" cmake_consumer 0.1
    refuse "CMake refuses a later minor version" cmake_consumer 0.2
else
    skip "a consumer by CMake" "there is no cmake here"
fi
check "the installed program runs" installed_program
check "make uninstall leaves no file" uninstalled
finish
