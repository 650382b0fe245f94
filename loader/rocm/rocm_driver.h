/* The HSA runtime (ROCr), opened with dlopen and initialised once per process. */
#ifndef KILN_LOADER_ROCM_DRIVER_H
#define KILN_LOADER_ROCM_DRIVER_H

#include "loader/rocm/rocm_status.h"

/* The runtime's functions. Valid and constant once kiln__rocm_driver_ready has returned KILN_OK. */
typedef struct kiln__rocm_table {
#define KILN_HSA(field, exported, required, result, parameters) result(*field) parameters;
#include "loader/rocm/symbols.def"
#undef KILN_HSA
} kiln__rocm_table;

extern kiln__rocm_table kiln__rocm;

/* Finds and initialises the runtime, once: after a failure, the next call tries again. In a process that has a GPU,
 * hsa_init is called once, and hsa_shut_down never: the application may use the same copy. Thread safe; a fork at any
 * moment leaves no lock held in the child. Returns KILN_OK; KILN_ERROR_NO_DRIVER (no runtime, or no kernel driver,
 * /dev/kfd; only this lets another backend be tried); KILN_ERROR_DRIVER_TOO_OLD (the runtime lacks a function);
 * KILN_ERROR_DRIVER (/dev/kfd exists, but the user may not open it or hsa_init fails); KILN_ERROR_FORKED in a child of
 * a process that initialised the runtime. */
kiln_status kiln__rocm_driver_ready(void);

/* The name under which the runtime was opened. Valid once it is ready. */
const char *kiln__rocm_driver_library(void);

/* Returns from the calling function unless kiln__rocm.field(...) succeeds. */
#define KILN__ROCM_TRY(device, field, ...)                                             \
    do {                                                                               \
        kiln__hsa_status kiln__rocm_result = kiln__rocm.field(__VA_ARGS__);            \
        if (KILN__UNLIKELY(kiln__rocm_result != KILN__HSA_STATUS_SUCCESS))             \
            return kiln__rocm_fail(device, kiln__rocm_names.field, kiln__rocm_result); \
    } while (0)

/* The exported name of each function, for error texts. */
typedef struct kiln__rocm_name_table {
#define KILN_HSA(field, exported, required, result, parameters) const char *field;
#include "loader/rocm/symbols.def"
#undef KILN_HSA
} kiln__rocm_name_table;

extern const kiln__rocm_name_table kiln__rocm_names;

#endif
