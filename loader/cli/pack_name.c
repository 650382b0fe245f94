/* Names that are valid for a function or a variable in C and C++. */
#include "loader/cli/pack.h"
#include <dlfcn.h>
#include <string.h>

static bool is_one_of(const char *text, const char *const *words, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], text) == 0) return true;
    return false;
}

/* Of C11, C23 and C++20, and what compilers take for one in their GNU modes. */
static const char *const keywords[] = {
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "co_await",
    "co_return",
    "co_yield",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "typeof",
    "typeof_unqual",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
};

/* Macros of <stddef.h> and of compilers that are no keywords, and what a program has already. Those of <stdint.h> end
 * in _MAX, _MIN, _C or _WIDTH. */
static const char *const taken[] = {"NULL", "offsetof", "linux", "unix", "i386", "main", "unreachable"};

static bool ends_in(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

const char *pack_name_fault(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    if (!text[0] || !strchr(letters, text[0]) || text[strspn(text, more)]) return "is not a C identifier";
    if (is_one_of(text, keywords, CLI_COUNT(keywords))) return "is a keyword of C or C++, not a C identifier";
    if (text[0] == '_' || strstr(text, "__")) return "is reserved: it begins with _ or has __ in it";
    if (ends_in(text, "_t")) return "is reserved: names that end in _t are types of POSIX";
    if (ends_in(text, "_MAX") || ends_in(text, "_MIN") || ends_in(text, "_C") || ends_in(text, "_WIDTH"))
        return "is reserved: <stdint.h> has macros that end so";
    if (strncmp(text, "kiln_", 5) == 0 || strncmp(text, "KILN_", 5) == 0) return "is reserved: kiln's names begin so";
    if (is_one_of(text, taken, CLI_COUNT(taken))) return "is taken by a macro or by main";
    if (dlsym(RTLD_DEFAULT, text)) return "is taken: the C library has that name";
    return NULL;
}
