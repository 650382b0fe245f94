#include "scheduler.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct generation_list {
    generation *first, **end;
} generation_list;

struct scheduler {
    scheduler_options options;
    int32_t max_length;
    pthread_t worker;

    /* The queue, under its lock. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    generation_list submitted; /* since the worker looked */
    int32_t waiting_count;     /* submitted, or waiting */
    int64_t accepted, refused;
    bool opened, closing;

    /* The worker's own. */
    engine engine;
    generation_list waiting;
    double lost_at; /* seconds, of the last attempt to open the device; 0: it is open */
    kiln_status status;
    char reason[LLAMA_REASON_SIZE]; /* of the last failure */
};

/* ---- Lists ---- */

static void make_empty(generation_list *list) {
    list->first = NULL;
    list->end = &list->first;
}

static void append(generation_list *list, generation *g) {
    g->next = NULL;
    *list->end = g;
    list->end = &g->next;
}

/* Takes the one that `link` leads to out of the list. */
static generation *take(generation_list *list, generation **link) {
    generation *g = *link;
    *link = g->next;
    if (list->end == &g->next) list->end = link;
    return g;
}

/* ---- The queue ---- */

submit_result scheduler_submit(scheduler *s, generation *g) {
    submit_result result = SUBMIT_ACCEPTED;
    if (g->count >= s->max_length) return SUBMIT_TOO_LONG;
    g->limit = g->max_tokens < s->max_length - g->count ? g->count + g->max_tokens : s->max_length;
    pthread_mutex_lock(&s->lock);
    if (s->waiting_count < s->options.max_queue) {
        append(&s->submitted, g);
        s->waiting_count++;
        s->accepted++;
        pthread_cond_signal(&s->changed);
    } else {
        s->refused++;
        result = SUBMIT_FULL;
    }
    pthread_mutex_unlock(&s->lock);
    return result;
}

int32_t scheduler_max_length(const scheduler *s) {
    return s->max_length;
}

/* Waits until there is something to do, and takes what was submitted. False: the scheduler closes. */
static bool take_submitted(scheduler *s) {
    pthread_mutex_lock(&s->lock);
    while (!s->closing && !s->submitted.first && !s->waiting.first && !s->engine.running_count)
        pthread_cond_wait(&s->changed, &s->lock);
    if (s->submitted.first) {
        *s->waiting.end = s->submitted.first;
        s->waiting.end = s->submitted.end;
        make_empty(&s->submitted);
    }
    bool open = !s->closing;
    pthread_mutex_unlock(&s->lock);
    return open;
}

static void change_waiting(scheduler *s, int32_t by) {
    pthread_mutex_lock(&s->lock);
    s->waiting_count += by;
    pthread_mutex_unlock(&s->lock);
}

/* ---- The worker ---- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void end_waiting(scheduler *s, generation **link, generation_end why, const char *text) {
    generation *g = take(&s->waiting, link);
    change_waiting(s, -1);
    s->engine.counts.cancelled_requests += why == GENERATION_CANCELLED;
    s->engine.counts.failed_requests += why != GENERATION_CANCELLED;
    g->end(g, why, text);
}

static void end_everything(scheduler *s, generation_end why, const char *text) {
    engine_end_all(&s->engine, why, text);
    while (s->waiting.first)
        end_waiting(s, &s->waiting.first, why, text);
}

static void end_cancelled(scheduler *s) {
    for (generation **link = &s->waiting.first; *link;) {
        if ((*link)->is_cancelled(*link))
            end_waiting(s, link, GENERATION_CANCELLED, "cancelled");
        else
            link = &(*link)->next;
    }
}

/* Keeps why a call failed; the text is the thread's own, and gone with the next failure. */
static kiln_status keep_reason(scheduler *s, kiln_status status) {
    if (status != KILN_OK) llama_refuse(s->reason, kiln_status_text(status), kiln_last_error());
    return status;
}

static bool is_lost(const scheduler *s) {
    return s->lost_at > 0;
}

/* Opens the engine if it is lost and was not tried in the last second. */
static bool is_open(scheduler *s) {
    if (!is_lost(s)) return true;
    if (seconds() - s->lost_at < 1) return false;
    if (keep_reason(s, engine_open(&s->engine)) == KILN_OK)
        s->lost_at = 0;
    else
        s->lost_at = seconds();
    return !is_lost(s);
}

/* Lets those that wait run as far as there is room. One that does not fit keeps those behind it waiting, unless nothing
 * runs whose end it could wait for. */
static void admit(scheduler *s) {
    while (s->waiting.first) {
        if (engine_admit(&s->engine, s->waiting.first)) {
            take(&s->waiting, &s->waiting.first);
            change_waiting(s, -1);
        } else if (s->engine.running_count) {
            return;
        } else {
            end_waiting(s, &s->waiting.first, GENERATION_FAILED, kiln_last_error());
        }
    }
}

static void wait_again(scheduler *s, generation *preempted) {
    generation **link = &preempted;
    for (; *link; link = &(*link)->next)
        change_waiting(s, 1);
    if (!preempted) return;
    *link = s->waiting.first;
    if (!s->waiting.first) s->waiting.end = link;
    s->waiting.first = preempted;
}

static void step(scheduler *s) {
    generation *preempted;
    kiln_status status = keep_reason(s, engine_step(&s->engine, &preempted));
    wait_again(s, preempted);
    if (status == KILN_OK) return;
    engine_end_all(&s->engine, GENERATION_FAILED, s->reason);
    if (status != KILN_ERROR_DEVICE_LOST) return;
    end_everything(s, GENERATION_FAILED, s->reason);
    engine_close(&s->engine);
    s->lost_at = seconds();
}

static void observe(scheduler *s) {
    scheduler_counts counts = {.engine = s->engine.counts,
                               .running_requests = s->engine.running_count,
                               .total_blocks = s->options.engine.block_count};
    if (!s->options.observe) return;
    if (!is_lost(s)) counts.used_blocks = engine_used_blocks(&s->engine);
    pthread_mutex_lock(&s->lock);
    counts.accepted_requests = s->accepted;
    counts.refused_requests = s->refused;
    counts.waiting_requests = s->waiting_count;
    pthread_mutex_unlock(&s->lock);
    s->options.observe(s->options.user, &counts);
}

static void tell_opened(scheduler *s) {
    s->status = keep_reason(s, engine_open(&s->engine));
    pthread_mutex_lock(&s->lock);
    s->opened = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *argument) {
    scheduler *s = argument;
    tell_opened(s);
    if (s->status != KILN_OK) return NULL;
    while (take_submitted(s)) {
        end_cancelled(s);
        if (is_open(s)) {
            admit(s);
            step(s);
        } else {
            end_everything(s, GENERATION_FAILED, s->reason);
        }
        observe(s);
    }
    end_everything(s, GENERATION_CLOSED, "the model is being unloaded");
    if (!is_lost(s)) engine_close(&s->engine);
    return NULL;
}

/* ---- Life ---- */

static void release(scheduler *s) {
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->changed);
    free(s);
}

/* Waits until the worker has loaded the model, or has not. */
static kiln_status wait_until_opened(scheduler *s) {
    pthread_mutex_lock(&s->lock);
    while (!s->opened)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (s->status != KILN_OK) pthread_join(s->worker, NULL);
    return s->status;
}

kiln_status scheduler_create(const llama_checkpoint *checkpoint, const scheduler_options *options, scheduler **out,
                             char reason[LLAMA_REASON_SIZE]) {
    const int64_t capacity = (int64_t)options->engine.block_count * options->engine.block_size;
    scheduler *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s) {
        llama_refuse(reason, "the scheduler", "there is no memory for it");
        return KILN_ERROR_OUT_OF_MEMORY;
    }
    s->options = *options;
    s->engine = (engine){.checkpoint = checkpoint, .options = options->engine};
    s->max_length = capacity < checkpoint->config.length ? (int32_t)capacity : checkpoint->config.length;
    make_empty(&s->submitted);
    make_empty(&s->waiting);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    kiln_status status = KILN_ERROR_OUT_OF_MEMORY;
    if (pthread_create(&s->worker, NULL, work, s))
        llama_refuse(s->reason, "the scheduler", "the system gives it no thread");
    else
        status = wait_until_opened(s);
    if (status == KILN_OK) {
        *out = s;
        return status;
    }
    snprintf(reason, LLAMA_REASON_SIZE, "%s", s->reason);
    release(s);
    return status;
}

void scheduler_destroy(scheduler *s) {
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    s->closing = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->worker, NULL);
    release(s);
}
