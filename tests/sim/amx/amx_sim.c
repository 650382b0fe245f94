#include "tests/sim/amx/amx_sim.h"
#include "loader/cpu/cpu_amx.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, ROWS = 16, ROW_BYTES = 64, LANES = ROW_BYTES / 4 };

typedef struct tile {
    uint8_t bytes[ROWS][ROW_BYTES];
} tile;

/* A thread's tiles. */
typedef struct tile_state {
    bool configured;
    uint8_t start_row;
    uint16_t row_bytes[TILES];
    uint8_t rows[TILES];
    tile tiles[TILES];
} tile_state;

static _Thread_local tile_state state;
static atomic_uint_fast64_t products;
static atomic_int holders; /* threads with tiles */
static struct sigaction before;

void (*amx_sim_refused)(const char *text);

static _Noreturn void refuse(const char *text) {
    if (amx_sim_refused) amx_sim_refused(text);
    if (write(STDERR_FILENO, text, strlen(text)) < 0 || write(STDERR_FILENO, "\n", 1) < 0) _exit(1);
    abort();
}

static void require(bool good, const char *text) {
    if (!good) refuse(text);
}

/* ---- Decoding ---- */

/* An instruction with a prefix of VEX of three bytes and the opcodes 0F 38. */
typedef struct instruction {
    uint8_t opcode, prefix; /* 0: none, 1: 66, 2: F3, 3: F2 */
    uint8_t mod, reg, rm;
    uint8_t vvvv; /* as it is meant, not inverted */
    bool extended_reg, extended_index, extended_base, wide, long_vector;
    const uint8_t *modrm;
} instruction;

static bool decode(const uint8_t *at, instruction *out) {
    if (at[0] != 0xc4 || (at[1] & 0x1f) != 2) return false;
    *out = (instruction){.opcode = at[3],
                         .prefix = at[2] & 3,
                         .mod = at[4] >> 6,
                         .reg = at[4] >> 3 & 7,
                         .rm = at[4] & 7,
                         .vvvv = ~at[2] >> 3 & 15,
                         .extended_reg = !(at[1] & 0x80),
                         .extended_index = !(at[1] & 0x40),
                         .extended_base = !(at[1] & 0x20),
                         .wide = at[2] & 0x80,
                         .long_vector = at[2] & 4,
                         .modrm = at + 4};
    return out->opcode == 0x49 || out->opcode == 0x4b || out->opcode == 0x5c || out->opcode == 0x5e;
}

static uint64_t register_of(const ucontext_t *context, unsigned number) {
    static const int places[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint64_t)context->uc_mcontext.gregs[places[number]];
}

/* A memory operand: its address without the index, the index, which is a tile's stride, and its end. */
typedef struct operand {
    uint64_t address, index;
    const uint8_t *end;
} operand;

static operand operand_of(const ucontext_t *context, const instruction *i) {
    const uint8_t *at = i->modrm + 1;
    operand o = {0};
    unsigned base = i->rm;
    if (i->rm == 4) {
        const unsigned index = (*at >> 3 & 7u) + 8u * i->extended_index;
        if (index != 4) o.index = register_of(context, index) << (*at >> 6);
        base = *at++ & 7;
    }
    const bool relative = i->mod == 0 && i->rm == 5, based = !(i->mod == 0 && base == 5);
    int32_t far = 0;
    if (i->mod == 1) {
        far = (int8_t)*at++;
    } else if (i->mod == 2 || !based) {
        memcpy(&far, at, sizeof far);
        at += sizeof far;
    }
    o.end = at;
    o.address = (uint64_t)(int64_t)far;
    if (relative)
        o.address += (uint64_t)(uintptr_t)at;
    else if (based)
        o.address += register_of(context, base + 8u * i->extended_base);
    return o;
}

/* ---- Tiles ---- */

static void forget_tiles(void) {
    if (state.configured) atomic_fetch_sub(&holders, 1);
    memset(&state, 0, sizeof state);
}

static void load_config(const uint8_t *memory) {
    uint8_t config[64];
    memcpy(config, memory, sizeof config);
    forget_tiles();
    if (config[0] == 0) return;
    require(config[0] == 1, "LDTILECFG: no such palette (#GP)");
    for (int i = 2; i < 64; i++)
        require(!config[i] || (i >= 16 && i < 32) || (i >= 48 && i < 56), "LDTILECFG: reserved bytes are not 0 (#GP)");
    for (int i = 0; i < TILES; i++) {
        memcpy(&state.row_bytes[i], config + 16 + 2 * i, 2);
        state.rows[i] = config[48 + i];
        require(state.rows[i] <= ROWS, "LDTILECFG: a tile has more than 16 rows (#GP)");
        require(state.row_bytes[i] <= ROW_BYTES, "LDTILECFG: a row has more than 64 bytes (#GP)");
        require(!state.rows[i] == !state.row_bytes[i], "LDTILECFG: a tile has rows without bytes or the reverse (#GP)");
    }
    state.start_row = config[1];
    state.configured = true;
    atomic_fetch_add(&holders, 1);
}

static tile *tile_of(unsigned number) {
    require(state.configured, "AMX: tiles are not configured (#UD)");
    require(number < TILES && state.rows[number], "AMX: the tile is not configured (#UD)");
    return &state.tiles[number];
}

static void load_tile(unsigned number, const operand *o) {
    tile *t = tile_of(number);
    require(state.start_row < state.rows[number], "TILELOADD: start_row is beyond the tile's rows (#UD)");
    for (unsigned row = state.start_row; row < state.rows[number]; row++) {
        memset(t->bytes[row], 0, ROW_BYTES);
        memcpy(t->bytes[row], (const void *)(uintptr_t)(o->address + row * o->index), state.row_bytes[number]);
    }
    for (unsigned row = state.rows[number]; row < ROWS; row++)
        memset(t->bytes[row], 0, ROW_BYTES);
    state.start_row = 0;
}

static void store_tile(unsigned number, const operand *o) {
    const tile *t = tile_of(number);
    require(state.start_row < state.rows[number], "TILESTORED: start_row is beyond the tile's rows (#UD)");
    for (unsigned row = state.start_row; row < state.rows[number]; row++)
        memcpy((void *)(uintptr_t)(o->address + row * o->index), t->bytes[row], state.row_bytes[number]);
    state.start_row = 0;
}

/* ---- Products ---- */

#define VECTORS __attribute__((target("avx512f,avx512bw")))

typedef enum numbers { BF16, F16, INT8 } numbers;

/* The even and the odd 16-bit numbers of a row, as f32. */
VECTORS static __m512 half_of(__m512i row, bool odd, numbers of) {
    if (of == F16) return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(odd ? _mm512_srli_epi32(row, 16) : row));
    return _mm512_castsi512_ps(odd ? _mm512_and_si512(row, _mm512_set1_epi32((int)0xffff0000))
                                   : _mm512_slli_epi32(row, 16));
}

/* a * b + sum, and a + b. Which of several NaNs comes out depends on the operands' places in the instruction, which a
 * compiler is free to exchange; these are AMX's, as recorded. */
VECTORS static inline __m512 fused(__m512 a, __m512 b, __m512 sum) {
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
    return sum;
}

VECTORS static inline __m512 added(__m512 a, __m512 b) {
    __m512 sum;
    __asm__("vaddps %2, %1, %0" : "=v"(sum) : "v"(a), "v"(b));
    return sum;
}

/* Fused multiply-adds of even numbers and of odd ones, each from 0 on; both sums together are added to what is there.
 */
VECTORS static __m512i add_floats(__m512i sums, const uint8_t *a, const tile *b, unsigned groups, numbers of) {
    __m512 halves[2] = {_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (unsigned k = 0; k < groups; k++) {
        int32_t two;
        memcpy(&two, a + 4 * k, sizeof two);
        const __m512i left = _mm512_set1_epi32(two), right = _mm512_loadu_si512(b->bytes[k]);
        for (int odd = 0; odd < 2; odd++)
            halves[odd] = fused(half_of(left, odd, of), half_of(right, odd, of), halves[odd]);
    }
    return _mm512_castps_si512(added(_mm512_castsi512_ps(sums), added(halves[0], halves[1])));
}

/* Sums of int32 wrap around. */
static void add_integers(uint8_t *sums, const uint8_t *a, const tile *b, unsigned groups) {
    for (unsigned n = 0; n < LANES; n++) {
        uint32_t sum;
        memcpy(&sum, sums + 4 * n, sizeof sum);
        for (unsigned k = 0; k < groups; k++)
            for (unsigned i = 0; i < 4; i++)
                sum += (uint32_t)((int8_t)a[4 * k + i] * (int8_t)b->bytes[k][4 * n + i]);
        memcpy(sums + 4 * n, &sum, sizeof sum);
    }
}

VECTORS static void multiply_tiles(unsigned d, unsigned a, unsigned b, numbers of) {
    tile *sums = tile_of(d);
    const tile *left = tile_of(a), *right = tile_of(b);
    require(d != a && d != b && a != b, "TDP: two operands are one tile (#UD)");
    require(!(state.row_bytes[d] % 4 || state.row_bytes[a] % 4 || state.row_bytes[b] % 4),
            "TDP: the bytes of a row are not a multiple of 4 (#UD)");
    require(state.rows[d] == state.rows[a], "TDP: the sums have not the rows of the first factor (#UD)");
    require(state.row_bytes[d] == state.row_bytes[b], "TDP: the sums have not the columns of the second factor (#UD)");
    require(state.row_bytes[a] / 4 == state.rows[b], "TDP: the factors have not the same k (#UD)");
    require(!state.start_row, "TDP: start_row is not 0 (#UD)");
    const unsigned old = _mm_getcsr();
    _mm_setcsr(0x9fc0); /* round to nearest, subnormal numbers are 0, no traps */
    for (unsigned row = 0; row < ROWS; row++) {
        uint8_t *sum = sums->bytes[row];
        if (row < state.rows[d] && of == INT8)
            add_integers(sum, left->bytes[row], right, state.rows[b]);
        else if (row < state.rows[d])
            _mm512_storeu_si512(sum, add_floats(_mm512_loadu_si512(sum), left->bytes[row], right, state.rows[b], of));
        const unsigned kept = row < state.rows[d] ? state.row_bytes[d] : 0;
        memset(sum + kept, 0, ROW_BYTES - kept);
    }
    _mm_setcsr(old);
    atomic_fetch_add(&products, 1);
}

/* ---- The handler ---- */

enum { NONE, P66, PF3, PF2 };

/* Executes the instruction and returns its end. */
static const uint8_t *execute(const ucontext_t *context, const instruction *i) {
    const bool memory = i->mod != 3;
    require(!i->wide && !i->long_vector, "AMX: VEX.W or VEX.L is 1 (#UD)");
    require(!i->extended_reg, "AMX: no such tile (#UD)");
    if (i->opcode >= 0x5c) {
        require(!memory && !i->extended_base, "TDP: an operand is no tile (#UD)");
        require(i->vvvv < TILES, "TDP: no such tile (#UD)");
        if (i->opcode == 0x5c && i->prefix == PF3)
            multiply_tiles(i->reg, i->rm, i->vvvv, BF16);
        else if (i->opcode == 0x5c && i->prefix == PF2)
            multiply_tiles(i->reg, i->rm, i->vvvv, F16);
        else if (i->opcode == 0x5e && i->prefix == PF2)
            multiply_tiles(i->reg, i->rm, i->vvvv, INT8);
        else
            refuse("AMX: this product is not simulated");
        return i->modrm + 1;
    }
    require(!i->vvvv, "AMX: VEX.vvvv is not 1111b (#UD)");
    if (i->opcode == 0x49 && !memory) {
        if (i->prefix == NONE && i->reg == 0 && i->rm == 0)
            forget_tiles();
        else if (i->prefix == PF2 && i->rm == 0)
            memset(tile_of(i->reg), 0, sizeof(tile));
        else
            refuse("AMX: this instruction is not simulated");
        return i->modrm + 1;
    }
    require(memory, "AMX: the operand is not memory (#UD)");
    const operand o = operand_of(context, i);
    if (i->opcode == 0x49) {
        require(i->prefix == NONE && i->reg == 0, "AMX: this instruction is not simulated");
        load_config((const uint8_t *)(uintptr_t)(o.address + o.index));
        return o.end;
    }
    require(i->rm == 4, "AMX: the operand has no SIB byte (#UD)");
    if (i->prefix == PF2)
        load_tile(i->reg, &o);
    else if (i->prefix == PF3)
        store_tile(i->reg, &o);
    else
        refuse("AMX: this instruction is not simulated");
    return o.end;
}

static void on_sigill(int number, siginfo_t *info, void *data) {
    ucontext_t *context = data;
    instruction i;
    (void)info;
    if (!decode((const uint8_t *)context->uc_mcontext.gregs[REG_RIP], &i)) {
        sigaction(number, &before, NULL); /* what it was meant for takes it */
        return;
    }
    context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)execute(context, &i);
}

static bool has_tiles(void) {
    enum { EDX_TILE = 1 << 24 };
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d & EDX_TILE;
}

/* Whether the calling thread's tiles, or their configuration, are other than a process begins with. */
__attribute__((target("xsave"))) static bool holds_tiles(void) {
    enum { TILE_CONFIG = 1 << 17, TILE_DATA = 1 << 18 };
    return _xgetbv(1) & (TILE_CONFIG | TILE_DATA);
}

bool amx_sim_can(void) {
    return !has_tiles() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
}

uint32_t amx_sim_enter(void) {
    if (!amx_sim_can()) return kiln__cpu_amx_request();
    struct sigaction action = {.sa_sigaction = on_sigill, .sa_flags = SA_SIGINFO | SA_NODEFER};
    products = 0;
    if (sigaction(SIGILL, &action, &before) != 0) abort();
    return KILN__CPU_AMX_INT8 | KILN__CPU_AMX_BF16 | KILN__CPU_AMX_F16;
}

uint64_t amx_sim_leave(bool *out_held) {
    if (!amx_sim_can()) {
        *out_held = has_tiles() && holds_tiles();
        return 0;
    }
    sigaction(SIGILL, &before, NULL);
    *out_held = holders != 0;
    return products;
}

#else

void (*amx_sim_refused)(const char *text);

bool amx_sim_can(void) {
    return false;
}

uint32_t amx_sim_enter(void) {
    return 0;
}

uint64_t amx_sim_leave(bool *out_held) {
    *out_held = false;
    return 0;
}

#endif
