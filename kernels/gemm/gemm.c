/* gemm, host side: which kernel does a product, and whether blocks share its k. */
#include "kernels/common/gates.h"
#include "kernels/common/host.h"
#include "kernels/gemm/gemm_args.h"

extern const kiln_bundle kiln__bundle_gemm;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/gemm/gemm.def"
};

/* k is shared where there are fewer tiles than BLOCKS, among as many blocks as make them so, as long as each has
 * SPLIT_LEAST of it. */
enum { BLOCKS = 128, SPLIT_LEAST = 512, SPLITS_MOST = 32 };

/* The end of the argument struct, copied as it is. */
typedef struct gate {
    uint32_t gated;
    float bound;
    float coefficients[KILN_GEMM_COEFFICIENTS];
    uint32_t padding;
} gate;

static const gate gates[] = {
    [KILN_GEMM_NONE] = {0},
    [KILN_GEMM_GELU_ERF] = {1, KILN__GATE_GELU_ERF, 0},
    [KILN_GEMM_GELU_TANH] = {1, KILN__GATE_GELU_TANH, 0},
    [KILN_GEMM_GELU_QUICK] = {1, KILN__GATE_GELU_QUICK, 0},
    [KILN_GEMM_SILU] = {1, KILN__GATE_SILU, 0},
};
enum { GATES = sizeof gates / sizeof *gates };

/* ---- Checks ---- */

static kiln_status check_sizes(const char *name, const kiln_gemm_params *params) {
    KILN__TRY(kiln__size_check(name, "batch", params->batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "m", params->m, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "n", params->n, INT32_MAX));
    return kiln__size_check(name, "k", params->k, INT32_MAX);
}

/* A tensor of `batch` matrices. Gives its strides in place of 0. */
typedef struct matrices {
    const char *name;
    const void *data;
    int64_t rows, cols;
    int64_t stride, batch_stride;
} matrices;

/* Inlined, so that the tensors need not be in memory. */
KILN__HOST_SIDE kiln_status check_matrices(const char *name, matrices *tensor, int64_t batch, unsigned size_log2) {
    if (!tensor->stride) tensor->stride = tensor->cols;
    KILN__TRY(
        kiln__tensor_check(name, tensor->name, tensor->data, tensor->rows, tensor->cols, tensor->stride, size_log2));
    if (!tensor->batch_stride) tensor->batch_stride = tensor->rows * tensor->stride;
    KILN__REQUIRE(tensor->batch_stride >= tensor->cols,
                  "%s: %s_batch_stride is %lld: must be 0 or at least the %lld elements of a row", name, tensor->name,
                  (long long)tensor->batch_stride, (long long)tensor->cols);
    int64_t count;
    bool overflow = __builtin_mul_overflow(batch, tensor->batch_stride, &count) || count > INT64_MAX >> 3;
    KILN__REQUIRE(!overflow, "%s: %s is too large: %lld matrices with a stride of %lld elements", name, tensor->name,
                  (long long)batch, (long long)tensor->batch_stride);
    return KILN_OK;
}

static uint32_t wide(const matrices *a, const matrices *b, int64_t batch, unsigned size_log2) {
    return kiln__rows_wide((uintptr_t)a->data, a->rows, a->stride, size_log2) &
           kiln__rows_wide((uintptr_t)b->data, b->rows, b->stride, size_log2) &
           kiln__rows_wide(0, batch, a->batch_stride | b->batch_stride, size_log2);
}

/* ---- Shapes ---- */

static uint64_t tiles_of(int64_t count) {
    return ((uint64_t)count + KILN_GEMM_TILE - 1) / KILN_GEMM_TILE;
}

/* How blocks share the k of a tile. */
typedef struct shares {
    uint32_t splits, split; /* how many blocks, and how much each has */
    size_t partials_size;   /* bytes of their results; 0 where one has all */
} shares;

static void divide(const kiln_gemm_params *params, shares *out) {
    uint64_t tiles, k = (uint64_t)params->k;
    uint64_t matrix = tiles_of(params->m) * tiles_of(params->n);
    if (__builtin_mul_overflow(matrix, (uint64_t)params->batch, &tiles) || tiles >= BLOCKS) return;
    uint64_t splits = BLOCKS / tiles, most = k / SPLIT_LEAST;
    if (splits > most) splits = most;
    if (splits > SPLITS_MOST) splits = SPLITS_MOST;
    if (splits <= 1) return;
    uint64_t each = (k + splits - 1) / splits;
    each = (each + KILN_GEMM_DEPTH - 1) / KILN_GEMM_DEPTH * KILN_GEMM_DEPTH;
    out->split = (uint32_t)each;
    out->splits = (uint32_t)((k + each - 1) / each);
}

/* gemm_rows shares nothing. The sizes are checked. */
static kiln_status share(const char *name, const kiln_gemm_params *params, shares *out) {
    *out = (shares){.splits = 1, .split = (uint32_t)params->k};
    if (!params->batch || !params->m || !params->n || params->m <= KILN_GEMM_ROWS) return KILN_OK;
    divide(params, out);
    uint64_t count;
    bool overflow =
        __builtin_mul_overflow((uint64_t)params->m * (uint64_t)params->n, (uint64_t)params->batch, &count) ||
        __builtin_mul_overflow(count, out->splits * sizeof(float), &count) || count > INT64_MAX;
    KILN__REQUIRE(!overflow, "%s: d is too large: %lld matrices of %lld x %lld", name, (long long)params->batch,
                  (long long)params->m, (long long)params->n);
    if (out->splits > 1) out->partials_size = count;
    return KILN_OK;
}

/* ---- Launches ---- */

static kiln_status launch_rows(kiln_stream *stream, const kiln_kernel *kernels, const kiln_gemm_args *args,
                               const char *name) {
    kiln_launch_config config;
    uint64_t tiles = ((uint64_t)args->n + KILN_GEMM_BLOCK_COLUMNS - 1) / KILN_GEMM_BLOCK_COLUMNS;
    KILN__TRY(kiln__grid(name, tiles, args->batch, &config));
    return kiln__operator_launch(stream, &kernels[KERNEL_gemm_rows], &config, args, sizeof *args);
}

static kiln_status launch_tiles(kiln_stream *stream, const kiln_kernel *kernels, const kiln_gemm_args *args,
                                const char *name) {
    kiln_launch_config config;
    uint64_t blocks = (uint64_t)args->tile_rows * args->splits * args->batch;
    KILN__TRY(kiln__grid(name, tiles_of(args->n), blocks, &config));
    KILN__TRY(kiln__operator_launch(stream, &kernels[KERNEL_gemm_tiles], &config, args, sizeof *args));
    if (args->splits == 1) return KILN_OK;
    uint64_t columns = ((uint64_t)args->n + KILN_BLOCK - 1) >> KILN_BLOCK_LOG2;
    KILN__TRY(kiln__grid(name, columns, (uint64_t)args->m * args->batch, &config));
    return kiln__operator_launch(stream, &kernels[KERNEL_gemm_join], &config, args, sizeof *args);
}

/* Shares k if the workspace is there for it. */
static kiln_status choose_splits(kiln_gemm_args *args, const kiln_gemm_params *params, const char *name) {
    shares chosen;
    args->splits = 1;
    args->split = (uint32_t)params->k;
    if (!params->workspace && !params->workspace_size) return KILN_OK;
    KILN__TRY(share(name, params, &chosen));
    if (!chosen.partials_size) return KILN_OK;
    KILN__REQUIRE(params->workspace_size >= chosen.partials_size,
                  "%s: workspace_size is %zu: must be at least %zu, or 0 without a workspace", name,
                  params->workspace_size, chosen.partials_size);
    KILN__REQUIRE(params->workspace && !((uintptr_t)params->workspace & (KILN_VECTOR_BYTES - 1)),
                  "%s: workspace is %p: must be 16-byte aligned device memory", name, params->workspace);
    args->partials = params->workspace;
    args->splits = chosen.splits;
    args->split = chosen.split;
    return KILN_OK;
}

static kiln_status gemm(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size, unsigned part,
                        const char *name) {
    kiln_gemm_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(check_sizes(name, params));
    KILN__REQUIRE((uint32_t)params->activation < GATES,
                  "%s: activation is %d: must be none (0), gelu_erf (1), gelu_tanh (2), gelu_quick (3) or silu (4)",
                  name, params->activation);
    KILN__REQUIRE(__builtin_isfinite(params->scale), "%s: scale is %g: must be finite", name, (double)params->scale);
    int64_t batch = params->batch, m = params->m, n = params->n, k = params->k;
    if (KILN__UNLIKELY(!batch || !m || !n)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    matrices d = {"d", params->d, m, n, params->d_stride, params->d_batch_stride};
    matrices a = {"a", params->a, m, k, params->a_stride, params->a_batch_stride};
    matrices b = {"b", params->b, n, k, params->b_stride, params->b_batch_stride};
    matrices c = {"c", params->c, m, n, params->c_stride, params->c_batch_stride};
    KILN__TRY(check_matrices(name, &d, batch, size_log2));
    if (k) {
        KILN__TRY(check_matrices(name, &a, batch, size_log2));
        KILN__TRY(check_matrices(name, &b, batch, size_log2));
    }
    if (c.data) KILN__TRY(check_matrices(name, &c, batch, size_log2));
    if (params->bias) KILN__TRY(kiln__tensor_check(name, "bias", params->bias, 1, n, n, size_log2));
    KILN__REQUIRE(d.data != c.data || (d.stride == c.stride && d.batch_stride == c.batch_stride),
                  "%s: d is c, but d_stride or d_batch_stride is not that of c: must be equal", name);

    kiln_gemm_args args = {
        .d = params->d,
        .a = params->a,
        .b = params->b,
        .c = params->c,
        .bias = params->bias,
        .m = m,
        .n = n,
        .k = k,
        .d_stride = d.stride,
        .a_stride = a.stride,
        .b_stride = b.stride,
        .c_stride = c.stride,
        .d_batch_stride = d.batch_stride,
        .a_batch_stride = a.batch_stride,
        .b_batch_stride = b.batch_stride,
        .c_batch_stride = c.batch_stride,
        .batch = (uint32_t)batch,
        .tile_rows = (uint32_t)tiles_of(m),
        .wide = wide(&a, &b, batch, size_log2),
        .alpha = params->scale == 0.0f ? 1.0f : params->scale,
    };
    memcpy((char *)&args + offsetof(kiln_gemm_args, gated), &gates[(uint32_t)params->activation], sizeof(gate));
    KILN__TRY(choose_splits(&args, params, name));
    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_gemm, part, &kiln__bundle_gemm, &module));
    if (m <= KILN_GEMM_ROWS) return launch_rows(stream, module->kernels, &args, name);
    return launch_tiles(stream, module->kernels, &args, name);
}

static kiln_status gemm_workspace(kiln_stream *stream, const kiln_gemm_params *params, size_t params_size,
                                  size_t *out_size, const char *name) {
    KILN__REQUIRE(out_size, "%s_workspace_size: out_size is NULL", name);
    *out_size = 0;
    kiln_gemm_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    KILN__TRY(kiln__stream_check(name, stream));
    KILN__TRY(check_sizes(name, params));
    shares chosen;
    KILN__TRY(share(name, params, &chosen));
    *out_size = chosen.partials_size;
    return KILN_OK;
}

#define GEMM(part, size)                                                                                     \
    KILN__OPERATOR_FUNCTION(gemm, part)                                                                      \
    kiln_status kiln_gemm_##part##_workspace_size_sized(kiln_stream *stream, const kiln_gemm_params *params, \
                                                        size_t params_size, size_t *out_size) {              \
        return gemm_workspace(stream, params, params_size, out_size, "gemm_" #part);                         \
    }
KILN__FLOAT_PARTS(GEMM)
