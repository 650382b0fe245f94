#include "tests/sim/tests/amdgcn/amdgcn_object.h"
#include "tests/sim/tests/common/programs_host.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

amd_program *amdgcn_object_load(const char *name, const char *processor) {
    char path[128], why[512] = "";
    size_t size;
    snprintf(path, sizeof path, "tests/sim/tests/programs/%s.hsaco", name);
    char *bytes = programs_read(path, &size);
    amd_program *program = amd_program_load(bytes, size, processor, why, sizeof why);
    free(bytes);
    if (!program) fail_msg("%s: %s", path, why);
    return program;
}

int amdgcn_objects_load(amdgcn_object *objects, size_t count) {
    for (size_t i = 0; i < count; i++)
        objects[i].program = amdgcn_object_load(objects[i].name, objects[i].processor);
    return 0;
}

int amdgcn_objects_free(amdgcn_object *objects, size_t count) {
    for (size_t i = 0; i < count; i++)
        amd_program_free(objects[i].program);
    return 0;
}
