/* Fat binaries, as nvcc -fatbin writes them: a header, and images one after the other, each with a header of its own.
 * What can be simulated of them is the PTX, which a device takes where there is nothing better. It may be compressed:
 * by LZ4 in blocks, or by Zstandard, for which libzstd is opened. */
#include "tests/sim/cuda/sim_cuda.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_PTX = 1, FLAG_LZ4 = 0x2000, FLAG_ZSTD = 0x8000, TEXT_MAX = 1 << 28 };

/* What nvcc puts around it for its runtime. */
typedef struct wrapper {
    uint32_t magic, version;
    const void *data;
} wrapper;

typedef struct header {
    uint32_t magic;
    uint16_t version, size; /* of this header */
    uint64_t bytes;         /* behind it */
} header;

typedef struct image {
    uint16_t kind, version;
    uint32_t header_size;
    uint64_t padded_size;
    uint32_t compressed_size, rest;
    uint16_t minor, major; /* of PTX */
    uint32_t target;       /* 90 */
    uint32_t name, name_size;
    uint64_t flags, zero, size; /* size: once it is not compressed any more */
} image;

static const uint32_t wrapper_magic = 0x466243b1, header_magic = 0xba55ed50;

static uint32_t magic_of(const void *bytes) {
    uint32_t magic;
    memcpy(&magic, bytes, sizeof magic);
    return magic;
}

bool sim_cuda_is_fatbin(const void *bytes) {
    return magic_of(bytes) == header_magic || magic_of(bytes) == wrapper_magic;
}

/* ---- Decompression: the bytes written, or 0 if they are not as they should be ---- */

/* A length of four bits, and bytes that add to it while they are 255. */
static size_t lz4_length(const uint8_t *from, size_t size, size_t *at, size_t length) {
    enum { MORE = 15 };
    if (length < MORE) return length;
    while (*at < size) {
        const uint8_t added = from[(*at)++];
        length += added;
        if (added != 255) break;
    }
    return length;
}

static size_t lz4(const uint8_t *from, size_t size, uint8_t *to, size_t room) {
    enum { SHORTEST = 4 };
    size_t at = 0, written = 0;
    while (at < size) {
        const uint8_t token = from[at++];
        const size_t literals = lz4_length(from, size, &at, token >> 4);
        if (literals > size - at || literals > room - written) return 0;
        memcpy(to + written, from + at, literals);
        written += literals;
        at += literals;
        if (at == size) break; /* the last one has no match */
        if (size - at < 2) return 0;
        const size_t offset = from[at] | (size_t)from[at + 1] << 8;
        at += 2;
        const size_t length = lz4_length(from, size, &at, token & 15) + SHORTEST;
        if (!offset || offset > written || length > room - written) return 0;
        for (size_t i = 0; i < length; i++, written++)
            to[written] = to[written - offset];
    }
    return written;
}

static size_t zstd(const void *from, size_t size, void *to, size_t room) {
    static size_t (*decompress)(void *to, size_t room, const void *from, size_t size);
    static unsigned (*is_error)(size_t code);
    if (!decompress) {
        void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) return 0;
        *(void **)&is_error = dlsym(library, "ZSTD_isError");
        *(void **)&decompress = dlsym(library, "ZSTD_decompress");
        if (!is_error || !decompress) decompress = NULL;
    }
    if (!decompress) return 0;
    const size_t written = decompress(to, room, from, size);
    return is_error(written) ? 0 : written;
}

/* ---- Images ---- */

static char *text_of(const uint8_t *at, const image *read, char *log, size_t log_size) {
    const uint8_t *bytes = at + read->header_size;
    const bool is_compressed = read->flags & (FLAG_LZ4 | FLAG_ZSTD);
    const size_t size = is_compressed ? read->size : read->padded_size;
    char *text = size < TEXT_MAX ? calloc(size + 1, 1) : NULL;
    size_t written = 0;
    if (text && !is_compressed) memcpy(text, bytes, written = size);
    if (text && read->flags & FLAG_LZ4) written = lz4(bytes, read->compressed_size, (uint8_t *)text, size);
    if (text && read->flags & FLAG_ZSTD) written = zstd(bytes, read->compressed_size, text, size);
    if (written) return text;
    snprintf(log, log_size, "the PTX of a fat binary is damaged%s\n",
             read->flags & FLAG_ZSTD ? ", or libzstd.so.1 is not there to decompress it" : "");
    free(text);
    return NULL;
}

/* The PTX of the highest target that the device takes. */
kiln__cu_result sim_cuda_fatbin_text(const void *bytes, int32_t capability, char **out_text, char *log,
                                     size_t log_size) {
    header file;
    image read, best = {0};
    const uint8_t *at = bytes, *best_at = NULL;
    *out_text = NULL;
    if (magic_of(at) == wrapper_magic) {
        wrapper around;
        memcpy(&around, at, sizeof around);
        at = around.data;
    }
    memcpy(&file, at, sizeof file);
    if (file.magic != header_magic || file.size < sizeof file) {
        snprintf(log, log_size, "no fat binary\n");
        return SIM_CUDA_INVALID_IMAGE;
    }
    at += file.size;
    for (const uint8_t *end = at + file.bytes; at < end; at += read.header_size + read.padded_size) {
        if ((size_t)(end - at) < sizeof read) break;
        memcpy(&read, at, sizeof read);
        if (read.header_size < sizeof read || read.header_size > (size_t)(end - at) ||
            read.padded_size > (size_t)(end - at) - read.header_size || read.compressed_size > read.padded_size)
            break;
        if (read.kind != KIND_PTX || read.target > (uint32_t)capability || read.target < best.target) continue;
        best = read;
        best_at = at;
    }
    if (!best_at) {
        snprintf(log, log_size, "a fat binary without PTX for sm_%d: its cubins cannot be simulated\n", capability);
        return SIM_CUDA_NO_BINARY_FOR_GPU;
    }
    *out_text = text_of(best_at, &best, log, log_size);
    return *out_text ? SIM_CUDA_SUCCESS : SIM_CUDA_INVALID_IMAGE;
}
