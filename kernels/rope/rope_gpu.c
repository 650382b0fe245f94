/* rope: each pair of a head's elements is rotated by the token's position times the pair's frequency, or by a table's
 * cosine and sine; see rotate_gpu.h.
 *
 * A block rotates heads of one or several tokens: 1 << lanes_log2 threads share a head, so that small heads leave no
 * thread idle, and each has its share of one head or two, which it reads before it knows the token's position where
 * the directions are in an aligned table.
 *
 * Floor: one read and one write of the tensor at memory bandwidth. Measured (H100 80GB HBM3, driver 580.159.04,
 * 2026-11-26; bf16, 16384 tokens of 32 heads of 128, table of bf16, a copy 90.2 us): 92.8 us, one head for
 * a thread 104.7 us; before, 96.9 us. Of 8 heads 25.3 us instead of 28.2.
 * Test: build/tests/ops/rope_test. Bench: build/kiln bench rope */
#include "kernels/rope/rope_args.h"

#define KILN_TURN_HEADS KILN_ROPE_HEADS
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000 && !defined(KILN_PART_f32)
#define KILN_TURN_QUADS KILN_UNROLL /* memory is so fast that moving words between registers would count */
#endif
#include "kernels/common/rotary/rotate_gpu.h"

#include "kernels/common/index.h"

#if defined(__CUDACC__)
/* Four blocks of a multiprocessor: NVIDIA's assembler would spill for five. */
#undef KILN_ENTRY_HEAD
#define KILN_ENTRY_HEAD extern "C" __global__ __launch_bounds__(KILN_BLOCK, 4) void
#endif

/* What a thread has of the heads that it rotates by a table: a vector of each half. */
typedef struct halves {
    kiln_vector left[KILN_ROPE_HEADS], right[KILN_ROPE_HEADS];
} halves;

KILN_INLINE void take(halves *held, const kiln_rope_args *args, const kiln_element *x, uint32_t head, uint32_t slots) {
    KILN_UNROLL
    for (uint32_t i = 0; i < KILN_ROPE_HEADS; i++)
        if (head + i * slots < args->heads) {
            const kiln_element *from = x + i * (slots * (uint64_t)args->x_head_stride);
            held->left[i] = kiln_vector_load(from);
            held->right[i] = kiln_vector_load(from + args->step);
        }
}

/* Rotates the pairs of two words, which have one element each in f32, else two. */
KILN_INLINE void turn_words(uint32_t *left, uint32_t *right, const float *cosines, const float *sines, float scale) {
    float a[2], b[2];
#if defined(KILN_PART_f32)
    a[0] = kiln_float(*left);
    b[0] = kiln_float(*right);
#else
    kiln_pair_values(a, *left);
    kiln_pair_values(b, *right);
#endif
    KILN_UNROLL
    for (int i = 0; i < KILN_VECTOR / 4; i++)
        kiln_turn(&a[i], &b[i], (kiln_direction){cosines[i] * scale, sines[i] * scale});
#if defined(KILN_PART_f32)
    *left = kiln_bits(a[0]);
    *right = kiln_bits(b[0]);
#else
    *left = kiln_pair_of(a);
    *right = kiln_pair_of(b);
#endif
}

/* Rotates the first of the halves by the rows of a table, from pair number first on. */
KILN_INLINE void turn_first(halves *held, const void *cosines, const void *sines, uint32_t source, float scale,
                            uint32_t first) {
#if !defined(KILN_PART_f32)
    if (source == KILN_TURN_BY_TABLE) {
        kiln_vector vc = kiln_vector_load((const kiln_element *)cosines + first);
        kiln_vector vs = kiln_vector_load((const kiln_element *)sines + first);
        KILN_UNROLL
        for (int word = 0; word < 4; word++) {
            float c[2], s[2];
            kiln_pair_values(c, vc.words[word]);
            kiln_pair_values(s, vs.words[word]);
            turn_words(&held->left[0].words[word], &held->right[0].words[word], c, s, scale);
        }
        return;
    }
#endif
    KILN_UNROLL
    for (int quad = 0; quad < KILN_QUADS; quad++) {
        kiln_vector vc = kiln_vector_load((const kiln_element *)((const float *)cosines + first + 4 * quad));
        kiln_vector vs = kiln_vector_load((const kiln_element *)((const float *)sines + first + 4 * quad));
        KILN_UNROLL
        for (int i = 0; i < 4; i += KILN_VECTOR / 4) {
            const float c[2] = {kiln_float(vc.words[i]), kiln_float(vc.words[(i + 1) % 4])};
            const float s[2] = {kiln_float(vs.words[i]), kiln_float(vs.words[(i + 1) % 4])};
            int word = (4 * quad + i) / (KILN_VECTOR / 4);
            turn_words(&held->left[0].words[word], &held->right[0].words[word], c, s, scale);
        }
    }
}

KILN_ENTRY(rope, kiln_rope_args) {
    uint32_t lanes = 1u << args.lanes_log2, lane = kiln_thread() & (lanes - 1), slots = 1u << args.slots_log2;
    uint32_t threads_log2 = args.lanes_log2 + args.slots_log2; /* of a token */
    uint32_t head = kiln_tile() * KILN_ROPE_HEADS * slots + (kiln_thread() >> args.lanes_log2 & (slots - 1));
    const uint64_t block_token = kiln_block() << (KILN_BLOCK_LOG2 - threads_log2);
    const uint32_t own_token = kiln_thread() >> threads_log2;
    const uint64_t token = block_token + own_token;
    if (head >= args.heads || token >= (uint64_t)args.tokens) return;
    /* A block's token and a thread's one by one: products of 64 bits take AMD's vector unit three of 32, four turns
     * each. */
    const kiln_element *x = (const kiln_element *)args.x + block_token * (uint64_t)args.x_stride;
    kiln_element *y = (kiln_element *)args.y + block_token * (uint64_t)args.y_stride;
    x += own_token * (uint64_t)args.x_stride;
    y += own_token * (uint64_t)args.y_stride;
    uint32_t first = lane * KILN_VECTOR;
    bool by_table = (args.wide & KILN_ROTATE_BY_TABLE) != 0;
    if (by_table && first >= args.pairs) return;
    halves held;
    if (by_table) take(&held, &args, x + head * (uint64_t)args.x_head_stride + first, head, slots);
    uint64_t position = args.positions ? kiln_index(args.positions, args.positions_64, token) : token;
    bool inside = args.source == KILN_TURN_BY_FREQUENCY || position < (uint64_t)args.table_rows;
    uint64_t row = 0;
    if (args.source != KILN_TURN_BY_FREQUENCY) {
        row = inside ? position * (uint64_t)args.table_stride : 0;
        row *= args.source == KILN_TURN_BY_TABLE_F32 ? sizeof(float) : sizeof(kiln_element);
    }
    const char *cosines = (const char *)args.cosines + row, *sines = (const char *)args.sines + row;
    if (by_table && inside) {
        kiln_element *to = y + head * (uint64_t)args.y_head_stride + first;
        KILN_LOOP
        for (uint32_t i = 0; i < KILN_ROPE_HEADS && head < args.heads; i++, head += slots) {
            turn_first(&held, cosines, sines, args.source, args.scale, first);
            kiln_vector_store(to, held.left[0]);
            kiln_vector_store(to + args.step, held.right[0]);
            held.left[0] = held.left[1];
            held.right[0] = held.right[1];
            to += slots * (uint64_t)args.y_head_stride;
        }
        return;
    }
#if defined(__HIP__) /* where threads would branch by a source of their own for each pair */
    const uint32_t source = args.source;
#else
    const uint32_t source = inside ? args.source : KILN_TURN_BY_NOTHING;
    inside = true;
#endif
    kiln_pairs pairs = {args.frequencies, cosines, sines, args.scale, source, inside, args.pairs, args.step, args.wide};
    const kiln_place place = {{position, position, position}, 0, 0}; /* one axis */
    const kiln_heads heads = {y + head * (uint64_t)args.y_head_stride, x + head * (uint64_t)args.x_head_stride,
                              slots * (uint64_t)args.y_head_stride, slots * (uint64_t)args.x_head_stride,
                              head + slots < args.heads ? 2u : 1u};
    kiln_turn_heads(&pairs, &place, &heads, lane, lanes);
}
