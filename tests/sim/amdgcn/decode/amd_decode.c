/* From LLVM's text of one instruction to an op. */
#include "tests/sim/amdgcn/decode/amd_modifiers.h"
#include "tests/sim/amdgcn/matrix/amd_dot.h"
#include "tests/sim/amdgcn/memory/amd_memory.h"
#include "tests/sim/amdgcn/wave/amd_flow.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct row {
    const char *mnemonic;
    size_t length;
    amd_run run;
    uint8_t class;
    uint32_t mode;
} row;

static const row rows[] = {
#define AMD_OPCODE(mnemonic, handler, class, mode) \
    {#mnemonic, sizeof #mnemonic - 1, amd_run_##handler, AMD_CLASS_##class, mode},
#include "tests/sim/amdgcn/decode/amd_opcodes.def"
};

typedef struct suffix {
    const char *text;
    amd_encoding encoding;
} suffix;

static const suffix suffixes[] = {
    {"_e64_dpp", AMD_ENCODING_DPP}, {"_dpp", AMD_ENCODING_DPP}, {"_sdwa", AMD_ENCODING_SDWA},
    {"_e32", AMD_ENCODING_E32},     {"_e64", AMD_ENCODING_E64},
};

static const row *row_find(const char *mnemonic, size_t length) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].length == length && !memcmp(rows[i].mnemonic, mnemonic, length)) return &rows[i];
    }
    return NULL;
}

/* The row of a mnemonic with or without its suffix. A dual instruction's half is the plain instruction of its name. */
static bool mnemonic_decode(const char *mnemonic, size_t length, amd_op *op) {
    char name[64];
    bool dual = length > 7 && !strncmp(mnemonic, "v_dual_", 7);
    if (dual) {
        mnemonic += 5, length -= 5;
    }
    if (length >= sizeof name) return false;
    memcpy(name, mnemonic, length);
    name[length] = 0;
    if (dual) name[0] = 'v';
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && name[0] == 'v'; i++) {
        size_t cut = strlen(suffixes[i].text);
        if (length <= cut || strcmp(name + length - cut, suffixes[i].text) != 0) continue;
        op->encoding = (uint8_t)suffixes[i].encoding;
        length -= cut;
        break;
    }
    const row *found = row_find(name, length);
    if (!found) return false;
    op->run = found->run;
    op->class = found->class;
    op->mode = (uint16_t)found->mode;
    amd_unit_find(found->mnemonic, op);
    return true;
}

/* ---- Operands ---- */

typedef struct named_register {
    const char *name;
    uint8_t kind, index, count;
} named_register;

static const named_register named_registers[] = {
    {"vcc", AMD_OPERAND_SCALAR, AMD_VCC, 2},
    {"vcc_lo", AMD_OPERAND_SCALAR, AMD_VCC, 1},
    {"vcc_hi", AMD_OPERAND_SCALAR, AMD_VCC + 1, 1},
    {"exec", AMD_OPERAND_SCALAR, AMD_EXEC, 2},
    {"exec_lo", AMD_OPERAND_SCALAR, AMD_EXEC, 1},
    {"exec_hi", AMD_OPERAND_SCALAR, AMD_EXEC + 1, 1},
    {"m0", AMD_OPERAND_SCALAR, AMD_M0, 1},
    {"flat_scratch", AMD_OPERAND_SCALAR, AMD_FLAT_SCRATCH, 2},
    {"flat_scratch_lo", AMD_OPERAND_SCALAR, AMD_FLAT_SCRATCH, 1},
    {"flat_scratch_hi", AMD_OPERAND_SCALAR, AMD_FLAT_SCRATCH + 1, 1},
    {"null", AMD_OPERAND_NULL, 0, 0},
    {"off", AMD_OPERAND_NULL, 0, 0},
    {"scc", AMD_OPERAND_SCC, 0, 0},
    {"src_scc", AMD_OPERAND_SCC, 0, 0},
    {"vccz", AMD_OPERAND_VCCZ, 0, 0},
    {"src_vccz", AMD_OPERAND_VCCZ, 0, 0},
    {"execz", AMD_OPERAND_EXECZ, 0, 0},
    {"src_execz", AMD_OPERAND_EXECZ, 0, 0},
};

/* The ends of the two apertures in flat addresses: 4 GiB each. */
static bool aperture_parse(const char *text, amd_operand *operand) {
    static const struct {
        const char *name;
        uint64_t value;
    } apertures[] = {{"src_shared_base", (uint64_t)AMD_APERTURE_SHARED << 32},
                     {"src_shared_limit", (uint64_t)AMD_APERTURE_SHARED << 32 | 0xffffffff},
                     {"src_private_base", (uint64_t)AMD_APERTURE_PRIVATE << 32},
                     {"src_private_limit", (uint64_t)AMD_APERTURE_PRIVATE << 32 | 0xffffffff}};
    for (size_t i = 0; i < sizeof apertures / sizeof *apertures; i++) {
        if (strcmp(text, apertures[i].name) != 0) continue;
        operand->kind = AMD_OPERAND_CONSTANT;
        operand->value = apertures[i].value;
        operand->value_32 = (uint32_t)operand->value;
        return true;
    }
    return false;
}

/* "hwreg(HW_REG_MODE, 4, 2)": the register's number of ours; op->immediate has the bits. */
static bool hardware_register_parse(const char *text, amd_operand *operand) {
    static const char *const names[] = {
#define AMD_HWREG(name, readable, writable) [AMD_HWREG_##name] = "HW_REG_" #name,
#include "tests/sim/amdgcn/wave/amd_hwreg.def"
    };
    if (strncmp(text, "hwreg(", 6) != 0) return false;
    size_t length = strcspn(text + 6, ",)");
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) != length || memcmp(names[i], text + 6, length) != 0) continue;
        operand->kind = AMD_OPERAND_CONSTANT;
        operand->value = i;
        return true;
    }
    return false;
}

/* The messages with an answer that are simulated: the time, and the doorbell that a trap asks for. */
static bool message_parse(const char *text, amd_operand *operand) {
    operand->kind = AMD_OPERAND_CONSTANT;
    operand->value = !strcmp(text, "sendmsg(MSG_RTN_GET_DOORBELL)");
    return operand->value || !strcmp(text, "sendmsg(MSG_RTN_GET_REALTIME)") || !strncmp(text, "gpr_idx(", 8);
}

/* "12" or "[12:15]" behind a register's letter. */
static bool range_parse(const char *text, uint32_t *first, uint32_t *count) {
    char *end;
    bool several = *text == '[';
    if (!isdigit((unsigned char)text[several])) return false;
    *first = (uint32_t)strtoul(text + several, &end, 10);
    *count = 1;
    if (several && *end == ':') *count = (uint32_t)strtoul(end + 1, &end, 10) - *first + 1;
    return *end == (several ? ']' : 0) && *first < AMD_LANES * 4 && *count <= 32;
}

static bool register_parse(const char *text, amd_operand *operand) {
    static const struct {
        const char *prefix;
        uint8_t kind;
        uint16_t base, limit;
    } files[] = {{"ttmp", AMD_OPERAND_SCALAR, AMD_TTMP, AMD_TTMP + 16},
                 {"s", AMD_OPERAND_SCALAR, 0, AMD_SGPR_COUNT},
                 {"v", AMD_OPERAND_VECTOR, 0, AMD_ACCUMULATORS},
                 {"a", AMD_OPERAND_VECTOR, AMD_ACCUMULATORS, AMD_VECTORS}};
    for (size_t i = 0; i < sizeof named_registers / sizeof *named_registers; i++) {
        const named_register *named = &named_registers[i];
        if (strcmp(text, named->name) != 0) continue;
        operand->kind = named->kind;
        operand->index = named->index;
        operand->count = named->count;
        return true;
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        size_t length = strlen(files[i].prefix);
        uint32_t first, count;
        if (strncmp(text, files[i].prefix, length) || !range_parse(text + length, &first, &count)) continue;
        if (files[i].base + first + count > files[i].limit) return false;
        operand->kind = files[i].kind;
        operand->index = (uint16_t)(files[i].base + first);
        operand->count = (uint8_t)count;
        return true;
    }
    return false;
}

/* 0.5, 1, 2, 4, their negatives and 1/(2 pi), of which LLVM writes some digits. */
static bool real_parse(const char *text, amd_operand *operand) {
    char *end;
    double value = strtod(text, &end), size = value < 0 ? -value : value;
    if (*end) return false;
    operand->real = true;
    if (value > 0.1591549 && value < 0.1591550) {
        operand->value = 0x3fc45f306dc9c882;
        operand->value_32 = 0x3e22f983;
        operand->value_16 = 0x3118;
        return true;
    }
    float narrow = (float)value;
    memcpy(&operand->value, &value, sizeof value);
    memcpy(&operand->value_32, &narrow, sizeof narrow);
    int exponent = (int)(operand->value_32 >> 23 & 255) - 127;
    operand->value_16 = (uint16_t)((value < 0 ? 0x8000 : 0) | (exponent + 15) << 10);
    return size == 0.5 || size == 1 || size == 2 || size == 4;
}

static bool constant_parse(const char *text, amd_operand *operand) {
    char *end;
    operand->kind = AMD_OPERAND_CONSTANT;
    if (strchr(text, '.')) return real_parse(text, operand);
    operand->literal = !strncmp(text, "0x", 2);
    const int base = !strncmp(text, "-0x", 3) ? 16 : 10; /* an offset below 0 */
    operand->value = operand->literal ? strtoull(text, &end, 16) : (uint64_t)strtoll(text, &end, base);
    operand->value_32 = (uint32_t)operand->value;
    operand->value_16 = (uint16_t)operand->value;
    return *text && !*end;
}

/* "v1.l" and "v1.h": a register by one of its halves. */
static void half_parse(char *text, amd_operand *operand) {
    size_t length = strlen(text);
    if (length < 4 || text[0] != 'v' || !isdigit((unsigned char)text[1]) || text[length - 2] != '.') return;
    if (text[length - 1] != 'l' && text[length - 1] != 'h') return;
    operand->upper = text[length - 1] == 'h';
    text[length - 2] = 0;
}

static bool operand_parse(char *text, amd_operand *operand) {
    size_t length = strlen(text);
    *operand = (amd_operand){0};
    if (!strncmp(text, "sext(", 5) && text[length - 1] == ')') {
        operand->extend = true;
        text[length - 1] = 0;
        text += 5, length -= 6;
    }
    if (text[0] == '-' && !isdigit((unsigned char)text[1])) {
        operand->negate = true;
        text++, length--;
    } else if (!strncmp(text, "neg(", 4) && text[length - 1] == ')') {
        operand->negate = true;
        text[length - 1] = 0;
        text += 4, length -= 5;
    }
    if (text[0] == '|' && length > 1 && text[length - 1] == '|') {
        operand->absolute = true;
        text[length - 1] = 0;
        text++;
    }
    half_parse(text, operand);
    return register_parse(text, operand) || aperture_parse(text, operand) || hardware_register_parse(text, operand) ||
           message_parse(text, operand) || constant_parse(text, operand);
}

/* ---- Modifiers: words behind the operands ---- */

/* "[1,0,1]": bit 0 is the first. bits: how wide an element is. */
static bool list_parse(const char *text, uint32_t bits, uint32_t *out) {
    *out = 0;
    if (*text++ != '[') return false;
    for (uint32_t shift = 0; *text && *text != ']'; shift += bits) {
        char *end;
        *out |= (uint32_t)strtoul(text, &end, 0) << shift;
        if (end == text) return false;
        text = *end == ',' ? end + 1 : end;
    }
    return *text == ']';
}

static bool select_parse(const char *text, uint8_t *out) {
    static const char *const names[] = {"DWORD", "BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1"};
    for (uint8_t i = 0; i < 7; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = i;
        return true;
    }
    return false;
}

static const struct {
    const char *name;
    amd_dpp kind;
} dpp_names[] = {
    {"row_shl", AMD_DPP_ROW_SHL},
    {"row_shr", AMD_DPP_ROW_SHR},
    {"row_ror", AMD_DPP_ROW_ROR},
    {"wave_shl", AMD_DPP_WAVE_SHL},
    {"wave_rol", AMD_DPP_WAVE_ROL},
    {"wave_shr", AMD_DPP_WAVE_SHR},
    {"wave_ror", AMD_DPP_WAVE_ROR},
    {"row_mirror", AMD_DPP_ROW_MIRROR},
    {"row_half_mirror", AMD_DPP_ROW_HALF_MIRROR},
    {"row_bcast", AMD_DPP_ROW_BCAST},
    {"row_newbcast", AMD_DPP_ROW_NEWBCAST},
    {"row_share", AMD_DPP_ROW_SHARE},
    {"row_xmask", AMD_DPP_ROW_XMASK},
};

static bool dpp_parse(const char *name, const char *argument, amd_op *op) {
    uint32_t number = (uint32_t)strtoul(argument, NULL, 0);
    if (!strcmp(name, "quad_perm") || !strcmp(name, "dpp8")) {
        bool eight = name[0] == 'd';
        op->dpp = eight ? AMD_DPP_8 : AMD_DPP_QUAD_PERM;
        return list_parse(argument, eight ? 3 : 2, &op->dpp_argument);
    }
    for (size_t i = 0; i < sizeof dpp_names / sizeof *dpp_names; i++) {
        if (strcmp(name, dpp_names[i].name) != 0) continue;
        op->dpp = (uint8_t)dpp_names[i].kind;
        op->dpp_argument = number;
        return true;
    }
    return false;
}

/* The operand that SDWA's src0 or src1 means: the first source follows the results, of which a carrying instruction has
 * two, and of gfx10 a comparison into EXEC none. */
static amd_operand *sdwa_source(amd_op *op, uint32_t number) {
    bool carries = strstr(op->text, "_co_") != NULL;
    bool maskless = !strncmp(op->text, "v_cmpx_", 7) && op->operand_count == 2;
    return &op->operand[number + (maskless ? 0u : 1u) + (carries ? 1u : 0u)];
}

static bool mask_parse(const char *name, const char *argument, amd_op *op) {
    static const struct {
        const char *name;
        size_t offset;
    } masks[] = {{"op_sel", offsetof(amd_op, op_sel)},
                 {"op_sel_hi", offsetof(amd_op, op_sel_hi)},
                 {"neg_lo", offsetof(amd_op, neg_lo)},
                 {"neg_hi", offsetof(amd_op, neg_hi)},
                 {"neg", offsetof(amd_op, neg_lo)}};
    for (size_t i = 0; i < sizeof masks / sizeof *masks; i++) {
        uint32_t bits;
        if (strcmp(name, masks[i].name) != 0) continue;
        if (!list_parse(argument, 1, &bits)) return false;
        ((uint8_t *)op)[masks[i].offset] = (uint8_t)bits;
        op->has_op_sel_hi |= masks[i].offset == offsetof(amd_op, op_sel_hi);
        return true;
    }
    return false;
}

static bool number_modifier(const char *name, const char *argument, amd_op *op) {
    char *end;
    if (!strcmp(name, "offset") && !strncmp(argument, "swizzle(", 8)) return true; /* op->immediate has the pattern */
    long number = strtol(argument, &end, 0);
    if (*end) return false;
    if (!strcmp(name, "offset")) {
        op->offset = (int32_t)number;
    } else if (!strcmp(name, "offset0")) {
        op->offset = (int32_t)number;
    } else if (!strcmp(name, "offset1")) {
        op->offset1 = (int32_t)number;
    } else if (!strcmp(name, "row_mask")) {
        op->row_mask = (uint8_t)number;
    } else if (!strcmp(name, "bank_mask")) {
        op->bank_mask = (uint8_t)number;
    } else if (!strcmp(name, "bound_ctrl")) {
        op->bound_ctrl = true; /* written as 0 or as 1, it is on */
    } else if (!strcmp(name, "fi")) {
        op->fetch_inactive = number != 0;
    } else if (!strcmp(name, "cbsz")) {
        op->cbsz = (uint8_t)number;
    } else if (!strcmp(name, "abid")) {
        op->abid = (uint8_t)number;
    } else if (!strcmp(name, "blgp")) {
        op->blgp = (uint8_t)number;
    } else if (!strcmp(name, "byte_sel")) {
        op->byte_select = (uint8_t)number;
    } else if (!strcmp(name, "mul")) {
        op->omod = (uint8_t)number;
    } else if (!strcmp(name, "div")) {
        op->omod = 1;
    } else {
        return false;
    }
    return true;
}

static bool sdwa_modifier(const char *name, const char *argument, amd_op *op) {
    if (!strcmp(name, "dst_sel")) return select_parse(argument, &op->dst_select);
    if (!strcmp(name, "src0_sel")) return select_parse(argument, &sdwa_source(op, 0)->select);
    if (!strcmp(name, "src1_sel")) return select_parse(argument, &sdwa_source(op, 1)->select);
    if (strcmp(name, "dst_unused") != 0) return false;
    op->dst_unused = !strcmp(argument, "UNUSED_SEXT") ? 1 : !strcmp(argument, "UNUSED_PRESERVE") ? 2 : 0;
    return true;
}

/* Hints to caches, which change no result: memory is coherent here. An atomic with glc, sc0 or th:TH_ATOMIC_RETURN
 * gives the old value. */
static bool cache_modifier(const char *name, const char *argument, amd_op *op) {
    static const char *const hints[] = {"glc", "slc", "dlc", "sc0", "sc1", "nt", "scc"};
    if (!strcmp(name, "th") || !strcmp(name, "scope")) {
        op->glc |= strstr(argument, "RETURN") != NULL;
        return true;
    }
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++) {
        if (strcmp(name, hints[i]) != 0) continue;
        op->glc |= i == 0 || i == 3;
        return true;
    }
    return false;
}

/* A load into LDS and not into registers. */
static bool lds_modifier(amd_op *op) {
    if (op->run == amd_run_global_load)
        op->run = amd_run_global_load_lds;
    else if (op->run == amd_run_buffer_load)
        op->run = amd_run_buffer_load_lds;
    else
        return false;
    return true;
}

static bool modifier_parse(char *word, amd_op *op) {
    char *argument = strchr(word, ':');
    if (argument) *argument++ = 0;
    if (!strcmp(word, "clamp")) return op->clamp = true;
    if (!strcmp(word, "lds")) return lds_modifier(op);
    if (!strcmp(word, "offen")) return op->offen = true;
    if (!strcmp(word, "idxen")) return op->idxen = true;
    if (cache_modifier(word, argument ? argument : "", op)) return true;
    if (dpp_parse(word, argument ? argument : "", op)) return true;
    if (!argument) return false;
    return mask_parse(word, argument, op) || sdwa_modifier(word, argument, op) || number_modifier(word, argument, op);
}

/* ---- Instructions ---- */

/* These write their number as words; op->immediate has it from the encoding. */
static bool takes_words(const char *text) {
    static const char *const mnemonics[] = {"s_waitcnt ", "s_delay_alu ", "s_sendmsg ", "s_waitcnt_depctr ",
                                            "s_set_gpr_idx_mode "};
    for (size_t i = 0; i < sizeof mnemonics / sizeof *mnemonics; i++) {
        if (!strncmp(text, mnemonics[i], strlen(mnemonics[i]))) return true;
    }
    return false;
}

/* Splits at a comma or a blank outside of brackets; the end of the word gets a NUL. *separator is what stood there. */
static char *word_next(char **rest, char *separator) {
    char *begin = *rest + strspn(*rest, " ");
    int depth = 0;
    char *at = begin;
    for (; *at && (depth || (*at != ',' && *at != ' ')); at++)
        depth += (*at == '[' || *at == '(') - (*at == ']' || *at == ')');
    *separator = *at;
    *rest = *at ? at + 1 : at;
    *at = 0;
    return begin;
}

/* Why an instruction is not simulated, with a colon in front; "" if it is of no family that is known. */
static const char *refusal_of(const char *text) {
#define AMD_REFUSED(beginning, why) \
    if (!strncmp(text, beginning, sizeof beginning - 1)) return ": " why;
#include "tests/sim/amdgcn/decode/amd_refused.def"
#undef AMD_REFUSED
    return "";
}

/* Decodes one instruction, or a half of a dual one. */
static bool half_decode(const char *text, amd_op *op, char *why, size_t why_size) {
    char copy[512];
    size_t length = strcspn(text, " ");
    const char *wide = strstr(text, "_i64");
    bool wide_signed = wide && wide < text + length;
    op->text = text;
    op->row_mask = op->bank_mask = 0xf;
    op->op_sel_hi = 0xff;
    op->target = AMD_NO_OP;
    if (!mnemonic_decode(text, length, op)) {
        snprintf(why, why_size, "%.*s is not simulated%s", (int)length, text, refusal_of(text));
        return false;
    }
    if (takes_words(text)) return true;
    snprintf(copy, sizeof copy, "%s", text + length);
    char *rest = copy, separator = ',';
    while (rest[strspn(rest, " ")]) {
        bool place = separator == ',' && op->operand_count < AMD_OPERANDS;
        char *word = word_next(&rest, &separator);
        amd_operand *operand = &op->operand[op->operand_count];
        bool parsed = place && operand_parse(word, operand);
        if (parsed && operand->literal && wide_signed) operand->value = (uint64_t)(int32_t)operand->value_32;
        op->operand_count += parsed;
        if (!parsed && (!place || !op->operand_count)) parsed = modifier_parse(word, op);
        if (!parsed) {
            snprintf(why, why_size, "\"%s\" in \"%s\" is not simulated", word, text);
            return false;
        }
    }
    const char *odd = amd_modifiers_check(op);
    if (odd) snprintf(why, why_size, "\"%s\" in \"%s\" is not simulated", odd, text);
    return !odd;
}

bool amd_decode(const char *text, amd_op *op, amd_op *second, char *why, size_t why_size) {
    const char *other = strstr(text, " :: ");
    if (!other) return half_decode(text, op, why, why_size);
    char first[256];
    snprintf(first, sizeof first, "%.*s", (int)(other - text), text);
    if (!half_decode(first, op, why, why_size) || !half_decode(other + 4, second, why, why_size)) return false;
    op->text = text;
    op->dual = second;
    return true;
}
