#include "tests/sim/core/sim_float.h"
#include "tests/sim/tests/recorded/truth.h"
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* ---- The instructions whose results stand in an output ---- */

typedef enum bound_kind { ULP, RELATIVE, ABSOLUTE, ANGLE, LOGARITHM, GROSS } bound_kind;

typedef struct bound {
    const char *opcode, *type;
    bound_kind kind;
    double most;
} bound;

/* What the ISA states, as the interpreter has it. */
static const bound bounds[] = {
#define PTX_APPROXIMATION(opcode, type, kind, most) {#opcode, #type, kind, most},
#include "tests/sim/ptx/alu/ptx_approximations.def"
#undef PTX_APPROXIMATION
};

enum { OUTPUTS = 32, NAME = 64 };

typedef struct outputs {
    char names[OUTPUTS][NAME];
    uint32_t count; /* 1 without a list: all of the buffer is one output */
} outputs;

/* "// ... outputs in turn: ex2.approx.f32, lg2.approx.f32 d, in0". */
static outputs outputs_of(const char *text) {
    outputs found = {.count = 0};
    const char *c = strstr(text, "utputs in turn: "), *end = c ? c + strcspn(c, "\n") : NULL;
    if (c) c += strlen("utputs in turn: ");
    while (c && c < end && found.count < OUTPUTS) {
        size_t length = strcspn(c, ",; \n"), listed = strcspn(c, ",;\n");
        snprintf(found.names[found.count++], NAME, "%.*s", (int)length, c);
        if (c[length] == ' ' && c[listed] == ',') listed += strcspn(c + listed, ";\n"); /* operands: "d, in0, in1;" */
        c += listed;
        c += strspn(c, ",; ");
    }
    const char *mma = strstr(text, "mma.sync.");
    if (!found.count && mma) snprintf(found.names[0], NAME, "%.*s", (int)strcspn(mma, " "), mma);
    if (!found.count) found.count = 1;
    return found;
}

/* The type of the result: its width in an array, the elements of that, and its format. */
typedef struct number_type {
    const char *name;
    uint32_t bits;
    sim_format format; /* of 16 and 32 bits */
} number_type;

static const number_type *type_of(const char *name) {
    static const number_type types[] = {{"bf16x2", 16, SIM_bf16}, {"f16x2", 16, SIM_f16}, {"bf16", 16, SIM_bf16},
                                        {"f16", 16, SIM_f16},     {"f64", 64, SIM_f32},   {"f32", 32, SIM_f32}};
    const char *dot = strchr(name, '.');
    for (; dot; dot = strchr(dot + 1, '.'))
        for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
            size_t length = strlen(types[i].name);
            if (strncmp(dot + 1, types[i].name, length) == 0 && strchr(".", dot[1 + length])) return &types[i];
        }
    return NULL;
}

static const bound *bound_of(const char *name, const number_type *type) {
    bool approximate = strstr(name, ".approx") || strstr(name, ".full");
    for (size_t i = 0; approximate && i < sizeof bounds / sizeof *bounds; i++) {
        size_t opcode = strlen(bounds[i].opcode);
        if (strncmp(name, bounds[i].opcode, opcode) != 0 || name[opcode] != '.') continue;
        if (strncmp(type->name, bounds[i].type, strlen(bounds[i].type)) != 0) continue;
        if (bounds[i].kind == GROSS && !strstr(name, ".ftz")) continue;
        return &bounds[i];
    }
    return NULL;
}

/* ---- Two results ---- */

static uint64_t element(const uint8_t *array, uint64_t i, uint32_t bits) {
    uint64_t value = 0;
    memcpy(&value, array + i * bits / 8, bits / 8);
    return value;
}

static double number(const number_type *type, uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return type->bits == 64 ? value : sim_decode(type->format, (uint32_t)bits);
}

/* An infinity stands for the number behind the greatest. */
static double bounded(const number_type *type, double value) {
    if (!isinf(value) || type->bits == 64) return value;
    return copysign(type->format == SIM_f16 ? 0x1p16 : 0x1p128, value);
}

/* Whether both may be the instruction's result, each by its own error; operand is its first. */
static bool near(const bound *b, const number_type *type, double operand, double x, double y) {
    x = bounded(type, x);
    y = bounded(type, y);
    double apart = fabs(x - y), large = fmax(fabs(x), fabs(y));
    switch (b->kind) {
    case ULP:
        return apart <= 2 * b->most * ldexp(1, (large < 0x1p-126 ? -126 : ilogb(large)) - 23);
    case RELATIVE: /* and a subnormal one is rounded */
        return apart <= 2 * b->most * large + (type->bits == 16 ? sim_decode(type->format, 1) : 0);
    case ABSOLUTE:
        return apart <= 2 * b->most;
    case ANGLE: /* 2^-20.5 and 2^-14.7, and nothing is said of larger ones */
        return apart <= (fabs(operand) <= 2 * M_PI ? 2 * 0x1.6a09e6p-21 : 2 * 0x1.3b2c48p-15) ||
               fabs(operand) > 100 * M_PI;
    case LOGARITHM:
        return apart <= 2 * b->most * (operand > 0.5 && operand < 2 ? 1 : large);
    default:
        return type->bits == 64 && apart <= 2 * b->most * large;
    }
}

void truth_compare_results(const char *name, const uint8_t *operands, const uint8_t *wanted, const uint8_t *got,
                           uint64_t size, truth_verdict *verdict) {
    const number_type *type = type_of(name);
    const bound *b = type ? bound_of(name, type) : NULL;
    uint32_t bits = type ? type->bits : 32;
    for (uint64_t i = 0; i < size * 8 / bits && !*verdict->wrong; i++) {
        uint64_t one = element(wanted, i, bits), other = element(got, i, bits);
        if (one == other) continue;
        /* Which NaN an instruction of f64 gives is left open. */
        if (bits == 64 && isnan(number(type, one)) && isnan(number(type, other))) continue;
        if (b && near(b, type, number(type, element(operands, i, bits)), number(type, one), number(type, other)))
            verdict->within++;
        else
            snprintf(verdict->wrong, sizeof verdict->wrong, "%s, element %llu: 0x%llx, recorded 0x%llx", name,
                     (unsigned long long)i, (unsigned long long)other, (unsigned long long)one);
    }
    if (size * 8 % bits && !*verdict->wrong && memcmp(wanted, got, size) != 0)
        snprintf(verdict->wrong, sizeof verdict->wrong, "the last bytes differ");
}

void truth_compare(const char *text, const uint8_t *operands, const uint8_t *recorded, const uint8_t *simulated,
                   uint64_t size, truth_verdict *verdict) {
    const outputs all = outputs_of(text);
    uint64_t each = size / all.count;
    for (uint32_t output = 0; output < all.count; output++)
        truth_compare_results(all.names[output], operands, recorded + output * each, simulated + output * each, each,
                              verdict);
}
