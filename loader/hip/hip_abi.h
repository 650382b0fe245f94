/* The subset of HIP's binary interface that kiln calls, declared here so that no ROCm header is needed to build. It is
 * the same from HIP 5 to HIP 7, except for hipDeviceProp_t: the exported hipGetDeviceProperties fills in HIP 5's struct
 * in every version, and hipGetDevicePropertiesR0600, to which the headers of HIP 6 and 7 map that name, the later one.
 * tests/unit/hip_abi_test.c compares every line of this file and of symbols.def with the vendor's header, where it is
 * installed. */
#ifndef KILN_LOADER_HIP_ABI_H
#define KILN_LOADER_HIP_ABI_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int kiln__hip_error; /* hipError_t; 0 is success */
typedef unsigned int kiln__hip_enum;  /* any of HIP's enumerations */
typedef int kiln__hip_device;         /* hipDevice_t: the ordinal */

typedef struct ihipModule_t *kiln__hip_module;
typedef struct ihipModuleSymbol_t *kiln__hip_function;
typedef struct ihipStream_t *kiln__hip_stream;
typedef struct ihipEvent_t *kiln__hip_event;
struct hipUUID_t; /* 16 bytes */

/* Every constant that kiln uses: (name in HIP's header, value). */
#define KILN__HIP_NUMBERS(X)                         \
    X(hipDeviceAttributeMaxThreadsPerBlock, 56)      \
    X(hipDeviceAttributeMultiprocessorCount, 63)     \
    X(hipDeviceAttributeMaxSharedMemoryPerBlock, 74) \
    X(hipDeviceAttributeWarpSize, 87)                \
    X(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)   \
    X(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)       \
    X(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)        \
    X(HIP_FUNC_ATTRIBUTE_NUM_REGS, 4)                \
    X(hipStreamCaptureModeRelaxed, 2)                \
    X(hipStreamCaptureStatusNone, 0)                 \
    X(hipStreamNonBlocking, 1)                       \
    X(hipEventDefault, 0)                            \
    X(hipEventDisableTiming, 2)                      \
    X(hipHostMallocPortable, 1)                      \
    X(hipHostRegisterPortable, 1)

enum {
#define KILN__HIP_NUMBER(name, value) KILN__##name = (value),
    KILN__HIP_NUMBERS(KILN__HIP_NUMBER)
#undef KILN__HIP_NUMBER
};

/* The keys of hipModuleLaunchKernel's extra array. */
#define KILN__HIP_LAUNCH_PARAM_BUFFER_POINTER ((void *)1)
#define KILN__HIP_LAUNCH_PARAM_BUFFER_SIZE    ((void *)2)
#define KILN__HIP_LAUNCH_PARAM_END            ((void *)3)

/* hipDeviceProp_t. kiln reads only gcnArchName, "gfx90a:sramecc+:xnack-", which is available nowhere else. */
enum {
    KILN__HIP_ARCH_SIZE = 256,
    KILN__HIP_ARCH_AT_R0000 = 396,
    KILN__HIP_PROPERTIES_R0000 = 792, /* bytes in all */
    KILN__HIP_ARCH_AT_R0600 = 1160,
    KILN__HIP_PROPERTIES_R0600 = 1472
};

typedef union kiln__hip_properties {
    uint64_t aligned;
    char bytes[2048]; /* room for members to come */
} kiln__hip_properties;

#endif
