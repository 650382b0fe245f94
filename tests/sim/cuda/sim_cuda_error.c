/* Names of errors. Both functions may be called before cuInit, and go on working after a fault. */
#include "tests/sim/cuda/sim_cuda.h"
#include <ctype.h>
#include <string.h>

enum { TEXT_SIZE = 64 };

typedef struct error {
    kiln__cu_result number;
    const char *name;
    char text[TEXT_SIZE]; /* the name in words, once somebody asked */
} error;

static error errors[] = {
    {SIM_CUDA_SUCCESS, "CUDA_SUCCESS", ""},
#define KILN_CUDA_ERROR(name, number, status) {number, "CUDA_ERROR_" #name, ""},
#include "loader/cuda/cuda_errors.def"
#undef KILN_CUDA_ERROR
};

static error *find(kiln__cu_result number) {
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].number == number) return &errors[i];
    return NULL;
}

kiln__cu_result cuGetErrorName(kiln__cu_result number, const char **out_name) {
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? SIM_CUDA_SUCCESS : (kiln__cu_result)planned;
    SIM_CUDA_RULE(out_name, SIM_CUDA_INVALID_VALUE, "cuGetErrorName: the result is NULL");
    const error *found = find(number);
    *out_name = found ? found->name : NULL;
    return found ? SIM_CUDA_SUCCESS : SIM_CUDA_INVALID_VALUE;
}

/* "CUDA_ERROR_OUT_OF_MEMORY" is "out of memory". */
static void describe(error *described) {
    static const char prefix[] = "CUDA_ERROR_";
    const char *name = described->number ? described->name + strlen(prefix) : "NO_ERROR";
    for (size_t i = 0; name[i] && i < TEXT_SIZE - 1; i++)
        described->text[i] = name[i] == '_' ? ' ' : (char)tolower((unsigned char)name[i]);
}

kiln__cu_result cuGetErrorString(kiln__cu_result number, const char **out_text) {
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? SIM_CUDA_SUCCESS : (kiln__cu_result)planned;
    SIM_CUDA_RULE(out_text, SIM_CUDA_INVALID_VALUE, "cuGetErrorString: the result is NULL");
    error *found = find(number);
    sim_lock();
    if (found && !found->text[0]) describe(found);
    sim_unlock();
    *out_text = found ? found->text : NULL;
    return found ? SIM_CUDA_SUCCESS : SIM_CUDA_INVALID_VALUE;
}
