/* Every form of mma.sync that ptxas 13 takes, with the target and PTX version that it asks for, and a way to run one on
 * matrices: their fragments are packed by ptx_matrix_layouts.def, which knows nothing of the simulator's layouts. */
#ifndef KILN_TESTS_SIM_PTX_MMA_HARNESS_H
#define KILN_TESTS_SIM_PTX_MMA_HARNESS_H

#include "tests/sim/core/sim_float.h"
#include "tests/sim/tests/ptx/ptx_matrix_harness.h"

enum { MMA_ELEMENTS = 4096, MMA_RESULTS = 256 };

typedef enum mma_kind { MMA_FLOAT, MMA_DOUBLE, MMA_SIGNED, MMA_UNSIGNED, MMA_BIT } mma_kind;

typedef struct mma_type {
    const char *name;
    uint32_t bits;
    mma_kind kind;
    sim_format format;
    int exponent_bits, mantissa_bits;
} mma_type;

const mma_type *mma_type_named(const char *name);

typedef struct mma_form {
    uint32_t m, n, k;
    uint32_t shape[3];
    const mma_type *d, *a, *b, *c;
    bool column_a, column_b;
    bool exclusive;    /* products of bits: xor, else and */
    uint32_t matrices; /* 4 for m8n8k4 of f16 */
    uint32_t target, version;
    char name[96]; /* with %s behind the layouts */
} mma_form;

/* Calls a test with each form. */
void mma_each_form(void (*test)(const mma_form *form));

/* The bits of A, B and C row by row, one matrix after the other. */
typedef struct mma_operands {
    uint64_t a[MMA_ELEMENTS], b[MMA_ELEMENTS], c[MMA_RESULTS];
} mma_operands;

/* Runs count products, each in a warp of its own; fails the running cmocka test if that faults. target: "sm_90", or
 * NULL for the form's own with its own version. extra: what stands behind the layouts, ".satfinite". d gets the bits.
 */
void mma_run(const mma_form *form, const char *target, const char *extra, sim_sum_mode mode, const mma_operands *in,
             uint64_t (*d)[MMA_RESULTS], uint32_t count);

/* The instruction over registers, for texts that are refused. */
void mma_write_code(const mma_form *form, const char *extra, char *text, size_t size, matrix_case *test);

/* The number that bits mean; of f64 too. */
double mma_number(const mma_type *type, uint64_t bits);

#endif
