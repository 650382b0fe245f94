/* Planning: operators called on a stream from kiln_plan_open report what they weigh and what they would launch. On
 * other streams this costs one test of device->plan where an operator has a choice, and nothing in a launch. */
#ifndef KILN_LOADER_PLAN_H
#define KILN_LOADER_PLAN_H

#include "loader/module.h"
#include <kiln/plan.h>

/* Reports a step of a device that plans. */
void kiln__plan_report(const kiln_kernel *kernel, const kiln_plan_step *step) __attribute__((cold));

/* Reports that an operator weighed a kernel: the call's relative time with it, with each tile split among splits
 * blocks. */
static inline void kiln__plan_weigh(const kiln_kernel *kernel, double time, uint32_t splits) {
    if (KILN__UNLIKELY(kernel->device->plan))
        kiln__plan_report(kernel, &(kiln_plan_step){.kind = KILN_PLAN_WEIGHED, .time = time, .splits = splits});
}

/* Report that an operator took or left a kernel by a rule, without weighing it. */
static inline void kiln__plan_take(const kiln_kernel *kernel, const char *why) {
    if (KILN__UNLIKELY(kernel->device->plan))
        kiln__plan_report(kernel, &(kiln_plan_step){.kind = KILN_PLAN_TAKEN, .why = why});
}
static inline void kiln__plan_leave(const kiln_kernel *kernel, const char *why) {
    if (KILN__UNLIKELY(kernel->device->plan))
        kiln__plan_report(kernel, &(kiln_plan_step){.kind = KILN_PLAN_LEFT, .why = why});
}

/* The launch function of a device that plans. */
kiln_status kiln__plan_launch(const kiln_kernel *kernel, const kiln_launch_config *config) __attribute__((cold));

/* Releases the device of a stream from kiln_plan_open. */
void kiln__plan_close(kiln_stream *stream);

#endif
