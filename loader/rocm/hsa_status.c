#include "loader/rocm/hsa_driver.h"

kiln_status kiln__hsa_fail(kiln__hsa_status status, const char *call) {
    switch (status) {
#define KILN_HSA_STATUS(name, number, kiln) \
    case number:                            \
        return kiln__fail(KILN_ERROR_##kiln, "%s: HSA_STATUS_" #name " (0x%x)", call, (unsigned)status);
#include "loader/rocm/statuses.def"
#undef KILN_HSA_STATUS
    default:
        return kiln__fail(KILN_ERROR_DRIVER, "%s: unknown HSA status (0x%x)", call, (unsigned)status);
    }
}

kiln_status kiln__hsa_fail_empty(const char *call) {
    return kiln__fail(KILN_ERROR_DRIVER, "%s: reported success without a result", call);
}
