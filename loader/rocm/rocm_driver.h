/* The HSA runtime (ROCr), found with dlopen and started once per process. */
#ifndef KILN_LOADER_ROCM_DRIVER_H
#define KILN_LOADER_ROCM_DRIVER_H

#include "loader/rocm/rocm_abi.h"
#include "loader/status.h"

/* The runtime's functions. Filled by the first kiln__hsa_open that finds one, constant from then on. */
typedef struct kiln__hsa_functions {
#define KILN_HSA(field, exported, required, result, parameters) result(*field) parameters;
#include "loader/rocm/symbols.def"
#undef KILN_HSA
} kiln__hsa_functions;

extern kiln__hsa_functions kiln__hsa;

/* Finds and starts the runtime. *out_library is the name it was opened by, of static storage, or NULL with the reason
 * in the error text if there is no runtime or no kernel driver (/dev/kfd) below it; that is KILN_OK and asked again by
 * the next call. hsa_init is called once in a process that has a GPU, and hsa_shut_down never: the application may use
 * the same copy. Any thread may call it. Returns KILN_OK; KILN_ERROR_DRIVER_TOO_OLD (the runtime lacks a function);
 * KILN_ERROR_DRIVER (/dev/kfd is there, and the user may not open it or the runtime does not start); KILN_ERROR_FORKED
 * in a child of a process that started the runtime. */
kiln_status kiln__hsa_open(const char **out_library);

/* "HSA_STATUS_ERROR", or "unknown HSA status". Static storage. */
const char *kiln__hsa_status_name(kiln__hsa_status status) __attribute__((cold));

/* The border: sets the error text to the call, the vendor's name of the status and its number, and returns kiln's
 * status for it. */
kiln_status kiln__hsa_fail(kiln__hsa_status status, const char *call) __attribute__((cold));

/* A call that reported success without giving what it should. */
kiln_status kiln__hsa_fail_empty(const char *call) __attribute__((cold));

/* Returns from the calling function unless kiln__hsa.field(...) succeeds. */
#define KILN__HSA_TRY(field, ...)                                               \
    do {                                                                        \
        kiln__hsa_status kiln__hsa_try_status = kiln__hsa.field(__VA_ARGS__);   \
        if (KILN__UNLIKELY(kiln__hsa_try_status != KILN__HSA_STATUS_SUCCESS))   \
            return kiln__hsa_fail(kiln__hsa_try_status, kiln__hsa_names.field); \
    } while (0)

/* The exported name of each function, for error texts. */
typedef struct kiln__hsa_function_names {
#define KILN_HSA(field, exported, required, result, parameters) const char *field;
#include "loader/rocm/symbols.def"
#undef KILN_HSA
} kiln__hsa_function_names;

extern const kiln__hsa_function_names kiln__hsa_names;

#endif
