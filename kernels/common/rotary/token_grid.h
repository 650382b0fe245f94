/* The place of a token in a grid of frames, rows and columns. The includer defines what place.h asks for. */
#ifndef KILN_KERNELS_COMMON_ROTARY_TOKEN_GRID_H
#define KILN_KERNELS_COMMON_ROTARY_TOKEN_GRID_H

#include "kernels/common/rotary/place.h"

/* Fills in the positions. Returns false for a token after the grid's last, and if the grid has no tokens. */
KILN_INLINE bool kiln_grid_place(const int32_t *grid, uint32_t token, kiln_place *place) {
    if (grid[0] <= 0 || grid[1] <= 0 || grid[2] <= 0) return false;
    uint32_t line = token / (uint32_t)grid[2];
    place->positions[2] = token % (uint32_t)grid[2];
    place->positions[1] = line % (uint32_t)grid[1];
    place->positions[0] = line / (uint32_t)grid[1];
    return place->positions[0] < (uint32_t)grid[0];
}

#endif
