/* The position of a token on up to three axes, and the axis by which each pair of a head is rotated: rope has one,
 * rope3d three. The includer (device.h, cpu.h) defines what turn.h asks for. */
#ifndef KILN_KERNELS_COMMON_PLACE_H
#define KILN_KERNELS_COMMON_PLACE_H

#include "kernels/common/turn.h"

/* Pairs before first have axis 0, those before second axis 1, the others axis 2. */
typedef struct kiln_place {
    uint64_t positions[3];
    uint32_t first, second;
} kiln_place;

KILN_INLINE uint64_t kiln_angle(const kiln_place *place, const uint64_t *frequencies, uint32_t pair) {
    uint64_t later = pair < place->second ? place->positions[1] : place->positions[2];
    return (pair < place->first ? place->positions[0] : later) * frequencies[pair];
}

#endif
