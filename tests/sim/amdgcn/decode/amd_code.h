/* A code object that can run: its image as ROCr would load it, its kernels, and its instructions decoded once. */
#ifndef KILN_TESTS_SIM_AMD_CODE_H
#define KILN_TESTS_SIM_AMD_CODE_H

#include "tests/sim/amdgcn/decode/amd_metadata.h"
#include "tests/sim/core/sim_space.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct amd_wave amd_wave;
typedef struct amd_op amd_op;
typedef struct amd_watch amd_watch;

/* Runs one instruction for the lanes of EXEC. */
typedef void (*amd_run)(amd_wave *wave, const amd_op *op);

typedef struct amd_target {
    const char *processor;                /* "gfx942" */
    uint32_t version;                     /* 0x942 */
    uint32_t major;                       /* 9, 10, 11, 12 */
    bool packed_ids;                      /* all three work-item ids in v0, 10 bits each */
    bool ready_scratch;                   /* FLAT_SCRATCH is set up when a wave starts; else the kernel does it */
    bool accumulates;                     /* a wave has accumulators, a part of its vector registers */
    uint32_t registers, register_granule; /* of 64 lanes: what a SIMD has, and what of it is given out at once */
} amd_target;

/* The target of a processor's name, or NULL if it is not simulated. */
const amd_target *amd_target_find(const char *processor);

/* ---- Operands ---- */

/* Scalar registers have the numbers of the ISA documents, with one number for each name on all targets. */
enum {
    AMD_SGPR_COUNT = 106,
    AMD_VCC = 106,  /* and 107 */
    AMD_TTMP = 108, /* to 123 */
    AMD_M0 = 124,
    AMD_EXEC = 126,         /* and 127 */
    AMD_FLAT_SCRATCH = 128, /* and 129; a number of ours: each generation has its own */
    AMD_SCALARS = 130,
    AMD_ACCUMULATORS = 256, /* a0 is vector register 256 */
    AMD_VECTORS = 512,
    AMD_LANES = 64
};

typedef enum amd_operand_kind {
    AMD_OPERAND_NONE,
    AMD_OPERAND_SCALAR,   /* index, count: of wave->s */
    AMD_OPERAND_VECTOR,   /* index, count: of wave->v */
    AMD_OPERAND_CONSTANT, /* value; of src_shared_base and the like, 64 bits; of hwreg(..), amd_hwreg */
    AMD_OPERAND_NULL,     /* "null" and "off": reads as 0, writes go nowhere */
    AMD_OPERAND_SCC,
    AMD_OPERAND_VCCZ,
    AMD_OPERAND_EXECZ
} amd_operand_kind;

/* The part of a register that SDWA takes. */
typedef enum amd_select {
    AMD_SELECT_DWORD,
    AMD_SELECT_BYTE_0,
    AMD_SELECT_BYTE_1,
    AMD_SELECT_BYTE_2,
    AMD_SELECT_BYTE_3,
    AMD_SELECT_WORD_0,
    AMD_SELECT_WORD_1
} amd_select;

/* A constant is what the reader's type makes of it. value: to 64 bits; integers are sign-extended, hexadecimal literals
 * zero-extended or, of an instruction on i64, sign-extended, and 1.0 and the like have the bits of an f64. To an f64 a
 * literal is the upper half. */
typedef struct amd_operand {
    uint8_t kind;
    uint8_t count;  /* registers */
    uint16_t index; /* of the first */
    bool negate, absolute;
    bool extend;        /* SDWA's sext */
    bool upper;         /* a register's upper half by its name, v1.h */
    bool real, literal; /* a constant written as a floating-point number, as a hexadecimal one */
    uint8_t select;     /* SDWA: amd_select */
    uint16_t value_16;  /* to 16 bits, and to 32: of 1.0 the bits of an f16, and of an f32 */
    uint32_t value_32;
    uint64_t value;
} amd_operand;

/* ---- Instructions ---- */

typedef enum amd_class {
    AMD_CLASS_SCALAR,
    AMD_CLASS_VECTOR,
    AMD_CLASS_MEMORY,
    AMD_CLASS_MATRIX,
    AMD_CLASS_DOT,
    AMD_CLASS_LANE /* reads other lanes */
} amd_class;

/* What of a compute unit executes an instruction. */
typedef enum amd_unit {
    AMD_UNIT_VECTOR, /* of a SIMD, matrices too */
    AMD_UNIT_SCALAR, /* its loads, too */
    AMD_UNIT_MEMORY,
    AMD_UNIT_SHARED,
    AMD_UNIT_BRANCH,
    AMD_UNIT_NONE, /* waits and the like, which are issued to none */
    AMD_UNITS
} amd_unit;

typedef enum amd_encoding {
    AMD_ENCODING_PLAIN, /* no suffix */
    AMD_ENCODING_E32,
    AMD_ENCODING_E64,
    AMD_ENCODING_SDWA,
    AMD_ENCODING_DPP /* DPP16 and DPP8, e32 and e64 */
} amd_encoding;

/* DPP controls with an argument: dpp holds the kind, dpp_argument the number or the packed lanes. */
typedef enum amd_dpp {
    AMD_DPP_NONE,
    AMD_DPP_QUAD_PERM, /* argument: 2 bits for each lane */
    AMD_DPP_ROW_SHL,
    AMD_DPP_ROW_SHR,
    AMD_DPP_ROW_ROR,
    AMD_DPP_WAVE_SHL,
    AMD_DPP_WAVE_ROL,
    AMD_DPP_WAVE_SHR,
    AMD_DPP_WAVE_ROR,
    AMD_DPP_ROW_MIRROR,
    AMD_DPP_ROW_HALF_MIRROR,
    AMD_DPP_ROW_BCAST, /* argument: 15, 31 */
    AMD_DPP_ROW_NEWBCAST,
    AMD_DPP_ROW_SHARE,
    AMD_DPP_ROW_XMASK,
    AMD_DPP_8 /* argument: 3 bits for each lane */
} amd_dpp;

enum { AMD_OPERANDS = 8 };

struct amd_op {
    amd_run run;
    uint8_t class;    /* amd_class */
    uint8_t encoding; /* amd_encoding */
    uint8_t size;     /* in bytes */
    uint8_t unit;     /* amd_unit */
    uint8_t turns;    /* how many turns of its SIMD that is busy with a wave */
    uint8_t operand_count;
    uint16_t mode;                     /* the row's own number: which comparison, which atomic, how many bytes */
    amd_operand operand[AMD_OPERANDS]; /* as written: results first. A literal of an fmaak is one of them */
    uint32_t address;                  /* in the image */
    /* Modifiers; a bit of each mask for each source, and for op_sel of 16-bit instructions the last for the result. */
    bool clamp;
    uint8_t omod;                              /* 0, 2 and 4: multiply; 1: divide by 2 */
    uint8_t op_sel, op_sel_hi, neg_lo, neg_hi; /* op_sel_hi: all ones unless written */
    bool has_op_sel_hi;
    uint8_t byte_select;            /* gfx12: of a conversion of 8 bits */
    uint8_t dst_select, dst_unused; /* SDWA: amd_select; 0 pad, 1 sext, 2 preserve */
    uint8_t dpp;                    /* amd_dpp */
    uint32_t dpp_argument;
    uint8_t row_mask, bank_mask; /* 0xf unless written */
    bool bound_ctrl, fetch_inactive;
    int32_t offset, offset1;  /* of a memory access */
    bool glc;                 /* glc and sc0 of an atomic: it returns the old value */
    bool offen, idxen;        /* of a buffer access: its address register holds an offset, an index, or both */
    uint8_t cbsz, abid, blgp; /* of a matrix instruction; its neg is neg_lo */
    uint32_t immediate;       /* scalar instructions: the lower 16 bits of the encoding */
    uint32_t target;          /* of a branch: an op; AMD_NO_OP: outside of the code */
    const amd_op *dual;       /* VOPD: the second half; runs together with this one */
    const char *text;         /* as LLVM writes it */
    amd_watch *watch;         /* for mutants, or NULL */
};

#define AMD_NO_OP 0xffffffffu

/* ---- Code objects ---- */

/* What the kernel descriptor says. */
typedef struct amd_kernel {
    char name[1024];
    uint32_t group_bytes, private_bytes, kernarg_bytes;
    uint32_t entry;                /* op */
    uint32_t code_begin, code_end; /* in the image */
    uint32_t rsrc1, rsrc2, rsrc3;
    uint16_t properties;
    uint32_t preload_first, preload_count; /* dwords of the arguments that stand in registers when a wave starts */
    bool wave32, dynamic_stack;
    amd_metadata metadata;
    uint32_t descriptor; /* in the image */
} amd_kernel;

enum { AMD_SEGMENTS = 16 };

typedef struct amd_program {
    const amd_target *target;
    uint8_t *image; /* at least page-aligned; p_vaddr 0 is here */
    size_t image_size;
    sim_region segments[AMD_SEGMENTS]; /* what of the image kernels may access: all but the writable are constant */
    uint32_t segment_count;
    sim_region *variables; /* what the dynamic symbols name, by address, none over another: how far an access goes */
    uint32_t variable_count;
    uint32_t text_begin, text_end; /* in the image */
    amd_op *ops;
    uint32_t op_count;
    uint32_t *op_at; /* (address - text_begin) / 4 to op, or AMD_NO_OP inside of an instruction */
    amd_op *duals;
    char *texts;
    struct amd_program
        *twin;    /* its code decoded for waves of the other size, if kernels of both are in it; else NULL */
    bool wave32;  /* what its code was decoded for */
    bool hazards; /* it has instructions around which wait states are needed */
    amd_kernel *kernels;
    uint32_t kernel_count;
    amd_watch *watches;
} amd_program;

/* Loads and decodes a code object for a processor; the bytes are copied. NULL with a reason that names the address and
 * the instruction if there is anything in it that is not simulated. */
amd_program *amd_program_load(const void *bytes, size_t size, const char *processor, char *why, size_t why_size);
/* The same of bare machine code, of which kernel says what a descriptor would; its entry is the op where it begins. */
amd_program *amd_program_of_code(const void *code, size_t size, const char *processor, const amd_kernel *kernel,
                                 char *why, size_t why_size);
/* Makes the image as it was when these bytes, of which it is, were loaded. */
void amd_program_renew(amd_program *program, const void *bytes, size_t size);
void amd_program_free(amd_program *program);

/* The program as a kernel's waves run it: itself or its twin. */
const amd_program *amd_program_for(const amd_program *program, const amd_kernel *kernel);

/* The kernel of a name, without ".kd", or NULL. */
const amd_kernel *amd_program_find(const amd_program *program, const char *name);

/* ---- Units: amd_unit.c ---- */

/* Sets the unit and the turns of an instruction of that name, without what says how it is encoded. */
void amd_unit_find(const char *name, amd_op *op);

/* ---- Decoding: amd_decode.c ---- */

/* Fills a zeroed op from its text, which must live as long; second takes the other half of a VOPD instruction. False
 * with a reason if the instruction, or something in it, is not simulated. */
bool amd_decode(const char *text, amd_op *op, amd_op *second, char *why, size_t why_size);

#endif
