/* Statements and their operands. */
#include "tests/sim/ptx/parse/ptx_parser.h"
#include <stdlib.h>
#include <string.h>

static ptx_operand parse_operand(ptx_parser *parser);

enum { ELEMENTS = 128 };

/* The elements of a vector or list up to its end, into the arena. */
static void parse_elements(ptx_parser *parser, ptx_operand *operand, char end) {
    ptx_operand elements[ELEMENTS];
    uint32_t count = 0;
    while (!ptx_accept(parser, end)) {
        if (count == ELEMENTS) ptx_fail(parser, "more than %d elements", ELEMENTS);
        elements[count++] = parse_operand(parser);
        if (elements[count - 1].kind == PTX_OPERAND_REGISTER && elements[count - 1].value)
            ptx_fail(parser, "an element may not be a sum");
        if (!ptx_is(parser, end)) ptx_expect(parser, ',');
    }
    operand->elements = ptx_arena_take(parser->arena, count * sizeof *elements);
    if (count) memcpy(operand->elements, elements, count * sizeof *elements);
    operand->element_count = count;
}

static int64_t parse_offset(ptx_parser *parser) {
    bool plus = ptx_accept(parser, '+');
    bool minus = ptx_accept(parser, '-');
    if (!plus && !minus) return 0;
    int64_t value = (int64_t)ptx_expect_integer(parser);
    return minus ? -value : value;
}

/* "%tid" and ".x". */
static const char *special_name(ptx_parser *parser, char *word) {
    if (parser->token.kind != PTX_TOKEN_DOT || parser->token.spaced || parser->token.length != 1) return word;
    size_t length = strlen(word);
    char *text = ptx_arena_take(parser->arena, length + 3);
    memcpy(text, word, length);
    text[length] = '.';
    text[length + 1] = *parser->token.bytes;
    ptx_advance(parser);
    return text;
}

/* A vector of registers from first on, or the one that ".x" or its like behind it selects. */
static ptx_operand parse_vector(ptx_parser *parser, const char *word, uint32_t first, uint32_t lanes) {
    static const char selectors[] = "xyzwrgba";
    if (parser->token.kind == PTX_TOKEN_DOT && !parser->token.spaced) {
        const char *at = parser->token.length == 1 ? strchr(selectors, *parser->token.bytes) : NULL;
        if (!at || (uint32_t)(at - selectors) % 4 >= lanes) ptx_fail(parser, "%s has no such element", word);
        ptx_advance(parser);
        return (ptx_operand){
            .kind = PTX_OPERAND_REGISTER, .number = first + (uint32_t)(at - selectors) % 4, .name = word};
    }
    ptx_operand vector = {.kind = PTX_OPERAND_VECTOR, .name = word, .element_count = lanes};
    vector.elements = ptx_arena_take(parser->arena, lanes * sizeof *vector.elements);
    for (uint32_t i = 0; i < lanes; i++)
        vector.elements[i] = (ptx_operand){.kind = PTX_OPERAND_REGISTER, .number = first + i, .name = word};
    return vector;
}

static ptx_operand parse_word(ptx_parser *parser) {
    char *word = ptx_expect_word(parser);
    uint32_t number;
    if (strcmp(word, "_") == 0) return (ptx_operand){.kind = PTX_OPERAND_NONE};
    if (strcmp(word, "WARP_SZ") == 0) return (ptx_operand){.kind = PTX_OPERAND_INTEGER, .value = 32};
    const ptx_name *name = ptx_name_find(parser, word, &number);
    if (name && name->variable) {
        ptx_operand operand = {.kind = PTX_OPERAND_VARIABLE, .variable = name->variable, .name = word};
        operand.value = parse_offset(parser);
        return operand;
    }
    if (name && name->lanes > 1) return parse_vector(parser, word, number, name->lanes);
    if (name) {
        ptx_operand operand = {.kind = PTX_OPERAND_REGISTER, .number = number, .name = word};
        if (parser->token.kind == PTX_TOKEN_DOT && !parser->token.spaced) {
            operand.selector = ptx_token_text(parser);
            ptx_advance(parser);
        }
        return operand;
    }
    if (*word == '%') return (ptx_operand){.kind = PTX_OPERAND_SPECIAL, .name = special_name(parser, word)};
    return (ptx_operand){.kind = PTX_OPERAND_WORD, .name = word}; /* a label or a function */
}

static ptx_operand parse_number(ptx_parser *parser, bool negative) {
    ptx_operand operand = {.kind = PTX_OPERAND_INTEGER, .value = (int64_t)parser->token.value};
    if (parser->token.kind == PTX_TOKEN_FLOAT) {
        operand.kind = PTX_OPERAND_FLOAT;
        operand.single = parser->token.single;
        operand.number = parser->token.bits ^ (negative ? 1u << 31 : 0);
        if (negative) operand.value = (int64_t)((uint64_t)operand.value ^ 1ull << 63);
    } else if (negative) {
        operand.value = (int64_t)(0 - (uint64_t)operand.value);
    }
    ptx_advance(parser);
    return operand;
}

static ptx_operand parse_address(ptx_parser *parser) {
    ptx_operand inner = parse_operand(parser), address = {.kind = PTX_OPERAND_ADDRESS};
    switch (inner.kind) {
    case PTX_OPERAND_REGISTER:
        address.has_register = true;
        address.number = inner.number;
        address.value = inner.value ? inner.value : parse_offset(parser);
        break;
    case PTX_OPERAND_VARIABLE:
        address.variable = inner.variable;
        address.value = inner.value;
        break;
    case PTX_OPERAND_INTEGER:
        address.value = inner.value;
        break;
    default:
        ptx_fail(parser, "this form of address is not simulated");
    }
    while (ptx_accept(parser, ',')) {
        const ptx_operand next = parse_operand(parser);
        address.kind = PTX_OPERAND_TUPLE;
        if (address.element_count++) continue;
        address.elements = ptx_arena_take(parser->arena, sizeof next);
        *address.elements = next;
    }
    ptx_expect(parser, ']');
    return address;
}

static ptx_operand parse_simple(ptx_parser *parser) {
    if (ptx_accept(parser, '{')) {
        ptx_operand operand = {.kind = PTX_OPERAND_VECTOR};
        parse_elements(parser, &operand, '}');
        return operand;
    }
    if (ptx_accept(parser, '(')) {
        ptx_operand operand = {.kind = PTX_OPERAND_LIST};
        parse_elements(parser, &operand, ')');
        return operand;
    }
    if (ptx_accept(parser, '[')) return parse_address(parser);
    if (ptx_accept(parser, '!')) {
        ptx_operand operand = parse_word(parser);
        operand.negated = true;
        return operand;
    }
    bool negative = ptx_accept(parser, '-');
    if (parser->token.kind == PTX_TOKEN_INTEGER || parser->token.kind == PTX_TOKEN_FLOAT)
        return parse_number(parser, negative);
    if (parser->token.kind != PTX_TOKEN_WORD)
        ptx_fail(parser, "expected an operand before \"%.*s\"", (int)parser->token.length, parser->token.bytes);
    ptx_operand operand = parse_word(parser);
    operand.negated = negative;
    if (operand.kind == PTX_OPERAND_REGISTER && ptx_is(parser, '+')) operand.value = parse_offset(parser);
    return operand;
}

static ptx_operand parse_operand(ptx_parser *parser) {
    ptx_operand operand = parse_simple(parser);
    if (!ptx_accept(parser, '|')) return operand;
    operand.elements = ptx_arena_take(parser->arena, sizeof operand);
    operand.elements[0] = parse_simple(parser);
    operand.element_count = 1;
    operand.paired = true;
    return operand;
}

ptx_statement *ptx_statement_add(ptx_parser *parser) {
    ptx_function *function = parser->function;
    if (function->statement_count == parser->statement_room) {
        uint32_t room = parser->statement_room ? parser->statement_room * 2 : 512;
        ptx_statement *grown = realloc(parser->statements, room * sizeof *grown);
        if (!grown) ptx_fail(parser, "no memory for statements");
        parser->statements = grown;
        parser->statement_room = room;
    }
    ptx_statement *statement = &parser->statements[function->statement_count++];
    *statement = (ptx_statement){.guard = -1, .line = parser->token.line};
    return statement;
}

/* An operand "r + 1" that is no address becomes a register of its own, to which an add before the statement gives the
 * sum. */
static void take_sums(ptx_parser *parser) {
    ptx_statement kept = parser->statements[--parser->function->statement_count];
    for (uint32_t i = 0; i < kept.operand_count; i++) {
        ptx_operand *operand = &kept.operands[i];
        if (operand->kind != PTX_OPERAND_REGISTER || !operand->value) continue;
        ptx_type type = parser->registers[operand->number].type;
        uint32_t bits = ptx_type_bits(type);
        bool whole = ptx_type_class_of(type) != PTX_CLASS_FLOAT && bits >= 16 && bits <= 64;
        if (!whole || operand->negated || operand->paired) ptx_fail(parser, "%s + a number is no sum", operand->name);
        ptx_statement *add = ptx_statement_add(parser);
        add->opcode = "add";
        add->suffixes[add->suffix_count++] = bits == 16 ? "u16" : bits == 32 ? "u32" : "u64";
        add->guard = kept.guard;
        add->guard_negated = kept.guard_negated;
        add->line = kept.line;
        add->operand_count = 3;
        add->operands[1] = *operand;
        add->operands[1].value = 0;
        add->operands[2] = (ptx_operand){.kind = PTX_OPERAND_INTEGER, .value = operand->value};
        operand->number = ptx_register_add(parser, operand->name, type);
        operand->value = 0;
        add->operands[0] = *operand;
    }
    *ptx_statement_add(parser) = kept;
}

void ptx_parse_statement(ptx_parser *parser) {
    ptx_statement *statement = ptx_statement_add(parser);
    if (ptx_accept(parser, '@')) {
        statement->guard_negated = ptx_accept(parser, '!');
        ptx_operand guard = parse_word(parser);
        if (guard.kind != PTX_OPERAND_REGISTER) ptx_fail(parser, "a guard must be a predicate register");
        statement->guard = (int32_t)guard.number;
    }
    statement->opcode = ptx_expect_word(parser);
    while (parser->token.kind == PTX_TOKEN_DOT) {
        if (statement->suffix_count == PTX_SUFFIX_MAX) ptx_fail(parser, "%s has too many suffixes", statement->opcode);
        statement->suffixes[statement->suffix_count++] = ptx_token_text(parser);
        ptx_advance(parser);
    }
    while (!ptx_is(parser, ';')) {
        if (statement->operand_count == PTX_OPERAND_MAX)
            ptx_fail(parser, "%s has more than %d operands", statement->opcode, PTX_OPERAND_MAX);
        statement->operands[statement->operand_count++] = parse_operand(parser);
        if (!ptx_is(parser, ';')) ptx_expect(parser, ',');
    }
    ptx_expect(parser, ';');
    take_sums(parser);
    statement = &parser->statements[parser->function->statement_count - 1];
    if (strcmp(statement->opcode, "call") == 0) ptx_register_parameters_call(parser, statement);
    if (strcmp(statement->opcode, "ret") == 0) {
        const ptx_statement kept = *statement;
        parser->function->statement_count--;
        ptx_register_parameters_leave(parser, &kept);
        *ptx_statement_add(parser) = kept;
    }
}

/* The meaning of the labels of a block, from the innermost on. */
static void resolve_label(ptx_parser *parser, ptx_operand *operand, const ptx_label *outside) {
    for (uint32_t i = 0; i < operand->element_count; i++)
        resolve_label(parser, &operand->elements[i], outside);
    if (operand->kind != PTX_OPERAND_WORD) return;
    const ptx_label *label = parser->labels;
    while (label != outside && strcmp(label->text, operand->name) != 0)
        label = label->next;
    if (label == outside) return;
    *operand = label->meant;
    operand->name = label->text;
    for (uint32_t i = 0; i < operand->element_count; i++)
        resolve_label(parser, &operand->elements[i], outside);
}

void ptx_resolve_labels(ptx_parser *parser, uint32_t first, const ptx_label *labels_outside) {
    if (parser->labels == labels_outside) return;
    for (uint32_t i = first; i < parser->function->statement_count; i++) {
        ptx_statement *statement = &parser->statements[i];
        for (uint32_t j = 0; j < statement->operand_count; j++)
            resolve_label(parser, &statement->operands[j], labels_outside);
    }
}

static void resolve_function(ptx_parser *parser, ptx_operand *operand, uint32_t line) {
    for (uint32_t i = 0; i < operand->element_count; i++)
        resolve_function(parser, &operand->elements[i], line);
    if (operand->kind != PTX_OPERAND_WORD) return;
    operand->function = ptx_function_find(parser->module, operand->name);
    operand->kind = PTX_OPERAND_FUNCTION;
    if (operand->function) return;
    parser->token.line = line;
    ptx_fail(parser, "%s is not declared", operand->name);
}

void ptx_resolve_functions(ptx_parser *parser) {
    for (uint32_t i = 0; i < parser->function->statement_count; i++) {
        ptx_statement *statement = &parser->statements[i];
        for (uint32_t j = 0; j < statement->operand_count; j++)
            resolve_function(parser, &statement->operands[j], statement->line);
    }
}
