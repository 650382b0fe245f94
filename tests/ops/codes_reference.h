/* Results as codes and scales, from the formulas of quantize.h: a reference for the operators that quantise what they
 * compute. */
#ifndef KILN_TESTS_OPS_CODES_REFERENCE_H
#define KILN_TESTS_OPS_CODES_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum format { E4M3, INT8, NVFP4 } format;

/* How a result [rows, cols] is quantised. */
typedef struct quantising {
    format format;
    int64_t rows, cols;
    int64_t scale_rows, scale_cols; /* of NVFP4 any; else scale_rows is rows */
    bool swizzled;
    float smax;         /* 0: the greatest number */
    float static_scale; /* 0: computed */
} quantising;

/* Columns of codes: of NVFP4 bytes. */
int64_t codes_columns(const quantising *q);

/* codes [rows, codes_columns], scales [scale_rows, scale_cols], globals [rows] (of NVFP4). */
void codes_reference(const quantising *q, const float *result, double *codes, double *scales, double *globals);

#endif
