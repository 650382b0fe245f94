# Every public header compiles alone, twice included, in C11 and in C++, without a warning, and says what it declares.
. tests/tap.sh

compile() { # COMPILER LANGUAGE STANDARD HEADER
    printf '#include <kiln/%s>\n#include <kiln/%s>\nint main(void) { return (int)kiln_version(); }\n' "$4" "$4" |
        "$1" -x "$2" "-std=$3" -Iinclude -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -fsyntax-only -
}

for header in include/kiln/*.h include/kiln/ops/*.h; do
    name=${header#include/kiln/}
    check "$name in C11" compile "${CC:-cc}" c c11 "$name"
    if command -v c++ >/dev/null; then
        check "$name in C++11" compile c++ c++ c++11 "$name"
        check "$name in C++20" compile c++ c++ c++20 "$name"
    else
        skip "$name in C++" "there is no c++ here"
    fi
done

# What tests/unit/documented.h checks: every function that returns a status says which.
all_are_checked() {
    local name missing=0
    for name in $(sed -n 's/^KILN_API kiln_status \(kiln_[a-z_]*\)(.*/\1/p' include/kiln/{kiln,plan,inspect}.h); do
        grep -q "^#define ${name%_sized}(" tests/unit/documented.h || { echo "$name is not checked" && missing=1; }
    done
    return $missing
}
check "every function's statuses are checked against its comment" all_are_checked

# Structs that cannot grow without breaking programs compiled before: each is passed with its size, or has room for fields
# to come. Those of the list are kiln's own memory, of which programs only have pointers, or are what they are for good.
all_may_grow() {
    local name missing=0 owned='kiln_tree kiln_operator kiln_plan_step kiln_preload_result kiln_cpu_span kiln_bundle'
    local fixed='kiln_stream kiln_launch_config kiln_block_copy kiln_softmax_state'
    for name in $(sed -n 's/^typedef struct \(kiln_[a-z0-9_]*\) {$/\1/p' include/kiln/*.h include/kiln/ops/*.h); do
        [[ " $owned $fixed " == *" $name "* || $name == *_params ]] && continue
        grep -qE "_sized\(const $name \*" include/kiln/*.h && continue
        awk -v name="$name" '$0 == "typedef struct " name " {" { inside = 1 } inside && /reserved/ { found = 1 }
            /^}/ { inside = 0 } END { exit !found }' include/kiln/*.h include/kiln/ops/*.h && continue
        echo "$name has no size and no reserved fields"
        missing=1
    done
    return $missing
}
check "every public struct can grow" all_may_grow

if command -v doxygen >/dev/null; then
    check "every function of the API reference has a comment" make --no-print-directory docs
else
    skip "every function of the API reference has a comment" "there is no doxygen here"
fi
finish
