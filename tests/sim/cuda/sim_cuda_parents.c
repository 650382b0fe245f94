#include "tests/sim/cuda/sim_cuda.h"
#include <string.h>

/* Written by scripts/sim_parents.sh. */
typedef struct parent {
    uint8_t sha256[32];
    const char *text; /* ends with a NUL byte */
    uint64_t size;
} parent;

extern const parent sim_cuda_parents[];
extern const uint64_t sim_cuda_parent_count;

const char *sim_cuda_parent_of(const uint8_t sha256[32], size_t *out_size) {
    for (uint64_t i = 0; i < sim_cuda_parent_count; i++) {
        if (memcmp(sim_cuda_parents[i].sha256, sha256, 32)) continue;
        *out_size = sim_cuda_parents[i].size;
        return sim_cuda_parents[i].text;
    }
    return NULL;
}
