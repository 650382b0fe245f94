#include "loader/cli/count.h"
#include <dlfcn.h>
#include <string.h>

bool counting_find(const kiln_device_info *info, counting *out_counting) {
    static const char simulated[] = "kiln simulated";
    *out_counting = (counting){NULL, NULL};
    if (strncmp(info->name, simulated, strlen(simulated)) != 0) return false;
    /* The driver is loaded: it gave the device. */
    void *driver =
        dlopen(info->backend == KILN_BACKEND_CUDA ? "libcuda.so.1" : "libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!driver) return false;
    /* dlsym gives an object pointer; POSIX has it hold a function's address. */
    *(void **)&out_counting->launches = dlsym(driver, "kiln_sim_launches");
    *(void **)&out_counting->counter = dlsym(driver, "kiln_sim_counter");
    dlclose(driver);
    return out_counting->launches && out_counting->counter;
}

kiln_status count_call(const counting *from, kiln_stream *stream, measured_operation operation, void *user,
                       counts *out_counts) {
    *out_counts = (counts){0};
    uint64_t launch = from->launches();
    kiln_status status = operation(user, stream);
    if (status == KILN_OK) status = kiln_stream_sync(stream);
    if (status != KILN_OK) return status;
    out_counts->launches = from->launches() - launch;
    for (const uint64_t end = launch + out_counts->launches; launch < end; launch++) {
        uint64_t value;
#define COUNTS_ADD(name) \
    if (from->counter(launch, #name, &value)) out_counts->name += value;
        COUNTERS(COUNTS_ADD)
#undef COUNTS_ADD
    }
    return KILN_OK;
}
