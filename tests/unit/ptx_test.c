/* The reader of PTX: real texts, and what a hostile one may have in it. */
#include "loader/image/ptx.h"
#include "tests/unit/image_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEADER ".version 8.4\n.target sm_90a\n.address_size 64\n"

static kiln_status read_all(const void *bytes, size_t size) {
    kiln__ptx ptx;
    KILN__TRY(kiln__ptx_read(bytes, size, &ptx));
    kiln__ptx_place place = ptx.body;
    kiln_kernel_facts kernel;
    for (uint32_t i = 0; i < ptx.kernel_count; i++) {
        KILN__TRY(kiln__ptx_kernel_next(&ptx, &place, &kernel));
        assert_true(kernel.name_size > 0 && !memchr(kernel.name, 0, kernel.name_size));
    }
    assert_int_equal(kiln__ptx_kernel_next(&ptx, &place, &kernel), KILN_ERROR_NOT_FOUND);
    return KILN_OK;
}

/* Reads a text from memory of exactly its size. */
static kiln_status read_text(const char *text) {
    image_file image = image_copy(text, strlen(text));
    kiln_status status = read_all(image.bytes, image.size);
    free(image.bytes);
    return status;
}

/* Reads the first kernel of a text and how many there are. */
static kiln_status read_kernel(const char *text, kiln__ptx *ptx, kiln_kernel_facts *kernel) {
    KILN__TRY(kiln__ptx_read(text, strlen(text), ptx));
    kiln__ptx_place place = ptx->body;
    return kiln__ptx_kernel_next(ptx, &place, kernel);
}

static void assert_kernel(const kiln__ptx *ptx, kiln__ptx_place *place, const char *name, kiln_kernel_info wanted) {
    kiln_kernel_facts kernel;
    assert_int_equal(kiln__ptx_kernel_next(ptx, place, &kernel), KILN_OK);
    assert_name(kernel.name, kernel.name_size, name);
    assert_int_equal(kernel.info.arguments_size, wanted.arguments_size);
    assert_int_equal(kernel.info.shared_bytes, wanted.shared_bytes);
    assert_int_equal(kernel.info.max_threads, wanted.max_threads);
    assert_int_equal(kernel.info.registers, 0);
}

static void real_texts(void **state) {
    (void)state;
    static const struct {
        const char *file, *target;
        int32_t version;
    } cases[] = {{"sm_75.ptx", "sm_75", 63}, {"sm_90a.ptx", "sm_90a", 80}, {"sm_120f.ptx", "sm_120f", 88}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        image_file image = image_read(cases[i].file);
        assert_true(kiln__ptx_is(image.bytes, image.size));
        kiln__ptx ptx;
        assert_int_equal(kiln__ptx_read(image.bytes, image.size, &ptx), KILN_OK);
        assert_string_equal(ptx.target, cases[i].target);
        assert_int_equal(ptx.version, cases[i].version);
        assert_int_equal(ptx.kernel_count, 3);
        kiln__ptx_place place = ptx.body;
        assert_kernel(&ptx, &place, "scale", (kiln_kernel_info){.arguments_size = 24, .max_threads = 256});
        assert_kernel(&ptx, &place, "turn", (kiln_kernel_info){.arguments_size = 12, .shared_bytes = 256});
        assert_kernel(&ptx, &place, "mixed", (kiln_kernel_info){.arguments_size = 20});
        free(image.bytes);
    }
}

/* A parameter list and its size, which follows from C's rules for a struct without a padded end. */
static void parameter_lists(void **state) {
    (void)state;
    static const struct {
        const char *list;
        uint32_t size;
    } cases[] = {
        {"", 0},
        {"()", 0},
        {"( )", 0},
        {"(.param .u32 a)", 4},
        {"(.param .u8 a, .param .u16 b, .param .u8 c)", 5},
        {"(.param .u8 a, .param .f64 b, .param .b32 c)", 20},
        {"(.param .align 16 .b8 a[20])", 20},
        {"(.param .u8 a, .param .align 16 .b8 b[20], .param .u8 c)", 37},
        {"(.param .b8 a[3], .param .u16 b)", 6},
        {"(.param .u32 a[2][3])", 24},
        {"(.param .u32 a[0x10])", 64},
        {"(.param .u32 a[010])", 32},
        {"(.param .u32 a[4U])", 16},
        {"(.param .u32 a[0])", 0},
        {"(.param .v4 .f32 a)", 16},
        {"(.param .u8 a, .param .v2 .f32 b)", 16},
        {"(.param .b128 a)", 16},
        {"(.param .u64 .ptr .global .align 16 a, .param .u8 b)", 9},
        {"(.param .u64 .ptr a)", 8},
        {"(.param .u8 a, .param .align 1 .f64 b)", 9},
        {"(.param .f16 a, .param .f16x2 b)", 8},
        {"(.param .u8 a, .param .texref t)", 16},
        {"/* , */(// )\n.param/**/.u32/* ; */a/* { */)", 4},
        {"(.param.u32 a,.param.u32 b)", 8},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        kiln__ptx ptx;
        kiln_kernel_facts kernel;
        snprintf(text, sizeof text, HEADER ".visible .entry k%s { ret; }", cases[i].list);
        assert_int_equal(read_kernel(text, &ptx, &kernel), KILN_OK);
        assert_int_equal(kernel.info.arguments_size, cases[i].size);
        assert_int_equal(ptx.kernel_count, 1);
    }
}

static void thread_limits(void **state) {
    (void)state;
    static const struct {
        const char *directives;
        uint32_t threads;
    } cases[] = {
        {"", 0},
        {".maxntid 256", 256},
        {".maxntid 16, 8", 128},
        {".maxntid 8,4,2", 64},
        {".reqntid 32, 1, 1", 32},
        {".maxntid 256 .minnctapersm 2 .maxnreg 64", 256},
        {".minnctapersm 2 .maxntid 128,1,1", 128},
        {".pragma \"nounroll;\\\"{\", \"b\"; .maxntid 64", 64},
        {".reqnctapercluster 2, 1, 1 .explicitcluster .maxntid 96", 96},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        kiln__ptx ptx;
        kiln_kernel_facts kernel;
        snprintf(text, sizeof text, HEADER ".visible .entry k() %s { ret; }", cases[i].directives);
        assert_int_equal(read_kernel(text, &ptx, &kernel), KILN_OK);
        assert_int_equal(kernel.info.max_threads, cases[i].threads);
    }
}

static void shared_memory(void **state) {
    (void)state;
    static const struct {
        const char *module, *body;
        uint32_t bytes;
    } cases[] = {
        {"", ".shared .align 4 .b8 s[256];", 256},
        {"", ".reg .b32 %r<2>; .shared .u8 a; .shared .f64 b;", 16},
        {"", ".shared .b32 a, b[3], c;", 20},
        {"", "{ .shared .b32 a; } L: .shared .b32 b;", 8},
        {"", "ld.shared.u32 %r1, [s]; st.volatile.shared.f32 [s], %f1;", 0},
        {".extern .shared .align 16 .b8 dynamic[];", ".shared .b32 a;", 4},
        {".shared .align 4 .b8 common[64];", ".shared .b32 a;", 0}, /* which kernels share it is not known */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        kiln__ptx ptx;
        kiln_kernel_facts kernel;
        snprintf(text, sizeof text, HEADER "%s .visible .entry k() { %s ret; }", cases[i].module, cases[i].body);
        assert_int_equal(read_kernel(text, &ptx, &kernel), KILN_OK);
        assert_int_equal(kernel.info.shared_bytes, cases[i].bytes);
    }
}

/* What is a kernel and what is none: comments, strings, functions, declarations and data are stepped over. */
static void which_are_kernels(void **state) {
    (void)state;
    static const struct {
        const char *body;
        uint32_t kernels;
    } cases[] = {
        {"", 0},
        {".visible .entry k() { ret; }", 1},
        {".weak .entry k() { ret; }", 1},
        {".entry k() { ret; }", 0}, /* the driver does not find it by name */
        {".visible .entry k();", 0},
        {".visible .entry k() { ret; } .visible .entry l() { ret; }", 2},
        {".visible .entry k(); .visible .entry k() { ret; }", 1},
        {".visible .func f() { .visible .entry k() { ret; } }", 0},
        {".visible .func (.param .b32 r) f(.param .b32 a); .entry k() { ret; }", 0},
        {".visible .func f() { ret; } .entry k() { ret; }", 0},
        {"// .visible .entry k() { ret; }\n", 0},
        {"/* .visible .entry k() { ret; } */", 0},
        {".file 1 \".visible .entry k() { ret; }\"", 0},
        {".global .align 4 .b8 t[4] = {1, 2, 3, 4}; .visible .entry k() { ret; }", 1},
        {".section .debug_str { .b8 123, 125 } .visible .entry $_%k() { { ret; } }", 1},
        {".visible .entry k() { // }\n /* } */ .file 1 \"}\" \n ret; }", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        kiln__ptx ptx;
        snprintf(text, sizeof text, HEADER "%s", cases[i].body);
        assert_int_equal(kiln__ptx_read(text, strlen(text), &ptx), KILN_OK);
        assert_int_equal(ptx.kernel_count, cases[i].kernels);
        assert_int_equal(read_text(text), KILN_OK);
    }
}

static void headers(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int32_t version; /* 0: refused */
        const char *target_or_error;
    } cases[] = {
        {".version 6.3 .target sm_75 .address_size 64", 63, "sm_75"},
        {" \t\r\n//x\n/* y */.version 8.8\n.target sm_120f,debug, texmode_independent\n.address_size 64", 88,
         "sm_120f"},
        {".version 10.2 .target sm_100a .address_size 64", 102, "sm_100a"},
        {".target sm_75", 0, "line 1: \".version\" is missing"},
        {".version 8.4", 0, "\".target\" is missing"},
        {".version 8 .target sm_75", 0, ".version is not of the form 8.4"},
        {".version 8.40 .target sm_75", 0, ".version is not of the form 8.4"},
        {".version 8x4 .target sm_75", 0, ".version is not of the form 8.4"},
        {".version x.4 .target sm_75", 0, ".version is not of the form 8.4"},
        {".version", 0, ".version is not of the form 8.4"},
        {".version 123.4 .target sm_75", 0, ".version is not of the form 8.4"},
        {".version 8.4 .target compute_75", 0, ".target does not name an sm_ target"},
        {".version 8.4\n.target sm_75b", 0, "line 2: .target does not name an sm_ target"},
        {".version 8.4 .target sm_75000000000000", 0, ".target does not name an sm_ target"},
        {".version 8.4 .target \"sm_75\"", 0, ".target does not name an sm_ target"},
        {".version 8.4 .target sm_75 .address_size 32", 0, "32-bit code is not supported"},
        {".version 8.4 .target sm_75 .address_size", 0, "a number of at most 32 bits is missing"},
        {".version 8.4 .target sm_75", 0, "32-bit code is not supported"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kiln__ptx ptx;
        kiln_status status = kiln__ptx_read(cases[i].text, strlen(cases[i].text), &ptx);
        if (cases[i].version) {
            assert_int_equal(status, KILN_OK);
            assert_int_equal(ptx.version, cases[i].version);
            assert_string_equal(ptx.target, cases[i].target_or_error);
        } else {
            assert_true(status == KILN_ERROR_CORRUPT_IMAGE || status == KILN_ERROR_UNSUPPORTED);
            assert_error_has(cases[i].target_or_error);
        }
    }
}

static void broken_texts(void **state) {
    (void)state;
    static const struct {
        const char *body;
        kiln_status status;
        const char *text;
    } cases[] = {
        {"/* no end", KILN_ERROR_CORRUPT_IMAGE, "line 4: a comment does not end"},
        {"/*/", KILN_ERROR_CORRUPT_IMAGE, "a comment does not end"},
        {".file 1 \"no end", KILN_ERROR_CORRUPT_IMAGE, "a string does not end"},
        {".file 1 \"no end\\", KILN_ERROR_CORRUPT_IMAGE, "a string does not end"},
        {".file 1 \"no\nend\"", KILN_ERROR_CORRUPT_IMAGE, "line 4: a string does not end"},
        {"\n\n\x1b[2J", KILN_ERROR_CORRUPT_IMAGE, "line 6: a byte outside comments and strings"},
        {"\xff", KILN_ERROR_CORRUPT_IMAGE, "no printable ASCII"},
        {"}", KILN_ERROR_CORRUPT_IMAGE, "a brace closes that was not opened"},
        {".func f() {", KILN_ERROR_CORRUPT_IMAGE, "the text ends within braces"},
        {".visible .entry", KILN_ERROR_CORRUPT_IMAGE, "a kernel has no name"},
        {".visible .entry .entry", KILN_ERROR_CORRUPT_IMAGE, "a kernel has no name"},
        {".visible .entry \"k\"()", KILN_ERROR_CORRUPT_IMAGE, "a kernel has no name"},
        {".visible .entry k", KILN_ERROR_CORRUPT_IMAGE, "the text ends before a kernel's body"},
        {".visible .entry k()", KILN_ERROR_CORRUPT_IMAGE, "the text ends before a kernel's body"},
        {".visible .entry k() .pragma \"x\"", KILN_ERROR_CORRUPT_IMAGE, "the text ends within .pragma"},
        {".visible .entry k() {", KILN_ERROR_CORRUPT_IMAGE, "the text ends within a kernel"},
        {".visible .entry k() { { }", KILN_ERROR_CORRUPT_IMAGE, "the text ends within a kernel"},
        {".visible .entry k(", KILN_ERROR_CORRUPT_IMAGE, "\".param\" is missing"},
        {".visible .entry k(.param .u32 a", KILN_ERROR_CORRUPT_IMAGE, "\")\" is missing"},
        {".visible .entry k(.param .u32 a,)", KILN_ERROR_CORRUPT_IMAGE, "\".param\" is missing"},
        {".visible .entry k(.param a)", KILN_ERROR_CORRUPT_IMAGE, "a variable has no type"},
        {".visible .entry k(.param .u32)", KILN_ERROR_CORRUPT_IMAGE, "a variable has no name"},
        {".visible .entry k(.param .q32 a)", KILN_ERROR_UNSUPPORTED, "a type or property that is not known"},
        {".visible .entry k(.param .align 0 .b8 a[4])", KILN_ERROR_CORRUPT_IMAGE, ".align is not a power of two"},
        {".visible .entry k(.param .align 32 .b8 a[32])", KILN_ERROR_UNSUPPORTED, "aligned to 32 bytes"},
        {".visible .entry k(.param .u64 a, .param .align 128 .b8 b[128])", KILN_ERROR_UNSUPPORTED, "at most 16"},
        {".visible .entry k(.param .align 3 .b8 a[4])", KILN_ERROR_CORRUPT_IMAGE, ".align is not a power of two"},
        {".visible .entry k(.param .align x .b8 a[4])", KILN_ERROR_CORRUPT_IMAGE, "a number of at most 32 bits"},
        {".visible .entry k(.param .b8 a[)", KILN_ERROR_CORRUPT_IMAGE, "a number of at most 32 bits"},
        {".visible .entry k(.param .b8 a[08])", KILN_ERROR_CORRUPT_IMAGE, "a number of at most 32 bits"},
        {".visible .entry k(.param .b8 a[0xg])", KILN_ERROR_CORRUPT_IMAGE, "a number of at most 32 bits"},
        {".visible .entry k(.param .b8 a[4294967296])", KILN_ERROR_CORRUPT_IMAGE, "a number of at most 32 bits"},
        {".visible .entry k(.param .b8 a[4)", KILN_ERROR_CORRUPT_IMAGE, "\"]\" is missing"},
        {".visible .entry k(.param .u64 a[4294967295])", KILN_ERROR_CORRUPT_IMAGE, "an array has more than 4 GB"},
        {".visible .entry k(.param .u8 a[65536][65537])", KILN_ERROR_CORRUPT_IMAGE, "an array has more than 4 GB"},
        {".visible .entry k(.param .u8 a[4294967295], .param .u8 b)", KILN_ERROR_CORRUPT_IMAGE,
         "variables take more than 4 GB"},
        {".visible .entry k() .maxntid 65536, 65536, 65536 { }", KILN_ERROR_CORRUPT_IMAGE, "more than 2^32 threads"},
        {".visible .entry k() .maxntid x { }", KILN_ERROR_CORRUPT_IMAGE, "a number of at most 32 bits"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, HEADER "%s", cases[i].body);
        assert_int_equal(read_text(text), cases[i].status);
        assert_error_has(cases[i].text);
        assert_null(strchr(kiln_last_error(), '\x1b'));
    }
}

static void a_nul_byte_anywhere(void **state) {
    (void)state;
    static const char text[] = HEADER "// \0 \n";
    assert_int_equal(read_all(text, sizeof text - 1), KILN_ERROR_CORRUPT_IMAGE);
    assert_error_has("a NUL byte at offset 48: a driver would stop there");
    assert_int_equal(read_all(HEADER, sizeof HEADER), KILN_ERROR_CORRUPT_IMAGE);
}

static void names_of_any_length(void **state) {
    (void)state;
    static const int lengths[] = {1, 127, 128, 300, 70000};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        static char text[80000], name[70001];
        memset(name, 'n', (size_t)lengths[i]);
        name[lengths[i]] = '\0';
        snprintf(text, sizeof text, HEADER ".visible .entry %s() { ret; }", name);
        kiln__ptx ptx;
        kiln_kernel_facts kernel;
        assert_int_equal(read_kernel(text, &ptx, &kernel), KILN_OK);
        assert_name(kernel.name, kernel.name_size, name);
    }
}

/* Four megabytes of each thing that is read piece by piece: the work grows with the text, not with its square. */
static void huge_texts(void **state) {
    (void)state;
    static const char *const pieces[] = {"/**/",      "//\n", "{}", ".file 1 \"x\" ",
                                         ".visible ", "x",    "\n", ".visible .entry k(){}\n"};
    enum { SIZE = 1 << 22 };
    char *text = malloc(SIZE);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t length = strlen(pieces[i]), size = sizeof HEADER - 1;
        memcpy(text, HEADER, size);
        for (; size + length <= SIZE; size += length)
            memcpy(text + size, pieces[i], length);
        kiln__ptx ptx;
        assert_int_equal(kiln__ptx_read(text, size, &ptx), KILN_OK);
    }
    free(text);
}

static void what_is_not_ptx(void **state) {
    (void)state;
    assert_false(kiln__ptx_is("", 0));
    assert_false(kiln__ptx_is(".versions", 9));
    assert_false(kiln__ptx_is("/*", 2));
    assert_false(kiln__ptx_is("\".version\"", 10));
    assert_true(kiln__ptx_is(" /* a */ // b\n\t.version", 23));
}

static void broken_files(void **state) {
    (void)state;
    static const char *const files[] = {PTX_FILES};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        image_break(files[i], read_all);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_texts),    cmocka_unit_test(parameter_lists),     cmocka_unit_test(thread_limits),
        cmocka_unit_test(shared_memory), cmocka_unit_test(which_are_kernels),   cmocka_unit_test(headers),
        cmocka_unit_test(broken_texts),  cmocka_unit_test(a_nul_byte_anywhere), cmocka_unit_test(names_of_any_length),
        cmocka_unit_test(huge_texts),    cmocka_unit_test(what_is_not_ptx),     cmocka_unit_test(broken_files),
    };
    return cmocka_run_group_tests_name("ptx", tests, NULL, NULL);
}
