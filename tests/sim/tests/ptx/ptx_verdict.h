/* What came out where a kernel ran on the interpreter and on a device (ptx_device.h): a verdict on each result, counted
 * for each instruction. The counts are printed when the program ends, a line for each instruction:
 *   # compared|add.f32|EQUAL|NAN|WITHIN|DIFFERENT|FAILED|ABSENT
 *   # sums|mma.sync...|elements|exact|sequential|truncating|hopper|none of them */
#ifndef KILN_TESTS_SIM_PTX_VERDICT_H
#define KILN_TESTS_SIM_PTX_VERDICT_H

#include "tests/sim/core/sim_sum.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum verdict {
    VERDICT_EQUAL,
    VERDICT_NAN,       /* NaN both, of other bits: which ones, the ISA leaves open */
    VERDICT_WITHIN,    /* other bits, but as near as the ISA promises */
    VERDICT_DIFFERENT, /* neither */
    VERDICT_FAILED,    /* a kernel that the driver refuses, or that stopped */
    VERDICT_ABSENT,    /* a kernel of instructions that the device has not */
    VERDICTS
} verdict;

/* Counts verdicts on the instructions of a code, which are named by their opcodes: "setp.eq.f32 selp.b32". */
void verdict_count(const char *code, verdict which, uint64_t count);

/* The same of one kernel, which it names with the reason on standard output. */
void verdict_on_kernel(const char *code, verdict which, const char *why);

/* A code in one line, to be printed. Valid until the next call. */
const char *verdict_line(const char *code);

/* Whether two results of so many bits are the same but for the bits of NaNs: code says by the opcode that writes %d
 * which numbers they hold; one that only moves or loads, by the last one before that does not. */
bool verdict_same_but_nan(const char *code, uint32_t bits, const void *one, const void *other);

/* Counts an element of a matrix: in which of the ways of adding it comes out. */
void verdict_count_sum(const char *code, const bool matches[SIM_SUM_MODES]);

/* So far, of all instructions. */
uint64_t verdict_total(verdict which);
/* How many kinds of instructions there were, and how many of them with that verdict on any result. */
uint64_t verdict_kinds(void);
uint64_t verdict_kinds_with(verdict which);

#endif
