/* What every simulated driver needs: settings, faults, a log of calls, tables of live objects and memory.
 *
 * A simulated driver presents devices, checks each call strictly, records it, and executes what is launched. Everything
 * about it is set by variables of its own, so that no machine has simulated devices by accident:
 *
 *   KILN_SIM_DEVICES         "sm_90,sm_120,gfx942,gfx90a:xnack-"; each driver takes those of its kind. Unset: none
 *   KILN_SIM_VISIBLE         "1,0": which of these each driver shows, and in what order, as CUDA's does by
 *                            CUDA_VISIBLE_DEVICES and the HSA runtime by ROCR_VISIBLE_DEVICES. Unset: all
 *   KILN_SIM_DRIVER_VERSION  CUDA: 12040 is 12.4 (the default is 13000)
 *   KILN_SIM_MEMORY          bytes of memory of each device (the default is 1 GiB)
 *   KILN_SIM_FAULT           "function,nth,error": a fault from the first call on
 *   KILN_SIM_RECORD          1: launches are recorded and not executed, so that any image will do
 *   KILN_SIM_SEED            of the order of blocks, warps, streams, queues and copies (the default is 1)
 *   KILN_SIM_UNALIGNED       AMD: 0 faults loads and stores that are not aligned (the default lets them, as ROCm)
 *   KILN_SIM_BUDGET          instructions of warps after which a block is endless (the default is 2^28)
 *   KILN_SIM_MATRIX          how matrix instructions add: exact (the default), sequential, truncating; see sim_sum.h
 *   KILN_SIM_THREADS         threads of a launch (the default is one for each processor); 0: the caller's own does all
 *   KILN_SIM_MUTANTS         see sim_mutants.h
 *
 * Every function of a driver begins with sim_enter and holds the simulator's lock (recursive, one for the driver) while
 * it touches state. At exit, objects that are still live and violations are reported on standard error. */
#ifndef KILN_TESTS_SIM_H
#define KILN_TESTS_SIM_H

#include "tests/sim/core/sim_control.h"
#include "tests/sim/core/sim_space.h"
#include "tests/sim/core/sim_sum.h"
#include <stdbool.h>

#define SIM_EXPORT __attribute__((visibility("default")))

/* ---- Settings ---- */

/* The value of a variable, as kiln_sim_configure or the environment has it, or NULL. */
const char *sim_setting(const char *variable);
uint64_t sim_setting_number(const char *variable, uint64_t otherwise);
/* The multiprocessors or compute units of a device whose chip has so many: KILN_SIM_MULTIPROCESSORS of them, if those
 * are fewer, as an instance of a partitioned GPU has. */
uint32_t sim_multiprocessors(uint32_t chip);

/* Threads that execute a launch. */
uint32_t sim_threads(void);

/* A number drawn from KILN_SIM_SEED: how many were drawn before makes the next one. The caller has a lock. */
uint64_t sim_chance(void);

/* What KILN_SIM_MATRIX says; unset if it says nothing, or, which is a violation, names no way. */
sim_sum_mode sim_setting_matrix(sim_sum_mode unset);

/* Writes the name of the index-th device that the driver of prefix ("sm_", "gfx") shows; false beyond the last. */
bool sim_device_name(const char *prefix, size_t index, char *name, size_t size);

/* Where that device stands among all of its kind: its address and UUID follow from it. index, where there is none. */
size_t sim_device_place(size_t index);
size_t sim_device_count(const char *prefix);

/* Bytes of memory of each device. */
uint64_t sim_memory_bytes(void);

/* ---- Calls ---- */

void sim_lock(void);
void sim_unlock(void);

/* Counts and logs a call, and asks the fault plan: 0 to go on, SIM_LIE, or the error to return. function is a literal.
 */
int32_t sim_enter(const char *function);

/* Reports a breach of the driver's rules: counted, and written to standard error. */
void sim_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Objects: what a handle points to ---- */

/* A zeroed object of a kind ("stream"), live until deleted; NULL without memory. A deleted object's memory is kept
 * until exit, so that a stale handle is never live again. kind is a literal; one that begins with a dot (".default
 * stream") is the driver's own and never counted as live or leaked. */
void *sim_object_new(const char *kind, size_t size);
bool sim_object_live(const char *kind, const void *object);
/* Deletes a live object; a violation if it is none of this kind. */
void sim_object_delete(const char *kind, void *object);
/* The first live object of a kind for which match returns true, or NULL. */
void *sim_object_find(const char *kind, bool (*match)(const void *object, const void *context), const void *context);

/* ---- Memory: real host memory between guard bytes, poisoned when handed out ---- */

typedef struct sim_memory {
    const char *kind; /* "device memory", "host memory", a pool's name */
    int32_t device;
    size_t size;
    uint8_t *bytes;
    uint64_t owner;   /* for the driver: the context or pool that it came from */
    uint8_t *written; /* a bit for each byte that was ever written; NULL: not tracked, all counts as written */
    bool absent;      /* its turn has not come yet: it has an address, and nothing may touch it */
    bool leaving;     /* work that is to free it is on its way */
} sim_memory;

/* NULL if there is no memory, or if the live allocations of this kind and device would exceed sim_memory_bytes(). */
void *sim_memory_new(const char *kind, int32_t device, size_t size, size_t alignment, uint64_t owner);
/* The same for size bytes that are the application's, which are not poisoned, guarded or freed; false without memory.
 */
bool sim_memory_adopt(const char *kind, int32_t device, void *bytes, size_t size, uint64_t owner);
/* From now on the allocation at bytes knows which of its bytes were written; before, none was. */
void sim_memory_track(void *bytes);
/* From now on kernels may access only the parts that were added of the allocation at bytes, which is not tracked. false
 * without memory. */
bool sim_memory_add_part(void *bytes, size_t offset, size_t size, bool constant);
/* Sets what an allocation says of itself, for memory that comes and goes with work on streams. */
void sim_memory_set_absent(void *bytes, bool absent);
void sim_memory_set_leaving(void *bytes);
/* Bytes of the live allocations of a kind on a device. */
uint64_t sim_memory_used(const char *kind, int32_t device);
/* The driver itself wrote these bytes (a copy, a fill). */
void sim_memory_wrote(const void *address, size_t size);
/* The live allocation that holds [address, address + size), or NULL. */
const sim_memory *sim_memory_find(const void *address, size_t size);
/* Frees an allocation by its first byte; false (and a violation) if there is none of this kind. A broken guard is a
 * violation. */
bool sim_memory_delete(const char *kind, void *bytes);
/* Frees all of a kind that have this owner, which goes. */
void sim_memory_sweep(const char *kind, uint64_t owner);

/* The live memory of owners, and host memory, as a kernel may access it; to be freed. Stays valid while nothing is
 * freed, which the simulator's lock ensures. */
typedef struct sim_regions {
    sim_region *regions; /* by address */
    size_t count;
    bool host; /* some are the host's */
} sim_regions;

bool sim_regions_take(const uint64_t *owners, size_t owner_count, sim_regions *out_regions);
/* A sim_region_find with a sim_regions as its context. */
bool sim_regions_find(void *regions, uint64_t address, sim_region *out_region);

/* ---- Launches ---- */

void sim_launch_add(const sim_launch *launch);

#endif
