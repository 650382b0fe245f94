#include "tests/ops/codes_reference.h"
#include <float.h>
#include <math.h>

enum { BLOCK = 16, GROUP = 128 };

int64_t codes_columns(const quantising *q) {
    return q->format == NVFP4 ? q->scale_cols * BLOCK / 2 : q->cols;
}

/* Of numbers in order the nearest to a magnitude, of two as near the one of even index. */
static int nearest(const double *numbers, int count, double magnitude) {
    int low = 0, high = count - 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (numbers[middle] <= magnitude)
            low = middle;
        else
            high = middle;
    }
    double farther = fabs(magnitude - numbers[low]) - fabs(magnitude - numbers[high]);
    return farther < 0 || (farther == 0 && low % 2 == 0) ? low : high;
}

static double e4m3_number(int code) {
    return code < 8 ? ldexp(code, -9) : ldexp(8 + code % 8, code / 8 - 10);
}

static int e4m3_of(double magnitude) {
    static double numbers[127];
    for (int i = 0; numbers[126] == 0 && i < 127; i++)
        numbers[i] = e4m3_number(i);
    return nearest(numbers, 127, fmin(magnitude, 448));
}

static int e2m1_of(float value) {
    static const double numbers[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    if (isnan(value)) return 7;
    return nearest(numbers, 8, fmin(fabs((double)value), 6)) + (signbit(value) ? 8 : 0);
}

static double byte_of(const quantising *q, float value, float smax) {
    if (isnan(value)) return q->format == E4M3 ? 0x7f : 0;
    double magnitude = fmin(fabs((double)value), (double)smax);
    if (q->format == INT8) return copysign(nearbyint(magnitude), (double)value) + 0.0; /* no -0 */
    return e4m3_of(magnitude) + (signbit(value) ? 128 : 0);
}

static float greatest_of(const float *values, int64_t count) {
    float greatest = 0;
    for (int64_t i = 0; i < count; i++)
        greatest = fmaxf(greatest, fabsf(values[i])); /* passes over NaN */
    return fminf(greatest, FLT_MAX);
}

static void bytes_reference(const quantising *q, const float *result, double *codes, double *scales) {
    const float most = q->format == E4M3 ? 448.0f : 127.0f, smax = q->smax == 0 ? most : q->smax;
    const int64_t width = q->scale_cols > 1 ? GROUP : q->cols;
    for (int64_t row = 0; row < q->rows; row++)
        for (int64_t col = 0; col < q->cols; col += width) {
            const float *values = result + row * q->cols + col;
            const int64_t count = q->cols - col < width ? q->cols - col : width;
            float scale = greatest_of(values, count) / smax;
            if (scale < FLT_MIN) scale = 1;
            if (q->static_scale != 0) scale = q->static_scale;
            scales[row * q->scale_cols + col / width] = (double)scale;
            for (int64_t i = 0; i < count; i++)
                codes[row * q->cols + col + i] = byte_of(q, values[i] * (1.0f / scale), smax);
        }
}

/* Where a scale is: the order of FlashInfer's and cuBLAS's tiles, written as a transposition of their dimensions. */
static int64_t place_of(const quantising *q, int64_t row, int64_t block) {
    if (!q->swizzled) return row * q->scale_cols + block;
    const int64_t at[] = {row / 128, block / 4, row % 32, row % 128 / 32, block % 4};
    const int64_t sizes[] = {q->scale_rows / 128, q->scale_cols / 4, 32, 4, 4};
    int64_t place = 0;
    for (int i = 0; i < 5; i++)
        place = place * sizes[i] + at[i];
    return place;
}

static void nvfp4_reference(const quantising *q, const float *result, double *codes, double *scales, double *globals) {
    for (int64_t i = 0; i < q->rows * codes_columns(q); i++)
        codes[i] = 0;
    for (int64_t i = 0; i < q->scale_rows * q->scale_cols; i++)
        scales[i] = 0;
    for (int64_t row = 0; row < q->rows; row++) {
        float global = greatest_of(result + row * q->cols, q->cols) / 2688.0f;
        if (global < 0x1p-116f) global = 1;
        if (q->static_scale != 0) global = q->static_scale;
        globals[row] = (double)global;
        for (int64_t col = 0; col < q->cols; col += BLOCK) {
            const float *values = result + row * q->cols + col, encode = 1.0f / global;
            const int64_t count = q->cols - col < BLOCK ? q->cols - col : BLOCK;
            float greatest = 0;
            for (int64_t i = 0; i < count; i++)
                greatest = fmaxf(greatest, fabsf(values[i]));
            int scale = e4m3_of((double)(greatest / 6.0f * encode));
            float factor = scale ? encode / (float)e4m3_number(scale) : 0;
            scales[place_of(q, row, col / BLOCK)] = scale;
            for (int64_t i = 0; i < count; i++)
                codes[row * codes_columns(q) + (col + i) / 2] += e2m1_of(values[i] * factor) * (i % 2 ? 16 : 1);
        }
    }
}

void codes_reference(const quantising *q, const float *result, double *codes, double *scales, double *globals) {
    if (q->format == NVFP4)
        nvfp4_reference(q, result, codes, scales, globals);
    else
        bytes_reference(q, result, codes, scales);
}
