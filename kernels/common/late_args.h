/* A kernel's arguments, read where they are used, for those that are rarely needed. AMD's compiler reads all arguments
 * first and keeps them, two scalar registers for each pointer, of which a wave has about a hundred. */
#ifndef KILN_KERNELS_COMMON_LATE_ARGS_H
#define KILN_KERNELS_COMMON_LATE_ARGS_H

#include "kernels/common/device.h"

#if defined(__HIP__)
/* The kernarg segment is the struct, since there are no hidden arguments. */
KILN_INLINE const void *kiln_late_segment(void) {
    auto segment = __builtin_amdgcn_kernarg_segment_ptr();
    __asm__ volatile("" : "+s"(segment));
    return (const void *)segment;
}
#define KILN_LATE_ARGS(args_type, args) ((const args_type *)kiln_late_segment())
#else
#define KILN_LATE_ARGS(args_type, args) (&(args))
#endif

#endif
