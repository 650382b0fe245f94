/* ldmatrix{.trans} and stmatrix{.trans}: one, two or four 8x8 matrices of 16 bits from and to shared memory, of whose
 * rows the lanes 0 to 7, 8 to 15, ... have the addresses; movmatrix.trans: one transposed between registers. */
#include "tests/sim/ptx/matrix/ptx_matrix.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"
#include <string.h>

enum { ROWS = 8, ROW_BYTES = 16, SIZE = 64 };

/* What op->mode holds. ALL_ADDRESSES: those of the lanes that no row comes from must be good as well. */
enum { TRANSPOSED = 1, ALL_ADDRESSES = 2 };

static void transpose(uint64_t *elements) {
    for (uint32_t i = 0; i < ROWS; i++) {
        for (uint32_t j = i + 1; j < ROWS; j++) {
            uint64_t element = elements[i * ROWS + j];
            elements[i * ROWS + j] = elements[j * ROWS + i];
            elements[j * ROWS + i] = element;
        }
    }
}

/* The rows' addresses in shared memory. false after a fault. */
static bool find_rows(ptx_warp *warp, const ptx_op *op, uint32_t count, uint64_t *addresses) {
    ptx_addresses(warp, op->s[0], op->bits[0], op->offset, addresses);
    for (uint32_t l = 0; l < count; l++) {
        if (op->space != PTX_SPACE_GENERIC) continue;
        if (ptx_generic_space(addresses[l]) != PTX_SPACE_SHARED) {
            ptx_fault(warp, op, SIM_FAULT_OUT_OF_BOUNDS, l, addresses[l], "a row that is not in shared memory");
            return false;
        }
        addresses[l] &= ~PTX_WINDOW_MASK;
    }
    return true;
}

/* One of the matrices as a fragment of one register. */
static ptx_fragment fragment_at(const ptx_op *op, uint32_t i) {
    ptx_fragment one = op->matrix->a;
    one.count = 1;
    one.places[0] = one.places[i];
    return one;
}

static uint32_t first_lanes(uint32_t count) {
    return (uint32_t)((1ull << count) - 1);
}

static void run_load(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t count = op->matrix->a.count, rows = op->mode & ALL_ADDRESSES ? PTX_WARP : count * ROWS;
    uint64_t addresses[PTX_WARP], elements[PTX_WARP * ROWS];
    (void)mask;
    if (!find_rows(warp, op, rows, addresses)) return;
    ptx_count_request(warp, PTX_SPACE_SHARED, addresses, first_lanes(count * ROWS), ROW_BYTES, false);
    for (uint32_t l = 0; l < rows; l++) {
        uint16_t row[ROWS];
        const uint8_t *bytes = ptx_memory_bytes(warp, op, l, PTX_SPACE_SHARED, addresses[l], ROW_BYTES, true, false);
        if (!bytes) return;
        memcpy(row, bytes, sizeof row);
        for (uint32_t j = 0; j < ROWS; j++)
            elements[l * ROWS + j] = row[j];
    }
    for (uint32_t i = 0; i < count; i++) {
        ptx_fragment one = fragment_at(op, i);
        if (op->mode & TRANSPOSED) transpose(elements + i * SIZE);
        ptx_fragment_set(warp, &one, elements + i * SIZE);
    }
}

static void run_store(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint32_t count = op->matrix->a.count;
    uint64_t addresses[PTX_WARP], elements[PTX_WARP * ROWS];
    (void)mask;
    if (!find_rows(warp, op, count * ROWS, addresses)) return;
    ptx_count_request(warp, PTX_SPACE_SHARED, addresses, first_lanes(count * ROWS), ROW_BYTES, true);
    for (uint32_t i = 0; i < count; i++) {
        ptx_fragment one = fragment_at(op, i);
        ptx_fragment_get(warp, &one, elements + i * SIZE);
        if (op->mode & TRANSPOSED) transpose(elements + i * SIZE);
    }
    for (uint32_t l = 0; l < count * ROWS; l++) {
        uint16_t row[ROWS];
        uint8_t *bytes = ptx_memory_bytes(warp, op, l, PTX_SPACE_SHARED, addresses[l], ROW_BYTES, false, true);
        if (!bytes) return;
        for (uint32_t j = 0; j < ROWS; j++)
            row[j] = (uint16_t)elements[l * ROWS + j];
        memcpy(bytes, row, sizeof row);
    }
}

static void run_transpose(ptx_warp *warp, const ptx_op *op, uint32_t mask) {
    uint64_t elements[SIZE];
    (void)mask;
    ptx_fragment_get(warp, &op->matrix->a, elements);
    transpose(elements);
    ptx_fragment_set(warp, &op->matrix->d, elements);
}

/* ---- Decoding ---- */

static ptx_fragment fragment_of(ptx_decoder *decoder, uint32_t count) {
    static const uint32_t shape[3] = {ROWS, ROWS, ROWS};
    ptx_fragment fragment = {.type = PTX_b16, .count = count};
    if (!ptx_layout_find(decoder->program->module->arena, shape, PTX_MATRIX_X, 16, false, &fragment.layout))
        ptx_refuse(decoder, "the layout of its matrices is not known");
    return fragment;
}

static void decode_access(ptx_decoder *decoder, bool load) {
    static const int counts[] = {PTX_M_X1, PTX_M_X2, PTX_M_X4};
    const ptx_operand *operands = decoder->statement->operands;
    int count = ptx_take_one(decoder, counts, 3);
    if (count < 0) ptx_refuse(decoder, "it needs .x1, .x2 or .x4");
    ptx_expect_operands(decoder, 2, 2);
    ptx_matrix matrix = {.a = fragment_of(decoder, 1u << count)};
    decoder->op->space = ptx_take_space(decoder);
    if (decoder->op->space != PTX_SPACE_GENERIC && decoder->op->space != PTX_SPACE_SHARED)
        ptx_refuse(decoder, "it takes only shared memory");
    if (ptx_take(decoder, PTX_M_TRANS)) decoder->op->mode = TRANSPOSED;
    if (load && decoder->program->capability <= 75) decoder->op->mode |= ALL_ADDRESSES;
    ptx_fragment_decode(decoder, &operands[load ? 0 : 1], load, &matrix.a);
    ptx_decode_pointer(decoder, &operands[load ? 1 : 0]);
    ptx_matrix_start(decoder, &matrix, load ? run_load : run_store);
}

static void decode_transpose(ptx_decoder *decoder) {
    const ptx_operand *operands = decoder->statement->operands;
    if (!ptx_take(decoder, PTX_M_TRANS)) ptx_refuse(decoder, "it needs .trans");
    ptx_expect_operands(decoder, 2, 2);
    ptx_matrix matrix = {.a = fragment_of(decoder, 1), .d = fragment_of(decoder, 1)};
    matrix.d.places[0] = ptx_result(decoder, &operands[0], PTX_b32);
    matrix.a.places[0] = ptx_source(decoder, &operands[1], PTX_b32);
    ptx_matrix_start(decoder, &matrix, run_transpose);
}

void ptx_decode_matrix_move(ptx_decoder *decoder) {
    const char *opcode = decoder->statement->opcode;
    bool load = strcmp(opcode, "ldmatrix") == 0, moves = strcmp(opcode, "movmatrix") == 0;
    ptx_need(decoder, load || moves ? 75 : 90, load ? 65 : 78);
    if (!ptx_take(decoder, PTX_M_SYNC) || !ptx_take(decoder, PTX_M_ALIGNED))
        ptx_refuse(decoder, "it needs .sync.aligned");
    if (!ptx_take(decoder, PTX_M_M8N8)) ptx_refuse(decoder, "it has no shape, or one that is not simulated");
    ptx_expect_types(decoder, 1);
    if (ptx_type_at(decoder, 0) != PTX_b16) ptx_refuse(decoder, "only matrices of .b16 are simulated");
    if (moves)
        decode_transpose(decoder);
    else
        decode_access(decoder, load);
}
