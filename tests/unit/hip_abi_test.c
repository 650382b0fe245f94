/* loader/hip/hip_abi.h, symbols.def and hip_errors.def against the vendor's header, where it is installed
 * (libamdhip64-dev), or in make check-hip: every number, signature and error. The comparison is made by the compiler.
 * Of the struct of device properties that HIP 6 brought only its own header can tell. */
#include "loader/hip/hip_driver.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#if defined(KILN_HIP_HEADER) || __has_include(<hip/hip_runtime_api.h>)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#pragma GCC diagnostic pop

#define NUMBER(name, value) _Static_assert((int)(name) == (value), #name);
KILN__HIP_NUMBERS(NUMBER)
#undef NUMBER

#define KILN_HIP_ERROR(name, number, status) _Static_assert((int)hipError##name == (number), #name);
#include "loader/hip/hip_errors.def"
#undef KILN_HIP_ERROR

_Static_assert((uintptr_t)HIP_LAUNCH_PARAM_BUFFER_POINTER == (uintptr_t)KILN__HIP_LAUNCH_PARAM_BUFFER_POINTER, "");
_Static_assert((uintptr_t)HIP_LAUNCH_PARAM_BUFFER_SIZE == (uintptr_t)KILN__HIP_LAUNCH_PARAM_BUFFER_SIZE, "");
_Static_assert((uintptr_t)HIP_LAUNCH_PARAM_END == (uintptr_t)KILN__HIP_LAUNCH_PARAM_END, "");

#define LATER (HIP_VERSION_MAJOR >= 6)
_Static_assert(offsetof(hipDeviceProp_t, gcnArchName) == (LATER ? KILN__HIP_ARCH_AT_R0600 : KILN__HIP_ARCH_AT_R0000),
               "gcnArchName");
_Static_assert(sizeof((hipDeviceProp_t){0}.gcnArchName) == KILN__HIP_ARCH_SIZE, "gcnArchName");
_Static_assert(sizeof(hipDeviceProp_t) == (LATER ? KILN__HIP_PROPERTIES_R0600 : KILN__HIP_PROPERTIES_R0000),
               "hipDeviceProp_t");
_Static_assert(sizeof(hipDeviceProp_t) <= sizeof(kiln__hip_properties), "hipDeviceProp_t");

/* Signatures. Handles are pointers to structs of the same names, and enumerations are unsigned int to a C compiler. The
 * source of a copy has become const in later headers, which changes no call. */
_Static_assert(sizeof(hipError_t) == sizeof(kiln__hip_error) && sizeof(hipDeviceAttribute_t) == sizeof(kiln__hip_enum),
               "enumerations");
_Static_assert(sizeof(hipDevice_t) == sizeof(kiln__hip_device), "hipDevice_t");
_Static_assert(__builtin_types_compatible_p(hipModule_t, kiln__hip_module), "hipModule_t");
_Static_assert(__builtin_types_compatible_p(hipFunction_t, kiln__hip_function), "hipFunction_t");
_Static_assert(__builtin_types_compatible_p(hipStream_t, kiln__hip_stream), "hipStream_t");
_Static_assert(__builtin_types_compatible_p(hipEvent_t, kiln__hip_event), "hipEvent_t");

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#define kiln__hip_properties hipDeviceProp_t
#define CONST_SOURCE(name)   (LATER && !__builtin_strcmp(#name, "hipMemcpyHtoDAsync"))
#define KILN_HIP(name, requirement, result, parameters) \
    _Static_assert(CONST_SOURCE(name) || __builtin_types_compatible_p(__typeof__(name), result parameters), #name);
#if !LATER
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_t *properties, int ordinal);
#endif
int hipGetStreamDeviceId(hipStream_t stream); /* in a header that is not for C */
#include "loader/hip/symbols.def"
#undef KILN_HIP

static void the_declarations_agree(void **state) {
    (void)state;
}
#else
static void the_declarations_agree(void **state) {
    (void)state;
    print_message("libamdhip64-dev is not installed\n");
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_declarations_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
