#include "device_choice.h"
#include <stdlib.h>
#include <string.h>

/* Reads one of the words, of so many characters. */
static bool read_device(const char *word, size_t length, kiln_device_options *out) {
    enum { ORDINAL_DIGITS = 4 };
    const char *colon = memchr(word, ':', length);
    size_t name = colon ? (size_t)(colon - word) : length;
    for (kiln_backend_id backend = KILN_BACKEND_CUDA; backend <= KILN_BACKEND_CPU; backend++)
        if (strlen(kiln_backend_name(backend)) == name && !memcmp(word, kiln_backend_name(backend), name))
            out->backend = backend;
    if (out->backend == KILN_BACKEND_ANY) return false;
    if (!colon) return true;
    size_t digits = strspn(colon + 1, "0123456789");
    out->ordinal = atoi(colon + 1);
    return digits > 0 && digits <= ORDINAL_DIGITS && name + 1 + digits == length;
}

TRITONSERVER_Error *device_choose(const char *words, int32_t turn, TRITONBACKEND_ModelInstance *instance,
                                  kiln_device_options *out) {
    TRITONSERVER_InstanceGroupKind kind;
    int32_t count = 1;
    *out = (kiln_device_options){.backend = KILN_BACKEND_CPU};
    if (!*words) {
        TRITON_TRY(TRITONBACKEND_ModelInstanceKind(instance, &kind));
        if (kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) return NULL;
        out->backend = KILN_BACKEND_CUDA;
        return TRITONBACKEND_ModelInstanceDeviceId(instance, &out->ordinal);
    }
    for (const char *at = words; *at; at++)
        count += *at == ',';
    const char *word = words;
    for (turn %= count; turn; turn--)
        word += strcspn(word, ",") + 1;
    *out = (kiln_device_options){.take_faults = 1}; /* a server lives on */
    if (read_device(word, strcspn(word, ","), out)) return NULL;
    return triton_error(TRITONSERVER_ERROR_INVALID_ARG,
                        "parameter device is \"%s\": must be cpu, cuda:N or rocm:N, or several with commas", words);
}
