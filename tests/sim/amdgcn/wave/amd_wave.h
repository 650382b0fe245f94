/* A wave and the work-group that it belongs to: the state that instructions change, and the checks that they share. */
#ifndef KILN_TESTS_SIM_AMD_WAVE_H
#define KILN_TESTS_SIM_AMD_WAVE_H

#include "tests/sim/amdgcn/decode/amd_code.h"
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/core/sim_random.h"

/* ---- Memory in flight ---- */

/* The counters that tell when a memory instruction is done, by what it is; gfx9 to gfx11 wait for several in one. */
typedef enum amd_counter {
    AMD_COUNTER_VM_LOAD, /* gfx9: of stores too */
    AMD_COUNTER_VM_STORE,
    AMD_COUNTER_DS,
    AMD_COUNTER_SM,
    AMD_COUNTERS
} amd_counter;

enum { AMD_FLIGHTS = 64 };

/* An instruction that has been issued and that no wait has covered yet. Its results are in their registers already, and
 * whatever touches one of them before the wait is a fault: the hardware might still have the old value. */
typedef struct amd_flight {
    const amd_op *op;
    uint8_t counter;
    uint8_t kind; /* amd_operand_kind of the result; NONE for a store */
    bool lands;   /* it is a load into LDS, of each lane to a dword from shared on */
    bool alone;   /* it is done before or after what was issued with it, as flat accesses of gfx9 are */
    uint16_t index, count;
    uint32_t shared;
    uint64_t lanes;
} amd_flight;

/* An instruction whose registers others must keep away from for some wait states: amd_hazard.c. */
enum { AMD_ISSUED = 24 };
typedef struct amd_issued {
    const amd_op *op;
    uint64_t at; /* wait states of the wave when it had been issued */
} amd_issued;

/* ---- Waves ---- */

typedef enum amd_wave_state { AMD_READY, AMD_AT_BARRIER, AMD_ENDED } amd_wave_state;

struct amd_wave {
    struct amd_group *group;
    const amd_program *program;
    uint32_t (*v)[AMD_LANES]; /* AMD_VECTORS registers */
    uint32_t s[AMD_SCALARS];  /* VCC and EXEC stand in it; read EXEC with amd_exec */
    uint8_t *scratch;         /* the launch's private_bytes for each lane, dword by dword: amd_scratch.c; or NULL */
    size_t scratch_used;      /* bytes of it that were stored to */
    bool scc;
    bool relative; /* gfx9: s_set_gpr_idx_on holds */
    uint32_t mode; /* the MODE register: rounding, denormals, DX10_CLAMP, IEEE */
    uint32_t pc;   /* op that is running; what a branch changes is next */
    uint32_t next;
    uint32_t lanes;  /* 32 or 64 */
    uint64_t all;    /* a bit for each lane */
    uint32_t number; /* in the group */
    amd_wave_state state;
    bool signalled; /* the wave has come to the barrier, and others have not */
    bool passed;    /* all have come, and this one has not waited yet, which gfx12 has an instruction of its own for */
    amd_flight flights[AMD_FLIGHTS];
    uint32_t flight_count;
    bool results_in_flight;                                                                   /* any */
    uint64_t vectors_in_flight[AMD_VECTORS / 64], scalars_in_flight[(AMD_SCALARS + 63) / 64]; /* a bit for each */
    amd_issued issued[AMD_ISSUED];
    uint32_t issued_count;
    uint64_t wait_states;            /* so far: amd_hazard.c */
    struct amd_undefined *undefined; /* the bits that are: amd_undefined.h; NULL if there is no scratch */
    bool has_undefined;              /* a register was loaded with such */
};

/* What was done to four bytes of LDS; a byte, or a bit, for each. */
typedef struct amd_shadow {
    uint32_t epoch;            /* of the group when they were last touched; what is older does not count */
    uint32_t writers, readers; /* wave + 1; 0xff: several */
    uint32_t loaders;          /* a bit for each wave that loaded and has done no atomic since */
    uint32_t load;             /* the op that loaded last */
    uint8_t written;           /* ever */
    uint8_t atomic;            /* all writes since the last barrier were atomics */
    bool doubted;              /* loads and atomics of several waves met: amd_shared_settle */
    bool landing;              /* a load into LDS is on its way there */
} amd_shadow;

typedef struct amd_group {
    const amd_launch *launch;
    uint32_t id[3];
    uint32_t work_items; /* of this group: partial at the grid's edge */
    uint32_t size[3];
    amd_wave *waves;
    uint32_t wave_count;
    uint8_t *shared; /* LDS */
    uint32_t shared_bytes;
    uint8_t *scratch;   /* of all waves, one after the other */
    amd_shadow *shadow; /* of each dword */
    uint32_t epoch;     /* barriers so far, + 1 */
    bool doubted;       /* a dword of LDS is */
    uint64_t random;
    uint64_t instructions;
    uint64_t turns[AMD_UNITS]; /* of each unit */
    uint64_t clock;            /* how often a wave asked for the time */
    sim_region region;         /* the last one found */
    sim_counters counters;
    sim_report *report; /* its kind is SIM_FAULT_NONE until something is wrong */
} amd_group;

/* Ends the group with a report; kernel, address and text of the instruction, group, wave and lane are added. The first
 * fault counts. lane: AMD_LANES if it is none's. */
void amd_fault(amd_wave *wave, const amd_op *op, sim_fault_kind kind, uint32_t lane, uint64_t address,
               const char *format, ...) __attribute__((format(printf, 6, 7), cold));

/* At a barrier that all have come to, and at the end: finds the races in LDS that could not be told before. */
void amd_shared_settle(amd_group *group);

/* ---- MODE ---- */

enum { AMD_ROUND_EVEN, AMD_ROUND_UP, AMD_ROUND_DOWN, AMD_ROUND_ZERO };

/* ---- Registers ---- */

static inline uint64_t amd_exec(const amd_wave *wave) {
    return (wave->s[AMD_EXEC] | (uint64_t)wave->s[AMD_EXEC + 1] << 32) & wave->all;
}

static inline uint64_t amd_vcc(const amd_wave *wave) {
    return (wave->s[AMD_VCC] | (uint64_t)wave->s[AMD_VCC + 1] << 32) & wave->all;
}

/* A scalar source of 32 bits: a register, a constant, null, SCC, ... without modifiers. */
uint32_t amd_read32(const amd_wave *wave, const amd_operand *operand);
/* The same of 16 bits, which of a register are the lower ones, and of 64 bits. */
uint32_t amd_read16(const amd_wave *wave, const amd_operand *operand);
uint64_t amd_read64(const amd_wave *wave, const amd_operand *operand);
void amd_write32(amd_wave *wave, const amd_operand *operand, uint32_t value);
void amd_write64(amd_wave *wave, const amd_operand *operand, uint64_t value);
/* A mask of lanes: 64 bits, or 32 in a wave of 32. */
uint64_t amd_read_mask(const amd_wave *wave, const amd_operand *operand);
void amd_write_mask(amd_wave *wave, const amd_operand *operand, uint64_t mask);

/* ---- Instructions ---- */

#define AMD_OPCODE(mnemonic, handler, class, mode) void amd_run_##handler(amd_wave *wave, const amd_op *op);
#include "tests/sim/amdgcn/decode/amd_opcodes.def"

/* Runs both halves of a VOPD instruction: both read before either writes. */
void amd_run_dual(amd_wave *wave, const amd_op *op);

/* Registers of s_getreg and s_setreg. */
typedef enum amd_hwreg {
#define AMD_HWREG(name, readable, writable) AMD_HWREG_##name,
#include "tests/sim/amdgcn/wave/amd_hwreg.def"
} amd_hwreg;

/* The ISA's numbers of flat addresses: what their upper halves say. */
enum { AMD_APERTURE_SHARED = 0x10000, AMD_APERTURE_PRIVATE = 0x20000 };

/* ---- Waits: amd_wait.c ---- */

/* Notes that an instruction was issued whose result, operand (NULL for a store), is not there before a wait. */
void amd_issue(amd_wave *wave, const amd_op *op, amd_counter counter, const amd_operand *result, uint64_t lanes);
/* The same of a flat access, which may go to memory or to LDS and counts as both. */
void amd_issue_flat(amd_wave *wave, const amd_op *op, const amd_operand *result, uint64_t lanes);
/* The same of a load into LDS, of each lane to its dword from an address on. */
void amd_issue_landing(amd_wave *wave, const amd_op *op, uint32_t shared, uint64_t lanes);
/* It has landed: amd_lds_load.c. */
void amd_shared_landed(amd_wave *wave, const amd_flight *flight);
/* The counters of the set (a bit for each) have come down to limit, taken together. */
void amd_wait(amd_wave *wave, uint32_t counters, uint32_t limit);
/* Runs a vector instruction while s_set_gpr_idx_on holds: amd_relative.c. */
void amd_run_relative(amd_wave *wave, const amd_op *op);
/* Reports if an operand of op touches a register that is in flight. */
void amd_check_flights(amd_wave *wave, const amd_op *op);

/* ---- Scheduling: amd_group.c ---- */

/* Runs one wave for at most quantum instructions, until it ends or waits at a barrier. */
void amd_wave_run(amd_wave *wave, uint32_t quantum);
/* All waves have come to the barrier: lets them go on. */
void amd_barrier_complete(amd_group *group);

#endif
