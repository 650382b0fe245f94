# README.md: its program compiles, runs and prints what is said; the tables of operators are those of the lists.
. tests/tap.sh

block() { # LANGUAGE NUMBER: the text of the n-th such code block
    awk -v fence="\`\`\`$1" -v wanted="$2" '
        $0 == fence { n++; inside = n == wanted; next }
        /^```/ { inside = 0 }
        inside' README.md
}

is_the_example() {
    block c 1 | diff - docs/examples/quickstart.c
}

short_enough() {
    [ "$(block c 1 | wc -l)" -le 32 ]
}

builds_and_runs() {
    local flags=''
    case $KILN_CONFIG in
    sanitize) flags=-fsanitize=address,undefined ;;
    thread) flags=-fsanitize=thread ;;
    coverage) flags=--coverage ;;
    esac
    block c 1 >"$KILN_SCRATCH/program.c"
    # shellcheck disable=SC2086
    ${CC:-cc} -std=c11 -Wall -Wextra -Werror -Iinclude -o "$KILN_SCRATCH/program" "$KILN_SCRATCH/program.c" \
        "$KILN_BUILD/libkiln.a" -pthread -ldl -lm $flags && "$KILN_SCRATCH/program" >"$KILN_SCRATCH/out"
}

prints_what_is_said() {
    block text 1 | diff - "$KILN_SCRATCH/out"
}

check "the program is docs/examples/quickstart.c" is_the_example
check "the program is short" short_enough
check "the program builds and runs" builds_and_runs
check "it prints what README.md says" prints_what_is_said
check "the tables of operators are those of the lists" scripts/readme_tables.sh --check
finish
