/* Elements of a tensor of ids, positions or slots with 32 or 64 bits: kiln_index_type. The includer (device.h, cpu.h)
 * defines KILN_INLINE. */
#ifndef KILN_KERNELS_COMMON_INDEX_H
#define KILN_KERNELS_COMMON_INDEX_H

#include <stdint.h>

/* Element number i. A negative element becomes a number beyond every size. */
KILN_INLINE uint64_t kiln_index(const void *indices, uint32_t is_64, uint64_t i) {
    return is_64 ? (uint64_t)((const int64_t *)indices)[i] : (uint64_t)((const int32_t *)indices)[i];
}

#endif
