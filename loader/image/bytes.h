/* Byte ranges in an image, and unaligned little-endian fields. */
#ifndef KILN_LOADER_IMAGE_BYTES_H
#define KILN_LOADER_IMAGE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct kiln__bytes {
    const uint8_t *at;
    size_t size;
} kiln__bytes;

/* Whether [offset, offset + length) lies in [0, size), computed without overflow. */
static inline bool kiln__within(uint64_t offset, uint64_t length, uint64_t size) {
    return offset <= size && length <= size - offset;
}

/* Whether the bytes equal text, without its NUL. */
static inline bool kiln__bytes_are(const void *at, size_t size, const char *text) {
    return size == strlen(text) && (size == 0 || memcmp(at, text, size) == 0);
}

static inline uint16_t kiln__read_u16(const uint8_t *at) {
    return (uint16_t)(at[0] | at[1] << 8);
}

static inline uint32_t kiln__read_u32(const uint8_t *at) {
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t kiln__read_u64(const uint8_t *at) {
    return (uint64_t)kiln__read_u32(at) | (uint64_t)kiln__read_u32(at + 4) << 32;
}

#endif
