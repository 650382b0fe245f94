/* The machine's instruction-set features and CPU level. */
#ifndef KILN_LOADER_CPU_FEATURES_H
#define KILN_LOADER_CPU_FEATURES_H

#include "loader/target.h"

/* KILN__CPU_WORDS: the words of feature bits that are read. KILN__CPU_FEATURES: (name in /proc/cpuinfo, lowest level
 * that needs it, word, bits that must all be set). A level needs its own rows and those of all lower levels. (x86-64
 * psABI, table "Micro-Architecture Levels"; Linux, Documentation/arch/arm64/elf_hwcaps.) */
#if defined(__x86_64__)

#define KILN__CPU_HOST "x86_64"

/* An instruction set counts only if XCR0 shows that the operating system saves its registers. */
#define KILN__CPU_WORDS(X) \
    X(LEAF_1_ECX)          \
    X(LEAF_7_EBX)          \
    X(LEAF_80000001_ECX)   \
    X(XCR0)

#define KILN__CPU_FEATURES(X)                   \
    X("pni", 2, LEAF_1_ECX, 1u << 0)            \
    X("ssse3", 2, LEAF_1_ECX, 1u << 9)          \
    X("cx16", 2, LEAF_1_ECX, 1u << 13)          \
    X("sse4_1", 2, LEAF_1_ECX, 1u << 19)        \
    X("sse4_2", 2, LEAF_1_ECX, 1u << 20)        \
    X("popcnt", 2, LEAF_1_ECX, 1u << 23)        \
    X("lahf_lm", 2, LEAF_80000001_ECX, 1u << 0) \
    X("fma", 3, LEAF_1_ECX, 1u << 12)           \
    X("movbe", 3, LEAF_1_ECX, 1u << 22)         \
    X("avx", 3, LEAF_1_ECX, 1u << 28)           \
    X("f16c", 3, LEAF_1_ECX, 1u << 29)          \
    X("bmi1", 3, LEAF_7_EBX, 1u << 3)           \
    X("avx2", 3, LEAF_7_EBX, 1u << 5)           \
    X("bmi2", 3, LEAF_7_EBX, 1u << 8)           \
    X("abm", 3, LEAF_80000001_ECX, 1u << 5)     \
    X("xmm and ymm state", 3, XCR0, 0x06u)      \
    X("avx512f", 4, LEAF_7_EBX, 1u << 16)       \
    X("avx512dq", 4, LEAF_7_EBX, 1u << 17)      \
    X("avx512cd", 4, LEAF_7_EBX, 1u << 28)      \
    X("avx512bw", 4, LEAF_7_EBX, 1u << 30)      \
    X("avx512vl", 4, LEAF_7_EBX, 1u << 31)      \
    X("opmask and zmm state", 4, XCR0, 0xe0u)

#elif defined(__aarch64__)

#define KILN__CPU_HOST "aarch64"

#define KILN__CPU_WORDS(X) X(HWCAP)

#define KILN__CPU_FEATURES(X)  \
    X("fp", 1, HWCAP, 1u << 0) \
    X("asimd", 1, HWCAP, 1u << 1)

#else
#error "kiln runs on x86-64 and aarch64"
#endif

enum {
#define KILN__CPU_WORD_ENUM(name) KILN__CPU_##name,
    KILN__CPU_WORDS(KILN__CPU_WORD_ENUM)
#undef KILN__CPU_WORD_ENUM
        KILN__CPU_WORD_COUNT
};

typedef struct kiln__cpu_features {
    uint32_t words[KILN__CPU_WORD_COUNT];
} kiln__cpu_features;

/* Reads the machine's words; those that it does not have are 0. */
void kiln__cpu_features_read(kiln__cpu_features *out_features);

/* The name of the first feature that the level needs and the machine lacks; NULL if none. */
const char *kiln__cpu_features_missing(const kiln__cpu_features *features, int32_t level);

/* The row of the highest level that the machine supports; NULL if none. */
const kiln__cpu_target *kiln__cpu_features_best(const kiln__cpu_features *features);

/* The processor's model name, truncated to size bytes; "aarch64" if it has none. */
void kiln__cpu_name(char *name, size_t size);

#endif
