/* A decoded kernel: statements given their meaning, operands turned into places in a frame.
 *
 * A frame holds the registers of one function for the 32 lanes of a warp, one array of 32 after the other: 32 x 8 bytes
 * for a 64-bit register, 32 x 4, 32 x 2 and 32 x 1 for the narrower, and one 32-bit mask for a predicate. Constants and
 * special registers are registers too, filled when the frame is made, so that every source operand is an array. */
#ifndef KILN_TESTS_SIM_PTX_CODE_H
#define KILN_TESTS_SIM_PTX_CODE_H

#include "tests/sim/ptx/parse/ptx_syntax.h"

typedef struct ptx_warp ptx_warp;
typedef struct ptx_op ptx_op;
typedef struct ptx_matrix ptx_matrix; /* ptx_matrix.h */
typedef struct ptx_video ptx_video;   /* ptx_video.c */
typedef struct ptx_wgmma ptx_wgmma;   /* ptx_wgmma.h */
typedef struct ptx_wgmma_touched ptx_wgmma_touched;
typedef struct ptx_watch ptx_watch;

/* Runs one instruction for the lanes of mask. */
typedef void (*ptx_run)(ptx_warp *warp, const ptx_op *op, uint32_t mask);

enum { PTX_SOURCES = 5, PTX_VECTOR = 8, PTX_NOWHERE = 0xffffffffu };

/* What the scheduler must know of an instruction beside running it. */
typedef enum ptx_flow {
    PTX_FLOW_NEXT,    /* go on with the next one */
    PTX_FLOW_BRANCH,  /* to target */
    PTX_FLOW_INDEXED, /* run sets each lane's target */
    PTX_FLOW_CALL,
    PTX_FLOW_RETURN,
    PTX_FLOW_EXIT,
    PTX_FLOW_WARP,    /* the lanes of the member mask (source 0) run it together */
    PTX_FLOW_ALIGNED, /* all lanes of the warp run it together; orders no memory */
    PTX_FLOW_BARRIER, /* of the block: number in source 0, threads in source 1 or PTX_NOWHERE, predicate in source 2 */
    PTX_FLOW_CLUSTER  /* barrier of the cluster: ptx_cluster.c */
} ptx_flow;

struct ptx_op {
    ptx_run run;
    ptx_flow flow;
    uint32_t guard; /* place of the predicate, or PTX_NOWHERE */
    bool guard_negated;
    uint32_t line;
    uint32_t target;        /* of a branch: an op; of a call: a function's number, or PTX_NOWHERE */
    uint32_t d[PTX_VECTOR]; /* places of the results */
    uint32_t s[PTX_SOURCES];
    uint8_t bits[PTX_SOURCES + 1]; /* widths of the sources' registers; the last is the result's */
    bool negated[PTX_SOURCES];     /* of a predicate source */
    ptx_type type, from;
    uint32_t count;        /* elements of a vector access, targets of an indexed branch, parameters of a call */
    int64_t offset;        /* of an address, behind the register of source 0 */
    int64_t source_offset; /* of a copy's other address, behind the register of source 1 */
    ptx_space space;
    uint32_t mode;        /* the instruction's own: rounding, comparison, function of an atomic, ... */
    uint32_t flags;       /* PTX_F_ */
    uint8_t use, moved;   /* what undefined bits become: ptx_undefined.c */
    bool polls;           /* a loop of it may wait for another block */
    const uint32_t *list; /* targets or places, in the arena */
    const ptx_variable *variable;
    const ptx_matrix *matrix;
    const ptx_wgmma *product;
    const ptx_wgmma_touched *touched; /* registers of products that it accesses; NULL: none */
    const ptx_video *video;
    const struct ptx_bulk *bulk;   /* ptx_bulk.c */
    const ptx_function *signature; /* of a call through the register of source 0 */
    ptx_watch *watch;              /* for mutants, or NULL */
};

enum {
    PTX_F_FTZ = 1,
    PTX_F_SAT = 2,
    PTX_F_RELU = 4,
    PTX_F_SATFINITE = 8,
    PTX_F_APPROX = 16,
    PTX_F_NAN = 32,
    PTX_F_CARRY_OUT = 64,
    PTX_F_CARRY_IN = 128,
    PTX_F_ALIGNED = 256, /* of a barrier: all lanes come to it together */
    PTX_F_STRONG = 512,  /* an access that may meet others of its kind: an atomic, or one that is relaxed or ordered */
    PTX_F_ACQUIRE = 1024,
    PTX_F_RELEASE = 2048,
    PTX_F_TOGETHER = 4096 /* what it reads, all lanes read, and know it read when they have waited */
};

typedef struct ptx_constant {
    uint32_t place;
    uint32_t bits; /* of its register */
    uint64_t value;
} ptx_constant;

/* A special register that the code reads: number is of ptx_specials.def. */
typedef struct ptx_special_use {
    uint32_t place;
    uint32_t special;
    uint32_t bits; /* that are read of it */
} ptx_special_use;

/* A variable whose address is a constant of the frame, once it has one: global, const, shared, local, param. */
typedef struct ptx_address_use {
    uint32_t place;
    const ptx_variable *variable;
    int64_t offset;
    uint32_t bits;
} ptx_address_use;

typedef struct ptx_code {
    const ptx_function *function;
    uint32_t number; /* in the program */
    ptx_op *ops;     /* one a statement, and a return */
    uint32_t op_count;
    const uint32_t *places; /* of the function's registers */
    uint32_t frame_bytes;
    ptx_constant *constants;
    uint32_t constant_count;
    ptx_special_use *specials;
    uint32_t special_count;
    ptx_address_use *addresses;
    uint32_t address_count;
    uint32_t local_bytes;  /* per lane: .local variables, then .param variables of calls, then own parameters */
    uint32_t shared_bytes; /* static, of an entry: the module's variables, those of functions, and its own */
} ptx_code;

/* A module that can run. */
typedef struct ptx_program {
    ptx_module *module;
    ptx_code *codes;
    uint32_t code_count;
    uint32_t shared_bytes; /* the most that an entry has */
    uint32_t shared_align; /* of what a launch adds to it */
    uint32_t global_bytes; /* of the module's .global and .const variables, laid out from 0 */
    int32_t capability;    /* of the device that it was decoded for */
    bool uses_heap;        /* calls malloc or free */
    bool uses_clusters;    /* has barriers of clusters */
    bool uses_flags;       /* releases words that may be in shared memory */
    bool uses_registers;   /* hands registers on */
    bool uses_reserved;    /* asks where the system's own shared memory is */
} ptx_program;

/* What a kernel may declare of shared memory; more must be asked for at its launch. */
enum { PTX_STATIC_SHARED_MAX = 48 << 10 };

/* Parses and decodes a text for a device of the given compute capability. NULL with a reason that names the line and
 * the instruction if there is anything in it that is not simulated. */
ptx_program *ptx_program_load(const char *text, size_t size, int32_t capability, char *why, size_t why_size);
void ptx_program_free(ptx_program *program);

const ptx_code *ptx_program_find(const ptx_program *program, const char *kernel);

/* Addresses of functions: the code's number, in a window of its own. NULL: no function is there. */
#define PTX_WINDOW_CODE (4ull << 56)
uint64_t ptx_code_address(const ptx_code *code);
const ptx_code *ptx_code_at(const ptx_program *program, uint64_t address);

/* Fills global_bytes at bytes with the initial values of the program's variables. */
void ptx_program_initialise(const ptx_program *program, uint8_t *bytes);

#endif
