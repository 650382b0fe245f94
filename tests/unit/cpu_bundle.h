/* A user's bundle with two kernels on the CPU, for tests of the loader that need no GPU. */
#ifndef KILN_TESTS_CPU_BUNDLE_H
#define KILN_TESTS_CPU_BUNDLE_H

#include <kiln/kiln.h>
#include <stddef.h>

typedef struct cpu_arguments {
    uint32_t *out; /* one word for each group */
    uint32_t value;
    uint32_t count;
} cpu_arguments;

static void cpu_set(const void *bytes, const kiln_cpu_span *span) {
    const cpu_arguments *arguments = bytes;
    for (uint64_t i = span->begin; i < span->end && i < arguments->count; i++)
        arguments->out[i] = arguments->value;
}

static void cpu_add(const void *bytes, const kiln_cpu_span *span) {
    const cpu_arguments *arguments = bytes;
    for (uint64_t i = span->begin; i < span->end && i < arguments->count; i++)
        arguments->out[i] += arguments->value;
}

#if defined(__aarch64__)
#define CPU_BUNDLE_LEVEL "aarch64"
#else
#define CPU_BUNDLE_LEVEL "x86-64-v2"
#endif

static const kiln_kernel_info cpu_kernels[] = {
    {.name = "set", .arguments_size = sizeof(cpu_arguments), .function = cpu_set},
    {.name = "add", .arguments_size = sizeof(cpu_arguments), .function = cpu_add},
};
static const char *const cpu_kernel_names[] = {"set", "add"};

/* An image that fits, one for a chip that is not there. */
static const kiln_image cpu_images[] = {
    {.target = "sm_90a", .data = "x", .size = 1, .kind = KILN_IMAGE_CUBIN, .kernel_size = sizeof(kiln_kernel_info)},
    {.target = CPU_BUNDLE_LEVEL,
     .kind = KILN_IMAGE_CPU,
     .kernel_size = sizeof(kiln_kernel_info),
     .kernels = cpu_kernels},
};

static const kiln_part cpu_parts[] = {
    {.name = "f32",
     .images = cpu_images,
     .kernel_names = cpu_kernel_names,
     .image_count = 2,
     .image_size = sizeof(kiln_image),
     .kernel_count = 2},
    {.name = "gpu only",
     .images = cpu_images,
     .kernel_names = cpu_kernel_names,
     .image_count = 1,
     .image_size = sizeof(kiln_image),
     .kernel_count = 2},
};

static const kiln_bundle cpu_bundle = {.version = KILN_BUNDLE_VERSION,
                                       .part_size = sizeof(kiln_part),
                                       .name = "user",
                                       .parts = cpu_parts,
                                       .part_count = 2};

#endif
