/* Which unit of a compute unit executes an instruction, and for how long.
 *
 * In each cycle the scheduler of gfx9 takes one of its four SIMDs in turn and issues up to one instruction to each
 * unit, from different waves (ROCm Compute Profiler, "Pipeline descriptions"); what it issues to none does not take
 * part. A wave keeps its SIMD's 16 lanes busy for one turn, and for four where they execute a quarter of the rate: of
 * the elementary functions, the steps of a division, and products of 32 bits (LLVM, SISchedule.td; CLRX, "GCN ISA
 * Instruction Timings"). Matrix instructions, f64 and the units of memory are counted for their issue alone. */
#include "tests/sim/amdgcn/decode/amd_code.h"
#include <string.h>

typedef struct beginning {
    const char *text;
    uint8_t unit, turns;
} beginning;

/* The first that a name begins with counts. */
static const beginning beginnings[] = {
    {"v_exp_", AMD_UNIT_VECTOR, 4},
    {"v_log_", AMD_UNIT_VECTOR, 4},
    {"v_rcp_", AMD_UNIT_VECTOR, 4},
    {"v_rsq_", AMD_UNIT_VECTOR, 4},
    {"v_sqrt_", AMD_UNIT_VECTOR, 4},
    {"v_sin_", AMD_UNIT_VECTOR, 4},
    {"v_cos_", AMD_UNIT_VECTOR, 4},
    {"v_div_scale_f32", AMD_UNIT_VECTOR, 4},
    {"v_div_fmas_f32", AMD_UNIT_VECTOR, 4},
    {"v_div_fixup_f32", AMD_UNIT_VECTOR, 4},
    {"v_mul_lo_u32", AMD_UNIT_VECTOR, 4},
    {"v_mul_hi_u32", AMD_UNIT_VECTOR, 4},
    {"v_mul_hi_i32", AMD_UNIT_VECTOR, 4},
    {"v_mad_u64_u32", AMD_UNIT_VECTOR, 4},
    {"v_mad_i64_i32", AMD_UNIT_VECTOR, 4},
    {"v_", AMD_UNIT_VECTOR, 1},
    {"ds_", AMD_UNIT_SHARED, 1},
    {"s_branch", AMD_UNIT_BRANCH, 1},
    {"s_cbranch", AMD_UNIT_BRANCH, 1},
    {"s_endpgm", AMD_UNIT_BRANCH, 1},
    {"s_nop", AMD_UNIT_NONE, 1},
    {"s_waitcnt", AMD_UNIT_NONE, 1},
    {"s_sleep", AMD_UNIT_NONE, 1},
    {"s_setprio", AMD_UNIT_NONE, 1},
    {"s_barrier", AMD_UNIT_NONE, 1},
    {"s_", AMD_UNIT_SCALAR, 1},
    {"", AMD_UNIT_MEMORY, 1},
};

void amd_unit_find(const char *name, amd_op *op) {
    const beginning *found = beginnings;
    while (strncmp(name, found->text, strlen(found->text)) != 0)
        found++;
    op->unit = found->unit;
    op->turns = found->turns;
}
