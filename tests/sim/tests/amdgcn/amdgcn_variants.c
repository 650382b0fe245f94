#include "tests/sim/tests/amdgcn/amdgcn_variants.h"
#include "tests/sim/amdgcn/wave/amd_wave.h"
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

const ref_format *variant_format(variant_type type) {
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
    return real ? draw_float(variant_format(type), random) : draw_integer(type.bits, random);
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

static void types_read(variant *v, const amdgcn_row *row) {
    v->row = row;
    v->sources = -1;
    for (const char *at = row->types; *at; at += strspn(at, " ")) {
        bool mix = !strncmp(at, "mix", 3);
        v->type[++v->sources] = (variant_type){mix ? 'x' : *at, mix ? 32 : (int)strtol(at + 1, NULL, 10)};
        at += strcspn(at, " ");
    }
}

bool variant_has_signs(variant_type type) {
    return type.letter == 'f' || type.letter == 'm' || type.letter == 'x';
}

/* Where the encoding has a mask as a result it has no room for absolute values. */
static void draw_signs(variant *v, uint64_t *random) {
    bool absolute = !(v->row->flags & (ROW_PACKED | ROW_MASK_OUT));
    for (int i = 0; i < v->sources; i++) {
        if (!variant_has_signs(v->type[1 + i]) || (i == 2 && v->row->flags & ROW_ACCUMULATES)) continue;
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
    v->dpp = (dpp_kind)draw(random, DPP_KINDS);
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

/* Sources that are written. */
static int places_of(const variant *v) {
    return v->sources - !!(v->row->flags & ROW_ACCUMULATES);
}

bool variant_is_pair_of_integers(const variant *v, variant_type type) {
    return v->row->flags & ROW_PACKED && !variant_has_signs(type);
}

static int constants_of(const variant *v, int at) {
    variant_type type = v->type[1 + at];
    return variant_has_signs(type) || type.bits > 16 || variant_is_pair_of_integers(v, type) ? VARIANT_CONSTANTS
                                                                                             : CONSTANT_HALF;
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

int variant_words(const variant *v, int operand) {
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
        put(w, "0x%x", half ? VARIANT_CONSTANT_BITS & 0xffff : VARIANT_CONSTANT_BITS);
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
        put_registers(w, 's', SCALAR_SOURCE, variant_words(v, 1));
    else if ((i == 1 && v->row->flags & ROW_LITERAL_B) || (i == 2 && v->row->flags & ROW_LITERAL_C))
        put(w, "0x%x", v->type[1 + i].bits == 16 ? VARIANT_LITERAL & 0xffff : VARIANT_LITERAL);
    else
        put_registers(w, 'v', SOURCE + 2 * i, variant_words(v, 1 + i));
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
    if (!(v->row->flags & ROW_COMPARE)) put_registers(&w, 'v', RESULT, variant_words(v, 0));
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
        signs |= variant_has_signs(v->type[1 + i]);
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
