/* Video instructions of PTX in random forms, against the steps of the ISA's text and what ptxas makes of them
 * (ptx_video.c), and values worked out by hand. */
#include "tests/sim/tests/ptx/ptx_harness.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { COUNT = 256, FORMS = 400 };

typedef __int128 wide;

static uint64_t seed;
static uint32_t a[COUNT], b[COUNT], c[COUNT], d[COUNT];

static uint32_t below(uint32_t limit) {
    return (uint32_t)(sim_random(&seed) % limit);
}

static void fill(uint32_t *array) {
    static const uint32_t edges[] = {0,          1,          0x7f,       0x80,       0xff,       0x7fff,
                                     0x8000,     0xffff,     0x7fffffff, 0x80000000, 0xffffffff, 0x80808080,
                                     0x7f7f7f7f, 0x80008000, 31,         32,         33};
    for (int i = 0; i < COUNT; i++)
        array[i] = below(3) ? (uint32_t)sim_random(&seed) : edges[below(sizeof edges / sizeof *edges)];
}

static void run(const char *code) {
    const harness_case test = {.code = code, .result_bits = 32, .source_bits = {32, 32, 32}, .seed = seed};
    const void *sources[HARNESS_SOURCES] = {a, b, c};
    harness_run(&test, COUNT, d, sources);
}

static void expect(const char *code, int i, uint32_t wanted) {
    if (d[i] != wanted) fail_msg("%s of 0x%x 0x%x 0x%x: 0x%x, must be 0x%x", code, a[i], b[i], c[i], d[i], wanted);
}

/* ---- The steps ---- */

typedef struct type {
    const char *name;
    bool is_signed;
} type;

static const type types[] = {{"u32", false}, {"s32", true}};

/* Part number at of words that follow one another, extended. */
static wide part(uint64_t words, uint32_t at, uint32_t bits, const type *as) {
    uint64_t value = words >> at * bits & ((1ull << bits) - 1);
    return as->is_signed && value >= 1ull << (bits - 1) ? (wide)value - ((wide)1 << bits) : (wide)value;
}

static wide limited(wide value, uint32_t bits, const type *as) {
    wide most = as->is_signed ? ((wide)1 << (bits - 1)) - 1 : ((wide)1 << bits) - 1,
         least = as->is_signed ? -1 - most : 0;
    return value > most ? most : value < least ? least : value;
}

static const char *const comparisons[] = {"eq", "ne", "lt", "le", "gt", "ge"};

static bool holds(const char *comparison, wide x, wide y) {
    if (comparison[0] == 'e') return x == y;
    if (comparison[0] == 'n') return x != y;
    return (x == y && comparison[1] == 'e') || (comparison[0] == 'l' ? x < y : x > y);
}

static wide made(const char *opcode, const char *extra, wide x, wide y) {
    if (strcmp(opcode, "vadd") == 0) return x + y;
    if (strcmp(opcode, "vsub") == 0) return x - y;
    if (strcmp(opcode, "vabsdiff") == 0) return x > y ? x - y : y - x;
    if (strcmp(opcode, "vmin") == 0) return x < y ? x : y;
    if (strcmp(opcode, "vmax") == 0) return x < y ? y : x;
    if (strcmp(opcode, "vavrg") == 0) return x + y >= 0 ? (x + y + 1) / 2 : (x + y - ((x + y) % 2 != 0)) / 2;
    if (strcmp(opcode, "vset") == 0) return holds(extra, x, y);
    uint32_t by = strcmp(extra, "wrap") == 0 ? (uint32_t)y % 32 : y > 32 ? 32 : (uint32_t)y;
    for (; by; by--) /* to the left, or to the right, where what goes below zero stays there */
        x = strcmp(opcode, "vshl") == 0 ? x * 2 : (x - (x < 0 && x % 2 != 0)) / 2;
    return x;
}

/* The lower bits with their sign. */
static wide cut(wide value, uint32_t bits) {
    wide low = value & (((wide)1 << bits) - 1);
    return low >> (bits - 1) ? low - ((wide)1 << bits) : low;
}

/* What .sat leaves of a value, where a word of 32 bits or a part of it is asked for. */
static wide held(const char *opcode, wide t, uint32_t bits, const type *as, bool unsigned_words) {
    bool left = strcmp(opcode, "vshl") == 0, right = strcmp(opcode, "vshr") == 0;
    if (left || right) return limited(left ? cut(t, 34) : t, 32, as);
    if (strcmp(opcode, "vadd") == 0 && unsigned_words) return t & 0xffffffff;
    return bits < 32 && t < 0 ? limited(0xffffffff, bits, as) : limited(t, bits, as);
}

/* ---- One part ---- */

static const struct {
    const char *name;
    uint32_t bits, at;
} selections[] = {{"", 32, 0},   {".b0", 8, 0},  {".b1", 8, 1}, {".b2", 8, 2},
                  {".b3", 8, 3}, {".h0", 16, 0}, {".h1", 16, 1}};
enum { SELECTIONS = sizeof selections / sizeof *selections };

static void one_part_is_selected_and_merged(void **state) {
    (void)state;
    static const char *const opcodes[] = {"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vset"};
    static const char *const seconds[] = {"", ".add", ".min", ".max"};
    for (int form = 0; form < FORMS; form++) {
        const char *opcode = opcodes[form % 8];
        bool shifts = form % 8 == 5 || form % 8 == 6, sets = form % 8 == 7, sat = !sets && below(2);
        const type *ta = &types[below(2)], *tb = &types[shifts ? 0 : below(2)], *td = sets ? ta : &types[below(2)];
        const char *extra = sets ? comparisons[below(6)] : shifts ? (below(2) ? "wrap" : "clamp") : "";
        uint32_t sa = below(SELECTIONS), sb = below(SELECTIONS), sd = below(2) ? 0 : below(SELECTIONS);
        uint32_t second = sd ? 0 : below(4);
        char code[160];
        snprintf(code, sizeof code, "%s%s%s.%s.%s%s%s%s%s %%d%s, %%a%s, %%b%s%s;", opcode, sets ? "" : ".",
                 sets ? "" : td->name, ta->name, tb->name, sat ? ".sat" : "", *extra ? "." : "", extra, seconds[second],
                 selections[sd].name, selections[sa].name, selections[sb].name, sd || second ? ", %c" : "");
        fill(a);
        fill(b);
        fill(c);
        run(code);
        for (int i = 0; i < COUNT; i++) {
            wide t = made(opcode, extra, part(a[i], selections[sa].at, selections[sa].bits, ta),
                          part(b[i], selections[sb].at, selections[sb].bits, tb));
            wide third = part(c[i], 0, 32, td);
            bool unsigned_words = !td->is_signed && !ta->is_signed && !tb->is_signed && !(sd + sa + sb);
            if (sat)
                t = held(opcode, t, selections[sd].bits, td, unsigned_words);
            else if (form % 8 < 2)
                t = cut(t, 32);
            if (second > 1 && !td->is_signed) t &= ~(uint64_t)0;
            if (second == 1) t += third;
            if (second == 2 && third < t) t = third;
            if (second == 3 && third > t) t = third;
            uint32_t wanted = (uint32_t)t, low = selections[sd].at * selections[sd].bits;
            for (uint32_t bit = 0; sd && bit < 32; bit++) {
                bool inside = bit >= low && bit < low + selections[sd].bits;
                uint32_t from = selections[sd].bits == 16 ? bit : bit - low; /* of .h1 too its own place */
                uint32_t is = inside ? (uint32_t)t >> from % 32 & 1 : c[i] >> bit & 1;
                wanted = (wanted & ~(1u << bit)) | is << bit;
            }
            expect(code, i, wanted);
        }
    }
}

static void products_are_added(void **state) {
    (void)state;
    static const char *const scales[] = {"", ".shr7", ".shr15"};
    for (int form = 0; form < FORMS / 2; form++) {
        const type *td = &types[below(2)], *ta = &types[below(2)], *tb = &types[below(2)];
        uint32_t sa = below(SELECTIONS), sb = below(SELECTIONS), sign = below(5), scale = below(3);
        bool sat = below(2), one = sign == 4; /* sign 1, 2: of a factor; 3: of c */
        bool is_signed = ta->is_signed || tb->is_signed || (sign && !one);
        char code[160];
        snprintf(code, sizeof code, "vmad.%s.%s.%s%s%s%s %%d, %s%%a%s, %s%%b%s, %s%%c;", td->name, ta->name, tb->name,
                 one ? ".po" : "", sat ? ".sat" : "", scales[scale], sign == 1 ? "-" : "", selections[sa].name,
                 sign == 2 ? "-" : "", selections[sb].name, sign == 3 ? "-" : "");
        fill(a);
        fill(b);
        fill(c);
        run(code);
        for (int i = 0; i < COUNT; i++) {
            wide product = part(a[i], selections[sa].at, selections[sa].bits, sa ? ta : &types[1]) *
                           part(b[i], selections[sb].at, selections[sb].bits, sb ? tb : &types[1]);
            wide third = part(c[i], 0, 32, &types[1]);
            if (sign == 1 || sign == 2) product = -product;
            if (sign == 3) third = -third;
            wide sum = product + third + one;
            if (scale && !is_signed) sum &= ~(uint64_t)0;
            for (uint32_t by = scale == 0 ? 0 : scale == 1 ? 7 : 15; by; by--)
                sum = (sum - (sum < 0 && sum % 2 != 0)) / 2;
            expect(code, i, (uint32_t)(sat ? limited(sum, 32, &types[is_signed]) : sum));
        }
    }
}

/* ---- Two halves and four bytes ---- */

static void parts_go_side_by_side(void **state) {
    (void)state;
    static const char *const opcodes[] = {"vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset"};
    for (int form = 0; form < FORMS; form++) {
        const char *opcode = opcodes[form % 7];
        uint32_t n = below(2) ? 4 : 2, bits = 32 / n, mask = below(2) ? (1u << n) - 1 : 1 + below((1u << n) - 1);
        bool sets = form % 7 == 6, adds = below(2), sat = !sets && !adds && below(2);
        const type *td = &types[sets ? 0 : below(2)], *ta = &types[below(2)], *tb = &types[below(2)];
        const char *extra = sets ? comparisons[below(6)] : "";
        char code[160], set[8] = "", sa[8] = "", sb[8] = "";
        uint32_t from_a[4], from_b[4], length = 0;
        bool plain = below(2);
        for (uint32_t i = n; i-- > 0;) { /* the highest first */
            from_a[i] = plain ? i : below(2 * n);
            from_b[i] = plain ? n + i : below(2 * n);
            sa[n - 1 - i] = (char)('0' + from_a[i]);
            sb[n - 1 - i] = (char)('0' + from_b[i]);
            if (mask >> i & 1) set[length++] = (char)('0' + i);
        }
        const char *dot = n == 2 ? ".h" : ".b";
        snprintf(code, sizeof code, "%s%u%s%s.%s.%s%s%s%s%s %%d%s%s, %%a%s%s, %%b%s%s, %%c;", opcode, (unsigned)n,
                 sets ? "" : ".", sets ? "" : td->name, ta->name, tb->name, sat ? ".sat" : "", *extra ? "." : "", extra,
                 adds ? ".add" : "", dot, set, plain ? "" : dot, plain ? "" : sa, plain ? "" : dot, plain ? "" : sb);
        fill(a);
        fill(b);
        fill(c);
        run(code);
        for (int i = 0; i < COUNT; i++) {
            uint64_t both = (uint64_t)b[i] << 32 | a[i];
            uint32_t sum = c[i], word = 0;
            for (uint32_t e = 0; e < n; e++) {
                wide t = made(opcode, extra, part(both, from_a[e], bits, ta), part(both, from_b[e], bits, tb));
                if (sat) t = limited(t, bits, td);
                bool chosen = mask >> e & 1;
                if (chosen) sum += (uint32_t)t;
                word |= (uint32_t)part(chosen ? (uint64_t)t : c[i] >> e * bits, 0, bits, &types[0]) << e * bits;
            }
            expect(code, i, adds ? sum : word);
        }
    }
}

/* ---- By hand ---- */

static void values_worked_out_by_hand(void **state) {
    (void)state;
    static const struct {
        const char *code;
        uint32_t a, b, c, wanted;
    } rows[] = {
        {"vadd.s32.s32.s32.sat %d, %a, %b;", 0x7fffffff, 1, 0, 0x7fffffff},
        {"vadd.u32.u32.u32.sat %d, %a, %b;", 0xffffffff, 1, 0, 0},
        {"vsub.u32.u32.u32.sat %d, %a, %b;", 1, 2, 0, 0},
        {"vadd.s32.s32.u32.sat %d.b1, %a.b3, %b.h0, %c;", 0x80000000, 300, 0x11223344, 0x11227f44},
        {"vabsdiff.u32.s32.s32.add %d, %a.b0, %b.b0, %c;", 0x80, 0x7f, 1000, 1255},
        {"vshr.s32.s32.u32.clamp %d, %a, %b;", 0x80000000, 40, 0, 0xffffffff},
        {"vshl.u32.u32.u32.wrap %d, %a.b1, %b;", 0x300, 33, 0, 6},
        {"vset.s32.u32.lt %d.h1, %a, %b, %c;", 0xffffffff, 0, 0xaaaabbbb, 0x0000bbbb},
        {"vsub.u32.u32.u32.sat %d.b0, %a.b0, %b.b0, %c;", 1, 2, 0x11223344, 0x112233ff},
        {"vsub.u32.u32.u32.max %d, %a, %b, %c;", 1, 2, 0xffffffff, 0xffffffff},
        {"vmad.u32.u32.u32.shr7 %d, %a, %b.b0, %c;", 0xffffffff, 1, 0, 0xffffffff},
        {"vmad.s32.s32.s32.sat.shr7 %d, %a.h1, -%b.h0, %c;", 0xffff0000, 256, 128, 3},
        {"vadd2.s32.s32.s32.sat %d, %a, %b, %c;", 0x7fff8000, 0x0001ffff, 0, 0x7fff8000},
        {"vavrg4.u32.u32.u32 %d, %a, %b, %c;", 0xff000102, 0xff030204, 0, 0xff020203},
        {"vabsdiff4.u32.u32.u32.add %d.b10, %a, %b, %c;", 0x09090105, 0x01010204, 100, 102},
        {"vadd2.u32.u32.u32 %d, %a.h00, %b.h33, %c;", 0x11112222, 0x33334444, 0, 0x55555555},
        {"vset4.u32.u32.ge %d.b30, %a, %b, %c;", 0x05050505, 0x05060504, 0x77777777, 0x01777701},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        a[0] = rows[i].a;
        b[0] = rows[i].b;
        c[0] = rows[i].c;
        run(rows[i].code);
        expect(rows[i].code, 0, rows[i].wanted);
    }
}

int main(void) {
    seed = harness_seed();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_part_is_selected_and_merged),
        cmocka_unit_test(products_are_added),
        cmocka_unit_test(parts_go_side_by_side),
        cmocka_unit_test(values_worked_out_by_hand),
    };
    return cmocka_run_group_tests_name("ptx_video", tests, NULL, NULL);
}
