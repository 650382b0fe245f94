/* The kernel descriptors of an AMD code object, which are for the hardware what the metadata is for the host. (LLVM,
 * "User Guide for AMDGPU Backend", Kernel Descriptor.) The two must agree, and each kernel must have code: otherwise a
 * listed kernel without code would be noticed only at its launch. */
#ifndef KILN_LOADER_IMAGE_DESCRIPTOR_H
#define KILN_LOADER_IMAGE_DESCRIPTOR_H

#include "loader/image/elf.h"
#include "loader/image/hsaco.h"

/* The symbol table in which a driver looks up kernels; empty if the file has none.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE. */
kiln_status kiln__descriptor_symbols(const kiln__elf *elf, kiln__elf_symbols *out_symbols);

/* The name of a kernel's descriptor symbol, NUL-terminated and in the file; NULL if there is no such symbol. */
const char *kiln__descriptor_name(const kiln__elf_symbols *symbols, const kiln__hsaco_kernel *kernel);

/* Checks that a kernel's descriptor exists, agrees with the metadata and points to code.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE. */
kiln_status kiln__descriptor_check(const kiln__elf *elf, const kiln__elf_symbols *symbols,
                                   const kiln__hsaco_kernel *kernel);

#endif
