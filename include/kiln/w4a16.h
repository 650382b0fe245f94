/* Conversion of 4-bit weights on the host: from the tensors of AWQ, GPTQ and GGUF to the canonical layout of
 * kiln_gemm_w4a16_* (ops/gemm.h), and from there to the layout that is fastest on a device.
 *
 *   kiln_w4a16_from_awq       from the tensors of an AWQ layer
 *   kiln_w4a16_from_gptq      from the tensors of a GPTQ layer
 *   kiln_w4a16_from_q4_0      from blocks of GGUF's Q4_0
 *   kiln_w4a16_from_q4_1      from blocks of GGUF's Q4_1
 *   kiln_w4a16_layout_of      the fastest layout on a stream's device
 *   kiln_w4a16_repack         canonical weights to that layout
 *   kiln_w4a16_unpack         and back
 *   kiln_w4a16_layout_name    a layout's name, for files
 *   kiln_w4a16_layout_find    and back
 *
 * All memory is host memory of the caller; nothing is allocated. Any thread may call these functions. If an argument is
 * invalid they return KILN_ERROR_INVALID_ARGUMENT, with the argument and the violated rule in kiln_last_error(), and
 * write nothing.
 */
#ifndef KILN_W4A16_H
#define KILN_W4A16_H

#include <kiln/ops/gemm.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Layouts ----------------------------------------------------------------------------------------------------- */

/* Gets the weight layout in which kiln_gemm_w4a16_f16 and _bf16 are fastest on the stream's device, or canonical if the
 * device's image accepts no other. On sm_75 the result applies to _f16 only; _bf16 accepts only canonical weights
 * there. Loads the image of the f16 part unless it is already loaded. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT
 * (stream is not open, out_layout is NULL), and the same statuses as kiln_module_get. */
KILN_API kiln_status kiln_w4a16_layout_of(kiln_stream *stream, kiln_w4a16_layout *out_layout);

/* Converts canonical weights [n, k / 2] to a layout. packed also has n * k / 2 bytes, and must not overlap weights. A
 * layout identifies a target and a version: kernels for other targets or versions reject it. For sm80_v1, n must be a
 * multiple of 16 and k a multiple of 64; for canonical the weights are copied.
 * Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_w4a16_repack(kiln_w4a16_layout layout, int64_t n, int64_t k, const uint8_t *weights,
                                       uint8_t *packed);

/* The exact inverse of kiln_w4a16_repack: converts packed weights to canonical ones. Returns the same statuses. */
KILN_API kiln_status kiln_w4a16_unpack(kiln_w4a16_layout layout, int64_t n, int64_t k, const uint8_t *packed,
                                       uint8_t *weights);

/* Returns the name of a layout, such as "sm80_v1", to be stored with weights in a file. The string is in static
 * storage; NULL for an unknown layout. */
KILN_API const char *kiln_w4a16_layout_name(kiln_w4a16_layout layout);

/* Gets the layout with the given name. Returns KILN_OK, or KILN_ERROR_INVALID_ARGUMENT (with the known names in the
 * error text), for example if the weights were packed for a target or version that this library does not know. */
KILN_API kiln_status kiln_w4a16_layout_find(const char *name, kiln_w4a16_layout *out_layout);

/* ---- From other systems ------------------------------------------------------------------------------------------ */

/* The type of scales and zeros. */
typedef enum kiln_w4a16_type { KILN_W4A16_F32, KILN_W4A16_F16, KILN_W4A16_BF16 } kiln_w4a16_type;

/* The destination of a conversion, in host memory: the fields of kiln_gemm_w4a16_params with the same names. */
typedef struct kiln_w4a16_target {
    uint8_t *weights; /* [n, k / 2] */
    void *scales;     /* [n, k / group] */
    void *zeros;      /* [n, k / group]; not used by kiln_w4a16_from_q4_0 */
    int64_t n;        /* n and k are at most 2^31 - 1 */
    int64_t k;
    int64_t group;    /* 32, 64, 128, 256 or k (0: k); divides k */
    int32_t type;     /* kiln_w4a16_type of scales and zeros, which are rounded once, to nearest even */
    int32_t reserved; /* must be 0 */
} kiln_w4a16_target;

/* Converts a layer of AWQ (Lin et al., arXiv 2306.00978) in the format of AutoAWQ's GEMM kernels. qweight [k, n / 8]
 * contains words of eight integers u from 0 to 15: bits 4 i to 4 i + 3 hold column {0, 2, 4, 6, 1, 3, 5, 7}[i] of the
 * eight. qzeros [k / group, n / 8] has the same format; scales [k / group, n] are of scales_type. An element is (u -
 * zero) * scale, so that q = u - 8 and zeros = (8 - zero) * scale. n must be a multiple of 8.
 * Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_w4a16_from_awq(const kiln_w4a16_target *target, const uint32_t *qweight,
                                         const uint32_t *qzeros, const void *scales, kiln_w4a16_type scales_type);

/* Converts a layer of GPTQ (Frantar et al., arXiv 2210.17323) in AutoGPTQ's format "gptq". qweight [k / 8, n] contains
 * words of eight integers along k: bits 4 i to 4 i + 3 hold row i of the eight. qzeros [k / group, n / 8] contains
 * words along n, with zero - 1 in place of each zero. scales [k / group, n] are of scales_type. Elements are as for
 * AWQ. g_idx [k] contains the group of each row; NULL means row / group. Any other order (desc_act) is rejected with an
 * error that names g_idx, since the columns of a would have to be reordered. n and k must be multiples of 8. Returns
 * KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_w4a16_from_gptq(const kiln_w4a16_target *target, const uint32_t *qweight,
                                          const uint32_t *qzeros, const void *scales, kiln_w4a16_type scales_type,
                                          const int32_t *g_idx);

/* Converts blocks [n, k / 32] of GGUF's Q4_0, as ggml defines them: 18 bytes, which are an f16 d and 16 bytes with
 * elements 0 to 15 in their lower halves and 16 to 31 in their upper halves. An element is (u - 8) * d. group must be
 * 32; zeros is not written. Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_w4a16_from_q4_0(const kiln_w4a16_target *target, const void *blocks);

/* Converts blocks [n, k / 32] of GGUF's Q4_1 in the same way: 20 bytes, with f16 d and f16 m before the 16 bytes. An
 * element is u * d + m, so that zeros are 8 * d + m. Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_w4a16_from_q4_1(const kiln_w4a16_target *target, const void *blocks);

#ifdef __cplusplus
}
#endif

#endif
