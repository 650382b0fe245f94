/* The ways to write an instruction of the vector ALU: encodings, modifiers of its operands and of its result, DPP and
 * SDWA; as text, and as what they mean. */
#ifndef KILN_TESTS_SIM_AMDGCN_VARIANTS_H
#define KILN_TESTS_SIM_AMDGCN_VARIANTS_H

#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_rows.h"

/* Where operands stand. */
enum { RESULT = 40, SOURCE = 2 /* and 4, 6 */, SCALAR_SOURCE = 4, MASK_IN = 10, MASK_OUT = 12 };

/* A row's types, apart. */
typedef struct variant_type {
    char letter; /* u, i, f, m; x: mix */
    int bits;
} variant_type;

enum { VARIANT_LITERAL = 0x40490fdb };

/* Any source may be a constant. An integer of 16 bits has no 0.5, but a pair of them has: the bits of an f32. */
enum {
    CONSTANT_NEGATIVE,
    CONSTANT_POSITIVE,
    CONSTANT_LITERAL, /* VARIANT_CONSTANT_BITS */
    CONSTANT_HALF,
    CONSTANT_MINUS_FOUR,
    VARIANT_CONSTANTS
};
static const uint32_t VARIANT_CONSTANT_BITS = 0x98765432;

/* What DPP makes of the lanes. */
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

typedef enum variant_kind {
    VARIANT_PLAIN,
    VARIANT_E32,
    VARIANT_E64,
    VARIANT_SIGNS,
    VARIANT_CLAMP,
    VARIANT_OMOD,
    VARIANT_ALL, /* signs, omod and clamp */
    VARIANT_HALVES,
    VARIANT_SCALAR,
    VARIANT_CONSTANT,
    VARIANT_DPP,
    VARIANT_E64_DPP,
    VARIANT_SDWA,
    VARIANT_KINDS
} variant_kind;

typedef struct variant {
    const amdgcn_row *row;
    variant_kind kind;
    variant_type type[1 + ROW_SOURCES]; /* the result's, the sources' */
    int sources;
    bool negate[ROW_SOURCES], absolute[ROW_SOURCES];
    bool half[ROW_SOURCES + 1];    /* op_sel; the last is the result's */
    bool half_high[ROW_SOURCES];   /* op_sel_hi */
    bool negate_high[ROW_SOURCES]; /* neg_hi */
    bool clamp;
    int omod;                  /* 0, 1: half, 2, 4 */
    int constant, constant_at; /* which, and which source it is */
    /* DPP. */
    dpp_kind dpp;
    unsigned dpp_argument;
    bool bound_control, fetch_inactive;
    unsigned row_mask, bank_mask;
    /* SDWA: 0 DWORD, 1 to 4 bytes, 5 and 6 words. */
    int select[2], result_select, unused; /* unused: 0 pad, 1 sext, 2 preserve */
    bool extend[ROW_SOURCES];
    bool in_vcc;   /* masks */
    bool maskless; /* a comparison into EXEC alone */
    char text[160];
} variant;

/* A variant of a row of a kind, with modifiers drawn at random; false if the row has nothing that the kind is about. */
bool variant_make(variant *v, const amdgcn_row *row, variant_kind kind, const char *processor, bool wave64,
                  uint64_t *random);

/* A variant of VARIANT_CONSTANT: a certain one of the constants in the place of a certain source; false if the row has
 * no such. */
bool variant_make_constant(variant *v, const amdgcn_row *row, int at, int constant, const char *processor, bool wave64,
                           uint64_t *random);

/* Changes registers as the instruction must: amdgcn_variant_meaning.c. */
void variant_expect(const variant *v, const amd_program *program, amdgcn_registers *registers);

/* Random operands with many edge values of the row's types. */
void variant_fill(const variant *v, amdgcn_registers *registers, uint64_t *random);

/* A floating-point type's format; whether a type's sources may have signs; whether a source is a pair of integers; the
 * registers that the result (0) or a source (1 and on) takes. */
const ref_format *variant_format(variant_type type);
bool variant_has_signs(variant_type type);
bool variant_is_pair_of_integers(const variant *v, variant_type type);
int variant_words(const variant *v, int operand);

/* A number below a limit; one of 64 bits with many edge values of an f16, f32, f64 or integer of a width. */
uint32_t draw(uint64_t *random, uint32_t limit);
uint64_t draw_value(variant_type type, uint64_t *random);

#endif
