/* An open device. */
#ifndef KILN_LOADER_DEVICE_H
#define KILN_LOADER_DEVICE_H

#include "loader/status.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct kiln__backend kiln__backend;
typedef struct kiln__trace kiln__trace;
typedef struct kiln__plan kiln__plan;

enum { KILN__OPERATOR_SLOTS = 256 }; /* assigned by the operators */

/* Bits of the state word. The fast path requires exactly READY. A GPU device's word lies on a page that the kernel
 * wipes in a forked child (or that an atfork handler zeroes), so that a child finds 0. */
enum { KILN__READY = 1, KILN__TRACING = 2, KILN__LOSING = 4, KILN__LOST = 8, KILN__CLOSING = 16, KILN__PLANNING = 32 };

/* arguments is kernel->arguments_size bytes. */
typedef kiln_status (*kiln__launch_function)(kiln_stream *stream, const kiln_kernel *kernel,
                                             const kiln_launch_config *config, const void *arguments);

struct kiln_device {
    /* First, what a launch touches. */
    _Atomic uint32_t *state;
    kiln__launch_function launch;
    kiln__launch_function launch_plain; /* no zero dimension, no cluster; for operators */
    uint64_t number;                    /* counts the GPU devices ever opened in this process, from 1; 0: the CPU */
    void *native;                       /* the backend's own */
    void *key_context;                  /* the borrowed context, or NULL: part of the identity */

    /* The module that each operator loaded, or NULL. Stored with release, loaded with acquire. */
    _Atomic(const kiln_module *) operators[KILN__OPERATOR_SLOTS];

    const kiln__backend *backend;
    kiln_device_info info;
    uint64_t threads_most; /* in one launch; UINT64_MAX: no limit */
    char *why;
    uint32_t references;       /* under the registry's lock */
    bool listed;               /* in the registry; set once, while it is opened */
    pthread_mutex_t load_lock; /* guards modules */
    kiln_module *modules;      /* all loads, including those that found no image */
    kiln__plan *plan;          /* if the device only plans (kiln_plan_open), else NULL */
    kiln__trace *trace;        /* set while TRACING, or while being drained */
    pthread_mutex_t trace_lock;
    char lost[128];    /* the reason: written while LOSING, constant once LOST */
    kiln_device *next; /* registry */
};

/* Allocates a device that is neither open nor listed, with one reference and state 0. NULL if out of memory. */
kiln_device *kiln__device_new(const kiln__backend *backend, int32_t ordinal);
void kiln__device_free(kiln_device *device);

/* KILN_OK if the device can be used; else FORKED, DEVICE_LOST or INVALID_ARGUMENT (closing, or only plans). */
kiln_status kiln__device_check(const kiln_device *device);

/* The same for an argument of the named function; NULL is an invalid argument. */
kiln_status kiln__device_argument_check(const char *function, const kiln_device *device);

/* Marks the device lost. The formatted reason is repeated by every later call on the device; the first reason is kept.
 * For backends, from any thread, including a fault handler's. */
void kiln__device_lose(kiln_device *device, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

#endif
