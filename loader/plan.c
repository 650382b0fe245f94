#include "loader/plan.h"
#include "loader/backend.h"
#include <stdlib.h>
#include <string.h>

/* Where a planning device reports to. */
struct kiln__plan {
    kiln_plan_callback report;
    void *user;
};

void kiln__plan_report(const kiln_kernel *kernel, const kiln_plan_step *step) {
    const kiln__plan *plan = kernel->device->plan;
    kiln_plan_step named = *step;
    named.kernel = kernel->name;
    named.info = &kernel->info;
    named.image = &kernel->module->image;
    plan->report(plan->user, &named);
}

kiln_status kiln__plan_launch(const kiln_kernel *kernel, const kiln_launch_config *config) {
    kiln__plan_report(kernel, &(kiln_plan_step){.kind = KILN_PLAN_LAUNCHED, .config = *config});
    return KILN_OK;
}

static kiln_status check(const kiln_device_info *info, size_t info_size, kiln_plan_callback report) {
    KILN__REQUIRE(info, "kiln_plan_open: info is NULL");
    KILN__REQUIRE(info_size == sizeof *info, "kiln_plan_open: info has %zu bytes, this kiln knows %zu", info_size,
                  sizeof *info);
    KILN__REQUIRE(report, "kiln_plan_open: report is NULL");
    KILN__REQUIRE(kiln__backend_find(info->target.backend),
                  "kiln_plan_open: info.target.backend is %d: must be a backend", (int)info->target.backend);
    KILN__REQUIRE(info->multiprocessors > 0, "kiln_plan_open: info.multiprocessors is %d: must be positive",
                  info->multiprocessors);
    KILN__REQUIRE(info->max_shared_bytes >= 0, "kiln_plan_open: info.max_shared_bytes is %d: must not be negative",
                  info->max_shared_bytes);
    return KILN_OK;
}

kiln_status kiln_plan_open_sized(const kiln_device_info *info, size_t info_size, kiln_plan_callback report, void *user,
                                 kiln_stream *out_stream) {
    KILN__REQUIRE(out_stream, "kiln_plan_open: out_stream is NULL");
    memset(out_stream, 0, sizeof *out_stream);
    KILN__TRY(check(info, info_size, report));
    kiln__plan *plan = malloc(sizeof *plan);
    kiln_device *device = plan ? kiln__device_new(kiln__backend_find(info->target.backend), info->ordinal) : NULL;
    if (!device) {
        free(plan);
        return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "kiln_plan_open: no memory for the plan");
    }
    *plan = (kiln__plan){report, user};
    device->plan = plan;
    device->info = *info;
    device->info.backend = info->target.backend;
    /* HSA counts the work-items of a grid in 32 bits. */
    if (info->target.backend == KILN_BACKEND_ROCM) device->threads_most = UINT32_MAX;
    atomic_store(device->state, KILN__READY | KILN__PLANNING);
    out_stream->device = device;
    return KILN_OK;
}

void kiln__plan_close(kiln_stream *stream) {
    kiln_device *device = stream->device;
    kiln__plan *plan = device->plan;
    kiln__modules_close(device, true);
    kiln__device_free(device);
    free(plan);
}
