/* Parameters and results of functions in registers: `.func (.reg .u32 r) f (.reg .v4 .u16 x)`, and calls whose
 * arguments are registers or constants. Each becomes a parameter in memory, which is what the interpreter's calls pass:
 * the caller stores it and loads the results, the function loads its own and stores its results before each return. */
#include "tests/sim/ptx/parse/ptx_parser.h"
#include <stdio.h>
#include <string.h>

static const char *formatted(ptx_parser *parser, const char *letter, uint32_t number) {
    char text[16];
    int length = snprintf(text, sizeof text, "%s%u", letter, (unsigned)number);
    char *kept = ptx_arena_take(parser->arena, (size_t)length + 1);
    memcpy(kept, text, (size_t)length + 1);
    return kept;
}

/* ld.param or st.param of a variable, from or to registers of so many bits. */
static void move_parameter(ptx_parser *parser, bool load, const ptx_variable *variable, const ptx_operand *value,
                           const ptx_statement *like) {
    ptx_statement *statement = ptx_statement_add(parser);
    uint32_t lanes = value->kind == PTX_OPERAND_VECTOR ? value->element_count : 1;
    ptx_operand address = {.kind = PTX_OPERAND_ADDRESS, .variable = variable};
    statement->opcode = load ? "ld" : "st";
    statement->suffixes[statement->suffix_count++] = "param";
    if (lanes > 1) statement->suffixes[statement->suffix_count++] = formatted(parser, "v", lanes);
    statement->suffixes[statement->suffix_count++] = formatted(parser, "b", (uint32_t)variable->size / lanes * 8);
    statement->operands[load ? 0 : 1] = *value;
    statement->operands[load ? 1 : 0] = address;
    statement->operand_count = 2;
    if (!like) return;
    statement->guard = like->guard;
    statement->guard_negated = like->guard_negated;
    statement->line = like->line;
}

/* ---- Functions ---- */

/* The registers of a parameter as an operand. */
static ptx_operand registers_of(ptx_parser *parser, const ptx_variable *variable) {
    ptx_operand operand = {.kind = PTX_OPERAND_REGISTER, .number = variable->first_register, .name = variable->name};
    if (variable->register_lanes == 1) return operand;
    ptx_operand vector = {
        .kind = PTX_OPERAND_VECTOR, .name = variable->name, .element_count = variable->register_lanes};
    vector.elements = ptx_arena_take(parser->arena, vector.element_count * sizeof operand);
    for (uint32_t i = 0; i < vector.element_count; i++) {
        vector.elements[i] = operand;
        vector.elements[i].number += i;
    }
    return vector;
}

void ptx_register_parameters_enter(ptx_parser *parser) {
    const ptx_function *function = parser->function;
    for (ptx_variable *v = function->results; v; v = v->next)
        if (v->register_lanes) ptx_declare_parameter_registers(parser, v);
    for (ptx_variable *v = function->parameters; v; v = v->next) {
        if (!v->register_lanes) continue;
        ptx_declare_parameter_registers(parser, v);
        ptx_operand registers = registers_of(parser, v);
        move_parameter(parser, true, v, &registers, NULL);
    }
}

void ptx_register_parameters_leave(ptx_parser *parser, const ptx_statement *like) {
    for (const ptx_variable *v = parser->function->results; v; v = v->next) {
        if (!v->register_lanes) continue;
        ptx_operand registers = registers_of(parser, v);
        move_parameter(parser, false, v, &registers, like);
    }
}

/* ---- Calls ---- */

/* The function that a call names, or the prototype of an indirect one, as far as the text has come; or NULL. */
static const ptx_function *signature_of(const ptx_parser *parser, const ptx_statement *call) {
    for (uint32_t i = call->operand_count; i-- > 0;) {
        const ptx_operand *operand = &call->operands[i];
        if (operand->kind != PTX_OPERAND_WORD) continue;
        const ptx_function *function = ptx_function_find(parser->module, operand->name);
        if (function) return function;
        for (const ptx_label *label = parser->labels; label; label = label->next)
            if (strcmp(label->text, operand->name) == 0 && label->meant.kind == PTX_OPERAND_PROTOTYPE)
                return label->meant.function;
    }
    return NULL;
}

/* Of a register or vector of them; 0 of anything else. */
static uint32_t bits_of(const ptx_parser *parser, const ptx_operand *operand) {
    uint32_t bits = 0;
    if (operand->kind == PTX_OPERAND_REGISTER) return ptx_type_bits(parser->registers[operand->number].type);
    for (uint32_t i = 0; operand->kind == PTX_OPERAND_VECTOR && i < operand->element_count; i++)
        bits += bits_of(parser, &operand->elements[i]);
    return bits;
}

/* Gives each element that is no .param variable one of its own; of a result, kept is what it was. */
static void give_variables(ptx_parser *parser, ptx_operand *list, const ptx_variable *wanted, ptx_operand *kept) {
    for (uint32_t i = 0; list && i < list->element_count && wanted; i++, wanted = wanted->next) {
        ptx_operand *element = &list->elements[i];
        kept[i] = (ptx_operand){.kind = PTX_OPERAND_NONE};
        if (element->kind == PTX_OPERAND_VARIABLE && element->variable->space == PTX_SPACE_PARAM) continue;
        if (bits_of(parser, element) && bits_of(parser, element) != wanted->size * 8)
            ptx_fail(parser, "%s takes %u bits, %s has %u", wanted->name, (unsigned)wanted->size * 8, element->name,
                     bits_of(parser, element));
        ptx_variable *variable = ptx_arena_take(parser->arena, sizeof *variable);
        *variable = (ptx_variable){.name = wanted->name,
                                   .space = PTX_SPACE_PARAM,
                                   .type = wanted->type,
                                   .align = wanted->align,
                                   .size = wanted->size,
                                   .line = parser->token.line,
                                   .next = parser->function->variables};
        parser->function->variables = variable;
        kept[i] = *element;
        *element = (ptx_operand){.kind = PTX_OPERAND_VARIABLE, .variable = variable, .name = variable->name};
    }
}

void ptx_register_parameters_call(ptx_parser *parser, const ptx_statement *call) {
    enum { MOST = 64 };
    ptx_operand results_were[MOST], arguments_were[MOST];
    const ptx_function *signature = signature_of(parser, call);
    if (!signature) return;
    ptx_statement kept = *call;
    parser->function->statement_count--;
    ptx_operand *results = kept.operands[0].kind == PTX_OPERAND_LIST ? &kept.operands[0] : NULL, *arguments = NULL;
    for (uint32_t i = results ? 1 : 0; i < kept.operand_count && !arguments; i++)
        if (kept.operands[i].kind == PTX_OPERAND_LIST) arguments = &kept.operands[i];
    give_variables(parser, results, signature->results, results_were);
    give_variables(parser, arguments, signature->parameters, arguments_were);
    const ptx_variable *wanted = signature->parameters;
    for (uint32_t i = 0; arguments && i < arguments->element_count && wanted; i++, wanted = wanted->next)
        if (arguments_were[i].kind != PTX_OPERAND_NONE)
            move_parameter(parser, false, arguments->elements[i].variable, &arguments_were[i], &kept);
    *ptx_statement_add(parser) = kept;
    wanted = signature->results;
    for (uint32_t i = 0; results && i < results->element_count && wanted; i++, wanted = wanted->next)
        if (results_were[i].kind != PTX_OPERAND_NONE)
            move_parameter(parser, true, results->elements[i].variable, &results_were[i], &kept);
}
