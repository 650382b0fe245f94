/* A bundle part loaded on a device, and its kernels. */
#ifndef KILN_LOADER_MODULE_H
#define KILN_LOADER_MODULE_H

#include "loader/device.h"

struct kiln_kernel {
    /* What a launch touches, first. */
    size_t arguments_size; /* 0: any (the image does not say). First: CUDA takes its address */
    kiln_device *device;
    void *function;       /* CUfunction; kiln_cpu_function; ROCm: the backend's own struct */
    uint32_t max_threads; /* per block; 0: not known */
    const kiln_module *module;
    const char *name;
    kiln_kernel_info info; /* as the bundle table has it */
};

struct kiln_module {
    kiln_device *device;
    const kiln_bundle *bundle;
    kiln_part part;
    kiln_image image;     /* the one chosen, not compressed */
    void *image_memory;   /* malloc'd, what image.data lies in if the bundle has it compressed; else NULL */
    void *native;         /* the backend's own */
    kiln_kernel *kernels; /* part.kernel_count, in the part's order */
    kiln_status status;   /* KILN_OK, or NO_IMAGE: kept with its reasons, so that it is judged once */
    char *reasons;        /* why images were refused, a line each, malloc'd; NULL: none was */
    kiln_module *next;
};

/* kiln_module_get for a stream: refuses with KILN_ERROR_CAPTURING to load while the stream is being captured. */
kiln_status kiln__module_get_on(kiln_stream *stream, const kiln_bundle *bundle, const char *part,
                                const kiln_module **out_module);

/* Unloads all modules of a device that closes; where the driver must not be called, in a forked child or of a device
 * that plans, only frees them. */
void kiln__modules_close(kiln_device *device, bool without_driver);

#endif
