/* Decoding steps of a server, with the calls that such a step is made of: a batch of requests, one layer of attention
 * with 4-bit weights and a paged cache in E4M3, and sampling with each request's own parameters. The weights are
 * random, so the tokens mean nothing.
 *
 * A step only enqueues work on a stream, and what changes from step to step is in device memory, so that on CUDA and
 * HIP a step can be captured in a graph and replayed: <kiln/kiln.h>, section 3. llama/graph.c does so. */
#include <kiln/ops.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    REQUESTS = 4,
    STEPS = 4,
    VOCABULARY = 1000,
    HEADS = 8,
    KV_HEADS = 2,
    HEAD = 64, /* elements of a head */
    MODEL = HEADS * HEAD,
    KV = KV_HEADS * HEAD,
    QKV = MODEL + 2 * KV, /* elements of a row that has q, then k, then v */
    GROUP = 128,          /* weights that share a scale */
    BLOCK = 16,           /* tokens of a block of the cache */
    TABLE = 2,            /* blocks that a request may have */
    BLOCKS = REQUESTS * TABLE,
};

/* All pointers are to device memory. */
typedef struct server {
    kiln_device *device;
    kiln_stream stream;
    void *embeddings, *norm, *qkv_scales, *head; /* the model; 16-bit numbers are bf16 */
    uint8_t *qkv_weights;
    int64_t *frequencies;
    uint8_t *k_cache, *v_cache;
    float *cache_scale;
    int32_t *tokens, *lengths, *blocks, *top_k; /* [REQUESTS], and blocks [REQUESTS, TABLE] */
    int64_t *positions, *slots, *seeds;
    float *temperatures, *top_p;
    void *hidden, *normed, *qkv, *attended, *logits, *workspace;
    size_t workspace_size;
} server;

static void check(kiln_status status) {
    if (!status) return;
    fprintf(stderr, "%s: %s\n", kiln_status_text(status), kiln_last_error());
    exit(EXIT_FAILURE);
}

/* ---- A step ---- */

static kiln_gemm_w4a16_params project(const server *s) {
    return (kiln_gemm_w4a16_params){.d = s->qkv,
                                    .a = s->normed,
                                    .weights = s->qkv_weights,
                                    .scales = s->qkv_scales,
                                    .m = REQUESTS,
                                    .n = QKV,
                                    .k = MODEL,
                                    .group = GROUP,
                                    .workspace = s->workspace,
                                    .workspace_size = s->workspace_size};
}

static kiln_mha_paged_params attend(const server *s) {
    return (kiln_mha_paged_params){.out = s->attended,
                                   .q = s->qkv,
                                   .k_cache = s->k_cache,
                                   .v_cache = s->v_cache,
                                   .block_table = s->blocks,
                                   .seqlens_k = s->lengths,
                                   .tokens = REQUESTS,
                                   .blocks = BLOCKS,
                                   .block_size = BLOCK,
                                   .batch = REQUESTS,
                                   .max_blocks_per_seq = TABLE,
                                   .heads = HEADS,
                                   .kv_heads = KV_HEADS,
                                   .head_dim = HEAD,
                                   .q_stride = QKV,
                                   .causal = 1,
                                   .cache_type = KILN_CACHE_E4M3,
                                   .k_scale = s->cache_scale,
                                   .v_scale = s->cache_scale,
                                   .workspace = s->workspace,
                                   .workspace_size = s->workspace_size};
}

static kiln_gemm_params classify(const server *s) {
    return (kiln_gemm_params){.d = s->logits,
                              .a = s->attended,
                              .b = s->head,
                              .batch = 1,
                              .m = REQUESTS,
                              .n = VOCABULARY,
                              .k = MODEL,
                              .workspace = s->workspace,
                              .workspace_size = s->workspace_size};
}

/* The calls of a step run one after another on the stream, so one workspace does for all. */
static void allocate_workspace(server *s) {
    kiln_gemm_w4a16_params projection = project(s);
    kiln_mha_paged_params attention = attend(s);
    kiln_gemm_params classifier = classify(s);
    size_t size[3];
    check(kiln_gemm_w4a16_bf16_workspace_size(&s->stream, &projection, &size[0]));
    check(kiln_mha_paged_bf16_workspace_size(&s->stream, &attention, &size[1]));
    check(kiln_gemm_bf16_workspace_size(&s->stream, &classifier, &size[2]));
    for (int i = 0; i < 3; i++)
        if (s->workspace_size < size[i]) s->workspace_size = size[i];
    check(kiln_memory_alloc(s->device, s->workspace_size, &s->workspace));
}

/* Rotates the queries in place, and the keys on their way into the cache. */
static void rotate_and_store(server *s, void *query, const void *key, const void *value) {
    check(kiln_rope_kv_store_bf16(&s->stream, &(kiln_rope_kv_store_params){.query_out = query,
                                                                           .key_cache = s->k_cache,
                                                                           .value_cache = s->v_cache,
                                                                           .query = query,
                                                                           .key = key,
                                                                           .value = value,
                                                                           .slot_mapping = s->slots,
                                                                           .positions = s->positions,
                                                                           .frequencies = s->frequencies,
                                                                           .k_scale = s->cache_scale,
                                                                           .v_scale = s->cache_scale,
                                                                           .tokens = REQUESTS,
                                                                           .heads = HEADS,
                                                                           .kv_heads = KV_HEADS,
                                                                           .head_dim = HEAD,
                                                                           .pairs = HEAD / 2,
                                                                           .capacity = BLOCKS * BLOCK,
                                                                           .query_out_stride = QKV,
                                                                           .query_stride = QKV,
                                                                           .key_stride = QKV,
                                                                           .value_stride = QKV,
                                                                           .layout = KILN_ROPE_HALF,
                                                                           .position_type = KILN_INDEX_I64,
                                                                           .slot_type = KILN_INDEX_I64,
                                                                           .cache_type = KILN_CACHE_E4M3}));
}

/* Replaces each request's token by the next one. */
static void step(server *s) {
    uint16_t *q = s->qkv, *k = q + MODEL, *v = k + KV;
    kiln_gemm_w4a16_params projection = project(s);
    kiln_mha_paged_params attention = attend(s);
    kiln_gemm_params classifier = classify(s);
    check(kiln_embedding_bf16(&s->stream, &(kiln_embedding_params){.y = s->hidden,
                                                                   .table = s->embeddings,
                                                                   .ids = s->tokens,
                                                                   .rows = REQUESTS,
                                                                   .cols = MODEL,
                                                                   .vocabulary = VOCABULARY}));
    check(kiln_rmsnorm_bf16(
        &s->stream,
        &(kiln_rmsnorm_params){
            .y = s->normed, .x = s->hidden, .weight = s->norm, .rows = REQUESTS, .cols = MODEL, .eps = 1e-5f}));
    check(kiln_gemm_w4a16_bf16(&s->stream, &projection));
    rotate_and_store(s, q, k, v);
    check(kiln_mha_paged_bf16(&s->stream, &attention));
    check(kiln_gemm_bf16(&s->stream, &classifier));
    check(kiln_sample_bf16(&s->stream, &(kiln_sample_params){.y = s->tokens,
                                                             .x = s->logits,
                                                             .row_temperature = s->temperatures,
                                                             .row_top_k = s->top_k,
                                                             .row_top_p = s->top_p,
                                                             .row_seed = s->seeds,
                                                             .row_position = s->positions,
                                                             .rows = REQUESTS,
                                                             .cols = VOCABULARY,
                                                             .index_type = KILN_INDEX_I64}));
}

/* ---- The server ---- */

static void *copy_of(server *s, const void *host, size_t size) {
    void *memory;
    check(kiln_memory_alloc(s->device, size, &memory));
    check(kiln_copy(&s->stream, memory, host, size, KILN_COPY_TO_DEVICE));
    return memory;
}

static void *room(server *s, size_t size) {
    void *memory;
    check(kiln_memory_alloc(s->device, size, &memory));
    check(kiln_fill(&s->stream, memory, 0, size));
    return memory;
}

static uint32_t random_bits(void) {
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223; /* the upper bits are the random ones */
    return state >> 24;
}

/* Random bf16 numbers: either sign, magnitudes from 2^exponent to 2^(exponent + 1). */
static void *random_numbers(server *s, size_t count, int exponent) {
    uint16_t *numbers = malloc(count * sizeof *numbers);
    if (!numbers) exit(EXIT_FAILURE);
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = random_bits();
        numbers[i] = (uint16_t)((bits >> 7) << 15 | (uint32_t)(exponent + 127) << 7 | (bits & 127));
    }
    void *memory = copy_of(s, numbers, count * sizeof *numbers);
    free(numbers);
    return memory;
}

static void open_server(server *s) {
    const float scale = 1.0f / 32;
    const float temperatures[REQUESTS] = {0, 0.7f, 1, 1.5f}, top_p[REQUESTS] = {1, 0.9f, 1, 0.95f};
    const int32_t top_k[REQUESTS] = {0, 50, 20, 0}, tokens[REQUESTS] = {1, 2, 3, 4};
    const int64_t seeds[REQUESTS] = {11, 12, 13, 14};
    int32_t blocks[BLOCKS];
    int64_t frequencies[HEAD / 2];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = i; /* <kiln/blocks.h> assigns blocks, and shares those of equal prompts */
    check(kiln_rope_frequencies(10000, NULL, HEAD / 2, frequencies));

    check(kiln_device_open(NULL, &s->device));
    check(kiln_stream_open(s->device, 0, &s->stream));
    s->embeddings = random_numbers(s, VOCABULARY * MODEL, 0);
    s->norm = random_numbers(s, MODEL, 0);
    s->qkv_weights = random_numbers(s, QKV * MODEL / 4, 0); /* any bytes do */
    s->qkv_scales = random_numbers(s, QKV * MODEL / GROUP, -7);
    s->head = random_numbers(s, VOCABULARY * MODEL, -3);
    s->frequencies = copy_of(s, frequencies, sizeof frequencies);
    s->k_cache = room(s, BLOCKS * BLOCK * KV);
    s->v_cache = room(s, BLOCKS * BLOCK * KV);
    s->cache_scale = copy_of(s, &scale, sizeof scale);
    s->tokens = copy_of(s, tokens, sizeof tokens);
    s->blocks = copy_of(s, blocks, sizeof blocks);
    s->temperatures = copy_of(s, temperatures, sizeof temperatures);
    s->top_k = copy_of(s, top_k, sizeof top_k);
    s->top_p = copy_of(s, top_p, sizeof top_p);
    s->seeds = copy_of(s, seeds, sizeof seeds);
    s->lengths = room(s, REQUESTS * sizeof *s->lengths);
    s->positions = room(s, REQUESTS * sizeof *s->positions);
    s->slots = room(s, REQUESTS * sizeof *s->slots);
    s->hidden = room(s, REQUESTS * MODEL * sizeof(uint16_t));
    s->normed = room(s, REQUESTS * MODEL * sizeof(uint16_t));
    s->qkv = room(s, REQUESTS * QKV * sizeof(uint16_t));
    s->attended = room(s, REQUESTS * MODEL * sizeof(uint16_t));
    s->logits = room(s, REQUESTS * VOCABULARY * sizeof(uint16_t));
    allocate_workspace(s);
}

static void close_server(server *s) {
    void *const memory[] = {s->embeddings, s->norm,    s->qkv_weights, s->qkv_scales, s->head,         s->frequencies,
                            s->k_cache,    s->v_cache, s->tokens,      s->blocks,     s->temperatures, s->top_k,
                            s->top_p,      s->seeds,   s->lengths,     s->slots,      s->positions,    s->cache_scale,
                            s->qkv,        s->hidden,  s->normed,      s->attended,   s->logits,       s->workspace};
    check(kiln_stream_sync(&s->stream));
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        kiln_memory_free(s->device, memory[i]);
    kiln_stream_close(&s->stream);
    kiln_device_close(s->device);
}

/* Writes where the tokens of a step are: the first is at position 0. */
static void place(server *s, int number) {
    int32_t lengths[REQUESTS];
    int64_t positions[REQUESTS], slots[REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        lengths[i] = number + 1; /* with the token whose key this step stores */
        positions[i] = number;
        slots[i] = (i * TABLE + number / BLOCK) * BLOCK + number % BLOCK;
    }
    check(kiln_copy(&s->stream, s->lengths, lengths, sizeof lengths, KILN_COPY_TO_DEVICE));
    check(kiln_copy(&s->stream, s->positions, positions, sizeof positions, KILN_COPY_TO_DEVICE));
    check(kiln_copy(&s->stream, s->slots, slots, sizeof slots, KILN_COPY_TO_DEVICE));
}

int main(void) {
    server s = {0};
    open_server(&s);
    for (int number = 0; number < STEPS; number++) {
        int32_t tokens[REQUESTS];
        place(&s, number);
        step(&s);
        check(kiln_copy(&s.stream, tokens, s.tokens, sizeof tokens, KILN_COPY_TO_HOST));
        check(kiln_stream_sync(&s.stream));
        printf("step %d:", number);
        for (int i = 0; i < REQUESTS; i++)
            printf(" %d", tokens[i]);
        printf("\n");
    }
    close_server(&s);
    return 0;
}
