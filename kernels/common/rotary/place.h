/* The position of a token on up to three axes, and the axis by which each pair of a head is rotated: rope has one,
 * rope3d three. The includer (device.h, cpu.h) defines what turn.h asks for. */
#ifndef KILN_KERNELS_COMMON_ROTARY_PLACE_H
#define KILN_KERNELS_COMMON_ROTARY_PLACE_H

#include "kernels/common/rotary/turn.h"

/* The type of a position: all 64 bits, unless the includer's are so few that 32 do. */
#if !defined(KILN_POSITION)
#define KILN_POSITION uint64_t
#endif

/* Pairs before first have axis 0, those before second axis 1, the others axis 2. */
typedef struct kiln_place {
    KILN_POSITION positions[3];
    uint32_t first, second;
} kiln_place;

KILN_INLINE uint64_t kiln_angle(const kiln_place *place, const uint64_t *frequencies, uint32_t pair) {
    const KILN_POSITION later = pair < place->second ? place->positions[1] : place->positions[2];
    const KILN_POSITION position = pair < place->first ? place->positions[0] : later;
    return (uint64_t)position * frequencies[pair];
}

#endif
