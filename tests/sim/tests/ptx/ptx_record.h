/* Kernels as they ran on a device, kept to be replayed on the interpreter: text, arrays before and after. With
 * KILN_TEST_RECORD naming a file, the tests of single instructions add each kernel that they compare with a device
 * (ptx_device.h) to it; tests/sim/tests/recorded/kernels_test.c replays. */
#ifndef KILN_TESTS_SIM_PTX_RECORD_H
#define KILN_TESTS_SIM_PTX_RECORD_H

#include "tests/sim/tests/ptx/ptx_device.h"
#include <stdio.h>

typedef struct record_kernel {
    const char *text; /* of the module; its entry is "kernel", its parameters the arrays' addresses */
    const char *code; /* the instructions that it is about */
    uint32_t blocks, threads;
    uint32_t result_bits; /* of an element of the first array, made of one of the second; 0: what comes out is words */
    uint32_t count;       /* arrays, laid out block by block */
    device_array before[DEVICE_ARRAYS], after[DEVICE_ARRAYS]; /* bytes NULL: a null pointer */
} record_kernel;

/* Adds some blocks of a kernel that ran to the file, if there is one. Ends the program if that cannot be written. */
void record_write(const record_kernel *kernel);

/* Reads the next kernel of a file, whose memory is released by record_free. false at the end, or if *out_broken. */
bool record_read(FILE *file, record_kernel *out_kernel, bool *out_broken);
void record_free(record_kernel *kernel);

#endif
