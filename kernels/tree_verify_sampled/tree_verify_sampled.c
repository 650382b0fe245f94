/* tree_verify_sampled, host side. */
#include "kernels/tree_verify_sampled/tree_verify_sampled_args.h"
#include <kiln/ops/sample.h>
#include <kiln/tree.h>
#define KILN_HOST tree_verify_sampled
#include "kernels/common/operator.h"

_Static_assert((int)KILN_TREE_VERIFY_NODES == (int)KILN_TREE_NODES_MOST, "what tree.h makes");

/* Sums of units of at most 2^40 each fit in 63 bits. */
enum { VOCABULARY_MOST = 1 << 22 };

static kiln_status check_sizes(const char *name, const kiln_tree_verify_sampled_params *params) {
    KILN__TRY(kiln__size_check(name, "batch", params->batch, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "nodes", params->nodes, KILN_TREE_NODES_MOST));
    KILN__TRY(kiln__size_check(name, "depth", params->depth, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "vocabulary", params->vocabulary, VOCABULARY_MOST));
    KILN__TRY(kiln__size_check(name, "trees", params->trees, INT32_MAX));
    KILN__TRY(kiln__id_type_check(name, "token_type", params->token_type));
    return kiln__index_type_check(name, params->index_type);
}

/* The tensors of integers. */
static inline kiln_status check_numbers(const char *name, const kiln_tree_verify_sampled_params *params) {
    int64_t batch = params->batch, nodes = params->nodes;
    KILN__TRY(kiln__tensor_check(name, "path", params->path, batch, params->depth, params->depth, 2));
    KILN__TRY(kiln__tensor_check(name, "accepted", params->accepted, 1, batch, batch, 2));
    KILN__TRY(kiln__tensor_check(name, "next", params->next, 1, batch, batch, 2));
    KILN__TRY(kiln__tensor_check(name, "tokens", params->tokens, batch, nodes, nodes,
                                 kiln__index_size_log2(params->token_type)));
    KILN__TRY(kiln__tensor_check(name, "parents", params->parents, params->trees, nodes, nodes, 2));
    if (params->row_seed) KILN__TRY(kiln__tensor_check(name, "row_seed", params->row_seed, 1, batch, batch, 3));
    if (!params->row_position) return KILN_OK;
    return kiln__tensor_check(name, "row_position", params->row_position, 1, batch, batch,
                              kiln__index_size_log2(params->index_type));
}

static kiln_status tree_verify_sampled(kiln_stream *stream, const kiln_tree_verify_sampled_params *params,
                                       unsigned part, const char *name) {
    KILN__TRY(check_sizes(name, params));
    int64_t batch = params->batch, nodes = params->nodes, vocabulary = params->vocabulary;
    if (KILN__UNLIKELY(!batch || !nodes || !params->depth || !params->trees || !vocabulary)) return KILN_OK;

    KILN__TRY(check_numbers(name, params));
    kiln__tensor tensors[] = {kiln__tensor_of("target", params->target, params->target_stride),
                              kiln__tensor_of("draft", params->draft, params->draft_stride)};
    uint32_t wide;
    KILN__TRY(kiln__tensors_check(name, tensors, params->draft ? 2 : 1, batch * nodes, vocabulary,
                                  kiln__part_size_log2(part), &wide));
    const kiln_tree_verify_sampled_args args = {
        .path = params->path,
        .accepted = params->accepted,
        .next = params->next,
        .target = params->target,
        .draft = params->draft,
        .tokens = params->tokens,
        .parents = params->parents,
        .row_seed = params->row_seed,
        .row_position = params->row_position,
        .batch = batch,
        .target_stride = tensors[0].stride,
        .draft_stride = tensors[1].stride,
        .seed = (uint64_t)params->seed,
        .position = (uint64_t)params->position,
        .nodes = (uint32_t)nodes,
        .depth = (uint32_t)params->depth,
        .vocabulary = (uint32_t)vocabulary,
        .trees = (uint32_t)params->trees,
        .positions_64 = params->index_type == KILN_INDEX_I64,
        .tokens_64 = params->token_type == KILN_INDEX_I64,
    };
    kiln_launch_config config;
    KILN__TRY(kiln__grid(name, 1, (uint64_t)batch, &config));
    return launch(stream, part, KERNEL_tree_verify_sampled, &config, &args, sizeof args);
}
