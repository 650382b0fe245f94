/* Writes docs/simulated-instructions.md: what the simulators do with each instruction, from the lists that they decode
 * by.
 *
 * AMD's instruction sets are those of LLVM's disassembler: every opcode of every encoding is asked for its name, on
 * each processor. Exit status 3 if the disassembler is not here. */
#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- PTX --------------------------------------------------------------------------------------------------------- */

typedef struct approximation {
    const char *opcode, *type, *kind, *bound;
} approximation;

static const approximation approximations[] = {
#define PTX_APPROXIMATION(opcode, type, kind, bound) {#opcode, #type, #kind, #bound},
#include "tests/sim/ptx/alu/ptx_approximations.def"
#undef PTX_APPROXIMATION
};

static const char *const ptx_opcodes[] = {
#define PTX_OPCODE(opcode, family) #opcode,
#include "tests/sim/ptx/decode/ptx_opcodes.def"
#undef PTX_OPCODE
};

typedef struct refusal {
    const char *name, *why;
} refusal;

static const refusal ptx_refusals[] = {
#define PTX_REFUSED(name, why) {name, why},
#include "tests/sim/ptx/decode/ptx_refused.def"
#undef PTX_REFUSED
};

enum {
    APPROXIMATIONS = sizeof approximations / sizeof *approximations,
    PTX_OPCODES = sizeof ptx_opcodes / sizeof *ptx_opcodes,
    PTX_REFUSALS = sizeof ptx_refusals / sizeof *ptx_refusals
};

static void bound_print(const approximation *a) {
    const double bound = strtod(a->bound, NULL);
    printf("`.%s` within ", a->type);
    if (!strcmp(a->kind, "ULP"))
        printf("%g ulp", bound);
    else if (!strcmp(a->kind, "ANGLE"))
        printf("2^-20.5 in [-2 pi, 2 pi], else 2^-14.7");
    else
        printf("%.3g %s", bound,
               !strcmp(a->kind, "ABSOLUTE")    ? "absolute"
               : !strcmp(a->kind, "LOGARITHM") ? "absolute in (0.5, 2), else relative"
               : !strcmp(a->kind, "GROSS")     ? "relative with `.ftz`"
                                               : "relative");
}

static bool is_matrix(const char *opcode) {
    return !strcmp(opcode, "mma") || !strcmp(opcode, "wmma") || !strcmp(opcode, "wgmma");
}

static void ptx_row(const char *opcode) {
    bool bounded = false;
    printf("| `%s` | ", opcode);
    for (size_t i = 0; i < APPROXIMATIONS; i++) {
        if (strcmp(approximations[i].opcode, opcode) != 0) continue;
        printf("%s", bounded ? "; " : "exact; where approximate: ");
        bound_print(&approximations[i]);
        bounded = true;
    }
    if (!bounded) printf("exact%s", is_matrix(opcode) ? "; sums of floating-point products: see above" : "");
    printf(" |\n");
}

typedef struct matrix_form {
    const char *instruction, *layouts, *d, *a, *b, *c, *takes;
    int m, n, k;
    double target, version;
} matrix_form;

#define scaled_MXF4_X2     "`.kind::mxf4.block_scale`, two scales"
#define scaled_MXF4NVF4_X2 "`.kind::mxf4nvf4.block_scale.scale_vec::2X`, two scales"
#define scaled_MXF4NVF4_X4 "`.kind::mxf4nvf4.block_scale.scale_vec::4X`, four scales"
#define scaled_MXF8F6F4_X1 "`.kind::mxf8f6f4.block_scale`, a scale"

static const matrix_form matrix_forms[] = {
#define PTX_MMA(m, n, k, layouts, d, a, b, c, takes, target, version) \
    {"mma", #layouts, #d, #a, #b, #c, #takes, m, n, k, target, (version) / 10.0},
#define PTX_WMMA(m, n, k, layouts, d, type, c, takes, registers_a, registers_b, target, version) \
    {"wmma", #layouts, #d, #type, #type, #c, #takes, m, n, k, target, (version) / 10.0},
#define PTX_MMA_SCALED(m, n, k, kind, vector, a, b, scale, version) \
    {"mma", "ROW_COLUMN", "f32", #a, #b, "f32", scaled_##kind##_##vector " of " #scale, m, n, k, 120, (version) / 10.0},
#include "tests/sim/ptx/matrix/ptx_matrix_forms.def"
#undef PTX_MMA
#undef PTX_WMMA
#undef PTX_MMA_SCALED
};

/* "f16", or "s8 or u8". */
static const char *either(const char *one, const char *other, char text[32]) {
    snprintf(text, 32, strcmp(one, other) != 0 ? "%s or %s" : "%s", one, other);
    return text;
}

static const char *taken(const char *takes) {
    return !strcmp(takes, "SATFINITE")  ? "`.satfinite`"
           : !strcmp(takes, "ROUNDING") ? "a rounding"
           : !strcmp(takes, "XOR")      ? "`.xor.popc`"
           : !strcmp(takes, "AND")      ? "`.and.popc`"
           : !strcmp(takes, "NOTHING")  ? ""
                                        : takes; /* of scales */
}

static void matrix_form_print(const matrix_form *f) {
    bool wmma = !strcmp(f->instruction, "wmma");
    char multiplicands[32], d[32], c[32];
    printf("| %s | m%dn%dk%d | %s | %s | %s | %s | %s | sm_%g%s | %.1f |\n", f->instruction, f->m, f->n, f->k,
           strcmp(f->layouts, "ANY") != 0 ? "row, col" : "any", either(f->a, f->b, multiplicands),
           either(f->d, wmma ? f->c : f->d, d), either(wmma ? f->d : f->c, f->c, c), taken(f->takes), f->target,
           strstr(f->takes, "block_scale") ? "a, sm_120f" : "", f->version);
}

static void matrix_forms_print(void) {
    printf(
        "\n### Matrices\n\n"
        "The forms of `mma` and `wmma.mma`, whose matrices `wmma.load` and `wmma.store` move, and the target and PTX "
        "version\nfrom which on they are taken:\n\n"
        "| | shape | layouts | A, B | D | C | with | from | PTX |\n|---|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof matrix_forms / sizeof *matrix_forms; i++)
        matrix_form_print(&matrix_forms[i]);
}

static void ptx_print(void) {
    printf("## PTX\n\n"
           "| instruction | result |\n|---|---|\n");
    for (size_t i = 0; i < PTX_OPCODES; i++)
        ptx_row(ptx_opcodes[i]);
    for (size_t i = 0; i < PTX_REFUSALS; i++)
        printf("| `%s` | refused: %s |\n", ptx_refusals[i].name, ptx_refusals[i].why);
    matrix_forms_print();
}

/* ---- AMD: the instruction sets ----------------------------------------------------------------------------------- */

/* The first processor of each instruction set, and those that have the same. */
static const struct {
    const char *processor, *same;
} sets[] = {
    {"gfx906", ""},         {"gfx90a", ""},         {"gfx942", ""},         {"gfx1010", ""},
    {"gfx1030", "gfx1032"}, {"gfx1100", "gfx1102"}, {"gfx1201", "gfx1200"},
};
enum { SETS = sizeof sets / sizeof *sets, NAMES = 8192, NAME_SIZE = 64, TEXT_SIZE = 512 };

typedef struct instruction {
    char name[NAME_SIZE];
    uint32_t sets; /* a bit for each that has it */
} instruction;

static instruction instructions[NAMES];
static size_t instruction_count;

static instruction *instruction_of(const char *name) {
    for (size_t i = 0; i < instruction_count; i++)
        if (!strcmp(instructions[i].name, name)) return &instructions[i];
    if (instruction_count == NAMES) {
        fprintf(stderr, "more than %d instructions\n", NAMES);
        exit(1);
    }
    instruction *added = &instructions[instruction_count++];
    snprintf(added->name, sizeof added->name, "%s", name);
    return added;
}

/* The name without what says how it is encoded; "" for the dual instructions, whose halves have names of their own. */
static void name_of(const char *text, char name[NAME_SIZE]) {
    static const char *const suffixes[] = {"_e64_dpp", "_dpp", "_sdwa", "_e32", "_e64"};
    snprintf(name, NAME_SIZE, "%.*s", (int)strcspn(text, " "), text);
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes && name[0] == 'v'; i++) {
        size_t cut = strlen(suffixes[i]);
        if (length <= cut || strcmp(name + length - cut, suffixes[i]) != 0) continue;
        name[length - cut] = 0;
        break;
    }
    if (!strncmp(name, "v_dual_", 7)) name[0] = 0;
}

/* Asks for the instruction that begins with a word; the second word makes registers of the sources, or zeros. */
static void ask(amd_llvm *llvm, uint32_t word, uint32_t set, char last[NAME_SIZE]) {
    static const uint32_t seconds[] = {0x04020100, 0};
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
        const uint32_t words[4] = {word, seconds[i], 0, 0};
        char text[TEXT_SIZE], name[NAME_SIZE];
        size_t size = amd_llvm_text(llvm, (const uint8_t *)words, sizeof words, 0, text, sizeof text);
        if (!size) continue;
        name_of(text, name);
        if (name[0] && strcmp(name, last) != 0) {
            instruction_of(name)->sets |= 1u << set;
            memcpy(last, name, NAME_SIZE);
        }
        if (size == sizeof word) return;
    }
}

/* Most opcodes stand in the upper half of the first word, with a few bits at the top of the lower half; those of SOP1
 * and VOP1 in bits 8 to 16. */
static void set_list(uint32_t set) {
    amd_llvm *llvm = amd_llvm_open(sets[set].processor, true);
    char last[NAME_SIZE] = "";
    for (uint32_t upper = 0; llvm && upper < 1u << 16; upper++) {
        bool low = upper >> 7 == 0x17d || upper >> 9 == 0x3f;
        for (uint32_t lower = 0; lower < 1u << 16; lower += low ? 1u << 8 : 1u << 14)
            ask(llvm, upper << 16 | lower, set, last);
    }
    amd_llvm_close(llvm);
}

/* ---- AMD: what is done with them --------------------------------------------------------------------------------- */

static const char *const amd_mnemonics[] = {
#define AMD_OPCODE(mnemonic, handler, class, mode) #mnemonic,
#include "tests/sim/amdgcn/decode/amd_opcodes.def"
};

static const approximation amd_approximations[] = {
#define AMD_APPROXIMATE(mnemonic, type, function, unit, bound)        {#mnemonic, #type, #unit, #bound},
#define AMD_APPROXIMATE_SCALAR(mnemonic, type, function, unit, bound) {#mnemonic, #type, #unit, #bound},
#include "tests/sim/amdgcn/alu/amd_approximations.def"
#undef AMD_APPROXIMATE
#undef AMD_APPROXIMATE_SCALAR
};

static const refusal amd_refusals[] = {
#define AMD_REFUSED(beginning, why) {beginning, why},
#include "tests/sim/amdgcn/decode/amd_refused.def"
#undef AMD_REFUSED
};

static bool is_simulated(const char *name) {
    for (size_t i = 0; i < sizeof amd_mnemonics / sizeof *amd_mnemonics; i++)
        if (!strcmp(amd_mnemonics[i], name)) return true;
    return false;
}

/* The family that an instruction is refused with, or NULL. */
static const refusal *family_of(const char *name) {
    for (size_t i = 0; i < sizeof amd_refusals / sizeof *amd_refusals; i++)
        if (!strncmp(name, amd_refusals[i].name, strlen(amd_refusals[i].name))) return &amd_refusals[i];
    return NULL;
}

static void sets_print(uint32_t having) {
    if (having == (1u << SETS) - 1) {
        printf("all");
        return;
    }
    for (uint32_t set = 0, any = 0; set < SETS; set++) {
        if (!(having >> set & 1)) continue;
        printf("%s%s", any ? " " : "", sets[set].processor);
        any = 1;
    }
}

static void result_print(const char *name) {
    for (size_t i = 0; i < sizeof amd_approximations / sizeof *amd_approximations; i++) {
        const approximation *a = &amd_approximations[i];
        if (strcmp(a->opcode, name) != 0) continue;
        bool relative = !strcmp(a->kind, "AMD_ULP");
        printf("within %g %s", strtod(a->bound, NULL),
               relative ? "ulp" : "absolute, of which the documents say nothing");
        return;
    }
    bool matrix = !strncmp(name, "v_mfma_f", 8) || !strncmp(name, "v_wmma_f", 8) || !strncmp(name, "v_wmma_bf", 9);
    printf("%s", !is_simulated(name) ? "refused" : matrix ? "exact; sums of products: see above" : "exact");
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const instruction *)a)->name, ((const instruction *)b)->name);
}

static void amd_print(void) {
    for (uint32_t set = 0; set < SETS; set++)
        set_list(set);
    qsort(instructions, instruction_count, sizeof *instructions, by_name);
    printf(
        "\n## AMD\n\n"
        "Every instruction of the targets' sets, as LLVM 19's disassembler knows them. A dual instruction is its two\n"
        "halves.");
    for (uint32_t set = 0; set < SETS; set++)
        if (*sets[set].same) printf(" %s is as %s.", sets[set].same, sets[set].processor);
    printf("\n\n| instruction | targets | result |\n|---|---|---|\n");
    for (size_t i = 0; i < instruction_count; i++) {
        const char *name = instructions[i].name;
        if (!is_simulated(name) && family_of(name)) continue;
        printf("| `%s` | ", name);
        sets_print(instructions[i].sets);
        printf(" | ");
        result_print(name);
        printf(" |\n");
    }
    for (size_t f = 0; f < sizeof amd_refusals / sizeof *amd_refusals; f++) {
        uint32_t having = 0;
        size_t count = 0;
        for (size_t i = 0; i < instruction_count; i++) {
            if (is_simulated(instructions[i].name) || family_of(instructions[i].name) != &amd_refusals[f]) continue;
            having |= instructions[i].sets;
            count++;
        }
        if (!count) continue;
        printf("| `%s`..., %zu instructions | ", amd_refusals[f].name, count);
        sets_print(having);
        printf(" | refused: %s |\n", amd_refusals[f].why);
    }
}

int main(void) {
    const char *absent;
    if (!amd_llvm_present(&absent)) {
        fprintf(stderr, "%s\n", absent);
        return 3;
    }
    printf("# Simulated instructions\n\n"
           "What the [simulated devices](simulators.md) do with each instruction. Written by `make docs-instructions` "
           "from the\n"
           "lists that the simulators decode by; a test says when it is stale.\n\n"
           "- **exact**: the result has the bits that the vendor's document prescribes, tested against references of "
           "their own.\n"
           "- **within a bound**: the vendor promises no bits. The precise result is moved within the documented bound "
           "by the\n"
           "  seed (PTX: \"PTX ISA\", the instruction's own section; AMD: the ISA documents).\n"
           "- Vendors do not say how matrix units add floating-point products. `KILN_SIM_MATRIX` chooses: exactly, in\n"
           "  sequence, with what is shifted out cut off, or as was recorded on an H100.\n"
           "- **refused**: a module that has the instruction is refused when it is loaded, by name and place.\n\n");
    ptx_print();
    amd_print();
    return 0;
}
