/* kiln_tree_verify_sampled on the host: the CPU's operator for one sequence. It is apart from the operator's host side,
 * since linking that links the operator's images. */
#include "kernels/tree_verify_sampled/walk_cpu.h"
#include "loader/status.h"
#include <kiln/tree.h>
#include <stdlib.h>

#define NAME "kiln_tree_verify_sampled"

kiln_status kiln_tree_verify_sampled(const kiln_tree *tree, const int32_t *tokens, const float *target,
                                     const float *draft, int32_t vocabulary, int64_t seed, int64_t position,
                                     int32_t *out_path, int32_t *out_accepted, int32_t *out_next) {
    if (out_accepted) *out_accepted = 0;
    if (out_next) *out_next = 0;
    KILN__REQUIRE(tree, NAME ": tree is NULL");
    KILN__REQUIRE(tokens, NAME ": tokens is NULL");
    KILN__REQUIRE(target, NAME ": target is NULL");
    KILN__REQUIRE(vocabulary >= 1 && vocabulary <= 1 << 22, NAME ": vocabulary is %d: must be from 1 to 2^22",
                  vocabulary);
    KILN__REQUIRE(out_path, NAME ": out_path is NULL");
    KILN__REQUIRE(out_accepted, NAME ": out_accepted is NULL");
    KILN__REQUIRE(out_next, NAME ": out_next is NULL");
    uint32_t *taken = malloc((size_t)tree->nodes * sizeof *taken);
    if (!taken) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, NAME ": no memory for %d nodes", tree->nodes);
    const kiln_tree_verify_sampled_args args = {
        .path = out_path,
        .accepted = out_accepted,
        .next = out_next,
        .target = target,
        .draft = draft,
        .tokens = tokens,
        .parents = tree->parents,
        .row_seed = &seed,
        .row_position = &position,
        .batch = 1,
        .target_stride = vocabulary,
        .draft_stride = vocabulary,
        .nodes = (uint32_t)tree->nodes,
        .depth = (uint32_t)tree->depth,
        .vocabulary = (uint32_t)vocabulary,
        .trees = 1,
        .positions_64 = 1,
    };
    verify_sequence(&args, 0, KILN_CPU_f32, taken);
    free(taken);
    return KILN_OK;
}
