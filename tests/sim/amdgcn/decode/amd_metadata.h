/* The metadata of a code object: MessagePack in a note of the ELF file. */
#ifndef KILN_TESTS_SIM_AMD_METADATA_H
#define KILN_TESTS_SIM_AMD_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a code object says of a kernel; zeros of a file that is damaged, or says nothing. */
typedef struct amd_metadata {
    bool whole_groups; /* it must be launched so: every dimension of its grid is a multiple of the group's; from version
                          5 on */
    uint32_t group_max; /* the most work-items of a group; 0: not said */
} amd_metadata;

amd_metadata amd_metadata_read(const uint8_t *bytes, size_t size, const char *kernel);

#endif
