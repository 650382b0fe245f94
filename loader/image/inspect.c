#include "loader/image/inspect.h"

#include "loader/target.h"

#include <stdio.h>
#include <string.h>

/* ---- Other formats ------------------------------------------------------------------------------------------------
 */

/* What people hand over instead of an image, by its first bytes, and what to do about it. */
static const struct {
    const char *magic;
    size_t size;
    const char *text;
} foreign_formats[] = {
    {"\xb1\x43\x62\x46", 4, "an NVIDIA fat binary: compile with nvcc -cubin or -ptx, or take it apart with cuobjdump"},
    {"\x50\xed\x55\xba", 4, "an NVIDIA fat binary: compile with nvcc -cubin or -ptx, or take it apart with cuobjdump"},
    {"CCOB", 4, "a compressed offload bundle: compile with --no-gpu-bundle-output, or run clang-offload-bundler"},
    {"__CLANG_OFFLOAD_BUNDLE__", 24,
     "an offload bundle: compile with --no-gpu-bundle-output, or run clang-offload-bundler"},
    {"\x10\xff\x10\xad", 4, "an LLVM offload binary: take it apart with clang-offload-packager"},
    {"BC\xc0\xde", 4, "LLVM bitcode: compile and link it for its target"},
    {"\xde\xc0\x17\x0b", 4, "LLVM bitcode: compile and link it for its target"},
    {"!<arch>\n", 8, "an archive: take the image out with ar"},
    {"!<thin>\n", 8, "a thin archive, which holds no image: give the image itself"},
};

static kiln_status not_an_image(const void *bytes, size_t size) {
    for (size_t i = 0; i < sizeof foreign_formats / sizeof *foreign_formats; i++)
        if (size >= foreign_formats[i].size && memcmp(bytes, foreign_formats[i].magic, foreign_formats[i].size) == 0)
            return kiln__fail(KILN_ERROR_UNSUPPORTED, "this is %s", foreign_formats[i].text);
    uint8_t first[4] = {0};
    memcpy(first, bytes, size < sizeof first ? size : sizeof first);
    return kiln__fail(KILN_ERROR_UNSUPPORTED,
                      "not a PTX, cubin or HSACO image: %zu bytes that begin with %02x %02x %02x %02x", size, first[0],
                      first[1], first[2], first[3]);
}

/* ---- The kinds ----------------------------------------------------------------------------------------------------
 */

static kiln_status open_cubin(const void *bytes, size_t size, kiln__image_reader *reader, kiln_image_facts *facts) {
    kiln__cubin *cubin = &reader->cubin;
    KILN__TRY(kiln__cubin_read(bytes, size, cubin));
    reader->cubin_cursor = 0;
    if (cubin->capability) snprintf(facts->target, sizeof facts->target, "sm_%d", cubin->capability);
    facts->exact = cubin->exact;
    facts->format_version = cubin->elf.abi_version;
    facts->kernel_count = cubin->kernel_count;
    return KILN_OK;
}

static kiln_status open_hsaco(const void *bytes, size_t size, kiln__image_reader *reader, kiln_image_facts *facts) {
    kiln__hsaco *hsaco = &reader->hsaco;
    KILN__TRY(kiln__hsaco_read(bytes, size, hsaco));
    reader->hsaco_rest = hsaco->kernels;
    KILN__TRY(kiln__elf_read(bytes, size, &reader->hsaco_elf));
    KILN__TRY(kiln__descriptor_symbols(&reader->hsaco_elf, &reader->hsaco_symbols));
    snprintf(facts->target, sizeof facts->target, "%s", hsaco->target);
    facts->format_version = hsaco->code_object_version;
    facts->kernel_count = hsaco->kernel_count;
    return KILN_OK;
}

static kiln_status open_ptx(const void *bytes, size_t size, kiln__image_reader *reader, kiln_image_facts *facts) {
    kiln__ptx *ptx = &reader->ptx;
    KILN__TRY(kiln__ptx_read(bytes, size, ptx));
    reader->ptx_place = ptx->body;
    int32_t driver = kiln__ptx_driver(ptx->version);
    if (driver == INT32_MAX)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "PTX: .version %d.%d is newer than this version of kiln knows",
                          ptx->version / 10, ptx->version % 10);
    kiln__bytes missing;
    KILN__TRY(kiln__ptx_unresolved(ptx, &missing));
    if (missing.size)
        return kiln__fail(
            KILN_ERROR_UNSUPPORTED,
            "PTX: function %.*s is declared .extern, used and not defined: a text is loaded alone, so link "
            "what defines it into it",
            missing.size < 200 ? (int)missing.size : 200, (const char *)missing.at);
    snprintf(facts->target, sizeof facts->target, "%s", ptx->target);
    facts->format_version = (uint32_t)ptx->version;
    facts->driver_version = (uint32_t)driver;
    facts->kernel_count = ptx->kernel_count;
    return KILN_OK;
}

static kiln_status open_elf(const void *bytes, size_t size, kiln__image_reader *reader, kiln_image_facts *facts) {
    kiln__elf elf;
    KILN__TRY(kiln__elf_read(bytes, size, &elf));
    switch (elf.machine) {
    case KILN__ELF_MACHINE_CUDA:
        facts->kind = KILN_IMAGE_CUBIN;
        return open_cubin(bytes, size, reader, facts);
    case KILN__ELF_MACHINE_AMDGPU:
        facts->kind = KILN_IMAGE_HSACO;
        return open_hsaco(bytes, size, reader, facts);
    default:
        return kiln__fail(KILN_ERROR_UNSUPPORTED,
                          "this is an ELF file for machine %u, which is no GPU: give the device image itself",
                          elf.machine);
    }
}

kiln_status kiln__image_open(const void *bytes, size_t size, kiln__image_reader *out_reader,
                             kiln_image_facts *out_facts) {
    memset(out_reader, 0, sizeof *out_reader);
    memset(out_facts, 0, sizeof *out_facts);
    if (size == 0) return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "the image is empty");
    kiln_image_facts facts = {.kind = KILN_IMAGE_PTX};
    if (kiln__elf_is(bytes, size))
        KILN__TRY(open_elf(bytes, size, out_reader, &facts));
    else if (kiln__ptx_is(bytes, size))
        KILN__TRY(open_ptx(bytes, size, out_reader, &facts));
    else
        return not_an_image(bytes, size);
    out_reader->kind = facts.kind;
    *out_facts = facts;
    return KILN_OK;
}

/* ---- Kernels ------------------------------------------------------------------------------------------------------
 */

/* Spilled registers are of 4 bytes in each thread. */
static uint32_t spill_bytes(const kiln__hsaco_kernel *kernel) {
    uint64_t bytes = 4 * ((uint64_t)kernel->vgpr_spills + kernel->sgpr_spills);
    return bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

static kiln_status next_hsaco(kiln__image_reader *reader, kiln_kernel_facts *out_kernel) {
    kiln__hsaco_kernel kernel;
    KILN__TRY(kiln__hsaco_kernel_next(&reader->hsaco_rest, &kernel));
    KILN__TRY(kiln__descriptor_check(&reader->hsaco_elf, &reader->hsaco_symbols, &kernel));
    memset(out_kernel, 0, sizeof *out_kernel);
    out_kernel->name = (const char *)kernel.name.at;
    out_kernel->name_size = kernel.name.size;
    out_kernel->info = (kiln_kernel_info){
        .arguments_size = kernel.arguments_size,
        .registers = kernel.vgprs,
        .spill_bytes = spill_bytes(&kernel),
        .shared_bytes = kernel.group_bytes,
        .max_threads = kernel.max_threads,
    };
    return KILN_OK;
}

kiln_status kiln__image_next(kiln__image_reader *reader, kiln_kernel_facts *out_kernel) {
    if (reader->kind == KILN_IMAGE_CUBIN)
        return kiln__cubin_kernel_next(&reader->cubin, &reader->cubin_cursor, out_kernel);
    if (reader->kind == KILN_IMAGE_HSACO) return next_hsaco(reader, out_kernel);
    return kiln__ptx_kernel_next(&reader->ptx, &reader->ptx_place, out_kernel);
}

static kiln_status list_kernels(kiln__image_reader *reader, uint32_t count, kiln_kernel_facts *kernels, size_t room) {
    kiln_kernel_facts kernel;
    for (uint32_t i = 0; i < count; i++) {
        kiln_status status = kiln__image_next(reader, &kernel);
        if (status) return kiln__fail_within(status, "kernel %u", i);
        if (i < room) kernels[i] = kernel;
    }
    return KILN_OK;
}

kiln_status kiln_image_inspect(const void *bytes, size_t size, kiln_image_facts *out_facts, kiln_kernel_facts *kernels,
                               size_t kernel_room) {
    KILN__REQUIRE(out_facts, "kiln_image_inspect: out_facts is NULL");
    memset(out_facts, 0, sizeof *out_facts);
    KILN__REQUIRE(kernels || kernel_room == 0, "kiln_image_inspect: kernels is NULL and kernel_room is %zu",
                  kernel_room);
    if (kernel_room) memset(kernels, 0, kernel_room * sizeof *kernels);
    KILN__REQUIRE(bytes, "kiln_image_inspect: bytes is NULL");
    kiln__image_reader reader;
    kiln_image_facts facts;
    KILN__TRY(kiln__image_open(bytes, size, &reader, &facts));
    kiln_status status = list_kernels(&reader, facts.kernel_count, kernels, kernel_room);
    if (status) {
        if (kernel_room) memset(kernels, 0, kernel_room * sizeof *kernels);
        return status;
    }
    *out_facts = facts;
    return KILN_OK;
}
