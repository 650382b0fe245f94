/* For tests that call the simulated CUDA driver as an application does: its functions, the codes that they return, and
 * the context of device 0. */
#ifndef KILN_TESTS_SIM_CUDA_DRIVER_H
#define KILN_TESTS_SIM_CUDA_DRIVER_H

#include "loader/cuda/cuda_abi.h"
#include "tests/sim/core/sim_client.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct CUgraph_st;
struct CUgraphExec_st;
struct CUctxCreateParams_st;
struct CUgraphExecUpdateResultInfo_st;
struct CUDA_MEMCPY2D_st;
struct CUtensorMap_st;
struct CUuuid_st;
struct CUmemPoolHandle_st;

/* Every function: the library's list and the tests' own. driver.cuMemAlloc is cuMemAlloc_v2. */
typedef struct cuda_driver {
#define KILN_CUDA(field, name, requirement, result, parameters) result(*field) parameters;
#include "loader/cuda/symbols.def"
#include "tests/sim/cuda/extra_symbols.def"
#undef KILN_CUDA
} cuda_driver;

static inline void cuda_driver_find(void *handle, cuda_driver *out_driver) {
#define KILN_CUDA(field, name, requirement, result, parameters) *(void **)&out_driver->field = dlsym(handle, #name);
#include "loader/cuda/symbols.def"
#include "tests/sim/cuda/extra_symbols.def"
#undef KILN_CUDA
}

/* First in main: the simulated driver with these devices, which execute what is launched. */
static inline void cuda_driver_start(char **argv, const char *devices, sim_control *out_control,
                                     cuda_driver *out_driver) {
    setenv("KILN_SIM_RECORD", "0", 1);
    sim_client_start(argv, devices);
    cuda_driver_find(sim_client_open("libcuda.so.1", out_control), out_driver);
}

/* Makes the context of device 0 current. Returns 0, as a setup does, or another number. */
static inline int cuda_driver_enter(const cuda_driver *driver, kiln__cu_context *out_context) {
    return driver->cuInit(0) || driver->cuDevicePrimaryCtxRetain(out_context, 0) ||
           driver->cuCtxSetCurrent(*out_context);
}

/* Lets it go. Returns 0, as a teardown does, or another number. */
static inline int cuda_driver_leave(const cuda_driver *driver) {
    return driver->cuCtxSetCurrent(NULL) || driver->cuDevicePrimaryCtxRelease(0);
}

/* What the functions return. */
enum {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_INVALID_PTX = 218,
    CU_ILLEGAL_STATE = 401,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_OUT_OF_RESOURCES = 701,
    CU_LAUNCH_TIMEOUT = 702,
    CU_ASSERT = 710,
    CU_ILLEGAL_INSTRUCTION = 715,
    CU_MISALIGNED_ADDRESS = 716,
    CU_LAUNCH_FAILED = 719,
    CU_TOO_LARGE = 720,
    CU_NOT_SUPPORTED = 801,
    CU_CAPTURE_UNSUPPORTED = 900,
    CU_CAPTURE_INVALIDATED = 901,
    CU_CAPTURE_MERGE = 902,
    CU_CAPTURE_UNMATCHED = 903,
    CU_CAPTURE_UNJOINED = 904,
    CU_CAPTURE_ISOLATION = 905,
    CU_CAPTURE_IMPLICIT = 906,
    CU_CAPTURED_EVENT = 907
};
enum { CU_CAPTURE_GLOBAL, CU_CAPTURE_THREAD_LOCAL, CU_CAPTURE_RELAXED };

/* Handles of the default streams. */
#define CU_STREAM_LEGACY     ((kiln__cu_stream)1)
#define CU_STREAM_PER_THREAD ((kiln__cu_stream)2)

#define expect_cu(wanted, call) assert_int_equal((call), (wanted))

#endif
