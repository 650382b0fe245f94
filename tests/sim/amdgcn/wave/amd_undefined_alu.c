/* What becomes of undefined bits in the vector and the scalar ALU. Most rules let an instruction, or a simpler one in
 * its place, run on the account: of its operands some stand for their undefined bits, and the others for themselves. */
#include "tests/sim/amdgcn/alu/amd_vector.h"
#include "tests/sim/amdgcn/wave/amd_flow.h"
#include "tests/sim/amdgcn/wave/amd_undefined.h"
#include <string.h>

typedef enum use {
    USE_STRICT, /* all that it reads must be defined */
    USE_SPREAD, /* a lane's result is wholly undefined if anything that it is made of is in part */
    USE_MOVE,   /* the bits of some sources go to other places, where the other sources say */
    USE_MASK    /* of two sources, a bit of one decides unless that of the other does, and the rest is moved */
} use;

/* Operands, a bit for each. */
enum { O1 = 2, O2 = 4, O3 = 8, EACH = 0xff };

typedef struct rule {
    amd_run run, as; /* as: what runs on the account */
    use use;
    uint8_t moved;    /* operands */
    uint8_t inverted; /* MASK: of those two, which decide where they are 1, not 0 */
    uint32_t reads;   /* SPREAD: bits of the sources */
} rule;

static const rule rules[] = {
#define AMD_MOVED(name, operands)        {amd_run_##name, amd_run_##name, USE_MOVE, operands, 0, 0},
#define AMD_UNITED(name, with)           {amd_run_##name, amd_run_##with, USE_MOVE, EACH, 0, 0},
#define AMD_MASKED(name, with, inverted) {amd_run_##name, amd_run_##with, USE_MASK, 0, inverted, 0},
#define AMD_READ(name, bits)             {amd_run_##name, NULL, USE_SPREAD, 0, 0, bits},
#include "tests/sim/amdgcn/wave/amd_undefined.def"
};

/* NULL: it is none of the vector ALU's. */
static const amd_alu_shape *shape_of(amd_run run) {
    static const struct {
        amd_run run;
        const amd_alu_shape *shape;
    } shapes[] = {
#define AMD_ALU_OPCODE(mnemonic) {amd_run_##mnemonic, &amd_shape_##mnemonic},
#define AMD_ALU_SCALAR_OPCODE(mnemonic)
#include "tests/sim/amdgcn/alu/amd_vector.def"
#define AMD_DOT(mnemonic, sources, a, b, d, modifiers) {amd_run_##mnemonic, &amd_shape_##mnemonic},
#define AMD_DOT_ADDS                                   AMD_DOT
#include "tests/sim/amdgcn/matrix/amd_dot.def"
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        if (shapes[i].run == run) return shapes[i].shape;
    return NULL;
}

static rule rule_of(const amd_op *op) {
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].run == op->run) return rules[i];
    return (rule){.run = op->run, .use = shape_of(op->run) ? USE_SPREAD : USE_STRICT, .reads = ~0u};
}

/* ---- Running on the account ---- */

static const amd_operand vcc = {.kind = AMD_OPERAND_SCALAR, .index = AMD_VCC, .count = 2};
static const amd_operand exec_32 = {.kind = AMD_OPERAND_SCALAR, .index = AMD_EXEC, .count = 1};
static const amd_operand exec_64 = {.kind = AMD_OPERAND_SCALAR, .index = AMD_EXEC, .count = 2};

static void make_constant(amd_operand *operand, uint64_t value) {
    operand->kind = AMD_OPERAND_CONSTANT;
    operand->real = operand->literal = false;
    operand->value = value;
    operand->value_32 = (uint32_t)value;
    operand->value_16 = (uint16_t)value;
}

static uint64_t scalar_read(const uint32_t *s, const amd_operand *operand) {
    return s[operand->index] | (operand->count > 1 ? (uint64_t)s[operand->index + 1] << 32 : 0);
}

/* An operand that stands for its undefined bits. */
static void take_account(const amd_undefined *undefined, amd_operand *operand) {
    if (operand->kind == AMD_OPERAND_SCALAR)
        make_constant(operand, scalar_read(undefined->s, operand));
    else if (operand->kind != AMD_OPERAND_VECTOR)
        operand->kind = AMD_OPERAND_NULL;
}

/* An operand that stands for itself, or for its inverse: a vector register is copied behind those of the account. */
static void take_real(amd_wave *wave, amd_operand *operand, uint32_t number, bool inverted) {
    const uint64_t flip = inverted ? ~0ull : 0;
    if (operand->kind == AMD_OPERAND_SCALAR) {
        make_constant(operand, scalar_read(wave->s, operand) ^ flip);
    } else if (operand->kind == AMD_OPERAND_CONSTANT) {
        operand->value ^= flip;
        operand->value_32 ^= (uint32_t)flip;
        operand->value_16 ^= (uint16_t)flip;
    } else if (operand->kind == AMD_OPERAND_VECTOR) {
        const uint32_t first = AMD_VECTORS + 2 * number;
        for (uint32_t i = 0; i < operand->count && i < 2; i++)
            for (uint32_t l = 0; l < AMD_LANES; l++)
                wave->undefined->v[first + i][l] = wave->v[operand->index + i][l] ^ (uint32_t)flip;
        operand->index = (uint16_t)first;
    }
}

/* An instruction without what changes its operands' signs and its result. */
static amd_op plain_of(const amd_op *op) {
    amd_op plain = *op;
    plain.clamp = false;
    plain.omod = plain.neg_lo = plain.neg_hi = 0;
    plain.dual = NULL;
    for (uint32_t i = 0; i < op->operand_count; i++)
        plain.operand[i].negate = plain.operand[i].absolute = false;
    return plain;
}

/* Scalars that are results change places with the account's; the others stay. */
typedef struct scalars {
    uint32_t s[AMD_SCALARS];
    bool scc;
} scalars;

static void scalars_begin(amd_wave *wave, const amd_op *op, uint32_t results, scalars *kept) {
    memcpy(kept->s, wave->s, sizeof kept->s);
    kept->scc = wave->scc;
    for (uint32_t i = 0; i < results; i++) {
        const amd_operand *result = &op->operand[i];
        for (uint32_t j = 0; result->kind == AMD_OPERAND_SCALAR && j < result->count; j++)
            wave->s[result->index + j] = wave->undefined->s[result->index + j];
    }
}

static void scalars_end(amd_wave *wave, const amd_op *op, uint32_t results, const scalars *kept) {
    for (uint32_t i = 0; i < results; i++) {
        const amd_operand *result = &op->operand[i];
        for (uint32_t j = 0; result->kind == AMD_OPERAND_SCALAR && j < result->count; j++)
            wave->undefined->s[result->index + j] = wave->s[result->index + j];
    }
    memcpy(wave->s, kept->s, sizeof kept->s);
    wave->scc = kept->scc;
}

/* Runs on the account: the operands of moved stand for their undefined bits, of the others those of inverted for their
 * inverse. */
static void run_moved(amd_wave *wave, const amd_op *op, const rule *by, uint32_t results, uint32_t moved,
                      uint32_t inverted) {
    amd_op plain = plain_of(op);
    scalars kept;
    for (uint32_t i = results; i < op->operand_count; i++) {
        if (moved >> i & 1)
            take_account(wave->undefined, &plain.operand[i]);
        else
            take_real(wave, &plain.operand[i], i, inverted >> i & 1);
    }
    scalars_begin(wave, op, results, &kept);
    amd_undefined_swap(wave);
    if (wave->relative && op->class != AMD_CLASS_SCALAR)
        amd_run_relative(wave, &plain);
    else
        by->as(wave, &plain);
    amd_undefined_swap(wave);
    scalars_end(wave, op, results, &kept);
}

/* ---- Spreading ---- */

static const uint8_t log_bits[] = {
#define AMD_ALU_LOG_BITS(name, element, array, bits, format, one) [AMD_ALU_##name] = bits,
    AMD_ALU_TYPES(AMD_ALU_LOG_BITS)
#undef AMD_ALU_LOG_BITS
};

/* What is undefined of a result of which these bits of the sources are. */
static uint64_t spread_bits(amd_alu_type type, uint64_t bits) {
    const bool wide = log_bits[type] == 6;
    const bool packed = type == AMD_ALU_p16 || type == AMD_ALU_h16 || type == AMD_ALU_p32;
    const uint64_t all = wide ? ~0ull : ~0u, low = wide ? 0xffffffff : 0xffff;
    if (!packed) return bits ? all : 0;
    return (bits & low ? low : 0) | (bits & all & ~low ? all & ~low : 0);
}

/* Instead of an instruction, where sources stand for their undefined bits: all of a lane's result is undefined (of
 * packed ones, the part) if any bit of its sources is that is in reads. Returns the lanes in which any is. */
static uint64_t spread_lanes(amd_wave *wave, const amd_op *op, const amd_alu_shape *shape, uint32_t reads) {
    amd_alu alu, *const x = &alu;
    const amd_alu_type type = (amd_alu_type)shape->result;
    uint64_t lanes = 0;
    amd_alu_begin(x, wave, op, shape);
    for (uint64_t rest = x->exec; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctzll(rest);
        uint64_t bits = x->mask_in >> l & 1 ? ~0ull : 0;
        for (uint32_t i = 0; i < 3; i++) {
            if (shape->source[i] == AMD_ALU_none) continue;
            const uint8_t width = log_bits[shape->source[i]];
            const uint32_t read = width == 4 ? reads & 0xffff : reads;
            bits |= width == 6 ? ((const uint64_t *)x->source[i])[l] : ((const uint32_t *)x->source[i])[l] & read;
        }
        lanes |= (uint64_t)(bits != 0) << l;
        if (log_bits[type] == 6)
            ((uint64_t *)x->out)[l] = spread_bits(type, bits);
        else
            ((uint32_t *)x->out)[l] = (uint32_t)spread_bits(type, bits);
    }
    x->mask_out = lanes;
    amd_alu_end(x);
    return lanes;
}

/* ---- Uses ---- */

static uint32_t results_of(const amd_op *op) {
    if (op->run == amd_run_v_swap_b32) return 2;
    const amd_alu_shape *shape = shape_of(op->run);
    if (!shape) return 1;
    bool mask = shape->flags & AMD_ALU_MASK_OUT && (shape->result != AMD_ALU_none || op->operand_count > 2);
    return (shape->result == AMD_ALU_none ? 0u : 1u) + mask;
}

/* Where the results' undefined bits are said to come from: the first source that has any. */
static void name_origin(amd_wave *wave, const amd_op *op, const amd_origin *from, uint32_t results) {
    for (uint32_t i = 0; i < results; i++) {
        const amd_operand *result = &op->operand[i];
        for (uint32_t j = 0; j < result->count; j++) {
            if (result->kind == AMD_OPERAND_VECTOR) wave->undefined->vector_from[result->index + j] = *from;
            if (result->kind == AMD_OPERAND_SCALAR) wave->undefined->scalar_from[result->index + j] = *from;
        }
    }
    wave->undefined->scc_from = *from;
}

static const amd_origin *origin_of(const amd_wave *wave, const amd_op *op) {
    const amd_undefined *undefined = wave->undefined;
    for (uint32_t i = op->operand_count; i-- > 0;) {
        const amd_operand *operand = &op->operand[i];
        for (uint32_t j = 0; j < operand->count; j++) {
            const uint16_t number = (uint16_t)(operand->index + j);
            const amd_operand one = {.kind = operand->kind, .index = number, .count = 1};
            if (!amd_undefined_lanes(wave, &one, ~0ull)) continue;
            return one.kind == AMD_OPERAND_VECTOR ? &undefined->vector_from[number] : &undefined->scalar_from[number];
        }
    }
    if (amd_undefined_lanes(wave, &vcc, ~0ull)) return &undefined->scalar_from[AMD_VCC];
    return undefined->scc ? &undefined->scc_from : &undefined->latest;
}

/* A comparison into EXEC says with its mask which lanes are on. */
static bool spread(amd_wave *wave, const amd_op *op, const rule *by, uint32_t results) {
    amd_alu_shape shape = *shape_of(op->run);
    amd_op plain = plain_of(op);
    scalars kept;
    if (shape.result == AMD_ALU_none && !results) shape.flags &= (uint8_t)~AMD_ALU_MASK_OUT;
    for (uint32_t i = results; i < op->operand_count; i++)
        take_account(wave->undefined, &plain.operand[i]);
    scalars_begin(wave, op, results, &kept);
    memcpy(&wave->s[AMD_VCC], &wave->undefined->s[AMD_VCC], 2 * sizeof *wave->s);
    amd_undefined_swap(wave);
    uint64_t lanes = spread_lanes(wave, &plain, &shape, by->reads);
    amd_undefined_swap(wave);
    scalars_end(wave, op, results, &kept);
    if (!lanes || strncmp(op->text, "v_cmpx", 6) != 0) return true;
    for (uint32_t i = results; i < op->operand_count; i++)
        if (!amd_undefined_none(wave, op, &op->operand[i], lanes)) return false;
    return true;
}

/* v_perm makes bytes of ones, too, where a selector is more than 12: they are defined. */
static void clear_ones(amd_wave *wave, const amd_op *op) {
    const amd_operand *selectors = &op->operand[3];
    for (uint64_t rest = amd_exec(wave); rest; rest &= rest - 1) {
        const uint32_t l = (uint32_t)__builtin_ctzll(rest);
        const bool vector = selectors->kind == AMD_OPERAND_VECTOR;
        const uint32_t select = vector ? wave->v[selectors->index][l] : amd_read32(wave, selectors);
        for (uint32_t i = 0; i < 32; i += 8)
            if ((select >> i & 0xff) > 12) wave->undefined->v[op->operand[0].index][l] &= ~(0xffu << i);
    }
}

/* Lanes for which a choice, a count or a place is undefined have nothing defined. */
static bool moved(amd_wave *wave, const amd_op *op, const rule *by, uint32_t results) {
    static const amd_operand scc = {.kind = AMD_OPERAND_SCC, .count = 1};
    const bool chosen = by->run == amd_run_v_cndmask_b32 || by->run == amd_run_v_cndmask_b16;
    uint64_t lanes = 0;
    if (by->run == amd_run_s_cselect_b32 || by->run == amd_run_s_cselect_b64 || by->run == amd_run_s_cmov_b32 ||
        by->run == amd_run_s_cmov_b64)
        if (!amd_undefined_none(wave, op, &scc, 0)) return false;
    for (uint32_t i = results; i < op->operand_count; i++)
        if (!(by->moved >> i & 1) && !(chosen && i == 3))
            lanes |= amd_undefined_lanes(wave, &op->operand[i], amd_exec(wave));
    if (chosen) lanes |= scalar_read(wave->undefined->s, op->operand_count > 3 ? &op->operand[3] : &vcc);
    run_moved(wave, op, by, results, by->moved, 0);
    if (by->run == amd_run_v_perm_b32) clear_ones(wave, op);
    for (uint32_t i = 0; lanes && i < results; i++)
        amd_undefined_set(wave, &op->operand[i], lanes & amd_exec(wave), true);
    return true;
}

/* The undefined bits of one source where the other does not decide, of the other where the one does not, and those of
 * both; the result's own register may be a source. */
static void mask(amd_wave *wave, const amd_op *op, const rule *by) {
    static const uint32_t moved[] = {O1 | O3, O2 | O3, O1 | O2 | O3};
    const amd_operand *result = &op->operand[0];
    const bool vector = result->kind == AMD_OPERAND_VECTOR;
    uint32_t *place = vector ? wave->undefined->v[result->index] : &wave->undefined->s[result->index];
    const size_t count = vector ? AMD_LANES : result->count;
    uint32_t before[AMD_LANES], all[AMD_LANES] = {0};
    memcpy(before, place, count * sizeof *place);
    for (size_t n = 0; n < sizeof moved / sizeof *moved; n++) {
        memcpy(place, before, count * sizeof *place);
        run_moved(wave, op, by, 1, moved[n], by->inverted);
        for (size_t i = 0; i < count; i++)
            all[i] |= place[i];
    }
    memcpy(place, all, count * sizeof *place);
}

/* ---- Scalars ---- */

/* Of most instructions operand 0 is the result and nothing else. */
static bool reads_first(const amd_op *op) {
    static const char *const beginnings[] = {"s_cmp",  "s_bitcmp", "s_bitset", "s_cmov",   "s_addk",
                                             "s_mulk", "s_fmac",   "s_setpc",  "s_set_gpr"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (!strncmp(op->text, beginnings[i], strlen(beginnings[i]))) return true;
    return false;
}

static bool writes_scc(amd_run run) {
    static const struct {
        amd_run run;
        const char *scc; /* what it is then: "scc" if it stays */
    } rows[] = {
#define AMD_SALU(mnemonic, bits, a_bits, b_bits, result, scc) {amd_run_##mnemonic, #scc},
#define AMD_SALU_UPDATE(mnemonic, bits, a_bits, result, scc)  {amd_run_##mnemonic, #scc},
#define AMD_SALU_K(mnemonic, result, scc)                     {amd_run_##mnemonic, #scc},
#define AMD_SALU_COMPARE(mnemonic, a_bits, b_bits, condition) {amd_run_##mnemonic, ""},
#define AMD_SALU_COMPARE_K(mnemonic, condition)               {amd_run_##mnemonic, ""},
#define AMD_SALU_FLOAT(mnemonic, bits, result)
#define AMD_SALU_FLOAT_COMPARE(mnemonic, bits, format, condition) {amd_run_##mnemonic, ""},
#define AMD_SALU_SAVEEXEC(mnemonic, bits, result)                 {amd_run_##mnemonic, ""},
#define AMD_SALU_WREXEC(mnemonic, bits, result)                   {amd_run_##mnemonic, ""},
#define AMD_SALU_OTHER(mnemonic, handler, mode)
#include "tests/sim/amdgcn/alu/amd_scalar.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].run == run) return strcmp(rows[i].scc, "scc") != 0;
    return false;
}

/* What of a branch is not written as an operand. */
static bool condition_defined(amd_wave *wave, const amd_op *op) {
    static const amd_operand scc = {.kind = AMD_OPERAND_SCC, .count = 1};
    const bool by_scc = op->mode == AMD_SCC0 || op->mode == AMD_SCC1,
               by_vcc = op->mode == AMD_VCCZ || op->mode == AMD_VCCNZ;
    if (op->run != amd_run_branch) return true;
    if (by_scc) return amd_undefined_none(wave, op, &scc, 0);
    const uint64_t undefined = scalar_read(wave->undefined->s, &vcc) & wave->all;
    return !by_vcc || !undefined || (amd_vcc(wave) & ~undefined) || amd_undefined_none(wave, op, &vcc, 0);
}

/* The result as it will be, of an instruction that reads and writes scalars alone. */
static uint64_t result_of(amd_wave *wave, const amd_op *op) {
    scalars kept;
    memcpy(kept.s, wave->s, sizeof kept.s);
    kept.scc = wave->scc;
    op->run(wave, op);
    const uint64_t result = scalar_read(wave->s, &op->operand[0]);
    memcpy(wave->s, kept.s, sizeof kept.s);
    wave->scc = kept.scc;
    return result;
}

/* EXEC has no undefined bits: which lanes are on decides everything. */
static bool exec_defined(amd_wave *wave, const amd_op *op) {
    amd_undefined *undefined = wave->undefined;
    const uint64_t lanes = scalar_read(undefined->s, &exec_64) & wave->all;
    if (lanes) amd_undefined_fault(wave, op, (uint32_t)__builtin_ctzll(lanes), &exec_64);
    undefined->s[AMD_EXEC] = undefined->s[AMD_EXEC + 1] = 0;
    return !lanes;
}

/* Of s_and_saveexec_b64 and the like: what s_and_b64 would make of EXEC. */
static amd_op as_written_to_exec(const amd_wave *wave, const amd_op *op) {
    const amd_operand *exec = wave->lanes == 32 ? &exec_32 : &exec_64;
    amd_op plain = *op;
    plain.operand[0] = plain.operand[2] = *exec;
    plain.operand_count = 3;
    return plain;
}

static bool scalar_step(amd_wave *wave, const amd_op *op, const rule *by, const amd_origin *from) {
    const bool saves = strstr(op->text, "_saveexec_") || strstr(op->text, "_wrexec_");
    const amd_op plain = saves ? as_written_to_exec(wave, op) : *op;
    const bool writes = writes_scc(op->run);
    if (by->use == USE_MASK)
        mask(wave, &plain, by);
    else if (!moved(wave, &plain, by, 1))
        return false;
    name_origin(wave, &plain, from, 1);
    if (!exec_defined(wave, op)) return false;
    if (saves) amd_undefined_set(wave, &op->operand[0], ~0ull, false);
    const uint64_t undefined = saves || !writes ? 0 : scalar_read(wave->undefined->s, &op->operand[0]);
    /* SCC is whether the result is not 0, which a bit that is defined may say. */
    if (writes) wave->undefined->scc = undefined && !(result_of(wave, op) & ~undefined);
    return true;
}

static bool strict(amd_wave *wave, const amd_op *op) {
    const bool scalar = op->class == AMD_CLASS_SCALAR, result = op->operand_count && !(scalar && reads_first(op));
    for (uint32_t i = result; i < op->operand_count; i++)
        if (!amd_undefined_none(wave, op, &op->operand[i], amd_exec(wave))) return false;
    if (scalar && !condition_defined(wave, op)) return false;
    if (result) amd_undefined_set(wave, &op->operand[0], amd_exec(wave), false);
    if (scalar && writes_scc(op->run)) wave->undefined->scc = false;
    return true;
}

bool amd_undefined_alu(amd_wave *wave, const amd_op *op) {
    const rule by = rule_of(op);
    if (by.use == USE_STRICT) return strict(wave, op);
    const amd_origin from = *origin_of(wave, op);
    if (op->class == AMD_CLASS_SCALAR) return scalar_step(wave, op, &by, &from);
    const uint32_t results = results_of(op);
    if (by.use == USE_MASK)
        mask(wave, op, &by);
    else if (!(by.use == USE_MOVE ? moved : spread)(wave, op, &by, results))
        return false;
    name_origin(wave, op, &from, results);
    return true;
}
