/* The parser's own state, shared by its three files: parse (modules and functions), declare (variables and registers)
 * and operand (statements). Errors leave by longjmp, since every function may meet one. */
#ifndef KILN_TESTS_SIM_PTX_PARSER_H
#define KILN_TESTS_SIM_PTX_PARSER_H

#include "tests/sim/ptx/parse/ptx_arena.h"
#include "tests/sim/ptx/parse/ptx_lexer.h"
#include "tests/sim/ptx/parse/ptx_syntax.h"
#include <setjmp.h>

/* A name in scope: a register or vector of them, a numbered family ("%r<8>"), or a variable. */
typedef struct ptx_name {
    const char *text;
    bool is_family;
    uint32_t first, count; /* registers, or vectors of them */
    uint32_t lanes;        /* of a vector; 1: none */
    ptx_variable *variable;
    struct ptx_name *next;
} ptx_name;

typedef struct ptx_label {
    const char *text;
    ptx_operand meant; /* a LABEL, TARGETS or a PROTOTYPE */
    struct ptx_label *next;
} ptx_label;

typedef struct ptx_parser {
    ptx_lexer lexer;
    ptx_token token; /* the next one */
    ptx_module *module;
    ptx_arena *arena;
    ptx_name *names; /* innermost first */
    ptx_function *function;
    ptx_label *labels;
    ptx_register *registers; /* of the function that is being parsed; growing */
    uint32_t register_room;
    ptx_statement *statements;
    uint32_t statement_room;
    char *why;
    size_t why_size;
    jmp_buf failed;
} ptx_parser;

/* Ends the parse with "line N: ...". */
_Noreturn void ptx_fail(ptx_parser *parser, const char *format, ...) __attribute__((format(printf, 2, 3)));

void ptx_advance(ptx_parser *parser);
bool ptx_is(const ptx_parser *parser, char punctuation);
bool ptx_is_dot(const ptx_parser *parser, const char *word);
bool ptx_accept(ptx_parser *parser, char punctuation);
bool ptx_accept_dot(ptx_parser *parser, const char *word);
void ptx_expect(ptx_parser *parser, char punctuation);
char *ptx_expect_word(ptx_parser *parser);
uint64_t ptx_expect_integer(ptx_parser *parser);
char *ptx_token_text(ptx_parser *parser);
void ptx_skip_to(ptx_parser *parser, char punctuation);

const ptx_name *ptx_name_find(const ptx_parser *parser, const char *text, uint32_t *out_register);

/* After a state space's dot: the variables up to the semicolon, added to the list and to the names in scope. */
void ptx_declare_variables(ptx_parser *parser, ptx_space space, bool is_extern, ptx_variable **list);
/* After the opening parenthesis: parameters up to the closing one. Returns their bytes. */
uint32_t ptx_declare_parameters(ptx_parser *parser, ptx_variable **list);
void ptx_declare_registers(ptx_parser *parser);
/* A new register of the function: its number. */
uint32_t ptx_register_add(ptx_parser *parser, const char *name, ptx_type type);
/* The registers of a parameter that is written as .reg, named in the function's body. */
void ptx_declare_parameter_registers(ptx_parser *parser, ptx_variable *parameter);

/* Parameters in registers: ptx_register_parameter.c. At the beginning of a body; before a return, with its guard and
 * line, or at the body's end (NULL); of the call that was parsed last. */
void ptx_register_parameters_enter(ptx_parser *parser);
void ptx_register_parameters_leave(ptx_parser *parser, const ptx_statement *like);
void ptx_register_parameters_call(ptx_parser *parser, const ptx_statement *call);

/* A new statement without anything, of this line. */
ptx_statement *ptx_statement_add(ptx_parser *parser);

/* A statement up to its semicolon. */
void ptx_parse_statement(ptx_parser *parser);
/* At a block's end: the labels of the block for words that are not known yet, in its statements from first on. */
void ptx_resolve_labels(ptx_parser *parser, uint32_t first, const ptx_label *labels_outside);
/* After a function's body: functions for the words that are left. */
void ptx_resolve_functions(ptx_parser *parser);

#endif
