#include "groups.h"
#include "half.h"
#include <math.h>

int64_t llama_group_of(int64_t k) {
    return k % 128 == 0 ? 128 : k % 32 == 0 ? 32 : k;
}

/* Puts a value of the precision where index says, and gives it as it was rounded. */
static float put(void *to, size_t index, float value, llama_precision precision) {
    uint16_t half;
    switch (precision) {
    case LLAMA_F16:
        half = to_f16(value);
        ((uint16_t *)to)[index] = half;
        return from_f16(half);
    case LLAMA_BF16:
        half = to_bf16(value);
        ((uint16_t *)to)[index] = half;
        return from_bf16(half);
    default:
        ((float *)to)[index] = value;
        return value;
    }
}

/* The integer from -8 to 7 whose q * scale + zero is nearest. */
static int nearest(float value, float scale, float zero) {
    float q = scale == 0 ? 0 : rintf((value - zero) / scale);
    return q < -8 ? -8 : q > 7 ? 7 : (int)q;
}

void llama_groups_quantise(const float *matrix, int64_t n, int64_t k, llama_precision precision, uint8_t *weights,
                           void *scales, void *zeros) {
    const int64_t group = llama_group_of(k);
    for (int64_t first = 0; first < n * k; first += group) {
        const float *values = matrix + first;
        float least = values[0], greatest = values[0];
        for (int64_t i = 1; i < group; i++) {
            least = values[i] < least ? values[i] : least;
            greatest = values[i] > greatest ? values[i] : greatest;
        }
        const size_t index = (size_t)(first / group);
        const float scale = put(scales, index, (greatest - least) / 15, precision);
        const float zero = put(zeros, index, least + 8 * scale, precision);
        for (int64_t i = 0; i < group; i += 2) {
            int low = nearest(values[i], scale, zero), high = nearest(values[i + 1], scale, zero);
            weights[(first + i) / 2] = (uint8_t)((low & 15) | (high & 15) << 4);
        }
    }
}
