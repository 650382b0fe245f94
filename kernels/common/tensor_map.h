/* A tensor map among the arguments of a kernel: CUtensorMap's bytes, which the host side encodes at the call.
 *
 * Parameters are aligned by their address in constant memory, where they begin at 0x210 on sm_90: a map, which must be
 * at a multiple of 64 bytes, has an offset of 48 more than one (48, 112, ... 240) in a struct that is itself aligned to
 * 8. A kernel's struct begins with the arguments that the operator's other kernels take. */
#ifndef KILN_KERNELS_COMMON_TENSOR_MAP_H
#define KILN_KERNELS_COMMON_TENSOR_MAP_H

#include "kernels/common/args.h"

typedef struct kiln_tensor_map {
    uint64_t words[16];
} kiln_tensor_map;

/* Whether a tensor map may be at the offset on sm_90. */
#define KILN_TENSOR_MAP_FITS_SM90(offset) ((offset) % 64 == 48)

#endif
