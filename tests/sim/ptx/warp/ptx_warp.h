/* Warps that run decoded code, and the block that they belong to.
 *
 * The lanes of a warp that stand at the same instruction of the same call make a group. A branch on which lanes
 * disagree splits a group, and two groups that meet again join, unless the launch's seed says to keep them apart; an
 * instruction with .sync waits until the lanes that it names have arrived. So code that takes reconvergence for granted
 * fails. */
#ifndef KILN_TESTS_SIM_PTX_WARP_H
#define KILN_TESTS_SIM_PTX_WARP_H

#include "tests/sim/core/sim_random.h"
#include "tests/sim/core/sim_space.h"
#include "tests/sim/core/sim_sum.h"
#include "tests/sim/ptx/decode/ptx_code.h"

enum {
    PTX_WARP = 32,
    PTX_BARRIERS = 16,
    PTX_ASKED = 4,
    PTX_LOCAL_BYTES = 64 << 10,
    PTX_ACCESS_MAX = 32,
    PTX_WORKSPACE = 64
};

/* Generic addresses: the upper byte is the window of a space; global and constant memory have host addresses. */
#define PTX_WINDOW_SHARED (1ull << 56)
#define PTX_WINDOW_LOCAL  (2ull << 56)
#define PTX_WINDOW_PARAM  (3ull << 56)
#define PTX_WINDOW_MASK   (0xffull << 56)

typedef struct ptx_launch {
    const ptx_program *program;
    const ptx_code *code;
    uint32_t grid[3], block[3];
    uint32_t cluster[3]; /* 0: none was asked for, but by the kernel itself */
    uint64_t number;     /* of all launches */
    uint32_t multiprocessors;
    uint32_t registers; /* of a thread; 0: not known, and what setmaxnreg leaves is not looked at */
    uint32_t dynamic_shared_bytes, reserved_shared_bytes;        /* the latter are the system's */
    const uint8_t *parameters;                                   /* code->function->parameter_bytes */
    uint64_t globals;                                            /* where the program's variables were put */
    struct ptx_heap *heap;                                       /* of a program that uses one */
    void (*print)(void *context, const char *text, size_t size); /* called by any thread; NULL: to nobody */
    void *print_context;
    uint32_t *workspace;             /* PTX_WORKSPACE bytes of zeros of a cooperative launch; NULL of any other */
    const struct ptx_writes *unseen; /* what grids in front may not have written before it waits; NULL: nothing */
    struct ptx_writes *writes;       /* gets what it writes itself; NULL: nobody asks. Both: ptx_overlap.h */
    sim_region_find find;
    void *find_context;
    uint64_t seed;
    uint64_t budget;              /* warp instructions of one block */
    bool host_writes;             /* the host may write what blocks wait for */
    uint64_t room;                /* for blocks of it on the device at once; 0: for all */
    uint32_t threads;             /* of the host */
    sim_sum_mode sum_mode;        /* of matrix instructions */
    _Atomic uint32_t *same_store; /* gets the line of a store of what another warp stored to the same place of shared
                                   * memory, which then is no race; NULL: it is one */
} ptx_launch;

/* Runs a launch to its end. Adds to counters. Returns false with a report if it ended early; what was written until
 * then stays written. */
bool ptx_launch_run(const ptx_launch *launch, sim_counters *counters, sim_report *report);

typedef struct ptx_wgmma_use ptx_wgmma_use; /* ptx_wgmma_register.c */

typedef struct ptx_frame {
    const ptx_code *code;
    struct ptx_frame *parent;
    uint32_t return_op;
    uint32_t local_base;             /* of its local bytes in each lane's stack */
    uint32_t references;             /* groups in it, and frames above it */
    uint32_t stack[PTX_WARP];        /* of the lanes when they came */
    ptx_wgmma_use *uses;             /* of its registers by products; NULL: none yet */
    struct ptx_undefined *undefined; /* NULL: all that its registers hold is defined, as far as that is tracked */
    _Alignas(64) uint8_t bytes[];
} ptx_frame;

typedef enum ptx_state { PTX_READY, PTX_AT_WARP, PTX_AT_BARRIER, PTX_AT_CLUSTER, PTX_AT_REGISTERS } ptx_state;

typedef struct ptx_group {
    uint32_t mask;
    uint32_t op;
    ptx_frame *frame;
    ptx_state state;
} ptx_group;

typedef struct ptx_block ptx_block;
typedef struct ptx_cluster ptx_cluster; /* ptx_cluster.h */
typedef struct ptx_shadow ptx_shadow;   /* of a byte of shared memory: ptx_shared.h */

struct ptx_warp {
    uint8_t *frame; /* bytes of the running group's frame */
    ptx_block *block;
    ptx_group *group; /* the running one */
    uint32_t number;
    uint32_t place; /* among the warps of the cluster */
    uint32_t lanes; /* that exist */
    uint32_t exited;
    uint32_t registers, registers_wanted; /* of each lane, and how many more it waits for: ptx_registers.c */
    uint32_t targets[PTX_WARP];           /* set by an indexed branch: for each lane, the op to go to */
    uint32_t carry;                       /* condition code, a bit for each lane */
    uint32_t moment;                      /* .sync instructions and releases of flags so far, for the race check */
    uint32_t synced;                      /* the moment after its last .sync instruction */
    struct ptx_known *known;      /* what it knows by flags of each warp; NULL: the program has none: ptx_flag.c */
    uint64_t asked_in[PTX_ASKED]; /* states in which it asked for what others may write: ptx_wait.c */
    uint64_t unasked;             /* instructions of turns in which it did not */
    uint32_t arrived, passed;     /* lanes at the cluster's barrier: before and after it went */
    struct ptx_known *fenced;     /* what a relaxed arrival at it hands on; NULL: no cluster of several blocks */
    struct ptx_known *read;       /* by whom before it last went: even relaxed, it lets nothing overtake that */
    bool asks;                    /* what it asked for last was not there yet, so that its turn ends */
    uint32_t waited;              /* lanes that come after a griddepcontrol.wait */
    uint32_t unwritten;           /* lanes of a load that met shared memory that was never written */
    uint8_t *local;               /* PTX_LOCAL_BYTES for each lane, and what was written of them; NULL until used */
    uint32_t stack[PTX_WARP];     /* where in it the lane's alloca memory begins, which ends at its end */
    ptx_group groups[PTX_WARP];
    uint32_t group_count;
    struct ptx_copy *copies; /* asynchronous ones that have not landed: ptx_async.c */
    uint32_t copy_count, copy_room;
    uint32_t committed[PTX_WARP]; /* groups of copies of each lane so far */
    uint32_t bulk_committed[PTX_WARP];
    struct {
        uint32_t moment, epoch;
    } proxied[PTX_WARP]; /* each lane's last proxy fence; 0: none */
};

struct ptx_block {
    const ptx_launch *launch;
    uint32_t id[3];
    ptx_cluster *cluster; /* NULL: of this block alone */
    uint32_t rank;        /* in it */
    bool ended;
    uint32_t thread_count, warp_count;
    ptx_warp *warps;
    uint8_t *shared;
    uint32_t shared_bytes;
    uint32_t shared_room;    /* the system's own, where the program asks for it, included */
    uint32_t dynamic_offset; /* where extern shared arrays begin */
    ptx_shadow *shadow;
    uint32_t *shadow_starts;   /* of each chunk: the start of the block that it was cleared for */
    uint32_t starts;           /* of the block so far */
    uint32_t epoch;            /* barriers so far, + 1 */
    struct ptx_flag *flags;    /* words of shared memory that were released: ptx_flag.c */
    struct ptx_touches *reads; /* of each shadow by each warp, but those of its last reader; NULL: no flags */
    uint32_t flag_count, flag_room;
    struct ptx_landing *landings; /* what is on its way into shared memory: ptx_landing.h */
    uint32_t landing_count, landing_room;
    uint64_t *to_land; /* barriers whose phase ended with such, which have not landed yet */
    uint32_t to_land_count, to_land_room;
    struct ptx_bulk_source *sources; /* that bulk copies read: ptx_bulk.c */
    uint32_t source_count, source_room;
    uint32_t known_count;           /* warps that flags order: the cluster's */
    struct ptx_products *products;  /* of warpgroups, in flight: ptx_wgmma.c; NULL: none yet */
    uint32_t registers;             /* of one thread of a warp, that warps gave back */
    uint32_t copies_in_flight;      /* of all warps */
    uint32_t arrived[PTX_BARRIERS]; /* threads that passed a bar.arrive of a barrier not complete yet */
    uint64_t random;
    uint64_t instructions;
    bool triggered;    /* griddepcontrol.launch_dependents: the next grid need not wait for it */
    uint32_t polls;    /* instructions of this turn that may wait for other blocks */
    bool moved;        /* in this turn: it did more than to ask for what it knew before */
    uint64_t moves;    /* of the launch when it last moved, */
    uint64_t asked;    /* and its polls since then */
    ptx_block *behind; /* in a queue of blocks that wait for their turn */
    sim_region region; /* the last one found */
    sim_counters counters;
    sim_report *report; /* of this block; its kind is SIM_FAULT_NONE until something is wrong */
};

/* Ends the block with a report; the lane and address are added to the text. The first fault counts. */
void ptx_fault(ptx_warp *warp, const ptx_op *op, sim_fault_kind kind, uint32_t lane, uint64_t address,
               const char *format, ...) __attribute__((format(printf, 6, 7), cold));

/* The host bytes behind an address that a lane reads or writes, with every check. size is a power of two, and what the
 * address must be aligned to. NULL after a fault. */
uint8_t *ptx_memory_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, ptx_space space, uint64_t address,
                          uint32_t size, bool read, bool write);
/* The host bytes behind an address, for atomics: checked as a read and a write. NULL after a fault. */
void *ptx_memory_at(ptx_warp *warp, const ptx_op *op, uint32_t lane, ptx_space space, uint64_t address, uint32_t size);

/* Global memory: ptx_global.c. What holds an address of it; false if nothing does. */
bool ptx_region_find(const ptx_launch *launch, uint64_t address, sim_region *out_region);
/* Counts bytes of global memory that lie side by side, as a part of one request. */
void ptx_memory_count_span(ptx_warp *warp, uint64_t address, uint64_t size, bool write);
/* Bytes that a lane reads or writes, of any size and alignment. NULL after a fault. */
uint8_t *ptx_global_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint64_t size, bool read,
                          bool write);
/* Makes size bytes, aligned to that, count as never written. false after a fault. */
bool ptx_global_discard(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size);

/* Local memory: ptx_local.c. The bytes that a lane of the running group reads or writes. NULL after a fault. */
uint8_t *ptx_local_bytes(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t address, uint32_t size, bool write);
/* Which of these bytes were never written: 0xff of those, else 0. false: all were. */
bool ptx_local_undefined(const ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size, uint8_t *out_bits);
/* Those of which any bit is set count as never written again. */
void ptx_local_undefine(ptx_warp *warp, uint32_t lane, uint64_t address, uint32_t size, const uint8_t *bits);
/* Lanes come to a frame with size bytes from base on, none of which was written. false after a fault. */
bool ptx_local_enter(ptx_warp *warp, const ptx_op *op, uint32_t mask, uint32_t base, uint32_t size);
/* Moves a lane's stack down by size bytes, to a multiple of align. false after a fault. */
bool ptx_local_take(ptx_warp *warp, const ptx_op *op, uint32_t lane, uint64_t size, uint32_t align);
/* Copies bytes within the memory of each lane, those that were never written as such. */
void ptx_local_copy(ptx_warp *warp, uint32_t mask, uint32_t to, uint32_t from, uint32_t size);
void ptx_local_end(ptx_warp *warp);

/* Registers of warps: ptx_registers.c. A block begins with those of its launch. */
void ptx_registers_start(ptx_block *block);
void ptx_registers_run(ptx_warp *warp, const ptx_op *op, uint32_t mask);
/* Lets warps go for which there are enough now. false: none. */
bool ptx_registers_release(ptx_block *block);
/* Nothing goes on any more: a fault of a warp that waits for registers. false: none does. */
bool ptx_registers_report(ptx_block *block);

/* The lane of which a shuffle reads for a lane: its own if the one asked for is not inside. out_inside may be NULL. */
uint32_t ptx_shuffle_from(const ptx_warp *warp, const ptx_op *op, uint32_t lane, bool *out_inside);

/* The address of each lane: a register of 32 or 64 bits, and an offset. */
void ptx_addresses(const ptx_warp *warp, uint32_t place, uint32_t bits, int64_t offset, uint64_t *addresses);
/* Counts a request of the lanes of mask, with size bytes for each. */
void ptx_count_request(ptx_warp *warp, ptx_space space, const uint64_t *addresses, uint32_t mask, uint32_t size,
                       bool write);

/* The space and offset of a generic address, and back: ptx_generic.c. */
ptx_space ptx_generic_space(uint64_t address);
uint64_t ptx_to_generic(ptx_space space, uint64_t address);

/* The bytes of shared memory that a block takes; the system's own are behind them. */
uint32_t ptx_shared_total(const ptx_block *block);
/* Fills a place of a frame with a special register: ptx_special_register.c. */
void ptx_special_fill(const ptx_warp *warp, const ptx_special_use *use, uint8_t *place);

/* Frames and groups: ptx_warp.c. */
ptx_frame *ptx_frame_new(const ptx_warp *warp, const ptx_code *code, ptx_frame *parent, uint32_t return_op);
void ptx_frame_release(ptx_frame *frame);
/* Frees what this thread keeps of released frames. */
void ptx_frames_free(void);
/* Puts all lanes of a warp at the start of the launch's kernel. */
void ptx_warp_start(ptx_warp *warp);
/* Runs one ready group for at most quantum instructions; false if no group is ready. */
bool ptx_warp_run(ptx_warp *warp, uint32_t quantum);
void ptx_warp_end(ptx_warp *warp);

/* A warp is about to load what other blocks may write. */
void ptx_wait_ask(ptx_warp *warp, const ptx_op *op);
/* Whether a block did more than to ask since this was last called. */
bool ptx_wait_moved(ptx_block *block);

/* Asynchronous copies: ptx_async.c. Whether one that has not landed yet reads any of these bytes. */
bool ptx_async_reads(const ptx_block *block, uint64_t address, uint64_t size);

/* All warps of a block come after what each of them did. */
void ptx_flag_meet(ptx_block *block);

/* Lets the barriers go that are complete: ptx_barrier.c. true if one was. */
bool ptx_barriers_release(ptx_block *block);

#endif
