/* Argument structs are read by three compilers: each pins its size and every offset. */
#ifndef KILN_KERNELS_COMMON_ARGS_H
#define KILN_KERNELS_COMMON_ARGS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define KILN_ARGS_ASSERT(rule, text) static_assert(rule, text)
#else
#define KILN_ARGS_ASSERT(rule, text) _Static_assert(rule, text)
#endif

#define KILN_ARGS_SIZE(type, size) KILN_ARGS_ASSERT(sizeof(type) == (size), #type ": size")
#define KILN_ARGS_OFFSET(type, field, offset) \
    KILN_ARGS_ASSERT(offsetof(type, field) == (offset), #type ": offset of " #field)

#endif
