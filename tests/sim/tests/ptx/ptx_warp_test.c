/* Instructions among the lanes of a warp, by whole warps, by every second lane, and by four sets of lanes at once,
 * against what the ISA and the CUDA C++ Programming Guide ("Warp Shuffle Functions", "Warp Vote Functions", "Warp Match
 * Functions", "Warp Reduce Functions") say. */
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LANES = 32, WARPS = 512, COUNT = LANES * WARPS, ODD = (int)0xaaaaaaaa };

static uint64_t seed;
static uint32_t first[COUNT], second[COUNT], results[COUNT];

/* What a lane gets: the arrays begin at its warp. */
typedef uint32_t (*expectation)(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane,
                                uint32_t parameter);

typedef struct warp_row {
    const char *code; /* $m stands for the member mask */
    expectation expect;
    uint32_t parameter;
    const char *target;
} warp_row;

/* WHOLE: all lanes. HALF: the odd ones, and the others go around it. QUARTERS: lanes whose numbers are the same modulo
 * four, each set by a mask of its own. */
typedef enum lanes { WHOLE, HALF, QUARTERS } lanes;

static const struct {
    const char *begin, *mask;
} texts[] = {
    [WHOLE] = {"", "-1"},
    [HALF] = {"and.b32 %t7, %j, 1;\nsetp.eq.u32 %q, %t7, 0;\n@%q bra SKIP;\n", "0xaaaaaaaa"},
    [QUARTERS] = {"and.b32 %t6, %j, 3;\nshl.b32 %t6, 0x11111111, %t6;\n", "%t6"},
};

static uint32_t members_of(lanes who, uint32_t lane) {
    return who == WHOLE ? 0xffffffffu : who == HALF ? (uint32_t)ODD : 0x11111111u << lane % 4;
}

static void run_row(const warp_row *row, lanes who) {
    char code[1024], body[512];
    size_t length = 0;
    for (const char *c = row->code; *c; c++) {
        if (c[0] == '$' && c[1] == 'm') {
            length += (size_t)snprintf(body + length, sizeof body - length, "%s", texts[who].mask);
            c++;
        } else {
            body[length++] = *c;
        }
    }
    body[length] = 0;
    snprintf(code, sizeof code, "mov.u32 %%d, 77;\n%s%s\nSKIP:", texts[who].begin, body);
    harness_case test = {
        .target = row->target, .code = code, .result_bits = 32, .source_bits = {32, 32}, .seed = sim_random(&seed)};
    test.named = body;
    harness_run(&test, COUNT, results, (const void *[HARNESS_SOURCES]){first, second});
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t lane = i % LANES, warp = i - lane, members = members_of(who, lane);
        bool takes_part = members >> lane & 1;
        uint32_t wanted = takes_part ? row->expect(first + warp, second + warp, members, lane, row->parameter) : 77;
        if (results[i] != wanted)
            fail_msg("%s, lane %u, with 0x%x 0x%x: 0x%x, must be 0x%x", code, lane, first[i], second[i], results[i],
                     wanted);
    }
}

static void run_rows(const warp_row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        run_row(&rows[i], WHOLE);
        run_row(&rows[i], HALF);
        run_row(&rows[i], QUARTERS);
    }
}

/* Warps of one value, of few, and of any. */
static void fill(void) {
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t kind = i / LANES % 4, word = (uint32_t)sim_random(&seed);
        first[i] = kind == 0 ? 5 : kind == 1 ? 4 + word % 2 : kind == 2 ? word % 4 * 0x40000000u : word;
        second[i] = (uint32_t)sim_random(&seed) % LANES;
    }
}

/* ---- shfl ---- */

/* The parameter is the width of a segment; a lane that reads beyond it keeps its own value. */
static uint32_t expect_up(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t width) {
    (void)members;
    return lane % width >= b[lane] ? a[lane - b[lane]] : a[lane];
}

static uint32_t expect_down(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t width) {
    (void)members;
    return lane % width + b[lane] < width ? a[lane + b[lane]] : a[lane];
}

/* Earlier segments may be read, later ones may not. */
static uint32_t expect_xor(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t width) {
    (void)members;
    uint32_t from = lane ^ b[lane];
    return from / width <= lane / width ? a[from] : a[lane];
}

static uint32_t expect_index(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t width) {
    (void)members;
    return a[lane / width * width + b[lane] % width];
}

/* The predicate says that the source was within bounds. */
static uint32_t expect_within(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t width) {
    (void)a, (void)members;
    return lane % width + b[lane] < width;
}

static void shuffles(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        expectation expect;
        uint32_t clamp;
    } modes[] = {{"up", expect_up, 0}, {"down", expect_down, 31}, {"bfly", expect_xor, 31}, {"idx", expect_index, 31}};
    fill();
    for (uint32_t width = 2; width <= LANES; width *= 2) {
        for (int m = 0; m < 4; m++) {
            char code[128];
            snprintf(code, sizeof code, "shfl.sync.%s.b32 %%d, %%a, %%b, %u, $m;", modes[m].mode,
                     (LANES - width) << 8 | modes[m].clamp);
            run_row(&(warp_row){.code = code, .expect = modes[m].expect, .parameter = width}, WHOLE);
        }
        char code[128];
        snprintf(code, sizeof code, "shfl.sync.down.b32 %%t0|%%p, %%a, %%b, %u, $m;\nselp.u32 %%d, 1, 0, %%p;",
                 (LANES - width) << 8 | 31);
        run_row(&(warp_row){.code = code, .expect = expect_within, .parameter = width}, WHOLE);
    }
}

/* ---- vote, activemask ---- */

enum { ALL, ANY, UNIFORM, BALLOT };

static uint32_t expect_vote(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t mode) {
    (void)b, (void)lane;
    uint32_t ballot = 0;
    for (uint32_t l = 0; l < LANES; l++)
        ballot |= (a[l] & members >> l & 1) << l;
    bool all = ballot == members, none = ballot == 0;
    return mode == BALLOT ? ballot : mode == ALL ? all : mode == ANY ? !none : all || none;
}

static uint32_t expect_members(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t unused) {
    (void)a, (void)b, (void)lane, (void)unused;
    return members;
}

#define ODD_A "and.b32 %t0, %a, 1;\nsetp.ne.u32 %p, %t0, 0;\n"

static void votes(void **state) {
    (void)state;
    static const warp_row rows[] = {
        {ODD_A "vote.sync.all.pred %p, %p, $m;\nselp.u32 %d, 1, 0, %p;", expect_vote, ALL, NULL},
        {ODD_A "vote.sync.any.pred %p, %p, $m;\nselp.u32 %d, 1, 0, %p;", expect_vote, ANY, NULL},
        {ODD_A "vote.sync.uni.pred %p, %p, $m;\nselp.u32 %d, 1, 0, %p;", expect_vote, UNIFORM, NULL},
        {ODD_A "vote.sync.ballot.b32 %d, %p, $m;", expect_vote, BALLOT, NULL},
        {ODD_A "not.pred %p, %p;\nvote.sync.ballot.b32 %d, !%p, $m;", expect_vote, BALLOT, NULL},
    };
    fill();
    /* Which lanes come along with a quarter is left to chance. */
    const warp_row active = {"bar.warp.sync $m;\nactivemask.b32 %d;", expect_members, 0, NULL};
    run_row(&active, WHOLE);
    run_row(&active, HALF);
    run_rows(rows, sizeof rows / sizeof *rows);
}

/* ---- match ---- */

static uint32_t expect_match(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t all) {
    (void)b;
    uint32_t same = 0;
    for (uint32_t l = 0; l < LANES; l++)
        same |= (uint32_t)(a[l] == a[lane] && members >> l & 1) << l;
    return !all || same == members ? same : 0;
}

static uint32_t expect_matched(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t all) {
    return expect_match(a, b, members, lane, all) != 0;
}

static void matches(void **state) {
    (void)state;
    static const warp_row rows[] = {
        {"match.any.sync.b32 %d, %a, $m;", expect_match, false, NULL},
        {"match.all.sync.b32 %d, %a, $m;", expect_match, true, NULL},
        {"match.all.sync.b32 %t0|%p, %a, $m;\nselp.u32 %d, 1, 0, %p;", expect_matched, true, NULL},
        {"mov.b64 %x0, {77, %a};\nmatch.any.sync.b64 %d, %x0, $m;", expect_match, false, NULL},
        {"mov.b64 %x0, {%a, 77};\nmatch.all.sync.b64 %d|%p, %x0, $m;", expect_match, true, NULL},
    };
    fill();
    run_rows(rows, sizeof rows / sizeof *rows);
}

/* ---- redux ---- */

enum { ADD, MIN, MAX, SIGNED_MIN, SIGNED_MAX, AND, OR, XOR };

static uint32_t expect_reduction(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t mode) {
    (void)b, (void)lane;
    uint64_t sum = 0;
    uint32_t least = ~0u, greatest = 0, every = ~0u, some = 0, parity = 0;
    int32_t signed_least = INT32_MAX, signed_greatest = INT32_MIN;
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(members >> l & 1)) continue;
        sum += a[l];
        if (a[l] < least) least = a[l];
        if (a[l] > greatest) greatest = a[l];
        if ((int32_t)a[l] < signed_least) signed_least = (int32_t)a[l];
        if ((int32_t)a[l] > signed_greatest) signed_greatest = (int32_t)a[l];
        every &= a[l];
        some |= a[l];
        parity ^= a[l];
    }
    const uint32_t values[] = {(uint32_t)sum, least, greatest, (uint32_t)signed_least, (uint32_t)signed_greatest,
                               every,         some,  parity};
    return values[mode];
}

static void reductions(void **state) {
    (void)state;
    static const warp_row rows[] = {
        {"redux.sync.add.u32 %d, %a, $m;", expect_reduction, ADD, NULL},
        {"redux.sync.add.s32 %d, %a, $m;", expect_reduction, ADD, NULL},
        {"redux.sync.min.u32 %d, %a, $m;", expect_reduction, MIN, NULL},
        {"redux.sync.max.u32 %d, %a, $m;", expect_reduction, MAX, NULL},
        {"redux.sync.min.s32 %d, %a, $m;", expect_reduction, SIGNED_MIN, NULL},
        {"redux.sync.max.s32 %d, %a, $m;", expect_reduction, SIGNED_MAX, NULL},
        {"redux.sync.and.b32 %d, %a, $m;", expect_reduction, AND, NULL},
        {"redux.sync.or.b32 %d, %a, $m;", expect_reduction, OR, NULL},
        {"redux.sync.xor.b32 %d, %a, $m;", expect_reduction, XOR, NULL},
    };
    fill();
    run_rows(rows, sizeof rows / sizeof *rows);
}

enum { LARGEST = 1, PROPAGATES = 2, MAGNITUDES = 4 };

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t expect_extreme(const uint32_t *a, const uint32_t *b, uint32_t members, uint32_t lane, uint32_t mode) {
    (void)b, (void)lane;
    uint32_t best = 0x7fffffff;
    for (uint32_t l = 0; l < LANES; l++) {
        if (!(members >> l & 1)) continue;
        uint32_t bits = mode & MAGNITUDES ? a[l] & 0x7fffffff : a[l];
        float value = float_of(bits), present = float_of(best);
        if (isnan(value) && mode & PROPAGATES) return 0x7fffffff;
        if (isnan(value)) continue;
        bool zeros = value == 0 && present == 0; /* -0 comes before +0 */
        bool better = zeros            ? (signbit(value) != 0) != (mode & LARGEST)
                      : mode & LARGEST ? value > present
                                       : value < present;
        if (isnan(present) || better) best = bits;
    }
    return best;
}

static void reductions_of_f32(void **state) {
    (void)state;
    static const uint32_t edges[] = {0, 0x80000000, 0x7fc00000, 0xffc00001, 0x7f800000, 0xff800000, 1, 0x80000001};
    fill();
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t kind = i / LANES % 4, word = (uint32_t)sim_random(&seed);
        if (kind == 0) first[i] = edges[word % 2];
        if (kind == 1) first[i] = edges[2 + word % 2];
        if (kind == 2) first[i] = edges[word % 8];
        if (kind == 3 && isnan(float_of(first[i]))) first[i] = word & 0x3fffffff;
    }
    for (uint32_t mode = 0; mode < 8; mode++) {
        char code[96];
        snprintf(code, sizeof code, "redux.sync.%s%s%s.f32 %%d, %%a, $m;", mode & LARGEST ? "max" : "min",
                 mode & MAGNITUDES ? ".abs" : "", mode & PROPAGATES ? ".NaN" : "");
        const warp_row rows[] = {{code, expect_extreme, mode, "sm_100a"}};
        run_rows(rows, 1);
    }
}

/* ---- elect ---- */

/* One lane of the members; the seed decides which, and all are told of it. */
static void elections(void **state) {
    (void)state;
    uint32_t chosen = 0;
    for (int half = 0; half < 2; half++) {
        char code[512];
        snprintf(code, sizeof code,
                 "mov.u32 %%d, 0;\nand.b32 %%t7, %%j, 1;\nsetp.eq.u32 %%q, %%t7, 0;\n%s"
                 "elect.sync %%t0|%%p, %s;\nselp.u32 %%t1, 256, 0, %%p;\nor.b32 %%d, %%t0, %%t1;\nSKIP:",
                 half ? "@%q bra SKIP;\n" : "", half ? "0xaaaaaaaa" : "-1");
        harness_case test = {.code = code, .result_bits = 32, .seed = sim_random(&seed), .open = true};
        harness_run(&test, COUNT, results, (const void *[HARNESS_SOURCES]){NULL});
        for (uint32_t warp = 0; warp < COUNT; warp += LANES) {
            uint32_t leader = results[warp + 1] & 255;
            assert_true(leader < LANES && (!half || leader % 2));
            chosen |= 1u << leader;
            for (uint32_t l = (uint32_t)half; l < LANES; l += 1 + (uint32_t)half)
                assert_int_equal(results[warp + l], leader | (l == leader ? 256 : 0));
        }
    }
    assert_int_equal(chosen, 0xffffffff);
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shuffles),          cmocka_unit_test(votes),
        cmocka_unit_test(matches),           cmocka_unit_test(reductions),
        cmocka_unit_test(reductions_of_f32), cmocka_unit_test(elections),
    };
    return cmocka_run_group_tests_name("ptx_warp", tests, NULL, NULL);
}
