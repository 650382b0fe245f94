/* wgmma.mma_async.sync.aligned.mMnNkK.d.a.b d, a, b-descriptor, scale-d {, imm-scale-a, imm-scale-b {, imm-trans-a},
 * imm-trans-b}; wgmma.fence, .commit_group and .wait_group, all of sm_90a alone; setmaxnreg. */
#include "tests/sim/ptx/alu/ptx_float.h"
#include "tests/sim/ptx/matrix/ptx_wgmma.h"
#include <stdlib.h>
#include <string.h>

typedef enum takes { SATFINITE, AND, SIGNS, LAYOUTS } takes;

typedef struct form {
    uint32_t k;
    ptx_type d, a, b;
    takes takes;
} form;

static const form forms[] = {
#define PTX_WGMMA(k, d, a, b, takes) {k, PTX_##d, PTX_##a, PTX_##b, takes},
#include "tests/sim/ptx/matrix/ptx_wgmma_forms.def"
#undef PTX_WGMMA
};

bool ptx_wgmma_shape(const char *suffix, uint32_t shape[3]) {
    static const char marks[] = {'m', 'n', 'k'};
    for (uint32_t i = 0; i < 3; i++) {
        char *end;
        if (*suffix != marks[i] || suffix[1] < '1' || suffix[1] > '9') return false;
        shape[i] = (uint32_t)strtoul(suffix + 1, &end, 10);
        suffix = end;
    }
    return !*suffix && shape[0] == 64;
}

static const form *form_of(ptx_decoder *decoder) {
    ptx_type d = ptx_type_at(decoder, 0), a = ptx_type_at(decoder, 1), b = ptx_type_at(decoder, 2);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        const form *f = &forms[i];
        if (f->d == d && (f->a == a || f->b == a) && (f->a == b || f->b == b)) return f;
    }
    ptx_refuse(decoder, "there is no such form of types");
}

static void check_shape(ptx_decoder *decoder, const form *f) {
    if (!ptx_take(decoder, PTX_M_WARPGROUP_SHAPE)) ptx_refuse(decoder, "it has no shape");
    uint32_t n = decoder->shape[1], step = f->d == PTX_s32 && n > 32 ? 16 : 8;
    if (decoder->shape[2] != f->k || n > PTX_WGMMA_N || n % step)
        ptx_refuse(decoder, "there is no such form of shape and types");
}

static void decode_registers(ptx_decoder *decoder, const ptx_operand *operand, ptx_type type, uint32_t count,
                             ptx_wgmma_register *out) {
    if (operand->kind != PTX_OPERAND_VECTOR) ptx_refuse(decoder, "its matrices must be vectors of registers");
    if (operand->element_count != count)
        ptx_refuse(decoder, "a matrix of %u registers where it has %u", operand->element_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const ptx_operand *element = &operand->elements[i];
        if (element->kind != PTX_OPERAND_REGISTER) ptx_refuse(decoder, "its matrices must be vectors of registers");
        out[i] = (ptx_wgmma_register){element->number, ptx_result(decoder, element, type)};
    }
}

/* A constant that is one of two. */
static bool decode_choice(ptx_decoder *decoder, const ptx_operand *operand, const char *what, int64_t no, int64_t yes) {
    bool known = operand->kind == PTX_OPERAND_INTEGER && (operand->value == no || operand->value == yes);
    if (!known) ptx_refuse(decoder, "%s is %lld or %lld", what, (long long)no, (long long)yes);
    return operand->value == yes;
}

static void decode_product(ptx_decoder *decoder) {
    ptx_op *op = decoder->op;
    const ptx_operand *operands = decoder->statement->operands;
    ptx_expect_types(decoder, 3);
    const form *f = form_of(decoder);
    check_shape(decoder, f);
    ptx_wgmma *x = ptx_arena_take(decoder->program->module->arena, sizeof *x);
    *x = (ptx_wgmma){.n = decoder->shape[1], .k = f->k, .d_type = f->d};
    x->a_type = ptx_type_at(decoder, 1);
    x->b_type = ptx_type_at(decoder, 2);
    if (f->takes == SATFINITE && x->a_type != x->b_type) ptx_need(decoder, 90, 84);
    if (f->takes == SATFINITE) ptx_take_flag(decoder, PTX_M_SATFINITE, PTX_F_SATFINITE);
    if (f->takes == AND && !(ptx_take(decoder, PTX_M_AND) && ptx_take(decoder, PTX_M_POPC)))
        ptx_refuse(decoder, "of bits it needs .and.popc");
    bool in_registers = decoder->statement->operand_count > 1 && operands[1].kind == PTX_OPERAND_VECTOR;
    uint32_t layouts = f->takes != LAYOUTS ? 0 : in_registers ? 1 : 2, signs = f->takes >= SIGNS ? 2 : 0;
    ptx_expect_operands(decoder, 4 + signs + layouts, 4 + signs + layouts);
    x->d_count = x->n / (f->d == PTX_f16 ? 4 : 2);
    decode_registers(decoder, &operands[0], f->d == PTX_f16 ? PTX_b32 : f->d, x->d_count, x->d);
    if (in_registers) {
        x->a_count = PTX_WGMMA_A;
        decode_registers(decoder, &operands[1], PTX_b32, x->a_count, x->a);
    } else {
        op->s[0] = ptx_source(decoder, &operands[1], PTX_b64);
    }
    op->s[1] = ptx_source(decoder, &operands[2], PTX_b64);
    op->s[2] = ptx_predicate(decoder, &operands[3], &op->negated[2]);
    for (uint32_t i = 0; i < signs; i++)
        x->negated[i] = decode_choice(decoder, &operands[4 + i], "imm-scale", 1, -1);
    for (uint32_t i = 0; i < layouts; i++)
        x->transposed[i + 2 - layouts] = decode_choice(decoder, &operands[6 + i], "imm-trans", 0, 1);
    op->product = x;
    op->run = ptx_wgmma_run_product;
    op->flags |= PTX_F_TOGETHER;
    decoder->has_products = true;
}

static void take_aligned(ptx_decoder *decoder) {
    ptx_need(decoder, 90, 80);
    if (!ptx_take(decoder, PTX_M_SYNC) || !ptx_take(decoder, PTX_M_ALIGNED))
        ptx_refuse(decoder, "it needs .sync.aligned");
    decoder->op->flow = PTX_FLOW_ALIGNED;
}

void ptx_decode_warpgroup(ptx_decoder *decoder) {
    static const int kinds[] = {PTX_M_MMA_ASYNC, PTX_M_FENCE, PTX_M_COMMIT_GROUP, PTX_M_WAIT_GROUP};
    static const ptx_run runs[] = {NULL, ptx_wgmma_run_fence, ptx_wgmma_run_commit, ptx_wgmma_run_wait};
    int kind = ptx_take_one(decoder, kinds, 4);
    if (kind < 0) ptx_refuse(decoder, "is not simulated");
    if (strcmp(decoder->program->module->target, "sm_90a") != 0) ptx_refuse(decoder, "needs the target sm_90a");
    take_aligned(decoder);
    if (kind == 0) {
        decode_product(decoder);
        return;
    }
    ptx_expect_types(decoder, 0);
    ptx_expect_operands(decoder, kind == 3, kind == 3);
    decoder->op->run = runs[kind];
    if (kind < 3) return;
    const ptx_operand *count = &decoder->statement->operands[0];
    if (count->kind != PTX_OPERAND_INTEGER) ptx_refuse(decoder, "a number of groups must be a constant");
    decoder->op->count = (uint32_t)count->value;
}

/* setmaxnreg.inc and .dec, of sm_90a, sm_100a, sm_100f and their like. */
void ptx_decode_registers(ptx_decoder *decoder) {
    static const int kinds[] = {PTX_M_INC, PTX_M_DEC};
    const char *target = decoder->program->module->target;
    const ptx_operand *count = &decoder->statement->operands[0];
    const int kind = ptx_take_one(decoder, kinds, 2);
    if (kind < 0) ptx_refuse(decoder, "it is neither .inc nor .dec");
    if (target[strlen(target) - 1] < 'a') ptx_refuse(decoder, "needs a target like sm_90a");
    take_aligned(decoder);
    ptx_expect_types(decoder, 1);
    if (ptx_type_at(decoder, 0) != PTX_u32) ptx_refuse(decoder, "its type must be u32");
    ptx_expect_operands(decoder, 1, 1);
    if (count->kind != PTX_OPERAND_INTEGER || count->value < 24 || count->value > 256 || count->value % 8)
        ptx_refuse(decoder, "registers are a constant of 24 to 256, a multiple of 8");
    decoder->op->count = (uint32_t)count->value;
    decoder->op->mode = kind == 0;
    decoder->op->run = ptx_registers_run;
    decoder->program->uses_registers = true;
}
