/* The metadata of an AMD code object: the arguments and resources of its kernels. (LLVM, "User Guide for AMDGPU
 * Backend", Code Object V3 to V6 Metadata.) The bytes are not trusted: every read is bounds-checked. */
#ifndef KILN_LOADER_IMAGE_HSACO_H
#define KILN_LOADER_IMAGE_HSACO_H

#include "loader/image/bytes.h"
#include "loader/status.h"

/* The kinds of hidden (implicit) argument: (name, metadata value_kind, provided by kiln). */
#define KILN__HIDDEN_ARGUMENTS(X)                       \
    X(BLOCK_COUNT_X, "hidden_block_count_x", 1)         \
    X(BLOCK_COUNT_Y, "hidden_block_count_y", 1)         \
    X(BLOCK_COUNT_Z, "hidden_block_count_z", 1)         \
    X(GROUP_SIZE_X, "hidden_group_size_x", 1)           \
    X(GROUP_SIZE_Y, "hidden_group_size_y", 1)           \
    X(GROUP_SIZE_Z, "hidden_group_size_z", 1)           \
    X(REMAINDER_X, "hidden_remainder_x", 1)             \
    X(REMAINDER_Y, "hidden_remainder_y", 1)             \
    X(REMAINDER_Z, "hidden_remainder_z", 1)             \
    X(GLOBAL_OFFSET_X, "hidden_global_offset_x", 1)     \
    X(GLOBAL_OFFSET_Y, "hidden_global_offset_y", 1)     \
    X(GLOBAL_OFFSET_Z, "hidden_global_offset_z", 1)     \
    X(GRID_DIMS, "hidden_grid_dims", 1)                 \
    X(DYNAMIC_LDS_SIZE, "hidden_dynamic_lds_size", 1)   \
    X(NONE, "hidden_none", 1)                           \
    X(PRINTF_BUFFER, "hidden_printf_buffer", 0)         \
    X(HOSTCALL_BUFFER, "hidden_hostcall_buffer", 0)     \
    X(MULTIGRID_SYNC, "hidden_multigrid_sync_arg", 0)   \
    X(HEAP_V1, "hidden_heap_v1", 0)                     \
    X(DEFAULT_QUEUE, "hidden_default_queue", 0)         \
    X(COMPLETION_ACTION, "hidden_completion_action", 0) \
    X(PRIVATE_BASE, "hidden_private_base", 0)           \
    X(SHARED_BASE, "hidden_shared_base", 0)             \
    X(QUEUE_PTR, "hidden_queue_ptr", 0)

typedef enum kiln__hidden_kind {
#define KILN__HIDDEN_ENUM(name, text, provided) KILN__HIDDEN_##name,
    KILN__HIDDEN_ARGUMENTS(KILN__HIDDEN_ENUM)
#undef KILN__HIDDEN_ENUM
        KILN__HIDDEN_KIND_COUNT,
    KILN__HIDDEN_UNKNOWN = KILN__HIDDEN_KIND_COUNT
} kiln__hidden_kind;

typedef struct kiln__hidden_argument {
    kiln__hidden_kind kind;
    uint32_t offset; /* offset + size <= kernarg_size, checked */
    uint32_t size;
} kiln__hidden_argument;

enum { KILN__HSACO_HIDDEN_MAX = 32 };

typedef struct kiln__hsaco_kernel {
    kiln__bytes name;        /* this and the next point into the metadata: any bytes but NUL */
    kiln__bytes symbol;      /* what HSA looks up: name.kd */
    uint32_t arguments_size; /* of the explicit arguments: the end of the last one, including padding if it is a struct;
                              * kernarg_size if the metadata lists no arguments */
    uint32_t kernarg_size;   /* of the whole segment */
    uint32_t kernarg_align;
    uint32_t group_bytes; /* static LDS */
    uint32_t private_bytes;
    uint32_t max_threads;
    uint32_t wave_size;
    uint32_t vgprs, sgprs;
    uint32_t vgpr_spills, sgpr_spills;
    bool dynamic_stack;
    uint32_t hidden_count;
    kiln__hidden_argument hidden[KILN__HSACO_HIDDEN_MAX];
} kiln__hsaco_kernel;

typedef struct kiln__hsaco {
    char target[32];              /* "gfx942:sramecc+:xnack-" from e_flags; features not stated are "any" */
    uint32_t code_object_version; /* 3 to 6 */
    uint32_t kernel_count;
    const uint8_t *metadata; /* MessagePack, inside the inspected bytes */
    size_t metadata_size;
    kiln__bytes kernels; /* the metadata from the first kernel on */
} kiln__hsaco;

/* Reads the ELF header and notes and counts the kernels.
 * Returns KILN_OK, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_UNSUPPORTED. */
kiln_status kiln__hsaco_read(const void *bytes, size_t size, kiln__hsaco *out_hsaco);

/* Reads the kernel at *rest, initially hsaco->kernels, and advances *rest to the next; kernel_count calls read all.
 * Returns as kiln__hsaco_read; KILN_ERROR_UNSUPPORTED means more than KILN__HSACO_HIDDEN_MAX hidden arguments. */
kiln_status kiln__hsaco_kernel_next(kiln__bytes *rest, kiln__hsaco_kernel *out_kernel);

/* Reads one kernel's metadata, by number. Returns as kiln__hsaco_kernel_next, or KILN_ERROR_INVALID_ARGUMENT if index
 * is out of range. */
kiln_status kiln__hsaco_kernel_read(const kiln__hsaco *hsaco, uint32_t index, kiln__hsaco_kernel *out_kernel);

#endif
