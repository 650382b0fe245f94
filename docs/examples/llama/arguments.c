#include "arguments.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool llama_wrong(const char *option, const char *value, const char *rule) {
    fprintf(stderr, "llama: --%s %s: must be %s\n", option, value, rule);
    return false;
}

bool llama_read_number(const char *text, long least, long most, long *out) {
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    return end != text && !*end && !errno && *out >= least && *out <= most;
}

bool llama_read_precision(const char *text, llama_precision *out) {
    for (llama_precision precision = LLAMA_F32; precision <= LLAMA_BF16; precision++) {
        *out = precision;
        if (!strcmp(text, llama_precision_name(precision))) return true;
    }
    return false;
}

bool llama_read_quantisation(const char *text, llama_quantisation *out) {
    for (llama_quantisation quantisation = LLAMA_W4A16; quantisation <= LLAMA_INT8; quantisation++) {
        *out = quantisation;
        if (!strcmp(text, llama_quantisation_name(quantisation))) return true;
    }
    return false;
}

bool llama_read_cache(const char *text, bool *out_fp8) {
    *out_fp8 = !strcmp(text, "fp8");
    return *out_fp8 || !strcmp(text, "same");
}

bool llama_read_device(const char *text, kiln_device_options *out) {
    static const kiln_backend_id backends[] = {KILN_BACKEND_CUDA, KILN_BACKEND_ROCM, KILN_BACKEND_CPU};
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
        const char *name = kiln_backend_name(backends[i]);
        size_t length = strlen(name);
        long ordinal = 0;
        if (strncmp(text, name, length) != 0) continue;
        if (text[length] && (text[length] != ':' || !llama_read_number(text + length + 1, 0, 1023, &ordinal))) continue;
        out->backend = backends[i];
        out->ordinal = (int32_t)ordinal;
        return true;
    }
    return false;
}

bool llama_written(void) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return true;
    fprintf(stderr, "llama: standard output: %s\n", strerror(errno));
    return false;
}
