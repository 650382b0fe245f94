#include "loader/cli/device.h"
#include <string.h>
#include <strings.h>

enum { ORDINAL_LAST = 9999 };

/* A GPU's UUID, with its prefix or without, or its PCI address. */
static bool is_id(const char *name) {
    size_t digits = strspn(name, "0123456789abcdefABCDEF");
    return (digits && (name[digits] == '-' || name[digits] == ':')) || strncasecmp(name, "GPU-", 4) == 0 ||
           strncasecmp(name, "MIG-", 4) == 0;
}

/* Reads "BACKEND" or "BACKEND:ORDINAL". */
static bool parse(const char *name, kiln_backend_id *out_backend, int32_t *out_ordinal) {
    size_t length = strcspn(name, ":");
    *out_backend = KILN_BACKEND_ANY;
    *out_ordinal = 0;
    for (kiln_backend_id backend = KILN_BACKEND_CUDA; backend <= KILN_BACKEND_CPU; backend++) {
        const char *word = kiln_backend_name(backend);
        if (strlen(word) == length && memcmp(word, name, length) == 0) *out_backend = backend;
    }
    if (*out_backend == KILN_BACKEND_ANY) return false;
    if (!name[length]) return true;
    int64_t ordinal;
    if (!cli_number(name + length + 1, ORDINAL_LAST, &ordinal)) return false;
    *out_ordinal = (int32_t)ordinal;
    return true;
}

int device_open(const char *command, const char *name, kiln_device **out_device) {
    kiln_device_options options = {.take_faults = 1}; /* the process is the command's own */
    if (name && is_id(name))
        options.id = name;
    else if (name && !parse(name, &options.backend, &options.ordinal))
        return cli_error(
            CLI_USAGE,
            "%s: --device %s: must be cpu, cuda:N or rocm:N with N from 0 to %d, or a GPU's UUID or PCI address",
            command, name, ORDINAL_LAST);
    kiln_status status = kiln_device_open(&options, out_device);
    if (status == KILN_OK) return CLI_OK;
    int code = name ? cli_fail(status, "%s: --device %s", command, name) : cli_fail(status, "%s: no device", command);
    return status == KILN_ERROR_NOT_FOUND ? CLI_USAGE : code;
}

const char *device_name(const kiln_device_info *info, char text[DEVICE_NAME_SIZE]) {
    snprintf(text, DEVICE_NAME_SIZE, "%s:%d", kiln_backend_name(info->backend), info->ordinal);
    return text;
}

const char *target_name(const kiln_target *target, char text[TARGET_NAME_SIZE]) {
    text[0] = '\0';
    kiln_target_text(target, text, TARGET_NAME_SIZE);
    return text;
}
