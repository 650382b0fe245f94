/* The images of tests/unit/images, whole and broken. */
#ifndef KILN_TESTS_UNIT_IMAGE_FILES_H
#define KILN_TESTS_UNIT_IMAGE_FILES_H

#include "loader/image/bytes.h"
#include "loader/status.h"

/* The committed files. */
#define HSACO_FILES                                                                                     \
    "gfx90a.hsaco", "gfx90a_xnack_off.hsaco", "gfx942_both_on.hsaco", "gfx1030.hsaco", "gfx1201.hsaco", \
        "gfx11_generic.hsaco"
#define CUBIN_FILES "sm_75.cubin", "sm_80.cubin", "sm_90a.cubin", "sm_100f.cubin", "sm_120.cubin"
#define PTX_FILES   "sm_75.ptx", "sm_90a.ptx", "sm_120f.ptx"

/* An image in memory of exactly its size, so that a sanitizer sees a read beyond it. free(bytes). */
typedef struct image_file {
    uint8_t *bytes;
    size_t size;
} image_file;

/* Reads tests/unit/images/<name>; fails the test if it cannot. */
image_file image_read(const char *name);

/* A copy of the first size bytes. */
image_file image_copy(const void *bytes, size_t size);

void image_put_u16(image_file *image, size_t offset, uint16_t value);
void image_put_u32(image_file *image, size_t offset, uint32_t value);
void image_put_u64(image_file *image, size_t offset, uint64_t value);

/* A reader under test, wrapped: reads everything there is to read. */
typedef kiln_status (*image_reader)(const void *bytes, size_t size);

/* Gives the reader each beginning of the file, and the file with each of its bytes in turn replaced by 0, 1, 0x7f,
 * 0x80, 0xff. It must give KILN_OK, CORRUPT_IMAGE or UNSUPPORTED, the latter two with a text of printable characters.
 */
void image_break(const char *name, image_reader read);

/* The same check for one input. */
void image_try(const void *bytes, size_t size, image_reader read);

/* That a kernel's name is this one. */
void assert_name(const void *name, size_t size, const char *wanted);

/* That the last error's text has this in it. */
void assert_error_has(const char *part);

#endif
