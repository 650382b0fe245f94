/* Weights of other systems in canonical form, against what those systems' own definitions give; and layouts there and
 * back. */
#include <kiln/w4a16.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 24, K = 128, GROUP = 32, GROUPS = K / GROUP };

/* A layer as it is quantised: integers from 0 to 15, and for each group a zero and a scale. */
typedef struct layer {
    uint8_t u[K][N], zero[GROUPS][N];
    float scale[GROUPS][N];
} layer;

/* What is made of it. */
typedef struct canonical {
    uint8_t weights[N][K / 2];
    float scales[N][GROUPS], zeros[N][GROUPS];
} canonical;

static uint32_t state = 1;

static uint32_t random_below(uint32_t end) {
    state = state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)state * end >> 32);
}

/* Scales that f16 has, too. */
static layer layer_of_random(void) {
    layer l;
    for (int k = 0; k < K; k++)
        for (int n = 0; n < N; n++)
            l.u[k][n] = (uint8_t)random_below(16);
    for (int g = 0; g < GROUPS; g++)
        for (int n = 0; n < N; n++) {
            l.zero[g][n] = (uint8_t)(1 + random_below(15));
            l.scale[g][n] = (float)(1 + random_below(1023)) / 4096;
        }
    return l;
}

static kiln_w4a16_target target_of(canonical *c) {
    return (kiln_w4a16_target){
        .weights = c->weights[0], .scales = c->scales, .zeros = c->zeros, .n = N, .k = K, .group = GROUP};
}

static int integer_of(const canonical *c, int n, int k) {
    int code = c->weights[n][k / 2] >> (k % 2 ? 4 : 0) & 15;
    return code < 8 ? code : code - 16;
}

static void expect_layer(const layer *l, const canonical *c) {
    for (int n = 0; n < N; n++)
        for (int k = 0; k < K; k++) {
            int g = k / GROUP;
            float expected = (float)(l->u[k][n] - l->zero[g][n]) * l->scale[g][n];
            float found = (float)integer_of(c, n, k) * c->scales[n][g] + c->zeros[n][g];
            if (found != expected) /* all is exact in f32 */
                fail_msg("row %d, element %d is %g: must be %g", n, k, (double)found, (double)expected);
        }
}

static void expect_refused(kiln_status status, const char *text) {
    assert_int_equal(status, KILN_ERROR_INVALID_ARGUMENT);
    if (!strstr(kiln_last_error(), text)) fail_msg("not \"%s\": %s", text, kiln_last_error());
}

/* As AutoAWQ packs: half byte i of a word is column order[i] of its eight. */
static void awq_is_taken(void **unused) {
    (void)unused;
    static const int order[8] = {0, 2, 4, 6, 1, 3, 5, 7};
    static uint32_t qweight[K][N / 8], qzeros[GROUPS][N / 8];
    static canonical c;
    layer l = layer_of_random();
    for (int i = 0; i < 8; i++)
        for (int word = 0; word < N / 8; word++) {
            for (int k = 0; k < K; k++)
                qweight[k][word] |= (uint32_t)l.u[k][8 * word + order[i]] << 4 * i;
            for (int g = 0; g < GROUPS; g++)
                qzeros[g][word] |= (uint32_t)l.zero[g][8 * word + order[i]] << 4 * i;
        }
    kiln_w4a16_target target = target_of(&c);
    assert_int_equal(kiln_w4a16_from_awq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32), KILN_OK);
    expect_layer(&l, &c);

    target.n = 20;
    expect_refused(kiln_w4a16_from_awq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32), "n is 20");
    target = target_of(&c);
    expect_refused(kiln_w4a16_from_awq(&target, qweight[0], NULL, l.scale, KILN_W4A16_F32), "qzeros is NULL");
    expect_refused(kiln_w4a16_from_awq(&target, qweight[0], qzeros[0], l.scale, (kiln_w4a16_type)3),
                   "scales_type is 3");
    target.group = 48;
    expect_refused(kiln_w4a16_from_awq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32), "group is 48");
    target.group = 256;
    expect_refused(kiln_w4a16_from_awq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32), "multiple of group");
    target = target_of(&c);
    target.zeros = NULL;
    expect_refused(kiln_w4a16_from_awq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32), "zeros is NULL");
}

/* As AutoGPTQ packs: along k, and zeros one less than they are. */
static void gptq_is_taken(void **unused) {
    (void)unused;
    static uint32_t qweight[K / 8][N], qzeros[GROUPS][N / 8];
    static int32_t g_idx[K];
    static canonical c;
    layer l = layer_of_random();
    for (int n = 0; n < N; n++) {
        for (int k = 0; k < K; k++)
            qweight[k / 8][n] |= (uint32_t)l.u[k][n] << 4 * (k % 8);
        for (int g = 0; g < GROUPS; g++)
            qzeros[g][n / 8] |= (uint32_t)(l.zero[g][n] - 1) << 4 * (n % 8);
    }
    kiln_w4a16_target target = target_of(&c);
    assert_int_equal(kiln_w4a16_from_gptq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32, NULL), KILN_OK);
    expect_layer(&l, &c);
    for (int k = 0; k < K; k++)
        g_idx[k] = k / GROUP;
    memset(&c, 0, sizeof c);
    assert_int_equal(kiln_w4a16_from_gptq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32, g_idx), KILN_OK);
    expect_layer(&l, &c);

    g_idx[40] = 0;
    expect_refused(kiln_w4a16_from_gptq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32, g_idx),
                   "g_idx[40] is 0: must be 1");
    target.k = 124;
    target.group = 0;
    expect_refused(kiln_w4a16_from_gptq(&target, qweight[0], qzeros[0], l.scale, KILN_W4A16_F32, NULL), "k is 124");
}

/* The f16 of a number that f16 has, 2^-12 at least. */
static uint16_t half_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits >> 16 & 0x8000u) | (((bits >> 13 & 0x3ffffu) - (112u << 10)) & 0x7fffu));
}

/* As ggml has its blocks: d, perhaps m, and elements j and j + 16 in byte j. */
static void gguf_is_taken(void **unused) {
    (void)unused;
    for (int least = 0; least < 2; least++) {
        static uint8_t blocks[N * GROUPS * 20];
        static canonical c;
        layer l = layer_of_random();
        uint8_t *block = blocks;
        for (int n = 0; n < N; n++)
            for (int g = 0; g < GROUPS; g++) {
                uint16_t head[2] = {half_of(l.scale[g][n]), half_of(-(float)l.zero[g][n] / 16)};
                memcpy(block, head, least ? 4 : 2);
                block += least ? 4 : 2;
                for (int j = 0; j < 16; j++)
                    *block++ = (uint8_t)(l.u[g * 32 + j][n] | l.u[g * 32 + j + 16][n] << 4);
            }
        kiln_w4a16_target target = target_of(&c);
        memset(&c, 0, sizeof c);
        if (!least) target.zeros = NULL;
        assert_int_equal(least ? kiln_w4a16_from_q4_1(&target, blocks) : kiln_w4a16_from_q4_0(&target, blocks),
                         KILN_OK);
        for (int n = 0; n < N; n++)
            for (int k = 0; k < K; k++) {
                int g = k / 32;
                float expected = least ? (float)l.u[k][n] * l.scale[g][n] - (float)l.zero[g][n] / 16
                                       : (float)(l.u[k][n] - 8) * l.scale[g][n];
                assert_true((float)integer_of(&c, n, k) * c.scales[n][g] + c.zeros[n][g] == expected);
            }
        target.group = 64;
        expect_refused(least ? kiln_w4a16_from_q4_1(&target, blocks) : kiln_w4a16_from_q4_0(&target, blocks),
                       "group is 64: must be 32");
    }
}

/* Scales and zeros are rounded once, from f16 to each type. */
static void numbers_have_the_type_that_is_asked_for(void **unused) {
    (void)unused;
    uint8_t block[20] = {0x01, 0x38, 0x00, 0xc4}, weights[16]; /* 0.50048828125 and -4 */
    uint16_t scale, zero;
    kiln_w4a16_target target = {.weights = weights, .scales = &scale, .zeros = &zero, .n = 1, .k = 32};
    target.type = KILN_W4A16_F16;
    assert_int_equal(kiln_w4a16_from_q4_1(&target, block), KILN_OK);
    assert_int_equal(scale, 0x3801);
    assert_int_equal(zero, 0x1c00); /* 8 * 0.50048828125 - 4 */
    target.type = KILN_W4A16_BF16;
    assert_int_equal(kiln_w4a16_from_q4_1(&target, block), KILN_OK);
    assert_int_equal(scale, 0x3f00);
    assert_int_equal(zero, 0x3b80);
}

static void layouts_go_there_and_back(void **unused) {
    (void)unused;
    enum { ROWS = 48, COLUMNS = 192, SIZE = ROWS * COLUMNS / 2 };
    static uint8_t weights[SIZE], packed[SIZE], back[SIZE];
    for (int layout = KILN_W4A16_CANONICAL; layout <= KILN_W4A16_SM80_V1; layout++) {
        for (size_t i = 0; i < SIZE; i++)
            weights[i] = (uint8_t)random_below(256);
        memset(back, 0xee, SIZE);
        assert_int_equal(kiln_w4a16_repack((kiln_w4a16_layout)layout, ROWS, COLUMNS, weights, packed), KILN_OK);
        assert_int_equal(memcmp(weights, packed, SIZE) == 0, layout == KILN_W4A16_CANONICAL);
        assert_int_equal(kiln_w4a16_unpack((kiln_w4a16_layout)layout, ROWS, COLUMNS, packed, back), KILN_OK);
        assert_memory_equal(weights, back, SIZE);
        kiln_w4a16_layout found;
        assert_int_equal(kiln_w4a16_layout_find(kiln_w4a16_layout_name((kiln_w4a16_layout)layout), &found), KILN_OK);
        assert_int_equal(found, layout);
    }
    assert_null(kiln_w4a16_layout_name((kiln_w4a16_layout)2));
    kiln_w4a16_layout found;
    expect_refused(kiln_w4a16_layout_find("sm90a_v3", &found), "name is \"sm90a_v3\": must be canonical or sm80_v1");
    expect_refused(kiln_w4a16_repack(KILN_W4A16_SM80_V1, 24, 64, weights, packed), "n is 24: must be a multiple of 16");
    expect_refused(kiln_w4a16_unpack(KILN_W4A16_SM80_V1, 16, 96, packed, back), "k is 96: must be a multiple of 64");
    expect_refused(kiln_w4a16_repack((kiln_w4a16_layout)2, 16, 64, weights, packed), "layout is 2");
    expect_refused(kiln_w4a16_repack(KILN_W4A16_SM80_V1, 16, 64, NULL, packed), "weights is NULL");
    expect_refused(kiln_w4a16_repack(KILN_W4A16_SM80_V1, 16, 64, packed, NULL), "packed is NULL");
    expect_refused(kiln_w4a16_unpack(KILN_W4A16_SM80_V1, 16, 64, NULL, back), "packed is NULL");
    expect_refused(kiln_w4a16_repack(KILN_W4A16_SM80_V1, 16, 64, weights, weights), "weights and packed overlap");
    expect_refused(kiln_w4a16_unpack(KILN_W4A16_SM80_V1, 16, 64, packed, packed + 511), "weights and packed overlap");
}

/* One element alone shows where the layout has it. */
static void an_element_is_where_the_layout_says(void **unused) {
    (void)unused;
    uint8_t weights[16 * 32], packed[16 * 32];
    memset(weights, 0, sizeof weights);
    weights[9 * 32 + 43 / 2] = 0x70; /* q = 7 at an odd k */
    assert_int_equal(kiln_w4a16_repack(KILN_W4A16_SM80_V1, 16, 64, weights, packed), KILN_OK);
    for (size_t i = 0; i < sizeof packed;
         i++) /* k = 43 = 32 + 8 * 1 + 0 * 4 + 3: lane 4 * 1 + 1, word 2, half byte 7 */
        assert_int_equal(packed[i], i == 5 * 16 + 2 * 4 + 3 ? 0xf8 : 0x88);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(awq_is_taken),
        cmocka_unit_test(gptq_is_taken),
        cmocka_unit_test(gguf_is_taken),
        cmocka_unit_test(numbers_have_the_type_that_is_asked_for),
        cmocka_unit_test(layouts_go_there_and_back),
        cmocka_unit_test(an_element_is_where_the_layout_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
