/* Products of a warpgroup: wgmma.mma_async and what orders it, and setmaxnreg.
 *
 *   ptx_wgmma_decode.c     what is written (ptx_wgmma_forms.def)
 *   ptx_wgmma_tile.c       matrices in shared memory, as descriptors say
 *   ptx_wgmma_sum.c        the products of a warp
 *   ptx_wgmma_register.c   registers that a product has, or that a fence is needed for
 *   ptx_wgmma.c            running, and the account of what is in flight
 *
 * Each of the four warps multiplies its 16 rows when it comes to the instruction, and the result is in its registers at
 * once. But until a wait_group covers it no instruction may touch these registers or those of A, and none may write the
 * bytes of shared memory that it read. */
#ifndef KILN_TESTS_SIM_PTX_WGMMA_H
#define KILN_TESTS_SIM_PTX_WGMMA_H

#include "tests/sim/ptx/matrix/ptx_matrix.h"

enum {
    PTX_WGMMA_N = 256,
    PTX_WGMMA_ROWS = 16,  /* of a warp */
    PTX_WGMMA_BYTES = 32, /* of a row of A or a column of B */
    PTX_WGMMA_GRANULE = 16,
    PTX_WGMMA_A = 4,   /* registers of A */
    PTX_WGMMA_D = 128, /* registers of D, at most */
    PTX_WARPGROUP = 4  /* warps */
};

/* A register of a function: its number there, and its place in the frame. */
typedef struct ptx_wgmma_register {
    uint32_t number, place;
} ptx_wgmma_register;

/* What a decoded product holds. Its op has the descriptors of A (unless that is in registers) and B in sources 0 and 1,
 * and scale-d in source 2. */
struct ptx_wgmma {
    uint32_t n, k;
    ptx_type d_type, a_type, b_type;
    ptx_wgmma_register a[PTX_WGMMA_A], d[PTX_WGMMA_D];
    uint32_t a_count, d_count; /* a_count 0: A is in shared memory */
    bool negated[2];           /* A, B */
    bool transposed[2];        /* lies along its rows (A) or columns (B): "MN-major" */
};

typedef uint8_t ptx_wgmma_line[PTX_WGMMA_BYTES]; /* a row of A or a column of B, along k */

/* Reads count rows of A (columns of B) from first on into lines, and says to the block that a product reads them.
 * false after a fault. */
bool ptx_wgmma_load(ptx_warp *warp, const ptx_op *op, uint64_t descriptor, bool transposed, uint32_t first,
                    uint32_t count, ptx_wgmma_line *lines);

/* D = A B, plus D if scaled, in the registers of a warp. */
void ptx_wgmma_multiply(ptx_warp *warp, const ptx_op *op, const ptx_wgmma_line *a, const ptx_wgmma_line *b,
                        bool scaled);

/* ---- What is in flight ---- */

/* Of a warp. Groups are numbered from 0; a product belongs to the group that is committed next. */
typedef struct ptx_wgmma_account {
    uint32_t fences;    /* wgmma.fence so far */
    uint32_t committed; /* groups */
    uint32_t done;      /* groups that were waited for */
} ptx_wgmma_account;

ptx_wgmma_account *ptx_wgmma_account_of(ptx_warp *warp);

/* A product reads these bytes until its group is waited for. */
void ptx_wgmma_hold(ptx_warp *warp, uint64_t address);

/* A product is about to take its registers. false after a fault. */
bool ptx_wgmma_take(ptx_warp *warp, const ptx_op *op);

/* ---- What ptx_wgmma_decode.c decodes ---- */

void ptx_wgmma_run_product(ptx_warp *warp, const ptx_op *op, uint32_t mask);
void ptx_wgmma_run_fence(ptx_warp *warp, const ptx_op *op, uint32_t mask);
void ptx_wgmma_run_commit(ptx_warp *warp, const ptx_op *op, uint32_t mask);
void ptx_wgmma_run_wait(ptx_warp *warp, const ptx_op *op, uint32_t mask);
/* What all warps of a warpgroup come to, and has no other effect. */
void ptx_wgmma_run_together(ptx_warp *warp, const ptx_op *op, uint32_t mask);

/* ---- For the decoder ---- */

/* Notes of each instruction of a function which registers of products it touches; at the end of its decoding. */
void ptx_wgmma_note(ptx_decoder *decoder);
/* Reads "m64n256k16" into shape; false if the suffix is none. */
bool ptx_wgmma_shape(const char *suffix, uint32_t shape[3]);

#endif
