#include "metrics.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every family: (name, text). Of the first two lists are totals, which only grow. */
enum {
#define NUMBER(name, text) TOTAL_##name,
    ENGINE_COUNTS(NUMBER) SCHEDULER_COUNTS(NUMBER) TOTALS,
#undef NUMBER
    BEFORE_GAUGES = TOTALS - 1,
#define NUMBER(name, text) GAUGE_##name,
    SCHEDULER_GAUGES(NUMBER) FAMILIES
#undef NUMBER
};

static const struct {
    const char *name, *text;
} descriptions[] = {
#define TOTAL(name, text) {"kiln_" #name "_total", text},
#define GAUGE(name, text) {"kiln_" #name, text},
    ENGINE_COUNTS(TOTAL) SCHEDULER_COUNTS(TOTAL) SCHEDULER_GAUGES(GAUGE)
#undef TOTAL
#undef GAUGE
};

static TRITONSERVER_MetricFamily *families[FAMILIES];

struct metrics {
    TRITONSERVER_Metric *metrics[FAMILIES];
    int64_t values[FAMILIES]; /* as the server has them */
};

void metrics_open(void) {
    for (int i = 0; i < FAMILIES; i++) {
        TRITONSERVER_MetricKind kind = i < TOTALS ? TRITONSERVER_METRIC_KIND_COUNTER : TRITONSERVER_METRIC_KIND_GAUGE;
        TRITONSERVER_Error *error =
            TRITONSERVER_MetricFamilyNew(&families[i], kind, descriptions[i].name, descriptions[i].text);
        if (!error) continue;
        families[i] = NULL;
        triton_log_error(error, descriptions[i].name);
    }
}

void metrics_close(void) {
    for (int i = 0; i < FAMILIES; i++) {
        if (families[i]) triton_log_error(TRITONSERVER_MetricFamilyDelete(families[i]), descriptions[i].name);
        families[i] = NULL;
    }
}

metrics *metrics_create(const char *model, uint64_t version, const char *instance) {
    enum { LABELS = 3 };
    char number[24];
    metrics *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    snprintf(number, sizeof number, "%" PRIu64, version);
    const char *const values[LABELS] = {model, number, instance};
    static const char *const names[LABELS] = {"model", "version", "instance"};
    TRITONSERVER_Parameter *labels[LABELS];
    for (int i = 0; i < LABELS; i++)
        labels[i] = TRITONSERVER_ParameterNew(names[i], TRITONSERVER_PARAMETER_STRING, values[i]);
    for (int i = 0; i < FAMILIES; i++) {
        if (!families[i]) continue;
        TRITONSERVER_Error *error = TRITONSERVER_MetricNew(&m->metrics[i], families[i],
                                                           (const TRITONSERVER_Parameter **)(void *)labels, LABELS);
        if (error) m->metrics[i] = NULL;
        triton_log_error(error, descriptions[i].name);
    }
    for (int i = 0; i < LABELS; i++)
        TRITONSERVER_ParameterDelete(labels[i]);
    return m;
}

void metrics_destroy(metrics *m) {
    if (!m) return;
    for (int i = 0; i < FAMILIES; i++)
        if (m->metrics[i]) triton_log_error(TRITONSERVER_MetricDelete(m->metrics[i]), descriptions[i].name);
    free(m);
}

void metrics_observe(void *user, const scheduler_counts *counts) {
    metrics *m = user;
    const int64_t now[] = {
#define ENGINE_VALUE(name, text) counts->engine.name,
#define VALUE(name, text)        counts->name,
        ENGINE_COUNTS(ENGINE_VALUE) SCHEDULER_COUNTS(VALUE) SCHEDULER_GAUGES(VALUE)
#undef ENGINE_VALUE
#undef VALUE
    };
    if (!m) return;
    for (int i = 0; i < FAMILIES; i++) {
        TRITONSERVER_Metric *metric = m->metrics[i];
        int64_t before = m->values[i];
        if (!metric || now[i] == before) continue;
        m->values[i] = now[i];
        triton_log_error(i < TOTALS ? TRITONSERVER_MetricIncrement(metric, (double)(now[i] - before))
                                    : TRITONSERVER_MetricSet(metric, (double)now[i]),
                         descriptions[i].name);
    }
}
