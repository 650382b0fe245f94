/* Runs an instruction of a whole warp on given registers: for tests of matrix instructions. */
#ifndef KILN_TESTS_SIM_PTX_MATRIX_HARNESS_H
#define KILN_TESTS_SIM_PTX_MATRIX_HARNESS_H

#include "tests/sim/ptx/warp/ptx_warp.h"

enum { MATRIX_WORDS = 64 };

typedef struct matrix_case {
    const char *target, *version; /* "sm_90" and "9.0" if NULL; the device is of the target's capability */
    const char *code; /* from %w0, %w1, ... to %v0, %v1, ...; %r0..%r15, %f64 registers %g0..%g31, %x0..%x7 of 64 bits,
                         predicates %p and %q; %lane is the thread; tile has 4096 bytes of shared memory */
    uint32_t in, out; /* words of a lane */
    uint32_t blocks, threads;
    uint64_t seed;
    sim_sum_mode mode;
} matrix_case;

/* Word i of lane l of block b is in[(b * threads + l) * test->in + i], and so with out. false with a report if it ended
 * early; the running cmocka test fails if the code is refused. */
bool matrix_run(const matrix_case *test, const uint32_t *in, uint32_t *out, sim_counters *counters, sim_report *report);

/* Where there is a device to compare with (ptx_device.h): runs the case there and on the interpreter, and counts the
 * verdicts on each word that comes out, also of those in memory that the kernel wrote over its operands. */
void matrix_compare(const matrix_case *test, const uint32_t *in);

/* The same case for the device's target; false if the interpreter refuses it there, which is counted. */
bool matrix_here(const matrix_case *test, matrix_case *out_here);

/* Runs the case on the device; false if it refuses or stops, which is counted. */
bool matrix_run_there(const matrix_case *test, uint32_t *in, uint32_t *out);

/* The reason why a text of one instruction is refused; "" if it is not. Valid until the next call. */
const char *matrix_refusal(const char *target, const char *version, const char *code);

/* ---- Layouts, from ptx_matrix_layouts.def ---- */

typedef enum matrix_letter { MATRIX_A, MATRIX_B, MATRIX_C, MATRIX_X, MATRIX_XT } matrix_letter;

/* Where element e of a lane lies: its row and column, and in which of the matrices (m8n8k4 of f16 has four). */
typedef struct matrix_place {
    uint32_t matrix, row, column;
} matrix_place;

/* How many elements a lane holds; 0: there is no such layout. */
uint32_t matrix_elements(const uint32_t shape[3], matrix_letter letter, uint32_t bits, bool column);
matrix_place matrix_place_of(const uint32_t shape[3], matrix_letter letter, uint32_t bits, bool column, uint32_t lane,
                             uint32_t element);

#endif
