/* .npy files: what is read, what is refused and why, and what is written. */
#include "loader/cli/npy.h"
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILE_ROOM = 256 * 1024 };

/* Puts the header with a dict into bytes; gives its size. */
static size_t make_header(uint8_t *bytes, unsigned major, const char *dict) {
    size_t length = strlen(dict), offset = major == 1 ? 10 : 12;
    memcpy(bytes, "\x93NUMPY", 6);
    bytes[6] = (uint8_t)major;
    bytes[7] = 0;
    for (size_t i = 8; i < offset; i++)
        bytes[i] = (uint8_t)(length >> (8 * (i - 8)));
    memcpy(bytes + offset, dict, length);
    return offset + length;
}

/* Parses a copy without a byte to spare, so that a sanitizer sees a read beyond the end. */
static bool parse(const uint8_t *bytes, size_t size, npy_header *header, char error[NPY_ERROR_SIZE]) {
    uint8_t *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    error[0] = '\0';
    bool ok = npy_parse_header(exact, size, header, error);
    free(exact);
    return ok;
}

typedef struct good_case {
    const char *dict;
    npy_dtype dtype;
    uint32_t dimensions;
    int64_t shape[4];
    uint64_t data_size;
} good_case;

static const good_case good_cases[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }\n", NPY_F32, 2, {3, 4}, 48},
    {"{'descr': '<f2', 'fortran_order': False, 'shape': (5,), }   \n", NPY_F16, 1, {5}, 10},
    {"{'descr': '<V2', 'fortran_order': False, 'shape': (2, 3, 4)}", NPY_BF16, 3, {2, 3, 4}, 48},
    {"{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", NPY_BF16, 1, {1}, 2},
    {"{'descr': 'bfloat16', 'fortran_order': False, 'shape': (7,)}", NPY_BF16, 1, {7}, 14},
    {"{'descr': '<u2', 'fortran_order': False, 'shape': (7,)}", NPY_U16, 1, {7}, 14},
    {"{'descr': '|i1', 'fortran_order': False, 'shape': (7,)}", NPY_I8, 1, {7}, 7},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (7,)}", NPY_U8, 1, {7}, 7},
    {"{'descr': '>u1', 'fortran_order': False, 'shape': (7,)}", NPY_U8, 1, {7}, 7}, /* one byte has no order */
    {"{'descr': '<i4', 'fortran_order': False, 'shape': (7,)}", NPY_I32, 1, {7}, 28},
    {"{'descr': '<i8', 'fortran_order': False, 'shape': (7,)}", NPY_I64, 1, {7}, 56},
    {"{'descr': '=f4', 'fortran_order': False, 'shape': (7,)}", NPY_F32, 1, {7}, 28},
    {"{'descr': 'f4', 'fortran_order': False, 'shape': (7,)}", NPY_F32, 1, {7}, 28},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()}", NPY_F32, 0, {0}, 4},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4)}", NPY_F32, 2, {0, 4}, 0},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (4,)}", NPY_F32, 1, {4}, 16},
    {"{'shape':(3L,4L),'fortran_order':False,'descr':\"<f4\"}", NPY_F32, 2, {3, 4}, 48},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693951,)}",
     NPY_F32,
     1,
     {2305843009213693951},
     9223372036854775804u},
};

static void reads_what_numpy_writes(void **state) {
    (void)state;
    static uint8_t bytes[FILE_ROOM];
    for (size_t i = 0; i < sizeof good_cases / sizeof *good_cases; i++) {
        const good_case *expected = &good_cases[i];
        for (unsigned major = 1; major <= 3; major++) {
            npy_header header;
            char error[NPY_ERROR_SIZE];
            size_t size = make_header(bytes, major, expected->dict);
            if (!parse(bytes, size, &header, error)) fail_msg("%s: %s", expected->dict, error);
            assert_int_equal(header.dtype, expected->dtype);
            assert_int_equal(header.dimensions, expected->dimensions);
            assert_memory_equal(header.shape, expected->shape, expected->dimensions * sizeof *header.shape);
            assert_int_equal(header.data_offset, size);
            assert_int_equal(header.data_size, expected->data_size);
        }
    }
}

typedef struct bad_case {
    const char *dict;
    const char *error;
} bad_case;

static const bad_case bad_cases[] = {
    {"", "the header ends where '{' should stand"},
    {"{", "the header ends where a string should stand"},
    {"{'descr", "a string of the header has no end"},
    {"{'descr': '<f4'}", "the header lacks 'fortran_order'"},
    {"{'descr': '<f4', 'fortran_order': False}", "the header lacks 'shape'"},
    {"{'fortran_order': False, 'shape': ()}", "the header lacks 'descr'"},
    {"{'descr': '<f4', 'descr': '<f4'}", "the header has 'descr' twice"},
    {"{'descr': '<f4', 'colour': 1}", "the header has an unknown key 'colour'"},
    {"{'descr' '<f4'}", "the header has ''' where ':' should stand"},
    {"{'descr': '<f4' 'shape': ()}", "the header has ''' where ',' or '}' should stand"},
    {"{'descr': '<f4', 'fortran_order': Maybe}", "the header has 'M' where True or False should stand"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': ()} x", "the header has 'x' where the end should stand"},
    {"{'descr': '|O', 'fortran_order': False, 'shape': ()}", "dtype object is pickled Python, which is not read"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", "structured dtypes are not read"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': ()}", "dtype '>f4' is big-endian: only little-endian is read"},
    {"{'descr': '<f8', 'fortran_order': False, 'shape': ()}",
     "dtype '<f8' is none of f32, f16, bf16, u16, i8, u8, i32, i64"},
    {"{'descr': '', 'fortran_order': False, 'shape': ()}", "dtype '' is none of f32, f16, bf16, u16, i8, u8, i32, i64"},
    {"{'descr': 4, 'fortran_order': False, 'shape': ()}", "the header has '4' where a string should stand"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4)}",
     "the array is in Fortran order: save numpy.ascontiguousarray() of it"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}", "the header has '4' where ',' or ')' should stand"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "the header has '-' where a dimension should stand"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3)}", "the shape is a number, not a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "the header has '3' where the shape's '(' should stand"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (", "the header ends where a dimension should stand"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "a dimension is 2^63 or more"},
    {"{'descr': '|u1', 'fortran_order': False, 'shape': (9223372036854775808,)}", "a dimension is 2^63 or more"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807,)}", "the shape has 2^63 bytes or more"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "the shape has 2^63 bytes or more"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4611686018427387904, 4)}",
     "the shape has 2^63 bytes or more"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952,)}", "the shape has 2^63 bytes or more"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1)}",
     "more than 32 dimensions"},
    {"{\x01", "the header has byte 0x01 where a string should stand"},
};

static void refuses_bad_headers(void **state) {
    (void)state;
    static uint8_t bytes[FILE_ROOM];
    static const npy_header zero;
    for (size_t i = 0; i < sizeof bad_cases / sizeof *bad_cases; i++) {
        npy_header header;
        char error[NPY_ERROR_SIZE];
        memset(&header, 0xa5, sizeof header);
        assert_false(parse(bytes, make_header(bytes, 1, bad_cases[i].dict), &header, error));
        assert_string_equal(error, bad_cases[i].error);
        assert_memory_equal(&header, &zero, sizeof header);
    }
}

static void refuses_bad_prefixes(void **state) {
    (void)state;
    uint8_t bytes[128];
    npy_header header;
    char error[NPY_ERROR_SIZE];
    size_t size = make_header(bytes, 2, good_cases[0].dict);
    bytes[6] = 4;
    assert_false(parse(bytes, size, &header, error));
    assert_string_equal(error, "version 4.0 of .npy is not read");
    bytes[6] = 1;
    bytes[7] = 1;
    assert_false(parse(bytes, size, &header, error));
    assert_string_equal(error, "version 1.1 of .npy is not read");
    bytes[7] = 0;
    bytes[6] = 2;
    bytes[11] = 0xff;
    assert_false(parse(bytes, size, &header, error));
    assert_string_equal(error, "a header of 4278190140 bytes is too long");
    bytes[0] = 'P';
    assert_false(parse(bytes, size, &header, error));
    assert_string_equal(error, "not a .npy file");
}

/* No prefix of a good header is one, and none is read beyond its end. */
static void refuses_every_prefix(void **state) {
    (void)state;
    uint8_t bytes[128];
    npy_header header;
    char error[NPY_ERROR_SIZE];
    for (unsigned major = 1; major <= 3; major++) {
        size_t size = make_header(bytes, major, good_cases[0].dict);
        for (size_t cut = 0; cut < size; cut++) {
            assert_false(parse(bytes, cut, &header, error));
            assert_true(strlen(error) > 0);
        }
    }
}

static void writes_what_it_reads(void **state) {
    (void)state;
    const npy_header headers[] = {
        {.dtype = NPY_F32, .dimensions = 2, .shape = {3, 4}},
        {.dtype = NPY_BF16, .dimensions = 1, .shape = {5}},
        {.dtype = NPY_I64, .dimensions = 0},
        {.dtype = NPY_U8, .dimensions = 3, .shape = {0, 1, 2}},
    };
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        char bytes[NPY_WRITTEN_SIZE], error[NPY_ERROR_SIZE];
        npy_header header;
        size_t size = npy_format_header(&headers[i], bytes);
        assert_int_equal(size % 64, 0);
        assert_int_equal(bytes[size - 1], '\n');
        assert_true(parse((const uint8_t *)bytes, size, &header, error));
        assert_int_equal(header.dtype, headers[i].dtype);
        assert_int_equal(header.dimensions, headers[i].dimensions);
        assert_memory_equal(header.shape, headers[i].shape, sizeof header.shape);
        assert_int_equal(header.data_offset, size);
    }
    npy_header longest = {.dtype = NPY_F32, .dimensions = NPY_DIMENSIONS};
    char bytes[NPY_WRITTEN_SIZE];
    for (unsigned i = 0; i < NPY_DIMENSIONS; i++)
        longest.shape[i] = INT64_MAX;
    assert_in_range(npy_format_header(&longest, bytes), 640, NPY_WRITTEN_SIZE);
}

/* ---- Files ------------------------------------------------------------------------------------------------------- */

static char folder[PATH_MAX - 16];
static char path[PATH_MAX];

static int make_folder(void **state) {
    (void)state;
    const char *scratch = getenv("KILN_SCRATCH");
    snprintf(folder, sizeof folder, "%s/npy_test.XXXXXX", scratch ? scratch : ".");
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof path, "%s/x.npy", folder);
    return 0;
}

static int remove_folder(void **state) {
    (void)state;
    unlink(path);
    return rmdir(folder);
}

static void write_file(const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void assert_refused(const char *expected) {
    npy_header header;
    void *data;
    char error[NPY_ERROR_SIZE];
    assert_false(npy_read(path, &header, &data, error));
    assert_string_equal(error, expected);
    assert_null(data);
}

static void reads_exactly_its_file(void **state) {
    (void)state;
    uint8_t bytes[256];
    size_t offset = make_header(bytes, 1, good_cases[0].dict);
    for (size_t i = 0; i < 49; i++)
        bytes[offset + i] = (uint8_t)i;
    npy_header header;
    void *data;
    char error[NPY_ERROR_SIZE];

    write_file(bytes, offset + 48);
    assert_true(npy_read(path, &header, &data, error));
    assert_memory_equal(data, bytes + offset, 48);
    free(data);

    write_file(bytes, offset + 47);
    assert_refused("the file is truncated: it has 117 bytes of 118");
    write_file(bytes, offset + 49);
    assert_refused("the file has 1 bytes after its array");
    write_file(bytes, 0);
    assert_refused("not a .npy file");
}

static void reads_arrays_of_nothing_and_of_one(void **state) {
    (void)state;
    uint8_t bytes[256] = {0};
    npy_header header;
    void *data;
    char error[NPY_ERROR_SIZE];
    write_file(bytes, make_header(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}"));
    assert_true(npy_read(path, &header, &data, error));
    assert_non_null(data);
    free(data);
    write_file(bytes, make_header(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}") + 4);
    assert_true(npy_read(path, &header, &data, error));
    assert_int_equal(header.data_size, 4);
    free(data);
}

/* A file that promises more than there is must not make room for it first. */
static void believes_no_size(void **state) {
    (void)state;
    uint8_t bytes[256];
    size_t size = make_header(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693951,)}");
    write_file(bytes, size);
    char expected[NPY_ERROR_SIZE];
    snprintf(expected, sizeof expected, "the file is truncated: it has %zu bytes of %llu", size,
             9223372036854775804ull + size);
    assert_refused(expected);
}

static void reads_regular_files_only(void **state) {
    (void)state;
    unlink(path);
    assert_refused("No such file or directory");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused("not a regular file");
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused("not a regular file");
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/dev/zero", path), 0);
    assert_refused("not a regular file");
    unlink(path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_numpy_writes),
        cmocka_unit_test(refuses_bad_headers),
        cmocka_unit_test(refuses_bad_prefixes),
        cmocka_unit_test(refuses_every_prefix),
        cmocka_unit_test(writes_what_it_reads),
        cmocka_unit_test(reads_exactly_its_file),
        cmocka_unit_test(reads_arrays_of_nothing_and_of_one),
        cmocka_unit_test(believes_no_size),
        cmocka_unit_test(reads_regular_files_only),
    };
    return cmocka_run_group_tests_name("npy", tests, make_folder, remove_folder);
}
