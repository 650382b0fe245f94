/* Matrix instructions as data: amd_matrix.def, and what follows from it. */
#ifndef KILN_TESTS_SIM_AMD_MATRIX_H
#define KILN_TESTS_SIM_AMD_MATRIX_H

#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/core/sim_float.h"

/* AMD_MATRIX_TYPE(name, bits in a register, kind, format of core). FLOAT: the format; xf32: f32 of which 10 bits of
 * mantissa count. SIGNED, UNSIGNED integers; iu is unsigned unless neg_lo says signed. */
#define AMD_MATRIX_TYPES(AMD_MATRIX_TYPE)         \
    AMD_MATRIX_TYPE(f64, 64, DOUBLE, f32)         \
    AMD_MATRIX_TYPE(f32, 32, FLOAT, f32)          \
    AMD_MATRIX_TYPE(xf32, 32, FLOAT, tf32)        \
    AMD_MATRIX_TYPE(f16, 16, FLOAT, f16)          \
    AMD_MATRIX_TYPE(bf16, 16, FLOAT, bf16)        \
    AMD_MATRIX_TYPE(e4m3, 8, FLOAT, e4m3)         \
    AMD_MATRIX_TYPE(e5m2, 8, FLOAT, e5m2)         \
    AMD_MATRIX_TYPE(e4m3fnuz, 8, FLOAT, e4m3fnuz) \
    AMD_MATRIX_TYPE(e5m2fnuz, 8, FLOAT, e5m2fnuz) \
    AMD_MATRIX_TYPE(i4, 4, SIGNED, f32)           \
    AMD_MATRIX_TYPE(u4, 4, UNSIGNED, f32)         \
    AMD_MATRIX_TYPE(i8, 8, SIGNED, f32)           \
    AMD_MATRIX_TYPE(u8, 8, UNSIGNED, f32)         \
    AMD_MATRIX_TYPE(i16, 16, SIGNED, f32)         \
    AMD_MATRIX_TYPE(u16, 16, UNSIGNED, f32)       \
    AMD_MATRIX_TYPE(iu8, 8, UNSIGNED, f32)        \
    AMD_MATRIX_TYPE(iu4, 4, UNSIGNED, f32)        \
    AMD_MATRIX_TYPE(i32, 32, SIGNED, f32)         \
    AMD_MATRIX_TYPE(u32, 32, UNSIGNED, f32)

typedef enum amd_matrix_type {
#define AMD_MATRIX_TYPE_ENUM(name, bits, kind, format) AMD_MATRIX_##name,
    AMD_MATRIX_TYPES(AMD_MATRIX_TYPE_ENUM)
#undef AMD_MATRIX_TYPE_ENUM
} amd_matrix_type;

typedef enum amd_matrix_kind {
    AMD_MATRIX_FLOAT,
    AMD_MATRIX_DOUBLE,
    AMD_MATRIX_SIGNED,
    AMD_MATRIX_UNSIGNED
} amd_matrix_kind;

typedef struct amd_matrix_type_facts {
    uint8_t bits, kind, format; /* amd_matrix_kind, sim_format */
} amd_matrix_type_facts;

extern const amd_matrix_type_facts amd_matrix_types[];

/* The modifiers that mean something to an instruction; any other is refused when it is loaded. */
typedef enum amd_matrix_modifiers {
    AMD_MATRIX_MODIFIERS_NONE,
    AMD_MATRIX_MODIFIERS_BLGP,
    AMD_MATRIX_MODIFIERS_CBSZ_BLGP,
    AMD_MATRIX_MODIFIERS_NEG,    /* MFMA: neg of A, B and C; WMMA: neg_lo and neg_hi */
    AMD_MATRIX_MODIFIERS_NEG_C,  /* neg_lo and neg_hi of C */
    AMD_MATRIX_MODIFIERS_SIGNED, /* neg_lo of A and B, clamp */
} amd_matrix_modifiers;

typedef enum amd_layout {
#define AMD_LAYOUT(name, lanes, elements) AMD_LAYOUT_##name,
#define AMD_MFMA(mnemonic, rows, k, blocks, a, b, d, in, out, modifiers, passes)
#define AMD_WMMA(mnemonic, k, a, b, d, in_11, in_12, modifiers)
#include "tests/sim/amdgcn/matrix/amd_matrix.def"
#undef AMD_LAYOUT
#undef AMD_MFMA
#undef AMD_WMMA
} amd_layout;

/* One instruction may have several layouts. */
typedef enum amd_variant {
    AMD_VARIANT_9,
    AMD_VARIANT_11,
    AMD_VARIANT_11_W64,
    AMD_VARIANT_12,
    AMD_VARIANT_12_W64
} amd_variant;
enum { AMD_VARIANTS = 5 };

typedef struct amd_matrix {
    const char *mnemonic;
    uint8_t rows, k, blocks; /* as many columns as rows */
    uint8_t a, b, d;         /* amd_matrix_type; C is of D's */
    uint8_t modifiers;
    uint8_t passes;
    uint8_t in[AMD_VARIANTS], out[AMD_VARIANTS]; /* amd_layout; none: the target does not have it */
} amd_matrix;

/* The rows; op->mode is an index. */
enum {
#define AMD_LAYOUT(name, lanes, elements)
#define AMD_MFMA(mnemonic, rows, k, blocks, a, b, d, in, out, modifiers, passes) AMD_MATRIX_ROW_##mnemonic,
#define AMD_WMMA(mnemonic, k, a, b, d, in_11, in_12, modifiers)                  AMD_MATRIX_ROW_##mnemonic,
#include "tests/sim/amdgcn/matrix/amd_matrix.def"
#undef AMD_LAYOUT
#undef AMD_MFMA
#undef AMD_WMMA
    AMD_MATRIX_ROWS
};
extern const amd_matrix amd_matrices[AMD_MATRIX_ROWS];

amd_variant amd_variant_of(const amd_target *target, bool wave32);

/* ---- Layouts ---- */

/* A layout, computed: the place of an element is the or of what its coordinates contribute. */
enum { AMD_COORDINATE_ROW, AMD_COORDINATE_OTHER, AMD_COORDINATE_BLOCK, AMD_COORDINATES, AMD_COORDINATE_MAX = 32 };
typedef struct amd_places {
    uint8_t lane[AMD_COORDINATES][AMD_COORDINATE_MAX];
    uint8_t element[AMD_COORDINATES][AMD_COORDINATE_MAX];
    uint8_t elements; /* that a lane holds */
    uint8_t same;     /* bits of lanes that differ in nothing else */
} amd_places;

void amd_places_of(amd_layout layout, amd_places *out_places);

/* Registers of A or B, and of C or D. */
uint32_t amd_matrix_input_registers(const amd_matrix *matrix, amd_variant variant, amd_matrix_type type);
uint32_t amd_matrix_output_registers(const amd_matrix *matrix, amd_variant variant);

/* gfx11 keeps one 16-bit result in each register, in the half that op_sel names. */
static inline bool amd_matrix_halves(const amd_matrix *matrix, amd_variant variant) {
    bool gfx11 = variant == AMD_VARIANT_11 || variant == AMD_VARIANT_11_W64;
    return gfx11 && amd_matrix_types[matrix->d].bits == 16;
}

/* ---- Loading ---- */

/* False with a reason if a matrix instruction breaks a rule on its registers, or has a modifier that is not simulated.
 */
bool amd_matrix_check(const amd_target *target, bool wave32, const amd_op *op, char *why, size_t why_size);

#endif
