/* NumPy's .npy files, versions 1 to 3: one dense array in C order.
 *
 * npy_parse_header accepts any bytes, trusts none and never reads beyond them. npy_read accepts only regular files of
 * exactly the size that the header implies. */
#ifndef KILN_CLI_NPY_H
#define KILN_CLI_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The element types: (name, the word in messages, bytes, the descr that is written).
 * NumPy has no bfloat16; ml_dtypes writes its own as '<V2' (older versions as 'bfloat16'), others store the bits as
 * uint16. */
#define NPY_DTYPE_MAP(X)      \
    X(F32, "f32", 4, "<f4")   \
    X(F16, "f16", 2, "<f2")   \
    X(BF16, "bf16", 2, "<V2") \
    X(U16, "u16", 2, "<u2")   \
    X(I8, "i8", 1, "|i1")     \
    X(U8, "u8", 1, "|u1")     \
    X(I32, "i32", 4, "<i4")   \
    X(I64, "i64", 8, "<i8")

typedef enum npy_dtype {
#define NPY_DTYPE_ENUM(name, word, size, descr) NPY_##name,
    NPY_DTYPE_MAP(NPY_DTYPE_ENUM)
#undef NPY_DTYPE_ENUM
        NPY_DTYPE_COUNT
} npy_dtype;

const char *npy_dtype_name(npy_dtype dtype);
size_t npy_dtype_size(npy_dtype dtype);

/* The dtype of that name, or NPY_DTYPE_COUNT. */
npy_dtype npy_dtype_find(const char *name);

enum {
    NPY_HEADER_LIMIT = 64 * 1024 + 12, /* longest header accepted, including what precedes its dict */
    NPY_DIMENSIONS = 32,               /* NumPy's own limit before 2.0 */
    NPY_ERROR_SIZE = 256,
};

typedef struct npy_header {
    npy_dtype dtype;
    uint32_t dimensions; /* 0: a single element */
    int64_t shape[NPY_DIMENSIONS];
    uint64_t data_offset; /* of the elements in the file */
    uint64_t data_size;   /* in bytes; below 2^63, as is the product of the nonzero dimensions */
} npy_header;

/* Reads a header from the start of a file. size may be less than the file's: NPY_HEADER_LIMIT bytes always suffice. On
 * failure returns false, with a sentence that does not name the file in error, and zeroes *out_header. The sentence may
 * quote bytes of the file unescaped: escape it. */
bool npy_parse_header(const uint8_t *bytes, size_t size, npy_header *out_header, char error[NPY_ERROR_SIZE]);

/* Writes the header of version 1.0, padded to 64 bytes, for dtype, dimensions and shape. Returns its size, at most
 * NPY_WRITTEN_SIZE. */
enum { NPY_WRITTEN_SIZE = 1024 };
size_t npy_format_header(const npy_header *header, char bytes[NPY_WRITTEN_SIZE]);

/* Reads a whole file. The caller frees *out_data with free(); it is not NULL even without elements. On failure returns
 * false with a sentence in error, as npy_parse_header does. */
bool npy_read(const char *path, npy_header *out_header, void **out_data, char error[NPY_ERROR_SIZE]);

#endif
