/* Boxes of tensors. What the ISA leaves open is as an H100 recorded it: a load fills what is outside, also at negative
 * coordinates; a store clips what is beyond the end, of the first dimension in granules of 16 bytes, so that the
 * padding behind a row changes; a store to a negative coordinate is an error. */
#include "tests/sim/ptx/memory/ptx_tensor.h"
#include "tests/sim/ptx/memory/ptx_atomic.h"
#include <string.h>

enum { GRANULE = 16 };

uint32_t ptx_tensor_element(const ptx_tensor_map *map) {
    static const uint8_t bytes[] = {
#define PTX_TENSOR_TYPE(name, bytes, type) bytes,
#include "tests/sim/ptx/memory/ptx_tensor_types.def"
#undef PTX_TENSOR_TYPE
    };
    return bytes[map->type];
}

static uint32_t count_of(const ptx_tensor_map *map, uint32_t i) {
    return i ? (map->box[i] + map->steps[i] - 1u) / map->steps[i] : map->box[0];
}

uint32_t ptx_tensor_row(const ptx_tensor_map *map) {
    return (map->by_pixels ? map->channels : map->box[0]) * ptx_tensor_element(map);
}

static uint32_t rows_of(const ptx_tensor_map *map) {
    uint32_t rows = 1;
    for (uint32_t i = 1; i < map->rank; i++)
        rows *= count_of(map, i);
    return map->by_pixels ? map->pixels : rows;
}

uint32_t ptx_tensor_bytes(const ptx_tensor_map *map) {
    return rows_of(map) * ptx_tensor_row(map);
}

static uint32_t span_of(const ptx_tensor_map *map) {
    return map->swizzle ? (uint32_t)GRANULE << map->swizzle : 0;
}

uint32_t ptx_tensor_pitch(const ptx_tensor_map *map) {
    const uint32_t row = ptx_tensor_row(map), span = span_of(map);
    return row > span ? row : span;
}

uint64_t ptx_tensor_swizzle(const ptx_tensor_map *map, uint64_t address) {
    const uint32_t span = span_of(map);
    return span ? address ^ (address >> 7 & (span / GRANULE - 1)) * GRANULE : address;
}

static uint64_t stride_of(const ptx_tensor_map *map, uint32_t i) {
    return i ? map->strides[i - 1] : ptx_tensor_element(map);
}

/* Pixels walk the dimensions between the first and the last inside their bounds, then the last. */
static void pixel_at(const ptx_tensor_box *box, uint32_t pixel, int64_t at[PTX_TENSOR_RANK]) {
    const ptx_tensor_map *map = &box->map;
    for (uint32_t i = 0; i < map->rank; i++)
        at[i] = box->at[i];
    for (; pixel; pixel--) {
        for (uint32_t i = 1; i < map->rank; i++) {
            at[i] += map->steps[i];
            if (i == map->rank - 1u || at[i] <= (int64_t)map->dims[i] - 1 + map->upper[i - 1]) break;
            at[i] = map->lower[i - 1];
        }
    }
    for (uint32_t i = 1; i + 1 < map->rank; i++)
        at[i] += box->offsets[i - 1];
}

static void tile_at(const ptx_tensor_box *box, uint32_t row, int64_t at[PTX_TENSOR_RANK]) {
    const ptx_tensor_map *map = &box->map;
    at[0] = box->at[0];
    for (uint32_t i = 1; i < map->rank; i++) {
        at[i] = box->at[i] + (int64_t)(row % count_of(map, i)) * map->steps[i];
        row /= count_of(map, i);
    }
}

uint64_t ptx_tensor_row_at(const ptx_tensor_box *box, uint32_t row, bool *out_inside) {
    const ptx_tensor_map *map = &box->map;
    int64_t at[PTX_TENSOR_RANK];
    uint64_t address = map->address;
    if (map->by_pixels)
        pixel_at(box, row, at);
    else
        tile_at(box, row, at);
    *out_inside = true;
    for (uint32_t i = 0; i < map->rank; i++) {
        address += (uint64_t)at[i] * stride_of(map, i);
        *out_inside &= i == 0 || (at[i] >= 0 && at[i] < (int64_t)map->dims[i]);
    }
    return address;
}

static uint32_t round_tf32(uint32_t x) {
    if ((x & 0x7fffffff) > 0x7f800000) return 0x7fffe000;
    return (x + 0xfff + (x >> 13 & 1)) & ~0x1fffu;
}

static void fill(const ptx_tensor_map *map, uint8_t *bytes, uint32_t size) {
    const uint16_t nan = 0x7ff7;
    memset(bytes, 0, size);
    for (uint32_t i = 0; map->fill && i + sizeof nan <= size; i += (uint32_t)sizeof nan)
        memcpy(bytes + i, &nan, sizeof nan);
}

/* What the first dimension has of a row: elements from *out_first on. */
static uint32_t inside_of(const ptx_tensor_box *box, uint32_t *out_first) {
    const int64_t from = box->at[0], width = ptx_tensor_row(&box->map) / ptx_tensor_element(&box->map);
    const int64_t first = from < 0 ? -from : 0, end = (int64_t)box->map.dims[0] - from;
    const int64_t last = end < width ? end : width;
    *out_first = (uint32_t)(first < width ? first : width);
    return last > first ? (uint32_t)(last - first) : 0;
}

bool ptx_tensor_load(ptx_warp *warp, const ptx_op *op, uint32_t lane, const ptx_tensor_box *box, uint8_t *bytes) {
    const ptx_tensor_map *map = &box->map;
    const uint32_t element = ptx_tensor_element(map), row = ptx_tensor_row(map);
    uint32_t first;
    const uint32_t count = inside_of(box, &first);
    fill(map, bytes, ptx_tensor_bytes(map));
    for (uint32_t r = 0; r < rows_of(map); r++) {
        bool inside;
        const uint64_t at = ptx_tensor_row_at(box, r, &inside) + first * element;
        uint8_t *to = bytes + r * row + first * element;
        if (!inside || !count) continue;
        const uint8_t *from = ptx_global_bytes(warp, op, lane, at, count * element, true, false);
        if (!from) return false;
        ptx_memory_count_span(warp, at, count * element, false);
        memcpy(to, from, count * element);
        for (uint32_t i = 0; i < count && (map->type == PTX_TENSOR_TF32 || map->type == PTX_TENSOR_TF32_FTZ); i++) {
            uint32_t value;
            memcpy(&value, to + i * element, sizeof value);
            value = round_tf32(value);
            memcpy(to + i * element, &value, sizeof value);
        }
    }
    return true;
}

static ptx_type type_of(const ptx_tensor_map *map) {
    static const ptx_type types[] = {
#define PTX_TENSOR_TYPE(name, bytes, type) type,
#include "tests/sim/ptx/memory/ptx_tensor_types.def"
#undef PTX_TENSOR_TYPE
    };
    return types[map->type];
}

bool ptx_tensor_store(ptx_warp *warp, const ptx_op *op, uint32_t lane, const ptx_tensor_box *box, const uint8_t *bytes,
                      bool reduces) {
    const ptx_tensor_map *map = &box->map;
    const uint32_t element = ptx_tensor_element(map), row = ptx_tensor_row(map);
    const int64_t left = (int64_t)map->dims[0] - box->at[0];
    const int64_t reach = left > 0 ? (left * element + GRANULE - 1) / GRANULE * GRANULE : 0;
    const uint32_t size = reach < row ? (uint32_t)reach : row;
    for (uint32_t i = 0; i < map->rank; i++) {
        if (box->at[i] >= 0) continue;
        ptx_fault(warp, op, SIM_FAULT_ILLEGAL, lane, map->address, "a store to coordinate %d of dimension %u",
                  box->at[i], i);
        return false;
    }
    for (uint32_t r = 0; r < rows_of(map); r++) {
        bool inside;
        const uint64_t at = ptx_tensor_row_at(box, r, &inside);
        if (!inside || !size) continue;
        uint8_t *to = ptx_global_bytes(warp, op, lane, at, size, reduces, true);
        if (!to) return false;
        ptx_memory_count_span(warp, at, size, true);
        if (reduces)
            ptx_atomic_reduce(op, type_of(map), map->type == PTX_TENSOR_F32_FTZ, to, bytes + r * row, size);
        else
            memcpy(to, bytes + r * row, size);
    }
    return true;
}
