/* The threads that share a launch.
 *
 * A job is a number of independent blocks. Threads claim them from a shared counter, each time a fraction of those
 * left, so it is undefined which thread runs a block and which other blocks are in the same call. The duration of a
 * block cannot be predicted from the grid, so the caller starts alone and wakes other threads only if it is still
 * working after some microseconds: small jobs never wake a thread, and a process that has only small jobs never starts
 * one. A thread without work spins for 50 microseconds before it sleeps. If it is woken on the CPU on which its caller
 * runs, it moves to another.
 *
 * A helping thread uses one of the pool's scratch areas. If an application's pool brings more threads than there are
 * areas, the surplus threads return without helping, and the caller finishes the job.
 *
 * A block should take microseconds rather than milliseconds, because the caller always runs the first one alone. */
#ifndef KILN_LOADER_CPU_POOL_H
#define KILN_LOADER_CPU_POOL_H

#include "loader/status.h"

typedef struct kiln__cpu_pool kiln__cpu_pool;

/* Runs blocks [begin, end). scratch is KILN_CPU_SCRATCH bytes that no concurrent call uses. */
typedef void (*kiln__cpu_body)(void *context, void *scratch, uint64_t begin, uint64_t end);

/* Creates a pool of the given number of threads, the caller's included, on the CPUs that the calling thread may use.
 * Starts no thread yet. parallel_for, if not NULL, replaces the pool's own threads.
 * Returns KILN_OK or KILN_ERROR_OUT_OF_MEMORY. */
kiln_status kiln__cpu_pool_create(uint32_t threads, kiln_parallel_for parallel_for, void *user,
                                  kiln__cpu_pool **out_pool);

/* Runs body over [0, blocks) and returns when all blocks are done. scratch is for the body on this thread. Any thread
 * may call this, also from a body: one job at a time has the pool's threads, and a caller that finds them busy works
 * alone. If threads cannot be started, the job runs on those there are. A forked child starts its own. */
void kiln__cpu_pool_run(kiln__cpu_pool *pool, uint64_t blocks, kiln__cpu_body body, void *context, void *scratch);

/* Ends the threads and frees the pool. No job may be running. NULL is accepted. */
void kiln__cpu_pool_destroy(kiln__cpu_pool *pool);

#endif
