/* Image inspection: reads the properties that a PTX, cubin or HSACO file states, and checks whether an image of a
 * bundle is intact. kiln pack and kiln verify use it. The conventions of <kiln/kiln.h> apply. */
#ifndef KILN_INSPECT_H
#define KILN_INSPECT_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The properties stated in a file of device code. */
typedef struct kiln_image_facts {
    kiln_image_kind kind;
    char target[32];         /* as stated by the file: a cubin for sm_90a has target sm_90 and exact set */
    uint32_t exact;          /* cubin: non-zero if it is marked as an 'a' image */
    uint32_t format_version; /* PTX ISA * 10, code object version, cubin ELF ABI version */
    uint32_t driver_version; /* as in kiln_image */
    uint32_t kernel_count;   /* may exceed kernel_room */
    uint32_t reserved[8];
} kiln_image_facts;

/* A kernel of an inspected file. Its name may be of any length, contains no NUL byte and is not necessarily
 * NUL-terminated. */
typedef struct kiln_kernel_facts {
    const char *name; /* points into the inspected bytes */
    size_t name_size;
    kiln_kernel_info info; /* info.name is NULL */
    uint64_t reserved[2];
} kiln_kernel_facts;

/* Reads a PTX, cubin or HSACO file from memory and lists its kernels. The bytes may be untrusted. kernels has room for
 * kernel_room entries and may be NULL if kernel_room is 0.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_CORRUPT_IMAGE (the error text states the defect and its
 * location); KILN_ERROR_UNSUPPORTED (device code of a kind or version that kiln does not support). */
KILN_API kiln_status kiln_image_inspect(const void *bytes, size_t size, kiln_image_facts *out_facts,
                                        kiln_kernel_facts *kernels, size_t kernel_room);

/* Verifies an image of a bundle: that its SHA-256 matches, that its structure is valid, and that its target and kernels
 * are those stated in the table; for a CPU image, that every function is present.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_UNSUPPORTED,
 * KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_image_verify(const kiln_part *part, const kiln_image *image);

/* Computes the SHA-256 of size bytes (FIPS 180-4). Never fails. */
KILN_API void kiln_sha256(const void *bytes, size_t size, uint8_t out_digest[32]);

#ifdef __cplusplus
}
#endif

#endif
