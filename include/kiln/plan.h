/* Planning: reports which kernels an operator call would launch on any device, present or not, and why. kiln explain
 * prints these reports. The conventions of <kiln/kiln.h> apply. */
#ifndef KILN_PLAN_H
#define KILN_PLAN_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_plan_kind {
    KILN_PLAN_WEIGHED = 1, /* the operator predicted the kernel's time for this call */
    KILN_PLAN_TAKEN,       /* a rule selected the kernel */
    KILN_PLAN_LEFT,        /* a rule excluded the kernel */
    KILN_PLAN_LAUNCHED     /* the call would launch the kernel, after the launches already reported */
} kiln_plan_kind;

/* A step of the plan of an operator call. Everything it points to is valid until the callback returns. */
typedef struct kiln_plan_step {
    kiln_plan_kind kind;
    uint32_t splits;              /* WEIGHED: blocks that share the work of one tile */
    double time;                  /* WEIGHED: predicted time, unitless; comparable among the kernels of one call */
    const char *why;              /* TAKEN and LEFT: the rule, such as "is for at most 4 rows" */
    const char *kernel;           /* name of the kernel */
    const kiln_kernel_info *info; /* its entry in the image's table */
    const kiln_image *image;      /* the image that the device would load */
    kiln_launch_config config;    /* LAUNCHED: grid, block, shared memory */
} kiln_plan_step;

/* Receives the steps in the order in which the operator makes them. */
typedef void (*kiln_plan_callback)(void *user, const kiln_plan_step *step);

/* Opens a planning stream: an operator function called on it checks its parameters, selects an image and chooses among
 * the kernels exactly as on the device described by info, and then reports its launches instead of making them. No
 * driver is called, and the device need not be present: info->target determines which image is selected, and the counts
 * and sizes in info (above all multiprocessors and max_shared_bytes) determine which kernel is chosen.
 * kiln_device_get_info returns these values for an open device. Tensors and workspaces are not accessed, but their
 * addresses are checked: any address that is not NULL and is aligned as on the device is valid. Workspace size
 * functions may also be called, and report the kernels they consider. Every other function rejects the stream with
 * KILN_ERROR_INVALID_ARGUMENT. Only one thread at a time may use the stream; report is called on that thread, and must
 * not use the stream itself. Release with kiln_stream_close. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (NULL, no
 * backend in info->target, no multiprocessors); KILN_ERROR_OUT_OF_MEMORY. */
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
