#include "loader/tensor_map.h"
#include "loader/backend.h"
#include "loader/kept.h"
#include <string.h>

/* ---- Encoded maps ------------------------------------------------------------------------------------------------ */

/* A cache of encoded maps: a model's steps describe the same tensors repeatedly, and a driver takes 91 ns to encode a
 * map (measured on an H100). A map is a pure function of its description, whatever the device. */
enum { SLOTS = 256, DESCRIPTION_WORDS = 2 * KILN_KERNEL_MAP_RANK + 2, MAP_WORDS = KILN__TENSOR_MAP_BYTES / 8 };

typedef struct description {
    uint64_t words[DESCRIPTION_WORDS];
} description;

typedef struct slot {
    kiln__kept users;
    description of; /* all zero: the slot is empty */
    uint64_t map[MAP_WORDS];
} slot;

static slot slots[SLOTS];

/* All that a map depends on: address, box, type and rank; sizes; all strides but the innermost. */
static description describe(const kiln__tensor_layout *tensor, const uint16_t *box) {
    description made = {{(uintptr_t)tensor->data}};
    memcpy(&made.words[1], box, sizeof made.words[1]);
    made.words[2] = tensor->element_bytes | (uint64_t)tensor->tf32 << 8 | (uint64_t)tensor->rank << 16;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        made.words[3 + i] = tensor->sizes[i];
        if (i && tensor->sizes[i] > 1) made.words[2 + KILN_KERNEL_MAP_RANK + i] = tensor->strides[i];
    }
    return made;
}

static slot *slot_of(const description *wanted) {
    const uint64_t mixed = (wanted->words[0] >> 4) + 31 * (wanted->words[1] + 31 * wanted->words[4]);
    return &slots[mixed * 0x9e3779b97f4a7c15u >> 56];
}

/* Copies the slot's map to out_map, if it is the wanted one. */
static bool find(slot *at, const description *wanted, char *out_map) {
    if (!kiln__kept_read_begin(&at->users)) return false;
    const bool found = memcmp(&at->of, wanted, sizeof *wanted) == 0;
    if (found) memcpy(out_map, at->map, sizeof at->map);
    kiln__kept_read_end(&at->users);
    return found;
}

static void keep(slot *at, const description *made, const uint64_t *map) {
    if (!kiln__kept_write_begin(&at->users)) return;
    at->of = *made;
    memcpy(at->map, map, sizeof at->map);
    kiln__kept_write_end(&at->users);
}

/* ---- Encoding ---------------------------------------------------------------------------------------------------- */

_Static_assert(sizeof(uint16_t[KILN_KERNEL_MAP_RANK]) == sizeof(uint64_t), "a box is one word of a description");

kiln_status kiln__tensor_maps_encode(const kiln_kernel *kernel, const kiln__tensor_layout *tensors, void *arguments) {
    _Alignas(KILN__TENSOR_MAP_ALIGN) uint64_t map[MAP_WORDS];
    const kiln_kernel_info *info = &kernel->info;
    char *at = (char *)arguments + info->map_offset;
    if (kernel->device->plan) return KILN_OK;
    for (unsigned i = 0; i < kiln__tensor_map_count(info); i++, at += sizeof map) {
        const description wanted = describe(&tensors[i], info->boxes[i]);
        slot *kept = slot_of(&wanted);
        if (KILN__LIKELY(find(kept, &wanted, at))) continue;
        KILN__TRY(kernel->device->backend->tensor_map_encode(kernel, &tensors[i], info->boxes[i], map));
        memcpy(at, map, sizeof map);
        keep(kept, &wanted, map);
    }
    return KILN_OK;
}

kiln_status kiln__tensor_map_refuse(const kiln_kernel *kernel, const kiln__tensor_layout *tensor, const uint16_t *box,
                                    void *out_map) {
    (void)tensor;
    (void)box;
    (void)out_map;
    return kiln__fail(KILN_ERROR_UNSUPPORTED, "kernel %s: %s has no tensor maps", kernel->name,
                      kernel->device->backend->name);
}
