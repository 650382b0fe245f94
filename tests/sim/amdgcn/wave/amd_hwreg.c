/* MODE and the other registers that s_getreg reads and s_setreg writes, and clocks. */
#include "tests/sim/amdgcn/wave/amd_wave.h"

typedef struct row {
    bool readable;
    uint32_t writable;
} row;

static const row rows[] = {
#define AMD_HWREG(name, readable, writable) {readable, writable},
#include "tests/sim/amdgcn/wave/amd_hwreg.def"
};

/* The bits that an instruction means: 6 of the register's id, 5 of the first bit, 5 of the width less 1. */
typedef struct field {
    amd_hwreg which;
    uint32_t shift, mask;
} field;

static field field_of(const amd_op *op, const amd_operand *which) {
    uint32_t width = (op->immediate >> 11 & 31) + 1;
    return (field){(amd_hwreg)which->value, op->immediate >> 6 & 31, width == 32 ? ~0u : (1u << width) - 1};
}

/* Nothing here takes time: a clock counts what the group has done, and so goes up. */
static uint64_t clock_of(amd_wave *wave) {
    return ++wave->group->clock + wave->group->instructions;
}

/* A number that stays with the wave. */
static uint32_t place_of(const amd_wave *wave, amd_hwreg which) {
    const amd_group *group = wave->group;
    uint64_t state = group->launch->seed ^ which;
    for (int i = 0; i < 3; i++)
        state = sim_random(&state) ^ group->id[i];
    state = sim_random(&state) ^ wave->number;
    return (uint32_t)sim_random(&state);
}

static uint32_t register_read(amd_wave *wave, amd_hwreg which) {
    switch (which) {
    case AMD_HWREG_MODE:
        return wave->mode;
    case AMD_HWREG_SH_MEM_BASES:
        return AMD_APERTURE_SHARED >> 16 << 16 | AMD_APERTURE_PRIVATE >> 16;
    case AMD_HWREG_FLAT_SCR_LO:
        return wave->s[AMD_FLAT_SCRATCH];
    case AMD_HWREG_FLAT_SCR_HI:
        return wave->s[AMD_FLAT_SCRATCH + 1];
    case AMD_HWREG_HW_ID:
    case AMD_HWREG_HW_ID1:
    case AMD_HWREG_HW_ID2:
        return place_of(wave, which);
    case AMD_HWREG_SHADER_CYCLES:
        return (uint32_t)clock_of(wave) & 0xfffff;
    case AMD_HWREG_SHADER_CYCLES_LO:
        return (uint32_t)clock_of(wave);
    case AMD_HWREG_SHADER_CYCLES_HI:
        return (uint32_t)(clock_of(wave) >> 32);
    default:
        return 0;
    }
}

static void register_write(amd_wave *wave, amd_hwreg which, uint32_t mask, uint32_t value) {
    uint32_t *place = which == AMD_HWREG_MODE          ? &wave->mode
                      : which == AMD_HWREG_FLAT_SCR_LO ? &wave->s[AMD_FLAT_SCRATCH]
                      : which == AMD_HWREG_FLAT_SCR_HI ? &wave->s[AMD_FLAT_SCRATCH + 1]
                                                       : NULL;
    if (place) *place = (*place & ~mask) | (value & mask);
}

void amd_run_getreg(amd_wave *wave, const amd_op *op) {
    field from = field_of(op, &op->operand[1]);
    if (!rows[from.which].readable) {
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address, "a hardware register that is not readable here");
        return;
    }
    amd_write32(wave, &op->operand[0], register_read(wave, from.which) >> from.shift & from.mask);
}

void amd_run_setreg(amd_wave *wave, const amd_op *op) {
    field to = field_of(op, &op->operand[0]);
    if (to.mask << to.shift & ~rows[to.which].writable) {
        amd_fault(wave, op, SIM_FAULT_ILLEGAL, AMD_LANES, op->address, "bits that do nothing here");
        return;
    }
    register_write(wave, to.which, to.mask << to.shift, amd_read32(wave, &op->operand[1]) << to.shift);
}

/* s_round_mode and s_denorm_mode: four bits of MODE. mode: the first. */
void amd_run_float_mode(amd_wave *wave, const amd_op *op) {
    wave->mode = (wave->mode & ~(15u << op->mode)) | (op->immediate & 15) << op->mode;
}

void amd_run_s_memtime(amd_wave *wave, const amd_op *op) {
    amd_write64(wave, &op->operand[0], clock_of(wave));
    amd_issue(wave, op, AMD_COUNTER_SM, &op->operand[0], ~0ull);
}

/* The time, or the number of the queue's doorbell, which are 10 bits. */
void amd_run_s_sendmsg_rtn(amd_wave *wave, const amd_op *op) {
    enum { DOORBELL = 5 };
    const bool asks_doorbell = op->operand[1].value;
    if (op->operand[0].count > 1)
        amd_write64(wave, &op->operand[0], asks_doorbell ? DOORBELL : clock_of(wave));
    else
        amd_write32(wave, &op->operand[0], asks_doorbell ? DOORBELL : (uint32_t)clock_of(wave));
    amd_issue(wave, op, AMD_COUNTER_SM, &op->operand[0], ~0ull);
}
