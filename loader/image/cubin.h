/* What a cubin, NVIDIA's ELF image, states about itself.
 *
 * The format is not documented; what is read here was found in files that the assembler writes, and agrees with LLVM's
 * notes on them. So the ELF structure is checked strictly, but the rest is advisory: an unknown layout leaves facts at
 * 0
 * ("not known") and does not refuse the image, since the driver may well accept it. */
#ifndef KILN_LOADER_IMAGE_CUBIN_H
#define KILN_LOADER_IMAGE_CUBIN_H

#include "loader/image/elf.h"
#include <kiln/inspect.h>

typedef struct kiln__cubin {
    kiln__elf elf;
    int32_t capability;       /* 90 is sm_90; 0: not known */
    bool exact;               /* it says that it is an 'a' image. No file tells an 'f' image from a plain one */
    uint32_t kernel_count;    /* entry points that the driver finds by name */
    uint32_t reserved_shared; /* bytes of every kernel's shared memory that are the system's */
    kiln__bytes attributes;   /* of the module: .nv.info */
    kiln__elf_symbols symbols;
} kiln__cubin;

enum { KILN__CUBIN_KERNELS_MAX = 4096 };

/* Reads and checks the structure and counts the kernels.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_UNSUPPORTED (another machine; relocatable code, which no driver
 * loads; more kernels than KILN__CUBIN_KERNELS_MAX). */
kiln_status kiln__cubin_read(const void *bytes, size_t size, kiln__cubin *out_cubin);

/* Reads the next kernel from *cursor on, which starts at 0; kernel_count calls read all. The ABI keeps no count of
 * spills. Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_NOT_FOUND (there are no more), KILN_ERROR_UNSUPPORTED
 * (a parameter aligned to more than 16 bytes). */
kiln_status kiln__cubin_kernel_next(const kiln__cubin *cubin, size_t *cursor, kiln_kernel_facts *out_kernel);

#endif
