/* Instructions of integers in rows: a pattern of code for each type, and what it must compute, by a function written
 * from the ISA's text alone. */
#ifndef KILN_TESTS_SIM_PTX_ROWS_H
#define KILN_TESTS_SIM_PTX_ROWS_H

#include "tests/sim/tests/ptx/ptx_harness.h"
#include <stdbool.h>

typedef __int128 ptx_wide;

/* The operands: as bits, and as numbers of the row's type. */
typedef struct row_values {
    uint32_t bits; /* of the type */
    bool is_signed;
    uint32_t parameter;
    uint64_t raw[HARNESS_SOURCES];
    ptx_wide value[HARNESS_SOURCES];
} row_values;

/* The result; what is above the result's width is cut off. */
typedef uint64_t (*row_expect)(const row_values *x);

/* Sources and results are as wide as the type, or: */
enum { SAME = 0, WORD = 32, DOUBLE = 1 };

/* Parameters: %b is never 0; what comes out on a device is left open, so that none is compared. */
#define NONZERO (1u << 31)
#define OPEN    (1u << 30)

typedef struct ptx_row {
    const char *code;  /* each $ stands for the type's name */
    const char *types; /* "u16 s16 b32" */
    int result;
    uint32_t source_count;
    int sources[HARNESS_SOURCES];
    row_expect expect;
    uint32_t parameter; /* for expect */
} ptx_row;

/* Runs each row with each of its types over edge and random values, by whole warps and by parts of one. */
void ptx_rows_check(const ptx_row *rows, size_t count, uint64_t *random);

#endif
