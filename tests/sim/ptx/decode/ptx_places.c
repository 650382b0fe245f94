/* Where registers stand in a frame. Texts have a register for each number that is ever computed, some thousands; those
 * that are not needed at the same time share a place, so that frames stay in the processor's caches. A lane comes to an
 * instruction by branches alone, so what a register holds is needed from where it is written to where it is last read
 * on any way there. A register that may be read first begins with the frame.
 *
 * Lanes that go different ways share no more than before: each has its own part of each place. */
#include "tests/sim/ptx/decode/ptx_decode.h"
#include <string.h>

/* Whether instructions of a family write their first operand, if it is a register, and do not read it. */
enum {
    WRITES_arithmetic = true,
    WRITES_carry = true,
    WRITES_logic = true,
    WRITES_shift = true,
    WRITES_funnel = true,
    WRITES_lop3 = true,
    WRITES_permute = true,
    WRITES_count = true,
    WRITES_field = true,
    WRITES_dot = true,
    WRITES_video = false,
    WRITES_special = true,
    WRITES_convert = true,
    WRITES_address = true,
    WRITES_rank = true,
    WRITES_compare = true,
    WRITES_select = true,
    WRITES_move = true,
    WRITES_memory = true,
    WRITES_async = false,
    WRITES_mbarrier = false,
    WRITES_hint = false,
    WRITES_atomic = true,
    WRITES_branch = false,
    WRITES_call = false,
    WRITES_exit = false,
    WRITES_stack = false,
    WRITES_barrier = false,
    WRITES_fence = false,
    WRITES_warp = true,
    WRITES_matrix_multiply = true,
    WRITES_matrix_warp = true,
    WRITES_matrix_move = true,
    WRITES_warpgroup = false,
    WRITES_registers = false
};

static bool writes_first(const char *opcode) {
    static const struct {
        const char *opcode;
        bool writes;
    } rows[] = {
#define PTX_OPCODE(opcode, family) {#opcode, WRITES_##family},
#include "tests/sim/ptx/decode/ptx_opcodes.def"
#undef PTX_OPCODE
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].opcode[0] == opcode[0] && strcmp(rows[i].opcode, opcode) == 0) return rows[i].writes;
    return false;
}

/* ---- What statements read and write ---- */

typedef struct basic_block {
    uint32_t first, end; /* its statements */
    uint64_t *in, *out;  /* registers that are needed where it begins, and ends */
    uint64_t *written;
} basic_block;

enum { NONE = 0xffffffff };

typedef struct registers {
    const ptx_function *function;
    uint32_t *block_of; /* of each statement, and of the end */
    basic_block *blocks;
    uint32_t block_count;
    uint32_t *first, *last; /* the statements between which each is needed; NONE: no statement has it */
    uint32_t *shared;       /* its number among those that are needed in several blocks, or NONE */
    uint32_t *of_shared;    /* and back */
    uint32_t shared_count;
    size_t words; /* of a set of those */
} registers;

/* With the register, and whether it is written, not read. */
typedef void (*visitor)(registers *all, uint32_t statement, uint32_t number, bool written);

static void visit_operand(registers *all, uint32_t statement, const ptx_operand *operand, bool written, visitor visit) {
    const bool is_address = operand->kind == PTX_OPERAND_ADDRESS || operand->kind == PTX_OPERAND_TUPLE;
    if (operand->kind == PTX_OPERAND_REGISTER || (is_address && operand->has_register))
        visit(all, statement, operand->number, written);
    for (uint32_t i = 0; i < operand->element_count; i++)
        visit_operand(all, statement, &operand->elements[i], written, visit);
}

/* How many operands a statement only writes: the first, or none. What it writes under a guard it may leave as it was.
 */
static uint32_t written_of(const ptx_statement *statement) {
    const ptx_operand *first = &statement->operands[0];
    if (statement->guard >= 0 || !statement->operand_count || first->selector) return 0;
    if (first->kind != PTX_OPERAND_REGISTER && first->kind != PTX_OPERAND_VECTOR) return 0;
    return writes_first(statement->opcode);
}

/* What each statement reads, and then what it writes. */
static void visit_all(registers *all, visitor visit) {
    for (uint32_t i = 0; i < all->function->statement_count; i++) {
        const ptx_statement *statement = &all->function->statements[i];
        const uint32_t written = written_of(statement);
        if (statement->guard >= 0) visit(all, i, (uint32_t)statement->guard, false);
        for (uint32_t o = written; o < statement->operand_count; o++)
            visit_operand(all, i, &statement->operands[o], false, visit);
        if (written) visit_operand(all, i, &statement->operands[0], true, visit);
    }
}

/* ---- Blocks ---- */

static void *take(ptx_arena *arena, size_t count, size_t size) {
    return ptx_arena_take(arena, (count + 1) * size);
}

static bool is(const ptx_statement *statement, const char *opcode) {
    return strcmp(statement->opcode, opcode) == 0;
}

/* The labels of a branch: its only operand, or the list that is its last. */
static uint32_t labels_of(const ptx_statement *statement, const ptx_operand **out) {
    if (!statement->operand_count || (!is(statement, "bra") && !is(statement, "brx"))) return 0;
    const ptx_operand *last = &statement->operands[statement->operand_count - 1];
    *out = last->kind == PTX_OPERAND_LABEL ? last : last->elements;
    return last->kind == PTX_OPERAND_LABEL ? 1 : last->element_count;
}

static bool ends_block(const ptx_statement *statement) {
    return is(statement, "bra") || is(statement, "brx") || is(statement, "ret") || is(statement, "exit");
}

static void find_blocks(registers *all, ptx_arena *arena) {
    const ptx_function *function = all->function;
    const uint32_t count = function->statement_count;
    bool *begins = take(arena, count + 1, sizeof *begins);
    for (uint32_t i = 0; i < count; i++) {
        const ptx_operand *labels = NULL;
        const uint32_t label_count = labels_of(&function->statements[i], &labels);
        for (uint32_t l = 0; l < label_count; l++)
            if (labels[l].kind == PTX_OPERAND_LABEL) begins[labels[l].number] = true;
        if (ends_block(&function->statements[i])) begins[i + 1] = true;
    }
    begins[0] = begins[count] = true;
    for (uint32_t i = 0; i <= count; i++)
        all->block_count += begins[i];
    all->blocks = take(arena, all->block_count, sizeof *all->blocks);
    all->block_of = take(arena, count + 1, sizeof *all->block_of);
    uint32_t b = 0;
    for (uint32_t i = 0; i <= count; i++) {
        if (i && begins[i]) all->blocks[b++].end = i;
        if (begins[i]) all->blocks[b].first = i;
        all->block_of[i] = b;
    }
    all->blocks[b].end = count;
}

/* ---- Which are needed where ---- */

static bool has(const uint64_t *set, uint32_t i) {
    return set[i / 64] >> i % 64 & 1;
}

static void add(uint64_t *set, uint32_t i) {
    set[i / 64] |= 1ull << i % 64;
}

static void extend(registers *all, uint32_t number, uint32_t statement) {
    if (all->first[number] == NONE || statement < all->first[number]) all->first[number] = statement;
    if (all->last[number] == NONE || statement > all->last[number]) all->last[number] = statement;
}

/* A register that a block reads and has not written is needed before it. last is that of the block's last write. */
static void find_shared(registers *all, uint32_t statement, uint32_t number, bool written) {
    const uint32_t at = all->last[number], block = all->block_of[statement];
    if (written) {
        all->last[number] = statement;
    } else if ((at == NONE || at < all->blocks[block].first) && all->shared[number] == NONE) {
        all->of_shared[all->shared_count] = number;
        all->shared[number] = all->shared_count++;
    }
}

static void note_block(registers *all, uint32_t statement, uint32_t number, bool written) {
    basic_block *block = &all->blocks[all->block_of[statement]];
    const uint32_t shared = all->shared[number];
    if (shared == NONE) return;
    if (written)
        add(block->written, shared);
    else if (!has(block->written, shared))
        add(block->in, shared);
}

static void note_range(registers *all, uint32_t statement, uint32_t number, bool written) {
    (void)written;
    extend(all, number, statement);
}

/* What is needed before a block is needed at the end of another one; then also before that, if that does not write it.
 * Returns whether that is new. */
static bool flow_back(const registers *all, basic_block *from, const basic_block *to) {
    bool changed = false;
    for (size_t w = 0; w < all->words; w++) {
        const uint64_t in = from->in[w];
        from->out[w] |= to->in[w];
        from->in[w] |= from->out[w] & ~from->written[w];
        changed |= from->in[w] != in;
    }
    return changed;
}

static bool flow_back_to(const registers *all, basic_block *from) {
    const ptx_operand *labels = NULL;
    const ptx_statement *last = &all->function->statements[from->end - 1];
    const uint32_t count = labels_of(last, &labels);
    bool changed = false;
    for (uint32_t l = 0; l < count; l++)
        if (labels[l].kind == PTX_OPERAND_LABEL)
            changed |= flow_back(all, from, &all->blocks[all->block_of[labels[l].number]]);
    if (last->guard >= 0 || !ends_block(last)) changed |= flow_back(all, from, from + 1);
    return changed;
}

static void find_needed(registers *all, ptx_arena *arena) {
    all->words = all->shared_count / 64 + 1;
    for (uint32_t b = 0; b < all->block_count; b++) {
        all->blocks[b].in = take(arena, all->words * 3, sizeof(uint64_t));
        all->blocks[b].out = all->blocks[b].in + all->words;
        all->blocks[b].written = all->blocks[b].out + all->words;
    }
    visit_all(all, note_block);
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t b = all->block_count - 1; b-- > 0;) /* the last is the end, and empty */
            changed |= flow_back_to(all, &all->blocks[b]);
    }
}

static void extend_all(registers *all, const uint64_t *set, uint32_t statement) {
    for (size_t w = 0; w < all->words; w++)
        for (uint64_t rest = set[w]; rest; rest &= rest - 1)
            extend(all, all->of_shared[w * 64 + (size_t)__builtin_ctzll(rest)], statement);
}

static void find_ranges(registers *all) {
    memset(all->last, 0xff, all->function->register_count * sizeof *all->last);
    visit_all(all, note_range);
    for (uint32_t b = 0; b + 1 < all->block_count; b++) {
        extend_all(all, all->blocks[b].in, all->blocks[b].first);
        extend_all(all, all->blocks[b].out, all->blocks[b].end - 1);
    }
}

/* ---- Places ---- */

/* Registers in the order of a number of theirs: lists, by that number. */
typedef struct lists {
    uint32_t *head, *next;
} lists;

static lists lists_of(ptx_arena *arena, uint32_t count, uint32_t statements, const uint32_t *by) {
    lists l = {take(arena, statements, sizeof *l.head), take(arena, count, sizeof *l.next)};
    memset(l.head, 0xff, statements * sizeof *l.head);
    for (uint32_t r = 0; r < count; r++) {
        if (by[r] == NONE) continue;
        l.next[r] = l.head[by[r]];
        l.head[by[r]] = r;
    }
    return l;
}

/* What a statement writes does not stand where something stands that it reads. */
static uint32_t *share_places(const registers *all, ptx_arena *arena, ptx_code *code) {
    enum { WIDTHS = 129 };
    const ptx_function *function = all->function;
    const uint32_t count = function->register_count, statements = function->statement_count;
    uint32_t *places = take(arena, count, sizeof *places), *spare = take(arena, count, sizeof *spare), heads[WIDTHS];
    const lists begin = lists_of(arena, count, statements, all->first),
                end = lists_of(arena, count, statements, all->last);
    memset(heads, 0xff, sizeof heads);
    for (uint32_t i = 0; i < statements; i++) {
        for (uint32_t r = begin.head[i]; r != NONE; r = begin.next[r]) {
            const uint32_t bits = ptx_type_bits(function->registers[r].type), found = heads[bits];
            places[r] = found == NONE ? ptx_place_new(code, bits) : places[found];
            if (found != NONE) heads[bits] = spare[found];
        }
        for (uint32_t r = end.head[i]; r != NONE; r = end.next[r]) {
            const uint32_t bits = ptx_type_bits(function->registers[r].type);
            spare[r] = heads[bits];
            heads[bits] = r;
        }
    }
    return places;
}

const uint32_t *ptx_register_places(ptx_arena *arena, ptx_code *code) {
    const ptx_function *function = code->function;
    const uint32_t count = function->register_count;
    ptx_arena *own = ptx_arena_new();
    registers all = {.function = function};
    all.first = take(own, count, sizeof *all.first);
    all.last = take(own, count, sizeof *all.last);
    all.shared = take(own, count, sizeof *all.shared);
    all.of_shared = take(own, count, sizeof *all.of_shared);
    memset(all.first, 0xff, count * sizeof *all.first);
    memset(all.last, 0xff, count * sizeof *all.last);
    memset(all.shared, 0xff, count * sizeof *all.shared);
    find_blocks(&all, own);
    visit_all(&all, find_shared);
    find_needed(&all, own);
    find_ranges(&all);
    uint32_t *places = take(arena, count, sizeof *places);
    memcpy(places, share_places(&all, own, code), count * sizeof *places);
    ptx_arena_free(own);
    return places;
}
