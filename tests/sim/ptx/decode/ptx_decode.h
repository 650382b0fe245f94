/* What the families of instructions share when they decode. Errors leave by longjmp, as in the parser. */
#ifndef KILN_TESTS_SIM_PTX_DECODE_H
#define KILN_TESTS_SIM_PTX_DECODE_H

#include "tests/sim/ptx/decode/ptx_code.h"
#include "tests/sim/ptx/parse/ptx_arena.h"
#include <setjmp.h>

enum {
#define PTX_MODIFIER(name, text) PTX_M_##name,
#include "tests/sim/ptx/decode/ptx_modifiers.def"
#undef PTX_MODIFIER
    PTX_MODIFIER_COUNT
};

enum {
#define PTX_SPECIAL(name, text, bits, narrowest, target, version) PTX_SPECIAL_##name,
#include "tests/sim/ptx/warp/ptx_specials.def"
#undef PTX_SPECIAL
    PTX_SPECIAL_COUNT
};

enum { PTX_TYPES_MAX = 5 }; /* of an instruction */

typedef struct ptx_decoder ptx_decoder;
struct ptx_decoder {
    ptx_program *program;
    ptx_code *code;
    const ptx_statement *statement;
    ptx_op *op;
    uint64_t modifiers[(PTX_MODIFIER_COUNT + 63) / 64];
    ptx_type types[PTX_TYPES_MAX];
    uint32_t type_count;
    uint32_t shape[3];      /* of PTX_M_WARPGROUP_SHAPE */
    bool has_products;      /* the function has wgmma.mma_async */
    const uint32_t *places; /* of the function's registers */
    uint32_t constant_room, special_room, address_room;
    char *why;
    size_t why_size;
    jmp_buf failed;
};

_Noreturn void ptx_refuse(ptx_decoder *decoder, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Takes a modifier: true if it was written. What no one takes refuses the instruction. */
bool ptx_take(ptx_decoder *decoder, int modifier);
/* The index of the one of the listed modifiers that was written, or -1; at most one may be. */
int ptx_take_one(ptx_decoder *decoder, const int *modifiers, int count);
/* Takes the order, scope and caches of an access, in so far as the ISA has them: ptx_access.c. op->type and op->count
 * are set before. Returns whether a loop of it may wait for another block: an atomic, or a load that is not weak. */
typedef enum ptx_access { PTX_ACCESS_LOAD, PTX_ACCESS_STORE, PTX_ACCESS_ATOMIC, PTX_ACCESS_REDUCTION } ptx_access;
bool ptx_take_access(ptx_decoder *decoder, ptx_access access, ptx_space space);

/* Refuses the instruction unless the module is for sm_<target> or later and of PTX version (78 is 7.8) or later. */
void ptx_need(ptx_decoder *decoder, uint32_t target, uint32_t version);

/* The index-th type, or a refusal. */
ptx_type ptx_type_at(ptx_decoder *decoder, uint32_t index);
void ptx_expect_types(ptx_decoder *decoder, uint32_t count);
void ptx_expect_operands(ptx_decoder *decoder, uint32_t least, uint32_t most);

/* The operand as a place: a register of exactly the type's width, or a constant, special register or address of it. */
uint32_t ptx_source(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type);
/* The same where a wider register may stand (ld, st, cvt): *out_bits is its width. */
uint32_t ptx_source_wide(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type, uint8_t *out_bits);
uint32_t ptx_result(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type);
uint32_t ptx_result_wide(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type, uint8_t *out_bits);
/* A predicate source: sets negated. */
uint32_t ptx_predicate(ptx_decoder *decoder, const ptx_operand *operand, bool *out_negated);
/* The number of a special register that is read as so many bits, or a refusal: ptx_special_register.c. */
uint32_t ptx_special_find(ptx_decoder *decoder, const char *name, uint32_t bits);
/* The code of a function, or a refusal if it has none. */
const ptx_code *ptx_code_of(ptx_decoder *decoder, const ptx_function *function);
uint32_t ptx_constant_place(ptx_decoder *decoder, uint64_t value, uint32_t bits);

/* A new place for a register or constant of so many bits. */
uint32_t ptx_place_new(ptx_code *code, uint32_t bits);
/* The places of a function's registers: ptx_places.c. */
const uint32_t *ptx_register_places(ptx_arena *arena, ptx_code *code);

/* Sets op->type and the places of the result and of count sources, all of one type. */
void ptx_decode_same(ptx_decoder *decoder, ptx_type type, uint32_t count);

/* Takes .L2::cache_hint, whose policy is the last operand, which is checked and has no effect: how many operands that
 * are, 0 or 1. */
uint32_t ptx_take_policy(ptx_decoder *decoder);

/* Takes the state space: generic if none is written. */
ptx_space ptx_take_space(ptx_decoder *decoder);
/* An address operand: sets source 0, its width and the offset. */
void ptx_decode_pointer(ptx_decoder *decoder, const ptx_operand *operand);

/* The floating-point types of the families arithmetic and compare. */
void ptx_decode_float_arithmetic(ptx_decoder *decoder);
void ptx_decode_float_compare(ptx_decoder *decoder);

/* Runs what has no effect. */
void ptx_run_nothing(ptx_warp *warp, const ptx_op *op, uint32_t mask);

/* A call of a function without a body; its arguments are decoded. */
void ptx_decode_system_call(ptx_decoder *decoder, const ptx_function *function);

/* cp.async.mbarrier.arrive. */
void ptx_decode_arrive_on_copies(ptx_decoder *decoder);

/* barrier.cluster. */
void ptx_decode_cluster_barrier(ptx_decoder *decoder);

/* st.async and red.async: ptx_store_async.c. */
void ptx_decode_store_async(ptx_decoder *decoder);
void ptx_decode_reduce_async(ptx_decoder *decoder);

/* cp.async.bulk, and cp.reduce.async.bulk: ptx_bulk.c. */
void ptx_decode_bulk(ptx_decoder *decoder, bool reduces);

/* cvt.pack. */
void ptx_decode_pack(ptx_decoder *decoder);

/* One function a family, in the family's own file. */
#define PTX_FAMILY(family) void ptx_decode_##family(ptx_decoder *decoder);
PTX_FAMILY(arithmetic)
PTX_FAMILY(carry)
PTX_FAMILY(logic)
PTX_FAMILY(shift)
PTX_FAMILY(funnel)
PTX_FAMILY(lop3)
PTX_FAMILY(permute)
PTX_FAMILY(count)
PTX_FAMILY(field)
PTX_FAMILY(dot)
PTX_FAMILY(video)
PTX_FAMILY(special)
PTX_FAMILY(convert)
PTX_FAMILY(address)
PTX_FAMILY(rank)
PTX_FAMILY(compare)
PTX_FAMILY(select)
PTX_FAMILY(move)
PTX_FAMILY(memory)
PTX_FAMILY(async)
PTX_FAMILY(mbarrier)
PTX_FAMILY(hint)
PTX_FAMILY(atomic)
PTX_FAMILY(branch)
PTX_FAMILY(call)
PTX_FAMILY(exit)
PTX_FAMILY(stack)
PTX_FAMILY(barrier)
PTX_FAMILY(fence)
PTX_FAMILY(warp)
PTX_FAMILY(matrix_multiply)
PTX_FAMILY(matrix_warp)
PTX_FAMILY(matrix_move)
PTX_FAMILY(warpgroup)
PTX_FAMILY(registers)
#undef PTX_FAMILY

#endif
