#include "tests/sim/tests/ptx/ptx_text.h"
#include "tests/sim/tests/common/programs_host.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

int ptx_texts_load(ptx_text *texts, size_t count) {
    for (ptx_text *t = texts; t < texts + count; t++) {
        char path[128], why[512] = "";
        size_t size;
        snprintf(path, sizeof path, "tests/sim/tests/programs/%s.ptx", t->name);
        char *bytes = programs_read(path, &size);
        t->program = ptx_program_load(bytes, size, t->capability, why, sizeof why);
        free(bytes);
        if (!t->program) fail_msg("%s: %s", path, why);
    }
    return 0;
}

int ptx_texts_free(ptx_text *texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        ptx_program_free(texts[i].program);
    return 0;
}
