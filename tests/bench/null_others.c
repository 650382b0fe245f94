/* Every function of a driver that a null driver has no use for: it does nothing and returns 0. Compiled once for each
 * driver, with NULL_CUDA or NULL_HSA; the functions are weak, so that null_cuda.c and null_hsa.c define the rest. */
#if defined(NULL_CUDA)
#include "loader/cuda/cuda_abi.h"
#elif defined(NULL_HSA)
#include "loader/rocm/rocm_abi.h"
#include <stdbool.h>
#endif

#pragma GCC diagnostic ignored "-Wunused-parameter"

#define NULL_FUNCTION(name, result, parameters)                           \
    __attribute__((weak, visibility("default"))) result name parameters { \
        return (result)0;                                                 \
    }

#if defined(NULL_CUDA)
#define KILN_CUDA(field, name, requirement, result, parameters) NULL_FUNCTION(name, result, parameters)
#include "loader/cuda/symbols.def"
#elif defined(NULL_HSA)
#define KILN_HSA(field, name, required, result, parameters) NULL_FUNCTION(name, result, parameters)
#include "loader/rocm/symbols.def"
#endif
