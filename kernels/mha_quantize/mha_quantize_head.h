/* mha_quantize on devices: what a block makes codes of, and how its threads divide it. */
#ifndef KILN_KERNELS_MHA_QUANTIZE_HEAD_H
#define KILN_KERNELS_MHA_QUANTIZE_HEAD_H

typedef enum head_kind { HEAD_Q, HEAD_K, HEAD_V } head_kind;

/* Tokens of one head, of which a thread has every step-th from row on, and of those the piece of its column. */
typedef struct head {
    head_kind kind;
    const kiln_element *from; /* the piece of the block's first token; of codes likewise */
    uint8_t *to;
    const float *means; /* the piece's [batch, kv_heads, head_dim]; NULL: none */
    uint32_t number;    /* of the head among those of q, k or v */
    uint64_t stride, codes_stride;
    uint32_t first, tokens; /* the block's first token, and how many it has */
    uint32_t count;         /* elements of the head from the piece on */
    uint32_t size;          /* from sequence to sequence of means */
    uint32_t columns, column, row, step;
} head;

/* number: of the head among those of q, k and v; tile: of its tokens. Returns whether there is anything to do. */
KILN_INLINE bool head_of(head *h, const kiln_mha_quantize_args *args, uint32_t number, uint32_t tile) {
    uint32_t size = args->head_dim, heads = args->heads, end = args->tokens;
    const void *from = args->q;
    uint8_t *codes = args->q_codes;
    const float *means = 0;
    const bool is_key = number >= heads, is_value = number >= heads + args->kv_heads;
    h->kind = is_value ? HEAD_V : is_key ? HEAD_K : HEAD_Q;
    h->stride = (uint64_t)args->q_stride;
    if (is_key) {
        number -= heads + (is_value ? args->kv_heads : 0);
        from = is_value ? args->v : args->k;
        codes = is_value ? args->v_codes : args->k_codes;
        means = is_value ? args->v_means : args->k_means;
        h->stride = (uint64_t)(is_value ? args->v_stride : args->k_stride);
        heads = args->kv_heads;
        end = args->kv_tokens;
    }
    h->first = tile * TOKENS;
    if (!codes || h->first >= end) return false;
    h->tokens = end - h->first < TOKENS ? end - h->first : TOKENS;
    h->columns = 1u << args->columns_log2;
    h->column = kiln_thread() & (h->columns - 1);
    h->row = kiln_thread() >> args->columns_log2;
    h->step = KILN_BLOCK >> args->columns_log2;
    const uint32_t d = h->column * PIECE;
    h->count = d < size ? size - d : 0;
    h->size = args->kv_heads * size;
    h->codes_stride = heads * (uint64_t)size;
    h->from = KILN_GLOBAL(const kiln_element, from) + h->first * h->stride + number * size + d;
    h->to = KILN_GLOBAL(uint8_t, codes) + h->first * h->codes_stride + number * size + d;
    h->means = means ? KILN_GLOBAL(const float, means) + number * size + d : 0;
    h->number = number;
    return true;
}

/* The scales of the head's tokens; of v the head's [batch, kv_heads, head_dim]. */
KILN_INLINE float *scales_of(const kiln_mha_quantize_args *args, const head *h) {
    float *scales = h->kind == HEAD_Q ? args->q_scales : h->kind == HEAD_K ? args->k_scales : args->v_scales;
    int64_t rows = h->kind == HEAD_Q ? args->q_scale_rows : h->kind == HEAD_K ? args->k_scale_rows : args->head_dim;
    return KILN_GLOBAL(float, scales) + h->number * (uint64_t)rows;
}

/* Successive tokens of a block that are of one sequence, or of none. */
typedef struct segment {
    uint32_t begin, end;
    uint32_t sequence;
    bool none;
} segment;

/* The segment that a token is in, from that on. */
KILN_INLINE segment segment_of(const kiln_mha_quantize_args *args, const head *h, uint32_t token) {
    segment s;
    s.begin = token;
    s.end = h->tokens;
    s.sequence = 0;
    s.none = false;
    if (h->kind == HEAD_Q) return s;
    const uint32_t key = h->first + token;
    s.sequence = room_of_key(args, key);
    s.none = s.sequence == args->batch;
    if (s.none) return s;
    const keys k = keys_of(args, s.sequence);
    uint32_t after = k.first + k.count;
    s.none = key - k.first >= k.count;
    if (s.none) /* where its room ends */
        after = args->cu_seqlens_k ? kiln_clipped(args->cu_seqlens_k[s.sequence + 1], args->kv_tokens)
                                   : k.first + args->max_seqlen_k;
    if (after - h->first < s.end) s.end = after - h->first;
    if (s.end <= token) s.end = token + 1; /* of starts that do not ascend */
    return s;
}

#endif
