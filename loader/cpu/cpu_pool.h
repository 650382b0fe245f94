/* The threads that share a launch.
 *
 * A job is a number of independent blocks. Threads take them off a counter, each time a share of what is left: which
 * thread runs a block, and with which others in one call, is open. Nobody can tell from a grid how long a block takes,
 * so the caller starts on the blocks alone and calls for help only if it is still at work after some microseconds:
 * small jobs never wake a thread, and a process that has only such jobs never starts one. A thread looks out for the
 * next job for 50 microseconds before it sleeps, and moves if it was woken where its caller runs.
 *
 * A thread that helps takes scratch of the pool's while it does. If a host's pool brings more threads than kiln's has,
 * those that find none left go without helping, and the caller does what is left.
 *
 * A block should take microseconds rather than milliseconds: the first is always the caller's alone. */
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
