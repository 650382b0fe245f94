# The build itself: nothing is made twice, what changed is made again, and little is needed.
. tests/tap.sh
make_quiet() { make --no-print-directory "config=$KILN_CONFIG" "$@"; }

nothing_to_do() {
    make_quiet -q "$@" || {
        make_quiet -n "$@" | head -n 5
        return 1
    }
}

would_run() { # PATTERN MAKE-ARGUMENTS...
    local pattern=$1 plan
    shift
    plan=$(make_quiet -n "$@") && printf '%s\n' "$plan" | grep -E -e "$pattern"
}

would_not_run() {
    local pattern=$1 plan
    shift
    plan=$(make_quiet -n "$@") && ! printf '%s\n' "$plan" | grep -E -e "$pattern"
}

every_target_has_help() {
    local target status=0 help
    help=$(make help)
    for target in all demo check bench images images-check sim examples docs lint format install help; do
        printf '%s\n' "$help" | grep -qE "^  $target +[a-z]" || {
            echo "$target has no line"
            status=1
        }
    done
    return $status
}

own_folders() {
    local config
    for config in debug sanitize thread coverage; do
        make -n -B "config=$config" all | grep -qE -- "-o build/$config/obj/loader/status.o" || return 1
    done
}

# scripts/deps.sh installs it or says what to install.
is_silent_without_compiler() {
    ! make_quiet CC=absent-cc help 2>&1 >/dev/null | grep absent-cc
}

check "an unchanged tree makes nothing again" nothing_to_do all examples test-programs
check "other CFLAGS make the objects again" would_run '-DOTHER .*loader/status\.c' all "CFLAGS=${CFLAGS-} -DOTHER"
check "another compiler makes the objects again" would_run '^[^ ]*clang.* -S .*loader/status\.c|^c99 .* -S .*loader/status\.c' all CC=c99
check "a changed public header makes what includes it again" would_run 'loader/status\.c' all -W include/kiln/kiln.h
check "a changed source makes itself again" would_run 'loader/status\.c' all -W loader/status.c
check "and nothing else" would_not_run 'loader/select\.c' all -W loader/status.c
check "the targets list makes the CPU builds again" would_run 'softmax_cpu\.c' all -W loader/targets.def
check "configurations have folders of their own" own_folders
refuse "an unknown configuration" make config=fast
check "every target has its line in make help" every_target_has_help
check "no complaint of a compiler that is not installed yet" is_silent_without_compiler

# A copy of the sources, built with nothing on the PATH but a C compiler, make, xz and what every Debian has. A debug
# build of two operators needs what any other does: the other operators are made by the same rules.
bare_build() {
    local tool package bin=$KILN_SCRATCH/bin tree=$KILN_SCRATCH/tree
    mkdir -p "$bin" "$tree"
    for tool in cc as ld ar make xz; do
        ln -s "$(command -v "$tool")" "$bin/$tool" || return 1
    done
    for package in coreutils sed mawk grep gzip tar findutils diffutils dash; do
        dpkg -L "$package" 2>/dev/null | grep -E '^(/usr)?/bin/' | while read -r tool; do
            [ -x "$tool" ] && ln -sf "$tool" "$bin/${tool##*/}"
        done
    done
    ln -sf mawk "$bin/awk"
    ln -sf "$(command -v sh)" "$bin/sh"
    tar -cf - --exclude=./build --exclude=./.git . | tar -xf - -C "$tree" || return 1
    sed -i '/^KILN_OPERATOR(/{/(gemm)\|(softmax)/!d}' "$tree/kernels/ops.def"
    env -i "PATH=$bin" HOME=/ make -C "$tree" -j2 config=debug all && "$tree/build/debug/kiln" --help
}
if [ "$KILN_CONFIG" != release ]; then
    skip "a build with cc, make and xz alone" "one configuration is enough"
elif [ ! -d /usr/share/doc/coreutils ] && ! command -v dpkg >/dev/null; then
    skip "a build with cc, make and xz alone" "needs dpkg to know what every Debian has"
else
    check "a build with cc, make and xz alone" bare_build
fi
finish
