/* Integer results under the clamp modifier. */
#ifndef KILN_TESTS_SIM_AMD_SATURATE_H
#define KILN_TESTS_SIM_AMD_SATURATE_H

#include "tests/sim/amdgcn/alu/amd_vector.h"

#define AMD_MIN(p, q) ((p) < (q) ? (p) : (q))
#define AMD_MAX(p, q) ((p) > (q) ? (p) : (q))

/* A sum under the clamp modifier: saturated, else wrapped. */
static inline int64_t amd_saturate(const amd_alu *x, int64_t value, int64_t least, int64_t most) {
    if (!x->clamp) return value;
    return AMD_MIN(AMD_MAX(value, least), most);
}
static inline uint32_t amd_clamp_u32(const amd_alu *x, int64_t value) {
    return (uint32_t)amd_saturate(x, value, 0, UINT32_MAX);
}
static inline int32_t amd_clamp_i32(const amd_alu *x, int64_t value) {
    return (int32_t)(uint32_t)amd_saturate(x, value, INT32_MIN, INT32_MAX);
}
static inline uint16_t amd_clamp_u16(const amd_alu *x, int64_t value) {
    return (uint16_t)amd_saturate(x, value, 0, UINT16_MAX);
}
static inline int16_t amd_clamp_i16(const amd_alu *x, int64_t value) {
    return (int16_t)(uint16_t)amd_saturate(x, value, INT16_MIN, INT16_MAX);
}

#endif
