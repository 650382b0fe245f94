/* tree_accept, host side. */
#include "kernels/tree_accept/tree_accept_args.h"
#include <kiln/ops/sample.h>
#include <kiln/tree.h>
#define KILN_HOST tree_accept
#include "kernels/common/operator.h"

_Static_assert((int)KILN_TREE_ACCEPT_NODES == (int)KILN_TREE_NODES_MOST, "what tree.h makes");

/* Sums of weights of at most 2^40 each fit in 63 bits. */
enum { VOCABULARY_MOST = 1 << 22 };

static const float EPSILON = 0.09f, DELTA = 0.3f;

static kiln_status check_sizes(const char *name, const kiln_tree_accept_params *params) {
    KILN__TRY(kiln__size_check(name, "batch", params->batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "nodes", params->nodes, KILN_TREE_NODES_MOST));
    KILN__TRY(kiln__size_check(name, "depth", params->depth, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "vocabulary", params->vocabulary, VOCABULARY_MOST));
    return kiln__size_check(name, "trees", params->trees, INT32_MAX);
}

static kiln_status check_fraction(const char *name, const char *field, float value) {
    KILN__REQUIRE(value == 0.0f || (value >= 1e-9f && value <= 1.0f), "%s: %s is %g: must be 0 or from 1e-9 to 1", name,
                  field, (double)value);
    return KILN_OK;
}

static kiln_status check_options(const char *name, const kiln_tree_accept_params *params) {
    bool typical = params->rule == KILN_TREE_TYPICAL;
    KILN__TRY(kiln__id_type_check(name, "token_type", params->token_type));
    KILN__REQUIRE(!params->reserved, "%s: reserved is %d: must be 0", name, params->reserved);
    KILN__REQUIRE(typical || params->rule == KILN_TREE_EXACT, "%s: rule is %d: must be exact (0) or typical (1)", name,
                  params->rule);
    KILN__REQUIRE(params->temperature == 0.0f || (params->temperature >= 1e-6f && params->temperature <= 1e6f),
                  "%s: temperature is %g: must be 0 or from 1e-6 to 1e6", name, (double)params->temperature);
    KILN__TRY(check_fraction(name, "epsilon", params->epsilon));
    KILN__TRY(check_fraction(name, "delta", params->delta));
    KILN__REQUIRE(params->logits || (params->targets && !typical), "%s: logits is NULL: %s", name,
                  typical ? "typical acceptance needs them" : "must be given where targets is NULL");
    return KILN_OK;
}

/* Checks the tensors of integers. */
static inline kiln_status check_numbers(const char *name, const kiln_tree_accept_params *params) {
    int64_t batch = params->batch, nodes = params->nodes;
    unsigned token_size = kiln__index_size_log2(params->token_type);
    KILN__TRY(kiln__tensor_check(name, "path", params->path, batch, params->depth, params->depth, 2));
    KILN__TRY(kiln__tensor_check(name, "accepted", params->accepted, 1, batch, batch, 2));
    KILN__TRY(kiln__tensor_check(name, "next", params->next, 1, batch, batch, 2));
    KILN__TRY(kiln__tensor_check(name, "tokens", params->tokens, batch, nodes, nodes, token_size));
    KILN__TRY(kiln__tensor_check(name, "parents", params->parents, params->trees, nodes, nodes, 2));
    if (!params->targets) return KILN_OK;
    return kiln__tensor_check(name, "targets", params->targets, batch, nodes, nodes, token_size);
}

static kiln_status tree_accept(kiln_stream *stream, const kiln_tree_accept_params *params, unsigned part,
                               const char *name) {
    KILN__TRY(check_sizes(name, params));
    KILN__TRY(check_options(name, params));
    int64_t batch = params->batch, nodes = params->nodes, vocabulary = params->vocabulary;
    if (KILN__UNLIKELY(!batch || !nodes || !params->depth || !params->trees || (params->logits && !vocabulary)))
        return KILN_OK;

    KILN__TRY(check_numbers(name, params));
    kiln__tensor logits = kiln__tensor_of("logits", params->logits, params->logits_stride);
    uint32_t wide = 0;
    if (params->logits)
        KILN__TRY(kiln__tensors_check(name, &logits, 1, batch * nodes, vocabulary, kiln__part_size_log2(part), &wide));
    const kiln_tree_accept_args args = {
        .path = params->path,
        .accepted = params->accepted,
        .next = params->next,
        .logits = params->logits,
        .targets = params->targets,
        .tokens = params->tokens,
        .parents = params->parents,
        .batch = batch,
        .logits_stride = logits.stride,
        .nodes = (uint32_t)nodes,
        .depth = (uint32_t)params->depth,
        .vocabulary = (uint32_t)vocabulary,
        .trees = (uint32_t)params->trees,
        .typical = params->rule == KILN_TREE_TYPICAL,
        .inverse_temperature = 1.0f / (params->temperature != 0.0f ? params->temperature : 1.0f),
        .epsilon = params->epsilon != 0.0f ? params->epsilon : EPSILON,
        .delta = params->delta != 0.0f ? params->delta : DELTA,
        .wide = wide,
        .tokens_64 = params->token_type == KILN_INDEX_I64,
    };
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, (uint64_t)batch, &config));
    return launch(stream, part, KERNEL_tree_accept, &config, &args, sizeof args);
}
