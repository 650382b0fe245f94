/* Variables, parameters and registers. */
#include "tests/sim/ptx/parse/ptx_parser.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void name_add(ptx_parser *parser, ptx_name name) {
    ptx_name *added = ptx_arena_take(parser->arena, sizeof *added);
    *added = name;
    added->next = parser->names;
    parser->names = added;
}

const ptx_name *ptx_name_find(const ptx_parser *parser, const char *text, uint32_t *out_register) {
    size_t stem = strlen(text);
    while (stem > 0 && isdigit((unsigned char)text[stem - 1]))
        stem--;
    uint32_t number = (uint32_t)strtoul(text + stem, NULL, 10);
    for (const ptx_name *name = parser->names; name; name = name->next) {
        if (!name->is_family && strcmp(name->text, text) == 0) {
            *out_register = name->first;
            return name;
        }
        if (name->is_family && text[stem] && number < name->count && strlen(name->text) == stem &&
            memcmp(name->text, text, stem) == 0) {
            *out_register = name->first + number * name->lanes;
            return name;
        }
    }
    return NULL;
}

uint32_t ptx_register_add(ptx_parser *parser, const char *name, ptx_type type) {
    ptx_function *function = parser->function;
    if (function->register_count == parser->register_room) {
        uint32_t room = parser->register_room ? parser->register_room * 2 : 256;
        ptx_register *grown = realloc(parser->registers, room * sizeof *grown);
        if (!grown) ptx_fail(parser, "no memory for registers");
        parser->registers = grown;
        parser->register_room = room;
    }
    parser->registers[function->register_count] = (ptx_register){name, type};
    return function->register_count++;
}

static ptx_type expect_type(ptx_parser *parser) {
    ptx_type type = PTX_NO_TYPE;
    if (parser->token.kind == PTX_TOKEN_DOT) type = ptx_type_find(parser->token.bytes, parser->token.length);
    if (ptx_type_class_of(type) == PTX_CLASS_MATRIX)
        ptx_fail(parser, "only elements of matrices are %s", ptx_type_name(type));
    if (!type) ptx_fail(parser, "expected a type before \"%.*s\"", (int)parser->token.length, parser->token.bytes);
    ptx_advance(parser);
    return type;
}

/* ".v2 .u32": how many registers a name of that stands for, and of which type. */
static uint32_t register_type(ptx_parser *parser, ptx_type *out_type) {
    enum { VECTOR_BITS = 128 };
    uint32_t lanes = ptx_accept_dot(parser, "v2") ? 2 : ptx_accept_dot(parser, "v4") ? 4 : 1;
    *out_type = expect_type(parser);
    if (lanes > 1 && (*out_type == PTX_pred || lanes * ptx_type_bits(*out_type) > VECTOR_BITS))
        ptx_fail(parser, "no vector has %u elements of type %s", lanes, ptx_type_name(*out_type));
    return lanes;
}

/* A parameter that is written as .reg, whose registers come with the body. */
static ptx_variable *register_parameter(ptx_parser *parser) {
    ptx_variable *variable = ptx_arena_take(parser->arena, sizeof *variable);
    *variable = (ptx_variable){.space = PTX_SPACE_PARAM, .line = parser->token.line};
    variable->register_lanes = register_type(parser, &variable->type);
    if (variable->type == PTX_pred) ptx_fail(parser, "a parameter that is a predicate is not simulated");
    uint32_t bytes = ptx_type_bits(variable->type) / 8;
    variable->align = bytes * variable->register_lanes;
    variable->size = variable->align;
    variable->name = ptx_expect_word(parser);
    return variable;
}

void ptx_declare_parameter_registers(ptx_parser *parser, ptx_variable *parameter) {
    parameter->first_register = parser->function->register_count;
    for (uint32_t i = 0; i < parameter->register_lanes; i++)
        ptx_register_add(parser, parameter->name, parameter->type);
    name_add(parser, (ptx_name){.text = parameter->name,
                                .count = 1,
                                .lanes = parameter->register_lanes,
                                .first = parameter->first_register});
}

void ptx_declare_registers(ptx_parser *parser) {
    ptx_type type;
    uint32_t lanes = register_type(parser, &type);
    do {
        char *text = ptx_expect_word(parser);
        ptx_name name = {.text = text, .count = 1, .lanes = lanes};
        if (ptx_accept(parser, '<')) {
            name.is_family = true;
            name.count = (uint32_t)ptx_expect_integer(parser);
            if (name.count > 1u << 20) ptx_fail(parser, "%u registers are too many", name.count);
            ptx_expect(parser, '>');
        }
        name.first = parser->function->register_count;
        for (uint32_t i = 0; i < name.count * lanes; i++)
            ptx_register_add(parser, text, type);
        name_add(parser, name);
    } while (ptx_accept(parser, ','));
    ptx_expect(parser, ';');
}

/* .align, .v2 and .v4, .ptr and what qualifies it, in any order; then the type. */
static ptx_variable *variable_begin(ptx_parser *parser, ptx_space space, uint32_t *out_lanes) {
    ptx_variable *variable = ptx_arena_take(parser->arena, sizeof *variable);
    variable->space = space;
    variable->line = parser->token.line;
    *out_lanes = 1;
    bool is_pointer = false;
    for (;;) {
        if (ptx_accept_dot(parser, "align")) {
            uint64_t align = ptx_expect_integer(parser);
            if (align == 0 || align > 1 << 16 || (align & (align - 1))) ptx_fail(parser, ".align must be a power of 2");
            if (!is_pointer) variable->align = (uint32_t)align; /* behind .ptr it is that of what is pointed to */
        } else if (ptx_accept_dot(parser, "v2")) {
            *out_lanes = 2;
        } else if (ptx_accept_dot(parser, "v4")) {
            *out_lanes = 4;
        } else if (ptx_accept_dot(parser, "attribute")) {
            ptx_skip_to(parser, ')');
        } else {
            break;
        }
    }
    variable->type = expect_type(parser);
    if (ptx_accept_dot(parser, "ptr")) {
        is_pointer = true;
        while (parser->token.kind == PTX_TOKEN_DOT) {
            bool align = ptx_is_dot(parser, "align");
            ptx_advance(parser);
            if (align) ptx_expect_integer(parser);
        }
    }
    uint32_t natural = (ptx_type_bits(variable->type) + 7) / 8 * *out_lanes;
    if (!variable->align) variable->align = natural ? natural : 1;
    return variable;
}

/* The name, its dimensions, and its size in bytes. *out_open: a first dimension that the initialiser gives. */
static void variable_shape(ptx_parser *parser, ptx_variable *variable, uint32_t lanes, bool *out_open) {
    variable->name = ptx_expect_word(parser);
    uint64_t size = (ptx_type_bits(variable->type) + 7) / 8 * (uint64_t)lanes;
    *out_open = false;
    while (ptx_accept(parser, '[')) {
        if (ptx_is(parser, ']'))
            *out_open = true;
        else if (__builtin_mul_overflow(size, ptx_expect_integer(parser), &size) || size > 1ull << 40)
            ptx_fail(parser, "%s is too large", variable->name);
        ptx_expect(parser, ']');
    }
    variable->size = *out_open ? 0 : size;
}

static void relocation_add(ptx_parser *parser, ptx_variable *variable, ptx_relocation relocation) {
    ptx_relocation *grown =
        ptx_arena_take(parser->arena, (variable->relocation_count + 1) * sizeof *variable->relocations);
    if (variable->relocation_count) memcpy(grown, variable->relocations, variable->relocation_count * sizeof *grown);
    grown[variable->relocation_count++] = relocation;
    variable->relocations = grown;
}

/* One element of an initialiser, at offset. */
static void initial_element(ptx_parser *parser, ptx_variable *variable, uint64_t offset) {
    uint32_t bytes = (ptx_type_bits(variable->type) + 7) / 8;
    if (offset + bytes > variable->size) ptx_fail(parser, "%s has too many initialisers", variable->name);
    bool negative = ptx_accept(parser, '-');
    uint64_t value = parser->token.value;
    if (parser->token.kind == PTX_TOKEN_INTEGER) {
        if (negative) value = 0 - value;
    } else if (parser->token.kind == PTX_TOKEN_FLOAT) {
        double wide;
        memcpy(&wide, &value, sizeof wide);
        float narrow = (float)(negative ? -wide : wide);
        uint32_t bits = parser->token.single && !negative ? parser->token.bits : 0;
        if (!bits) memcpy(&bits, &narrow, sizeof bits);
        if (negative) value ^= 1ull << 63;
        if (variable->type == PTX_f32) value = bits;
    } else if (parser->token.kind == PTX_TOKEN_WORD) {
        ptx_relocation relocation = {.offset = offset, .symbol = ptx_expect_word(parser)};
        relocation.generic = strcmp(relocation.symbol, "generic") == 0 && ptx_accept(parser, '(');
        if (relocation.generic) {
            relocation.symbol = ptx_expect_word(parser);
            ptx_expect(parser, ')');
        }
        if (ptx_accept(parser, '+')) relocation.addend = (int64_t)ptx_expect_integer(parser);
        if (bytes != 8) ptx_fail(parser, "an address takes 8 bytes");
        relocation_add(parser, variable, relocation);
        return;
    } else {
        ptx_fail(parser, "expected an initialiser before \"%.*s\"", (int)parser->token.length, parser->token.bytes);
    }
    ptx_advance(parser);
    memcpy(variable->initial + offset, &value, bytes);
}

/* {1, {2, 3}}: nested braces are flat in memory, since inner dimensions are full in what compilers write. */
static uint64_t initial_list(ptx_parser *parser, ptx_variable *variable, uint64_t offset) {
    uint32_t bytes = (ptx_type_bits(variable->type) + 7) / 8;
    do {
        if (ptx_accept(parser, '{')) {
            offset = initial_list(parser, variable, offset);
            ptx_expect(parser, '}');
        } else {
            initial_element(parser, variable, offset);
            offset += bytes;
        }
    } while (ptx_accept(parser, ','));
    return offset;
}

/* How many elements the list in braces has that comes next. */
static uint64_t initial_count(ptx_parser *parser) {
    ptx_lexer mark = parser->lexer;
    ptx_token token = parser->token;
    uint64_t count = 1, depth = 0;
    do {
        if (parser->token.kind == PTX_TOKEN_END) ptx_fail(parser, "the text ends in an initialiser");
        depth += ptx_is(parser, '{');
        depth -= ptx_is(parser, '}');
        count += ptx_is(parser, ',');
        ptx_advance(parser);
    } while (depth);
    parser->lexer = mark;
    parser->token = token;
    return count;
}

static void variable_initial(ptx_parser *parser, ptx_variable *variable, bool open) {
    if (open && ptx_is(parser, '{')) variable->size = initial_count(parser) * ((ptx_type_bits(variable->type) + 7) / 8);
    if (!variable->size) ptx_fail(parser, "%s has an initialiser and no size", variable->name);
    variable->initial = ptx_arena_take(parser->arena, variable->size);
    if (ptx_accept(parser, '{')) {
        initial_list(parser, variable, 0);
        ptx_expect(parser, '}');
    } else {
        initial_element(parser, variable, 0);
    }
}

static void variable_append(ptx_variable *variable, ptx_variable **list) {
    while (*list)
        list = &(*list)->next;
    *list = variable;
}

static void name_variable(ptx_parser *parser, ptx_variable *variable) {
    name_add(parser, (ptx_name){.text = variable->name, .variable = variable});
}

static void variable_add(ptx_parser *parser, ptx_variable *variable, ptx_variable **list) {
    variable_append(variable, list);
    name_variable(parser, variable);
}

void ptx_declare_variables(ptx_parser *parser, ptx_space space, bool is_extern, ptx_variable **list) {
    uint32_t lanes;
    ptx_variable *first = variable_begin(parser, space, &lanes);
    ptx_variable *variable = first;
    for (;;) {
        bool open;
        variable_shape(parser, variable, lanes, &open);
        variable->is_extern = is_extern;
        if (ptx_accept(parser, '='))
            variable_initial(parser, variable, open);
        else if (open && !is_extern)
            ptx_fail(parser, "%s has no size", variable->name);
        variable_add(parser, variable, list);
        if (!ptx_accept(parser, ',')) break;
        variable = ptx_arena_take(parser->arena, sizeof *variable);
        *variable = (ptx_variable){.space = space, .type = first->type, .align = first->align, .line = first->line};
    }
    ptx_expect(parser, ';');
}

/* Behind a first byte at an address: each at a multiple of its alignment. Returns where they end behind it. */
static uint32_t place(ptx_variable *list, uint64_t address) {
    uint64_t end = address;
    for (ptx_variable *v = list; v; v = v->next) {
        end = (end + v->align - 1) / v->align * v->align;
        v->offset = end - address;
        end += v->size;
    }
    return (uint32_t)(end - address);
}

uint64_t ptx_parameters_address(int32_t capability) {
    return capability >= 100 ? 0x380 : capability >= 90 ? 0x210 : 0x160; /* as ptxas 13 has them */
}

void ptx_module_place_parameters(ptx_module *module, int32_t capability) {
    const uint64_t address = ptx_parameters_address(capability);
    for (ptx_function *f = module->functions; f; f = f->next)
        if (f->is_entry) f->parameter_bytes = place(f->parameters, address);
}

uint32_t ptx_declare_parameters(ptx_parser *parser, ptx_variable **list) {
    uint64_t offset = 0;
    while (!ptx_accept(parser, ')')) {
        uint32_t lanes;
        bool open = false;
        ptx_variable *variable;
        if (ptx_accept_dot(parser, "reg")) {
            variable = register_parameter(parser);
        } else {
            if (!ptx_accept_dot(parser, "param")) ptx_fail(parser, "a parameter is neither .param nor .reg");
            variable = variable_begin(parser, PTX_SPACE_PARAM, &lanes);
            variable_shape(parser, variable, lanes, &open);
        }
        if (open) ptx_fail(parser, "parameter %s has no size", variable->name);
        offset += variable->size;
        if (offset > 1 << 20) ptx_fail(parser, "the parameters are too large");
        variable_append(variable, list);
        if (!variable->register_lanes) name_variable(parser, variable);
        if (!ptx_is(parser, ')')) ptx_expect(parser, ',');
    }
    return place(*list, 0);
}
