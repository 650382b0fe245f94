/* Tensor maps, and the boxes of a tensor that bulk copies move between global and shared memory. */
#ifndef KILN_TESTS_SIM_PTX_TENSOR_H
#define KILN_TESTS_SIM_PTX_TENSOR_H

#include "tests/sim/ptx/warp/ptx_warp.h"

enum { PTX_TENSOR_RANK = 5, PTX_TENSOR_MAP_BYTES = 128, PTX_TENSOR_MAP_ALIGN = 64, PTX_TENSOR_MAGIC = 0x70616d74 };

/* As the driver numbers them: CUtensorMapDataType. */
enum {
#define PTX_TENSOR_TYPE(name, bytes, type) PTX_TENSOR_##name,
#include "tests/sim/ptx/memory/ptx_tensor_types.def"
#undef PTX_TENSOR_TYPE
    PTX_TENSOR_TYPES
};

/* What the driver writes into a CUtensorMap: the interpreter's own form of it. Elements of dimension 0 lie side by
 * side; strides[i] bytes are between those of dimension i + 1. */
typedef struct ptx_tensor_map {
    uint32_t magic;
    uint8_t type, rank, swizzle, fill; /* swizzle: 0, or 1 to 3 for spans of 32, 64, 128 bytes; fill 1: with NaN */
    uint64_t address;
    uint64_t strides[PTX_TENSOR_RANK - 1];
    uint64_t dims[PTX_TENSOR_RANK];
    uint16_t box[PTX_TENSOR_RANK];
    uint8_t steps[PTX_TENSOR_RANK]; /* elementStrides */
    uint8_t by_pixels;              /* im2col: a box of channels and pixels */
    int16_t lower[3], upper[3];
    uint16_t channels, pixels;
} ptx_tensor_map;

_Static_assert(sizeof(ptx_tensor_map) <= PTX_TENSOR_MAP_BYTES, "it is in a CUtensorMap");

/* A box that an instruction names. */
typedef struct ptx_tensor_box {
    ptx_tensor_map map;
    int32_t at[PTX_TENSOR_RANK];
    uint16_t offsets[3]; /* of im2col */
} ptx_tensor_box;

uint32_t ptx_tensor_element(const ptx_tensor_map *map);
/* The bytes of a box, those outside the tensor included, and without the gaps that it has in shared memory. */
uint32_t ptx_tensor_bytes(const ptx_tensor_map *map);
/* The bytes of one row of it, and of shared memory from one to the next. */
uint32_t ptx_tensor_row(const ptx_tensor_map *map);
uint32_t ptx_tensor_pitch(const ptx_tensor_map *map);
/* Where in shared memory a byte goes that would be at an address without swizzling. */
uint64_t ptx_tensor_swizzle(const ptx_tensor_map *map, uint64_t address);

/* Row number i of a box: where in global memory its first element is, and whether it is inside the tensor but for the
 * first dimension. */
uint64_t ptx_tensor_row_at(const ptx_tensor_box *box, uint32_t row, bool *out_inside);

/* Fills bytes with a box, what is outside the tensor as the map says. false after a fault. */
bool ptx_tensor_load(ptx_warp *warp, const ptx_op *op, uint32_t lane, const ptx_tensor_box *box, uint8_t *bytes);
/* Writes a box, or reduces with it where the instruction has a function. false after a fault. */
bool ptx_tensor_store(ptx_warp *warp, const ptx_op *op, uint32_t lane, const ptx_tensor_box *box, const uint8_t *bytes,
                      bool reduces);

#endif
