/* What is enqueued on streams, and the order in which it is done: any that the driver's rules allow, chosen by the
 * seed. */
#include "tests/sim/core/sim_mutants.h"
#include "tests/sim/cuda/sim_cuda.h"
#include "tests/sim/ptx/memory/ptx_overlap.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static sim_stream *streams;     /* of all contexts */
static uint64_t tickets, ticks; /* of calls; of marks reached */

/* The thread that calls functions of the host's; without threads, whoever does the work calls them. */
static bool has_caller;
static _Thread_local bool is_caller, is_called;

/* ---- Marks and nodes ---- */

sim_mark *sim_cuda_mark_new(void) {
    sim_mark *mark = calloc(1, sizeof *mark);
    return mark ? sim_cuda_mark_keep(mark) : NULL;
}

sim_mark *sim_cuda_mark_keep(sim_mark *mark) {
    if (mark) mark->references++;
    return mark;
}

void sim_cuda_mark_release(sim_mark *mark) {
    if (mark && !--mark->references) free(mark);
}

static void node_free(sim_node *node) {
    sim_cuda_mark_release(node->mark);
    free(node->arguments);
    free(node->staged);
    free(node);
}

static sim_node *node_take(sim_nodes *nodes) {
    sim_node *taken = nodes->first;
    nodes->first = taken->next;
    if (!nodes->first) nodes->last = NULL;
    return taken;
}

void sim_cuda_nodes_free(sim_nodes *nodes) {
    while (nodes->first)
        node_free(node_take(nodes));
}

static void *bytes_copy(const void *bytes, size_t size) {
    void *copy = malloc(size + 1);
    if (copy && size) memcpy(copy, bytes, size);
    return copy;
}

static sim_node *node_copy(const sim_node *node) {
    sim_node *copy = malloc(sizeof *copy);
    if (!copy) return NULL;
    *copy = *node;
    copy->next = NULL;
    copy->mark = sim_cuda_mark_keep(node->mark);
    if (node->arguments) copy->arguments = bytes_copy(node->arguments, node->launch.arguments_size);
    if (node->staged) copy->from = copy->staged = bytes_copy(node->staged, node->size);
    if (!copy->arguments == !node->arguments && !copy->staged == !node->staged) return copy;
    node_free(copy);
    return NULL;
}

/* ---- Doing ---- */

void sim_cuda_stream_add(sim_stream *stream) {
    stream->next = streams;
    streams = stream;
}

void sim_cuda_stream_remove(sim_stream *stream) {
    sim_stream **link = &streams;
    while (*link && *link != stream)
        link = &(*link)->next;
    if (*link) *link = stream->next;
    sim_cuda_nodes_free(&stream->work);
    ptx_writes_free(stream->unseen);
}

sim_stream *sim_cuda_streams(void) {
    return streams;
}

static bool is_blocking(const sim_stream *stream) {
    return !sim_cuda_is_legacy(stream) && !(stream->flags & KILN__CU_STREAM_NON_BLOCKING);
}

/* Whether work of another stream, enqueued before, must be done first: between the legacy stream and blocking ones. */
static bool is_held(const sim_stream *stream) {
    bool legacy = sim_cuda_is_legacy(stream);
    for (const sim_stream *other = streams; other; other = other->next) {
        bool related = legacy ? is_blocking(other) : is_blocking(stream) && sim_cuda_is_legacy(other);
        if (!related || other->context != stream->context) continue;
        if (other->calls || (other->work.first && other->work.first->ticket < stream->work.first->ticket)) return true;
    }
    return false;
}

/* Its next piece of work can be done, by this thread or another. */
static bool is_due(const sim_stream *stream) {
    const sim_node *head = stream->work.first;
    return head && !stream->calls && (!head->waits || head->mark->reached) && !is_held(stream);
}

static bool is_ready(const sim_stream *stream) {
    return is_due(stream) && (!stream->work.first->host || is_caller || !has_caller);
}

/* A kernel at fault ends everything that its context had to do. */
static void abandon(const sim_context *context) {
    for (sim_stream *stream = streams; stream; stream = stream->next) {
        for (sim_node *node = stream->work.first; node && stream->context == context; node = node->next)
            if (node->mark && !node->waits) node->mark->reached = true;
        if (stream->context == context) sim_cuda_nodes_free(&stream->work);
    }
}

static bool is_there(const void *address, size_t size) {
    const sim_memory *found = sim_memory_find(address, size);
    return found && !found->absent;
}

static void fill(const sim_node *node) {
    uint8_t *to = node->to;
    if (node->width == 1) {
        memset(to, (int)node->value, node->size);
        return;
    }
    for (size_t at = 0; at < node->size; at += node->width)
        memcpy(to + at, &node->value, node->width);
}

/* Copies or fills. The memory may have gone since the call, or not be there yet, where no stream's order forbids it. */
static void move(sim_context *context, const sim_node *node) {
    if ((node->to_device && !is_there(node->to, node->size)) ||
        (node->from_device && !is_there(node->from, node->size))) {
        fprintf(stderr,
                "sim: a copy or fill of %zu bytes at %p comes before its memory is allocated, or after its end\n",
                node->size, node->to);
        context->fault = SIM_CUDA_ILLEGAL_ADDRESS;
        sim_noticed();
        return;
    }
    if (node->from)
        memmove(node->to, node->from, node->size);
    else
        fill(node);
    sim_memory_wrote(node->to, node->size);
}

/* The next launch of the stream may begin early if it was enqueued before this one is done, and says so. */
static void execute(sim_stream *stream, sim_node *node) {
    const sim_node *next = stream->work.first;
    ptx_writes *front = stream->unseen, *writes = next && next->launch.overlap ? ptx_writes_new() : NULL;
    sim_cuda_execute(stream->context, node->function, node->arguments, &node->launch, front, writes);
    if (writes && front) ptx_writes_follow(writes, front);
    ptx_writes_free(front);
    stream->unseen = writes;
    sim_launch_add(&node->launch);
}

/* Others go on meanwhile; the stream does not, and stays. */
static void call(sim_stream *stream, const sim_node *node) {
    stream->calls = is_called = true;
    sim_unlock();
    node->host(node->host_data);
    sim_lock();
    stream->calls = is_called = false;
}

bool sim_cuda_is_called(const char *function) {
    if (is_called) sim_violation("%s: in a function that a stream calls (cuLaunchHostFunc)", function);
    return is_called;
}

static void node_do(sim_stream *stream, sim_node *node) {
    if (node->function) {
        execute(stream, node);
    } else if (node->host) {
        call(stream, node);
    } else if (node->turn) {
        sim_cuda_memory_turn(node);
    } else if (node->mark) {
        if (node->waits) return;
        node->mark->reached = true;
        node->mark->tick = ++ticks;
    } else {
        move(stream->context, node);
    }
}

/* Does the first piece of work of one of the streams that can go on. False if none can. */
static bool step_ready(void) {
    uint64_t ready = 0;
    for (const sim_stream *stream = streams; stream; stream = stream->next)
        ready += is_ready(stream);
    if (!ready) return false;
    uint64_t chosen = sim_chance() % ready;
    sim_stream *stream = streams;
    while (!is_ready(stream) || chosen--)
        stream = stream->next;
    sim_node *node = node_take(&stream->work);
    node_do(stream, node);
    node_free(node);
    if (stream->context->fault) abandon(stream->context);
    return true;
}

static void pause_for(long microseconds) {
    sim_unlock();
    nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
    sim_lock();
}

/* The same, or waits a moment for what the host's functions do. False if that is nothing. */
static bool step(void) {
    enum { A_MOMENT = 50 };
    if (step_ready()) return true;
    bool waits = false;
    for (const sim_stream *stream = streams; stream; stream = stream->next)
        waits |= stream->calls || is_due(stream);
    if (waits) pause_for(A_MOMENT);
    return waits;
}

static bool is_finished(const sim_stream *stream) {
    return !stream->work.first && !stream->calls;
}

/* ---- Functions of the host's ---- */

static bool has_calls(void) {
    for (const sim_stream *stream = streams; stream; stream = stream->next)
        for (const sim_node *node = stream->work.first; node; node = node->next)
            if (node->host) return true;
    return false;
}

/* Patient, so that the order of what a program's own calls do stays with the seed. */
static void *caller(void *unused) {
    enum { PATIENCE = 2000 };
    (void)unused;
    is_caller = true;
    sim_lock();
    while (has_calls()) {
        const uint64_t seen = tickets;
        pause_for(PATIENCE);
        while (seen == tickets && has_calls() && step_ready())
            ;
    }
    has_caller = false;
    sim_unlock();
    return NULL;
}

static void caller_start(void) {
    pthread_t thread;
    sigset_t all, old;
    if (has_caller || !sim_threads()) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    has_caller = pthread_create(&thread, NULL, caller, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (has_caller) pthread_detach(thread);
}

kiln__cu_result sim_cuda_finish(const sim_stream *stream) {
    while (!is_finished(stream) && step())
        ;
    sim_cuda_runtime_flush(stream->context);
    return (kiln__cu_result)stream->context->fault;
}

kiln__cu_result sim_cuda_reach(const sim_context *context, const sim_mark *mark) {
    while (!mark->reached && step())
        ;
    sim_cuda_runtime_flush(context);
    return (kiln__cu_result)context->fault;
}

kiln__cu_result sim_cuda_finish_all(const sim_context *context) {
    bool finished = false;
    while (!finished) {
        finished = true;
        for (const sim_stream *stream = streams; stream && finished; stream = stream->next)
            finished = stream->context != context || is_finished(stream);
        if (!finished && !step()) break;
    }
    sim_cuda_runtime_flush(context);
    return (kiln__cu_result)context->fault;
}

void sim_cuda_pass(void) {
    while (sim_chance() % 2 && step_ready())
        ;
}

/* ---- Enqueueing ---- */

kiln__cu_result sim_cuda_submit(sim_stream *stream, const sim_node *node) {
    sim_node *added = node_copy(node);
    if (!added) return SIM_CUDA_OUT_OF_MEMORY;
    sim_nodes *nodes = stream->capture ? &stream->capture->nodes : &stream->work;
    added->ticket = stream->capture ? 0 : ++tickets;
    added->lane = stream->capture ? stream->lane : 0;
    if (nodes->last)
        nodes->last->next = added;
    else
        nodes->first = added;
    nodes->last = added;
    if (added->host && !stream->capture) caller_start();
    if (!stream->capture) sim_cuda_pass(); /* the device is at work meanwhile */
    return SIM_CUDA_SUCCESS;
}
