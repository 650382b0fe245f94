/* Matrices in shared memory (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout"), as was recorded on
 * an H100: with r a row of A or a column of B, offsets from the start address are
 *
 *   along k, none:          r / 8 * stride + byte / 16 * leading + r % 8 * 16 + byte % 16
 *   along k, span s:        r / 8 * stride + r % 8 * s + byte
 *   transposed, none:       r / 8 * stride + k / 8 * leading + k % 8 * 16 + r % 8 * 2
 *   transposed, span s:     r / (s / 2) * leading + k / 8 * stride + k % 8 * s + r % (s / 2) * 2
 *
 * and of an address in a span bits 4 to 6 are turned by bits 7 to 9. */
#include "tests/sim/ptx/matrix/ptx_wgmma.h"
#include "tests/sim/ptx/memory/ptx_shared.h"
#include <string.h>

typedef struct tile {
    uint32_t start, leading, stride, base;
    uint32_t span; /* 0: not swizzled */
} tile;

/* The bits of a descriptor that mean nothing must be 0. */
static const uint64_t unknown_bits = 0x3ff1c000c000c000u;

static tile tile_of(uint64_t descriptor) {
    static const uint32_t spans[] = {0, 128, 64, 32};
    return (tile){.start = (uint32_t)(descriptor & 0x3fff) << 4,
                  .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                  .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                  .base = (uint32_t)(descriptor >> 49 & 7) * 128,
                  .span = spans[descriptor >> 62]};
}

/* The 16 bytes at an offset. NULL after a fault. */
static const uint8_t *granule_at(ptx_warp *warp, const ptx_op *op, const tile *t, uint32_t offset) {
    uint32_t address = t->start + offset;
    if (t->span) address ^= (address - t->base) >> 7 << 4 & (t->span - 16);
    const uint8_t *bytes = ptx_shared_bytes(warp, op, 0, address, PTX_WGMMA_GRANULE, true, false);
    if (!bytes || !ptx_shared_fenced(warp, op, 0, address, PTX_WGMMA_GRANULE)) return NULL;
    ptx_wgmma_hold(warp, address);
    return bytes;
}

static bool load_along(ptx_warp *warp, const ptx_op *op, const tile *t, uint32_t first, uint32_t count,
                       ptx_wgmma_line *lines) {
    for (uint32_t r = first; r < first + count; r++) {
        for (uint32_t part = 0; part < PTX_WGMMA_BYTES / PTX_WGMMA_GRANULE; part++) {
            uint32_t in_group = t->span ? r % 8 * t->span + part * PTX_WGMMA_GRANULE : r % 8 * 16 + part * t->leading;
            const uint8_t *bytes = granule_at(warp, op, t, r / 8 * t->stride + in_group);
            if (!bytes) return false;
            memcpy(lines[r - first] + part * PTX_WGMMA_GRANULE, bytes, PTX_WGMMA_GRANULE);
        }
    }
    return true;
}

/* Elements of 16 bits: eight neighbours of one k lie together. */
static bool load_transposed(ptx_warp *warp, const ptx_op *op, const tile *t, uint32_t first, uint32_t count,
                            ptx_wgmma_line *lines) {
    for (uint32_t r = first; r < first + count; r += 8) {
        uint32_t of_rows = t->span ? r / (t->span / 2) * t->leading + r % (t->span / 2) * 2 : r / 8 * t->stride;
        for (uint32_t k = 0; k < PTX_WGMMA_BYTES / 2; k++) {
            uint32_t of_k = t->span ? k / 8 * t->stride + k % 8 * t->span : k / 8 * t->leading + k % 8 * 16;
            const uint8_t *bytes = granule_at(warp, op, t, of_rows + of_k);
            if (!bytes) return false;
            for (uint32_t i = 0; i < 8; i++)
                memcpy(lines[r - first + i] + k * 2, bytes + i * 2, 2);
        }
    }
    return true;
}

bool ptx_wgmma_load(ptx_warp *warp, const ptx_op *op, uint64_t descriptor, bool transposed, uint32_t first,
                    uint32_t count, ptx_wgmma_line *lines) {
    tile t = tile_of(descriptor);
    if (descriptor & unknown_bits) {
        ptx_fault(warp, op, SIM_FAULT_ILLEGAL, 0, descriptor, "the bits 0x%llx of a matrix descriptor, which must be 0",
                  (unsigned long long)(descriptor & unknown_bits));
        return false;
    }
    return transposed ? load_transposed(warp, op, &t, first, count, lines)
                      : load_along(warp, op, &t, first, count, lines);
}
