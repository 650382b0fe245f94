/* The kernel descriptors of an AMD code object: what they say is for the hardware, as the metadata is for the host.
 * (LLVM, "User Guide for AMDGPU Backend", Kernel Descriptor.) The two must agree, and there must be code for each
 * kernel: otherwise a listed kernel without code would be noticed only when it is launched. */
#ifndef KILN_LOADER_IMAGE_DESCRIPTOR_H
#define KILN_LOADER_IMAGE_DESCRIPTOR_H

#include "loader/image/elf.h"
#include "loader/image/hsaco.h"

/* The symbols that a driver looks kernels up in; none (count 0) if the file has no such table.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE. */
kiln_status kiln__descriptor_symbols(const kiln__elf *elf, kiln__elf_symbols *out_symbols);

/* The name by which a driver finds a kernel's descriptor, NUL-terminated, in the file; NULL if no symbol has it. */
const char *kiln__descriptor_name(const kiln__elf_symbols *symbols, const kiln__hsaco_kernel *kernel);

/* Checks a kernel's descriptor: it is there, says what the metadata says and points to code.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE. */
kiln_status kiln__descriptor_check(const kiln__elf *elf, const kiln__elf_symbols *symbols,
                                   const kiln__hsaco_kernel *kernel);

#endif
