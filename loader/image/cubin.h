/* What a cubin, NVIDIA's ELF image, states about itself.
 *
 * The format is undocumented; what is read here was found in ptxas's output and agrees with LLVM's notes. So the ELF
 * structure is checked strictly, but the rest is advisory: if the layout is unknown, facts are 0 ("not known") and the
 * image is not refused, since the driver may well accept it. */
#ifndef KILN_LOADER_IMAGE_CUBIN_H
#define KILN_LOADER_IMAGE_CUBIN_H

#include "loader/image/elf.h"
#include <kiln/inspect.h>

typedef struct kiln__cubin {
    kiln__elf elf;
    int32_t capability;       /* 90 is sm_90; 0: unknown */
    bool exact;               /* marked as an 'a' image. 'f' images cannot be told from plain ones */
    uint32_t kernel_count;    /* entry points that the driver finds by name */
    uint32_t reserved_shared; /* bytes of each kernel's shared memory that the system reserves */
    kiln__bytes attributes;   /* the module's, .nv.info */
    kiln__elf_symbols symbols;
} kiln__cubin;

enum { KILN__CUBIN_KERNELS_MAX = 4096 };

/* Reads and checks the structure and counts the kernels.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_UNSUPPORTED (another machine; relocatable code, which no driver
 * loads; more kernels than KILN__CUBIN_KERNELS_MAX). */
kiln_status kiln__cubin_read(const void *bytes, size_t size, kiln__cubin *out_cubin);

/* Reads the next kernel and advances *cursor, initially 0; kernel_count calls read all. Cubins do not record spills.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_NOT_FOUND (there are no more), KILN_ERROR_UNSUPPORTED (a
 * parameter aligned to more than 16 bytes). */
kiln_status kiln__cubin_kernel_next(const kiln__cubin *cubin, size_t *cursor, kiln_kernel_facts *out_kernel);

#endif
