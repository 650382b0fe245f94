/* Image inspection: what a PTX, cubin or HSACO file states about itself, and whether an image of a bundle is intact.
 * kiln pack and kiln verify are built on it. The conventions of <kiln/kiln.h> hold. */
#ifndef KILN_INSPECT_H
#define KILN_INSPECT_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a file of device code states about itself. */
typedef struct kiln_image_facts {
    kiln_image_kind kind;
    char target[32];         /* as far as the file states it: a cubin for sm_90a states sm_90 and exact */
    uint32_t exact;          /* cubin: non-zero if it states that it is an 'a' image */
    uint32_t format_version; /* PTX ISA * 10, code object version, cubin ELF ABI version */
    uint32_t driver_version; /* as in kiln_image */
    uint32_t kernel_count;   /* may exceed the room given */
    uint32_t reserved[8];
} kiln_image_facts;

/* A kernel of an inspected file. Its name may be of any length; it contains no NUL byte and need not be followed
 * by one. */
typedef struct kiln_kernel_facts {
    const char *name; /* in the inspected bytes */
    size_t name_size;
    kiln_kernel_info info; /* info.name is NULL */
    uint64_t reserved[2];
} kiln_kernel_facts;

/* Reads a PTX, cubin or HSACO file from memory and lists its kernels. The bytes need not be trusted. kernels has room
 * for kernel_room entries and may be NULL if that is 0.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_CORRUPT_IMAGE (the error text says what is wrong, and
 * where); KILN_ERROR_UNSUPPORTED (device code of a kind or version that kiln does not read). */
KILN_API kiln_status kiln_image_inspect(const void *bytes, size_t size, kiln_image_facts *out_facts,
                                        kiln_kernel_facts *kernels, size_t kernel_room);

/* Checks an image of a bundle: that its SHA-256 matches, that its structure is valid, and that it is for the target and
 * has the kernels that the table states; for a CPU image, that every function is present.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_UNSUPPORTED,
 * KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_image_verify(const kiln_part *part, const kiln_image *image);

/* Computes the SHA-256 of size bytes (FIPS 180-4). Never fails. */
KILN_API void kiln_sha256(const void *bytes, size_t size, uint8_t out_digest[32]);

#ifdef __cplusplus
}
#endif

#endif
