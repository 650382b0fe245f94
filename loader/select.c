/* Selection: a pure function from (images, device properties) to (candidates in order, reasons). The rules are the
 * vendors': NVIDIA's CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility" and "Family-Specific
 * Compute Capabilities"; LLVM's "User Guide for AMDGPU Backend", target IDs and generic processors. */
#include "loader/bundle.h"
#include "loader/target.h"
#include <string.h>

typedef struct judgement {
    uint32_t reasons, rank;
} judgement;

static judgement refused(uint32_t reasons) {
    return (judgement){reasons, 0};
}

static uint32_t suffix_order(char suffix) {
    return suffix == 'a' ? 2 : suffix == 'f' ? 1 : 0;
}

/* A higher tier wins whatever the order; order decides within a tier. */
static judgement fits(uint32_t tier, uint32_t order) {
    return (judgement){0, tier << 16 | (order + 1)};
}

static bool driver_reads(const kiln_image *image, const kiln_target *target) {
    int32_t lowest = (int32_t)image->driver_version;
    if (!lowest && image->kind == KILN_IMAGE_PTX) lowest = kiln__ptx_driver((int32_t)image->format_version);
    return target->driver_version >= lowest;
}

/* An 'a' image runs on exactly that chip, an 'f' image also on later chips of its family (the same major). A plain
 * cubin runs on the same major with an equal or higher minor, plain PTX on any equal or higher capability. */
static judgement judge_nvidia(const kiln_image *image, const kiln_target *target) {
    int32_t capability;
    char suffix;
    if (!kiln__nvidia_parse(image->target, &capability, &suffix)) return refused(KILN_REASON_MALFORMED);
    bool ptx = image->kind == KILN_IMAGE_PTX;
    int32_t device = target->compute_capability;
    uint32_t reasons = driver_reads(image, target) ? 0 : KILN_REASON_DRIVER;
    if (suffix == 'a') {
        if (device != capability) reasons |= KILN_REASON_EXACT;
    } else if (ptx && !suffix) {
        if (device < capability) reasons |= KILN_REASON_CAPABILITY;
    } else if (device / 10 != capability / 10) {
        reasons |= suffix ? KILN_REASON_FAMILY : KILN_REASON_MAJOR;
    } else if (device < capability) {
        reasons |= KILN_REASON_MINOR;
    }
    if (reasons) return refused(reasons);
    enum { TIER_PTX = 1, TIER_LOWER_MINOR, TIER_EXACT };
    uint32_t tier = ptx ? TIER_PTX : device == capability ? TIER_EXACT : TIER_LOWER_MINOR;
    return fits(tier, (uint32_t)capability * 4 + suffix_order(suffix));
}

/* The image must be for the processor or, ranked last, its generic family, and each feature that it states must match
 * the device's. */
static judgement judge_amd(const kiln_image *image, const kiln_target *target) {
    size_t length = strcspn(image->target, ":");
    int32_t xnack, sramecc;
    if (!kiln__amd_features(image->target + length, &xnack, &sramecc)) return refused(KILN_REASON_MALFORMED);
    bool exact = strlen(target->processor) == length && memcmp(image->target, target->processor, length) == 0;
    bool generic = length && strlen(target->generic) == length && memcmp(image->target, target->generic, length) == 0;
    uint32_t reasons = exact || generic ? 0 : KILN_REASON_PROCESSOR;
    if (xnack && xnack != target->xnack) reasons |= KILN_REASON_XNACK;
    if (sramecc && sramecc != target->sramecc) reasons |= KILN_REASON_SRAMECC;
    if (reasons) return refused(reasons);
    enum { TIER_GENERIC = 1, TIER_EXACT };
    return fits(exact ? TIER_EXACT : TIER_GENERIC, (uint32_t)(!!xnack + !!sramecc));
}

static judgement judge_cpu(const kiln_image *image, const kiln_target *target) {
    const kiln__cpu_target *wanted = kiln__cpu_target_find(image->target);
    const kiln__cpu_target *machine = kiln__cpu_target_find(target->processor);
    if (!wanted) return refused(KILN_REASON_TARGET);
    if (!machine) return refused(KILN_REASON_CPU_LEVEL);
    if (strcmp(wanted->host, machine->host) != 0) return refused(KILN_REASON_PROCESSOR);
    if (wanted->level > machine->level) return refused(KILN_REASON_CPU_LEVEL);
    return fits(1, (uint32_t)wanted->level);
}

static judgement judge(const kiln_image *image, const kiln_target *target) {
    if (!image->target || (image->kind != KILN_IMAGE_CPU && (!image->data || !image->size)))
        return refused(KILN_REASON_MALFORMED);
    switch (image->kind) {
    case KILN_IMAGE_PTX:
    case KILN_IMAGE_CUBIN:
        return target->backend == KILN_BACKEND_CUDA ? judge_nvidia(image, target) : refused(KILN_REASON_BACKEND);
    case KILN_IMAGE_HSACO:
        return target->backend == KILN_BACKEND_ROCM ? judge_amd(image, target) : refused(KILN_REASON_BACKEND);
    case KILN_IMAGE_CPU:
        return target->backend == KILN_BACKEND_CPU ? judge_cpu(image, target) : refused(KILN_REASON_BACKEND);
    }
    return refused(KILN_REASON_MALFORMED);
}

kiln_status kiln_select(const kiln_bundle *bundle, const kiln_part *part, const kiln_target *target,
                        kiln_candidate *candidates, uint32_t *out_fitting) {
    KILN__REQUIRE(out_fitting, "kiln_select: out_fitting is NULL");
    *out_fitting = 0;
    KILN__REQUIRE(bundle && part && target, "kiln_select: bundle, part or target is NULL");
    KILN__REQUIRE(bundle->version == KILN_BUNDLE_VERSION, "kiln_select: bundle has version %u, this kiln reads %d",
                  bundle->version, KILN_BUNDLE_VERSION);
    KILN__REQUIRE(kiln__part_valid(part), "kiln_select: part is malformed");
    KILN__REQUIRE(candidates || part->image_count == 0, "kiln_select: candidates is NULL");
    /* Stable insertion sort by rank. Images that do not fit have rank 0 and come last, in the part's order. */
    uint32_t fitting = 0;
    for (uint32_t i = 0; i < part->image_count; i++) {
        kiln_image image = kiln_part_image(part, i);
        judgement verdict = judge(&image, target);
        uint32_t place = i;
        while (place > 0 && candidates[place - 1].rank < verdict.rank) {
            candidates[place] = candidates[place - 1];
            place--;
        }
        candidates[place] = (kiln_candidate){.image = i, .reasons = verdict.reasons, .rank = verdict.rank};
        fitting += verdict.rank != 0;
    }
    *out_fitting = fitting;
    return KILN_OK;
}
