#include "loader/cli/device.h"
#include <dlfcn.h>
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
    for (kiln_backend_id backend = KILN_BACKEND_CUDA; backend <= KILN_BACKEND_HIP; backend++) {
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

bool device_load_hip(char **out_why) {
    static const char *const names[] = {
#define KILN_HIP_LIBRARY(name) name,
#include "loader/hip/libraries.def"
#undef KILN_HIP_LIBRARY
    };
    char *tried = NULL;
    for (size_t i = 0; i < CLI_COUNT(names); i++) {
        bool loaded = dlopen(names[i], RTLD_NOW) != NULL;
        char *all = loaded ? NULL : cli_format("%s%s%s", tried ? tried : "", tried ? "; " : "", dlerror());
        free(tried);
        if (loaded) return true;
        tried = all;
    }
    *out_why = tried;
    return false;
}

static int load_hip(const char *command, const char *name) {
    char *why;
    if (device_load_hip(&why)) return CLI_OK;
    int code = cli_error(CLI_SYSTEM, "%s: --device %s: HIP cannot be loaded: %s", command, name, why);
    free(why);
    return code;
}

int device_open(const char *command, const char *name, kiln_device **out_device) {
    kiln_device_options options = {.take_faults = 1}; /* the process is the command's own */
    if (name && is_id(name))
        options.id = name;
    else if (name && !parse(name, &options.backend, &options.ordinal))
        return cli_error(
            CLI_USAGE,
            "%s: --device %s: must be cpu, cuda:N, rocm:N or hip:N with N from 0 to %d, or a GPU's UUID or PCI address",
            command, name, ORDINAL_LAST);
    if (options.backend == KILN_BACKEND_HIP) {
        int code = load_hip(command, name);
        if (code != CLI_OK) return code;
    }
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
