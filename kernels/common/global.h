/* A pointer to the device's memory that a kernel has from elsewhere than directly from its arguments: from shared
 * memory, or one of several. AMD's compiler does not see where it points to, and would ask at each access. */
#ifndef KILN_KERNELS_COMMON_GLOBAL_H
#define KILN_KERNELS_COMMON_GLOBAL_H

#if defined(__HIP__)
#define KILN_GLOBAL(type, pointer) ((type *)(__attribute__((address_space(1))) type *)(uint64_t)(pointer))
#else
#define KILN_GLOBAL(type, pointer) ((type *)(pointer))
#endif

#endif
