#include "tests/sim/ptx/matrix/ptx_matrix.h"
#include <string.h>

#define ANY        true
#define ROW_COLUMN false

const ptx_matrix_form ptx_matrix_forms[] = {
#define PTX_MMA(m, n, k, layouts, d, a, b, c, takes, target, version)                \
    {false,   PTX_M_M##m##N##n##K##k, {m, n, k}, layouts, PTX_##d, PTX_##a, PTX_##b, \
     PTX_##c, PTX_MATRIX_##takes,     {0},       target,  version},
#define PTX_WMMA(m, n, k, layouts, d, type, c, takes, registers_a, registers_b, target, version) \
    {true,                                                                                       \
     PTX_M_M##m##N##n##K##k,                                                                     \
     {m, n, k},                                                                                  \
     layouts,                                                                                    \
     PTX_##d,                                                                                    \
     PTX_##type,                                                                                 \
     PTX_##type,                                                                                 \
     PTX_##c,                                                                                    \
     PTX_MATRIX_##takes,                                                                         \
     {registers_a, registers_b},                                                                 \
     target,                                                                                     \
     version},
#define PTX_MMA_SCALED(m, n, k, kind, vector, a, b, scale, version)
#include "tests/sim/ptx/matrix/ptx_matrix_forms.def"
#undef PTX_MMA
#undef PTX_WMMA
#undef PTX_MMA_SCALED
};
const size_t ptx_matrix_form_count = sizeof ptx_matrix_forms / sizeof *ptx_matrix_forms;

int ptx_matrix_take_shape(ptx_decoder *decoder, bool wmma) {
    int shape = -1;
    if (!ptx_take(decoder, PTX_M_SYNC) || !ptx_take(decoder, PTX_M_ALIGNED))
        ptx_refuse(decoder, "it needs .sync.aligned");
    for (size_t i = 0; i < ptx_matrix_form_count; i++)
        if (ptx_matrix_forms[i].wmma == wmma && ptx_take(decoder, ptx_matrix_forms[i].modifier))
            shape = ptx_matrix_forms[i].modifier;
    if (shape < 0) ptx_refuse(decoder, "it has no shape, or one that it does not know");
    return shape;
}

void ptx_matrix_take_layouts(ptx_decoder *decoder, uint32_t count, bool *out_columns) {
    const ptx_statement *statement = decoder->statement;
    uint32_t found = 0;
    ptx_take(decoder, PTX_M_ROW);
    ptx_take(decoder, PTX_M_COL);
    for (uint32_t i = 0; i < statement->suffix_count; i++) {
        bool column = strcmp(statement->suffixes[i], "col") == 0;
        if (!column && strcmp(statement->suffixes[i], "row") != 0) continue;
        if (found < count) out_columns[found] = column;
        found++;
    }
    if (found != count) ptx_refuse(decoder, "it takes %u layouts, has %u", count, found);
}

void ptx_matrix_start(ptx_decoder *decoder, const ptx_matrix *matrix, ptx_run run) {
    ptx_matrix *kept = ptx_arena_take(decoder->program->module->arena, sizeof *kept);
    *kept = *matrix;
    decoder->op->matrix = kept;
    decoder->op->run = run;
    decoder->op->flow = PTX_FLOW_ALIGNED;
}
