/* Modules and functions. */
#include "tests/sim/ptx/parse/ptx_parser.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_fail(ptx_parser *parser, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(parser->why, parser->why_size, "line %u: ", parser->token.line);
    if (length > 0 && (size_t)length < parser->why_size)
        vsnprintf(parser->why + length, parser->why_size - (size_t)length, format, arguments);
    va_end(arguments);
    longjmp(parser->failed, 1);
}

void ptx_advance(ptx_parser *parser) {
    parser->token = ptx_lexer_next(&parser->lexer);
    if (parser->token.kind == PTX_TOKEN_BAD)
        ptx_fail(parser, "cannot read \"%.*s\"", (int)parser->token.length, parser->token.bytes);
}

bool ptx_is(const ptx_parser *parser, char punctuation) {
    return parser->token.kind == PTX_TOKEN_PUNCTUATION && *parser->token.bytes == punctuation;
}

static bool spells(const ptx_token *token, ptx_token_kind kind, const char *word) {
    return token->kind == kind && token->length == strlen(word) && memcmp(token->bytes, word, token->length) == 0;
}

bool ptx_is_dot(const ptx_parser *parser, const char *word) {
    return spells(&parser->token, PTX_TOKEN_DOT, word);
}

bool ptx_accept(ptx_parser *parser, char punctuation) {
    bool is = ptx_is(parser, punctuation);
    if (is) ptx_advance(parser);
    return is;
}

bool ptx_accept_dot(ptx_parser *parser, const char *word) {
    bool is = ptx_is_dot(parser, word);
    if (is) ptx_advance(parser);
    return is;
}

void ptx_expect(ptx_parser *parser, char punctuation) {
    if (!ptx_accept(parser, punctuation))
        ptx_fail(parser, "expected '%c' before \"%.*s\"", punctuation, (int)parser->token.length, parser->token.bytes);
}

char *ptx_token_text(ptx_parser *parser) {
    return ptx_arena_text(parser->arena, parser->token.bytes, parser->token.length);
}

char *ptx_expect_word(ptx_parser *parser) {
    if (parser->token.kind != PTX_TOKEN_WORD)
        ptx_fail(parser, "expected a name before \"%.*s\"", (int)parser->token.length, parser->token.bytes);
    char *text = ptx_token_text(parser);
    ptx_advance(parser);
    return text;
}

uint64_t ptx_expect_integer(ptx_parser *parser) {
    if (parser->token.kind != PTX_TOKEN_INTEGER)
        ptx_fail(parser, "expected an integer before \"%.*s\"", (int)parser->token.length, parser->token.bytes);
    uint64_t value = parser->token.value;
    ptx_advance(parser);
    return value;
}

void ptx_skip_to(ptx_parser *parser, char punctuation) {
    while (!ptx_is(parser, punctuation)) {
        if (parser->token.kind == PTX_TOKEN_END) ptx_fail(parser, "the text ends before a '%c'", punctuation);
        ptx_advance(parser);
    }
    ptx_advance(parser);
}

/* .loc and .file end with their line; .section has a block. */
static bool skip_debug(ptx_parser *parser) {
    if (ptx_is_dot(parser, "loc") || ptx_is_dot(parser, "file")) {
        uint32_t line = parser->token.line;
        while (parser->token.line == line && parser->token.kind != PTX_TOKEN_END)
            ptx_advance(parser);
        return true;
    }
    if (ptx_accept_dot(parser, "pragma")) {
        ptx_skip_to(parser, ';');
        return true;
    }
    if (!ptx_accept_dot(parser, "section")) return false;
    ptx_skip_to(parser, '{');
    ptx_skip_to(parser, '}');
    return true;
}

static ptx_function *function_get(ptx_parser *parser, const char *name) {
    ptx_function *function = ptx_function_find(parser->module, name);
    if (function) return function;
    function = ptx_arena_take(parser->arena, sizeof *function);
    function->name = name;
    function->next = parser->module->functions;
    parser->module->functions = function;
    return function;
}

static void need_clusters(ptx_parser *parser) {
    const ptx_module *module = parser->module;
    if (module->version < 78 || strtoul(module->target + 3, NULL, 10) < 90)
        ptx_fail(parser, "directive .%.*s needs sm_90 and PTX 7.8", (int)parser->token.length, parser->token.bytes);
}

/* Behind .reqnctapercluster: "4", "2, 2" or "2, 2, 1". */
static void parse_cluster(ptx_parser *parser, uint32_t cluster[3]) {
    int count = 0;
    cluster[1] = cluster[2] = 1;
    do {
        if (count == 3) ptx_fail(parser, "a cluster of more than 3 dimensions");
        cluster[count] = (uint32_t)ptx_expect_integer(parser);
        if (!cluster[count++]) ptx_fail(parser, "a cluster of no blocks");
    } while (ptx_accept(parser, ','));
}

/* .maxntid 256, 1, 1 and its kin, between a function's head and its body. */
static void parse_performance(ptx_parser *parser) {
    while (parser->token.kind == PTX_TOKEN_DOT) {
        bool exact = ptx_is_dot(parser, "reqntid"), most = ptx_is_dot(parser, "maxntid");
        bool known = exact || most || ptx_is_dot(parser, "minnctapersm") || ptx_is_dot(parser, "maxnreg") ||
                     ptx_is_dot(parser, "maxnctapersm") || ptx_is_dot(parser, "noreturn") ||
                     ptx_is_dot(parser, "pragma");
        bool size = ptx_is_dot(parser, "reqnctapercluster");
        bool clusters = size || ptx_is_dot(parser, "explicitcluster") || ptx_is_dot(parser, "maxclusterrank");
        if (ptx_is_dot(parser, "blocksareclusters"))
            ptx_fail(parser, "directive .blocksareclusters: is not simulated: grids that count clusters");
        known = known || clusters;
        if (clusters) need_clusters(parser);
        if (!known) ptx_fail(parser, "directive .%.*s is not known", (int)parser->token.length, parser->token.bytes);
        if (skip_debug(parser)) continue;
        bool plain = ptx_is_dot(parser, "noreturn") || ptx_is_dot(parser, "explicitcluster");
        ptx_advance(parser);
        if (plain) continue;
        if (size) {
            parse_cluster(parser, parser->function->cluster);
            continue;
        }
        uint64_t product = 1;
        do {
            product *= ptx_expect_integer(parser);
        } while (ptx_accept(parser, ','));
        if ((exact || most) && parser->function->max_threads)
            ptx_fail(parser, ".maxntid and .reqntid are given, or one of them twice");
        if (exact || most) parser->function->max_threads = (uint32_t)product;
        if (exact) parser->function->exact_threads = true;
    }
}

/* Behind ".branchtargets" or ".calltargets": "a, b;". */
static ptx_operand parse_targets(ptx_parser *parser) {
    enum { MOST = 1024 };
    ptx_operand targets = {.kind = PTX_OPERAND_TARGETS}, elements[MOST];
    do {
        if (targets.element_count == MOST) ptx_fail(parser, "more than %d targets", MOST);
        elements[targets.element_count++] = (ptx_operand){.kind = PTX_OPERAND_WORD, .name = ptx_expect_word(parser)};
    } while (ptx_accept(parser, ','));
    ptx_expect(parser, ';');
    targets.elements = ptx_arena_take(parser->arena, targets.element_count * sizeof *elements);
    memcpy(targets.elements, elements, targets.element_count * sizeof *elements);
    return targets;
}

/* Behind ".callprototype": "(.param .b32 _) _ (.param .b64 _, .param .b32 _);". */
static ptx_operand parse_prototype(ptx_parser *parser) {
    ptx_name *outside = parser->names;
    ptx_function *prototype = ptx_arena_take(parser->arena, sizeof *prototype);
    if (ptx_accept(parser, '(')) ptx_declare_parameters(parser, &prototype->results);
    prototype->name = ptx_expect_word(parser);
    if (ptx_accept(parser, '(')) ptx_declare_parameters(parser, &prototype->parameters);
    ptx_accept_dot(parser, "noreturn");
    ptx_expect(parser, ';');
    parser->names = outside;
    return (ptx_operand){.kind = PTX_OPERAND_PROTOTYPE, .function = prototype};
}

/* "text:", which stands for the next statement, or for targets or a prototype. */
static void parse_label(ptx_parser *parser, const ptx_label *outside, char *text) {
    ptx_label *label = ptx_arena_take(parser->arena, sizeof *label);
    for (const ptx_label *other = parser->labels; other != outside; other = other->next)
        if (strcmp(other->text, text) == 0) ptx_fail(parser, "label %s is defined twice", text);
    label->text = text;
    label->next = parser->labels;
    if (ptx_accept_dot(parser, "branchtargets") || ptx_accept_dot(parser, "calltargets"))
        label->meant = parse_targets(parser);
    else if (ptx_accept_dot(parser, "callprototype"))
        label->meant = parse_prototype(parser);
    else
        label->meant = (ptx_operand){.kind = PTX_OPERAND_LABEL, .number = parser->function->statement_count};
    parser->labels = label;
}

static bool accept_space(ptx_parser *parser, ptx_space *out_space) {
    static const struct {
        const char *word;
        ptx_space space;
    } spaces[] = {{"reg", PTX_SPACE_REG},       {"param", PTX_SPACE_PARAM}, {"const", PTX_SPACE_CONST},
                  {"global", PTX_SPACE_GLOBAL}, {"local", PTX_SPACE_LOCAL}, {"shared", PTX_SPACE_SHARED}};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (!ptx_accept_dot(parser, spaces[i].word)) continue;
        *out_space = spaces[i].space;
        return true;
    }
    return false;
}

/* The body after its '{', nested blocks included. Names and labels are a block's own. */
static void parse_block(ptx_parser *parser) {
    ptx_name *outside = parser->names;
    ptx_label *labels_outside = parser->labels;
    uint32_t first = parser->function->statement_count;
    while (!ptx_accept(parser, '}')) {
        ptx_space space;
        if (parser->token.kind == PTX_TOKEN_END) ptx_fail(parser, "the text ends inside a function");
        if (ptx_accept(parser, '{')) {
            parse_block(parser);
        } else if (skip_debug(parser) || ptx_accept(parser, ';')) {
            continue;
        } else if (accept_space(parser, &space)) {
            if (space == PTX_SPACE_REG)
                ptx_declare_registers(parser);
            else /* a global one is the module's, with a name that only the block knows */
                ptx_declare_variables(parser, space, false,
                                      space == PTX_SPACE_GLOBAL || space == PTX_SPACE_CONST
                                          ? &parser->module->variables
                                          : &parser->function->variables);
        } else {
            ptx_lexer mark = parser->lexer;
            ptx_token token = parser->token;
            if (token.kind == PTX_TOKEN_WORD) {
                char *text = ptx_expect_word(parser);
                if (ptx_accept(parser, ':')) {
                    parse_label(parser, labels_outside, text);
                    continue;
                }
                parser->lexer = mark;
                parser->token = token;
            }
            ptx_parse_statement(parser);
        }
    }
    ptx_resolve_labels(parser, first, labels_outside);
    parser->names = outside;
    parser->labels = labels_outside;
}

static void parse_body(ptx_parser *parser) {
    ptx_function *function = parser->function;
    function->is_defined = true;
    parser->labels = NULL;
    ptx_register_parameters_enter(parser);
    parse_block(parser);
    ptx_register_parameters_leave(parser, NULL);
    ptx_resolve_functions(parser);
    function->registers = ptx_arena_take(parser->arena, function->register_count * sizeof *parser->registers);
    function->statements = ptx_arena_take(parser->arena, function->statement_count * sizeof *parser->statements);
    if (function->register_count)
        memcpy(function->registers, parser->registers, function->register_count * sizeof *parser->registers);
    if (function->statement_count)
        memcpy(function->statements, parser->statements, function->statement_count * sizeof *parser->statements);
}

static void parse_function(ptx_parser *parser, bool is_entry, bool is_visible) {
    ptx_name *outside = parser->names;
    ptx_variable *results = NULL;
    if (ptx_accept_dot(parser, "attribute")) ptx_skip_to(parser, ')');
    if (!is_entry && ptx_accept(parser, '(')) ptx_declare_parameters(parser, &results);
    ptx_function *function = function_get(parser, ptx_expect_word(parser));
    if (function->is_defined) ptx_fail(parser, "%s is defined twice", function->name);
    function->is_entry = is_entry;
    function->is_visible |= is_visible;
    function->results = results;
    function->line = parser->token.line;
    function->parameters = NULL;
    parser->function = function;
    if (ptx_accept(parser, '(')) function->parameter_bytes = ptx_declare_parameters(parser, &function->parameters);
    for (const ptx_variable *v = function->parameters; v && is_entry; v = v->next)
        if (v->register_lanes) ptx_fail(parser, "parameter %s of an .entry must be .param", v->name);
    parse_performance(parser);
    if (!ptx_accept(parser, ';')) {
        ptx_expect(parser, '{');
        parse_body(parser);
    }
    parser->function = NULL;
    parser->names = outside;
}

static void parse_version(ptx_parser *parser) {
    unsigned major, minor;
    char text[16] = "";
    if (parser->token.length < sizeof text) memcpy(text, parser->token.bytes, parser->token.length);
    if (sscanf(text, "%2u.%1u", &major, &minor) != 2) ptx_fail(parser, ".version is malformed");
    parser->module->version = major * 10 + minor;
    ptx_advance(parser);
}

static void parse_target(ptx_parser *parser) {
    char *target = ptx_expect_word(parser);
    snprintf(parser->module->target, sizeof parser->module->target, "%s", target);
    while (ptx_accept(parser, ',')) {
        char *option = ptx_expect_word(parser);
        if (strcmp(option, "debug") != 0 && strcmp(option, "texmode_independent") != 0 &&
            strcmp(option, "texmode_unified") != 0)
            ptx_fail(parser, "target option %s is not known", option);
    }
}

static void parse_directive(ptx_parser *parser) {
    bool is_extern = false, is_visible = false;
    ptx_space space;
    if (skip_debug(parser)) return;
    if (ptx_accept_dot(parser, "version")) {
        parse_version(parser);
        return;
    }
    if (ptx_accept_dot(parser, "target")) {
        parse_target(parser);
        return;
    }
    if (ptx_accept_dot(parser, "address_size")) {
        parser->module->address_size = (uint32_t)ptx_expect_integer(parser);
        if (parser->module->address_size != 64) ptx_fail(parser, "only 64-bit addresses are simulated");
        return;
    }
    for (;;) {
        if (ptx_accept_dot(parser, "extern"))
            is_extern = true;
        else if (ptx_accept_dot(parser, "visible") || ptx_accept_dot(parser, "weak") ||
                 ptx_accept_dot(parser, "common"))
            is_visible = true;
        else
            break;
    }
    if (ptx_accept_dot(parser, "entry"))
        parse_function(parser, true, is_visible);
    else if (ptx_accept_dot(parser, "func"))
        parse_function(parser, false, is_visible);
    else if (accept_space(parser, &space) && space != PTX_SPACE_REG && space != PTX_SPACE_LOCAL)
        ptx_declare_variables(parser, space, is_extern, &parser->module->variables);
    else
        ptx_fail(parser, "directive .%.*s is not known here", (int)parser->token.length, parser->token.bytes);
}

static ptx_parser *parser_new(const char *text, size_t size, char *why, size_t why_size) {
    ptx_parser *parser = calloc(1, sizeof *parser);
    if (!parser) return NULL;
    parser->arena = ptx_arena_new();
    parser->module = ptx_arena_take(parser->arena, sizeof *parser->module);
    parser->module->arena = parser->arena;
    parser->lexer = (ptx_lexer){text, text + size, 1};
    parser->why = why;
    parser->why_size = why_size;
    return parser;
}

bool ptx_module_head(const char *text, size_t size, uint32_t *out_version, char target[16], char *why,
                     size_t why_size) {
    ptx_parser *parser = parser_new(text, size, why, why_size);
    if (!parser) return false;
    volatile bool read = false;
    if (setjmp(parser->failed) == 0) {
        ptx_advance(parser);
        while (skip_debug(parser) || ptx_is_dot(parser, "version") || ptx_is_dot(parser, "target"))
            parse_directive(parser);
        if (!parser->module->version || !parser->module->target[0])
            ptx_fail(parser, "the text has no .version or no .target");
        *out_version = parser->module->version;
        memcpy(target, parser->module->target, sizeof parser->module->target);
        read = true;
    }
    ptx_arena_free(parser->arena);
    free(parser);
    return read;
}

ptx_module *ptx_module_parse(const char *text, size_t size, char *why, size_t why_size) {
    ptx_parser *parser = parser_new(text, size, why, why_size);
    if (!parser) return NULL;
    ptx_module *module = NULL;
    if (setjmp(parser->failed) == 0) {
        ptx_advance(parser);
        while (parser->token.kind != PTX_TOKEN_END)
            parse_directive(parser);
        if (!parser->module->version || !parser->module->target[0])
            ptx_fail(parser, "the text has no .version or no .target");
        module = parser->module;
    } else {
        ptx_arena_free(parser->arena);
    }
    free(parser->registers);
    free(parser->statements);
    free(parser);
    return module;
}

void ptx_module_free(ptx_module *module) {
    if (module) ptx_arena_free(module->arena);
}

ptx_function *ptx_function_find(const ptx_module *module, const char *name) {
    for (ptx_function *function = module->functions; function; function = function->next)
        if (strcmp(function->name, name) == 0) return function;
    return NULL;
}
