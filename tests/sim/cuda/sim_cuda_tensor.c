/* Tensor maps of tiles, in the interpreter's own form. What is taken and refused is as a driver answered on an H100. */
#include "tests/sim/cuda/sim_cuda.h"
#include "tests/sim/ptx/memory/ptx_tensor.h"
#include <string.h>

enum {
    BOX_MAX = 256,
    STEP_MAX = 8,
    GRANULE = 16,
    SWIZZLE_MAX = 3,
    PROMOTION_MAX = 3,
    INTERLEAVE_MAX = 2,
    BOX_BYTES_MAX = 232448 /* what a block may have */
};

#define DIM_MAX    (1ull << 32)
#define STRIDE_MAX (1ull << 40)

static bool dimension_fits(uint64_t size, uint32_t box, uint32_t step) {
    return size && size <= DIM_MAX && box && box <= BOX_MAX && step && step <= STEP_MAX;
}

/* Whether the box is one that copies have. */
static bool box_fits(const ptx_tensor_map *map) {
    const uint32_t row = ptx_tensor_row(map);
    uint64_t bytes = row;
    for (uint32_t i = 1; i < map->rank; i++)
        bytes *= map->box[i];
    return row % GRANULE == 0 && (!map->swizzle || row <= (uint32_t)GRANULE << map->swizzle) && bytes <= BOX_BYTES_MAX;
}

kiln__cu_result cuTensorMapEncodeTiled(struct CUtensorMap_st *out_map, kiln__cu_enum type, uint32_t rank, void *address,
                                       const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
                                       const uint32_t *steps, kiln__cu_enum interleave, kiln__cu_enum swizzle,
                                       kiln__cu_enum promotion, kiln__cu_enum fill) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_map && dims && box && steps && (strides || rank < 2), SIM_CUDA_INVALID_VALUE,
                  "cuTensorMapEncodeTiled: an argument is NULL");
    SIM_CUDA_RULE((uintptr_t)out_map % PTX_TENSOR_MAP_ALIGN == 0, SIM_CUDA_INVALID_VALUE,
                  "cuTensorMapEncodeTiled: the map is not aligned to 64 bytes");
    if (type >= PTX_TENSOR_TYPES || !rank || rank > PTX_TENSOR_RANK || (uintptr_t)address % GRANULE ||
        interleave > INTERLEAVE_MAX || swizzle > SWIZZLE_MAX || promotion > PROMOTION_MAX || fill > 1 ||
        (fill && type < PTX_TENSOR_F16))
        return SIM_CUDA_INVALID_VALUE;
    SIM_CUDA_RULE(!interleave, SIM_CUDA_NOT_SUPPORTED, "cuTensorMapEncodeTiled: interleaved layouts are not presented");
    ptx_tensor_map map = {.magic = PTX_TENSOR_MAGIC,
                          .type = (uint8_t)type,
                          .rank = (uint8_t)rank,
                          .swizzle = (uint8_t)swizzle,
                          .fill = (uint8_t)fill,
                          .address = (uintptr_t)address};
    for (uint32_t i = 0; i < rank; i++) {
        if (!dimension_fits(dims[i], box[i], steps[i])) return SIM_CUDA_INVALID_VALUE;
        if (i && (strides[i - 1] % GRANULE || strides[i - 1] >= STRIDE_MAX)) return SIM_CUDA_INVALID_VALUE;
        map.dims[i] = dims[i];
        map.box[i] = (uint16_t)box[i];
        map.steps[i] = (uint8_t)steps[i];
        if (i) map.strides[i - 1] = strides[i - 1];
    }
    if (!box_fits(&map)) return SIM_CUDA_INVALID_VALUE;
    memset(out_map, 0, PTX_TENSOR_MAP_BYTES);
    memcpy(out_map, &map, sizeof map);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuTensorMapReplaceAddress(struct CUtensorMap_st *map, void *address) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(map && ((const ptx_tensor_map *)(const void *)map)->magic == PTX_TENSOR_MAGIC, SIM_CUDA_INVALID_VALUE,
                  "cuTensorMapReplaceAddress: there is no tensor map");
    if ((uintptr_t)address % GRANULE) return SIM_CUDA_INVALID_VALUE;
    ((ptx_tensor_map *)(void *)map)->address = (uintptr_t)address;
    return SIM_CUDA_SUCCESS;
}
