#include "loader/rocm/rocm_driver.h"

typedef struct hsa_status {
    const char *name;
    kiln__hsa_status number;
    kiln_status kiln;
} hsa_status;

static const hsa_status statuses[] = {
#define KILN_HSA_STATUS(name, number, kiln) {"HSA_STATUS_" #name, number, KILN_ERROR_##kiln},
#include "loader/rocm/rocm_errors.def"
#undef KILN_HSA_STATUS
};

/* An error that is not on the list is reported by its number. */
static const hsa_status unlisted = {"unknown HSA status", 0, KILN_ERROR_DRIVER};

static const hsa_status *find(kiln__hsa_status status) {
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        if (statuses[i].number == status) return &statuses[i];
    return &unlisted;
}

const char *kiln__hsa_status_name(kiln__hsa_status status) {
    return find(status)->name;
}

kiln_status kiln__hsa_fail(kiln__hsa_status status, const char *call) {
    const hsa_status *found = find(status);
    return kiln__fail(found->kiln, "%s: %s (0x%x)", call, found->name, (unsigned)status);
}

kiln_status kiln__hsa_fail_empty(const char *call) {
    return kiln__fail(KILN_ERROR_DRIVER, "%s: reported success without a result", call);
}
