/* The packed instructions of 16 bits. */
#include "tests/sim/amdgcn/alu/amd_saturate.h"
#include "tests/sim/amdgcn/alu/amd_vector.h"

/* Both halves of a lane. */
#define HALF(variable, element, number) \
    const amd_element_##element variable = (amd_element_##element)(((const uint32_t *)s##number)[l] >> half)
#define HALVES(element, value)                       \
    uint32_t both = 0;                               \
    for (uint32_t half = 0; half < 32; half += 16) { \
        HALF(a, element, 0);                         \
        HALF(b, element, 1);                         \
        HALF(c, element, 2);                         \
        (void)c;                                     \
        both |= (uint32_t)(uint16_t)(value) << half; \
    }                                                \
    out[l] = both
#define AMD_PACKED_16(name, registers, third, element, value) \
    AMD_ALU_FRAME(name, 0, registers, registers, registers, third, HALVES(element, value))
#define AMD_PACKED_16_ACC(name, registers, element, value) \
    AMD_ALU_FRAME(name, AMD_ALU_ADDS, registers, registers, registers, registers, HALVES(element, value))
#include "tests/sim/amdgcn/alu/amd_vector_packed_16.def"
