/* A pointer to device memory that a kernel does not take directly from its arguments, but from shared memory, or as one
 * of several. AMD's compiler does not see which memory it points to, and would check at each access. */
#ifndef KILN_KERNELS_COMMON_GLOBAL_H
#define KILN_KERNELS_COMMON_GLOBAL_H

#if defined(__HIP__)
#define KILN_GLOBAL(type, pointer) ((type *)(__attribute__((address_space(1))) type *)(uint64_t)(pointer))
#else
#define KILN_GLOBAL(type, pointer) ((type *)(pointer))
#endif

#endif
