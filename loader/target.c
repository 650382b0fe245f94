#include "loader/target.h"
#include <stdio.h>
#include <string.h>

const kiln__nvidia_target kiln__nvidia_targets[] = {
#define KILN_NVIDIA(name, capability, suffix, ptx, portable, assembler) {name, capability, suffix, ptx},
#include "loader/targets.def"
};
const size_t kiln__nvidia_target_count = sizeof kiln__nvidia_targets / sizeof *kiln__nvidia_targets;

const kiln__amd_target kiln__amd_targets[] = {
#define KILN_AMD(name, machine, generic, xnack, sramecc, code_object, fired) {name, generic, machine, xnack, sramecc},
#include "loader/targets.def"
};
const size_t kiln__amd_target_count = sizeof kiln__amd_targets / sizeof *kiln__amd_targets;

const kiln__cpu_target kiln__cpu_targets[] = {
#define x86_64                             "x86_64"
#define aarch64                            "aarch64"
#define KILN_CPU(name, host, level, flags) {name, host, level},
#include "loader/targets.def"
#undef x86_64
#undef aarch64
};
const size_t kiln__cpu_target_count = sizeof kiln__cpu_targets / sizeof *kiln__cpu_targets;

static const struct {
    int32_t ptx, driver;
} ptx_drivers[] = {
#define KILN_PTX(version, driver) {version, driver},
#include "loader/targets.def"
};
enum { PTX_DRIVER_COUNT = sizeof ptx_drivers / sizeof *ptx_drivers };

int32_t kiln__ptx_driver(int32_t ptx_version) {
    for (size_t i = 0; i < PTX_DRIVER_COUNT; i++)
        if (ptx_drivers[i].ptx >= ptx_version) return ptx_drivers[i].driver;
    /* Each PTX 9.x so far came with CUDA 13.x. */
    if (ptx_version / 10 == 9) return 13000 + ptx_version % 10 * 10;
    return INT32_MAX; /* newer than any known version */
}

int32_t kiln__driver_ptx(int32_t driver_version) {
    int32_t ptx = 0;
    for (size_t i = 0; i < PTX_DRIVER_COUNT && ptx_drivers[i].driver <= driver_version; i++)
        ptx = ptx_drivers[i].ptx;
    return ptx;
}

const kiln__amd_target *kiln__amd_target_find(const char *name, size_t length) {
    for (size_t i = 0; i < kiln__amd_target_count; i++)
        if (strlen(kiln__amd_targets[i].name) == length && memcmp(kiln__amd_targets[i].name, name, length) == 0)
            return &kiln__amd_targets[i];
    return NULL;
}

const kiln__amd_target *kiln__amd_target_by_machine(uint32_t machine) {
    for (size_t i = 0; i < kiln__amd_target_count; i++)
        if (kiln__amd_targets[i].machine == machine) return &kiln__amd_targets[i];
    return NULL;
}

const kiln__cpu_target *kiln__cpu_target_find(const char *name) {
    for (size_t i = 0; i < kiln__cpu_target_count; i++)
        if (strcmp(kiln__cpu_targets[i].name, name) == 0) return &kiln__cpu_targets[i];
    return NULL;
}

bool kiln__nvidia_parse(const char *name, int32_t *out_capability, char *out_suffix) {
    if (strncmp(name, "sm_", 3) != 0) return false;
    const char *digits = name + 3;
    size_t count = strspn(digits, "0123456789");
    if (count < 2 || count > 3 || digits[0] == '0') return false;
    char suffix = digits[count];
    if (suffix && ((suffix != 'a' && suffix != 'f') || digits[count + 1])) return false;
    int32_t capability = 0;
    for (size_t i = 0; i < count; i++)
        capability = capability * 10 + (digits[i] - '0');
    *out_capability = capability;
    *out_suffix = suffix;
    return true;
}

/* Reads one ":feature+" or ":feature-" at *text and moves past it. */
static bool parse_feature(const char **text, int32_t *setting, const char *name) {
    size_t length = strlen(name);
    if (strncmp(*text + 1, name, length) != 0) return false;
    char sign = (*text)[1 + length];
    if ((sign != '+' && sign != '-') || *setting) return false;
    *setting = sign == '+' ? 2 : 1;
    *text += 1 + length + 1;
    return true;
}

bool kiln__amd_features(const char *text, int32_t *out_xnack, int32_t *out_sramecc) {
    *out_xnack = *out_sramecc = 0;
    while (*text == ':')
        if (!parse_feature(&text, out_xnack, "xnack") && !parse_feature(&text, out_sramecc, "sramecc")) return false;
    return *text == '\0';
}

bool kiln__amd_parse(const char *isa, kiln_target *out_target) {
    memset(out_target, 0, sizeof *out_target);
    out_target->backend = KILN_BACKEND_ROCM;
    const char *triple = strstr(isa, "--");
    const char *text = triple ? triple + 2 : isa;
    size_t length = strcspn(text, ":");
    if (strncmp(text, "gfx", 3) != 0 || length < 6 || length >= sizeof out_target->processor) return false;
    memcpy(out_target->processor, text, length);
    const kiln__amd_target *row = kiln__amd_target_find(text, length);
    if (row) memcpy(out_target->generic, row->generic, strlen(row->generic) + 1);
    return kiln__amd_features(text + length, &out_target->xnack, &out_target->sramecc);
}

static kiln_status target_unknown(const char *name) {
    char bytes[1024];
    kiln__text list = {bytes, sizeof bytes, 0};
    kiln__text_add(&list, " ");
    for (size_t i = 0; i < kiln__nvidia_target_count; i++)
        kiln__text_add(&list, "%s ", kiln__nvidia_targets[i].name);
    for (size_t i = 0; i < kiln__amd_target_count; i++)
        kiln__text_add(&list, "%s ", kiln__amd_targets[i].name);
    for (size_t i = 0; i < kiln__cpu_target_count; i++)
        kiln__text_add(&list, "%s%s", kiln__cpu_targets[i].name, i + 1 < kiln__cpu_target_count ? " " : "");
    return kiln__fail(KILN_ERROR_NOT_FOUND, "target \"%.40s\" is not known; known are%s", name, bytes);
}

kiln_status kiln_target_parse(const char *name, int32_t driver_version, kiln_target *out_target) {
    KILN__REQUIRE(out_target, "kiln_target_parse: out_target is NULL");
    memset(out_target, 0, sizeof *out_target);
    KILN__REQUIRE(name, "kiln_target_parse: name is NULL");
    KILN__REQUIRE(driver_version >= 0, "kiln_target_parse: driver_version is %d: must not be negative", driver_version);
    kiln_target target = {0};
    char suffix;
    const kiln__cpu_target *cpu = kiln__cpu_target_find(name);
    if (kiln__nvidia_parse(name, &target.compute_capability, &suffix)) {
        target.backend = KILN_BACKEND_CUDA;
        target.driver_version = driver_version ? driver_version : ptx_drivers[PTX_DRIVER_COUNT - 1].driver;
    } else if (cpu) {
        target.backend = KILN_BACKEND_CPU;
        memcpy(target.processor, cpu->name, strlen(cpu->name) + 1);
    } else if (kiln__amd_parse(name, &target)) {
        const kiln__amd_target *row = kiln__amd_target_find(target.processor, strlen(target.processor));
        if (!row) return target_unknown(name);
        if ((target.xnack && !row->xnack) || (target.sramecc && !row->sramecc))
            return kiln__fail(KILN_ERROR_INVALID_ARGUMENT, "target \"%s\": %s has no %s setting", name, row->name,
                              target.xnack && !row->xnack ? "xnack" : "sramecc");
        if (row->xnack && !target.xnack) target.xnack = 1;
        if (row->sramecc && !target.sramecc) target.sramecc = 2;
    } else {
        return target_unknown(name);
    }
    *out_target = target;
    return KILN_OK;
}

size_t kiln_target_text(const kiln_target *target, char *text, size_t size) {
    if (text && size) text[0] = '\0';
    if (!target || (!text && size)) return 0;
    kiln__text out = {text, size, 0};
    static const char *const settings[] = {"", "-", "+"};
    switch (target->backend) {
    case KILN_BACKEND_CUDA:
        kiln__text_add(&out, "sm_%d", target->compute_capability);
        break;
    case KILN_BACKEND_ROCM:
        kiln__text_add(&out, "%.31s", target->processor);
        if (target->sramecc == 1 || target->sramecc == 2) kiln__text_add(&out, ":sramecc%s", settings[target->sramecc]);
        if (target->xnack == 1 || target->xnack == 2) kiln__text_add(&out, ":xnack%s", settings[target->xnack]);
        break;
    case KILN_BACKEND_CPU:
        kiln__text_add(&out, "%.31s", target->processor[0] ? target->processor : "a CPU below every level");
        break;
    case KILN_BACKEND_HIP: /* never a target's backend: HIP devices have ROCm targets */
    case KILN_BACKEND_ANY:
        break;
    }
    return out.length;
}
