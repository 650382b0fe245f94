#include "loader/cpu/cpu_pool.h"
#include "loader/cpu/cpu_scratch.h"
#include "loader/cpu/cpu_threads.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum {
    PATIENCE_NS = 20000, /* how long a caller works alone: less than waking or starting a thread costs */
    WATCH_NS = 50000,    /* how long an idle thread polls for work before it sleeps: about what waking it costs */
};

/* One call of kiln__cpu_pool_run, on the caller's stack. */
typedef struct pool_job {
    kiln__cpu_pool *pool;
    kiln__cpu_body body;
    void *context;
    uint64_t blocks;
    int cpu;               /* where the caller ran when it asked for help */
    _Atomic uint64_t next; /* block that nobody took yet */
} pool_job;

/* The pool's threads and what they share. A forked child finds one without threads and leaves it. */
typedef struct pool_workers {
    uint32_t process; /* whose threads they are: fork_count when they were started */
    pthread_mutex_t lock;
    pthread_cond_t wake, idle;
    /* Written under the lock. */
    pool_job *job;           /* to be helped with, or NULL */
    _Atomic uint64_t serial; /* of the job, so that a thread joins each job once */
    _Atomic uint32_t busy;   /* threads inside the job */
    bool stopping;
    uint32_t count;
    pthread_t threads[];
} pool_workers;

struct kiln__cpu_pool {
    uint32_t threads;
    kiln_parallel_for parallel_for;
    void *user;
    kiln__cpu_mask mask;
    _Atomic uint32_t holder;   /* the process that has a job with the workers, or 0 */
    pool_workers *workers;     /* the holder's */
    char *scratch;             /* of as many threads; NULL for one, which gets no help */
    _Atomic uint32_t takers[]; /* of each one's scratch: the process whose thread has it, or 0 */
};

/* Numbers the processes of a line of forks, from 1, so that a child can tell what it inherited. */
static _Atomic uint32_t fork_count = 1;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void count_fork(void) {
    atomic_fetch_add_explicit(&fork_count, 1, memory_order_relaxed);
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, count_fork);
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Takes what only one thread of the process may hold at a time; false if another holds it. In a forked child nobody
 * holds what the parent took. */
static bool take(_Atomic uint32_t *holder, uint32_t process) {
    uint32_t found = 0;
    while (!atomic_compare_exchange_weak_explicit(holder, &found, process, memory_order_acquire, memory_order_relaxed))
        if (found == process) return false;
    return true;
}

static void give_back(_Atomic uint32_t *holder) {
    atomic_store_explicit(holder, 0, memory_order_release);
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/* How many blocks nobody took yet. */
static uint64_t job_left(const pool_job *job) {
    return job->blocks - atomic_load_explicit(&job->next, memory_order_relaxed);
}

/* Runs the next blocks, so many or what is left of them; 0: a share of what is left. false if nothing was. Shares
 * become smaller, down to one block, so that threads of unequal speed end together. */
static bool job_step(pool_job *job, void *scratch, uint64_t count) {
    uint64_t begin = atomic_load_explicit(&job->next, memory_order_relaxed), end;
    do {
        uint64_t left = job->blocks - begin, share = left / (2 * (uint64_t)job->pool->threads);
        if (left == 0) return false;
        uint64_t most = count ? count : share ? share : 1;
        end = begin + (most < left ? most : left);
    } while (
        !atomic_compare_exchange_weak_explicit(&job->next, &begin, end, memory_order_relaxed, memory_order_relaxed));
    job->body(job->context, scratch, begin, end);
    return true;
}

/* Shares in the job until nothing is left, on a thread that is not the caller's, if there is scratch for one more. The
 * search starts at another place for each index, so that threads that come together do not meet. */
static void job_help(pool_job *job, size_t index) {
    kiln__cpu_pool *pool = job->pool;
    uint32_t process = atomic_load_explicit(&fork_count, memory_order_relaxed);
    for (uint32_t i = 0; i < pool->threads; i++) {
        size_t slot = (index + i) % pool->threads;
        if (!take(&pool->takers[slot], process)) continue;
        while (job_step(job, pool->scratch + slot * KILN_CPU_SCRATCH, 0))
            continue;
        give_back(&pool->takers[slot]);
        return;
    }
}

static void host_help(void *context, size_t index) {
    job_help(context, index);
}

/* ---- Workers ----------------------------------------------------------------------------------------------------- */

/* Polls, for WATCH_NS at most, for a job other than the one with this serial. */
static void watch_for_job(const pool_workers *workers, uint64_t seen) {
    uint64_t start = now_ns();
    while (atomic_load_explicit(&workers->serial, memory_order_relaxed) == seen && now_ns() - start < WATCH_NS)
        kiln__cpu_pause();
}

/* The same for the last thread to leave the job. */
static void watch_for_end(const pool_workers *workers) {
    uint64_t start = now_ns();
    while (atomic_load_explicit(&workers->busy, memory_order_relaxed) > 0 && now_ns() - start < WATCH_NS)
        kiln__cpu_pause();
}

/* Linux likes to wake a thread where the thread that wakes it runs, where it then waits for milliseconds, and leaves
 * both there for tens of them, whatever other processors are idle. So a worker keeps off the one of the last job's
 * caller, which mostly is the next one's too. */
static void *worker_main(void *argument) {
    pool_workers *workers = argument;
    uint64_t seen = 0;
    int avoided = -1;
    for (;;) {
        watch_for_job(workers, seen);
        pthread_mutex_lock(&workers->lock);
        while (!workers->stopping && (!workers->job || workers->serial == seen))
            pthread_cond_wait(&workers->wake, &workers->lock);
        if (workers->stopping) break;
        pool_job *job = workers->job;
        seen = workers->serial;
        uint32_t index = workers->busy++;
        pthread_mutex_unlock(&workers->lock);
        kiln__cpu_avoid(job->cpu, &avoided);
        job_help(job, index);
        pthread_mutex_lock(&workers->lock);
        if (--workers->busy == 0) pthread_cond_signal(&workers->idle);
        pthread_mutex_unlock(&workers->lock);
    }
    pthread_mutex_unlock(&workers->lock);
    return NULL;
}

/* Blocks every signal that can be sent to the process: its handlers must run on the host's threads. Those that a
 * faulting instruction raises stay, or a crash reporter would not see them. */
static void block_signals(sigset_t *before) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t blocked;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        sigdelset(&blocked, faults[i]);
    pthread_sigmask(SIG_SETMASK, &blocked, before);
}

/* Starts as many of the threads as the system gives. NULL without memory. */
static pool_workers *workers_start(const kiln__cpu_pool *pool, uint32_t process) {
    pool_workers *workers = calloc(1, sizeof *workers + (pool->threads - 1) * sizeof workers->threads[0]);
    if (!workers) return NULL;
    workers->process = process;
    pthread_mutex_init(&workers->lock, NULL);
    pthread_cond_init(&workers->wake, NULL);
    pthread_cond_init(&workers->idle, NULL);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (CPU_COUNT_S(sizeof pool->mask, pool->mask.sets) > 0)
        pthread_attr_setaffinity_np(&attributes, sizeof pool->mask, pool->mask.sets);
    sigset_t before;
    block_signals(&before);
    while (workers->count < pool->threads - 1) {
        if (pthread_create(&workers->threads[workers->count], &attributes, worker_main, workers) != 0) break;
        pthread_setname_np(workers->threads[workers->count], "kiln");
        workers->count++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return workers;
}

static void workers_stop(pool_workers *workers) {
    pthread_mutex_lock(&workers->lock);
    workers->stopping = true;
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->lock);
    for (uint32_t i = 0; i < workers->count; i++)
        pthread_join(workers->threads[i], NULL);
    pthread_cond_destroy(&workers->wake);
    pthread_cond_destroy(&workers->idle);
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}

/* Shares the job with the workers until its last block is done. */
static void workers_run(pool_workers *workers, pool_job *job, void *scratch) {
    pthread_mutex_lock(&workers->lock);
    job->cpu = sched_getcpu();
    workers->job = job;
    workers->serial++;
    pthread_cond_broadcast(&workers->wake);
    pthread_mutex_unlock(&workers->lock);
    while (job_step(job, scratch, 0))
        continue;
    watch_for_end(workers);
    pthread_mutex_lock(&workers->lock);
    workers->job = NULL; /* who wakes only now does not join: the job is about to leave the stack */
    while (workers->busy > 0)
        pthread_cond_wait(&workers->idle, &workers->lock);
    pthread_mutex_unlock(&workers->lock);
}

/* ---- Pool -------------------------------------------------------------------------------------------------------- */

kiln_status kiln__cpu_pool_create(uint32_t threads, kiln_parallel_for parallel_for, void *user,
                                  kiln__cpu_pool **out_pool) {
    pthread_once(&fork_once, watch_forks);
    *out_pool = NULL;
    void *scratch = NULL;
    if (threads > 1) KILN__TRY(kiln__cpu_scratch_alloc(threads, &scratch));
    kiln__cpu_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->takers[0]);
    if (!pool) {
        free(scratch);
        return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "cpu: no memory for the thread pool");
    }
    pool->threads = threads;
    pool->parallel_for = parallel_for;
    pool->user = user;
    pool->scratch = scratch;
    kiln__cpu_mask_read(&pool->mask);
    *out_pool = pool;
    return KILN_OK;
}

/* Gets the workers for this thread's job, or NULL: they are taken, or there are none to be had. */
static pool_workers *pool_hold(kiln__cpu_pool *pool) {
    uint32_t process = atomic_load_explicit(&fork_count, memory_order_relaxed);
    if (!take(&pool->holder, process)) return NULL;
    if (pool->workers && pool->workers->process != process) {
        free(pool->workers); /* its threads were the parent's; its lock may be held for ever */
        pool->workers = NULL;
    }
    if (!pool->workers) pool->workers = workers_start(pool, process);
    if (!pool->workers) give_back(&pool->holder);
    return pool->workers;
}

void kiln__cpu_pool_run(kiln__cpu_pool *pool, uint64_t blocks, kiln__cpu_body body, void *context, void *scratch) {
    if (blocks <= 1 || pool->threads == 1) {
        if (blocks > 0) body(context, scratch, 0, blocks);
        return;
    }
    pool_job job = {.pool = pool, .body = body, .context = context, .blocks = blocks};
    uint64_t start = now_ns(), spent = 0, count = 1;
    while (spent < PATIENCE_NS && job_step(&job, scratch, count)) {
        spent = now_ns() - start;
        count = spent < PATIENCE_NS / 2 ? 2 * count : 1; /* a short job is not worth as many steps as it has blocks */
    }
    uint64_t left = job_left(&job);
    if (left == 0) return;
    if (pool->parallel_for) {
        pool->parallel_for(pool->user, left < pool->threads ? left : pool->threads, host_help, &job);
    } else {
        pool_workers *workers = pool_hold(pool);
        if (workers) {
            workers_run(workers, &job, scratch);
            give_back(&pool->holder);
        }
    }
    while (job_step(&job, scratch, 0))
        continue;
}

void kiln__cpu_pool_destroy(kiln__cpu_pool *pool) {
    if (!pool) return;
    pool_workers *workers = pool->workers;
    if (workers && workers->process == atomic_load_explicit(&fork_count, memory_order_relaxed))
        workers_stop(workers);
    else
        free(workers);
    free(pool->scratch);
    free(pool);
}
