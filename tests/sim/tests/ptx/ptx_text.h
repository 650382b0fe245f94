/* The PTX of tests/sim/tests/programs, loaded for the interpreter alone. */
#ifndef KILN_TESTS_SIM_PTX_TEXT_H
#define KILN_TESTS_SIM_PTX_TEXT_H

#include "tests/sim/ptx/warp/ptx_warp.h"
#include <stddef.h>

/* A file of that folder without its ending, loaded for a device of a compute capability. */
typedef struct ptx_text {
    const char *name;   /* "tiles.sm_75" */
    int32_t capability; /* 75 */
    ptx_program *program;
} ptx_text;

/* Fills in the programs. Fails the running cmocka test or setup if a file is missing or refused. Returns 0, as a setup
 * does. */
int ptx_texts_load(ptx_text *texts, size_t count);

/* Releases the programs. Returns 0, as a teardown does. */
int ptx_texts_free(ptx_text *texts, size_t count);

#endif
