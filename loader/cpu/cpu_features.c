#include "loader/cpu/cpu_features.h"
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)

#include <cpuid.h>

static uint32_t read_xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

void kiln__cpu_features_read(kiln__cpu_features *out_features) {
    enum { OSXSAVE = 1 << 27 }; /* xgetbv may be executed */
    uint32_t a, b, c, d;
    memset(out_features, 0, sizeof *out_features);
    uint32_t *words = out_features->words;
    if (__get_cpuid(1, &a, &b, &c, &d)) words[KILN__CPU_LEAF_1_ECX] = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) words[KILN__CPU_LEAF_7_EBX] = b;
    if (__get_cpuid(0x80000001u, &a, &b, &c, &d)) words[KILN__CPU_LEAF_80000001_ECX] = c;
    if (words[KILN__CPU_LEAF_1_ECX] & OSXSAVE) words[KILN__CPU_XCR0] = read_xcr0();
}

void kiln__cpu_name(char *name, size_t size) {
    uint32_t brand[13] = {0}; /* three leaves of 16 bytes and a NUL */
    for (unsigned leaf = 0; leaf < 3; leaf++) {
        uint32_t *part = brand + 4 * leaf;
        if (!__get_cpuid(0x80000002u + leaf, part, part + 1, part + 2, part + 3)) break;
    }
    const char *text = (const char *)brand;
    text += strspn(text, " ");
    snprintf(name, size, "%s", *text ? text : "x86-64");
}

#else

#include <sys/auxv.h>

void kiln__cpu_features_read(kiln__cpu_features *out_features) {
    out_features->words[KILN__CPU_HWCAP] = (uint32_t)getauxval(AT_HWCAP);
}

void kiln__cpu_name(char *name, size_t size) {
    snprintf(name, size, "aarch64");
}

#endif

static const struct {
    const char *name;
    int32_t level;
    uint32_t word, bits;
} requirements[] = {
#define REQUIREMENT(name, level, word, bits) {name, level, KILN__CPU_##word, bits},
    KILN__CPU_FEATURES(REQUIREMENT)
#undef REQUIREMENT
};

const char *kiln__cpu_features_missing(const kiln__cpu_features *features, int32_t level) {
    for (size_t i = 0; i < sizeof requirements / sizeof requirements[0]; i++) {
        if (requirements[i].level > level) continue;
        if ((features->words[requirements[i].word] & requirements[i].bits) != requirements[i].bits)
            return requirements[i].name;
    }
    return NULL;
}

const kiln__cpu_target *kiln__cpu_features_best(const kiln__cpu_features *features) {
    const kiln__cpu_target *best = NULL;
    for (size_t i = 0; i < kiln__cpu_target_count; i++) {
        const kiln__cpu_target *target = &kiln__cpu_targets[i];
        if (strcmp(target->host, KILN__CPU_HOST) != 0 || kiln__cpu_features_missing(features, target->level)) continue;
        if (!best || target->level > best->level) best = target;
    }
    return best;
}
