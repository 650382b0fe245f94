/* The code objects of tests/sim/tests/programs, loaded for the interpreter alone. */
#ifndef KILN_TESTS_SIM_AMDGCN_OBJECT_H
#define KILN_TESTS_SIM_AMDGCN_OBJECT_H

#include "tests/sim/amdgcn/decode/amd_code.h"
#include <stddef.h>

/* A file of that folder without its ending, loaded for a processor. */
typedef struct amdgcn_object {
    const char *name;      /* "programs.gfx90a-O0" */
    const char *processor; /* "gfx90a" */
    amd_program *program;
} amdgcn_object;

/* Fails the running cmocka test if the file is missing or refused. Free it with amd_program_free. */
amd_program *amdgcn_object_load(const char *name, const char *processor);

/* Fills in the programs in the same way. Returns 0, as a setup does. */
int amdgcn_objects_load(amdgcn_object *objects, size_t count);

/* Releases the programs. Returns 0, as a teardown does. */
int amdgcn_objects_free(amdgcn_object *objects, size_t count);

#endif
