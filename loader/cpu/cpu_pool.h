/* The threads that share a launch.
 *
 * A job is a number of independent blocks. Threads take them from a shared counter, each time a share of those that are
 * left, so it is undefined which thread runs a block and which other blocks are in the same call. The duration of a
 * block cannot be predicted from the grid. So the caller starts alone, and wakes other threads only if it is still
 * working after some microseconds: small jobs never wake a thread, and a process that has only small jobs never starts
 * one. A thread without work spins for 50 microseconds, waiting for the next job, before it sleeps. If it is woken on
 * the processor on which its caller runs, it moves to another.
 *
 * A thread that helps uses scratch memory of the pool's meanwhile. If an application's pool brings more threads than
 * there are scratch areas, the surplus threads return without helping, and the caller does what is left.
 *
 * A block should take microseconds rather than milliseconds, because the caller always runs the first one alone. */
#ifndef KILN_LOADER_CPU_POOL_H
#define KILN_LOADER_CPU_POOL_H

#include "loader/status.h"

typedef struct kiln__cpu_pool kiln__cpu_pool;

/* Runs blocks [begin, end). scratch is KILN_CPU_SCRATCH bytes that no other call has. */
typedef void (*kiln__cpu_body)(void *context, void *scratch, uint64_t begin, uint64_t end);

/* Makes a pool that works with threads threads, the caller's included, on the CPUs that the calling thread may use. No
 * thread is started yet. parallel_for, if not NULL, is called in place of the pool's own threads.
 * Returns KILN_OK or KILN_ERROR_OUT_OF_MEMORY. */
kiln_status kiln__cpu_pool_create(uint32_t threads, kiln_parallel_for parallel_for, void *user,
                                  kiln__cpu_pool **out_pool);

/* Runs body over [0, blocks) and returns when all is done. scratch is for the body on this thread. From any thread: one
 * job at a time has the pool's threads, and a caller that finds them taken (a body that runs a job itself, or another
 * thread's job) works alone. Threads that cannot be started are done without. A child after fork starts threads of its
 * own. */
void kiln__cpu_pool_run(kiln__cpu_pool *pool, uint64_t blocks, kiln__cpu_body body, void *context, void *scratch);

/* Ends the threads. No job may be running. NULL is accepted. */
void kiln__cpu_pool_destroy(kiln__cpu_pool *pool);

#endif
