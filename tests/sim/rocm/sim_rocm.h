/* The simulated libhsa-runtime64.so.1: its objects, and what a call begins with.
 *
 * One file a noun: sim_rocm_agent.c (start, agents, instruction sets, pools), sim_rocm_memory.c, sim_rocm_signal.c,
 * sim_rocm_queue.c (queues and their packet processors), sim_rocm_packet.c (what a packet must be), sim_rocm_execute.c
 * (what it does), sim_rocm_copy.c (the copy engine), sim_rocm_turn.c (which of them is next), sim_rocm_code.c (code
 * objects), sim_rocm_variable.c (their variables), sim_rocm_handler.c (what is called when a signal changes),
 * sim_rocm_absent.c (what no simulated GPU has).
 *
 * Everything is guarded by one lock, sim_rocm_lock, which a kernel at work does not hold; whatever changes a signal or
 * a queue announces it to the threads that wait. The simulator's own lock is only taken inside it. */
#ifndef KILN_TESTS_SIM_ROCM_H
#define KILN_TESTS_SIM_ROCM_H

#include "loader/rocm/rocm_abi.h"
#include "tests/sim/core/sim.h"
#include "tests/sim/rocm/sim_rocm_control.h"

enum {
#define KILN_ROCM_ERROR(name, number, status) SIM_HSA_##name = number,
#include "loader/rocm/rocm_errors.def"
#undef KILN_ROCM_ERROR
};

#include "tests/sim/rocm/extra_types.h"

/* Every function of the driver, declared from the lists: a definition that differs does not compile. */
#define KILN_HSA(field, exported, required, result, parameters) SIM_EXPORT result exported parameters;
#include "loader/rocm/symbols.def"
#include "tests/sim/rocm/extra_symbols.def"
#undef KILN_HSA
#define SIM_ROCM_DECLARE(result, name, parameters) SIM_EXPORT result kiln_sim_rocm_##name parameters;
SIM_ROCM_CONTROL_MAP(SIM_ROCM_DECLARE)
#undef SIM_ROCM_DECLARE

/* kiln writes none, but an application may, on a queue that it shares. */
enum { SIM_PACKET_BARRIER_OR = 5 };

/* ---- Handles ---- */

/* Agents: the CPU, then the GPUs. Pools and instruction sets are numbered within their agent. */
enum { SIM_CPU_AGENT = 0x1000, SIM_GPU_AGENT = 0x2000, SIM_POOL = 0x100000, SIM_ISA = 0x200000 };
enum { SIM_POOL_DEVICE, SIM_POOL_LDS, SIM_POOL_HOST, SIM_POOL_KERNARG, SIM_POOL_KINDS };

#define SIM_DEVICE_MEMORY  "device memory"
#define SIM_HOST_MEMORY    "host memory"
#define SIM_KERNARG_MEMORY "kernarg memory"

/* A row of units.def. */
typedef struct sim_unit {
    const char *prefix;
    uint32_t lanes, simds, waves;
} sim_unit;

typedef struct sim_target {
    char name[64];      /* "gfx90a:sramecc+:xnack-" */
    char processor[32]; /* "gfx90a" */
    uint32_t machine;   /* EF_AMDGPU_MACH */
    uint32_t generic;   /* machine of its family; 0: none */
    const char *generic_name;
    int xnack, sramecc; /* 0 not supported, 1 off, 2 on */
    const sim_unit *unit;
} sim_target;

typedef struct sim_signal {
    kiln__hsa_signal_value value;
    struct sim_queue *doorbell_of; /* NULL: an ordinary signal */
    uint64_t start, end;           /* of the last profiled packet, in ticks */
    int32_t device;
} sim_signal;

/* Access of a GPU to an allocation that is not its own. */
typedef struct sim_grant {
    const void *memory;
    int32_t device;
} sim_grant;

/* Locked host memory. The device knows it at another address than the host, SIM_ALIAS, so that a mix-up shows. */
typedef struct sim_lock_range {
    uint8_t *host;
    size_t size;
} sim_lock_range;

typedef struct sim_reader {
    const uint8_t *bytes;
    size_t size;
} sim_reader;

enum { SIM_KERNEL_MAX = 1024 };

typedef struct sim_kernel {
    char symbol[SIM_NAME_SIZE];
    uint32_t group_bytes, private_bytes, kernarg_bytes;
    bool dynamic_stack;
    int32_t device;
    struct amd_program *program; /* of its executable; NULL: launches are recorded and not executed */
    uint32_t running;            /* launches of it that are at work, which is without the lock */
} sim_kernel;

/* A global variable of a code object. */
typedef struct sim_variable {
    struct sim_variable *next;
    char symbol[SIM_NAME_SIZE];
    uint64_t address;       /* in the code object */
    const uint8_t *initial; /* its bytes in the file, which goes before it does; NULL: zeros */
    uint8_t *bytes;         /* where it was loaded */
    uint8_t *object;        /* what the runtime allocated for the code object that it is in */
    size_t object_size;
    uint32_t size, alignment;
    bool writable, weak;
    int32_t device;
} sim_variable;

typedef struct sim_executable {
    const sim_reader *reader;
    int32_t device;
    bool loaded, frozen;
    uint32_t kernel_count;
    sim_kernel *kernels[SIM_KERNEL_MAX];
    sim_variable *variables;     /* a list */
    struct amd_program *program; /* decoded; NULL as in sim_kernel */
} sim_executable;

/* ---- Calls ---- */

void sim_rocm_lock(void);
void sim_rocm_unlock(void);
/* Tells every waiting thread that something changed. */
void sim_rocm_changed(void);
/* Waits for a change, at most so long. Under the lock. */
void sim_rocm_wait_change(uint64_t nanoseconds);
/* Whether queues and copies have threads; else they go on in calls of the host that wait or look. */
bool sim_rocm_has_threads(void);
/* Ticks of the system clock: 10 ns each. */
uint64_t sim_rocm_ticks(void);
enum { SIM_TICK_NANOSECONDS = 10 };
/* A number below another, and a delay in microseconds, drawn from the seed. Under the lock. */
uint32_t sim_rocm_random(uint32_t below);
uint32_t sim_rocm_delay(void);

/* One of those that take turns: a queue, or the copy engine. */
typedef struct sim_turn {
    struct sim_turn *next;
    bool (*is_ready)(const struct sim_turn *turn); /* it has something that could begin now */
    void (*work)(struct sim_turn *turn);           /* does that. Under the lock */
    bool works;
    uint64_t since; /* ticks */
} sim_turn;

void sim_rocm_turn_join(sim_turn *turn);
void sim_rocm_turn_leave(sim_turn *turn);
/* On a thread of its own: works if its turn has come, else waits a while for a change. */
void sim_rocm_turn_await(sim_turn *turn);
/* Without threads: one that has something to begin works. False if none has. */
bool sim_rocm_turn_step(void);
/* The host handed over a packet or a copy; looked at a result; waits for one. */
void sim_rocm_handed_over(void);
void sim_rocm_asked(void);
void sim_rocm_wait_begin(void);
void sim_rocm_wait_end(void);

bool sim_rocm_started(const char *function);
/* What KILN_SIM_STANDARD says. */
bool sim_rocm_standard(void);

static inline void sim_rocm_leave(const bool *locked) {
    if (*locked) sim_rocm_unlock();
}

/* Begins every function that returns a status: records the call, lets the fault plan have its say, takes the lock until
 * the function returns, and refuses before hsa_init and in a forked child. A lie does nothing and reports success. */
#define SIM_HSA_ENTER()                                                                                        \
    int32_t sim_planned = sim_enter(__func__);                                                                 \
    if (sim_planned) return sim_planned == SIM_LIE ? KILN__HSA_STATUS_SUCCESS : (kiln__hsa_status)sim_planned; \
    SIM_HSA_LOCK();                                                                                            \
    if (!sim_rocm_started(__func__)) return SIM_HSA_ERROR_NOT_INITIALIZED

/* The same for a function that releases: it releases even if the plan has it fail, so that a leak is the caller's. */
#define SIM_HSA_ENTER_RELEASE()                \
    int32_t sim_planned = sim_enter(__func__); \
    SIM_HSA_LOCK();                            \
    if (!sim_rocm_started(__func__)) return SIM_HSA_ERROR_NOT_INITIALIZED
#define SIM_HSA_RELEASED() return sim_planned == SIM_LIE ? KILN__HSA_STATUS_SUCCESS : (kiln__hsa_status)sim_planned

#define SIM_HSA_LOCK() const bool sim_locked __attribute__((cleanup(sim_rocm_leave), unused)) = (sim_rocm_lock(), true)

/* A breach of the rules by the caller: reported, and answered with an error. */
#define SIM_HSA_RULE(rule, error, ...)  \
    do {                                \
        if (!(rule)) {                  \
            sim_violation(__VA_ARGS__); \
            return error;               \
        }                               \
    } while (0)

/* ---- Between the files. All under the lock. ---- */

/* The index of a GPU agent, -1 for any other handle. */
int32_t sim_rocm_device(kiln__hsa_agent agent);
bool sim_rocm_is_agent(kiln__hsa_agent agent);
bool sim_rocm_target(int32_t device, sim_target *out_target);

/* Of a pool that is not one of LDS. */
enum { SIM_POOL_ALIGNMENT = 4096 };
uint32_t sim_rocm_pool_flags(kiln__hsa_pool pool);

/* A live signal, or NULL. */
sim_signal *sim_rocm_signal(kiln__hsa_signal signal);
/* HSA's conditions: equal, not equal, less, not less. */
bool sim_rocm_signal_holds(kiln__hsa_signal_value value, uint32_t condition, kiln__hsa_signal_value compare);
void sim_rocm_signal_add(kiln__hsa_signal signal, kiln__hsa_signal_value value);

/* True if the device can reach the range: its own memory, or an allocation that it was granted. */
bool sim_rocm_reaches(int32_t device, const void *address, size_t size);
/* The host's address of a range as a copy names it: locked ranges are translated; NULL if nobody may touch it. */
/* The locked range that holds the whole of another, or NULL. */
const sim_lock_range *sim_rocm_locked(const void *host, size_t size);
uint8_t *sim_rocm_resolve(int32_t device, const void *address, size_t size);

/* Adds a variable as described to an executable; once its program is loaded, gives all of them their addresses; and
 * deletes them, before the program goes. */
kiln__hsa_status sim_rocm_variable_add(sim_executable *executable, const sim_variable *described);
kiln__hsa_status sim_rocm_variables_place(sim_executable *executable);
void sim_rocm_variables_delete(sim_executable *executable);
/* The variable of a symbol, or NULL. */
const sim_variable *sim_rocm_variable_of(kiln__hsa_symbol symbol);
/* The variable of a device, or with -1 of any, that holds the whole range, or NULL. Without the lock, too. */
const sim_variable *sim_rocm_variable_at(int32_t device, const void *address, size_t size);
/* What hsa_executable_symbol_get_info says of variables alone. */
kiln__hsa_status sim_rocm_variable_info(const sim_variable *variable, uint32_t attribute, void *value);

/* Reads a code object for a device and lists its kernels and variables: SUCCESS, or the error that the runtime gives.
 */
kiln__hsa_status sim_rocm_code_read(const sim_reader *reader, int32_t device, sim_executable *out_executable);

/* Checks a packet that was handed over; *out_kernarg_size is what a dispatch's kernel takes. SUCCESS, or what the error
 * callback of its queue is told. */
kiln__hsa_status sim_rocm_packet_check(const kiln__hsa_dispatch_packet *packet, int32_t device,
                                       uint32_t *out_kernarg_size);
/* Executes a dispatch, if its kernel can be, and records it. False with the report if the kernel was at fault. */
bool sim_rocm_packet_run(const kiln__hsa_dispatch_packet *packet, int32_t device, const kiln__hsa_queue *queue,
                         sim_report *out_report);
/* Decodes a code object, so that its kernels can be executed. SUCCESS also where launches are only recorded. */
kiln__hsa_status sim_rocm_program_load(sim_executable *executable);
void sim_rocm_program_unload(sim_executable *executable);
/* Watches the instructions of the code object's mutants in its program: sim_mutants.h. */
void sim_rocm_mutants_watch(const sim_executable *executable);
void sim_rocm_mutants_forget(struct amd_program *program);
/* Executes a dispatch of a kernel that has a program, and gives the lock away meanwhile. Counts into the launch. False
 * with the report of a fault. */
bool sim_rocm_execute(const kiln__hsa_dispatch_packet *packet, const kiln__hsa_queue *queue, sim_launch *launch,
                      sim_report *out_report);
/* Waits until no kernel is at work, before something that one may use is freed. */
void sim_rocm_kernels_wait(void);
/* A kernel was at fault. Of a page fault the event handlers are told, and it is SUCCESS; else what the error callback
 * of the kernel's queue is told. Takes the lock itself. */
kiln__hsa_status sim_rocm_fault(int32_t device, const sim_report *report);
void sim_rocm_page_fault(int32_t device, uint64_t address);

void sim_rocm_doorbell(struct sim_queue *queue, uint64_t index);
/* True if a copy runs in the range or is going to. */
bool sim_rocm_copy_uses(const void *memory, size_t size);
/* Finds the copies that are never going to run, since a packet that they wait for is in a queue that was stopped. The
 * others of its device go on: the engine knows nothing of queues. */
void sim_rocm_strand_copies(void);
/* True if a packet of a stopped queue, which is never done, was to complete the signal. */
bool sim_rocm_never_completes(kiln__hsa_signal signal);
/* True if packets in flight have kernargs in the range. */
bool sim_rocm_kernargs_in_flight(const void *memory, size_t size);
/* Stops all queues of a device and calls their error callbacks with status, unless it is 0. Takes the lock itself. */
void sim_rocm_stop_queues(int32_t device, kiln__hsa_status status);

#endif
