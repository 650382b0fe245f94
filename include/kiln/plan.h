/* Planning: which kernels an operator's call would launch, and why, on any device, present or not. kiln explain prints
 * it. The conventions of <kiln/kiln.h> hold. */
#ifndef KILN_PLAN_H
#define KILN_PLAN_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_plan_kind {
    KILN_PLAN_WEIGHED = 1, /* the operator predicted the kernel's time for this call */
    KILN_PLAN_TAKEN,       /* a rule selects the kernel */
    KILN_PLAN_LEFT,        /* a rule excludes the kernel */
    KILN_PLAN_LAUNCHED     /* the call would launch the kernel, after those reported before */
} kiln_plan_kind;

/* A step of the plan of an operator's call. What it points to lives until the callback returns. */
typedef struct kiln_plan_step {
    kiln_plan_kind kind;
    uint32_t splits;              /* WEIGHED: blocks that share the work of one tile */
    double time;                  /* WEIGHED: predicted; comparable among the kernels of one call, without a unit */
    const char *why;              /* TAKEN and LEFT: the rule, such as "is for at most 4 rows" */
    const char *kernel;           /* its name */
    const kiln_kernel_info *info; /* what the image's table says of it */
    const kiln_image *image;      /* the image that the device would get */
    kiln_launch_config config;    /* LAUNCHED: grid, block, shared memory */
} kiln_plan_step;

/* Receives the steps in the order in which the operator makes them. */
typedef void (*kiln_plan_callback)(void *user, const kiln_plan_step *step);

/* Opens a stream that plans: an operator's function called on it checks its parameters, selects an image and chooses
 * among the kernels exactly as on the device described, and then reports what it would launch instead of launching it.
 * No driver is called, and the device need not be present: info->target decides which image is selected, the counts
 * and sizes in info which kernel is chosen (multiprocessors and max_shared_bytes above all); kiln_device_get_info
 * gives those of an open device. Tensors and workspaces are not accessed, but their addresses are checked: any that are
 * not NULL and aligned as on the device will do. Functions that give a workspace's size may be called too, and report
 * what they weigh. Every other function refuses the stream with KILN_ERROR_INVALID_ARGUMENT. One thread at a time uses
 * the stream; report is called by that thread, and must not use the stream itself. Release with kiln_stream_close.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (NULL, no backend in info->target, no multiprocessors);
 * KILN_ERROR_OUT_OF_MEMORY. */
KILN_API kiln_status kiln_plan_open_sized(const kiln_device_info *info, size_t info_size, kiln_plan_callback report,
                                          void *user, kiln_stream *out_stream);
static inline kiln_status kiln_plan_open(const kiln_device_info *info, kiln_plan_callback report, void *user,
                                         kiln_stream *out_stream) {
    return kiln_plan_open_sized(info, sizeof *info, report, user, out_stream);
}

#ifdef __cplusplus
}
#endif

#endif
