/* The metadata of a code object: MessagePack in a note of the ELF file. */
#ifndef KILN_TESTS_SIM_AMD_METADATA_H
#define KILN_TESTS_SIM_AMD_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether a kernel must be launched in whole groups: every dimension of its grid is a multiple of the group's. Code
 * object version 5 and later says so; of a file that is damaged, or says nothing, false. */
bool amd_metadata_whole_groups(const uint8_t *bytes, size_t size, const char *kernel);

#endif
