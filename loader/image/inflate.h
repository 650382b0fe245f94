/* Decompression of gzip data. */
#ifndef KILN_LOADER_IMAGE_INFLATE_H
#define KILN_LOADER_IMAGE_INFLATE_H

#include "loader/image/bytes.h"
#include <kiln/kiln.h>

/* Decompresses one gzip member (RFC 1952) without optional fields, of method DEFLATE (RFC 1951), to exactly size bytes.
 * The bytes are not trusted. The CRC is not checked: damage is detected by the image's SHA-256. Allocates a few KB, and
 * frees them.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE (out may then have been written), KILN_ERROR_OUT_OF_MEMORY. */
kiln_status kiln__inflate(kiln__bytes packed, uint8_t *out, size_t size);

/* Decompresses *image's data if it is compressed. *out_memory, which the caller frees, then holds the data; else it is
 * NULL.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_OUT_OF_MEMORY; on failure *image is unchanged. */
kiln_status kiln__image_unpack(kiln_image *image, void **out_memory);

#endif
