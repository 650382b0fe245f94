#!/bin/sh
# Static checks over the sources; --format rewrites them in the shape of .clang-format instead. $1 is the C compiler.
# Needs what scripts/deps.sh lists for lint. Exit status 1 if anything is found.
set -eu
c_files=$(find include kernels loader tests docs/examples \( -name '*.c' -o -name '*.h' \) | sort)
scripts=$(find scripts loader tests .ci -name '*.sh' | sort)

if [ "${1-}" = --format ]; then
    # shellcheck disable=SC2086
    clang-format -i $c_files
    exit
fi

failed=0
report() { # NAME STATUS
    if [ "$2" -eq 0 ]; then
        echo "lint: $1: ok"
    else
        echo "lint: $1: failed"
        failed=1
    fi
}

# shellcheck disable=SC2086
clang-format --dry-run -Werror $c_files && status=0 || status=1
report clang-format $status

# Device sources are for device compilers. The bindings of llama.cpp and Python are read where their headers are.
for ggml in "${GGML_DIR:-}" "${XDG_CACHE_HOME:-$HOME/.cache}"/kiln/llama.cpp-*; do
    ggml=$ggml/source/ggml
    [ ! -d "$ggml" ] || break
done
python=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null || true)
export ggml python
tidied=$(find loader kernels -name '*.c' ! -name '*_gpu.c' ! -name '*_gfx*.c' | sort)
[ -d "$ggml" ] || tidied=$(printf '%s\n' "$tidied" | grep -v '^loader/bindings/ggml/')
[ -e "$python/Python.h" ] || tidied=$(printf '%s\n' "$tidied" | grep -v '^loader/bindings/python/fast')
printf '%s\n' "$tidied" | xargs -P "$(nproc)" -n 4 sh -c '
    clang-tidy --quiet --config-file=scripts/clang-tidy --warnings-as-errors="*" "$@" -- -std=c11 -D_GNU_SOURCE -I. \
        -Iinclude -isystem "$ggml/include" -isystem "$ggml/src" -isystem "$python" -DGGML_BACKEND_DL -DKILN_CPU_LEVEL=lint \
        -DKILN_DESCRIBE=softmax 2>/dev/null' tidy && status=0 || status=1
report clang-tidy $status

# shellcheck disable=SC2086
shellcheck -S warning -s bash $scripts .ci/run && status=0 || status=1
report shellcheck $status

# No tabs outside makefiles, no blank at a line's end, a newline at the end of each file.
status=0
text=$(find include kernels loader scripts tests docs README.md Makefile .ci -type f \
    \( -name '*.[ch]' -o -name '*.def' -o -name '*.sh' -o -name '*.md' -o -name Makefile -o -name '*.mk' -o -name run \) | sort)
# shellcheck disable=SC2086
grep -nE '[[:blank:]]+$' $text && status=1
for file in $text; do
    [ "$file" = Makefile ] || [ "${file%.mk}" != "$file" ] || ! grep -n "$(printf '\t')" "$file" /dev/null || status=1
    [ -z "$(tail -c 1 "$file")" ] || { echo "$file: no newline at the end" && status=1; }
done
report whitespace $status

scripts/readme_tables.sh --check && status=0 || status=1
report "README tables" $status
exit $failed
