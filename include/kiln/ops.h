/* kiln's operators.
 *
 * kiln_<op>_<precision>(stream, &params) checks its parameters, chooses a kernel and launches it on the stream. The
 * same call works on every backend and gives the same result within the operator's tolerance.
 *
 * Rules for every operator:
 *
 * - Pointers are to memory of the stream's device, which the caller owns and keeps valid until the stream has completed
 *   the call. Rows are contiguous; strides between rows are in elements, and 0 means packed. Any element alignment
 *   works; rows aligned to 16 bytes are fastest. 16-bit floats are uint16_t.
 * - Arithmetic is in f32, with one rounding to nearest even at the end. NaN propagates unless stated otherwise.
 * - A size of 0 succeeds and writes nothing. Sizes are int64_t, and tensors of more than 2^31 elements work. A call
 * that needs more blocks of 256 threads than a launch may have is refused; every device takes 2^23 - 1 of them.
 * - Outputs may alias inputs only where that is stated.
 * - No operator allocates, waits or reads results back, so once loaded (by kiln_preload or by its first call) it can be
 *   captured in a CUDA graph.
 * - Zero in a field of params selects the default. params may be a temporary.
 * - Any thread may call, but a stream may be used by only one thread at a time.
 * - No stack frame reaches 4 KB, on the CPU either: working memory belongs to the stream and the device.
 * - The exported functions have the suffix _sized and take sizeof(params), so that structs can grow: the missing tail
 * of an older caller's shorter struct counts as zero, and a longer struct with a non-zero tail is refused.
 * Foreign-function interfaces call these, as kiln_add_f16_sized(stream, params, size); the functions without the suffix
 * are inline and in no library. docs/foreign-functions.md lists every exported name.
 *
 * Each function returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT, before anything is launched, with the parameter and the
 * rule in kiln_last_error(); on its first use also what loading can return (see kiln_module_get), with
 * KILN_ERROR_CAPTURING if the stream is being captured; and what kiln_launch returns.
 */
#ifndef KILN_OPS_H
#define KILN_OPS_H

#include <kiln/kiln.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Declares kiln_<name>(stream, params) and the exported function that it calls. */
#define KILN_OPERATOR_FUNCTION(name, params_type)                                                                 \
    KILN_API kiln_status kiln_##name##_sized(kiln_stream *stream, const params_type *params, size_t params_size); \
    static inline kiln_status kiln_##name(kiln_stream *stream, const params_type *params) {                       \
        return kiln_##name##_sized(stream, params, sizeof(params_type));                                          \
    }

/* Declares kiln_<name>_workspace_size(stream, params, &size) likewise: it computes the exact bytes of workspace that
 * the call would need. It launches nothing and allocates no device memory; those that have to load the operator's image
 * say so. Work may be divided differently on different devices, so the size is valid for streams of this device. */
#define KILN_WORKSPACE_FUNCTION(name, params_type)                                                          \
    KILN_API kiln_status kiln_##name##_workspace_size_sized(kiln_stream *stream, const params_type *params, \
                                                            size_t params_size, size_t *out_size);          \
    static inline kiln_status kiln_##name##_workspace_size(kiln_stream *stream, const params_type *params,  \
                                                           size_t *out_size) {                              \
        return kiln_##name##_workspace_size_sized(stream, params, sizeof(params_type), out_size);           \
    }

/* The type of a tensor of ids, positions or slots. Operators that accept both types have a field index_type. */
typedef enum kiln_index_type { KILN_INDEX_I32, KILN_INDEX_I64 } kiln_index_type;

/* The order of NVFP4's scales of E4M3, one for each 16 columns. */
typedef enum kiln_scale_layout {
    KILN_SCALES_LINEAR, /* row by row */
    KILN_SCALES_128X4   /* tiles of 128 rows by 4 scales, 512 bytes each, row by row; scale c of row r of a tile is byte
                         * (r % 32) * 16 + (r / 32) * 4 + c of it: what block-scaled matrix units read */
} kiln_scale_layout;

/* ---- add: y = a + b ---------------------------------------------------------------------------------------------- */

typedef struct kiln_add_params {
    void *y;       /* [count]; may be a or b */
    const void *a; /* [count] */
    const void *b; /* [count] */
    int64_t count;
} kiln_add_params;

KILN_OPERATOR_FUNCTION(add_f32, kiln_add_params)
KILN_OPERATOR_FUNCTION(add_f16, kiln_add_params)
KILN_OPERATOR_FUNCTION(add_bf16, kiln_add_params)

/* ---- add_gelu: y = gelu(x + bias) -------------------------------------------------------------------------------- */

/* The forms of GELU (Hendrycks and Gimpel, arXiv 1606.08415); t = x + bias. */
typedef enum kiln_gelu {
    KILN_GELU_ERF,   /* 0.5 t (1 + erf(t / sqrt 2)) */
    KILN_GELU_TANH,  /* 0.5 t (1 + tanh(sqrt(2 / pi) (t + 0.044715 t^3))) */
    KILN_GELU_QUICK, /* t sigmoid(1.702 t) */
} kiln_gelu;

typedef struct kiln_add_gelu_params {
    void *y;          /* [rows, cols]; may be x, with the same stride */
    const void *x;    /* [rows, cols] */
    const void *bias; /* [cols]; NULL: 0 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride; /* 0: cols */
    int64_t x_stride; /* 0: cols */
    int32_t approx;   /* kiln_gelu */
    int32_t reserved; /* must be 0 */
} kiln_add_gelu_params;

/* The bias is added in f32. gelu(-inf) is -0, gelu(+inf) is +inf. */
KILN_OPERATOR_FUNCTION(add_gelu_f32, kiln_add_gelu_params)
KILN_OPERATOR_FUNCTION(add_gelu_f16, kiln_add_gelu_params)
KILN_OPERATOR_FUNCTION(add_gelu_bf16, kiln_add_gelu_params)

/* ---- add_rmsnorm: sum = x + residual; y = sum / sqrt(mean of sum^2 + eps) * weight over each row ----------------- */

typedef struct kiln_add_rmsnorm_params {
    void *y;              /* [rows, cols]; may be x or residual, with the same stride */
    void *sum;            /* [rows, cols]; may be x or residual, with the same stride, but not y */
    const void *x;        /* [rows, cols] */
    const void *residual; /* [rows, cols] */
    const void *weight;   /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride;        /* 0: cols */
    int64_t sum_stride;      /* 0: cols */
    int64_t x_stride;        /* 0: cols */
    int64_t residual_stride; /* 0: cols */
    float eps;               /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t reserved;        /* must be 0 */
} kiln_add_rmsnorm_params;

/* y is computed from the sum in f32, before that is rounded and stored. Otherwise the same as rmsnorm. */
KILN_OPERATOR_FUNCTION(add_rmsnorm_f32, kiln_add_rmsnorm_params)
KILN_OPERATOR_FUNCTION(add_rmsnorm_f16, kiln_add_rmsnorm_params)
KILN_OPERATOR_FUNCTION(add_rmsnorm_bf16, kiln_add_rmsnorm_params)

/* ---- amax: the greatest magnitudes of x, by tensor, row, group or block ------------------------------------------ */

typedef struct kiln_amax_params {
    float *y;      /* [scale_rows, scale_cols], written */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;       /* at most 2^31 - 1 */
    int64_t scale_rows; /* 1, rows / 128 rounded up, or rows: how many rows share a result */
    int64_t scale_cols; /* 1, or cols / 128 rounded up: how many columns do */
    int64_t x_stride;   /* 0: cols */
    void *workspace;    /* 16-byte aligned; may be NULL where its size is 0 */
    size_t workspace_size;
} kiln_amax_params;

/* The greatest magnitudes that the quantising operators take as amax, on the device: nothing is read back, so that a
 * captured graph may find them and quantise. NaN is passed over; of nothing but NaN the result is 0, and with an
 * infinity it is infinite. Results do not depend on how the work is divided: they are the same bits on every device.
 *
 * Rows of more than 8192 elements, and rows that share a result, take two launches and workspace, the exact size of
 * which kiln_amax_*_workspace_size says. */
KILN_OPERATOR_FUNCTION(amax_f32, kiln_amax_params)
KILN_OPERATOR_FUNCTION(amax_f16, kiln_amax_params)
KILN_OPERATOR_FUNCTION(amax_bf16, kiln_amax_params)
KILN_WORKSPACE_FUNCTION(amax_f32, kiln_amax_params)
KILN_WORKSPACE_FUNCTION(amax_f16, kiln_amax_params)
KILN_WORKSPACE_FUNCTION(amax_bf16, kiln_amax_params)

/* ---- argmax: the column of each row's greatest element ----------------------------------------------------------- */

typedef struct kiln_argmax_params {
    int32_t *y;    /* [rows] */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* rows and cols are at most 2^31 - 1 */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_argmax_<precision>_workspace_size() */
} kiln_argmax_params;

/* Of equal elements the first is taken; 0 and -0 are equal. If a row has NaNs, the first NaN is taken. If cols is 0,
 * nothing is written. */
KILN_OPERATOR_FUNCTION(argmax_f32, kiln_argmax_params)
KILN_OPERATOR_FUNCTION(argmax_f16, kiln_argmax_params)
KILN_OPERATOR_FUNCTION(argmax_bf16, kiln_argmax_params)

/* The bytes of workspace that argmax needs for rows and cols, whatever the pointers: 0 for rows of up to 8192 elements.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(argmax_f32, kiln_argmax_params)
KILN_WORKSPACE_FUNCTION(argmax_f16, kiln_argmax_params)
KILN_WORKSPACE_FUNCTION(argmax_bf16, kiln_argmax_params)

/* ---- dequantize_fp8: y = codes * scales -------------------------------------------------------------------------- */

typedef struct kiln_dequantize_fp8_params {
    void *y;              /* [rows, cols] */
    const uint8_t *codes; /* [rows, cols], OCP E4M3 on every device */
    const float *scales;  /* [scale_rows, scale_cols] */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1, rows / 128 rounded up, or rows, as 0: how many rows share a scale */
    int64_t scale_cols;   /* 1, as 0, or cols / 128 rounded up: how many columns do */
    int64_t y_stride;     /* 0: cols */
    int64_t codes_stride; /* 0: cols */
} kiln_dequantize_fp8_params;

/* What kiln_quantize_fp8_* made, back: the product of the code's number and its scale in f32, rounded to y. The same
 * bits on every device, but for those of NaN, which the codes 0x7f and 0xff give. */
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
    int64_t scale_rows;   /* 1, rows / 128 rounded up, or rows, as 0: how many rows share a scale */
    int64_t scale_cols;   /* 1, as 0, or cols / 128 rounded up: how many columns do */
    int64_t y_stride;     /* 0: cols */
    int64_t codes_stride; /* 0: cols */
} kiln_dequantize_int8_params;

/* What kiln_quantize_int8_* made, back, as dequantize_fp8. */
KILN_OPERATOR_FUNCTION(dequantize_int8_f32, kiln_dequantize_int8_params)
KILN_OPERATOR_FUNCTION(dequantize_int8_f16, kiln_dequantize_int8_params)
KILN_OPERATOR_FUNCTION(dequantize_int8_bf16, kiln_dequantize_int8_params)

/* ---- dequantize_nvfp4: y = codes * scales * global_scale --------------------------------------------------------- */

typedef struct kiln_dequantize_nvfp4_params {
    void *y;                   /* [rows, cols] */
    const uint8_t *codes;      /* [rows, 8 * scale_cols], two columns to a byte, the first of them in its low half */
    const uint8_t *scales;     /* [scale_rows, scale_cols], OCP E4M3 on every device, in the order of scale_layout */
    const float *global_scale; /* [global_rows] */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* at least rows; of KILN_SCALES_128X4 a multiple of 128 */
    int64_t scale_cols;   /* at least cols / 16 rounded up; of KILN_SCALES_128X4 a multiple of 4 */
    int64_t global_rows;  /* 1: a global scale for the tensor; rows: one for each row */
    int64_t y_stride;     /* 0: cols */
    int64_t codes_stride; /* in bytes; 0: 8 * scale_cols */
    int32_t scale_layout; /* kiln_scale_layout */
    int32_t reserved;     /* must be 0 */
} kiln_dequantize_nvfp4_params;

/* What kiln_quantize_nvfp4_* made, back: (E2M1 * E4M3) * global_scale, of which the first product is exact and the
 * second is rounded to f32, then to y. The same bits on every device, but for those of NaN, which a scale may be. */
KILN_OPERATOR_FUNCTION(dequantize_nvfp4_f32, kiln_dequantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(dequantize_nvfp4_f16, kiln_dequantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(dequantize_nvfp4_bf16, kiln_dequantize_nvfp4_params)

/* ---- embedding: y = table[ids] ----------------------------------------------------------------------------------- */

typedef struct kiln_embedding_params {
    void *y;           /* [rows, cols] */
    const void *table; /* [vocabulary, cols]; may be NULL if vocabulary is 0 */
    const void *ids;   /* [rows], of index_type */
    int64_t rows;
    int64_t cols;
    int64_t vocabulary;
    int64_t y_stride;     /* 0: cols */
    int64_t table_stride; /* 0: cols */
    int64_t first;        /* id of the table's first row, where the table is a shard of a larger one. first + vocabulary
                           * is at most 2^63 - 1 */
    int32_t index_type;   /* kiln_index_type of ids */
    int32_t reserved;     /* must be 0 */
} kiln_embedding_params;

/* Rows are copied bit for bit. An id outside [first, first + vocabulary) gives a row of zeros. */
KILN_OPERATOR_FUNCTION(embedding_f32, kiln_embedding_params)
KILN_OPERATOR_FUNCTION(embedding_f16, kiln_embedding_params)
KILN_OPERATOR_FUNCTION(embedding_bf16, kiln_embedding_params)

/* ---- gemm: d = activation(scale * a * b^T + c + bias) ------------------------------------------------------------ */

/* The function applied to each element of the result. */
typedef enum kiln_gemm_activation {
    KILN_GEMM_NONE,
    KILN_GEMM_GELU_ERF,
    KILN_GEMM_GELU_TANH,
    KILN_GEMM_GELU_QUICK,
    KILN_GEMM_SILU,
} kiln_gemm_activation;

/* The tile of d that a block computes, where the image has kernels for several tiles. Those that use matrix units
 * (tensor cores) need the rows of a and b aligned to 16 bytes. */
typedef enum kiln_gemm_tile {
    KILN_GEMM_TILE_AUTO,     /* the tile with the shortest predicted time */
    KILN_GEMM_TILE_PORTABLE, /* 64 x 64, in f32 arithmetic; every image has it */
    KILN_GEMM_TILE_SMALL,    /* on sm_80 and later 64 x 128, on sm_90 128 x 64, on gfx90a and gfx942 64 x 64 */
    KILN_GEMM_TILE_LARGE,    /* on sm_80 and later 128 x 256, on gfx90a and gfx942 256 x 128 */
    KILN_GEMM_TILE_MEDIUM,   /* on sm_90 128 x 128; other images have none and use the portable tile */
} kiln_gemm_tile;

typedef struct kiln_gemm_params {
    void *d;          /* [batch, m, n]; may be c, with the same strides */
    const void *a;    /* [batch, m, k] */
    const void *b;    /* [batch, n, k]: the layout in which a linear layer stores its weights, [out, in] */
    const void *c;    /* [batch, m, n]; NULL: 0 */
    const void *bias; /* [n]; NULL: 0 */
    int64_t batch;    /* 1 for a single product; batch, m, n and k are at most 2^31 - 1 */
    int64_t m;
    int64_t n;
    int64_t k;              /* 0: the product is 0, and a and b may be NULL */
    int64_t d_stride;       /* 0: n */
    int64_t a_stride;       /* 0: k */
    int64_t b_stride;       /* 0: k */
    int64_t c_stride;       /* 0: n */
    int64_t d_batch_stride; /* between matrices; 0: packed. At least a row: matrices may be interleaved */
    int64_t a_batch_stride;
    int64_t b_batch_stride;
    int64_t c_batch_stride;
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1. What BLAS calls alpha */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;          /* kiln_gemm_tile; the portable one where the image or the tensors do not allow it */
    int32_t reserved;      /* must be 0 */
} kiln_gemm_params;

/* Products are accumulated in f32, one by one or in the order of the chip's matrix units. For up to 8 rows of a there
 * is a kernel that reads b only once; for up to 16 if the image uses matrix units, the rows of a and b are aligned to
 * 16 bytes and k is a multiple of 8. The matrix units of gfx90a treat subnormal f16 and bf16 numbers as zeros. */
KILN_OPERATOR_FUNCTION(gemm_f32, kiln_gemm_params)
KILN_OPERATOR_FUNCTION(gemm_f16, kiln_gemm_params)
KILN_OPERATOR_FUNCTION(gemm_bf16, kiln_gemm_params)

/* The bytes of workspace that let gemm divide a long k among several blocks where d has too few tiles to occupy the
 * device; 0 where that does not pay. The pointers are ignored: the size is sufficient whatever their alignment. It
 * depends on the kernels of the image for the stream's device, which this function loads unless it is already loaded.
 * Without workspace k is not divided: the product is slower and may differ in the last bits. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, and what loading can return. */
KILN_WORKSPACE_FUNCTION(gemm_f32, kiln_gemm_params)
KILN_WORKSPACE_FUNCTION(gemm_f16, kiln_gemm_params)
KILN_WORKSPACE_FUNCTION(gemm_bf16, kiln_gemm_params)

/* ---- gemm_fp8: d = activation(scale * (a * a_scales) (b * b_scales)^T + bias), a and b E4M3 ---------------------- */

typedef struct kiln_gemm_fp8_params {
    void *d;               /* [m, n], of the precision */
    const uint8_t *a;      /* [m, k], OCP E4M3 on every device */
    const uint8_t *b;      /* [n, k]: the weights of a linear layer as they are stored, [out, in] */
    const float *a_scales; /* [a_scale_rows, a_scale_cols] */
    const float *b_scales; /* [b_scale_rows, b_scale_cols] */
    const void *bias;      /* [n], of the precision; NULL: 0 */
    int64_t m;             /* at most 2^31 - 1, as n and k */
    int64_t n;
    int64_t k;             /* 0: the product is 0, and a, b and their scales may be NULL */
    int64_t a_scale_rows;  /* 1, m / 128 rounded up, or m, as 0: how many rows share a scale */
    int64_t a_scale_cols;  /* 1, as 0, or k / 128 rounded up: how many columns do */
    int64_t b_scale_rows;  /* 1, n / 128 rounded up, or n, as 0 */
    int64_t b_scale_cols;  /* 1, as 0, or k / 128 rounded up */
    int64_t d_stride;      /* 0: n */
    int64_t a_stride;      /* 0: k */
    int64_t b_stride;      /* 0: k */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_fp8_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;          /* kiln_gemm_tile; the portable one where the image or the tensors do not allow it */
    int32_t reserved;      /* must be 0 */
} kiln_gemm_fp8_params;

/* The product of tensors that quantize_fp8 made: codes and scales are as it writes them, with the same numbers of
 * scales, so that a scale is of the tensor, of a row (a token of a, a channel of b), of a row's 128 columns or of a
 * block of 128 x 128. a and b need not have the same. With p the products of the codes of 128 columns of k, added up,
 *
 *     d = activation(scale * (the sum over k's groups of 128 of a_scale * b_scale * p) + bias)
 *
 * in f32, with one rounding to the precision at the end. p is added one by one, or as the chip's matrix units add it,
 * of which each result is of 128 columns at most before f32 arithmetic takes it over (two-level accumulation: what such
 * units drop is a bias toward 0 that grows with k where all products have one sign). A code that is NaN makes its row
 * or column of d NaN. Up to 16 rows of a are done by kernels that read b once, or twice where the image has no matrix
 * units for them. */
KILN_OPERATOR_FUNCTION(gemm_fp8_f32, kiln_gemm_fp8_params)
KILN_OPERATOR_FUNCTION(gemm_fp8_f16, kiln_gemm_fp8_params)
KILN_OPERATOR_FUNCTION(gemm_fp8_bf16, kiln_gemm_fp8_params)

/* The bytes of workspace with which a long k is divided among blocks where d alone would occupy few of them, as gemm's:
 * 0 where that does not pay. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, and what loading can return. */
KILN_WORKSPACE_FUNCTION(gemm_fp8_f32, kiln_gemm_fp8_params)
KILN_WORKSPACE_FUNCTION(gemm_fp8_f16, kiln_gemm_fp8_params)
KILN_WORKSPACE_FUNCTION(gemm_fp8_bf16, kiln_gemm_fp8_params)

/* ---- gemm_int8: d = activation(scale * (a * a_scales) (b * b_scales)^T + bias), a and b int8 --------------------- */

typedef struct kiln_gemm_int8_params {
    void *d;               /* [m, n], of the precision */
    const int8_t *a;       /* [m, k] */
    const int8_t *b;       /* [n, k]: the weights of a linear layer as they are stored, [out, in] */
    const float *a_scales; /* [a_scale_rows, a_scale_cols] */
    const float *b_scales; /* [b_scale_rows, b_scale_cols] */
    const void *bias;      /* [n], of the precision; NULL: 0 */
    int64_t m;             /* at most 2^31 - 1, as n and k */
    int64_t n;
    int64_t k;             /* 0: the product is 0, and a, b and their scales may be NULL */
    int64_t a_scale_rows;  /* 1, m / 128 rounded up, or m, as 0: how many rows share a scale */
    int64_t a_scale_cols;  /* 1, as 0, or k / 128 rounded up: how many columns do */
    int64_t b_scale_rows;  /* 1, n / 128 rounded up, or n, as 0 */
    int64_t b_scale_cols;  /* 1, as 0, or k / 128 rounded up */
    int64_t d_stride;      /* 0: n */
    int64_t a_stride;      /* 0: k */
    int64_t b_stride;      /* 0: k */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_int8_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 */
    int32_t activation;    /* kiln_gemm_activation */
    int32_t tile;          /* kiln_gemm_tile; the portable one where the image or the tensors do not allow it */
    int32_t reserved;      /* must be 0 */
} kiln_gemm_int8_params;

/* As gemm_fp8, of tensors that quantize_int8 made; -128 is a code as any other. Products of codes are added in int32,
 * exactly: those of 128 columns where a or b has scales for these or k is more than 2^16, else all of them (of a
 * block's part of k where it is divided), before they become f32 and are multiplied with the scales. */
KILN_OPERATOR_FUNCTION(gemm_int8_f32, kiln_gemm_int8_params)
KILN_OPERATOR_FUNCTION(gemm_int8_f16, kiln_gemm_int8_params)
KILN_OPERATOR_FUNCTION(gemm_int8_bf16, kiln_gemm_int8_params)

/* As gemm_fp8's. */
KILN_WORKSPACE_FUNCTION(gemm_int8_f32, kiln_gemm_int8_params)
KILN_WORKSPACE_FUNCTION(gemm_int8_f16, kiln_gemm_int8_params)
KILN_WORKSPACE_FUNCTION(gemm_int8_bf16, kiln_gemm_int8_params)

/* ---- gemm_w4a16: d = scale * (a * pre_scale) * w^T + bias, w of 4-bit integers ----------------------------------- */

/* The order of the scales, and of the zeros. */
typedef enum kiln_w4a16_scales {
    KILN_W4A16_SCALES_N_K, /* [n, k / group] */
    KILN_W4A16_SCALES_K_N, /* [k / group, n] */
} kiln_w4a16_scales;

/* The order of the weights' bytes; kiln/w4a16.h converts between layouts. */
typedef enum kiln_w4a16_layout {
    KILN_W4A16_CANONICAL, /* [n, k / 2]: the element of even k in the low half of a byte */
    KILN_W4A16_SM80_V1,   /* tiles of 16 x 64, in the order that the matrix units of sm_80 and later read */
} kiln_w4a16_layout;

/* The tile of d that a block computes, if the image has kernels for several. */
typedef enum kiln_w4a16_tile {
    KILN_W4A16_TILE_AUTO,     /* by their predicted times */
    KILN_W4A16_TILE_PORTABLE, /* 64 x 64, in f32 arithmetic: in every image; canonical weights only */
    KILN_W4A16_TILE_64,       /* 64 x 64 by matrix units; weights in sm80_v1 only */
    KILN_W4A16_TILE_128,      /* 128 x 128, the same */
} kiln_w4a16_tile;

typedef struct kiln_gemm_w4a16_params {
    void *d;                /* [m, n] */
    const void *a;          /* [m, k] */
    const uint8_t *weights; /* [n, k / 2]: two integers q from -8 to 7 per byte, in weight_layout */
    const void *scales;     /* [n, k / group], or [k / group, n] by scale_layout */
    const void *zeros;      /* the shape of scales: added to q * scale; NULL: 0 */
    const void *bias;       /* [n]; NULL: 0 */
    const void *pre_scale;  /* [k]: factors of the columns of a; NULL: 1 */
    int64_t m;              /* as n and k at most 2^31 - 1 */
    int64_t n;
    int64_t k;             /* even. 0: the product is 0, and its factors may be NULL */
    int64_t group;         /* elements of a row that share a scale: 32, 64, 128, 256 or k; divides k; 0: k */
    int64_t d_stride;      /* 0: n */
    int64_t a_stride;      /* 0: k */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_gemm_w4a16_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 */
    int32_t scale_layout;  /* kiln_w4a16_scales */
    int32_t weight_layout; /* kiln_w4a16_layout */
    int32_t tile;          /* kiln_w4a16_tile; canonical weights always take the portable one */
} kiln_gemm_w4a16_params;

/* d[i][j] = scale * sum over k of a[i][k] * pre_scale[k] * (q[j][k] * scales[j][k / group] + zeros[j][k / group])
 * + bias[j]. All tensors but the weights have the precision of the function. Zeros are added after scaling: the integer
 * zero points of AWQ (Lin et al., arXiv 2306.00978) and GPTQ (Frantar et al., arXiv 2210.17323) are converted by
 * kiln/w4a16.h.
 *
 * Products are added in f32. A product of at most 8 rows of a reads the weights once. Every image takes canonical
 * weights. An image with matrix units for sm80_v1 is faster with weights in that layout; other images refuse them. In
 * sm80_v1, n must be a multiple of 16 and k of 64, and rows of a, the weights and pre_scale must be 16-byte aligned; up
 * to 16 rows then read the weights once. There, a * pre_scale is rounded to the precision before it is multiplied, and
 * so is q * scale + zero in a product of more than 16 rows. */
KILN_OPERATOR_FUNCTION(gemm_w4a16_f32, kiln_gemm_w4a16_params)
KILN_OPERATOR_FUNCTION(gemm_w4a16_f16, kiln_gemm_w4a16_params)
KILN_OPERATOR_FUNCTION(gemm_w4a16_bf16, kiln_gemm_w4a16_params)

/* The bytes of workspace with which gemm_w4a16 divides a long k among blocks where d alone would occupy few of them
 * (the pointers are not looked at); 0 where that does not pay. As for gemm. */
KILN_WORKSPACE_FUNCTION(gemm_w4a16_f32, kiln_gemm_w4a16_params)
KILN_WORKSPACE_FUNCTION(gemm_w4a16_f16, kiln_gemm_w4a16_params)
KILN_WORKSPACE_FUNCTION(gemm_w4a16_bf16, kiln_gemm_w4a16_params)

/* ---- dequantize_w4a16: y = weights * scales + zeros, of 4-bit integers ------------------------------------------- */

typedef struct kiln_dequantize_w4a16_params {
    void *y;                /* [n, k] */
    const uint8_t *weights; /* [n, k / 2]: kiln_gemm_w4a16_params has the meaning of this and what follows */
    const void *scales;     /* [n, k / group], or [k / group, n] by scale_layout */
    const void *zeros;      /* the shape of scales; NULL: 0 */
    int64_t n;              /* at most 2^31 - 1, as k */
    int64_t k;              /* even */
    int64_t group;          /* elements of a row that share a scale: 32, 64, 128, 256 or k; divides k; 0: k */
    int64_t y_stride;       /* 0: k */
    int32_t scale_layout;   /* kiln_w4a16_scales */
    int32_t reserved;       /* must be 0 */
} kiln_dequantize_w4a16_params;

/* y = q * scale + zero of canonical weights, the elements that kiln_gemm_w4a16 multiplies with, rounded once to the
 * precision. Without a fused multiply-add (x86-64-v2), q * scale is rounded first, which only f32 shows. */
KILN_OPERATOR_FUNCTION(dequantize_w4a16_f32, kiln_dequantize_w4a16_params)
KILN_OPERATOR_FUNCTION(dequantize_w4a16_f16, kiln_dequantize_w4a16_params)
KILN_OPERATOR_FUNCTION(dequantize_w4a16_bf16, kiln_dequantize_w4a16_params)

/* ---- kv_compact: moves the accepted tokens of draft trees together in a cache ------------------------------------ */

typedef struct kiln_kv_compact_params {
    void *key_cache;          /* [capacity, cols]: row block * block size + offset */
    void *value_cache;        /* [capacity, cols] */
    const void *slot_mapping; /* [batch, nodes], of index_type: as passed to kiln_kv_store for the trees */
    const int32_t *path;      /* [batch, depth], ascending nodes: the root, 0, and the accepted ones after it */
    const int32_t *accepted;  /* [batch]: accepted nodes of each path, including the root; at most depth and nodes */
    int64_t batch;
    int64_t nodes;
    int64_t depth;
    int64_t cols; /* kv heads * head_dim */
    int64_t capacity;
    int64_t key_cache_stride;   /* 0: cols */
    int64_t value_cache_stride; /* 0: cols */
    int32_t index_type;         /* kiln_index_type of slot_mapping */
    int32_t reserved;           /* must be 0 */
} kiln_kv_compact_params;

/* For each sequence and each i below its accepted, the rows of node path[i] are copied, bit for bit, to those of node
 * i. The accepted tokens are then where the next tokens of the sequence belong, and kiln_blocks_truncate removes the
 * rest. Nodes and slots that do not exist are skipped. The slots of one call must differ. <kiln/tree.h> makes trees and
 * finds paths. */
KILN_OPERATOR_FUNCTION(kv_compact_f32, kiln_kv_compact_params)
KILN_OPERATOR_FUNCTION(kv_compact_f16, kiln_kv_compact_params)
KILN_OPERATOR_FUNCTION(kv_compact_bf16, kiln_kv_compact_params)

/* ---- kv_copy_blocks: copies blocks within a paged cache ---------------------------------------------------------- */

typedef struct kiln_kv_copy_blocks_params {
    void *key_cache;   /* [blocks, cols]: cols is block size * kv heads * head_dim */
    void *value_cache; /* [blocks, cols] */
    const void *pairs; /* [count, 2], of index_type: source block, destination block */
    int64_t count;
    int64_t blocks;
    int64_t cols;
    int32_t index_type; /* kiln_index_type of pairs */
    int32_t reserved;   /* must be 0 */
} kiln_kv_copy_blocks_params;

/* Copy-on-write of paged caches (Kwon et al., arXiv 2309.06180): a sequence that is about to write into a block shared
 * with others gets a copy of its own. Pairs with a block outside the cache are skipped. A destination must not be the
 * source or the destination of another pair. */
KILN_OPERATOR_FUNCTION(kv_copy_blocks_f32, kiln_kv_copy_blocks_params)
KILN_OPERATOR_FUNCTION(kv_copy_blocks_f16, kiln_kv_copy_blocks_params)
KILN_OPERATOR_FUNCTION(kv_copy_blocks_bf16, kiln_kv_copy_blocks_params)

/* ---- kv_store: writes the keys and values of tokens into slots of a cache ---------------------------------------- */

typedef struct kiln_kv_store_params {
    void *key_cache;          /* [capacity, cols]: a paged cache is [blocks * block size, kv heads * head_dim] */
    void *value_cache;        /* [capacity, cols] */
    const void *key;          /* [tokens, cols] */
    const void *value;        /* [tokens, cols] */
    const void *slot_mapping; /* [tokens], of index_type: row of the caches; a token whose slot is outside them, such
                               * as -1, is skipped */
    int64_t tokens;
    int64_t cols;
    int64_t capacity;
    int64_t key_stride;         /* 0: cols */
    int64_t value_stride;       /* 0: cols */
    int64_t key_cache_stride;   /* 0: cols */
    int64_t value_cache_stride; /* 0: cols */
    int32_t index_type;         /* kiln_index_type of slot_mapping */
    int32_t reserved;           /* must be 0 */
} kiln_kv_store_params;

/* Rows are copied bit for bit; other rows of the caches are left unchanged. If two tokens have the same slot, either
 * may end up in it. */
KILN_OPERATOR_FUNCTION(kv_store_f32, kiln_kv_store_params)
KILN_OPERATOR_FUNCTION(kv_store_f16, kiln_kv_store_params)
KILN_OPERATOR_FUNCTION(kv_store_bf16, kiln_kv_store_params)

/* ---- log_softmax: y = x - lse, lse = log sum exp(x) over each row ----------------------------------------------- */

typedef struct kiln_log_softmax_params {
    void *y;       /* [rows, cols]; may be x, with the same stride; NULL: not wanted */
    float *lse;    /* [rows] */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* at most 2^31 - 1, as rows */
    int64_t y_stride;      /* 0: cols */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_log_softmax_<precision>_workspace_size() */
} kiln_log_softmax_params;

/* The logarithms of softmax, or with y NULL the logarithms of the sums alone (logsumexp). A row of -inf has an lse of
 * -inf, and its y is -inf; a row with +inf has an lse of +inf and NaN for y; one with NaN is NaN. Logarithms are
 * natural. The result does not depend on the device's size. */
KILN_OPERATOR_FUNCTION(log_softmax_f32, kiln_log_softmax_params)
KILN_OPERATOR_FUNCTION(log_softmax_f16, kiln_log_softmax_params)
KILN_OPERATOR_FUNCTION(log_softmax_bf16, kiln_log_softmax_params)

/* The bytes of workspace that log_softmax needs for rows and cols (the pointers are not looked at): 0 for rows of up to
 * 32 KiB. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(log_softmax_f32, kiln_log_softmax_params)
KILN_WORKSPACE_FUNCTION(log_softmax_f16, kiln_log_softmax_params)
KILN_WORKSPACE_FUNCTION(log_softmax_bf16, kiln_log_softmax_params)

/* ---- mha: out = softmax(mask(scale * q k^T)) v, multi-head attention --------------------------------------------- */

/* The kernel that a call uses. */
typedef enum kiln_mha_kernel {
    KILN_MHA_KERNEL_AUTO,     /* one that uses matrix units (tensor cores) if the image has one for the call */
    KILN_MHA_KERNEL_PORTABLE, /* f32 arithmetic with one rounding; every image has it */
} kiln_mha_kernel;

typedef struct kiln_mha_params {
    void *out;                   /* [tokens, heads, head_dim] */
    float *lse;                  /* [heads, tokens]: log-sum-exp of each query's scores; NULL: not wanted */
    const void *q;               /* [tokens, heads, head_dim] */
    const void *k;               /* [kv_tokens, kv_heads, head_dim]; k and v may be NULL if kv_tokens is 0 */
    const void *v;               /* [kv_tokens, kv_heads, head_dim] */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: the row of q at which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows each */
    const int32_t *cu_seqlens_k; /* [batch + 1], from 0: the same for k and v; NULL: kv_tokens / batch rows each */
    const int32_t *seqlens_k;    /* [batch]: how many of its rows of k and v each sequence uses; NULL: all */
    int64_t tokens;              /* tokens and kv_tokens are at most 2^31 - 1 */
    int64_t kv_tokens;
    int64_t batch; /* sequences, at most 2^24 */
    int64_t heads; /* a multiple of kv_heads, at most 2^16: head h uses kv head h / (heads / kv_heads) */
    int64_t kv_heads;
    int64_t head_dim;   /* at most 256 */
    int64_t out_stride; /* between tokens; 0: packed. Heads are packed within a token */
    int64_t q_stride;
    int64_t k_stride;
    int64_t v_stride;
    int64_t max_seqlen_q;  /* with cu_seqlens_q: the most queries of any sequence, 0: tokens; without: 0. At most
                            * 2^31 - 1 when multiplied by heads / kv_heads */
    int64_t max_seqlen_k;  /* with cu_seqlens_k: the most keys of any sequence, 0: kv_tokens; without: 0 */
    int64_t window_left;   /* how many keys a query sees up to and including its own position; 0: all. At most 2^31 - 1.
                            * FlashAttention's window_size excludes the position: its w is w + 1 here, its -1 is 0 */
    int64_t window_right;  /* how many keys a query sees from its own position on, including it; 0: all. At most
                            * 2^31 - 1. FlashAttention's w is w + 1, its -1 is 0 */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* 0, or at least kiln_mha_<precision>_workspace_size() */
    float scale;           /* finite; 0: 1 / sqrt(head_dim) */
    float softcap;         /* scores become softcap * tanh(score / softcap) before the mask; 1e-6 to 1e6. 0: off */
    int32_t causal;        /* 0 or 1; 1 is the same as window_right 1 */
    int32_t kernel;        /* kiln_mha_kernel */
} kiln_mha_params;

/* Attention (Vaswani et al., arXiv 1706.03762) with grouped heads (Ainslie et al., arXiv 2305.13245), in one pass over
 * the keys (Milakov and Gimelshein, arXiv 1805.02867; Dao et al., arXiv 2205.14135). Positions are aligned at the end:
 * the last query of a sequence is at the position of its last key. A query that sees no key gives zeros, and -inf in
 * lse. A NaN or infinity in v may affect queries of its sequence that do not see its key, because it is multiplied by
 * 0; one in k does not. cu_seqlens_q and cu_seqlens_k, which must not decrease, and seqlens_k are read on the device
 * and may change between replays of a graph; values beyond the sizes given here are clamped. Rows of out and lse that
 * belong to no sequence, or that are clamped off, are left unchanged.
 *
 * In f16 and bf16, images for sm_80 and later use matrix units if head_dim is a multiple of 8, q, k, v and out and
 * their strides are aligned to 16 bytes, and scale is positive or softcap is set. They accumulate in f32, but round
 * each weight, the exp of a score less the row's maximum so far, to the precision before multiplying it by v, as
 * FlashAttention does. All other calls, and KILN_MHA_KERNEL_PORTABLE, compute in f32 with one rounding. */
KILN_OPERATOR_FUNCTION(mha_f32, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_f16, kiln_mha_params)
KILN_OPERATOR_FUNCTION(mha_bf16, kiln_mha_params)

/* The bytes of workspace that let mha divide the keys among several blocks where queries are few, as in decoding; 0
 * where that does not pay. Of the pointers it matters only whether cu_seqlens_q and cu_seqlens_k are NULL. The size
 * depends on the kernels of the image for the stream's device, which this function loads unless it is already loaded.
 * Without workspace the keys are not divided: the call is slower and may differ in the last bits. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, and what loading can return. */
KILN_WORKSPACE_FUNCTION(mha_f32, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_f16, kiln_mha_params)
KILN_WORKSPACE_FUNCTION(mha_bf16, kiln_mha_params)

/* ---- mha_paged: mha with keys and values in a paged cache -------------------------------------------------------- */

typedef struct kiln_mha_paged_params {
    void *out;                   /* [tokens, heads, head_dim] */
    float *lse;                  /* [heads, tokens]; NULL: not wanted */
    const void *q;               /* [tokens, heads, head_dim] */
    const void *k_cache;         /* [blocks, block_size, kv_heads, head_dim], as kv_store writes it */
    const void *v_cache;         /* [blocks, block_size, kv_heads, head_dim] */
    const int32_t *block_table;  /* [batch, max_blocks_per_seq]: the blocks of each sequence, in order. Only as many as
                                  * its keys need are read; a number outside the cache is taken as its last block */
    const int32_t *seqlens_k;    /* [batch]: number of keys of each sequence */
    const int32_t *cu_seqlens_q; /* [batch + 1], from 0: the row of q at which each sequence begins, and the end of the
                                  * last; NULL: tokens / batch rows each */
    int64_t tokens;              /* tokens, batch, heads, kv_heads and head_dim: as in kiln_mha_params */
    int64_t blocks;              /* at most 2^31 - 1 */
    int64_t block_size;          /* a power of two, at most 2^20 */
    int64_t batch;
    int64_t max_blocks_per_seq; /* columns of block_table; their keys are at most 2^31 - 1 */
    int64_t heads;
    int64_t kv_heads;
    int64_t head_dim;   /* at most 256 */
    int64_t out_stride; /* between tokens; 0: packed */
    int64_t q_stride;
    int64_t k_cache_stride; /* between keys; 0: packed. A block is block_size keys */
    int64_t v_cache_stride;
    int64_t max_seqlen_q; /* with cu_seqlens_q: the most queries of any sequence, 0: tokens; without: 0 */
    int64_t window_left;  /* this field and all that follow: as in kiln_mha_params */
    int64_t window_right;
    void *workspace;
    size_t workspace_size; /* 0, or at least kiln_mha_paged_<precision>_workspace_size() */
    float scale;
    float softcap;
    int32_t causal;
    int32_t kernel; /* kiln_mha_kernel */
} kiln_mha_paged_params;

/* Equals mha on the keys and values gathered from the cache (Kwon et al., arXiv 2309.06180), bit for bit if both divide
 * the keys in the same way. */
KILN_OPERATOR_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_OPERATOR_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* As for mha, assuming that the longest sequence fills its row of block_table. */
KILN_WORKSPACE_FUNCTION(mha_paged_f32, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_f16, kiln_mha_paged_params)
KILN_WORKSPACE_FUNCTION(mha_paged_bf16, kiln_mha_paged_params)

/* ---- mul_add: y = a * b + c -------------------------------------------------------------------------------------- */

typedef struct kiln_mul_add_params {
    void *y;       /* [count]; may be a, b or c */
    const void *a; /* [count] */
    const void *b; /* [count] */
    const void *c; /* [count] */
    int64_t count;
} kiln_mul_add_params;

/* One fused multiply-add in f32, rounded once, and then one rounding to the precision. */
KILN_OPERATOR_FUNCTION(mul_add_f32, kiln_mul_add_params)
KILN_OPERATOR_FUNCTION(mul_add_f16, kiln_mul_add_params)
KILN_OPERATOR_FUNCTION(mul_add_bf16, kiln_mul_add_params)

/* ---- quantize_fp8: codes * scales = x, with codes in E4M3 -------------------------------------------------------- */

typedef struct kiln_quantize_fp8_params {
    uint8_t *codes;     /* [rows, cols], OCP E4M3 on every device */
    float *scales;      /* [scale_rows, scale_cols], written; NULL: not wanted */
    const void *x;      /* [rows, cols] */
    const float *given; /* [scale_rows, scale_cols]: the scales to use; NULL: amax / smax */
    const float *amax; /* [scale_rows, scale_cols]: the greatest magnitudes; NULL: computed from x. Not read if given is
                        * set */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1; rows / 128, rounded up; or rows, which is also what 0 means */
    int64_t scale_cols;   /* 1, which is also what 0 means; or cols / 128, rounded up */
    int64_t codes_stride; /* 0: cols */
    int64_t x_stride;     /* 0: cols */
    float smax;           /* what the greatest magnitude becomes: from 1 to 448; 0: 448 */
    int32_t reserved;     /* must be 0 */
} kiln_quantize_fp8_params;

/* The shape of scales determines which elements share one: 1 x 1 the whole tensor; rows x 1 each row (a token);
 * rows x cols / 128 each group of 1 x 128; rows / 128 x cols / 128 each block of 128 x 128. Groups at the edges may be
 * smaller. A scale that spans both several rows and more than 128 x 128 elements, such as a tensor's, needs given or
 * amax, which are on the device: nothing is read back.
 *
 *     scale = amax / smax     where that is at least 2^-126, else 1
 *     code = E4M3(x * (1 / scale))
 *
 * in IEEE arithmetic, each operation rounded once: codes and scales are bit-identical on every device, and to those of
 * a call that is given the scales. E4M3() rounds to nearest even and clamps magnitudes to smax. A group of zeros has
 * the scale 1 and codes of 0 with the elements' signs. amax ignores NaN, whose code is 0x7f; an infinity makes it the
 * greatest f32, and has the code +-smax. A given scale that is below 2^-126, 0 for example, or NaN is taken as 1. */
KILN_OPERATOR_FUNCTION(quantize_fp8_f32, kiln_quantize_fp8_params)
KILN_OPERATOR_FUNCTION(quantize_fp8_f16, kiln_quantize_fp8_params)
KILN_OPERATOR_FUNCTION(quantize_fp8_bf16, kiln_quantize_fp8_params)

/* ---- quantize_int8: codes * scales = x, with codes in int8 ------------------------------------------------------- */

typedef struct kiln_quantize_int8_params {
    int8_t *codes;      /* [rows, cols], from -127 to 127 */
    float *scales;      /* [scale_rows, scale_cols], written; NULL: not wanted */
    const void *x;      /* [rows, cols] */
    const float *given; /* [scale_rows, scale_cols]: the scales to use; NULL: amax / smax */
    const float *amax; /* [scale_rows, scale_cols]: the greatest magnitudes; NULL: computed from x. Not read if given is
                        * set */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* 1; rows / 128, rounded up; or rows, which is also what 0 means */
    int64_t scale_cols;   /* 1, which is also what 0 means; or cols / 128, rounded up */
    int64_t codes_stride; /* 0: cols */
    int64_t x_stride;     /* 0: cols */
    float smax;           /* what the greatest magnitude becomes: from 1 to 127; 0: 127 */
    int32_t reserved;     /* must be 0 */
} kiln_quantize_int8_params;

/* The same as quantize_fp8, except that code is x * (1 / scale) rounded to the nearest integer, ties to even, and
 * clamped to smax. The code of NaN is 0. */
KILN_OPERATOR_FUNCTION(quantize_int8_f32, kiln_quantize_int8_params)
KILN_OPERATOR_FUNCTION(quantize_int8_f16, kiln_quantize_int8_params)
KILN_OPERATOR_FUNCTION(quantize_int8_bf16, kiln_quantize_int8_params)

/* ---- quantize_nvfp4: x as E2M1 with scales of E4M3 and f32 ------------------------------------------------------- */

typedef struct kiln_quantize_nvfp4_params {
    uint8_t *codes;      /* [rows, 8 * scale_cols], two columns to a byte, the first of them in its low half */
    uint8_t *scales;     /* [scale_rows, scale_cols], OCP E4M3 on every device, in the order of scale_layout */
    float *global_scale; /* [global_rows], written; NULL: not wanted */
    const void *x;       /* [rows, cols] */
    const float *given;  /* [global_rows], the global scales; NULL: amax / 2688 */
    const float *amax;   /* [global_rows], the greatest magnitudes; not read, and may be NULL, if given is not NULL */
    int64_t rows;
    int64_t cols;         /* at most 2^31 - 1 */
    int64_t scale_rows;   /* at least rows; of KILN_SCALES_128X4 a multiple of 128 */
    int64_t scale_cols;   /* at least cols / 16 rounded up; of KILN_SCALES_128X4 a multiple of 4 */
    int64_t global_rows;  /* 1: a global scale for the tensor; rows: one for each row */
    int64_t codes_stride; /* in bytes; 0: 8 * scale_cols */
    int64_t x_stride;     /* 0: cols */
    int32_t scale_layout; /* kiln_scale_layout */
    int32_t reserved;     /* must be 0 */
} kiln_quantize_nvfp4_params;

/* NVFP4 (NVIDIA, "Pretraining Large Language Models with NVFP4", arXiv 2509.25149): an element is the product of its
 * code, an E2M1 of the Open Compute Project's Microscaling Formats; of the scale that it shares with 15 neighbours; and
 * of the global scale g, the *decode* scale, whose reciprocal other libraries take.
 *
 *     g = amax / 2688                     where that is at least 2^-116, else 1
 *     scale = E4M3((greatest magnitude of the 16 / 6) * (1 / g))
 *     code = E2M1(x * ((1 / g) / scale)), or of x * 0 where scale is 0
 *
 * in IEEE arithmetic, each operation rounded once: codes and scales are the same bits on every device. E4M3() and
 * E2M1() round to nearest even and saturate, at 448 and at 6. So a tensor of zeros has g = 1, and blocks that are small
 * beside the tensor have the scale 0 and codes of zero, with their signs. The greatest magnitude passes over NaN, whose
 * code is that of 6; infinities have the codes of +-6, and an infinite amax is the greatest f32. A given scale below
 * 2^-116, as 0, or NaN is taken for 1. Codes beyond cols, up to 16 * scale_cols, and scales beyond x are 0. */
KILN_OPERATOR_FUNCTION(quantize_nvfp4_f32, kiln_quantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(quantize_nvfp4_f16, kiln_quantize_nvfp4_params)
KILN_OPERATOR_FUNCTION(quantize_nvfp4_bf16, kiln_quantize_nvfp4_params)

/* ---- rmsnorm: y = x / sqrt(mean of x^2 + eps) * weight over each row --------------------------------------------- */

typedef struct kiln_rmsnorm_params {
    void *y;            /* [rows, cols]; may be x, with the same stride */
    const void *x;      /* [rows, cols] */
    const void *weight; /* [cols]; NULL: 1 */
    int64_t rows;
    int64_t cols;
    int64_t y_stride; /* 0: cols */
    int64_t x_stride; /* 0: cols */
    float eps;        /* 0: 1e-6; else from 1e-30 to 1e30 */
    int32_t reserved; /* must be 0 */
} kiln_rmsnorm_params;

/* Root mean square normalisation (Zhang and Sennrich, arXiv 1910.07467). Rows may have up to 2^32 - 2^13 elements. A
 * row whose sum of squares overflows f32 gives zeros; a row that contains a NaN gives NaN. */
KILN_OPERATOR_FUNCTION(rmsnorm_f32, kiln_rmsnorm_params)
KILN_OPERATOR_FUNCTION(rmsnorm_f16, kiln_rmsnorm_params)
KILN_OPERATOR_FUNCTION(rmsnorm_bf16, kiln_rmsnorm_params)

/* ---- rope: rotates each pair of a head's elements by the position times the pair's frequency --------------------- */

/* Which elements of a head form pair i (Su et al., arXiv 2104.09864). */
typedef enum kiln_rope_layout {
    KILN_ROPE_INTERLEAVED, /* 2i and 2i + 1 */
    KILN_ROPE_HALF,        /* i and pairs + i */
} kiln_rope_layout;

/* The type of a table of cosines and sines. */
typedef enum kiln_rope_table { KILN_ROPE_TABLE_PART /* that of x */, KILN_ROPE_TABLE_F32 } kiln_rope_table;

typedef struct kiln_rope_params {
    void *y;                    /* [tokens, heads, 2 * pairs]; may be x, with the same strides */
    const void *x;              /* [tokens, heads, 2 * pairs] */
    const void *positions;      /* [tokens], of index_type; NULL: 0, 1, 2 and so on */
    const int64_t *frequencies; /* [pairs]: full turns per position, times 2^64, from kiln_rope_frequencies. NULL: the
                                 * table is used */
    const void *cosines;        /* [table_rows, pairs], of table_type: row p is for position p */
    const void *sines;          /* [table_rows, pairs] */
    int64_t tokens;
    int64_t heads; /* heads and pairs are at most 2^20 */
    int64_t pairs;
    int64_t y_stride;      /* between tokens; 0: packed */
    int64_t y_head_stride; /* between heads; 0: 2 * pairs. The size of a head, where only a part of it is rotated */
    int64_t x_stride;      /* between tokens; 0: packed */
    int64_t x_head_stride; /* between heads; 0: 2 * pairs */
    int64_t table_rows;    /* tokens whose position is not in the table are not rotated */
    int64_t table_stride;  /* between rows of cosines and of sines; 0: pairs */
    float scale;           /* multiplies cosines and sines, as YaRN's attention factor does; 0: 1 */
    int32_t layout;        /* kiln_rope_layout */
    int32_t index_type;    /* kiln_index_type of positions */
    int32_t table_type;    /* kiln_rope_table */
} kiln_rope_params;

/* With frequencies, angles are exact at every position, and sine and cosine have an error of at most 1.2e-7; a table is
 * as accurate as its contents. vLLM's cos_sin_cache, [positions, 2 * pairs], is a table with sines = cosines + pairs
 * and a table_stride of 2 * pairs. Hugging Face's cos and sin, which have a row for each token and every column twice,
 * are a table with positions NULL, the same stride and KILN_ROPE_HALF. */
KILN_OPERATOR_FUNCTION(rope_f32, kiln_rope_params)
KILN_OPERATOR_FUNCTION(rope_f16, kiln_rope_params)
KILN_OPERATOR_FUNCTION(rope_bf16, kiln_rope_params)

/* How frequencies are scaled for a context longer than the trained one. */
typedef enum kiln_rope_scaling_kind {
    KILN_ROPE_UNSCALED,
    KILN_ROPE_LINEAR, /* all frequencies are divided by factor (Chen et al., arXiv 2306.15595) */
    KILN_ROPE_LLAMA3, /* frequencies with fewer than low_factor periods in original_length are divided by factor, those
                       * with more than high_factor kept, those between interpolated (Llama 3.1) */
    KILN_ROPE_YARN,   /* interpolated by the index of the pair: linear from the pair with high_factor periods, which is
                       * kept, to the one with low_factor, which is divided (YaRN: Peng et al., arXiv 2309.00071) */
} kiln_rope_scaling_kind;

typedef struct kiln_rope_scaling {
    int32_t kind;            /* kiln_rope_scaling_kind */
    int32_t reserved;        /* must be 0 */
    double factor;           /* from 1 to 1e6 */
    double low_factor;       /* this and the next two: KILN_ROPE_LLAMA3 and KILN_ROPE_YARN only. Positive; YaRN: 0 is 1.
                              * Hugging Face's beta_slow */
    double high_factor;      /* greater than low_factor, up to 1e6; YaRN: 0 is 32. Hugging Face's beta_fast */
    int64_t original_length; /* positions */
    double mscale;           /* this and the next: YaRN in DeepSeek's models, from 0 to 1e6; both 0: as in the paper */
    double mscale_all_dim;
    int32_t untruncated; /* YaRN: non-zero: the indices of the two pairs are not rounded outwards to integers */
    int32_t reserved_2;  /* must be 0 */
} kiln_rope_scaling;

/* Computes the frequencies theta^(-i / pairs) radians, for i from 0, in the units of kiln_rope_params. They are written
 * to the caller's host memory, [pairs], at most 2^20, to be copied to the device. theta is from 1 to 1e30, or 0 for
 * 10000. scaling may be NULL. After an error nothing is written. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_rope_frequencies(double theta, const kiln_rope_scaling *scaling, int64_t pairs,
                                           int64_t *out_frequencies);

/* Computes the factor by which a scaling multiplies cosines and sines, the scale of kiln_rope_params. For YaRN it is
 * 0.1 ln(factor) + 1, or with mscale and mscale_all_dim (0.1 mscale ln(factor) + 1) / (0.1 mscale_all_dim ln(factor)
 * + 1); otherwise 1. After an error *out_factor is 0. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_rope_attention_factor(const kiln_rope_scaling *scaling, float *out_factor);

/* ---- rope3d: rope on three axes, for the tokens of a video ------------------------------------------------------- */

typedef struct kiln_rope3d_params {
    void *y;                    /* [batch, tokens, heads, 2 * pairs]; may be x, with the same strides */
    const void *x;              /* [batch, tokens, heads, 2 * pairs] */
    const int32_t *grids;       /* [batch, 3]: frames, rows and columns of each sequence */
    const int64_t *frequencies; /* [pairs]: full turns per step along the pair's axis, times 2^64 */
    int64_t batch;
    int64_t tokens; /* of a sequence; batch * tokens is at most 2^31 - 1 */
    int64_t heads;  /* heads and pairs are at most 2^20 */
    int64_t pairs;
    int64_t y_stride;      /* between tokens; 0: packed. Sequences follow one another */
    int64_t y_head_stride; /* between heads; 0: 2 * pairs */
    int64_t x_stride;
    int64_t x_head_stride;
    int64_t frame_pairs; /* the first frame_pairs pairs rotate by the frame, the next row_pairs by the row, and the */
    int64_t row_pairs;   /* others by the column; both 0: pairs / 3 each for rows and columns, the others for frames */
    int32_t layout;      /* kiln_rope_layout */
    int32_t reserved;    /* must be 0 */
} kiln_rope3d_params;

/* The rotary embedding of Wan 2.1 and similar models. Tokens are in the order of frames, rows and columns; those after
 * the last one of the grid are copied. The frequencies are those that kiln_rope_frequencies computes for each axis's
 * number of pairs, one axis after another; they are equivalent to the tables of angles that such models come with. */
KILN_OPERATOR_FUNCTION(rope3d_f32, kiln_rope3d_params)
KILN_OPERATOR_FUNCTION(rope3d_f16, kiln_rope3d_params)
KILN_OPERATOR_FUNCTION(rope3d_bf16, kiln_rope3d_params)

/* ---- sample: draws a column of each row of logits ---------------------------------------------------------------- */

typedef struct kiln_sample_params {
    int32_t *y;    /* [rows]; -1 for a row of nothing but -inf and NaN */
    const void *x; /* [rows, cols] */
    /* One value per row, [rows] on the device, read when the kernel runs; NULL: the field of that name below applies to
     * all rows */
    const float *row_temperature;
    const int32_t *row_top_k;
    const float *row_top_p;
    const float *row_min_p;
    const int64_t *row_seed;
    const void *row_position; /* of index_type */
    int64_t rows;
    int64_t cols;       /* at most 2^22 */
    int64_t x_stride;   /* 0: cols */
    int64_t seed;       /* of the random numbers */
    int64_t position;   /* how many numbers have been drawn with the seed so far, such as the token's position */
    int64_t top_k;      /* keeps the top_k greatest logits; 0: all */
    float temperature;  /* divides the logits, 1e-6 to 1e6; 0: takes the greatest logit, of equals the first */
    float top_p;        /* from 0 to 1: keeps the most likely that together have at least this probability; 0, 1: all */
    float min_p;        /* from 0 to 1: keeps those of at least this fraction of the greatest probability; 0: all */
    int32_t index_type; /* kiln_index_type of row_position */
} kiln_sample_params;

/* Temperature is applied first, then top_k and min_p (Nguyen et al., arXiv 2407.01082), then top_p (Holtzman et al.,
 * arXiv 1904.09751) to what these keep. A column is drawn with its softmax probability among those that remain. Equal
 * logits are ranked by column. -inf and NaN are never drawn; if there is a +inf, it is. Every backend draws the same
 * column.
 *
 * Random numbers come from Philox (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). With
 * row_seed a row's number depends only on its seed and its position, so a request gets the same tokens in any row of
 * any batch. With one seed for all rows it also depends on the row's index.
 *
 * Values that are read on the device cannot be refused. There a temperature that is NaN or below 1e-6 takes the
 * greatest logit, and one above 1e6 counts as 1e6; a top_k of 0 or less, a top_p that is NaN, 0 or less, or 1 or more,
 * and a min_p that is NaN, 0 or less keep all; a min_p above 1 counts as 1. */
KILN_OPERATOR_FUNCTION(sample_f32, kiln_sample_params)
KILN_OPERATOR_FUNCTION(sample_f16, kiln_sample_params)
KILN_OPERATOR_FUNCTION(sample_bf16, kiln_sample_params)

/* ---- silu_mul: y = act(gate) * up, the gated activation of an MLP ------------------------------------------------ */

/* The activation of the gate (Shazeer, arXiv 2002.05202). */
typedef enum kiln_glu {
    KILN_GLU_SILU,      /* g sigmoid(g) */
    KILN_GLU_GELU_TANH, /* gelu of g, tanh form */
} kiln_glu;

typedef struct kiln_silu_mul_params {
    void *y;          /* [rows, cols]; may be gate or up, with the same stride */
    const void *gate; /* [rows, cols]; if up is NULL, [rows, 2 * cols]: each row has gate, then up */
    const void *up;   /* [rows, cols] or NULL */
    int64_t rows;
    int64_t cols;        /* of y */
    int64_t y_stride;    /* 0: cols */
    int64_t gate_stride; /* 0: packed */
    int64_t up_stride;   /* 0: cols; must be 0 if up is NULL */
    int32_t activation;  /* kiln_glu */
    int32_t reserved;    /* must be 0 */
} kiln_silu_mul_params;

/* The activation is computed in f32. With SILU a gate below -80 gives 0, where the exact value is above -1.5e-33; so do
 * arguments below -9.7 with tanh GELU and below -47 with quick GELU. The activations of gemm and add_gelu do the same.
 */
KILN_OPERATOR_FUNCTION(silu_mul_f32, kiln_silu_mul_params)
KILN_OPERATOR_FUNCTION(silu_mul_f16, kiln_silu_mul_params)
KILN_OPERATOR_FUNCTION(silu_mul_bf16, kiln_silu_mul_params)

/* ---- softmax: y = exp(x - max x) / sum exp(x - max x) over each row ---------------------------------------------- */

typedef struct kiln_softmax_params {
    void *y;       /* [rows, cols]; may be x, with the same stride */
    const void *x; /* [rows, cols] */
    int64_t rows;
    int64_t cols;
    int64_t y_stride;      /* 0: cols */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_softmax_<precision>_workspace_size() */
} kiln_softmax_params;

/* Rows of up to 32 KiB are read once and need no workspace; longer rows are read twice, by many blocks. A row of -inf
 * gives zeros; a +inf or NaN makes its row NaN. Results below the smallest normal f32, 1.2e-38, are 0, even in bf16,
 * which has subnormals of that size. The result does not depend on the size of the device. */
KILN_OPERATOR_FUNCTION(softmax_f32, kiln_softmax_params)
KILN_OPERATOR_FUNCTION(softmax_f16, kiln_softmax_params)
KILN_OPERATOR_FUNCTION(softmax_bf16, kiln_softmax_params)

/* The bytes of workspace that softmax needs for rows and cols, whatever the pointers: 0 for rows of up to 32 KiB.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(softmax_f32, kiln_softmax_params)
KILN_WORKSPACE_FUNCTION(softmax_f16, kiln_softmax_params)
KILN_WORKSPACE_FUNCTION(softmax_bf16, kiln_softmax_params)

/* ---- top_k: the k greatest elements of each row ------------------------------------------------------------------ */

enum { KILN_TOP_K_MOST = 1024 };

typedef struct kiln_top_k_params {
    void *values;     /* [rows, k], the greatest first; NULL: not wanted */
    int32_t *indices; /* [rows, k], their columns */
    const void *x;    /* [rows, cols] */
    int64_t rows;
    int64_t cols;          /* rows and cols are at most 2^31 - 1 */
    int64_t k;             /* at most cols and KILN_TOP_K_MOST */
    int64_t x_stride;      /* 0: cols */
    void *workspace;       /* of the device, 16-byte aligned; NULL if workspace_size is 0 */
    size_t workspace_size; /* at least kiln_top_k_<precision>_workspace_size() */
} kiln_top_k_params;

/* Of equal elements the one in the lower column comes first, and is chosen where not all fit among the k; 0 and -0 are
 * equal. NaN ranks above all numbers. Values are copied bit for bit. If rows or k is 0, nothing is written. */
KILN_OPERATOR_FUNCTION(top_k_f32, kiln_top_k_params)
KILN_OPERATOR_FUNCTION(top_k_f16, kiln_top_k_params)
KILN_OPERATOR_FUNCTION(top_k_bf16, kiln_top_k_params)

/* The bytes of workspace that top_k needs for rows, cols and k, whatever the pointers: 0 for rows of up to 4096
 * elements. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_WORKSPACE_FUNCTION(top_k_f32, kiln_top_k_params)
KILN_WORKSPACE_FUNCTION(top_k_f16, kiln_top_k_params)
KILN_WORKSPACE_FUNCTION(top_k_bf16, kiln_top_k_params)

/* ---- Descriptions: the operators as data, for tools and bindings ------------------------------------------------- */

typedef enum kiln_field_role {
    KILN_FIELD_INPUT,          /* tensor, read */
    KILN_FIELD_OUTPUT,         /* tensor, written */
    KILN_FIELD_UPDATE,         /* tensor, partly written */
    KILN_FIELD_SIZE,           /* int64_t, taken from the tensors' shapes */
    KILN_FIELD_STRIDE,         /* int64_t, of the tensor that shape names */
    KILN_FIELD_OPTION,         /* int32_t, one of the named choices */
    KILN_FIELD_INTEGER,        /* int64_t, any number */
    KILN_FIELD_REAL,           /* float, finite */
    KILN_FIELD_WORKSPACE,      /* pointer */
    KILN_FIELD_WORKSPACE_SIZE, /* size_t */
} kiln_field_role;

/* One field of an operator's params. */
typedef struct kiln_field {
    const char *name;
    kiln_field_role role;
    uint32_t offset;     /* in the params struct */
    uint32_t size;       /* of the field */
    uint32_t optional;   /* non-zero: a tensor that may be NULL */
    const char *dtype;   /* tensors: "part" (the function's precision), a fixed one ("i32"), or the option whose choice
                          * is the dtype ("index_type"); else "" */
    const char *shape;   /* tensors: names of size fields, "rows,cols", also "2*cols" and "batch+1". In
                          * "rows,cols|rows,2*cols" the shape after the bar applies if an optional input is NULL.
                          * Strides: the tensor's name. Sizes: "", or the tensor whose leading dimensions, if it has
                          * several, start with this one and no other tensor has it */
    const char *choices; /* options: "erf,tanh,quick", in the order of their values; else "" */
    int64_t typical;     /* sizes: the value that benches use; 0: derived from the requested size of the tensors */
    const char *text;    /* one line for help */
    const char *instead; /* tensors: the optional tensor that is required if this one is NULL; else NULL */
} kiln_field;

typedef kiln_status (*kiln_operator_call)(kiln_stream *stream, const void *params, size_t params_size);
typedef kiln_status (*kiln_workspace_call)(kiln_stream *stream, const void *params, size_t params_size,
                                           size_t *out_size);

/* One typed function of an operator. */
typedef struct kiln_operator_function {
    const char *name; /* "softmax_f16" */
    const char *part; /* "f16" */
    kiln_operator_call call;
    kiln_workspace_call workspace_size; /* NULL: the operator takes no workspace */
} kiln_operator_function;

typedef struct kiln_operator {
    const char *name;    /* "softmax" */
    const char *summary; /* one line */
    const kiln_bundle *bundle;
    const kiln_field *fields;
    const kiln_operator_function *functions;
    uint32_t field_count;
    uint32_t function_count;
    uint32_t params_size;
    uint32_t reserved;
} kiln_operator;

/* Lists all operators of the library, in the order of kernels/ops.def. *out_operators points to static storage. A
 * program that calls this function links all images, which only tools want. Returns KILN_OK or
 * KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_all_operators(const kiln_operator *const **out_operators, size_t *out_count);

#ifdef __cplusplus
}
#endif

#endif
