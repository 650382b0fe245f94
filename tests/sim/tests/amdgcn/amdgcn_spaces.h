/* The memory of AMD in every space, for tests of what reads and writes it. Each lane has a slot of 16 bytes in a space:
 * the code fills it, does what is tested, and reads the slot back. */
#ifndef KILN_TESTS_SIM_AMDGCN_SPACES_H
#define KILN_TESTS_SIM_AMDGCN_SPACES_H

#include "tests/sim/amdgcn/wave/amd_wave.h"
#include "tests/sim/tests/amdgcn/amdgcn_assembler.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/amdgcn/amdgcn_variants.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct machine {
    const char *processor;
    bool wave64;
    uint32_t major;
} machine;

static const machine machines[] = {{"gfx906", true, 9},    {"gfx90a", true, 9},   {"gfx942", true, 9},
                                   {"gfx1010", false, 10}, {"gfx1030", true, 10}, {"gfx1100", false, 11},
                                   {"gfx1102", true, 11},  {"gfx1200", true, 12}, {"gfx1201", false, 12}};
enum { MACHINES = sizeof machines / sizeof *machines, SLOT = 16, MEMORY = 4096, LDS = 2048, SCRATCH = 64, BASE = 32 };

static _Alignas(64) uint8_t memory[MEMORY];
static uint8_t written[MEMORY / 8];
static amdgcn_registers before, registers;
static uint64_t random_state;

static inline bool find(void *context, uint64_t address, sim_region *out_region) {
    (void)context;
    *out_region = (sim_region){(uintptr_t)memory, sizeof memory, written, false};
    return address - out_region->base < sizeof memory;
}

static const amdgcn_setting setting = {
    .group_bytes = LDS, .private_bytes = SCRATCH, .find = find, .seed = 1}; /* one wave */

/* ---- Spaces ---- */

typedef enum space {
    GLOBAL,      /* 64-bit addresses */
    GLOBAL_BASE, /* a scalar base and 32-bit offsets */
    FLAT_GLOBAL,
    FLAT_SHARED,
    FLAT_SCRATCH,
    SCRATCH_LANE, /* offsets of the lanes' own */
    SCRATCH_BASE, /* one for all */
    BUFFER,
    SHARED,
    SPACES
} space;

/* The class's prefix, and the operands before and behind the data of a store, or behind the result of a load. %u is the
 * first register of the address, %s the offset. */
static const struct {
    const char *prefix, *front, *back;
} syntaxes[SPACES] = {
    [GLOBAL] = {"global_", "v[%u:%u], ", ", off"},
    [GLOBAL_BASE] = {"global_", "v%u, ", ", s[4:5]"},
    [FLAT_GLOBAL] = {"flat_", "v[%u:%u], ", ""},
    [FLAT_SHARED] = {"flat_", "v[%u:%u], ", ""},
    [FLAT_SCRATCH] = {"flat_", "v[%u:%u], ", ""},
    [SCRATCH_LANE] = {"scratch_", "v%u, ", ", off"},
    [SCRATCH_BASE] = {"scratch_", "off, ", ", s4"},
    [BUFFER] = {"buffer_", "", ", v%u, s[4:7], s8 offen"},
    [SHARED] = {"ds_", "v%u, ", ""},
};

enum { SLOT_ADDRESS = 2, ELEMENT_ADDRESS = 4, DATA = 8, READ_BACK = 12, OPERAND = 16, RESULT_AT = 20 };

static inline bool is_flat(space where) {
    return where == FLAT_GLOBAL || where == FLAT_SHARED || where == FLAT_SCRATCH;
}

static inline void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static inline void append(char *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsprintf(text + strlen(text), format, arguments);
    va_end(arguments);
}

static inline const char *vectors(char *room, uint32_t first, uint32_t bytes) {
    if (bytes > 4)
        sprintf(room, "v[%u:%u]", first, first + bytes / 4 - 1);
    else
        sprintf(room, "v%u", first);
    return room;
}

/* An address of the slots, or with an offset of the elements. Flat ones have no offset on some targets. */
static inline void append_access(char *text, space where, const char *name, bool store, uint32_t data, uint32_t bytes,
                                 uint32_t offset) {
    char front[64], back[64], registers_[32];
    uint32_t address = is_flat(where) && offset ? ELEMENT_ADDRESS : SLOT_ADDRESS;
    const char *front_format = syntaxes[where].front, *back_format = syntaxes[where].back;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(front, sizeof front, front_format, address, address + 1);
    snprintf(back, sizeof back, back_format, address);
#pragma GCC diagnostic pop
    vectors(registers_, data, bytes);
    if (where == BUFFER || store)
        append(text, "%s%s %s%s%s", syntaxes[where].prefix, name, where == BUFFER ? "" : front, registers_, back);
    else
        append(text, "%s%s %s, %.*s%s", syntaxes[where].prefix, name, registers_, (int)strlen(front) - 2, front, back);
    if (offset && !is_flat(where)) append(text, " offset:%u", offset);
    append(text, "\n");
}

/* The store that fills each lane's slot with DATA, or the load of it to READ_BACK. */
static inline void append_slot(char *text, space where, const machine *m, bool store) {
    const char *name = store ? "store_dwordx4" : "load_dwordx4";
    if (m->major >= 11) name = store ? "store_b128" : "load_b128";
    if (m->major < 11 && where == SHARED) name = store ? "write_b128" : "read_b128";
    append_access(text, where, name, store, store ? DATA : READ_BACK, SLOT, 0);
}

static inline void append_wait(char *text, const machine *m) {
    if (m->major >= 12)
        append(text, "s_wait_loadcnt 0x0\ns_wait_dscnt 0x0\ns_wait_kmcnt 0x0\n");
    else
        append(text, "s_waitcnt vmcnt(0) lgkmcnt(0)\n");
}

/* Where each lane's slot is: a permutation, so that lanes mix; one for all in scratch with one offset. */
static inline void addresses_draw(space where, uint32_t lanes, uint32_t offset) {
    uint32_t factor = draw(&random_state, 32) * 2 + 1, first = draw(&random_state, lanes);
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        uint64_t slot = BASE + (uint64_t)((l * factor + first) % lanes) * SLOT;
        if (where == FLAT_SCRATCH || where == SCRATCH_LANE) slot = (l + first) % 3 * SLOT;
        uint64_t address = slot, start = (uintptr_t)memory;
        if (where == GLOBAL || where == FLAT_GLOBAL) address += start;
        if (where == FLAT_SHARED) address |= (uint64_t)AMD_APERTURE_SHARED << 32;
        if (where == FLAT_SCRATCH) address |= (uint64_t)AMD_APERTURE_PRIVATE << 32;
        for (uint32_t i = 0; i < 2; i++) {
            before.v[SLOT_ADDRESS + i][l] = (uint32_t)(address >> 32 * i);
            before.v[ELEMENT_ADDRESS + i][l] = (uint32_t)((address + offset) >> 32 * i);
        }
    }
    if (where == SCRATCH_BASE) before.s[4] = SLOT;
    if (where == GLOBAL_BASE || where == BUFFER) memcpy(&before.s[4], &(uint64_t){(uintptr_t)memory}, 8);
    if (where != BUFFER) return;
    /* A raw buffer that begins 16 bytes before the memory, with a scalar offset of 16. */
    uint64_t base = (uintptr_t)memory - 16;
    before.s[4] = (uint32_t)base;
    before.s[5] = (uint32_t)(base >> 32) & 0xffff;
    before.s[6] = MEMORY + 16;
    before.s[7] = 3u << 28; /* gfx10 and later: raw bounds */
    before.s[8] = 16;
}

static inline void exec_draw(const amd_program *program) {
    bool some = draw(&random_state, 2);
    for (int i = 0; i < 2; i++) {
        uint32_t lanes = some ? (uint32_t)sim_random(&random_state) : ~0u;
        before.s[AMD_EXEC + i] = i && program->kernels[0].wave32 ? 0 : lanes;
    }
}

static inline bool lane_on(uint32_t l) {
    return before.s[AMD_EXEC + l / 32] >> l % 32 & 1;
}

/* A lane's slot as the filling store leaves it, and as it is read back. */
static inline void slot_copy(const amdgcn_registers *from, uint32_t first, uint32_t lane, uint8_t *slot) {
    for (uint32_t i = 0; i < 4; i++)
        memcpy(slot + i * 4, &from->v[first + i][lane], 4);
}

/* The registers of a run of a text in a space. */
static inline void run(const amd_program *program, space where, uint32_t offset) {
    uint32_t lanes = program->kernels[0].wave32 ? 32 : 64;
    amdgcn_registers_fill(&before, program, &random_state);
    addresses_draw(where, lanes, offset);
    exec_draw(program);
    memset(written, 0, sizeof written);
    registers = before;
    amdgcn_run(program, &setting, &registers);
}

static inline bool assembles(const machine *m, const char *text) {
    char why[256];
    size_t size;
    uint8_t *code = amdgcn_assemble(m->processor, m->wave64, text, &size, why, sizeof why);
    free(code);
    return code != NULL;
}

#endif
