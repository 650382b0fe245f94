/* Converts 4-bit weights of other systems to the canonical form (kiln/w4a16.h). */
#include "kernels/common/host.h"
#include <kiln/w4a16.h>

#define KILN_INLINE static inline
#include "kernels/common/formats/float16.h"

enum { WORD = 8, BLOCK = 32 }; /* integers in a word of AWQ and GPTQ; elements in a block of GGUF */

/* ---- Numbers ---- */

static bool is_type(int32_t type) {
    return type == KILN_W4A16_F32 || type == KILN_W4A16_F16 || type == KILN_W4A16_BF16;
}

static float load(const void *from, uint64_t at, int32_t type) {
    float value;
    uint16_t half;
    if (type == KILN_W4A16_F32) {
        memcpy(&value, (const char *)from + at * sizeof value, sizeof value);
        return value;
    }
    memcpy(&half, (const char *)from + at * sizeof half, sizeof half);
    return type == KILN_W4A16_F16 ? kiln_f16_to_f32_soft(half) : kiln_bf16_to_f32(half);
}

static void store(void *to, uint64_t at, int32_t type, float value) {
    if (type == KILN_W4A16_F32) {
        memcpy((char *)to + at * sizeof value, &value, sizeof value);
        return;
    }
    uint16_t half = type == KILN_W4A16_F16 ? kiln_f32_to_f16_soft(value) : kiln_f32_to_bf16(value);
    memcpy((char *)to + at * sizeof half, &half, sizeof half);
}

/* ---- Checks ---- */

/* Checks a target. *out_group is the number of elements in a group. */
static kiln_status check(const char *name, const kiln_w4a16_target *to, bool zeros, int64_t *out_group) {
    KILN__REQUIRE(to, "%s: target is NULL", name);
    KILN__TRY(kiln__size_check(name, "n", to->n, INT32_MAX));
    KILN__TRY(kiln__size_check(name, "k", to->k, INT32_MAX));
    KILN__REQUIRE(to->k % 2 == 0, "%s: k is %lld: must be even", name, (long long)to->k);
    int64_t group = to->group ? to->group : to->k;
    KILN__REQUIRE(group == 32 || group == 64 || group == 128 || group == 256 || group == to->k,
                  "%s: group is %lld: must be 32, 64, 128, 256 or k (0: k)", name, (long long)group);
    KILN__REQUIRE(!to->k || to->k % group == 0, "%s: k is %lld: must be a multiple of group, %lld", name,
                  (long long)to->k, (long long)group);
    KILN__REQUIRE(is_type(to->type), "%s: type is %d: must be f32 (0), f16 (1) or bf16 (2)", name, to->type);
    KILN__REQUIRE(to->reserved == 0, "%s: reserved is %d: must be 0", name, to->reserved);
    KILN__REQUIRE(to->weights, "%s: weights is NULL", name);
    KILN__REQUIRE(to->scales, "%s: scales is NULL", name);
    KILN__REQUIRE(to->zeros || !zeros, "%s: zeros is NULL", name);
    *out_group = group;
    return KILN_OK;
}

/* The same, with the checks that AWQ and GPTQ have in common. */
static kiln_status check_words(const char *name, const kiln_w4a16_target *to, const uint32_t *qweight,
                               const uint32_t *qzeros, const void *scales, int32_t scales_type, int64_t *out_group) {
    KILN__TRY(check(name, to, true, out_group));
    KILN__REQUIRE(to->n % WORD == 0, "%s: n is %lld: must be a multiple of 8", name, (long long)to->n);
    KILN__REQUIRE(qweight, "%s: qweight is NULL", name);
    KILN__REQUIRE(qzeros, "%s: qzeros is NULL", name);
    KILN__REQUIRE(scales, "%s: scales is NULL", name);
    KILN__REQUIRE(is_type(scales_type), "%s: scales_type is %d: must be f32 (0), f16 (1) or bf16 (2)", name,
                  scales_type);
    return KILN_OK;
}

/* ---- AWQ and GPTQ ---- */

static uint32_t half_byte(uint32_t word, uint64_t number) {
    return word >> 4 * number & 15u;
}

/* Stores the two integers of a row at columns k and k + 1, from 0 to 15. */
static void put_pair(const kiln_w4a16_target *to, uint64_t row, uint64_t k, uint32_t even, uint32_t odd) {
    to->weights[row * ((uint64_t)to->k / 2) + k / 2] = (uint8_t)((even | odd << 4) ^ 0x88u);
}

/* Stores a group's scale, and its integer zero as a term of the result. */
static void put_group(const kiln_w4a16_target *to, uint64_t row, uint64_t group, uint64_t groups, float scale,
                      uint32_t zero) {
    store(to->scales, row * groups + group, to->type, scale);
    store(to->zeros, row * groups + group, to->type, (float)(8 - (int32_t)zero) * scale);
}

/* The places of eight columns in a word of AWQ, whose columns are filled in as {0, 2, 4, 6, 1, 3, 5, 7}: the inverse.
 */
static const uint8_t awq_places[WORD] = {0, 4, 1, 5, 2, 6, 3, 7};

kiln_status kiln_w4a16_from_awq(const kiln_w4a16_target *target, const uint32_t *qweight, const uint32_t *qzeros,
                                const void *scales, kiln_w4a16_type scales_type) {
    int64_t group;
    KILN__TRY(check_words("kiln_w4a16_from_awq", target, qweight, qzeros, scales, (int32_t)scales_type, &group));
    const uint64_t n = (uint64_t)target->n, k_end = (uint64_t)target->k, words = n / WORD;
    const uint64_t groups = k_end ? k_end / (uint64_t)group : 0;
    for (uint64_t row = 0; row < n; row++) {
        const uint64_t word = row / WORD, place = awq_places[row % WORD];
        for (uint64_t k = 0; k < k_end; k += 2)
            put_pair(target, row, k, half_byte(qweight[k * words + word], place),
                     half_byte(qweight[(k + 1) * words + word], place));
        for (uint64_t g = 0; g < groups; g++)
            put_group(target, row, g, groups, load(scales, g * n + row, (int32_t)scales_type),
                      half_byte(qzeros[g * words + word], place));
    }
    return KILN_OK;
}

kiln_status kiln_w4a16_from_gptq(const kiln_w4a16_target *target, const uint32_t *qweight, const uint32_t *qzeros,
                                 const void *scales, kiln_w4a16_type scales_type, const int32_t *g_idx) {
    static const char name[] = "kiln_w4a16_from_gptq";
    int64_t group;
    KILN__TRY(check_words(name, target, qweight, qzeros, scales, (int32_t)scales_type, &group));
    const uint64_t n = (uint64_t)target->n, k_end = (uint64_t)target->k, words = n / WORD;
    const uint64_t groups = k_end ? k_end / (uint64_t)group : 0;
    KILN__REQUIRE(k_end % WORD == 0, "%s: k is %lld: must be a multiple of 8", name, (long long)target->k);
    for (uint64_t k = 0; g_idx && k < k_end; k++)
        KILN__REQUIRE(g_idx[k] >= 0 && (uint64_t)g_idx[k] == k / (uint64_t)group,
                      "%s: g_idx[%llu] is %d: must be %llu, since rows that are reordered (desc_act) are not taken",
                      name, (unsigned long long)k, g_idx[k], (unsigned long long)(k / (uint64_t)group));
    for (uint64_t row = 0; row < n; row++) {
        for (uint64_t k = 0; k < k_end; k += 2) {
            uint32_t word = qweight[k / WORD * n + row];
            put_pair(target, row, k, half_byte(word, k % WORD), half_byte(word, k % WORD + 1));
        }
        for (uint64_t g = 0; g < groups; g++)
            put_group(target, row, g, groups, load(scales, g * n + row, (int32_t)scales_type),
                      half_byte(qzeros[g * words + row / WORD], row % WORD) + 1);
    }
    return KILN_OK;
}

/* ---- GGUF ---- */

/* Blocks with one or two numbers of 16 bits before their integers. */
static kiln_status from_blocks(const char *name, const kiln_w4a16_target *to, const void *blocks, bool least) {
    int64_t group;
    KILN__TRY(check(name, to, least, &group));
    KILN__REQUIRE(blocks, "%s: blocks is NULL", name);
    KILN__REQUIRE(group == BLOCK || !to->k, "%s: group is %lld: must be 32", name, (long long)group);
    const uint64_t head = least ? 4 : 2, size = head + BLOCK / 2, count = (uint64_t)to->n * (uint64_t)to->k / BLOCK;
    const uint8_t *block = blocks;
    for (uint64_t i = 0; i < count; i++, block += size) {
        const float scale = load(block, 0, KILN_W4A16_F16);
        uint8_t *weights = to->weights + i * (BLOCK / 2);
        for (uint32_t j = 0; j < BLOCK / 4; j++) {
            const uint32_t pair[2] = {block[head + 2 * j], block[head + 2 * j + 1]};
            weights[j] = (uint8_t)(((pair[0] & 15u) | (pair[1] & 15u) << 4) ^ 0x88u);
            weights[j + BLOCK / 4] = (uint8_t)((pair[0] >> 4 | (pair[1] & 0xf0u)) ^ 0x88u);
        }
        store(to->scales, i, to->type, scale);
        if (least) store(to->zeros, i, to->type, 8 * scale + load(block, 1, KILN_W4A16_F16));
    }
    return KILN_OK;
}

kiln_status kiln_w4a16_from_q4_0(const kiln_w4a16_target *target, const void *blocks) {
    return from_blocks("kiln_w4a16_from_q4_0", target, blocks, false);
}

kiln_status kiln_w4a16_from_q4_1(const kiln_w4a16_target *target, const void *blocks) {
    return from_blocks("kiln_w4a16_from_q4_1", target, blocks, true);
}
