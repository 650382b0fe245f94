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

if command -v doxygen >/dev/null; then
    check "every function of the API reference has a comment" make --no-print-directory docs
else
    skip "every function of the API reference has a comment" "there is no doxygen here"
fi
finish
