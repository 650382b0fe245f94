/* Quantisation to FP8, INT8 and NVFP4, and dequantisation. ops.h has the rules for every operator.
 *
 * x may be read along either axis: the element of row r and column c is x[r * x_stride + c * x_col_stride], where an
 * x_col_stride of 0 means 1 and an x_stride of 0 means cols. A weight stored as [k, n] therefore produces codes [n, k]
 * with rows = n, cols = k, x_stride = 1 and x_col_stride = n, without a separate transpose, and bit-identical to those
 * of a transposed copy. An x_col_stride other than 1 is fastest if x_stride is 1, x is 16-byte aligned and x_col_stride
 * is a multiple of 16 bytes; with other strides elements are read one at a time. If there are few rows, scales per row
 * are then computed fastest in two calls: amax, and the quantising operator with its result as amax.
 *
 * The operators return KILN_ERROR_INVALID_ARGUMENT for a negative stride; for overlapping elements, that is, unless
 * x_stride is at least (cols - 1) * x_col_stride + 1, the extent of a row, or x_col_stride is at least
 * (rows - 1) * x_stride + 1, the extent of a column; and for an x with an extent of 2^60 elements or more. */
#ifndef KILN_OPS_QUANTIZE_H
#define KILN_OPS_QUANTIZE_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- amax: the greatest magnitudes of x, by tensor, row, group or block ------------------------------------------ */

typedef struct kiln_amax_params {
    float *y;      /* [scale_rows, scale_cols], output */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* at most 2^31 - 1 */
    int64_t scale_rows;    /* 1, rows / 128 rounded up, or rows: determines how many rows share a result */
    int64_t scale_cols;    /* 1, or cols / 128 rounded up: determines how many columns share a result */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* device memory, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_amax_<precision>_workspace_size() */
    int64_t x_col_stride;  /* 0: 1 */
} kiln_amax_params;

/* Computes the greatest magnitudes that the quantising operators take as amax. They stay on the device, so that a
 * captured graph can compute them and quantise. NaN is ignored: if all elements are NaN the result is 0. If there is an
 * infinity the result is infinite. Results do not depend on how the work is divided: they are bit-identical on every
 * device.
 *
 * Rows of more than 8192 elements, and rows that share a result, need two launches and a workspace. */
KILN_OPERATOR_FUNCTION(amax_f32, kiln_amax_params)
KILN_OPERATOR_FUNCTION(amax_f16, kiln_amax_params)
KILN_OPERATOR_FUNCTION(amax_bf16, kiln_amax_params)

/* Computes the workspace size in bytes, which depends only on the sizes; the pointers are ignored. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(amax_f32, kiln_amax_params)
KILN_WORKSPACE_FUNCTION(amax_f16, kiln_amax_params)
KILN_WORKSPACE_FUNCTION(amax_bf16, kiln_amax_params)

/* ---- quantize_fp8: codes * scales = x, with codes in E4M3 -------------------------------------------------------- */

typedef struct kiln_quantize_fp8_params {
    uint8_t *codes;     /* [rows, cols], OCP E4M3 on every device */
    float *scales;      /* [scale_rows, scale_cols]; NULL: not written */
    const void *x;      /* [rows, cols] */
    const float *given; /* [scale_rows, scale_cols]: the scales to use; NULL: amax / smax */
    const float *amax;  /* [scale_rows, scale_cols]: the greatest magnitudes; NULL: computed from x. Not read if given
                         * is not NULL */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1; rows / 128, rounded up; or rows (0: rows) */
    int64_t scale_cols;   /* 1 (0: 1); or cols / 128, rounded up */
    int64_t codes_stride; /* 0: cols */
    int64_t x_stride;     /* 0: cols */
    float smax;           /* magnitude to which the greatest element is scaled: from 1 to 448; 0: 448 */
    int32_t reserved;     /* must be 0 */
    int64_t x_col_stride; /* 0: 1 */
} kiln_quantize_fp8_params;

/* The shape of scales determines which elements share one: 1 x 1 the whole tensor; rows x 1 each row (a token); rows x
 * cols / 128 each group of 1 x 128; rows / 128 x cols / 128 each block of 128 x 128. Groups at the edges may be
 * smaller. A scale that spans both several rows and more than 128 x 128 elements, such as a scale for the tensor,
 * requires given or amax, which are in device memory: nothing is read back.
 *
 *     scale = amax / smax     where that is at least 2^-126, else 1
 *     code = E4M3(x * (1 / scale))
 *
 * in IEEE arithmetic, each operation rounded once: codes and scales are bit-identical on every device, and to those of
 * a call with the same scales as given. E4M3() rounds to nearest even and clamps magnitudes to smax. A group of zeros
 * has the scale 1 and codes of 0 with the elements' signs. amax ignores NaN, whose code is 0x7f; an infinity sets amax
 * to the greatest f32 and has the code +-smax. A given scale that is NaN or below 2^-126, such as 0, counts as 1. */
KILN_OPERATOR_FUNCTION(quantize_fp8_f32, kiln_quantize_fp8_params)
KILN_OPERATOR_FUNCTION(quantize_fp8_f16, kiln_quantize_fp8_params)
KILN_OPERATOR_FUNCTION(quantize_fp8_bf16, kiln_quantize_fp8_params)

/* ---- quantize_int8: codes * scales = x, with codes in int8 ------------------------------------------------------- */

typedef struct kiln_quantize_int8_params {
    int8_t *codes;      /* [rows, cols], from -127 to 127 */
    float *scales;      /* [scale_rows, scale_cols]; NULL: not written */
    const void *x;      /* [rows, cols] */
    const float *given; /* [scale_rows, scale_cols]: the scales to use; NULL: amax / smax */
    const float *amax;  /* [scale_rows, scale_cols]: the greatest magnitudes; NULL: computed from x. Not read if given
                         * is not NULL */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1; rows / 128, rounded up; or rows (0: rows) */
    int64_t scale_cols;   /* 1 (0: 1); or cols / 128, rounded up */
    int64_t codes_stride; /* 0: cols */
    int64_t x_stride;     /* 0: cols */
    float smax;           /* magnitude to which the greatest element is scaled: from 1 to 127; 0: 127 */
    int32_t reserved;     /* must be 0 */
    int64_t x_col_stride; /* 0: 1 */
} kiln_quantize_int8_params;

/* The same as quantize_fp8, except that code is x * (1 / scale) rounded to the nearest integer, ties to even, and
 * clamped to smax. The code of NaN is 0. */
KILN_OPERATOR_FUNCTION(quantize_int8_f32, kiln_quantize_int8_params)
KILN_OPERATOR_FUNCTION(quantize_int8_f16, kiln_quantize_int8_params)
KILN_OPERATOR_FUNCTION(quantize_int8_bf16, kiln_quantize_int8_params)

/* ---- quantize_nvfp4: x as E2M1 with scales of E4M3 and f32 ------------------------------------------------------- */

typedef struct kiln_quantize_nvfp4_params {
    uint8_t *codes;      /* [rows, 8 * scale_cols], two columns per byte, the first in the low half */
    uint8_t *scales;     /* [scale_rows, scale_cols], OCP E4M3 on every device, laid out as scale_layout states */
    float *global_scale; /* [global_rows]; NULL: not written */
    const void *x;       /* [rows, cols] */
    const float *given;  /* [global_rows], the global scales; NULL: amax / 2688 */
    const float *amax;   /* [global_rows], the greatest magnitudes; not read, and may be NULL, if given is not NULL */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* at least rows; with KILN_SCALES_128X4 a multiple of 128 */
    int64_t scale_cols;   /* at least cols / 16 rounded up; with KILN_SCALES_128X4 a multiple of 4 */
    int64_t global_rows;  /* 1: a global scale for the tensor; rows: one for each row */
    int64_t codes_stride; /* in bytes; 0: 8 * scale_cols */
    int64_t x_stride;     /* 0: cols */
    int32_t scale_layout; /* kiln_scale_layout */
    int32_t reserved;     /* must be 0 */
    int64_t x_col_stride; /* 0: 1 */
} kiln_quantize_nvfp4_params;

/* NVFP4 (NVIDIA, "Pretraining Large Language Models with NVFP4", arXiv 2509.25149): an element is the product of its
 * code, an E2M1 number of the Open Compute Project's Microscaling Formats; the scale that it shares with 15 neighbours;
 * and the global scale g. g is the *decode* scale; other libraries expect its reciprocal.
 *
 *     g = amax / 2688                     where that is at least 2^-116, else 1
 *     scale = E4M3((greatest magnitude of the 16 / 6) * (1 / g))
 *     code = E2M1(x * ((1 / g) / scale)), or of x * 0 where scale is 0
 *
 * in IEEE arithmetic, each operation rounded once: codes and scales are bit-identical on every device. E4M3() and
 * E2M1() round to nearest even and saturate at 448 and at 6. A tensor of zeros therefore has g = 1, and blocks that are
 * small compared with the tensor have the scale 0 and codes of zero with the elements' signs. The greatest magnitude
 * ignores NaN, whose code is that of 6; infinities have the codes of +-6, and an infinite amax counts as the greatest
 * f32. A given scale that is NaN or below 2^-116, such as 0, counts as 1. Codes beyond cols, up to 16 * scale_cols, and
 * scales beyond the rows and columns of x are 0. */
KILN_OPERATOR_FUNCTION(quantize_nvfp4_f32, kiln_quantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(quantize_nvfp4_f16, kiln_quantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(quantize_nvfp4_bf16, kiln_quantize_nvfp4_params)

/* ---- dequantize_fp8: y = codes * scales -------------------------------------------------------------------------- */

typedef struct kiln_dequantize_fp8_params {
    void *y;              /* [rows, cols] */
    const uint8_t *codes; /* [rows, cols], OCP E4M3 on every device */
    const float *scales;  /* [scale_rows, scale_cols] */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1, rows / 128 rounded up, or rows (0: rows): determines how many rows share a scale */
    int64_t scale_cols;   /* 1 (0: 1), or cols / 128 rounded up: determines how many columns do */
    int64_t y_stride;     /* 0: cols */
    int64_t codes_stride; /* 0: cols */
} kiln_dequantize_fp8_params;

/* The inverse of kiln_quantize_fp8: the product of the code's value and its scale in f32, rounded to the precision.
 * Results are bit-identical on every device, except for the bits of NaN, which is the value of the codes 0x7f and
 * 0xff. */
KILN_OPERATOR_FUNCTION(dequantize_fp8_f32, kiln_dequantize_fp8_params)
KILN_OPERATOR_FUNCTION(dequantize_fp8_f16, kiln_dequantize_fp8_params)
KILN_OPERATOR_FUNCTION(dequantize_fp8_bf16, kiln_dequantize_fp8_params)

/* ---- dequantize_int8: y = codes * scales ------------------------------------------------------------------------- */

typedef struct kiln_dequantize_int8_params {
    void *y;             /* [rows, cols] */
    const int8_t *codes; /* [rows, cols] */
    const float *scales; /* [scale_rows, scale_cols] */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1, rows / 128 rounded up, or rows (0: rows): determines how many rows share a scale */
    int64_t scale_cols;   /* 1 (0: 1), or cols / 128 rounded up: determines how many columns do */
    int64_t y_stride;     /* 0: cols */
    int64_t codes_stride; /* 0: cols */
} kiln_dequantize_int8_params;

/* The inverse of kiln_quantize_int8: the product of the code and its scale in f32, rounded to the precision. */
KILN_OPERATOR_FUNCTION(dequantize_int8_f32, kiln_dequantize_int8_params)
KILN_OPERATOR_FUNCTION(dequantize_int8_f16, kiln_dequantize_int8_params)
KILN_OPERATOR_FUNCTION(dequantize_int8_bf16, kiln_dequantize_int8_params)

/* ---- dequantize_nvfp4: y = codes * scales * global_scale --------------------------------------------------------- */

typedef struct kiln_dequantize_nvfp4_params {
    void *y;                   /* [rows, cols] */
    const uint8_t *codes;      /* [rows, 8 * scale_cols], two columns per byte, the first in the low half */
    const uint8_t *scales;     /* [scale_rows, scale_cols], OCP E4M3 on every device, laid out as scale_layout states */
    const float *global_scale; /* [global_rows] */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* at least rows; with KILN_SCALES_128X4 a multiple of 128 */
    int64_t scale_cols;   /* at least cols / 16 rounded up; with KILN_SCALES_128X4 a multiple of 4 */
    int64_t global_rows;  /* 1: a global scale for the tensor; rows: one for each row */
    int64_t y_stride;     /* 0: cols */
    int64_t codes_stride; /* in bytes; 0: 8 * scale_cols */
    int32_t scale_layout; /* kiln_scale_layout */
    int32_t reserved;     /* must be 0 */
} kiln_dequantize_nvfp4_params;

/* The inverse of kiln_quantize_nvfp4: (E2M1 * E4M3) * global_scale. The first product is exact; the second is rounded
 * to f32, then to the precision. Results are bit-identical on every device, except for the bits of NaN, which a scale
 * may be. */
KILN_OPERATOR_FUNCTION(dequantize_nvfp4_f32, kiln_dequantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(dequantize_nvfp4_f16, kiln_dequantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(dequantize_nvfp4_bf16, kiln_dequantize_nvfp4_params)

#ifdef __cplusplus
}
#endif

#endif
