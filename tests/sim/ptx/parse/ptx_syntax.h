/* A PTX module as written: what the parser makes of the text, with registers numbered and names resolved, and no
 * meaning given to instructions yet. (NVIDIA, "Parallel Thread Execution ISA".)
 *
 * Everything belongs to the module and is freed with it. */
#ifndef KILN_TESTS_SIM_PTX_SYNTAX_H
#define KILN_TESTS_SIM_PTX_SYNTAX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ptx_type {
    PTX_NO_TYPE,
#define PTX_TYPE(name, bits, class) PTX_##name,
#include "tests/sim/ptx/parse/ptx_types.def"
#undef PTX_TYPE
    PTX_TYPE_COUNT
} ptx_type;

typedef enum ptx_type_class {
    PTX_CLASS_NONE,
    PTX_CLASS_BITS,
    PTX_CLASS_UNSIGNED,
    PTX_CLASS_SIGNED,
    PTX_CLASS_FLOAT,
    PTX_CLASS_PACKED,
    PTX_CLASS_MATRIX,
    PTX_CLASS_PRED
} ptx_type_class;

/* The type of a name of the given length ("f32"), or PTX_NO_TYPE. */
ptx_type ptx_type_find(const char *name, size_t length);
const char *ptx_type_name(ptx_type type);
uint32_t ptx_type_bits(ptx_type type);
ptx_type_class ptx_type_class_of(ptx_type type);

typedef enum ptx_space {
    PTX_SPACE_GENERIC,
    PTX_SPACE_REG,
    PTX_SPACE_PARAM,
    PTX_SPACE_CONST,
    PTX_SPACE_GLOBAL,
    PTX_SPACE_LOCAL,
    PTX_SPACE_SHARED,
    PTX_SPACE_CLUSTER /* shared memory of any block of the cluster */
} ptx_space;

/* Where an initialiser holds the address of another variable: 8 bytes at offset are symbol + addend. */
typedef struct ptx_relocation {
    uint64_t offset;
    const char *symbol;
    int64_t addend;
    bool generic; /* generic(symbol) */
} ptx_relocation;

/* A variable or parameter outside the registers. */
typedef struct ptx_variable {
    const char *name;
    ptx_space space;
    ptx_type type;
    uint32_t align;
    uint64_t size;    /* bytes; 0 for the extern array of dynamic shared memory */
    bool is_extern;   /* declared only, or dynamic shared memory */
    uint8_t *initial; /* size bytes, or NULL: zero (global, const) or undefined (shared, local) */
    ptx_relocation *relocations;
    uint32_t relocation_count;
    uint64_t offset; /* within its space: parameters in their list, locals and shared in their function's frame */
    uint32_t register_lanes; /* of a parameter that is written as .reg: how many registers; 0: it is .param */
    uint32_t first_register; /* its first one, in the function's body */
    uint32_t line;
    struct ptx_variable *next;
} ptx_variable;

typedef struct ptx_register {
    const char *name; /* of a numbered family without its number */
    ptx_type type;
} ptx_register;

typedef enum ptx_operand_kind {
    PTX_OPERAND_NONE,     /* the sink "_" */
    PTX_OPERAND_REGISTER, /* number: the function's register */
    PTX_OPERAND_INTEGER,  /* value: as written, sign extended */
    PTX_OPERAND_FLOAT,    /* value: the bits of an f64; single: written as 0f, whose bits are in number */
    PTX_OPERAND_SPECIAL,  /* name: "%tid.x" */
    PTX_OPERAND_VARIABLE, /* variable + value: its address */
    PTX_OPERAND_ADDRESS,  /* [register + value], [variable + value] or [value] */
    PTX_OPERAND_TUPLE,    /* [a, b, ...] of textures and tensors: an address, and the first of elements */
    PTX_OPERAND_VECTOR,   /* {a, b, ...}: elements */
    PTX_OPERAND_WORD,     /* name: of nothing that is known yet */
    PTX_OPERAND_LABEL,    /* number: the instruction that it stands before */
    PTX_OPERAND_FUNCTION, /* function */
    PTX_OPERAND_LIST,     /* (a, b, ...) of a call: elements */
    PTX_OPERAND_TARGETS,  /* .branchtargets or .calltargets: elements */
    PTX_OPERAND_PROTOTYPE /* .callprototype: function, of which only the parameters and results are meant */
} ptx_operand_kind;

typedef struct ptx_operand {
    ptx_operand_kind kind;
    bool negated;      /* !p of a predicate, -r of a register */
    bool single;       /* a float written with 32 bits */
    bool has_register; /* an address with a register base */
    bool paired;       /* "p|q": the second stands in elements[0] */
    uint32_t number;
    int64_t value;
    const char *name;
    const char *selector; /* "h10" behind a register, of video instructions; or NULL */
    const ptx_variable *variable;
    const struct ptx_function *function;
    struct ptx_operand *elements;
    uint32_t element_count;
} ptx_operand;

enum { PTX_SUFFIX_MAX = 16, PTX_OPERAND_MAX = 10 };

typedef struct ptx_statement {
    const char *opcode;                   /* "ld" */
    const char *suffixes[PTX_SUFFIX_MAX]; /* "global", "v4", "f32"; "shared::cta" is one */
    uint32_t suffix_count;
    ptx_operand operands[PTX_OPERAND_MAX];
    uint32_t operand_count;
    int32_t guard; /* register of @p, or -1 */
    bool guard_negated;
    uint32_t line;
} ptx_statement;

typedef struct ptx_function {
    const char *name;
    bool is_entry;
    bool is_defined;
    bool is_visible;
    ptx_variable *parameters; /* in order */
    uint32_t parameter_bytes;
    ptx_variable *results;   /* of a function */
    ptx_variable *variables; /* .local and .shared of the body, and .param of calls */
    ptx_register *registers;
    uint32_t register_count;
    ptx_statement *statements;
    uint32_t statement_count;
    uint32_t max_threads; /* product of .maxntid or .reqntid; 0: not stated */
    bool exact_threads;   /* .reqntid */
    uint32_t cluster[3];  /* .reqnctapercluster; 0: not stated */
    uint32_t line;
    struct ptx_function *next;
} ptx_function;

typedef struct ptx_module {
    uint32_t version; /* 78 is 7.8 */
    char target[16];  /* "sm_90a" */
    uint32_t address_size;
    ptx_variable *variables; /* module scope */
    ptx_function *functions;
    struct ptx_arena *arena;
} ptx_module;

/* Parses a text of size bytes. On failure returns NULL with "line N: ..." in why. */
ptx_module *ptx_module_parse(const char *text, size_t size, char *why, size_t why_size);
void ptx_module_free(ptx_module *module);
/* Reads .version and .target alone, which a text of any version begins with. false with the reason. */
bool ptx_module_head(const char *text, size_t size, uint32_t *out_version, char target[16], char *why, size_t why_size);

/* Lays the parameters of all entries out as ptxas does for a device of a compute capability: aligned by the address in
 * constant memory that the driver copies them to. Until then they are as a C struct has them. */
void ptx_module_place_parameters(ptx_module *module, int32_t capability);

/* Where parameters begin in the constant bank. */
uint64_t ptx_parameters_address(int32_t capability);

ptx_function *ptx_function_find(const ptx_module *module, const char *name);

#endif
