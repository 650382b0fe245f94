/* Matrix instructions: mma, wmma, ldmatrix, stmatrix, movmatrix. A warp executes one as a whole, and its matrices are
 * spread over the registers of all lanes.
 *
 *   ptx_matrix_fragment.c  where the elements of a matrix lie, and how they get there and back (ptx_fragments.def)
 *   ptx_matrix_form.c      which forms there are, and what the decoders share (ptx_matrix_forms.def)
 *   ptx_matrix_multiply.c  d = a b + c, for mma and wmma.mma
 *   ptx_matrix_scaled.c    the same of mma whose matrices have scales
 *   ptx_matrix_sum.c       the sums of floating-point products (ptx_matrix_units.def)
 *   ptx_matrix_warp.c      wmma.load and wmma.store
 *   ptx_matrix_move.c      ldmatrix, stmatrix, movmatrix */
#ifndef KILN_TESTS_SIM_PTX_MATRIX_H
#define KILN_TESTS_SIM_PTX_MATRIX_H

#include "tests/sim/core/sim_float.h"
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_warp.h"

/* C stands for the accumulators C and D, X for the 8x8 matrices that ldmatrix, stmatrix and movmatrix move. */
typedef enum ptx_matrix_name { PTX_MATRIX_A, PTX_MATRIX_B, PTX_MATRIX_C, PTX_MATRIX_X } ptx_matrix_name;

enum { PTX_MATRIX_ELEMENTS = 4096, PTX_MATRIX_REGISTERS = 8, PTX_MATRIX_BYTES_K = 32 };

/* Which element of a matrix a lane's element is. Elements are numbered along k: those of A and C row by row, those of B
 * column by column; several matrices stand one after the other. */
typedef struct ptx_layout {
    uint32_t lines, length; /* rows of A and C, columns of B; elements of each */
    uint32_t matrices;
    uint32_t elements; /* of a lane */
    uint32_t copies;   /* how often each element is held, by the same lane: 1 but for wmma */
    uint16_t *index;   /* of element e of lane l: index[l * elements + e] */
} ptx_layout;

/* The layout that ptx_fragments.def gives, in the arena; false if it has none. column: the matrix is column-major. */
bool ptx_layout_find(ptx_arena *arena, const uint32_t shape[3], ptx_matrix_name matrix, uint32_t bits, bool column,
                     ptx_layout *out_layout);

/* A matrix in registers. */
typedef struct ptx_fragment {
    ptx_type type;
    ptx_layout layout;
    bool hidden; /* of wmma: the seed says which lane plays which, so that nothing can be known of the layout */
    uint32_t count;
    uint32_t places[PTX_MATRIX_REGISTERS];
} ptx_fragment;

/* How many registers of a lane hold so many elements of a type. */
uint32_t ptx_fragment_registers(ptx_type type, uint32_t elements);

/* The lane that plays lane 0 of a hidden fragment; lane l plays l ^ that. */
uint32_t ptx_fragment_key(const ptx_warp *warp, const ptx_fragment *fragment);

/* The bits of all elements, into or from an array in the order of the layout. */
void ptx_fragment_get(const ptx_warp *warp, const ptx_fragment *fragment, uint64_t *bits);
void ptx_fragment_set(const ptx_warp *warp, const ptx_fragment *fragment, const uint64_t *bits);

/* The operand {r0, r1, ...} as a fragment of count registers. */
void ptx_fragment_decode(ptx_decoder *decoder, const ptx_operand *operand, bool result, ptx_fragment *fragment);

/* ---- Forms ---- */

typedef enum ptx_matrix_takes {
    PTX_MATRIX_NOTHING,
    PTX_MATRIX_SATFINITE,
    PTX_MATRIX_ROUNDING,
    PTX_MATRIX_XOR,
    PTX_MATRIX_AND
} ptx_matrix_takes;

typedef struct ptx_matrix_form {
    bool wmma;
    int modifier; /* of the shape */
    uint32_t shape[3];
    bool any_layout;
    ptx_type d, a, b, c; /* as ptx_matrix_forms.def has them */
    ptx_matrix_takes takes;
    uint32_t registers[2]; /* of A and B, of wmma */
    uint32_t target, version;
} ptx_matrix_form;

extern const ptx_matrix_form ptx_matrix_forms[];
extern const size_t ptx_matrix_form_count;

/* A fragment of wmma, whose layout the ISA leaves open: line by line, but for the lanes' order. */
ptx_fragment ptx_fragment_hidden(ptx_decoder *decoder, const ptx_matrix_form *form, ptx_matrix_name matrix,
                                 ptx_type type);

/* Takes .sync, .aligned and the shape of an instruction: its modifier. */
int ptx_matrix_take_shape(ptx_decoder *decoder, bool wmma);
/* Takes .row and .col, of which there must be count: true for .col. */
void ptx_matrix_take_layouts(ptx_decoder *decoder, uint32_t count, bool *out_columns);

/* ---- Sums ---- */

/* How a device's matrix unit adds products of a type; NULL for integers and f64. */
typedef struct ptx_matrix_unit {
    uint32_t capability;
    ptx_type type;
    uint32_t terms;
    int fraction, kept;
} ptx_matrix_unit;

const ptx_matrix_unit *ptx_matrix_unit_find(int32_t capability, ptx_type type);

/* The exponent of a zero: no sum with another reaches that of a number. */
enum { PTX_MATRIX_NO_EXPONENT = -10000, PTX_MATRIX_LEAST_EXPONENT = -5000 };

/* A number, and its exponent as a matrix unit sees it: of a subnormal one the least of its format. */
typedef struct ptx_matrix_number {
    double value;
    int exponent;
} ptx_matrix_number;

sim_format ptx_matrix_format(ptx_type type);
ptx_matrix_number ptx_matrix_number_of(sim_format format, uint32_t bits);
/* The same of count of them. */
void ptx_matrix_numbers_of(sim_format format, const uint64_t *bits, ptx_matrix_number *numbers, uint32_t count);

/* c + a[0] * b[0] + ... as the bits of result, f32 or f16, as mma.sync adds. */
uint32_t ptx_matrix_sum(sim_sum_mode mode, const ptx_matrix_unit *unit, sim_format result, ptx_matrix_number c,
                        const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count);
/* The same as the unit adds by itself, which an H100 does not of all types in mma.sync. */
uint32_t ptx_matrix_sum_at_once(sim_sum_mode mode, const ptx_matrix_unit *unit, sim_format result, ptx_matrix_number c,
                                const ptx_matrix_number *a, const ptx_matrix_number *b, uint32_t count);

/* ---- What an instruction of a decoded kernel holds ---- */

/* The scales of rows of A or columns of B. */
typedef struct ptx_scales {
    ptx_type type;
    uint32_t count; /* of a row */
    uint32_t place; /* of their register */
    uint32_t byte, thread;
} ptx_scales;

struct ptx_matrix {
    uint32_t m, n, k;
    ptx_fragment a, b, c, d; /* of a load or store only a */
    ptx_matrix_takes operation;
    sim_rounding rounding; /* of f64 */
    const ptx_matrix_unit *unit;
    ptx_scales scales[2];   /* of A and B, where they have scales */
    bool along_lines;       /* of a load or store: the elements of a line are neighbours in memory */
    uint32_t stride_place;  /* of a register with the elements from a line to the next, or PTX_NOWHERE */
    uint32_t stride_length; /* if it is PTX_NOWHERE */
};

/* Sets what the instruction needs to be run by a whole warp. */
void ptx_matrix_start(ptx_decoder *decoder, const ptx_matrix *matrix, ptx_run run);

/* The part of the families wmma and mma that multiplies. */
void ptx_decode_matrix_product(ptx_decoder *decoder, bool wmma);
/* That of mma with .block_scale. */
void ptx_decode_matrix_scaled(ptx_decoder *decoder);

#endif
