#include "loader/cli/npy.h"
#include "tests/fuzz/targets.h"

#include <stdlib.h>
#include <string.h>

void fuzz_npy(const uint8_t *bytes, size_t size) {
    npy_header header;
    char error[NPY_ERROR_SIZE];
    if (!npy_parse_header(bytes, size, &header, error)) {
        if (!memchr(error, 0, sizeof error) || !error[0]) abort();
        return;
    }
    if (npy_dtype_find(npy_dtype_name(header.dtype)) != header.dtype) abort();
    if (header.data_size % npy_dtype_size(header.dtype) != 0) abort();
    if (header.data_offset > size || header.data_size >> 63 || header.dimensions > NPY_DIMENSIONS) abort();
    /* What is written of it reads as the same. */
    char written[NPY_WRITTEN_SIZE];
    npy_header again;
    size_t written_size = npy_format_header(&header, written);
    if (!npy_parse_header((const uint8_t *)written, written_size, &again, error)) abort();
    if (again.dtype != header.dtype || again.dimensions != header.dimensions || again.data_size != header.data_size ||
        memcmp(again.shape, header.shape, sizeof again.shape) != 0)
        abort();
}
