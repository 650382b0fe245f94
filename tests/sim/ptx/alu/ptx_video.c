/* Video instructions, of parts of words: vadd vsub vabsdiff vmin vmax vshl vshr vmad vset of one part, and vadd2 vsub2
 * vavrg2 vabsdiff2 vmin2 vmax2 vset2 of two halves, and the same with 4 of four bytes. (PTX ISA, "Scalar Video
 * Instructions" and "SIMD Video Instructions", whose steps these are: select, operate, saturate, combine with c.)
 *
 * For GPUs since sm_80 ptxas writes other instructions in their place. With one part these depart from the ISA's steps,
 * and so does this, as the comments below say. The departures were read from what ptxas 13.0 writes for sm_90,
 * evaluated on 64 operands of each of 311 kinds: 103 depart. So did 103 kinds on an H200, where it was not kept which.
 * What it writes for sm_80, and as far as it was evaluated for sm_100 and sm_120, gives the same results. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

typedef __int128 wide;

typedef enum operation { ADD, SUB, AVERAGE, ABSDIFF, MIN, MAX, SHL, SHR, MAD, SET } operation;
typedef enum comparison { EQ, NE, LT, LE, GT, GE } comparison;
/* What becomes of a result t: it is d, or c + t, min(c, t), max(c, t), or stands in the chosen parts of c. */
typedef enum combination { ALONE, SUM, LEAST, MOST, MERGED } combination;

/* Parts of words: their bits, and for each element which part it is; of a result a set of them. */
typedef struct parts {
    uint32_t bits;
    uint8_t index[4];
    uint32_t mask;
} parts;

struct ptx_video {
    operation operation;
    comparison comparison;
    combination combination;
    uint32_t elements; /* 1, or 2 halves, or 4 bytes */
    parts d, a, b;
    bool signed_d, signed_a, signed_b, saturates, wraps;
    bool negated[3], plus_one; /* of vmad */
    uint32_t shift;
};

/* ---- Running ---- */

static wide extended(uint64_t value, uint32_t bits, bool is_signed) {
    value &= bits < 64 ? (1ull << bits) - 1 : ~0ull;
    return is_signed && value >> (bits - 1) & 1 ? (wide)value - ((wide)1 << bits) : (wide)value;
}

static wide clamped(wide value, uint32_t bits, bool is_signed) {
    wide most = ((wide)1 << (bits - is_signed)) - 1, least = is_signed ? -most - 1 : 0;
    return value < least ? least : value > most ? most : value;
}

static bool compared(comparison how, wide a, wide b) {
    switch (how) {
    case EQ:
        return a == b;
    case NE:
        return a != b;
    case LT:
        return a < b;
    case LE:
        return a <= b;
    case GT:
        return a > b;
    default:
        return a >= b;
    }
}

static wide operated(const ptx_video *x, wide a, wide b) {
    uint32_t amount = x->wraps ? (uint32_t)b & 31 : b > 32 ? 32 : (uint32_t)b;
    switch (x->operation) {
    case ADD:
        return a + b;
    case SUB:
        return a - b;
    case AVERAGE: /* rounded away from zero */
        return (a + b + (a + b >= 0)) >> 1;
    case ABSDIFF:
        return a < b ? b - a : a - b;
    case MIN:
        return a < b ? a : b;
    case MAX:
        return a > b ? a : b;
    case SHL:
        return a * ((wide)1 << amount);
    case SHR:
        return a >> amount;
    default:
        return compared(x->comparison, a, b);
    }
}

static uint32_t merged(const parts *d, uint32_t element, uint32_t c, wide t) {
    uint32_t ones = d->bits == 32 ? ~0u : (1u << d->bits) - 1, at = d->index[element] * d->bits;
    return (c & ~(ones << at)) | ((uint32_t)t & ones) << at;
}

/* Shifts saturate as if the result were a word, from 34 bits. A result below zero becomes the greatest part of a word.
 * The sum of unsigned words wraps around. */
static wide saturated(const ptx_video *x, wide t) {
    const bool shifts = x->operation == SHL || x->operation == SHR;
    const bool words = x->a.bits == 32 && x->b.bits == 32 && x->d.bits == 32;
    if (x->operation == SHL) t = extended((uint64_t)t, 34, true);
    if (x->operation == ADD && words && !x->signed_d && !x->signed_a && !x->signed_b) return (uint32_t)t;
    if (!shifts && x->d.bits < 32 && t < 0) t = (wide)1 << 32;
    return clamped(t, shifts ? 32 : x->d.bits, x->signed_d);
}

/* .min and .max with c: of unsigned results as words of 64 bits, where what is below zero is great. */
static uint32_t bounded(const ptx_video *x, wide t, uint32_t c) {
    const wide third = extended(c, 32, x->signed_d);
    const bool less = x->signed_d ? t < third : (uint64_t)t < c;
    return less == (x->combination == LEAST) ? (uint32_t)t : c;
}

/* One part. Sums and differences have 32 bits and a sign; .h1 gets the upper half of the result. */
static uint32_t one(const ptx_video *x, uint32_t first, uint32_t second, uint32_t c) {
    wide a = extended(first >> x->a.index[0] * x->a.bits, x->a.bits, x->signed_a);
    wide b = extended(second >> x->b.index[0] * x->b.bits, x->b.bits, x->signed_b);
    wide t = operated(x, a, b);
    if (x->saturates)
        t = saturated(x, t);
    else if (x->operation == ADD || x->operation == SUB)
        t = extended((uint64_t)t, 32, true);
    switch (x->combination) {
    case SUM:
        return (uint32_t)t + c;
    case LEAST:
    case MOST:
        return bounded(x, t, c);
    case MERGED:
        return merged(&x->d, 0, c, x->d.bits == 16 && x->d.index[0] ? t >> 16 : t);
    default:
        return (uint32_t)t;
    }
}

/* A factor of vmad: a word has a sign whatever its type. */
static wide factor(const parts *chosen, uint32_t word, bool is_signed) {
    return extended(word >> chosen->index[0] * chosen->bits, chosen->bits, is_signed || chosen->bits == 32);
}

/* a * b + c, where one of the product and c may be negated, scaled and saturated. c has a sign; an unsigned sum loses
 * its sign as it is scaled. */
static uint32_t mad(const ptx_video *x, uint32_t first, uint32_t second, uint32_t c) {
    wide a = factor(&x->a, first, x->signed_a), b = factor(&x->b, second, x->signed_b);
    bool minus = x->negated[0] != x->negated[1], is_signed = x->signed_a || x->signed_b || minus || x->negated[2];
    wide product = minus ? -a * b : a * b, third = extended(c, 32, true);
    wide sum = product + (x->negated[2] ? -third : third) + x->plus_one;
    if (x->shift) sum = extended((uint64_t)sum, 64, is_signed) >> x->shift;
    return (uint32_t)(x->saturates ? clamped(sum, 32, is_signed) : sum);
}

/* Several parts, each chosen from both words. */
static uint32_t several(const ptx_video *x, uint32_t first, uint32_t second, uint32_t c) {
    uint64_t both = (uint64_t)second << 32 | first;
    uint32_t bits = x->d.bits, d = c;
    for (uint32_t i = 0; i < x->elements; i++) {
        wide a = extended(both >> x->a.index[i] * bits, bits, x->signed_a);
        wide b = extended(both >> x->b.index[i] * bits, bits, x->signed_b);
        wide t = operated(x, a, b);
        if (x->saturates) t = clamped(t, bits, x->signed_d);
        if (x->d.mask >> i & 1) d = x->combination == SUM ? d + (uint32_t)t : merged(&x->d, i, d, t);
    }
    return d;
}

#define VIDEO(name, function)                                                                  \
    static void name(ptx_warp *warp, const ptx_op *op, uint32_t mask) {                        \
        uint32_t *d = PTX_ARRAY(uint32_t, op->d[0]);                                           \
        const uint32_t *a = PTX_ARRAY(uint32_t, op->s[0]), *b = PTX_ARRAY(uint32_t, op->s[1]), \
                       *c = PTX_ARRAY(uint32_t, op->s[2]);                                     \
        PTX_LANES(d[l] = function(op->video, a[l], b[l], c[l]));                               \
    }
VIDEO(run_one, one)
VIDEO(run_mad, mad)
VIDEO(run_several, several)

/* ---- Decoding ---- */

/* ".b2", ".h1" or nothing. */
static parts read_part(ptx_decoder *decoder, const ptx_operand *operand) {
    const char *text = operand->selector;
    if (!text) return (parts){.bits = 32, .index = {0}, .mask = 1};
    uint32_t bits = *text == 'b' ? 8 : 16, number = (uint32_t)(text[1] - '0');
    if ((*text != 'b' && *text != 'h') || !text[1] || text[2] || number >= 32 / bits)
        ptx_refuse(decoder, "it has no part .%s", text);
    return (parts){.bits = bits, .index = {(uint8_t)number}, .mask = 1};
}

/* ".h32", ".b7610": the highest element first; without it the word of the operand as it is. */
static parts read_parts(ptx_decoder *decoder, const ptx_operand *operand, uint32_t elements, uint32_t otherwise) {
    parts read = {.bits = 32 / elements};
    const char *text = operand->selector;
    for (uint32_t i = 0; i < elements; i++)
        read.index[i] = (uint8_t)(otherwise + i);
    if (!text) return read;
    if (*text != (elements == 2 ? 'h' : 'b') || strlen(text) != elements + 1)
        ptx_refuse(decoder, "it has no parts .%s", text);
    for (uint32_t i = 0; i < elements; i++) {
        uint32_t number = (uint32_t)(text[elements - i] - '0');
        if (number >= 2 * elements) ptx_refuse(decoder, "it has no parts .%s", text);
        read.index[i] = (uint8_t)number;
    }
    return read;
}

/* ".h10", ".b310": a set of parts, the highest first; without it all. */
static parts read_mask(ptx_decoder *decoder, const ptx_operand *operand, uint32_t elements) {
    parts read = {.bits = 32 / elements, .index = {0, 1, 2, 3}, .mask = (1u << elements) - 1};
    const char *text = operand->selector;
    if (!text) return read;
    bool known = *text == (elements == 2 ? 'h' : 'b') && text[1];
    uint32_t last = elements;
    read.mask = 0;
    for (const char *c = text + 1; known && *c; c++) {
        uint32_t number = (uint32_t)(*c - '0');
        known = number < last;
        last = number;
        if (known) read.mask |= 1u << number;
    }
    if (!known) ptx_refuse(decoder, "it has no mask .%s", text);
    return read;
}

/* .u32 or .s32. */
static bool take_sign(ptx_decoder *decoder, uint32_t index) {
    ptx_type type = ptx_type_at(decoder, index);
    if (type != PTX_u32 && type != PTX_s32) ptx_refuse(decoder, "it has no type %s", ptx_type_name(type));
    return type == PTX_s32;
}

/* The types, of which vset has none for its result: with one part it is compared with c as a is, else unsigned. */
static void take_types(ptx_decoder *decoder, ptx_video *x) {
    uint32_t first = x->operation == SET ? 0 : 1;
    ptx_expect_types(decoder, first + 2);
    x->signed_a = take_sign(decoder, first);
    x->signed_b = take_sign(decoder, first + 1);
    x->signed_d = first ? take_sign(decoder, 0) : x->elements == 1 && x->signed_a;
}

static void take_comparison(ptx_decoder *decoder, ptx_video *x) {
    static const int modifiers[] = {PTX_M_EQ, PTX_M_NE, PTX_M_LT, PTX_M_LE, PTX_M_GT, PTX_M_GE};
    if (x->operation != SET) return;
    int found = ptx_take_one(decoder, modifiers, 6);
    if (found < 0) ptx_refuse(decoder, "it has no comparison");
    x->comparison = (comparison)found;
}

static void take_shift(ptx_decoder *decoder, ptx_video *x) {
    static const int modifiers[] = {PTX_M_CLAMP, PTX_M_WRAP};
    int mode = ptx_take_one(decoder, modifiers, 2);
    if (mode < 0) ptx_refuse(decoder, "it needs .wrap or .clamp");
    if (x->signed_b) ptx_refuse(decoder, "its amount is u32");
    x->wraps = mode == 1;
}

/* The result, and three sources; without its parts and signs, which are read. */
static void decode_operands(ptx_decoder *decoder, uint32_t sources) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_op *op = decoder->op;
    for (uint32_t i = 0; i < sources + 1; i++) {
        ptx_operand plain = operands[i];
        plain.selector = NULL;
        if (i) plain.negated = false;
        if (i)
            op->s[i - 1] = ptx_source(decoder, &plain, PTX_u32);
        else
            op->d[0] = ptx_result(decoder, &plain, PTX_u32);
    }
    if (sources == 2) op->s[2] = op->s[1];
}

static void decode_mad(ptx_decoder *decoder, ptx_video *x) {
    static const int scales[] = {PTX_M_SHR7, PTX_M_SHR15};
    const ptx_operand *operands = decoder->statement->operands;
    ptx_expect_operands(decoder, 4, 4);
    int scale = ptx_take_one(decoder, scales, 2);
    x->shift = scale < 0 ? 0 : scale == 0 ? 7 : 15;
    x->plus_one = ptx_take(decoder, PTX_M_PO);
    for (int i = 0; i < 3; i++)
        x->negated[i] = operands[i + 1].negated;
    bool product = x->negated[0] != x->negated[1];
    if ((x->plus_one && (product || x->negated[2])) || (product && x->negated[2]))
        ptx_refuse(decoder, "of .po, a negated product and a negated summand it has one");
    if (operands[0].selector || operands[3].selector) ptx_refuse(decoder, "only its factors have parts");
    decoder->op->run = run_mad;
    decode_operands(decoder, 3);
}

static void decode_one(ptx_decoder *decoder, ptx_video *x) {
    static const int seconds[] = {PTX_M_ADD, PTX_M_MIN, PTX_M_MAX};
    const ptx_operand *operands = decoder->statement->operands;
    if (x->operation == SHL || x->operation == SHR) take_shift(decoder, x);
    x->a = read_part(decoder, &operands[1]);
    x->b = read_part(decoder, &operands[2]);
    if (x->operation == MAD) {
        decode_mad(decoder, x);
        return;
    }
    int second = ptx_take_one(decoder, seconds, 3);
    x->d = read_part(decoder, &operands[0]);
    bool merges = operands[0].selector;
    if (second >= 0 && merges) ptx_refuse(decoder, "a part of the result excludes .add, .min and .max");
    x->combination = merges ? MERGED : second < 0 ? ALONE : (combination)(SUM + second);
    ptx_expect_operands(decoder, x->combination == ALONE ? 3 : 4, 4); /* alone it has no use for c */
    uint32_t sources = decoder->statement->operand_count - 1;
    if (sources == 3 && operands[3].selector) ptx_refuse(decoder, "its last source has no parts");
    for (uint32_t i = 1; i <= sources; i++)
        if (operands[i].negated) ptx_refuse(decoder, "a negated operand");
    decoder->op->run = run_one;
    decode_operands(decoder, sources);
}

static void decode_several(ptx_decoder *decoder, ptx_video *x) {
    const ptx_operand *operands = decoder->statement->operands;
    ptx_expect_operands(decoder, 4, 4);
    if (ptx_take(decoder, PTX_M_ADD)) x->combination = SUM;
    if (x->saturates && x->combination == SUM) ptx_refuse(decoder, ".sat excludes .add");
    x->a = read_parts(decoder, &operands[1], x->elements, 0);
    x->b = read_parts(decoder, &operands[2], x->elements, x->elements);
    x->d = read_mask(decoder, &operands[0], x->elements);
    if (operands[3].selector) ptx_refuse(decoder, "its last source has no parts");
    for (uint32_t i = 1; i < 4; i++)
        if (operands[i].negated || operands[i].kind != PTX_OPERAND_REGISTER)
            ptx_refuse(decoder, "its sources are registers, and not negated");
    decoder->op->run = run_several;
    decode_operands(decoder, 3);
}

void ptx_decode_video(ptx_decoder *decoder) {
    static const struct {
        const char *opcode; /* without the number of elements */
        operation operation;
    } rows[] = {{"vadd", ADD}, {"vsub", SUB}, {"vavrg", AVERAGE}, {"vabsdiff", ABSDIFF}, {"vmin", MIN},
                {"vmax", MAX}, {"vshl", SHL}, {"vshr", SHR},      {"vmad", MAD},         {"vset", SET}};
    const char *opcode = decoder->statement->opcode;
    size_t length = strcspn(opcode, "24");
    ptx_video *x = ptx_arena_take(decoder->program->module->arena, sizeof *x);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strlen(rows[i].opcode) == length && memcmp(rows[i].opcode, opcode, length) == 0)
            x->operation = rows[i].operation;
    x->elements = opcode[length] ? (uint32_t)(opcode[length] - '0') : 1;
    decoder->op->video = x;
    take_types(decoder, x);
    take_comparison(decoder, x);
    if (x->operation != SET) x->saturates = ptx_take(decoder, PTX_M_SAT);
    if (x->elements == 1)
        decode_one(decoder, x);
    else
        decode_several(decoder, x);
}
