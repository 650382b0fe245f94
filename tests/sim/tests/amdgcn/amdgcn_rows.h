/* What each instruction of the vector ALU must compute, by functions written from the ISA documents alone: a row for
 * each. How operands are written, selected and modified is the business of the test that runs the rows. */
#ifndef KILN_TESTS_SIM_AMDGCN_ROWS_H
#define KILN_TESTS_SIM_AMDGCN_ROWS_H

#include "tests/sim/tests/amdgcn/amdgcn_reference.h"
#include <stddef.h>

typedef __int128 row_wide;

enum { ROW_SOURCES = 3 };

/* The operands of a lane, after their modifiers: as bits, and as numbers of their type if that is an integer. */
typedef struct row_operands {
    uint64_t bits[ROW_SOURCES];
    row_wide value[ROW_SOURCES];
    bool in; /* the lane's bit of the mask that is read */
    uint32_t lane;
    ref_mode mode;
} row_operands;

/* value: exact; what is above the result's width is cut off or, with clamp, saturated. */
typedef struct row_result {
    row_wide value;
    bool mark; /* the lane's bit of the mask that is written */
} row_result;

typedef enum row_flag {
    ROW_CLAMPS = 1,      /* an integer that the clamp modifier saturates */
    ROW_MASK_IN = 2,     /* a mask is the last operand */
    ROW_MASK_OUT = 4,    /* a mask is the second result */
    ROW_ACCUMULATES = 8, /* the third source is the old result */
    ROW_LITERAL_B = 16,  /* the second source is a literal */
    ROW_LITERAL_C = 32,  /* the third one */
    ROW_PACKED = 64,     /* one operation for each half of the registers */
    ROW_UPPER = 128,     /* the result is the upper half of a register */
    ROW_ZEROES = 256,    /* gfx9: 16 bits come with 16 of 0, though there are three sources */
    ROW_KEEPS = 512,     /* gfx9: the register keeps its other 16 bits */
    ROW_COMPARE = 2048,  /* no result but the mask */
    ROW_EXEC = 4096,     /* EXEC becomes the mask; gfx10 and later write no other */
    ROW_VCC_IN = 8192,   /* reads VCC, which is not written */
    ROW_MODE = 1024      /* of a float that is only moved: no omod, no clamp */
} row_flag;

/* Types are a letter and bits: u, i, f; m is copied as it is but has the sign modifiers of f; mix is an f32 or an f16
 * of half a register. */
typedef struct amdgcn_row {
    const char *mnemonic;
    const char *types; /* of the result and the sources: "f32 f32 f32" */
    unsigned flags;
    void (*expect)(const row_operands *x, row_result *d);
} amdgcn_row;

extern const amdgcn_row amdgcn_rows[];
extern const size_t amdgcn_row_count;

#endif
