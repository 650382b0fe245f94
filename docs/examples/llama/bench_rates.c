#include "bench_rates.h"
#include "try.h"
#include <time.h>

enum { RUNS = 7, ROWS_MOST = 1 << 20, PRODUCT_MOST = 8192, PRODUCT_MOST_CPU = 1024 };
static const double ENOUGH = 0.02; /* seconds of a run */

double bench_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Something that is measured. */
typedef struct work {
    const bench_model *model;
    void *to;
    int64_t m, n, k;
    bool searches; /* for the greatest of each row, instead of multiplying */
} work;

/* The largest matrix that is not quantised. */
static const bench_matrix *data_of(const bench_model *m) {
    return m->gate_up.is_quantised ? &m->classifier : &m->gate_up;
}

static kiln_status put(const work *w) {
    const bench_format *f = &w->model->format;
    const char *a = data_of(w->model)->values;
    if (w->searches) {
        const kiln_argmax_params params = {.y = w->to, .x = a, .rows = w->n, .cols = w->k};
        return f->run->argmax(f->stream, &params, sizeof params);
    }
    const kiln_gemm_params params = {.d = w->to,
                                     .a = a,
                                     .b = a + (uint64_t)w->m * (uint64_t)w->k * f->element,
                                     .batch = 1,
                                     .m = w->m,
                                     .n = w->n,
                                     .k = w->k};
    return f->run->gemm(f->stream, &params, sizeof params);
}

static kiln_status time_of(const work *w, int calls, double *out) {
    const double begin = bench_now();
    for (int i = 0; i < calls; i++)
        TRY(put(w));
    TRY(kiln_stream_sync(w->model->format.stream));
    *out = (bench_now() - begin) / calls;
    return KILN_OK;
}

/* Seconds of a call, the least of several runs after one that warms up. */
static kiln_status shortest(const work *w, double *out) {
    double once, time;
    TRY(time_of(w, 1, out));
    TRY(time_of(w, 1, &once));
    const int calls = once < ENOUGH ? 1 + (int)(ENOUGH / (once > 1e-6 ? once : 1e-6)) : 1;
    *out = once;
    for (int run = 0; run < RUNS; run++) {
        TRY(time_of(w, calls < 1000 ? calls : 1000, &time));
        if (time < *out) *out = time;
    }
    return KILN_OK;
}

/* The factors lie side by side in the matrix; its first row is the one of the product with one row. */
static kiln_status measure(const bench_model *m, bench_memory *memory, bench_rates *out) {
    const bench_shape *s = m->shape;
    kiln_device_info info;
    double time;
    TRY(kiln_device_get_info(m->format.stream->device, &info));
    const int64_t most = info.backend == KILN_BACKEND_CPU ? PRODUCT_MOST_CPU : PRODUCT_MOST;
    const int64_t all = data_of(m)->layers * data_of(m)->out, rows = all - 1 < ROWS_MOST ? all - 1 : ROWS_MOST;
    work w = {.model = m, .m = 1, .n = rows, .k = s->size};
    TRY(bench_allocate(memory, (uint64_t)rows * sizeof(int32_t), &w.to)); /* an element is no larger */
    for (int searches = 0; searches <= (s->size <= 8192); searches++) {   /* longer rows want a workspace */
        w.searches = searches;
        TRY(shortest(&w, &time));
        const double rate = (double)rows * s->size * (double)m->format.element / time;
        if (rate > out->read) out->read = rate;
    }
    for (int64_t size = 64; size <= most && 2 * size * size <= all * s->size; size *= 2) {
        void *d;
        w = (work){.model = m, .m = size, .n = size, .k = size};
        TRY(bench_allocate(memory, (uint64_t)(size * size) * m->format.element, &d));
        w.to = d;
        TRY(shortest(&w, &time));
        const double rate = 2 * (double)size * (double)size * (double)size / time;
        if (rate <= out->products) continue;
        out->products = rate;
        out->product_size = size;
    }
    return KILN_OK;
}

kiln_status bench_measure_rates(const bench_model *model, bench_rates *out) {
    bench_memory memory = {.device = model->format.stream->device};
    *out = (bench_rates){0};
    const kiln_status status = measure(model, &memory, out);
    kiln_stream_sync(model->format.stream);
    bench_free(&memory);
    return status;
}
