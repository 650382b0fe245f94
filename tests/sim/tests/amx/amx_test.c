/* AMX, simulated or the processor's where it has it: products against plain C and against what a processor was recorded
 * to compute of any bits, what a tile keeps and what is cleared, addressing, threads, and each thing that is refused.
 */
#include "kernels/arch/amx.h"
#include "loader/cpu/cpu_amx.h"
#include "tests/sim/amx/amx_sim.h"
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#if defined(__x86_64__)

static const char *refusal;
static sigjmp_buf back;
static uint32_t can; /* products, KILN__CPU_AMX_... */

static void on_refusal(const char *text) {
    refusal = text;
    siglongjmp(back, 1);
}

static void on_signal(int number) {
    (void)number;
    on_refusal(NULL);
}

/* Runs a statement that must be refused: with a text that has these words in it, by a processor with a signal. */
#define EXPECT_REFUSAL(words, ...)                                                                  \
    do {                                                                                            \
        if (sigsetjmp(back, 1) == 0) {                                                              \
            __VA_ARGS__;                                                                            \
            fail_msg("%s was not refused", #__VA_ARGS__);                                           \
        }                                                                                           \
        if (refusal && !strstr(refusal, words)) fail_msg("\"%s\" does not say %s", refusal, words); \
    } while (0)

/* Within a test, since cmocka has a handler of its own around each. */
static void begin(void) {
    can = amx_sim_enter();
    if (!can) skip();
    amx_sim_refused = on_refusal;
    if (amx_sim_can()) return;
    const struct sigaction to_test = {.sa_handler = on_signal};
    assert_int_equal(sigaction(SIGILL, &to_test, NULL), 0);
    assert_int_equal(sigaction(SIGSEGV, &to_test, NULL), 0);
}

static void end(void) {
    bool held;
    KILN_AMX_RELEASE();
    amx_sim_leave(&held);
    assert_false(held);
    amx_sim_refused = NULL;
}

static uint64_t state; /* of random numbers */

static uint32_t random_bits(void) {
    if (!state) state = (uint64_t)time(NULL), print_message("# seed %llu\n", (unsigned long long)state);
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static void fill(void *memory, size_t size) {
    uint8_t *bytes = memory;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)random_bits();
}

static void assert_zeros(const void *memory, size_t size) {
    const uint8_t *bytes = memory;
    for (size_t i = 0; i < size; i++)
        assert_int_equal(bytes[i], 0);
}

static kiln_amx_config whole(void) {
    kiln_amx_config config = {.palette = 1};
    for (int i = 0; i < 8; i++)
        config.rows[i] = 16, config.row_bytes[i] = 64;
    return config;
}

/* ---- Products ---- */

/* Tiles of sums [m, n], a [m, 4 k] and b [k, n] in lanes of 4 bytes. */
typedef struct product {
    uint8_t m, n, k;
    uint8_t sums[16][64], a[16][64], b[16][64];
} product;

static product random_product(void) {
    product p = {(uint8_t)(1 + random_bits() % 16),
                 (uint8_t)(1 + random_bits() % 16),
                 (uint8_t)(1 + random_bits() % 16),
                 {{0}},
                 {{0}},
                 {{0}}};
    return p;
}

static void load(const product *p) {
    kiln_amx_config config = {.palette = 1,
                              .rows = {p->m, p->m, p->k},
                              .row_bytes = {(uint16_t)(4 * p->n), (uint16_t)(4 * p->k), (uint16_t)(4 * p->n)}};
    KILN_AMX_CONFIGURE(&config);
    KILN_AMX_LOAD(0, p->sums, 64);
    KILN_AMX_LOAD(1, p->a, 64);
    KILN_AMX_LOAD(2, p->b, 64);
}

/* The tile as sixteen whole rows: it shows what lies beyond those that are configured. */
static void store(const product *p, uint8_t (*sums)[64]) {
    memset(sums, 0xa5, 16 * 64);
    KILN_AMX_STORE(0, sums, 64);
    for (int row = 0; row < 16; row++)
        for (int i = 0; i < 64; i++)
            if (row >= p->m || i >= 4 * p->n) assert_int_equal(sums[row][i], 0xa5);
}

static void test_integers(void **test) {
    (void)test;
    begin();
    for (int round = 0; round < 50; round++) {
        product p = random_product();
        fill(p.sums, sizeof p.sums);
        fill(p.a, sizeof p.a);
        fill(p.b, sizeof p.b);
        if (!round) memset(p.b, 0x80, sizeof p.b);
        uint8_t found[16][64];
        load(&p);
        KILN_AMX_DOT_INT8(0, 1, 2);
        store(&p, found);
        for (int row = 0; row < p.m; row++)
            for (int col = 0; col < p.n; col++) {
                int32_t start, sum;
                memcpy(&start, &p.sums[row][4 * col], 4);
                memcpy(&sum, &found[row][4 * col], 4);
                int64_t expected = start;
                for (int k = 0; k < 4 * p.k; k++)
                    expected += (int8_t)p.a[row][k] * (int8_t)p.b[k / 4][4 * col + k % 4];
                assert_int_equal((uint32_t)sum, (uint32_t)expected);
            }
    }
    end();
}

static float without_subnormals(float x) {
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

static float f32_of(const uint8_t *bytes, bool f16) {
    uint16_t bits;
    memcpy(&bits, bytes, 2);
    if (!f16) {
        uint32_t wide = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &wide, 4);
        return without_subnormals(value);
    }
    int exponent = bits >> 10 & 31;
    float value = exponent ? ldexpf((float)(1024 + (bits & 1023)), exponent - 25) : ldexpf((float)(bits & 1023), -24);
    return bits & 0x8000 ? -value : value;
}

/* A finite number: with small exponents among them, whose products are subnormal. */
static uint16_t random_number(bool f16) {
    uint16_t bits = (uint16_t)random_bits();
    if (f16) return (bits & 0x7c00) == 0x7c00 ? (uint16_t)(bits & ~0x4000) : bits;
    unsigned exponent = random_bits() % 2 ? 120 + random_bits() % 10 : 40 + random_bits() % 40;
    if (random_bits() % 16 == 0) exponent = 0;
    return (uint16_t)((bits & 0x807f) | exponent << 7);
}

static void test_floats(void **test) {
    (void)test;
    begin();
    for (int round = 0; round < 100; round++) {
        product p = random_product();
        const bool f16 = round % 2 && can & KILN__CPU_AMX_F16;
        for (int row = 0; row < 16; row++)
            for (int i = 0; i < 64; i += 4) {
                const uint16_t numbers[] = {random_number(f16), random_number(f16), random_number(f16),
                                            random_number(f16)};
                const float sum = round % 3 ? ldexpf((float)(int32_t)random_bits(), -30) : 0x1p-127f;
                memcpy(&p.a[row][i], numbers, 4);
                memcpy(&p.b[row][i], numbers + 2, 4);
                memcpy(&p.sums[row][i], &sum, 4);
            }
        uint8_t found[16][64];
        load(&p);
        if (f16)
            KILN_AMX_DOT_F16(0, 1, 2);
        else
            KILN_AMX_DOT_BF16(0, 1, 2);
        store(&p, found);
        for (int row = 0; row < p.m; row++)
            for (int col = 0; col < p.n; col++) {
                float start, sum, halves[2] = {0, 0};
                memcpy(&start, &p.sums[row][4 * col], 4);
                memcpy(&sum, &found[row][4 * col], 4);
                for (int k = 0; k < 2 * p.k; k++) {
                    float a = f32_of(&p.a[row][2 * k], f16), b = f32_of(&p.b[k / 2][4 * col + 2 * (k % 2)], f16);
                    halves[k % 2] = without_subnormals(fmaf(a, b, halves[k % 2]));
                }
                float both = without_subnormals(halves[0] + halves[1]);
                float expected = without_subnormals(without_subnormals(start) + both);
                assert_memory_equal(&sum, &expected, 4);
            }
    }
    end();
}

/* Products of any bits: infinities, subnormal numbers and those that are none. recorded.def has a hash of what an Intel
 * Xeon (family 6, model 167) computed of each, on 2026-11-26: int8 and bf16 in turn. */
static void test_recorded(void **test) {
    (void)test;
    static const uint64_t recorded[] = {
#define KILN_AMX_RECORDED(hash) hash,
#include "tests/sim/recorded/amx/recorded.def"
    };
    _Static_assert(sizeof recorded / sizeof *recorded == 400, "are all there");
    begin();
    state = 1;
    for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
        product p = random_product();
        fill(p.sums, sizeof p.sums);
        fill(p.a, sizeof p.a);
        fill(p.b, sizeof p.b);
        uint8_t found[16][64];
        load(&p);
        if (i % 2)
            KILN_AMX_DOT_BF16(0, 1, 2);
        else
            KILN_AMX_DOT_INT8(0, 1, 2);
        store(&p, found);
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
        for (int byte = 0; byte < 16 * 64; byte++)
            hash = (hash ^ found[byte / 64][byte % 64]) * 0x100000001b3u;
        if (hash != recorded[i])
            fail_msg("product %zu, %s: KILN_AMX_RECORDED(0x%016llx)", i, i % 2 ? "bf16" : "int8",
                     (unsigned long long)hash);
    }
    state = 0;
    end();
}

/* ---- Tiles ---- */

static void test_tiles_keep_and_clear(void **test) {
    (void)test;
    begin();
    uint8_t in[16][80], out[16][64];
    kiln_amx_config config = whole();
    fill(in, sizeof in);
    KILN_AMX_CONFIGURE(&config);
    KILN_AMX_LOAD(3, in, 80);
    KILN_AMX_STORE(3, out, 64);
    for (int row = 0; row < 16; row++)
        assert_memory_equal(out[row], in[row], 64);
    KILN_AMX_ZERO(3);
    KILN_AMX_STORE(3, out, 64);
    assert_zeros(out, sizeof out);
    KILN_AMX_LOAD(3, in, 80);
    KILN_AMX_CONFIGURE(&config); /* makes tiles 0 */
    KILN_AMX_STORE(3, out, 64);
    assert_zeros(out, sizeof out);
    end();
}

/* Bases and indices with and without a fourth bit, distances of both sizes, a scale, no index, and the stack. */
static void test_addressing(void **test) {
    (void)test;
    begin();
    static uint8_t in[64][64];
    static kiln_amx_config config;
    uint8_t out[16][64];
    fill(in, sizeof in);
    config = whole();
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
#define LOADED(row, step, text, base, stride)                        \
    do {                                                             \
        register const uint8_t *from __asm__(base) = in[0];          \
        register int64_t by __asm__(stride) = 64;                    \
        __asm__ volatile(text ::"r"(from), "r"(by) : "memory");      \
        KILN_AMX_STORE(1, out, 64);                                  \
        for (int i = 0; i < 16; i++)                                 \
            assert_memory_equal(out[i], in[(row) + i * (step)], 64); \
    } while (0)
    LOADED(0, 1, "tileloadd (%0,%1,1), %%tmm1", "rax", "rcx");
    LOADED(0, 1, "tileloadd (%0,%1,1), %%tmm1", "r13", "r12");
    LOADED(1, 1, "tileloadd 64(%0,%1,1), %%tmm1", "rbx", "r15");
    LOADED(2, 2, "tileloadd 128(%0,%1,2), %%tmm1", "r8", "rdx");
    LOADED(0, 0, "tileloadd (%0), %%tmm1", "rsi", "rdi");
    LOADED(1, 1, "tileloadd 64(%0,%1,1), %%tmm1", "rsi", "rdi");
#undef LOADED
    uint8_t on_stack[16 * 64];
    memcpy(on_stack, in, sizeof on_stack);
    KILN_AMX_LOAD(1, on_stack, 64);
    KILN_AMX_STORE(1, out, 64);
    assert_memory_equal(out, in, sizeof out);
    end();
}

/* Linux gives a thread the configuration of the one that made it; a simulated one begins without. */
static void *has_own_tiles(void *context) {
    const kiln_amx_config *config = context;
    if (amx_sim_can()) EXPECT_REFUSAL("not configured", KILN_AMX_ZERO(0));
    KILN_AMX_CONFIGURE(config);
    KILN_AMX_ZERO(0);
    KILN_AMX_RELEASE();
    return NULL;
}

static void test_tiles_are_a_threads(void **test) {
    (void)test;
    begin();
    kiln_amx_config config = whole();
    uint8_t in[16][64], out[16][64];
    fill(in, sizeof in);
    KILN_AMX_CONFIGURE(&config);
    KILN_AMX_LOAD(0, in, 64);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, has_own_tiles, &config), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    KILN_AMX_STORE(0, out, 64);
    assert_memory_equal(out, in, sizeof out);
    end();
}

/* ---- Refusals ---- */

static void test_configurations_refused(void **test) {
    (void)test;
    begin();
    kiln_amx_config config = whole();
    config.palette = 2;
    EXPECT_REFUSAL("palette", KILN_AMX_CONFIGURE(&config));
    config = whole(), config.rows[7] = 17;
    EXPECT_REFUSAL("16 rows", KILN_AMX_CONFIGURE(&config));
    config = whole(), config.row_bytes[0] = 65;
    EXPECT_REFUSAL("64 bytes", KILN_AMX_CONFIGURE(&config));
    config = whole(), config.rows[3] = 0;
    EXPECT_REFUSAL("rows without bytes", KILN_AMX_CONFIGURE(&config));
    config = whole(), config.reserved[13] = 1;
    EXPECT_REFUSAL("reserved", KILN_AMX_CONFIGURE(&config));
    config = whole(), config.rows[8] = 1;
    EXPECT_REFUSAL("reserved", KILN_AMX_CONFIGURE(&config));
    config = whole(), config.row_bytes[8] = 4;
    EXPECT_REFUSAL("reserved", KILN_AMX_CONFIGURE(&config));
    config = (kiln_amx_config){0};
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("not configured", KILN_AMX_ZERO(0));
    end();
}

static void test_tiles_refused(void **test) {
    (void)test;
    begin();
    uint8_t memory[64 * 16] = {0};
    KILN_AMX_RELEASE();
    EXPECT_REFUSAL("not configured", KILN_AMX_ZERO(0));
    EXPECT_REFUSAL("not configured", KILN_AMX_LOAD(0, memory, 64));
    EXPECT_REFUSAL("not configured", KILN_AMX_STORE(0, memory, 64));
    EXPECT_REFUSAL("not configured", KILN_AMX_DOT_INT8(0, 1, 2));
    kiln_amx_config config = whole();
    config.rows[5] = 0, config.row_bytes[5] = 0;
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("the tile is not configured", KILN_AMX_LOAD(5, memory, 64));
    config = whole(), config.start_row = 16;
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("start_row", KILN_AMX_LOAD(0, memory, 64));
    EXPECT_REFUSAL("start_row", KILN_AMX_DOT_BF16(0, 1, 2));
    end();
}

static void test_products_refused(void **test) {
    (void)test;
    begin();
    kiln_amx_config config = whole();
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("one tile", __asm__ volatile(".byte 0xc4, 0xe2, 0x6b, 0x5e, 0xc0" ::));
    EXPECT_REFUSAL("one tile", __asm__ volatile(".byte 0xc4, 0xe2, 0x7a, 0x5c, 0xc1" ::));
    EXPECT_REFUSAL("one tile", KILN_AMX_DOT_F16(0, 1, 1));
    config = whole(), config.rows[1] = 15;
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("rows of the first", KILN_AMX_DOT_BF16(0, 1, 2));
    config = whole(), config.row_bytes[2] = 60;
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("columns of the second", KILN_AMX_DOT_BF16(0, 1, 2));
    config = whole(), config.row_bytes[1] = 60;
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("same k", KILN_AMX_DOT_BF16(0, 1, 2));
    config = whole(), config.row_bytes[1] = 62;
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("multiple of 4", KILN_AMX_DOT_BF16(0, 1, 2));
    end();
}

/* Instructions by their bytes: those that are not simulated, and encodings that no processor takes. */
static void test_encodings_refused(void **test) {
    (void)test;
    if (!amx_sim_can()) skip();
    begin();
    uint8_t memory[64];
    kiln_amx_config config = whole();
    KILN_AMX_CONFIGURE(&config);
    EXPECT_REFUSAL("not simulated", __asm__ volatile("tdpbsud %%tmm2, %%tmm1, %%tmm0" ::));
    EXPECT_REFUSAL("not simulated", __asm__ volatile("sttilecfg %0" : "=m"(memory)));
    EXPECT_REFUSAL("not simulated", __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm0" ::"r"(memory), "r"(0LL)));
    EXPECT_REFUSAL("VEX.W", __asm__ volatile(".byte 0xc4, 0xe2, 0xeb, 0x5e, 0xc1" ::));
    EXPECT_REFUSAL("VEX.W or VEX.L", __asm__ volatile(".byte 0xc4, 0xe2, 0x6f, 0x5e, 0xc1" ::));
    EXPECT_REFUSAL("no such tile", __asm__ volatile(".byte 0xc4, 0x62, 0x6b, 0x5e, 0xc1" ::));
    EXPECT_REFUSAL("no such tile", __asm__ volatile(".byte 0xc4, 0xe2, 0x2b, 0x5e, 0xc1" ::));
    EXPECT_REFUSAL("no tile", __asm__ volatile(".byte 0xc4, 0xe2, 0x6b, 0x5e, 0x01" ::));
    EXPECT_REFUSAL("VEX.vvvv", __asm__ volatile(".byte 0xc4, 0xe2, 0x73, 0x49, 0xc0" ::));
    EXPECT_REFUSAL("SIB", __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x4b, 0x00" ::));
    EXPECT_REFUSAL("not memory", __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x4b, 0xc0" ::));
    end();
}

static void on_ud2(int number) {
    (void)number;
    on_refusal("the handler from before");
}

/* What is no instruction of AMX goes to the handler from before. */
static void test_other_instructions(void **test) {
    (void)test;
    if (!amx_sim_can()) skip();
    begin();
    bool held;
    amx_sim_leave(&held);
    struct sigaction old, mine = {.sa_handler = on_ud2};
    assert_int_equal(sigaction(SIGILL, &mine, &old), 0);
    amx_sim_enter();
    EXPECT_REFUSAL("from before", __asm__ volatile("ud2" ::));
    assert_int_equal(sigaction(SIGILL, &old, NULL), 0);
    amx_sim_enter();
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_recorded),
        cmocka_unit_test(test_tiles_keep_and_clear),
        cmocka_unit_test(test_addressing),
        cmocka_unit_test(test_tiles_are_a_threads),
        cmocka_unit_test(test_configurations_refused),
        cmocka_unit_test(test_tiles_refused),
        cmocka_unit_test(test_products_refused),
        cmocka_unit_test(test_encodings_refused),
        cmocka_unit_test(test_other_instructions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_only_x86_64(void **test) {
    (void)test;
    skip();
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_only_x86_64)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
