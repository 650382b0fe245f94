/* Planning: operators that are called on a stream of kiln_plan_open say what they weigh and what they would launch. It
 * costs other streams a test of their device's plan where an operator has a choice, and their launches nothing. */
#ifndef KILN_LOADER_PLAN_H
#define KILN_LOADER_PLAN_H

#include "loader/module.h"
#include <kiln/plan.h>

/* Reports a step of a device that plans. */
void kiln__plan_report(const kiln_kernel *kernel, const kiln_plan_step *step) __attribute__((cold));

/* An operator weighs a kernel: the relative time of the call with it, the work divided among so many blocks a tile. */
static inline void kiln__plan_weigh(const kiln_kernel *kernel, double time, uint32_t splits) {
    if (KILN__UNLIKELY(kernel->device->plan))
        kiln__plan_report(kernel, &(kiln_plan_step){.kind = KILN_PLAN_WEIGHED, .time = time, .splits = splits});
}

/* An operator takes or leaves a kernel by a rule, which needs no weighing. */
static inline void kiln__plan_take(const kiln_kernel *kernel, const char *why) {
    if (KILN__UNLIKELY(kernel->device->plan))
        kiln__plan_report(kernel, &(kiln_plan_step){.kind = KILN_PLAN_TAKEN, .why = why});
}
static inline void kiln__plan_leave(const kiln_kernel *kernel, const char *why) {
    if (KILN__UNLIKELY(kernel->device->plan))
        kiln__plan_report(kernel, &(kiln_plan_step){.kind = KILN_PLAN_LEFT, .why = why});
}

/* The launch of a device that plans. */
kiln_status kiln__plan_launch(const kiln_kernel *kernel, const kiln_launch_config *config) __attribute__((cold));

/* Releases the device of a stream of kiln_plan_open. */
void kiln__plan_close(kiln_stream *stream);

#endif
