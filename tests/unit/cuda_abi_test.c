/* Holds loader/cuda/cuda_abi.h, symbols.def and cuda_errors.def against a toolkit's cuda.h, at compile time. Without a
 * toolkit there is nothing to hold them against, and the test says that it was skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "loader/cuda/cuda_abi.h"
#include <cmocka.h>

/* With this the header declares the exported names themselves, old signatures included, and no macro renames them. */
#define __CUDA_API_VERSION_INTERNAL
#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAVE_CUDA_H 1
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#define HAVE_CUDA_H 1
#endif

#ifdef HAVE_CUDA_H
#include <cudaProfiler.h>

/* What older toolkits do not have yet is held against nothing. */
#if CUDA_VERSION < 12080
struct CUctxCreateParams_st;
CUresult cuCtxCreate_v4(CUcontext *, struct CUctxCreateParams_st *, unsigned int, CUdevice);
CUresult cuEventElapsedTime_v2(float *, CUevent, CUevent);
#endif

/* ---- Types ---- */

#define SAME_TYPE(ours, theirs) _Static_assert(__builtin_types_compatible_p(ours, theirs), #ours " is not " #theirs)
SAME_TYPE(kiln__cu_device, CUdevice);
SAME_TYPE(kiln__cu_address, CUdeviceptr);
SAME_TYPE(kiln__cu_context, CUcontext);
SAME_TYPE(kiln__cu_module, CUmodule);
SAME_TYPE(kiln__cu_function, CUfunction);
SAME_TYPE(kiln__cu_stream, CUstream);
SAME_TYPE(kiln__cu_event, CUevent);

/* The compiler takes an enumeration for compatible with its integer only behind a pointer. */
#define SAME_ENUM(ours, theirs) \
    _Static_assert(__builtin_types_compatible_p(ours *, theirs *), #ours " is not as " #theirs)
SAME_ENUM(kiln__cu_result, CUresult);
SAME_ENUM(kiln__cu_enum, CUdevice_attribute);
SAME_ENUM(kiln__cu_enum, CUfunction_attribute);
SAME_ENUM(kiln__cu_enum, CUjit_option);
SAME_ENUM(kiln__cu_enum, CUstreamCaptureMode);
SAME_ENUM(kiln__cu_enum, CUstreamCaptureStatus);
SAME_ENUM(kiln__cu_enum, CUlaunchAttributeID);

#define SAME_SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), "size of " #theirs)
#define SAME_FIELD(ours, our_field, theirs, their_field)                                     \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&             \
                       sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field), \
                   #theirs "." #their_field)
SAME_SIZE(kiln__cu_launch_attribute, CUlaunchAttribute);
SAME_FIELD(kiln__cu_launch_attribute, id, CUlaunchAttribute, id);
SAME_FIELD(kiln__cu_launch_attribute, value, CUlaunchAttribute, value);
SAME_FIELD(kiln__cu_launch_attribute, value.cluster, CUlaunchAttribute, value.clusterDim);
SAME_FIELD(kiln__cu_launch_attribute, value.cluster.z, CUlaunchAttribute, value.clusterDim.z);
SAME_SIZE(kiln__cu_launch_config, CUlaunchConfig);
SAME_FIELD(kiln__cu_launch_config, grid_x, CUlaunchConfig, gridDimX);
SAME_FIELD(kiln__cu_launch_config, grid_y, CUlaunchConfig, gridDimY);
SAME_FIELD(kiln__cu_launch_config, grid_z, CUlaunchConfig, gridDimZ);
SAME_FIELD(kiln__cu_launch_config, block_x, CUlaunchConfig, blockDimX);
SAME_FIELD(kiln__cu_launch_config, block_y, CUlaunchConfig, blockDimY);
SAME_FIELD(kiln__cu_launch_config, block_z, CUlaunchConfig, blockDimZ);
SAME_FIELD(kiln__cu_launch_config, shared_bytes, CUlaunchConfig, sharedMemBytes);
SAME_FIELD(kiln__cu_launch_config, stream, CUlaunchConfig, hStream);
SAME_FIELD(kiln__cu_launch_config, attributes, CUlaunchConfig, attrs);
SAME_FIELD(kiln__cu_launch_config, attribute_count, CUlaunchConfig, numAttrs);

/* ---- Numbers ---- */

#define SAME_NUMBER(name, value) _Static_assert((value) == (int)CU_##name, "CU_" #name);
KILN__CU_NUMBER_MAP(SAME_NUMBER)

#define SIM_CUDA_ATTRIBUTE(name, number, value) SAME_NUMBER(DEVICE_ATTRIBUTE_##name, number)
#include "tests/sim/cuda/device_attributes.def"
#undef SIM_CUDA_ATTRIBUTE

#define SIM_CUDA_POINTER_ATTRIBUTE(name, number, type, value) SAME_NUMBER(POINTER_ATTRIBUTE_##name, number)
#include "tests/sim/cuda/pointer_attributes.def"
#undef SIM_CUDA_POINTER_ATTRIBUTE

#define KILN_CUDA_ERROR(name, number, status) _Static_assert((number) == (int)CUDA_ERROR_##name, "CUDA_ERROR_" #name);
#include "loader/cuda/cuda_errors.def"
#undef KILN_CUDA_ERROR

/* ---- Signatures. Both launch structs were found equal above; a signature that names ours is read as theirs. ---- */

#define kiln__cu_launch_config CUlaunchConfig
#define KILN_CUDA(field, name, requirement, result, parameters) \
    _Static_assert(__builtin_types_compatible_p(result(*) parameters, __typeof__(&name)), #name);
#include "loader/cuda/symbols.def"
#include "tests/sim/cuda/extra_symbols.def"
#undef KILN_CUDA
#undef kiln__cu_launch_config

static void test_keys_of_the_extra_array(void **state) {
    (void)state;
    assert_ptr_equal(KILN__CU_LAUNCH_PARAM_END, CU_LAUNCH_PARAM_END);
    assert_ptr_equal(KILN__CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_POINTER);
    assert_ptr_equal(KILN__CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_BUFFER_SIZE);
}

/* What cuda.h renames must be renamed by the list too: the plain name is another function. */
static void test_renamed_functions_are_asked_for_by_their_new_names(void **state) {
    (void)state;
    static const char *const renamed[] = {
        "cuDeviceTotalMem_v2",  "cuDevicePrimaryCtxRelease_v2", "cuMemAlloc_v2",
        "cuMemFree_v2",         "cuMemcpyHtoDAsync_v2",         "cuMemcpyDtoHAsync_v2",
        "cuMemcpyDtoDAsync_v2", "cuStreamDestroy_v2",           "cuEventDestroy_v2"};
    static const char listed[] =
#define KILN_CUDA(field, name, requirement, result, parameters) " " #name " "
#include "loader/cuda/symbols.def"
#undef KILN_CUDA
        ;
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        assert_non_null(strstr(listed, renamed[i]));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keys_of_the_extra_array),
        cmocka_unit_test(test_renamed_functions_are_asked_for_by_their_new_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_cuda_h_is_not_installed(void **state) {
    (void)state;
    print_message("SKIP: no cuda.h: the driver's interface was compared with nothing\n");
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cuda_h_is_not_installed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
