#include "tests/sim/amdgcn/alu/amd_vector.h"
#include <string.h>

typedef struct type_facts {
    uint8_t log_bits;
    int8_t format;
    uint8_t one; /* bits of a 1.0 */
} type_facts;

static const type_facts facts[] = {
#define AMD_ALU_FACTS(name, element, array, bits, format, one) [AMD_ALU_##name] = {bits, format, one},
    AMD_ALU_TYPES(AMD_ALU_FACTS)
#undef AMD_ALU_FACTS
};

static bool is_packed(amd_alu_type type) {
    return type == AMD_ALU_p16 || type == AMD_ALU_h16 || type == AMD_ALU_p32;
}

/* ---- Sources ---- */

/* An operand that is the same in all lanes. */
static uint64_t scalar(const amd_alu *x, const amd_operand *operand, amd_alu_type type) {
    if (operand->kind != AMD_OPERAND_CONSTANT)
        return operand->count > 1 ? amd_read64(x->wave, operand) : amd_read32(x->wave, operand);
    if (operand->literal && type == AMD_ALU_f64) return operand->value << 32;
    if (facts[type].one == 64) return operand->value;
    return operand->real && facts[type].one == 16 ? operand->value_16 : operand->value_32;
}

/* The 32-bit words of an operand: a register's own lanes, or room filled with a scalar. */
static const uint32_t *words(amd_alu *x, const amd_operand *operand, amd_alu_type type, uint32_t word, uint32_t *room) {
    if (operand->kind == AMD_OPERAND_VECTOR) return x->wave->v[operand->index + word];
    uint64_t value = scalar(x, operand, type);
    uint32_t part = (uint32_t)(word ? value >> 32 : value);
    for (uint32_t l = 0; l < AMD_LANES; l++)
        room[l] = part;
    return room;
}

static uint32_t select_part(uint32_t word, uint8_t select, bool extend) {
    switch ((amd_select)select) {
    case AMD_SELECT_DWORD:
        return word;
    case AMD_SELECT_BYTE_0:
    case AMD_SELECT_BYTE_1:
    case AMD_SELECT_BYTE_2:
    case AMD_SELECT_BYTE_3: {
        uint32_t byte = word >> 8 * (select - AMD_SELECT_BYTE_0) & 0xff;
        return extend ? (uint32_t)(int8_t)byte : byte;
    }
    case AMD_SELECT_WORD_0:
    case AMD_SELECT_WORD_1: {
        uint32_t half = word >> 16 * (select - AMD_SELECT_WORD_0) & 0xffff;
        return extend ? (uint32_t)(int16_t)half : half;
    }
    }
    return word;
}

/* A half of a register, or the f32 that all of it is, as v_fma_mix takes them: op_sel_hi says that it is a half, op_sel
 * which; neg_hi is the absolute value. */
static uint32_t mixed(const amd_alu *x, const amd_operand *operand, uint32_t i, uint32_t word) {
    const amd_op *op = x->op;
    bool half = op->has_op_sel_hi && (op->op_sel_hi >> i & 1);
    uint32_t bits = word;
    if (half) {
        bool upper = op->op_sel >> i & 1;
        uint32_t part = operand->real && !upper ? operand->value_16 : word >> (upper ? 16 : 0) & 0xffff;
        bits = (uint32_t)amd_convert(AMD_SINGLE, AMD_HALF, x->mode, part);
    }
    if (operand->absolute || (op->neg_hi >> i & 1)) bits &= 0x7fffffff;
    if (operand->negate || (op->neg_lo >> i & 1)) bits ^= 0x80000000;
    return bits;
}

/* The halves of a packed source: op_sel and op_sel_hi say which half each of the two operations takes. */
static void packed_16(const amd_alu *x, uint32_t i, bool real, const uint32_t *from, uint32_t *to) {
    const amd_op *op = x->op;
    const uint32_t low = op->op_sel >> i & 1 ? 16 : 0, high = op->op_sel_hi >> i & 1 ? 16 : 0;
    const uint32_t flip = (op->neg_lo >> i & 1u) << 15 | (op->neg_hi >> i & 1u) << 31, sign = real ? flip : 0;
    for (uint32_t base = 0; base < x->lanes; base += 32)
        for (uint32_t l = base; l < base + 32; l++)
            to[l] = ((from[l] >> low & 0xffff) | from[l] >> high << 16) ^ sign;
}

/* Magnitudes and signs, and halves moved down. */
static void modified_32(const amd_alu *x, const amd_operand *operand, uint32_t sign, uint32_t shift,
                        const uint32_t *from, uint32_t *to) {
    const uint32_t keep = operand->absolute ? ~sign : ~0u, flip = operand->negate ? sign : 0;
    for (uint32_t base = 0; base < x->lanes; base += 32)
        for (uint32_t l = base; l < base + 32; l++)
            to[l] = (from[l] >> shift & keep) ^ flip;
}

static bool is_direct(const amd_alu *x, const amd_operand *operand, uint32_t i, amd_alu_type type) {
    const amd_op *op = x->op;
    if (type == AMD_ALU_mix || is_packed(type)) return false;
    if (operand->negate || operand->absolute || operand->extend || operand->select) return false;
    return !(facts[type].log_bits == 4 && (op->op_sel >> i & 1)) && !(i == 0 && op->dpp);
}

/* Sources of up to 32 bits. */
static const void *gather_32(amd_alu *x, const amd_operand *operand, uint32_t i, amd_alu_type type) {
    uint32_t *room = (uint32_t *)(void *)x->sources[i];
    const uint32_t *from = words(x, operand, type, 0, room);
    if (is_direct(x, operand, i, type)) return from;
    uint32_t moved[AMD_LANES];
    if (i == 0 && x->op->dpp) {
        amd_dpp_gather(x, moved, from);
        from = moved;
    }
    uint32_t parts[AMD_LANES];
    for (uint32_t l = 0; operand->select && l < x->lanes; l++)
        parts[l] = select_part(from[l], operand->select, operand->extend);
    if (operand->select) from = parts;
    /* As measured on Navi 31: https://github.com/llvm/llvm-project/issues/94116. */
    bool doubled = type == AMD_ALU_h16 && operand->real && x->shape->flags & AMD_ALU_ADDS;
    doubled &= x->wave->program->target->major >= 11;
    uint32_t sign = facts[type].format < 0 ? 0 : (uint32_t)amd_sign((amd_format)facts[type].format);
    if (type == AMD_ALU_mix || doubled) {
        for (uint32_t l = 0; l < x->lanes; l++)
            room[l] = doubled ? from[l] * 0x10001 : mixed(x, operand, i, from[l]);
    } else if (type == AMD_ALU_p16 || type == AMD_ALU_h16) {
        packed_16(x, i, type == AMD_ALU_h16, from, room);
    } else {
        modified_32(x, operand, sign, facts[type].log_bits == 4 && (x->op->op_sel >> i & 1) ? 16 : 0, from, room);
    }
    return room;
}

static const void *gather_64(amd_alu *x, const amd_operand *operand, uint32_t i, amd_alu_type type) {
    uint32_t room[2][AMD_LANES], moved[2][AMD_LANES];
    const uint32_t *low = words(x, operand, type, 0, room[0]), *high = words(x, operand, type, 1, room[1]);
    if (i == 0 && x->op->dpp) {
        amd_dpp_gather(x, moved[0], low);
        amd_dpp_gather(x, moved[1], high);
        low = moved[0];
        high = moved[1];
    }
    uint32_t sign = facts[type].format < 0 ? 0 : 0x80000000u;
    uint32_t flip_high = operand->negate ? sign : 0, keep_high = operand->absolute ? ~sign : ~0u, flip_low = 0;
    if (type == AMD_ALU_p32) {
        const uint32_t *part[] = {low, high};
        low = part[x->op->op_sel >> i & 1];
        high = part[x->op->op_sel_hi >> i & 1];
        flip_low = (uint32_t)(x->op->neg_lo >> i & 1) << 31;
        flip_high = (uint32_t)(x->op->neg_hi >> i & 1) << 31;
    }
    uint64_t *to = x->sources[i];
    for (uint32_t l = 0; l < AMD_LANES; l++)
        to[l] = (uint64_t)((high[l] & keep_high) ^ flip_high) << 32 | (low[l] ^ flip_low);
    return to;
}

static const void *gather(amd_alu *x, const amd_operand *operand, uint32_t i, amd_alu_type type) {
    if (type == AMD_ALU_none) return x->sources[i];
    return facts[type].log_bits == 6 ? gather_64(x, operand, i, type) : gather_32(x, operand, i, type);
}

/* ---- Begin and end ---- */

/* Whether results must be looked at once more before they are written. */
static bool result_is_direct(const amd_alu *x) {
    amd_alu_type type = x->shape->result;
    bool modified = facts[type].format >= 0 && (x->op->clamp || x->op->omod);
    return facts[type].log_bits == 5 && !modified && !x->op->dst_select && x->result->kind == AMD_OPERAND_VECTOR;
}

uint32_t amd_alu_mode(const amd_wave *wave) {
    uint32_t major = wave->program->target->major, mode = wave->mode;
    if (major >= 12) mode |= AMD_MODE_IEEE | AMD_MODE_DX10_CLAMP | AMD_MODE_NUMBERS;
    return major >= 10 ? mode | AMD_MODE_FIRST_NAN : mode;
}

void amd_alu_begin(amd_alu *x, amd_wave *wave, const amd_op *op, const amd_alu_shape *shape) {
    const amd_operand *next = op->operand, *end = op->operand + op->operand_count;
    x->wave = wave;
    x->op = op;
    x->shape = shape;
    x->exec = amd_exec(wave);
    x->lanes = wave->lanes;
    x->mode = amd_alu_mode(wave);
    x->clamp = op->clamp;
    x->mask_in = x->mask_out = 0;
    x->result = shape->result == AMD_ALU_none ? NULL : next++;
    x->mask_result = shape->flags & AMD_ALU_MASK_OUT ? next++ : NULL;
    for (uint32_t i = 0; i < 3; i++) {
        bool old = i == 2 && (shape->flags & AMD_ALU_ADDS);
        const amd_operand *operand = shape->source[i] == AMD_ALU_none || old ? x->result : next++;
        x->source[i] = gather(x, operand, i, (amd_alu_type)shape->source[i]);
    }
    if (shape->flags & AMD_ALU_MASK_IN) x->mask_in = next < end ? amd_read_mask(wave, next) : amd_vcc(wave);
    bool direct = x->result && result_is_direct(x);
    x->out = direct ? (void *)wave->v[x->result->index] : (void *)x->results;
    x->plain = amd_mode_plain_32(x->mode) && !op->clamp && !op->omod && !op->dst_select;
}

static uint64_t modify(const amd_alu *x, uint64_t value) {
    /* gfx12 has no IEEE bit to be in the way of a multiplication. */
    uint32_t mode = x->wave->program->target->major >= 12 ? x->mode & ~(uint32_t)AMD_MODE_IEEE : x->mode;
    amd_alu_type type = x->shape->result;
    amd_format format = (amd_format)facts[type].format;
    if (!is_packed(type)) return amd_modify_output(format, mode, value, x->op->omod, x->op->clamp);
    uint32_t width = format == AMD_HALF ? 16 : 32;
    uint64_t low = amd_modify_output(format, mode, value & ((1ull << width) - 1), 0, x->op->clamp);
    return amd_modify_output(format, mode, value >> width, 0, x->op->clamp) << width | low;
}

/* Places a result in its part of a register by SDWA. */
static uint32_t place(const amd_op *op, uint32_t old, uint32_t value) {
    uint32_t shift, width;
    if (op->dst_select == AMD_SELECT_DWORD) return value;
    if (op->dst_select <= AMD_SELECT_BYTE_3) {
        shift = 8u * (uint32_t)(op->dst_select - AMD_SELECT_BYTE_0);
        width = 8;
    } else {
        shift = 16u * (uint32_t)(op->dst_select - AMD_SELECT_WORD_0);
        width = 16;
    }
    uint32_t field = ((1u << width) - 1) << shift, part = value << shift & field;
    if (op->dst_unused == 2) return (old & ~field) | part;
    bool negative = op->dst_unused == 1 && (part >> (shift + width - 1) & 1);
    return negative ? part | (shift + width < 32 ? ~0u << (shift + width) : 0) : part;
}

/* Where a 16-bit result goes in its register, and what that keeps of its old value. */
typedef struct half {
    uint32_t shift, keep;
} half;

/* gfx10 and later keep the other half; on gfx9 only the later instructions do. */
static half half_of(const amd_alu *x) {
    uint32_t count = 0;
    while (count < 3 && x->shape->source[count] != AMD_ALU_none)
        count++;
    bool high = (x->op->op_sel >> count & 1) || (x->shape->flags & AMD_ALU_HIGH);
    bool mix = x->shape->source[0] == AMD_ALU_mix;
    bool keep =
        x->wave->program->target->major >= 10 || (count == 3 && !(x->shape->flags & AMD_ALU_CLEARS)) || mix || high;
    if (x->op->encoding == AMD_ENCODING_SDWA) return (half){0, 0};
    return high ? (half){16, 0xffff} : (half){0, keep ? 0xffff0000 : 0};
}

static inline __attribute__((always_inline)) void halves_put(uint32_t *to, uint32_t l, const uint32_t *values,
                                                             half at) {
    to[l] = (to[l] & at.keep) | (values[l] & 0xffff) << at.shift;
}

static void finish_16(amd_alu *x, uint32_t *to) {
    const uint32_t *values = (const uint32_t *)(const void *)x->results;
    const half at = half_of(x);
    if (x->exec != x->wave->all) {
        for (uint64_t rest = x->exec; rest; rest &= rest - 1)
            halves_put(to, (uint32_t)__builtin_ctzll(rest), values, at);
        return;
    }
    for (uint32_t base = 0; base < x->lanes; base += 32)
        for (uint32_t l = base; l < base + 32; l++)
            halves_put(to, l, values, at);
}

static void finish_64(amd_alu *x, uint32_t *low, uint32_t *high) {
    if (x->exec != x->wave->all) {
        for (uint64_t rest = x->exec; rest; rest &= rest - 1) {
            const uint32_t l = (uint32_t)__builtin_ctzll(rest);
            low[l] = (uint32_t)x->results[l];
            high[l] = (uint32_t)(x->results[l] >> 32);
        }
        return;
    }
    for (uint32_t base = 0; base < x->lanes; base += 32) {
        for (uint32_t l = base; l < base + 32; l++) {
            low[l] = (uint32_t)x->results[l];
            high[l] = (uint32_t)(x->results[l] >> 32);
        }
    }
}

/* Applies clamp and omod to what is to be written. */
static void modify_all(amd_alu *x, bool wide) {
    uint32_t *narrow = (uint32_t *)(void *)x->results;
    for (uint64_t rest = x->exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        if (wide)
            x->results[l] = modify(x, x->results[l]);
        else
            narrow[l] = (uint32_t)modify(x, narrow[l]);
    }
}

static void finish(amd_alu *x) {
    const type_facts *f = &facts[x->shape->result];
    const uint32_t *values = (const uint32_t *)(const void *)x->results;
    uint32_t *low = x->wave->v[x->result->index];
    if (f->format >= 0 && (x->op->clamp || x->op->omod)) modify_all(x, f->log_bits == 6);
    if (f->log_bits == 6) {
        finish_64(x, low, x->wave->v[x->result->index + 1]);
        return;
    }
    if (f->log_bits == 4 && !x->op->dst_select) {
        finish_16(x, low);
        return;
    }
    for (uint64_t rest = x->exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest), value = f->log_bits == 4 ? values[l] & 0xffff : values[l];
        low[l] = x->op->dst_select ? place(x->op, low[l], value) : value;
    }
}

void amd_alu_end(amd_alu *x) {
    if (x->result && x->out == x->results && x->result->kind == AMD_OPERAND_VECTOR) finish(x);
    if (x->mask_result) amd_write_mask(x->wave, x->mask_result, x->mask_out);
}
