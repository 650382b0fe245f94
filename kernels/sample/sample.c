/* sample, host side. */
#include "kernels/common/host.h"
#include "kernels/sample/sample_args.h"
#include <kiln/ops/sample.h>

extern const kiln_bundle kiln__bundle_sample;

enum {
#define KILN_KERNEL(name) KERNEL_##name,
#include "kernels/sample/sample.def"
};

/* Weights are at most 2^40: their sum fits in 63 bits. */
enum { COLS_MOST = 1 << 22 };

/* How much of a row a block of a cluster has in its shared memory: the vectors of its subgroups. */
static uint32_t block_bytes(int64_t cols, unsigned size_log2) {
    enum { SUBGROUPS = KILN_BLOCK / KILN_SUBGROUP, SHARES = KILN_SAMPLE_CLUSTER * SUBGROUPS };
    uint32_t vectors = (uint32_t)(((uint64_t)cols << size_log2) / KILN_VECTOR_BYTES);
    return (vectors + SHARES - 1) / SHARES * SUBGROUPS * KILN_VECTOR_BYTES;
}

KILN__HOST_SIDE kiln_status sample(kiln_stream *stream, const kiln_sample_params *params, size_t params_size,
                                   unsigned part, const char *name) {
    kiln_sample_params copy;
    KILN__PARAMS(name, params, params_size, &copy);
    int64_t rows = params->rows, cols = params->cols;
    KILN__TRY(kiln__sizes_check(name, stream, rows, cols));
    KILN__REQUIRE(cols <= COLS_MOST, "%s: cols is %lld: must be at most %d", name, (long long)cols, COLS_MOST);
    KILN__REQUIRE(params->top_k >= 0, "%s: top_k is %lld: must not be negative", name, (long long)params->top_k);
    KILN__REQUIRE(params->temperature == 0.0f || (params->temperature >= 1e-6f && params->temperature <= 1e6f),
                  "%s: temperature is %g: must be 0 or from 1e-6 to 1e6", name, (double)params->temperature);
    KILN__REQUIRE(params->top_p >= 0.0f && params->top_p <= 1.0f, "%s: top_p is %g: must be from 0 to 1", name,
                  (double)params->top_p);
    KILN__REQUIRE(params->min_p >= 0.0f && params->min_p <= 1.0f, "%s: min_p is %g: must be from 0 to 1", name,
                  (double)params->min_p);
    KILN__TRY(kiln__index_type_check(name, params->index_type));
    if (KILN__UNLIKELY(!rows || !cols)) return KILN_OK;

    unsigned size_log2 = kiln__part_size_log2(part);
    int64_t x_stride = params->x_stride ? params->x_stride : cols;
    KILN__TRY(kiln__tensor_check(name, "y", params->y, 1, rows, rows, 2));
    KILN__TRY(kiln__tensor_check(name, "x", params->x, rows, cols, x_stride, size_log2));
    const struct {
        const char *name;
        const void *data;
        unsigned size_log2;
    } options[] = {
        {"row_temperature", params->row_temperature, 2},
        {"row_top_k", params->row_top_k, 2},
        {"row_top_p", params->row_top_p, 2},
        {"row_min_p", params->row_min_p, 2},
        {"row_seed", params->row_seed, 3},
        {"row_position", params->row_position, params->index_type == KILN_INDEX_I64 ? 3 : 2},
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].data)
            KILN__TRY(kiln__tensor_check(name, options[i].name, options[i].data, 1, rows, rows, options[i].size_log2));

    const kiln_module *module;
    KILN__TRY(kiln__operator_require(stream, KILN__OPERATOR_sample, part, &kiln__bundle_sample, &module));
    const kiln_sample_args args = {
        .y = params->y,
        .x = params->x,
        .row_temperature = params->row_temperature,
        .row_top_k = params->row_top_k,
        .row_top_p = params->row_top_p,
        .row_min_p = params->row_min_p,
        .row_seed = params->row_seed,
        .row_position = params->row_position,
        .rows = rows,
        .x_stride = x_stride,
        .seed = (uint64_t)params->seed,
        .position = (uint64_t)params->position,
        .cols = (uint32_t)cols,
        .top_k = params->top_k < cols ? (int32_t)params->top_k : 0,
        .temperature = params->temperature,
        .top_p = params->top_p,
        .min_p = params->min_p,
        .positions_64 = params->index_type == KILN_INDEX_I64,
        .each = rows >= KILN_SAMPLE_SHORT_ROWS && cols <= KILN_SAMPLE_SHORT_COLS ? KILN_BLOCK / KILN_SUBGROUP : 1,
    };
    const kiln_kernel *kernel = &module->kernels[KERNEL_sample], *cluster = &module->kernels[KERNEL_sample_cluster];
    uint32_t held = block_bytes(cols, size_log2), most = (uint32_t)stream->device->info.max_shared_bytes;
    bool shared = !cluster->info.absent && rows <= KILN_SAMPLE_CLUSTER_ROWS && cols >= KILN_SAMPLE_CLUSTER_COLS &&
                  held + cluster->info.shared_bytes <= most;
    kiln_launch_config config;
    uint64_t blocks = ((uint64_t)rows + args.each - 1) / args.each;
    KILN__TRY(kiln__grid(name, shared ? KILN_SAMPLE_CLUSTER : 1, blocks, &config));
    config.dynamic_shared_bytes = shared ? held : 0;
    return kiln__operator_launch(stream, shared ? cluster : kernel, &config, &args, sizeof args);
}

#define FUNCTION(part, size) KILN__OPERATOR_FUNCTION(sample, part)
KILN__FLOAT_PARTS(FUNCTION)
