/* A bundle part loaded on a device, and its kernels. */
#ifndef KILN_LOADER_MODULE_H
#define KILN_LOADER_MODULE_H

#include "loader/device.h"

struct kiln_kernel {
    /* First, what a launch touches. */
    size_t arguments_size; /* 0: any (not stated by the image). First: CUDA takes its address */
    kiln_device *device;
    void *function;       /* CUfunction, kiln_cpu_function, or kiln__rocm_kernel */
    uint32_t max_threads; /* per block; 0: unknown */
    const kiln_module *module;
    const char *name;
    kiln_kernel_info info; /* as in the bundle table */
};

struct kiln_module {
    kiln_device *device;
    const kiln_bundle *bundle;
    kiln_part part;
    kiln_image image;     /* the chosen one, decompressed */
    void *image_memory;   /* malloc'd, holds image.data if it was compressed; else NULL */
    void *native;         /* the backend's own */
    kiln_kernel *kernels; /* part.kernel_count, in the part's order */
    kiln_status status;   /* KILN_OK, or NO_IMAGE, cached with its reasons */
    char *reasons;        /* why images were refused, one per line, malloc'd; or NULL */
    kiln_module *next;
};

/* kiln_module_get for a stream: KILN_ERROR_CAPTURING if it would have to load while the stream is being captured. */
kiln_status kiln__module_get_on(kiln_stream *stream, const kiln_bundle *bundle, const char *part,
                                const kiln_module **out_module);

/* Unloads all modules of a device that is being closed. without_driver only frees them: in a forked child, or on a
 * device that plans, the driver must not be called. */
void kiln__modules_close(kiln_device *device, bool without_driver);

#endif
