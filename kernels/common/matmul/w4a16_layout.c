/* Layouts of 4-bit weights (kiln/w4a16.h): their names, and their bytes. */
#include "kernels/common/host.h"
#include "kernels/gemm_w4a16/gemm_w4a16_layout.h"
#include <kiln/w4a16.h>

static const char *const names[] = {
    [KILN_W4A16_CANONICAL] = "canonical",
    [KILN_W4A16_SM80_V1] = "sm80_v1",
};
enum { LAYOUTS = sizeof names / sizeof *names };

const char *kiln_w4a16_layout_name(kiln_w4a16_layout layout) {
    return (uint32_t)layout < LAYOUTS ? names[layout] : NULL;
}

kiln_status kiln_w4a16_layout_find(const char *name, kiln_w4a16_layout *out_layout) {
    KILN__REQUIRE(out_layout, "kiln_w4a16_layout_find: out_layout is NULL");
    *out_layout = KILN_W4A16_CANONICAL;
    KILN__REQUIRE(name, "kiln_w4a16_layout_find: name is NULL");
    for (uint32_t i = 0; i < LAYOUTS; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        *out_layout = (kiln_w4a16_layout)i;
        return KILN_OK;
    }
    return kiln__fail(KILN_ERROR_INVALID_ARGUMENT,
                      "kiln_w4a16_layout_find: name is \"%.32s\": must be canonical or sm80_v1", name);
}

static kiln_status check(const char *name, kiln_w4a16_layout layout, int64_t n, int64_t k, const void *weights,
                         const void *packed) {
    KILN__REQUIRE((uint32_t)layout < LAYOUTS, "%s: layout is %d: must be canonical (0) or sm80_v1 (1)", name,
                  (int)layout);
    KILN__TRY(kiln__size_check(name, "n", n, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k", k, INT32_MAX));
    int64_t rows = layout == KILN_W4A16_SM80_V1 ? KILN_W4A16_TILE_ROWS : 1;
    int64_t depth = layout == KILN_W4A16_SM80_V1 ? KILN_W4A16_TILE_DEPTH : 2;
    KILN__REQUIRE(n % rows == 0, "%s: n is %lld: must be a multiple of %lld in %s", name, (long long)n, (long long)rows,
                  names[layout]);
    KILN__REQUIRE(k % depth == 0, "%s: k is %lld: must be a multiple of %lld in %s", name, (long long)k,
                  (long long)depth, names[layout]);
    KILN__REQUIRE(weights, "%s: weights is NULL", name);
    KILN__REQUIRE(packed, "%s: packed is NULL", name);
    const uint64_t bytes = (uint64_t)n * (uint64_t)k / 2, a = (uintptr_t)weights, b = (uintptr_t)packed;
    KILN__REQUIRE((a < b ? b - a : a - b) >= bytes, "%s: weights and packed overlap", name);
    return KILN_OK;
}

/* The places of the eight half bytes of a lane's word in canonical weights: half byte i, from the lowest on, is element
 * place % 2 of byte place / 2. */
static uint64_t place_of(uint64_t row, uint64_t depth, uint32_t lane, uint32_t word, uint32_t i, uint64_t k) {
    uint64_t at = row + lane / 4 + i % 2 * 8;
    uint64_t column = depth + word / 2 * 32 + lane % 4 * 8 + word % 2 * 4 + i % 4 / 2 * 2 + i / 4;
    return at * k + column;
}

kiln_status kiln_w4a16_repack(kiln_w4a16_layout layout, int64_t n, int64_t k, const uint8_t *weights, uint8_t *packed) {
    KILN__TRY(check("kiln_w4a16_repack", layout, n, k, weights, packed));
    if (layout == KILN_W4A16_CANONICAL) {
        memcpy(packed, weights, (size_t)n * (size_t)k / 2);
        return KILN_OK;
    }
    for (uint64_t row = 0; row < (uint64_t)n; row += KILN_W4A16_TILE_ROWS)
        for (uint64_t depth = 0; depth < (uint64_t)k; depth += KILN_W4A16_TILE_DEPTH)
            for (uint32_t lane = 0; lane < 32; lane++)
                for (uint32_t word = 0; word < 4; word++) {
                    uint32_t codes = 0;
                    for (uint32_t i = 0; i < 8; i++) {
                        uint64_t place = place_of(row, depth, lane, word, i, (uint64_t)k);
                        codes |= ((uint32_t)weights[place / 2] >> place % 2 * 4 & 15u) << 4 * i;
                    }
                    codes ^= 0x88888888u; /* q + 8 */
                    for (uint32_t byte = 0; byte < 4; byte++)
                        *packed++ = (uint8_t)(codes >> 8 * byte);
                }
    return KILN_OK;
}

kiln_status kiln_w4a16_unpack(kiln_w4a16_layout layout, int64_t n, int64_t k, const uint8_t *packed, uint8_t *weights) {
    KILN__TRY(check("kiln_w4a16_unpack", layout, n, k, weights, packed));
    if (layout == KILN_W4A16_CANONICAL) {
        memcpy(weights, packed, (size_t)n * (size_t)k / 2);
        return KILN_OK;
    }
    memset(weights, 0, (size_t)n * (size_t)k / 2);
    for (uint64_t row = 0; row < (uint64_t)n; row += KILN_W4A16_TILE_ROWS)
        for (uint64_t depth = 0; depth < (uint64_t)k; depth += KILN_W4A16_TILE_DEPTH)
            for (uint32_t lane = 0; lane < 32; lane++)
                for (uint32_t word = 0; word < 4; word++, packed += 4)
                    for (uint32_t i = 0; i < 8; i++) {
                        uint64_t place = place_of(row, depth, lane, word, i, (uint64_t)k);
                        uint32_t code = ((uint32_t)packed[i / 2] >> i % 2 * 4 & 15u) ^ 8u;
                        weights[place / 2] |= (uint8_t)(code << place % 2 * 4);
                    }
    return KILN_OK;
}
