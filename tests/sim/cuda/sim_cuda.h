/* The simulated libcuda.so.1: its objects, and what a call begins with.
 *
 * One file a noun: sim_cuda_context.c (devices and contexts), sim_cuda_device.c (what devices are to each other),
 * sim_cuda_entry.c (functions by name and version), sim_cuda_image.c (what an image is and which device takes
 * it), sim_cuda_fatbin.c (several in one), sim_cuda_module.c, sim_cuda_occupancy.c, sim_cuda_launch.c,
 * sim_cuda_execute.c (what runs), sim_cuda_runtime.c (printf and malloc of kernels), sim_cuda_parents.c (the PTX of
 * cubins), sim_cuda_stream.c (streams, events), sim_cuda_capture.c, sim_cuda_graph.c, sim_cuda_work.c (what is
 * enqueued, and the order in which it is done), sim_cuda_memory.c, sim_cuda_pool.c, sim_cuda_copy.c (copies and fills),
 * sim_cuda_pointer.c (what an address is of), sim_cuda_error.c (names of errors). */
#ifndef KILN_TESTS_SIM_CUDA_H
#define KILN_TESTS_SIM_CUDA_H

#include "loader/cuda/cuda_abi.h"
#include "tests/sim/core/sim.h"
#include <sys/types.h>

enum {
#define KILN_CUDA_ERROR(name, number, status) SIM_CUDA_##name = number,
#include "loader/cuda/cuda_errors.def"
#undef KILN_CUDA_ERROR
    SIM_CUDA_SUCCESS = 0
};

struct CUgraph_st;
struct CUgraphExec_st;
struct CUctxCreateParams_st;
struct CUgraphExecUpdateResultInfo_st;
struct CUDA_MEMCPY2D_st;
struct CUtensorMap_st;
struct CUuuid_st;
struct CUmemPoolHandle_st;

/* Every function of the driver, declared from the lists: a definition that differs does not compile. */
#define KILN_CUDA(field, name, requirement, result, parameters) SIM_EXPORT result name parameters;
#include "loader/cuda/symbols.def"
#include "tests/sim/cuda/extra_symbols.def"
#undef KILN_CUDA

/* A row of processors.def, in bytes. */
typedef struct sim_processor {
    int32_t capability, count;
    uint32_t shared, reserved;
    uint32_t warps, blocks; /* that a multiprocessor has room for */
} sim_processor;

/* ---- Objects. Handles point to them; the kind is the name of the type. ---- */

enum { SIM_CUDA_PEERS = 8 };

typedef struct CUctx_st {
    int32_t device;
    int32_t references; /* of a primary context */
    bool primary;
    uint32_t flags;                         /* how the host waits: no difference here */
    struct CUctx_st *peers[SIM_CUDA_PEERS]; /* whose memory its kernels reach, too; NULL: none */
    int32_t fault;                          /* the error that a kernel left behind: every later call returns it */
    struct sim_runtime *runtime;            /* what its kernels use; NULL: nothing yet */
} sim_context;

typedef struct sim_parameter {
    uint32_t offset, size;
} sim_parameter;

/* One kernel, as an image describes it. */
typedef struct sim_entry {
    char name[SIM_NAME_SIZE];
    sim_parameter *parameters; /* owned, as the entries are by their image */
    uint32_t parameter_count;
    uint32_t arguments_size;
    bool arguments_known;
    uint32_t max_threads;
    uint32_t shared_bytes;
    uint32_t registers; /* 0: a text, which has none yet */
} sim_entry;

typedef struct sim_image {
    uint32_t virtual_target, target; /* of the PTX and of the code that runs: 90 */
    uint32_t entry_count;
    sim_entry *entries;
} sim_image;

typedef struct CUmod_st {
    sim_context *context;
    sim_image image;
    struct CUfunc_st **functions; /* one an entry; NULL: not asked for yet */
    struct ptx_program *program;  /* NULL where launches are only recorded */
    void *globals;                /* its variables; NULL if it has none */
} sim_module;

typedef struct CUfunc_st {
    sim_module *module;
    const sim_entry *entry;
    uint32_t max_dynamic_shared;
    int32_t carveout;    /* a wish that has no effect here */
    bool large_clusters; /* of more than 8 blocks */
    bool loaded;         /* resident: a lazy driver loads at the first use otherwise */
} sim_function;

/* A point that a stream's work reaches: what an event stands for from one cuEventRecord to the next. */
typedef struct sim_mark {
    uint32_t references; /* of the event and of the work that records it or waits for it */
    bool reached;
    uint64_t tick; /* when */
} sim_mark;

/* What work does with an allocation as a whole. */
typedef enum sim_turn { SIM_TURN_NONE, SIM_TURN_BEGIN, SIM_TURN_END } sim_turn;

/* One piece of work: a launch, a copy, a fill, an allocation's beginning or end, a function of the host's, or a mark
 * that is reached or waited for. */
typedef struct sim_node {
    struct sim_node *next;
    uint64_t ticket;              /* in the order of the calls; 0 in a graph */
    const sim_function *function; /* of a launch */
    sim_launch launch;
    void *arguments;  /* owned */
    void *to;         /* of a copy or a fill, or the allocation */
    const void *from; /* of a copy */
    void *staged;     /* owned: from is this, since the source is pageable */
    bool to_device, from_device;
    size_t size;           /* in bytes */
    uint32_t value, width; /* of a fill: its element, and the bytes of that */
    sim_turn turn;
    void (*host)(void *data); /* a function of the host's */
    void *host_data;
    sim_mark *mark;
    bool waits;    /* for the mark */
    uint32_t lane; /* in a capture: which of its streams */
} sim_node;

typedef struct sim_nodes {
    sim_node *first, *last;
} sim_nodes;

/* A capture: the stream that began it, and those that joined it by waiting for an event of it. Kept by these streams
 * and by the events recorded in it. */
typedef struct sim_capture {
    uint32_t references;
    const struct CUstream_st *origin; /* lane 0; NULL: the capture has ended */
    bool invalidated;
    kiln__cu_enum mode;
    pid_t thread;
    uint32_t lanes;
    sim_nodes nodes; /* of all lanes, in the order of the calls */
} sim_capture;

typedef struct CUstream_st {
    sim_context *context;
    uint32_t flags;
    pid_t thread; /* of a per-thread default stream */
    sim_capture *capture;
    uint32_t lane;             /* in the capture */
    sim_nodes work;            /* enqueued and not done */
    bool calls;                /* a function of the host's, without the lock */
    struct ptx_writes *unseen; /* what its last grids wrote, if the next may begin before they have ended */
    struct CUstream_st *next;  /* in the list of all streams */
} sim_stream;

typedef struct CUevent_st {
    sim_context *context;
    uint32_t flags;
    sim_mark *mark;        /* NULL: never recorded */
    sim_capture *captured; /* it was recorded in; else NULL */
} sim_event;

/* What a capture recorded. Shared by a graph and what it is instantiated to. */
typedef struct sim_record {
    uint32_t references;
    uint32_t lanes;
    sim_nodes nodes;
} sim_record;

typedef struct CUgraph_st {
    sim_record *record;
} sim_graph;

/* Lanes but the first are streams of the executable's own, which begin and end with the stream that it is launched on.
 */
typedef struct CUgraphExec_st {
    sim_record *record;
    sim_stream **lanes;
    sim_mark *done; /* with its last launch; NULL: there was none */
} sim_executable;

/* ---- Calls ---- */

static inline void sim_cuda_leave(const bool *locked) {
    if (*locked) sim_unlock();
}

/* Begins every function: records the call, lets the fault plan have its say, takes the lock until the function returns,
 * and refuses before cuInit, in a forked child and in a function that a stream calls. */
#define SIM_CUDA_ENTER()                                                                              \
    int32_t sim_planned = sim_enter(__func__);                                                        \
    if (sim_planned) return sim_planned == SIM_LIE ? SIM_CUDA_SUCCESS : (kiln__cu_result)sim_planned; \
    if (sim_cuda_is_called(__func__)) return SIM_CUDA_NOT_PERMITTED;                                  \
    const bool sim_locked __attribute__((cleanup(sim_cuda_leave), unused)) = (sim_lock(), true);      \
    if (!sim_cuda_initialised(__func__)) return SIM_CUDA_NOT_INITIALIZED

/* And where the driver needs a current context. */
#define SIM_CUDA_ENTER_CONTEXT(context)                                             \
    SIM_CUDA_ENTER();                                                               \
    sim_context *context = sim_cuda_current(__func__);                              \
    if (!context) return SIM_CUDA_INVALID_CONTEXT;                                  \
    if (!sim_object_live("context", context)) return SIM_CUDA_CONTEXT_IS_DESTROYED; \
    if (context->fault) return (kiln__cu_result)context->fault

/* A breach of the rules by the caller: reported, and answered with an error. */
#define SIM_CUDA_RULE(rule, error, ...) \
    do {                                \
        if (!(rule)) {                  \
            sim_violation(__VA_ARGS__); \
            return error;               \
        }                               \
    } while (0)

bool sim_cuda_initialised(const char *function);
/* Whether this thread is in a function that a stream calls, with a violation: it must call nothing of the driver's. */
bool sim_cuda_is_called(const char *function);
/* The thread's current context, or NULL with a violation. */
sim_context *sim_cuda_current(const char *function);

/* ---- Devices ---- */

/* Compute capability as 90; 0: no such device. */
int32_t sim_cuda_capability(kiln__cu_device device);
const sim_processor *sim_cuda_processor(kiln__cu_device device);
/* Blocks of so many threads and bytes of shared memory beside the kernel's own that a multiprocessor has room for. */
uint32_t sim_cuda_blocks_of(kiln__cu_device device, const sim_entry *entry, uint32_t threads, size_t shared);
/* The same of the whole device. */
uint64_t sim_cuda_blocks_together(const sim_function *function, uint64_t threads, uint32_t shared_bytes);
/* Threads of a block that a multiprocessor has room for, each with so many registers. */
uint32_t sim_cuda_threads_with(uint32_t registers);
int32_t sim_cuda_version(void);

/* ---- Images ---- */

/* Reads a PTX text or a cubin for a device: SUCCESS, or the error that a driver gives; log gets a line about it. The
 * image is to be freed either way. */
kiln__cu_result sim_cuda_image_read(const void *bytes, int32_t capability, sim_image *out_image, char *log,
                                    size_t log_size);
void sim_cuda_image_free(sim_image *image);
/* The PTX of a fat binary that a device takes, to be freed: SUCCESS, or the error that a driver gives with a line in
 * log. */
bool sim_cuda_is_fatbin(const void *bytes);
kiln__cu_result sim_cuda_fatbin_text(const void *bytes, int32_t capability, char **out_text, char *log,
                                     size_t log_size);

/* ---- Memory: sim_cuda_memory.c ---- */

/* What device memory is pitched by. */
enum { SIM_CUDA_PITCH = 512 };

static inline void *sim_cuda_pointer(kiln__cu_address address) {
    return (void *)(uintptr_t)address;
}

/* The live device allocation, or the variables of a module, that hold a range; or NULL. */
const sim_memory *sim_cuda_on_device(kiln__cu_address address, size_t size);
/* Pinned memory, or memory of the program's own. */
bool sim_cuda_on_host(const void *address);
/* An allocation in the order of a stream. */
kiln__cu_result sim_cuda_memory_enqueue(const char *function, sim_context *context, kiln__cu_stream handle, size_t size,
                                        kiln__cu_address *out_memory);
/* Bytes of a device that are allocated. */
uint64_t sim_cuda_memory_used(kiln__cu_device device);
/* The beginning or the end of an allocation whose turn has come. */
void sim_cuda_memory_turn(const sim_node *node);

/* ---- Execution: sim_cuda_execute.c ---- */

/* Makes an image that was read executable: a PTX text is decoded; a cubin runs as the PTX that it was assembled from,
 * if the manifest knows it, and is NO_BINARY_FOR_GPU otherwise. log gets a line on failure. */
kiln__cu_result sim_cuda_program_load(sim_module *module, const void *image, char *log, size_t log_size);
void sim_cuda_program_unload(sim_module *module);
/* Watches the instructions of the text's mutants in the program that it was decoded to: sim_mutants.h. */
void sim_cuda_mutants_watch(struct ptx_program *program, const char *text, size_t size);
/* A .global or .const variable: NOT_FOUND if there is none, or launches are only recorded. Results may be NULL. */
kiln__cu_result sim_cuda_program_global(const sim_module *module, const char *name, kiln__cu_address *out_address,
                                        size_t *out_size);
/* Bytes of the local variables of a function's own text, and of the module's .const variables; 0 where launches are
 * only recorded. */
uint64_t sim_cuda_program_local(const sim_function *function);
uint64_t sim_cuda_program_const(const sim_module *module);
/* Executes a launch whose shape and arguments were checked. A fault becomes the context's error. unseen is what it must
 * wait for before it counts on it, writes gets what it writes; either may be NULL. */
void sim_cuda_execute(sim_context *context, const sim_function *function, const void *arguments, sim_launch *launch,
                      const struct ptx_writes *unseen, struct ptx_writes *writes);

/* ---- What kernels print, and their heap: sim_cuda_runtime.c ---- */

struct ptx_launch;
typedef struct sim_runtime sim_runtime;
/* Gives a launch of a context what it may need. false without memory. */
bool sim_cuda_runtime_begin(sim_context *context, struct ptx_launch *launch);
/* Writes what was printed until now to standard output, as the driver does when something has waited. */
void sim_cuda_runtime_flush(const sim_context *context);
/* Before the context goes. */
void sim_cuda_runtime_end(sim_context *context);

/* The PTX that a cubin was assembled from, by the cubin's sha256: built from the manifests. NULL if there is none. */
const char *sim_cuda_parent_of(const uint8_t sha256[32], size_t *out_size);

/* ---- Work: sim_cuda_work.c ----
 *
 * Work is done when something waits for it, or when the seed says so, in any order that the streams' own orders, events
 * and the default streams allow. */

/* Enqueues a copy of the node, its arguments and marks included, on a stream or in its capture. Functions of the host's
 * are called by a thread of the driver's, which does what comes before them though nothing waits. */
kiln__cu_result sim_cuda_submit(sim_stream *stream, const sim_node *node);
/* Does work until the stream's is done, or the mark is reached. The context's fault, or SUCCESS. */
kiln__cu_result sim_cuda_finish(const sim_stream *stream);
kiln__cu_result sim_cuda_reach(const sim_context *context, const sim_mark *mark);
/* Does some work or none, by chance: time passes between one query and the next. */
void sim_cuda_pass(void);
/* Does all work of a context. */
kiln__cu_result sim_cuda_finish_all(const sim_context *context);

sim_mark *sim_cuda_mark_new(void);
sim_mark *sim_cuda_mark_keep(sim_mark *mark);
void sim_cuda_mark_release(sim_mark *mark);
void sim_cuda_nodes_free(sim_nodes *nodes);
/* A graph of what was captured, which it takes. NULL without memory. */
sim_graph *sim_cuda_graph_new(sim_capture *capture);

/* Puts a stream into the list of those whose work is done, and takes it out, with what is left of its work. */
void sim_cuda_stream_add(sim_stream *stream);
void sim_cuda_stream_remove(sim_stream *stream);
/* The first of that list. */
sim_stream *sim_cuda_streams(void);

/* ---- Streams and capture ---- */

/* A stream object of a kind; NULL without memory. */
sim_stream *sim_cuda_stream_new(const char *kind, sim_context *context, uint32_t flags);
void sim_cuda_stream_delete(const char *kind, sim_stream *stream);
/* The streams of executable graphs. */
#define SIM_CUDA_LANE ".graph lane"
/* The legacy default stream waits for the blocking streams of its context, and they for it. */
bool sim_cuda_is_legacy(const sim_stream *stream);
/* The stream of a handle in a context, default streams included; NULL with a violation if it is none. */
sim_stream *sim_cuda_stream(const char *function, sim_context *context, kiln__cu_stream handle);
/* Whether a stream takes part in a capture that has not been invalidated. */
bool sim_cuda_is_capturing(const sim_stream *stream);
/* A stream or an event has no more to do with it. Takes NULL. */
void sim_cuda_capture_release(sim_capture *capture);
/* Before a stream waits for an event where a capture is concerned: SUCCESS, or the error. A stream that is in no
 * capture joins the event's. */
kiln__cu_result sim_cuda_capture_wait(sim_stream *stream, const sim_event *event);
/* Before work on a stream: SUCCESS, or why a capture forbids it. */
kiln__cu_result sim_cuda_stream_use(sim_stream *stream);
/* Before a call that would disturb a capture: SUCCESS, or the error after having killed the capture. */
kiln__cu_result sim_cuda_unsafe(void);
/* A context that goes takes its streams, events, modules and memory along. */
void sim_cuda_streams_sweep(const sim_context *context);
void sim_cuda_modules_sweep(const sim_context *context);
void sim_cuda_memory_sweep(const sim_context *context);

#endif
