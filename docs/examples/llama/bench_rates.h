/* What the device of a bench can do at best, by measurements of the same run. */
#ifndef LLAMA_BENCH_RATES_H
#define LLAMA_BENCH_RATES_H

#include "bench_model.h"

/* Seconds of a clock that only goes forward. */
double bench_now(void);

typedef struct bench_rates {
    double read;          /* bytes a second: the better of a product with one row and of argmax, over the weights */
    double products;      /* operations a second of the best product of square matrices */
    int64_t product_size; /* their rows and columns */
} bench_rates;

/* Measures with the model's largest matrix that is not quantised as data. */
kiln_status bench_measure_rates(const bench_model *model, bench_rates *out);

#endif
