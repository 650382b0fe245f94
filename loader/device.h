/* An open device. */
#ifndef KILN_LOADER_DEVICE_H
#define KILN_LOADER_DEVICE_H

#include "loader/status.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct kiln__backend kiln__backend;
typedef struct kiln__trace kiln__trace;
typedef struct kiln__plan kiln__plan;

enum { KILN__OPERATOR_SLOTS = 256 }; /* the operators know which is whose */

/* The state word. Exactly READY is the fast path. A GPU device's word lies on a page that the kernel wipes in a forked
 * child (or that an atfork handler zeroes), so that a child finds 0. */
enum { KILN__READY = 1, KILN__TRACING = 2, KILN__LOSING = 4, KILN__LOST = 8, KILN__CLOSING = 16, KILN__PLANNING = 32 };

/* arguments has kernel->arguments_size bytes. */
typedef kiln_status (*kiln__launch_function)(kiln_stream *stream, const kiln_kernel *kernel,
                                             const kiln_launch_config *config, const void *arguments);

struct kiln_device {
    /* What a launch touches, first. */
    _Atomic uint32_t *state;
    kiln__launch_function launch;
    kiln__launch_function launch_plain; /* no dimension is zero and there is no cluster: what operators launch */
    uint64_t number;                    /* among all GPU devices that the process has opened, from 1; 0: the CPU */
    void *native;                       /* the backend's own */
    void *key_context;                  /* the borrowed context, or NULL: part of the identity */

    /* What operators loaded, each in a slot of its own, or NULL: published with release, read with acquire. */
    _Atomic(const kiln_module *) operators[KILN__OPERATOR_SLOTS];

    const kiln__backend *backend;
    kiln_device_info info;
    uint64_t threads_most; /* of a launch's blocks together; UINT64_MAX: no such limit */
    char *why;
    uint32_t references;       /* under the registry's lock */
    bool listed;               /* in the registry; set once, while it is opened */
    pthread_mutex_t load_lock; /* guards modules */
    kiln_module *modules;      /* every load, those that found no image included */
    kiln__plan *plan;          /* of a device that only plans (kiln_plan_open); NULL: a real one */
    kiln__trace *trace;        /* set while the state has TRACING, or being drained */
    pthread_mutex_t trace_lock;
    char lost[128];    /* the reason: written under LOSING, constant from LOST on */
    kiln_device *next; /* registry */
};

/* A device with one reference that is neither open nor listed, its state 0; NULL without memory. */
kiln_device *kiln__device_new(const kiln__backend *backend, int32_t ordinal);
void kiln__device_free(kiln_device *device);

/* KILN_OK if the device can be used; else FORKED, DEVICE_LOST or INVALID_ARGUMENT (closing, or it only plans), with the
 * text. */
kiln_status kiln__device_check(const kiln_device *device);

/* The same of a function's argument, which may be NULL. */
kiln_status kiln__device_argument_check(const char *function, const kiln_device *device);

/* Marks the device lost, for the reason that the text states and that every later call on it repeats. The first reason
 * stays. For backends, from any thread (a fault handler included). */
void kiln__device_lose(kiln_device *device, const char *format, ...) __attribute__((format(printf, 2, 3), cold));

#endif
