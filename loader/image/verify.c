#include "loader/image/inflate.h"
#include "loader/image/inspect.h"
#include "loader/target.h"

#include <stdlib.h>
#include <string.h>

static kiln_status verify_cpu(const kiln_part *part, const kiln_image *image) {
    for (uint32_t i = 0; i < part->kernel_count; i++) {
        kiln_kernel_info kernel = kiln_image_kernel(part, image, i);
        if (!kernel.function && !kernel.absent)
            return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "kernel %u has no function", i);
    }
    return KILN_OK;
}

static kiln_status verify_digest(const kiln_image *image) {
    uint8_t digest[32];
    kiln_sha256(image->data, (size_t)image->size, digest);
    if (memcmp(digest, image->sha256, sizeof digest) != 0)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "its sha256 is not the one in the table");
    return KILN_OK;
}

/* Every cubin of the second ABI version states 'a', and some of the first do; none states 'f'. */
static bool cubin_agrees(const kiln_image_facts *facts, const char *name) {
    enum { ABI_2 = 8 };
    int32_t capability = 0, file_capability = 0;
    char suffix = 0, file_suffix = 0;
    if (!kiln__nvidia_parse(name, &capability, &suffix)) return false;
    if (!kiln__nvidia_parse(facts->target, &file_capability, &file_suffix)) return true; /* it does not tell */
    bool exact_agrees = facts->exact ? suffix == 'a' : suffix != 'a' || facts->format_version != ABI_2;
    return capability == file_capability && exact_agrees;
}

/* Features may stand in either order. */
static bool hsaco_agrees(const kiln_image_facts *facts, const char *name) {
    kiln_target target, file_target;
    return kiln__amd_parse(name, &target) && kiln__amd_parse(facts->target, &file_target) &&
           strcmp(target.processor, file_target.processor) == 0 && target.xnack == file_target.xnack &&
           target.sramecc == file_target.sramecc;
}

static bool target_agrees(const kiln_image_facts *facts, const char *name) {
    if (facts->kind == KILN_IMAGE_CUBIN) return cubin_agrees(facts, name);
    if (facts->kind == KILN_IMAGE_HSACO) return hsaco_agrees(facts, name);
    return strcmp(name, facts->target) == 0;
}

static kiln_status verify_facts(const kiln_image *image, const kiln_image_facts *facts) {
    if (facts->kind != image->kind)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "it is a %s image: the table says %s",
                          kiln_image_kind_name(facts->kind), kiln_image_kind_name(image->kind));
    if (!target_agrees(facts, image->target))
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "it is for %s%s: the table says %s",
                          facts->target[0] ? facts->target : "a target that it does not tell",
                          facts->exact ? " alone" : "", image->target);
    if (facts->kind != KILN_IMAGE_CUBIN && facts->format_version != image->format_version)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "its format version is %u: the table says %u",
                          facts->format_version, image->format_version);
    if (facts->driver_version && facts->driver_version != image->driver_version)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "it needs driver version %u: the table says %u",
                          facts->driver_version, image->driver_version);
    return KILN_OK;
}

/* A number of a kernel that both know. */
static kiln_status verify_number(const char *what, uint32_t file, uint32_t table) {
    if (file != 0 && table != 0 && file != table)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "%u %s: the table says %u", file, what, table);
    return KILN_OK;
}

static kiln_status verify_info(const kiln_kernel_info *file, const kiln_kernel_info *table) {
    KILN__TRY(verify_number("bytes of arguments", file->arguments_size, table->arguments_size));
    KILN__TRY(verify_number("registers", file->registers, table->registers));
    KILN__TRY(verify_number("bytes of spills", file->spill_bytes, table->spill_bytes));
    KILN__TRY(verify_number("bytes of shared memory", file->shared_bytes, table->shared_bytes));
    return verify_number("threads at most", file->max_threads, table->max_threads);
}

/* Finds a kernel of the table in the file, which is read from its start. */
static kiln_status verify_kernel(const kiln_image *image, const char *name, const kiln_kernel_info *table) {
    kiln__image_reader reader;
    kiln_image_facts facts;
    kiln_kernel_facts kernel;
    KILN__TRY(kiln__image_open(image->data, (size_t)image->size, &reader, &facts));
    for (uint32_t i = 0; i < facts.kernel_count; i++) {
        KILN__TRY(kiln__image_next(&reader, &kernel));
        if (kiln__bytes_are(kernel.name, kernel.name_size, name)) return verify_info(&kernel.info, table);
    }
    return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "it is not in the file");
}

static kiln_status verify_bytes(const kiln_part *part, const kiln_image *image) {
    KILN__TRY(verify_digest(image));
    if (image->kind == KILN_IMAGE_PTX && ((const char *)image->data)[image->size] != '\0')
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "no NUL byte follows the PTX text");
    kiln_image_facts facts;
    KILN__TRY(kiln_image_inspect(image->data, (size_t)image->size, &facts, NULL, 0));
    KILN__TRY(verify_facts(image, &facts));
    for (uint32_t i = 0; i < part->kernel_count; i++) {
        kiln_kernel_info table = kiln_image_kernel(part, image, i);
        if (table.absent) continue;
        kiln_status status = verify_kernel(image, part->kernel_names[i], &table);
        if (status) return kiln__fail_within(status, "kernel %u", i);
    }
    return KILN_OK;
}

static kiln_status verify_gpu(const kiln_part *part, const kiln_image *image) {
    if (!image->data || image->size == 0 || image->size > SIZE_MAX)
        return kiln__fail(KILN_ERROR_CORRUPT_IMAGE, "it has no data");
    kiln_image unpacked = *image;
    void *memory = NULL;
    KILN__TRY(kiln__image_unpack(&unpacked, &memory));
    kiln_status status = verify_bytes(part, &unpacked);
    free(memory);
    return status;
}

kiln_status kiln_image_verify(const kiln_part *part, const kiln_image *image) {
    KILN__REQUIRE(part && image, "kiln_image_verify: %s is NULL", part ? "image" : "part");
    KILN__REQUIRE(image->target, "kiln_image_verify: image->target is NULL");
    kiln_status status = image->kind == KILN_IMAGE_CPU ? verify_cpu(part, image) : verify_gpu(part, image);
    return status ? kiln__fail_within(status, "%s %s", image->target, kiln_image_kind_name(image->kind)) : KILN_OK;
}
