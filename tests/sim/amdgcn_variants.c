#include "tests/sim/amdgcn_variants.h"
#include "tests/sim/amdgcn/amd_wave.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t draw(uint64_t *random, uint32_t limit) {
    return (uint32_t)((sim_random(random) >> 16) % limit);
}

static bool toss(uint64_t *random) {
    return draw(random, 2);
}

/* ---- Values ---- */

static const ref_format *format_of(variant_type type) {
    return type.bits == 16 ? F16 : type.bits == 64 ? F64 : F32;
}

static uint64_t draw_integer(int bits, uint64_t *random) {
    uint64_t value = sim_random(random);
    switch (draw(random, 4)) {
    case 0:
        return draw(random, 70);
    case 1:
        return ~(uint64_t)draw(random, 70);
    case 2:
        return (1ull << (bits - 1)) + draw(random, 5) - 2;
    default:
        return value;
    }
}

static uint64_t draw_float(const ref_format *f, uint64_t *random) {
    uint64_t sign = toss(random) ? ref_sign(f) : 0, infinity = ref_infinity(f), normal = 1ull << f->mantissa;
    uint64_t one = ((1ull << (f->exponent - 1)) - 1) << f->mantissa, any = sim_random(random);
    const uint64_t edges[] = {0,
                              1,
                              normal - 1,
                              normal,
                              normal + 1,
                              one,
                              one + 1,
                              one - 1,
                              one + normal,
                              one / 2,
                              infinity - 1,
                              infinity,
                              infinity | ref_quiet(f) | (any & (normal / 4 - 1)),
                              infinity | 1 | (any & (normal / 4 - 1)),
                              any % normal};
    if (toss(random)) return sign | edges[draw(random, sizeof edges / sizeof *edges)];
    /* Of moderate size, so that sums and products do not all overflow. */
    if (toss(random)) return sign | (one + ((uint64_t)draw(random, 24) - 12) * normal + any % normal);
    return any & (ref_sign(f) | (ref_sign(f) - 1));
}

uint64_t draw_value(variant_type type, uint64_t *random) {
    bool real = type.letter == 'f' || type.letter == 'm';
    return real ? draw_float(format_of(type), random) : draw_integer(type.bits, random);
}

static void fill(const variant *v, int i, uint32_t *low, uint32_t *high, uint64_t *random) {
    variant_type type = v->type[1 + i];
    if (type.letter == 'x') { /* an f32, or two halves */
        static const variant_type parts[] = {{'f', 32}, {'f', 16}};
        type = parts[v->half_high[i]];
    }
    uint64_t value = draw_value(type, random);
    if (type.bits == 16) value = (value & 0xffff) | draw_value(type, random) << 16;
    if (type.bits == 32 && v->row->flags & ROW_PACKED) value = (uint32_t)value | draw_value(type, random) << 32;
    *low = (uint32_t)value;
    *high = (uint32_t)(value >> 32);
}

void variant_fill(const variant *v, amdgcn_registers *registers, uint64_t *random) {
    for (int i = 0; i < v->sources; i++) {
        uint32_t *low = registers->v[SOURCE + 2 * i], *high = registers->v[SOURCE + 2 * i + 1];
        if (i == 2 && v->row->flags & ROW_ACCUMULATES) {
            low = registers->v[RESULT];
            high = registers->v[RESULT + 1];
        }
        for (uint32_t l = 0; l < AMD_LANES; l++)
            fill(v, i, &low[l], &high[l], random);
    }
    fill(v, 0, &registers->s[SCALAR_SOURCE], &registers->s[SCALAR_SOURCE + 1], random);
    static const int masks[] = {MASK_IN, AMD_VCC};
    for (int i = 0; i < 4; i++)
        registers->s[masks[i / 2] + i % 2] = (uint32_t)sim_random(random);
}

/* ---- Text ---- */

typedef enum dpp_kind {
    QUAD_PERM,
    ROW_SHL,
    ROW_SHR,
    ROW_ROR,
    WAVE_SHL,
    WAVE_ROL,
    WAVE_SHR,
    WAVE_ROR,
    ROW_MIRROR,
    ROW_HALF_MIRROR,
    ROW_BCAST_15,
    ROW_BCAST_31,
    ROW_NEWBCAST,
    ROW_SHARE,
    ROW_XMASK,
    DPP_8,
    DPP_KINDS
} dpp_kind;

static void types_read(variant *v, const amdgcn_row *row) {
    v->row = row;
    v->sources = -1;
    for (const char *at = row->types; *at; at += strspn(at, " ")) {
        bool mix = !strncmp(at, "mix", 3);
        v->type[++v->sources] = (variant_type){mix ? 'x' : *at, mix ? 32 : (int)strtol(at + 1, NULL, 10)};
        at += strcspn(at, " ");
    }
}

static bool has_signs(variant_type type) {
    return type.letter == 'f' || type.letter == 'm' || type.letter == 'x';
}

/* Where the encoding has a mask as a result it has no room for absolute values. */
static void draw_signs(variant *v, uint64_t *random) {
    bool absolute = !(v->row->flags & (ROW_PACKED | ROW_MASK_OUT));
    for (int i = 0; i < v->sources; i++) {
        if (!has_signs(v->type[1 + i]) || (i == 2 && v->row->flags & ROW_ACCUMULATES)) continue;
        v->negate[i] = toss(random);
        v->absolute[i] = absolute && toss(random);
        v->negate_high[i] = v->row->flags & ROW_PACKED && toss(random);
    }
}

/* False if the row has no half to choose. */
static bool draw_halves(variant *v, uint64_t *random) {
    bool packed = v->row->flags & ROW_PACKED, any = packed;
    if (v->row->flags & ROW_ACCUMULATES) return false; /* which half is added to is not documented */
    for (int i = 0; i < v->sources; i++) {
        bool mix = v->type[1 + i].letter == 'x';
        if (!packed && !mix && v->type[1 + i].bits != 16) continue;
        any = true;
        v->half[i] = toss(random);
        v->half_high[i] = toss(random);
    }
    bool free_result = v->type[0].bits == 16 && !packed && !(v->row->flags & (ROW_KEEPS | ROW_UPPER));
    v->half[ROW_SOURCES] = free_result && toss(random);
    return any || free_result;
}

static void draw_dpp(variant *v, uint64_t *random) {
    v->dpp = (int)draw(random, DPP_KINDS);
    v->dpp_argument = v->dpp == DPP_8       ? draw(random, 1 << 24)
                      : v->dpp == QUAD_PERM ? draw(random, 256)
                                            : draw(random, 15) + (v->dpp <= ROW_ROR);
    v->bound_control = toss(random);
    v->row_mask = toss(random) ? 15 : draw(random, 16);
    v->bank_mask = toss(random) ? 15 : draw(random, 16);
    v->fetch_inactive = draw(random, 3) == 0;
}

static void draw_sdwa(variant *v, uint64_t *random) {
    v->result_select = (int)draw(random, 7);
    v->unused = v->result_select ? (int)draw(random, 3) : 0;
    for (int i = 0; i < 2; i++) {
        bool integer = v->type[1 + i].letter == 'u' || v->type[1 + i].letter == 'i';
        v->select[i] = (int)draw(random, 7);
        v->extend[i] = integer && i < v->sources && toss(random);
    }
}

/* Any source may be a constant. An integer of 16 bits has no 0.5, but a pair of them has: the bits of an f32. */
enum { CONSTANT_NEGATIVE, CONSTANT_POSITIVE, CONSTANT_LITERAL, CONSTANT_HALF, CONSTANT_MINUS_FOUR };
static const uint32_t CONSTANT_BITS = 0x98765432;

/* Sources that are written. */
static int places_of(const variant *v) {
    return v->sources - !!(v->row->flags & ROW_ACCUMULATES);
}

static bool is_pair_of_integers(const variant *v, variant_type type) {
    return v->row->flags & ROW_PACKED && !has_signs(type);
}

static int constants_of(const variant *v, int at) {
    variant_type type = v->type[1 + at];
    return has_signs(type) || type.bits > 16 || is_pair_of_integers(v, type) ? VARIANT_CONSTANTS : CONSTANT_HALF;
}

static void draw_constant(variant *v, uint64_t *random) {
    v->constant_at = (int)draw(random, (uint32_t)places_of(v));
    v->constant = (int)draw(random, (uint32_t)constants_of(v, v->constant_at));
}

typedef struct writer {
    char *text;
    size_t size, used;
} writer;

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(writer *w, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    w->used += (size_t)vsnprintf(w->text + w->used, w->size - w->used, format, arguments);
    va_end(arguments);
}

static void put_registers(writer *w, char file, int first, int count) {
    if (count == 1)
        put(w, "%c%d", file, first);
    else
        put(w, "%c[%d:%d]", file, first, first + count - 1);
}

static void put_mask(writer *w, const variant *v, int first, bool wave64) {
    if (v->in_vcc)
        put(w, wave64 ? "vcc" : "vcc_lo");
    else
        put_registers(w, 's', first, wave64 ? 2 : 1);
}

static int words_of(const variant *v, int operand) {
    int wide = v->type[operand].bits == 32 && v->row->flags & ROW_PACKED;
    return v->type[operand].bits == 64 || wide ? 2 : 1;
}

static void put_constant(writer *w, const variant *v) {
    static const char *const names[] = {[CONSTANT_NEGATIVE] = "-7",
                                        [CONSTANT_POSITIVE] = "37",
                                        [CONSTANT_HALF] = "0.5",
                                        [CONSTANT_MINUS_FOUR] = "-4.0"};
    bool half = v->type[1 + v->constant_at].bits == 16 && !(v->row->flags & ROW_PACKED);
    if (v->constant == CONSTANT_LITERAL)
        put(w, "0x%x", half ? CONSTANT_BITS & 0xffff : CONSTANT_BITS);
    else
        put(w, "%s", names[v->constant]);
}

static void put_source(writer *w, const variant *v, int i) {
    bool packed = v->row->flags & ROW_PACKED;
    if (v->kind == VARIANT_SDWA && v->extend[i]) put(w, "sext(");
    if (v->negate[i] && !packed) put(w, "-");
    if (v->absolute[i]) put(w, "|");
    if (i == v->constant_at && v->kind == VARIANT_CONSTANT)
        put_constant(w, v);
    else if (i == 0 && v->kind == VARIANT_SCALAR)
        put_registers(w, 's', SCALAR_SOURCE, words_of(v, 1));
    else if ((i == 1 && v->row->flags & ROW_LITERAL_B) || (i == 2 && v->row->flags & ROW_LITERAL_C))
        put(w, "0x%x", v->type[1 + i].bits == 16 ? VARIANT_LITERAL & 0xffff : VARIANT_LITERAL);
    else
        put_registers(w, 'v', SOURCE + 2 * i, words_of(v, 1 + i));
    if (v->absolute[i]) put(w, "|");
    if (v->kind == VARIANT_SDWA && v->extend[i]) put(w, ")");
}

static void put_bits(writer *w, const char *name, const bool *bits, int count) {
    put(w, " %s:[", name);
    for (int i = 0; i < count; i++)
        put(w, "%s%d", i ? "," : "", bits[i]);
    put(w, "]");
}

static void put_halves(writer *w, const variant *v) {
    bool packed = v->row->flags & ROW_PACKED, mix = v->type[1].letter == 'x';
    bool bits[ROW_SOURCES + 1];
    memcpy(bits, v->half, sizeof bits);
    bits[v->sources] = v->half[ROW_SOURCES];
    put_bits(w, "op_sel", bits, v->sources + !(packed || mix || v->row->flags & ROW_COMPARE));
    if (packed || mix) put_bits(w, "op_sel_hi", v->half_high, v->sources);
}

static void put_dpp(writer *w, const variant *v) {
    static const char *const names[] = {
        "quad_perm",  "row_shl",         "row_shr",   "row_ror",   "wave_shl",     "wave_rol",  "wave_shr",  "wave_ror",
        "row_mirror", "row_half_mirror", "row_bcast", "row_bcast", "row_newbcast", "row_share", "row_xmask", "dpp8"};
    unsigned argument = v->dpp_argument;
    put(w, " %s", names[v->dpp]);
    if (v->dpp == QUAD_PERM) {
        put(w, ":[%u,%u,%u,%u]", argument & 3, argument >> 2 & 3, argument >> 4 & 3, argument >> 6 & 3);
    } else if (v->dpp == DPP_8) {
        for (int i = 0; i < 8; i++)
            put(w, "%s%u", i ? "," : ":[", argument >> 3 * i & 7);
        put(w, "]");
    } else if (v->dpp == ROW_BCAST_15 || v->dpp == ROW_BCAST_31) {
        put(w, ":%d", v->dpp == ROW_BCAST_15 ? 15 : 31);
    } else if (v->dpp >= WAVE_SHL && v->dpp <= WAVE_ROR) {
        put(w, ":1");
    } else if (v->dpp != ROW_MIRROR && v->dpp != ROW_HALF_MIRROR) {
        put(w, ":%u", argument);
    }
    if (v->dpp != DPP_8) {
        put(w, " row_mask:0x%x bank_mask:0x%x", v->row_mask, v->bank_mask);
        if (v->bound_control) put(w, " bound_ctrl:1");
    }
    if (v->fetch_inactive) put(w, " fi:1");
}

static void put_sdwa(writer *w, const variant *v) {
    static const char *const names[] = {"DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1"};
    static const char *const unused[] = {"UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"};
    if (!(v->row->flags & ROW_COMPARE)) put(w, " dst_sel:%s dst_unused:%s", names[v->result_select], unused[v->unused]);
    put(w, " src0_sel:%s", names[v->select[0]]);
    if (v->sources > 1) put(w, " src1_sel:%s", names[v->select[1]]);
}

static void write_text(variant *v, bool wave64) {
    static const char *const suffixes[] = {
        [VARIANT_E32] = "_e32", [VARIANT_DPP] = "_dpp", [VARIANT_E64_DPP] = "_e64_dpp", [VARIANT_SDWA] = "_sdwa",
        [VARIANT_PLAIN] = "",   [VARIANT_SCALAR] = "",  [VARIANT_CONSTANT] = ""};
    writer w = {.text = v->text, .size = sizeof v->text};
    bool packed = v->row->flags & ROW_PACKED || v->type[1].letter == 'x';
    const char *suffix = packed ? "" : suffixes[v->kind] ? suffixes[v->kind] : "_e64";
    put(&w, "%s%s ", v->row->mnemonic, suffix);
    if (!(v->row->flags & ROW_COMPARE)) put_registers(&w, 'v', RESULT, words_of(v, 0));
    if (v->row->flags & ROW_MASK_OUT) put(&w, ", ");
    if (v->row->flags & (ROW_MASK_OUT | ROW_COMPARE) && !v->maskless) put_mask(&w, v, MASK_OUT, wave64);
    for (int i = 0; i < v->sources - !!(v->row->flags & ROW_ACCUMULATES); i++) {
        if (i || !v->maskless) put(&w, ", ");
        put_source(&w, v, i);
    }
    if (v->row->flags & ROW_MASK_IN) {
        put(&w, ", ");
        put_mask(&w, v, MASK_IN, wave64);
    }
    bool pairs = v->kind == VARIANT_CONSTANT && !(v->row->flags & ROW_ACCUMULATES);
    if (v->kind == VARIANT_HALVES || (packed && (v->type[1].letter == 'x' || pairs))) put_halves(&w, v);
    if (v->row->flags & ROW_PACKED && (v->kind == VARIANT_SIGNS || v->kind == VARIANT_ALL)) {
        put_bits(&w, "neg_lo", v->negate, v->sources);
        put_bits(&w, "neg_hi", v->negate_high, v->sources);
    }
    if (v->clamp) put(&w, " clamp");
    if (v->omod) put(&w, " %s:%d", v->omod == 1 ? "div" : "mul", v->omod == 1 ? 2 : v->omod);
    if (v->kind == VARIANT_DPP || v->kind == VARIANT_E64_DPP) put_dpp(&w, v);
    if (v->kind == VARIANT_SDWA) put_sdwa(&w, v);
}

bool variant_make(variant *v, const amdgcn_row *row, variant_kind kind, const char *processor, bool wave64,
                  uint64_t *random) {
    memset(v, 0, sizeof *v);
    types_read(v, row);
    v->kind = kind;
    v->row_mask = v->bank_mask = 15;
    bool packed = row->flags & ROW_PACKED, mix = v->type[1].letter == 'x', signs = false;
    bool real = v->type[0].letter == 'f' && !(row->flags & ROW_MODE);
    for (int i = 0; i < v->sources; i++)
        signs |= has_signs(v->type[1 + i]);
    memset(v->half_high, packed, sizeof v->half_high);
    v->maskless = row->flags & ROW_EXEC && amd_target_find(processor)->major >= 10;
    v->in_vcc = kind == VARIANT_E32 || kind == VARIANT_DPP || kind == VARIANT_SDWA;
    switch (kind) {
    case VARIANT_SIGNS:
        if (!signs) return false;
        draw_signs(v, random);
        break;
    case VARIANT_CLAMP:
        if (!real && !(row->flags & ROW_CLAMPS)) return false;
        v->clamp = true;
        break;
    case VARIANT_OMOD:
    case VARIANT_ALL:
        if (!real || (kind == VARIANT_OMOD && (packed || mix))) return false;
        v->omod = packed || mix ? 0 : (int[]){1, 2, 4}[draw(random, 3)];
        v->clamp = kind == VARIANT_ALL;
        if (kind == VARIANT_ALL) draw_signs(v, random);
        break;
    case VARIANT_HALVES:
        if (!draw_halves(v, random)) return false;
        break;
    case VARIANT_SCALAR:
        if (packed || mix) return false;
        break;
    case VARIANT_CONSTANT:
        if (mix || (packed && v->type[1].bits == 32)) return false;
        draw_constant(v, random);
        if (packed) draw_halves(v, random);
        break;
    case VARIANT_DPP:
    case VARIANT_E64_DPP:
        draw_dpp(v, random);
        break;
    case VARIANT_SDWA:
        draw_sdwa(v, random);
        if (signs) draw_signs(v, random);
        break;
    default:
        break;
    }
    if (mix && kind != VARIANT_HALVES) draw_halves(v, random);
    write_text(v, wave64);
    return true;
}

bool variant_make_constant(variant *v, const amdgcn_row *row, int at, int constant, const char *processor, bool wave64,
                           uint64_t *random) {
    if (!variant_make(v, row, VARIANT_CONSTANT, processor, wave64, random)) return false;
    if (at >= places_of(v) || constant >= constants_of(v, at)) return false;
    v->constant_at = at;
    v->constant = constant;
    write_text(v, wave64);
    return true;
}

/* ---- Meaning ---- */

/* The lane that a lane's first source comes from, or -1. */
static int dpp_lane(const variant *v, int l, int lanes) {
    int row = l & ~15, place = l & 15, by = (int)v->dpp_argument;
    switch ((dpp_kind)v->dpp) {
    case QUAD_PERM:
        return (l & ~3) + (by >> 2 * (l & 3) & 3);
    case ROW_SHL:
        return place + by <= 15 ? l + by : -1;
    case ROW_SHR:
        return place - by >= 0 ? l - by : -1;
    case ROW_ROR:
        return row + (place + 16 - by) % 16;
    case WAVE_SHL:
        return l + 1 < lanes ? l + 1 : -1;
    case WAVE_ROL:
        return l + 1 < lanes ? l + 1 : 0;
    case WAVE_SHR:
        return l - 1;
    case WAVE_ROR:
        return l ? l - 1 : lanes - 1;
    case ROW_MIRROR:
        return row + 15 - place;
    case ROW_HALF_MIRROR:
        return (l & ~7) + 7 - (l & 7);
    case ROW_BCAST_15:
        return row ? row - 1 : -1;
    case ROW_BCAST_31:
        return l >= 32 ? 31 : -1;
    case ROW_NEWBCAST:
    case ROW_SHARE:
        return row + by;
    case ROW_XMASK:
        return row + (place ^ by);
    case DPP_8:
        return (l & ~7) + (by >> 3 * (l & 7) & 7);
    case DPP_KINDS:
        break;
    }
    return -1;
}

/* False if DPP turns the lane off. from: where the first source comes from, -1: it is 0. */
static bool dpp_route(const variant *v, uint64_t exec, int l, int lanes, int *from) {
    bool eight = v->dpp == DPP_8;
    *from = dpp_lane(v, l, lanes);
    if (*from >= 0 && !(exec >> *from & 1) && !v->fetch_inactive) *from = -1;
    if (!eight && !(v->row_mask >> l / 16 & 1)) return false;
    if (!eight && !(v->bank_mask >> l / 4 % 4 & 1)) return false;
    return *from >= 0 || eight || v->bound_control;
}

static uint32_t selected(uint32_t word, int select, bool extend) {
    int width = select == 0   ? 32
                : select <= 4 ? 8
                              : 16,
        shift = select == 0   ? 0
                : select <= 4 ? 8 * (select - 1)
                              : 16 * (select - 5);
    uint32_t part = width == 32 ? word : word >> shift & ((1u << width) - 1);
    bool negative = extend && width < 32 && part >> (width - 1);
    return negative ? part | ~0u << width : part;
}

/* What a constant is to a source of a type: a literal has 32 bits, the upper half of an f64 or an integer without or
 * with its sign. */
static uint64_t constant_bits(const variant *v) {
    variant_type type = v->type[1 + v->constant_at];
    switch (v->constant) {
    case CONSTANT_NEGATIVE:
        return (uint64_t)-7;
    case CONSTANT_POSITIVE:
        return 37;
    case CONSTANT_LITERAL:
        if (type.bits != 64) return CONSTANT_BITS;
        return type.letter == 'f'   ? (uint64_t)CONSTANT_BITS << 32
               : type.letter == 'i' ? UINT64_MAX << 32 | CONSTANT_BITS
                                    : CONSTANT_BITS;
    default:
        return ref_bits(is_pair_of_integers(v, type) ? F32 : format_of(type), v->constant == CONSTANT_HALF ? 0.5 : -4,
                        EXACT_RN);
    }
}

/* The 64 bits of a source's registers, in a lane or scalar. */
static uint64_t source_words(const variant *v, const amdgcn_registers *r, int i, int lane) {
    if (i == v->constant_at && v->kind == VARIANT_CONSTANT) return constant_bits(v);
    if (i == 1 && v->row->flags & ROW_LITERAL_B) return VARIANT_LITERAL;
    if (i == 2 && v->row->flags & ROW_LITERAL_C) return VARIANT_LITERAL;
    if (i == 0 && v->kind == VARIANT_SCALAR) return r->s[SCALAR_SOURCE] | (uint64_t)r->s[SCALAR_SOURCE + 1] << 32;
    int at = i == 2 && v->row->flags & ROW_ACCUMULATES ? RESULT : SOURCE + 2 * i;
    return lane < 0 ? 0 : r->v[at][lane] | (uint64_t)r->v[at + 1][lane] << 32;
}

static uint64_t source_bits(const variant *v, const amdgcn_registers *r, int i, int lane, int part, ref_mode mode) {
    variant_type type = v->type[1 + i];
    uint64_t words = source_words(v, r, i, lane);
    bool negate = v->negate[i];
    if (v->row->flags & ROW_PACKED) {
        bool upper = part ? v->half_high[i] : v->half[i];
        bool real = v->kind == VARIANT_CONSTANT && i == v->constant_at && v->constant >= CONSTANT_HALF;
        if (real && v->row->flags & ROW_ACCUMULATES && mode.major >= 11) upper = false;
        if (part) negate = v->negate_high[i];
        words >>= upper ? type.bits : 0;
    } else if (type.letter == 'x') {
        if (v->half_high[i])
            words = ref_convert(F32, F16, (ref_mode){mode.bits | 0x1f0, mode.major},
                                words >> (v->half[i] ? 16 : 0) & 0xffff);
    } else if (v->kind == VARIANT_SDWA && i < 2) {
        words = selected((uint32_t)words, v->select[i], v->extend[i]);
    } else if (type.bits == 16 && v->half[i]) {
        words >>= 16;
    }
    uint64_t bits = type.bits == 64 ? words : words & ((1ull << type.bits) - 1);
    if (!has_signs(type)) return bits;
    if (v->absolute[i]) bits &= ~ref_sign(format_of(type));
    return negate ? bits ^ ref_sign(format_of(type)) : bits;
}

static uint64_t result_bits(const variant *v, row_wide value, ref_mode mode) {
    variant_type type = v->type[0];
    uint64_t mask = type.bits == 64 ? ~0ull : (1ull << type.bits) - 1;
    if (type.letter == 'f') return ref_modified(format_of(type), mode, (uint64_t)value & mask, v->omod, v->clamp);
    if (v->clamp) {
        row_wide least = type.letter == 'i' ? -((row_wide)1 << (type.bits - 1)) : 0;
        row_wide most = type.letter == 'i' ? -least - 1 : (row_wide)mask;
        value = value < least ? least : value > most ? most : value;
    }
    return (uint64_t)value & mask;
}

static uint32_t sdwa_placed(const variant *v, uint32_t old, uint32_t value) {
    int s = v->result_select;
    int width = s == 0 ? 32 : s <= 4 ? 8 : 16, shift = s == 0 ? 0 : s <= 4 ? 8 * (s - 1) : 16 * (s - 5);
    if (width == 32) return value;
    uint32_t field = ((1u << width) - 1) << shift, part = value << shift & field;
    if (v->unused == 2) return (old & ~field) | part;
    if (v->unused == 1 && part >> (shift + width - 1) & 1)
        for (int i = shift + width; i < 32; i++)
            part |= 1u << i;
    return part;
}

/* A result of 16 bits in its register. */
static uint32_t half_placed(const variant *v, uint32_t major, uint32_t old, uint32_t value) {
    unsigned flags = v->row->flags;
    if (flags & ROW_UPPER || v->half[ROW_SOURCES]) return (old & 0xffff) | value << 16;
    bool keeps = major >= 10 || (v->sources == 3 && !(flags & ROW_ZEROES)) || flags & ROW_KEEPS;
    return keeps ? (old & 0xffff0000) | value : value;
}

static void lane_expect(const variant *v, uint32_t major, const amdgcn_registers *before, amdgcn_registers *r, int l,
                        int from) {
    row_operands x = {.lane = (uint32_t)l, .mode = {before->mode, major}};
    row_result d = {0};
    uint64_t result = 0;
    int parts = v->row->flags & ROW_PACKED ? 2 : 1;
    int mask = v->in_vcc || v->row->flags & ROW_VCC_IN ? AMD_VCC : MASK_IN;
    x.in = before->s[mask + l / 32] >> l % 32 & 1;
    for (int part = 0; part < parts; part++) {
        for (int i = 0; i < v->sources; i++) {
            variant_type type = v->type[1 + i];
            x.bits[i] = source_bits(v, before, i, i == 0 ? from : l, part, x.mode);
            x.value[i] = (row_wide)x.bits[i];
            if (type.letter == 'i' && x.bits[i] >> (type.bits - 1)) x.value[i] -= (row_wide)1 << type.bits;
        }
        v->row->expect(&x, &d);
        if (!(v->row->flags & ROW_COMPARE)) result |= result_bits(v, d.value, x.mode) << part * v->type[0].bits;
    }
    int marks = v->in_vcc ? AMD_VCC : MASK_OUT;
    if (v->row->flags & (ROW_MASK_OUT | ROW_COMPARE) && !v->maskless)
        r->s[marks + l / 32] |= (uint32_t)d.mark << l % 32;
    if (v->row->flags & ROW_EXEC) r->s[AMD_EXEC + l / 32] |= (uint32_t)d.mark << l % 32;
    if (v->row->flags & ROW_COMPARE) return;
    uint32_t old = before->v[RESULT][l];
    r->v[RESULT][l] = (uint32_t)result;
    if (v->kind == VARIANT_SDWA)
        r->v[RESULT][l] = sdwa_placed(v, old, (uint32_t)result);
    else if (v->type[0].bits == 16 && parts == 1)
        r->v[RESULT][l] = half_placed(v, major, old, (uint32_t)result);
    if (words_of(v, 0) == 2) r->v[RESULT + 1][l] = (uint32_t)(result >> 32);
}

void variant_expect(const variant *v, const amd_program *program, amdgcn_registers *registers) {
    static amdgcn_registers before;
    int lanes = program->kernels[0].wave32 ? 32 : 64;
    uint64_t exec = registers->s[AMD_EXEC] | (uint64_t)registers->s[AMD_EXEC + 1] << 32;
    before = *registers;
    for (int i = 0; i < lanes / 32; i++) {
        if (v->row->flags & (ROW_MASK_OUT | ROW_COMPARE) && !v->maskless)
            registers->s[(v->in_vcc ? AMD_VCC : MASK_OUT) + i] = 0;
        if (v->row->flags & ROW_EXEC) registers->s[AMD_EXEC + i] = 0;
    }
    for (int l = 0; l < lanes; l++) {
        int from = l;
        bool on = exec >> l & 1;
        if (v->kind == VARIANT_DPP || v->kind == VARIANT_E64_DPP) on = dpp_route(v, exec, l, lanes, &from) && on;
        if (on) lane_expect(v, program->target->major, &before, registers, l, from);
    }
}
