/* What a scheduler counts, in the server's metrics: a family for each row of the scheduler's lists, named kiln_... , in
 * which every instance of a model has a metric. */
#ifndef KILN_TRITON_METRICS_H
#define KILN_TRITON_METRICS_H

#include "scheduler.h"
#include "triton_error.h"

/* Declares the families, once in a process, and takes them back when no instance is left. A server that has no metrics
 * is left alone. */
void metrics_open(void);
void metrics_close(void);

typedef struct metrics metrics;

/* The metrics of an instance; NULL: there are none. */
metrics *metrics_create(const char *model, uint64_t version, const char *instance);
void metrics_destroy(metrics *m);

/* For scheduler_options: user is a metrics, or NULL. */
void metrics_observe(void *user, const scheduler_counts *counts);

#endif
