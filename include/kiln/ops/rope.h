/* Rotary position embedding. ops.h has the rules for every operator. */
#ifndef KILN_OPS_ROPE_H
#define KILN_OPS_ROPE_H

#include <kiln/ops/operator.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- rope: rotates each pair of a head's elements by the position times the pair's frequency --------------------- */

/* The elements of a head that form pair i (Su et al., arXiv 2104.09864). */
typedef enum kiln_rope_layout {
    KILN_ROPE_INTERLEAVED, /* 2i and 2i + 1 */
    KILN_ROPE_HALF,        /* i and pairs + i */
} kiln_rope_layout;

/* The type of a table of cosines and sines. */
typedef enum kiln_rope_table { KILN_ROPE_TABLE_PRECISION /* that of x */, KILN_ROPE_TABLE_F32 } kiln_rope_table;

typedef struct kiln_rope_params {
    void *y;                    /* [tokens, heads, 2 * pairs]; may be x, with the same strides */
    const void *x;              /* [tokens, heads, 2 * pairs] */
    const void *positions;      /* [tokens], of index_type; NULL: 0, 1, 2 and so on */
    const int64_t *frequencies; /* [pairs]: full turns per position, times 2^64, from kiln_rope_frequencies. NULL: use
                                 * the table */
    const void *cosines;        /* [table_rows, pairs], of table_type: row p is for position p */
    const void *sines;          /* [table_rows, pairs] */
    int64_t tokens;
    int64_t heads; /* heads and pairs are at most 2^20 */
    int64_t pairs;
    int64_t y_stride;      /* between tokens; 0: packed */
    int64_t y_head_stride; /* between heads; 0: 2 * pairs. If only part of a head is rotated: the size of a head */
    int64_t x_stride;      /* between tokens; 0: packed */
    int64_t x_head_stride; /* between heads; 0: 2 * pairs */
    int64_t table_rows;    /* tokens whose position is not in the table are not rotated */
    int64_t table_stride;  /* between rows of cosines and of sines; 0: pairs */
    float scale;           /* multiplies cosines and sines, as YaRN's attention factor does; 0: 1 */
    int32_t layout;        /* kiln_rope_layout */
    int32_t index_type;    /* kiln_index_type of positions */
    int32_t table_type;    /* kiln_rope_table */
} kiln_rope_params;

/* Rotates each pair by its angle, which comes from frequencies or from a table of cosines and sines. With frequencies,
 * angles are exact at every position, and sine and cosine have an error of at most 1.2e-7; a table is as accurate as
 * its contents. To use vLLM's cos_sin_cache, [positions, 2 * pairs], set sines = cosines + pairs and table_stride = 2 *
 * pairs. To use Hugging Face's cos and sin, which have a row for each token and contain every column twice, set
 * positions = NULL, table_stride = 2 * pairs and layout = KILN_ROPE_HALF. */
KILN_OPERATOR_FUNCTION(rope_f32, kiln_rope_params)
KILN_OPERATOR_FUNCTION(rope_f16, kiln_rope_params)
KILN_OPERATOR_FUNCTION(rope_bf16, kiln_rope_params)

/* How frequencies are scaled for contexts longer than those used in training. */
typedef enum kiln_rope_scaling_kind {
    KILN_ROPE_UNSCALED,
    KILN_ROPE_LINEAR, /* all frequencies are divided by factor (Chen et al., arXiv 2306.15595) */
    KILN_ROPE_LLAMA3, /* frequencies with fewer than low_factor periods in original_length are divided by factor, those
                       * with more than high_factor periods are kept, and those between are interpolated (Llama 3.1) */
    KILN_ROPE_YARN,   /* interpolated linearly by pair index, from the pair with high_factor periods, which is kept, to
                       * the pair with low_factor periods, which is divided (YaRN: Peng et al., arXiv 2309.00071) */
} kiln_rope_scaling_kind;

typedef struct kiln_rope_scaling {
    int32_t kind;            /* kiln_rope_scaling_kind */
    int32_t reserved;        /* must be 0 */
    double factor;           /* from 1 to 1e6 */
    double low_factor;       /* this field and the next two: KILN_ROPE_LLAMA3 and KILN_ROPE_YARN only. Positive; YaRN: 0
                              * means 1. Hugging Face's beta_slow */
    double high_factor;      /* greater than low_factor, up to 1e6; YaRN: 0 means 32. Hugging Face's beta_fast */
    int64_t original_length; /* positions */
    double mscale;           /* this field and the next: YaRN in DeepSeek's models, from 0 to 1e6; both 0: as in the
                              * paper */
    double mscale_all_dim;
    int32_t untruncated; /* YaRN: non-zero: the indices of the two pairs are not rounded outwards to integers */
    int32_t reserved_2;  /* must be 0 */
} kiln_rope_scaling;

/* Computes the frequencies theta^(-i / pairs) radians per position, for i from 0, in the units of kiln_rope_params.
 * They are written to out_frequencies, [pairs], in the caller's host memory, to be copied to the device. pairs is at
 * most 2^20. theta is from 1 to 1e30, or 0 for 10000. scaling may be NULL. On an error nothing is written. Returns
 * KILN_OK, KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_rope_frequencies(double theta, const kiln_rope_scaling *scaling, int64_t pairs,
                                           int64_t *out_frequencies);

/* Computes the factor by which a scaling multiplies cosines and sines, to be passed as the scale of kiln_rope_params.
 * For YaRN it is 0.1 ln(factor) + 1, or with mscale and mscale_all_dim (0.1 mscale ln(factor) + 1) / (0.1
 * mscale_all_dim ln(factor) + 1); otherwise 1. On an error *out_factor is 0. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_rope_attention_factor(const kiln_rope_scaling *scaling, float *out_factor);

/* ---- rope3d: rope on three axes, for the tokens of a video ------------------------------------------------------- */

typedef struct kiln_rope3d_params {
    void *y;                    /* [batch, tokens, heads, 2 * pairs]; may be x, with the same strides */
    const void *x;              /* [batch, tokens, heads, 2 * pairs] */
    const int32_t *grids;       /* [batch, 3]: frames, rows and columns of each sequence */
    const int64_t *frequencies; /* [pairs]: full turns per step along the axis of the pair, times 2^64 */
    int64_t batch;
    int64_t tokens; /* per sequence; batch * tokens is at most 2^31 - 1 */
    int64_t heads;  /* heads and pairs are at most 2^20 */
    int64_t pairs;
    int64_t y_stride;      /* between tokens; 0: packed. Sequences are contiguous */
    int64_t y_head_stride; /* between heads; 0: 2 * pairs */
    int64_t x_stride;
    int64_t x_head_stride;
    int64_t frame_pairs; /* the first frame_pairs pairs rotate by the frame, the next row_pairs by the row, and the */
    int64_t row_pairs;   /* others by the column; both 0: pairs / 3 each for rows and columns, the others for frames */
    int32_t layout;      /* kiln_rope_layout */
    int32_t reserved;    /* must be 0 */
} kiln_rope3d_params;

/* The rotary embedding of Wan 2.1 and similar models. Tokens are ordered by frame, then row, then column; tokens after
 * the end of the grid are copied. frequencies contains the result of kiln_rope_frequencies for the number of pairs of
 * each axis, one axis after another; this is equivalent to the tables of angles that accompany such models. */
KILN_OPERATOR_FUNCTION(rope3d_f32, kiln_rope3d_params)
KILN_OPERATOR_FUNCTION(rope3d_f16, kiln_rope3d_params)
KILN_OPERATOR_FUNCTION(rope3d_bf16, kiln_rope3d_params)

#ifdef __cplusplus
}
#endif

#endif
