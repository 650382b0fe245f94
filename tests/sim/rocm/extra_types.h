/* The types of extra_symbols.def that kiln has no use for itself. */
#ifndef KILN_TESTS_SIM_ROCM_EXTRA_TYPES_H
#define KILN_TESTS_SIM_ROCM_EXTRA_TYPES_H

#include "loader/rocm/rocm_abi.h"
#include <stdbool.h>

/* hsa_pitched_ptr_t: rows of a range, in bytes. */
typedef struct sim_pitched {
    void *base;
    size_t pitch, slice;
} sim_pitched;

/* hsa_amd_signal_handler: true to be called again. */
typedef bool (*sim_signal_handler)(kiln__hsa_signal_value value, void *argument);

#endif
