/* The subset of the CUDA driver's binary interface that kiln calls, declared here so that no toolkit header is needed.
 *
 * Handles are pointers to the driver's own incomplete structs, so an application's CUstream is a kiln__cu_stream.
 * tests/unit/cuda_abi_test.c compares every line of this file and of symbols.def with a toolkit's cuda.h. */
#ifndef KILN_LOADER_CUDA_ABI_H
#define KILN_LOADER_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int kiln__cu_result;        /* CUresult; 0 is success */
typedef unsigned int kiln__cu_enum;          /* any of the driver's enumerations */
typedef int kiln__cu_device;                 /* CUdevice */
typedef unsigned long long kiln__cu_address; /* CUdeviceptr */

typedef struct CUctx_st *kiln__cu_context;
typedef struct CUmod_st *kiln__cu_module;
typedef struct CUfunc_st *kiln__cu_function;
typedef struct CUstream_st *kiln__cu_stream;
typedef struct CUevent_st *kiln__cu_event;
struct CUtensorMap_st; /* 128 bytes, aligned to 64 */
struct CUuuid_st;      /* 16 bytes */

/* Every constant of the driver that kiln uses: (name without CU_, value). */
#define KILN__CU_NUMBER_MAP(X)                                \
    X(DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)              \
    X(DEVICE_ATTRIBUTE_WARP_SIZE, 10)                         \
    X(DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)              \
    X(DEVICE_ATTRIBUTE_PCI_BUS_ID, 33)                        \
    X(DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 34)                     \
    X(DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 50)                     \
    X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)          \
    X(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)          \
    X(DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97) \
    X(DEVICE_ATTRIBUTE_HOST_NUMA_ID, 134)                     \
    X(FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                \
    X(FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                    \
    X(FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                     \
    X(FUNC_ATTRIBUTE_NUM_REGS, 4)                             \
    X(FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)        \
    X(FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 14)   \
    X(JIT_ERROR_LOG_BUFFER, 5)                                \
    X(JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6)                     \
    X(LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                        \
    X(LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                  \
    X(LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)  \
    X(LAUNCH_ATTRIBUTE_PRIORITY, 8)                           \
    X(STREAM_CAPTURE_MODE_RELAXED, 2)                         \
    X(STREAM_CAPTURE_STATUS_NONE, 0)                          \
    X(STREAM_NON_BLOCKING, 1)                                 \
    X(EVENT_DEFAULT, 0)                                       \
    X(EVENT_DISABLE_TIMING, 2)                                \
    X(MEMHOSTALLOC_PORTABLE, 1)                               \
    X(MEMHOSTREGISTER_PORTABLE, 1)                            \
    X(TENSOR_MAP_DATA_TYPE_UINT8, 0)                          \
    X(TENSOR_MAP_DATA_TYPE_UINT16, 1)                         \
    X(TENSOR_MAP_DATA_TYPE_UINT32, 2)                         \
    X(TENSOR_MAP_DATA_TYPE_TFLOAT32, 11)                      \
    X(TENSOR_MAP_INTERLEAVE_NONE, 0)                          \
    X(TENSOR_MAP_SWIZZLE_NONE, 0)                             \
    X(TENSOR_MAP_SWIZZLE_32B, 1)                              \
    X(TENSOR_MAP_SWIZZLE_64B, 2)                              \
    X(TENSOR_MAP_SWIZZLE_128B, 3)                             \
    X(TENSOR_MAP_L2_PROMOTION_L2_256B, 3)                     \
    X(TENSOR_MAP_FLOAT_OOB_FILL_NONE, 0)

enum {
#define KILN__CU_NUMBER(name, value) KILN__CU_##name = value,
    KILN__CU_NUMBER_MAP(KILN__CU_NUMBER)
#undef KILN__CU_NUMBER
};

/* The keys of cuLaunchKernel's extra array. */
#define KILN__CU_LAUNCH_PARAM_END            ((void *)0)
#define KILN__CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define KILN__CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)

/* CUlaunchAttribute, with only the values that kiln uses; the driver's union is 64 bytes. */
typedef struct kiln__cu_launch_attribute {
    kiln__cu_enum id;
    uint32_t pad;
    union {
        uint64_t bytes[8];
        int number; /* cooperative, programmatic, priority */
        struct {
            unsigned int x, y, z;
        } cluster;
    } value;
} kiln__cu_launch_attribute;

/* CUlaunchConfig */
typedef struct kiln__cu_launch_config {
    unsigned int grid_x, grid_y, grid_z;
    unsigned int block_x, block_y, block_z;
    unsigned int shared_bytes;
    kiln__cu_stream stream;
    kiln__cu_launch_attribute *attributes;
    unsigned int attribute_count;
} kiln__cu_launch_config;

#endif
