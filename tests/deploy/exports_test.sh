# What the libraries show and what they ask of the system.
. tests/tap.sh
case $KILN_CONFIG in sanitize | thread | coverage | fuzz) skip_all "config=$KILN_CONFIG puts symbols of its own into the libraries" ;; esac

exports_only_kiln() {
    local others
    others=$(nm -D --defined-only "$KILN_BUILD/libkiln.so" | awk '{ print $3 }' | grep -vE '^kiln_[a-z0-9_]*(@@KILN_0)?$|^KILN_0' |
        grep -v '^kiln__')
    printf '%s\n' "$others"
    [ -z "$others" ] && ! nm -D --defined-only "$KILN_BUILD/libkiln.so" | grep 'kiln__'
}

# Every function that the headers declare.
exports_all() {
    local missing
    missing=$(comm -23 <(declared) <(nm -D --defined-only "$KILN_BUILD/libkiln.so" | awk '{ print $3 }' | sed 's/@.*//' | sort))
    printf '%s\n' "$missing"
    [ -z "$missing" ] && [ "$(declared | wc -l)" -gt 100 ]
}

# Inline functions end in no symbol; their exported form carries _sized.
declared() {
    printf '#include <kiln/ops.h>\n' | ${CC:-cc} -E -P -Iinclude - >"$KILN_SCRATCH/headers"
    comm -23 <(grep -oE '\bkiln_[a-z0-9_]+\(' "$KILN_SCRATCH/headers" | sort -u) \
        <(tr '\n' ' ' <"$KILN_SCRATCH/headers" | grep -oE 'static inline kiln_status kiln_[a-z0-9_]+\(' | sed 's/.* //' | sort -u) |
        tr -d '('
}

# What is not an operator's function stands in the page by its name; an operator's is one of those that the headers have.
listed_in_docs() {
    nm -D --defined-only "$KILN_BUILD/libkiln.so" | awk '{ print $3 }' | sed 's/@@.*//' | grep '^kiln_' |
        grep -vE '_(f32|f16|bf16)(_workspace_size)?_sized$' | sort >"$KILN_SCRATCH/exported"
    sed -n '/^```text$/,/^```$/p' docs/foreign-functions.md | grep -oE 'kiln_[a-z0-9_]+' | sort |
        diff "$KILN_SCRATCH/exported" -
}

soname() {
    readelf -d "$KILN_BUILD/libkiln.so" | grep -q 'SONAME.*\[libkiln\.so\.0\]'
}

# A driver keeps pointers into the library (HSA's event handler) after the caller's dlclose.
stays_mapped() {
    readelf -d "$KILN_BUILD/libkiln.so" | grep -q 'FLAGS_1.*NODELETE'
}

needs_libc_alone() {
    local others
    others=$(readelf -d "$KILN_BUILD/libkiln.so" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
        grep -vE '^(libc|libm|libdl|libpthread|ld-linux-[a-z0-9_-]*)\.so\.[0-9]$')
    printf '%s\n' "$others"
    [ -z "$others" ]
}

# A library that prints, exits, aborts or reads the environment would have to ask for one of these.
asks_nothing_forbidden() {
    ! nm -u "$KILN_BUILD/libkiln.a" | grep -wE \
        'printf|puts|putchar|fputs|vprintf|perror|stdout|stderr|exit|_exit|abort|__assert_fail|getenv|secure_getenv|environ'
}

hidden_in_archive() {
    ! nm -g --defined-only "$KILN_BUILD/examples/quickstart" | grep -E '^dynamic' &&
        ! nm -D --defined-only "$KILN_BUILD/examples/quickstart" | grep kiln
}

check "libkiln.so exports kiln_ names alone" exports_only_kiln
check "libkiln.so exports every function of the headers" exports_all
check "docs/foreign-functions.md lists every other exported name" listed_in_docs
check "the SONAME of libkiln.so is libkiln.so.0" soname
check "libkiln.so stays mapped after dlclose" stays_mapped
check "libkiln.so needs the C library alone" needs_libc_alone
check "the library does not print, exit, abort or read the environment" asks_nothing_forbidden
check "a program with libkiln.a exports nothing of it" hidden_in_archive
finish
