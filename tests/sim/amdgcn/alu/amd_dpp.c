/* Data-parallel primitives: a lane's first operand taken from another lane. */
#include "tests/sim/amdgcn/alu/amd_vector.h"

enum { ROW = 16 };

/* lane + by, if that is in the same row. */
static int in_row(uint32_t lane, int by) {
    int place = (int)(lane % ROW) + by;
    return place < 0 || place >= ROW ? -1 : (int)lane + by;
}

/* lane + by, if that is in the wave. */
static int in_wave(uint32_t lane, int by, uint32_t lanes) {
    int place = (int)lane + by;
    return place < 0 || place >= (int)lanes ? -1 : place;
}

int amd_dpp_source(const amd_op *op, uint32_t l, uint32_t lanes) {
    uint32_t argument = op->dpp_argument, row = l / ROW * ROW;
    switch ((amd_dpp)op->dpp) {
    case AMD_DPP_NONE:
        return (int)l;
    case AMD_DPP_QUAD_PERM:
        return (int)((l & ~3u) | (argument >> 2 * (l & 3) & 3));
    case AMD_DPP_ROW_SHL:
        return in_row(l, (int)argument);
    case AMD_DPP_ROW_SHR:
        return in_row(l, -(int)argument);
    case AMD_DPP_ROW_ROR:
        return (int)(row + (l + ROW - argument) % ROW);
    case AMD_DPP_WAVE_SHL:
        return in_wave(l, 1, lanes);
    case AMD_DPP_WAVE_ROL:
        return (int)((l + 1) % lanes);
    case AMD_DPP_WAVE_SHR:
        return in_wave(l, -1, lanes);
    case AMD_DPP_WAVE_ROR:
        return (int)((l + lanes - 1) % lanes);
    case AMD_DPP_ROW_MIRROR:
        return (int)(l ^ 15);
    case AMD_DPP_ROW_HALF_MIRROR:
        return (int)(l ^ 7);
    case AMD_DPP_ROW_BCAST: /* 15: a row's last lane to the row after it; 31: lane 31 to the upper half */
        if (argument == 31) return l < 32 ? -1 : 31;
        return (int)row - 1;
    case AMD_DPP_ROW_NEWBCAST:
    case AMD_DPP_ROW_SHARE:
        return (int)(row + argument);
    case AMD_DPP_ROW_XMASK:
        return (int)(l ^ argument);
    case AMD_DPP_8:
        return (int)((l & ~7u) | (argument >> 3 * (l & 7) & 7));
    }
    return -1;
}

/* A lane that has no source, or an inactive one, reads 0 with bound_ctrl and is off without it; DPP8 reads 0. */
void amd_dpp_gather(amd_alu *x, uint32_t *to, const uint32_t *from) {
    const amd_op *op = x->op;
    uint64_t exec = amd_exec(x->wave);
    for (uint32_t l = 0; l < x->lanes; l++) {
        int source = amd_dpp_source(op, l, x->lanes);
        bool masked = !(op->row_mask >> l / ROW & 1) || !(op->bank_mask >> l % ROW / 4 & 1);
        bool valid = source >= 0 && (op->fetch_inactive || (exec >> source & 1));
        to[l] = valid ? from[source] : 0;
        if (masked || (!valid && !op->bound_ctrl && op->dpp != AMD_DPP_8)) x->exec &= ~(1ull << l);
    }
}
