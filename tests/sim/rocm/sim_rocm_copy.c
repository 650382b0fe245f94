/* The copy engine: a thread that runs the copies whose dependencies are met, in an order of its own. It knows nothing
 * of queues. */
#include "tests/sim/rocm/sim_rocm.h"
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { COPY_ROOM = 4096, DEPENDENCY_MAX = 8 };

/* One side of a copy: rows of some layers. */
typedef struct sim_side {
    uint8_t *bytes;
    size_t pitch, slice, extent; /* extent: from the first byte to behind the last */
} sim_side;

typedef struct sim_copy {
    sim_side destination, source;
    size_t size; /* of a row */
    uint32_t rows, layers;
    kiln__hsa_signal dependencies[DEPENDENCY_MAX];
    uint32_t dependency_count;
    kiln__hsa_signal completion;
    bool stranded; /* waits for ever */
} sim_copy;

static sim_copy copies[COPY_ROOM]; /* those that wait, in no order */
static uint32_t copy_count;
static sim_copy current; /* the one that runs; size 0: none */
static bool failing, running, timed;

static bool is_ready(const sim_copy *copy) {
    for (uint32_t i = 0; i < copy->dependency_count; i++) {
        const sim_signal *signal = sim_rocm_signal(copy->dependencies[i]);
        if (!signal) sim_violation("a signal was destroyed while a copy waits for it");
        if (signal && signal->value != 0) return false;
    }
    return true;
}

static bool any_ready(const sim_turn *unused) {
    (void)unused;
    for (uint32_t i = 0; i < copy_count; i++)
        if (is_ready(&copies[i])) return true;
    return false;
}

/* One of the copies that are ready, drawn from the seed. */
static void draw(void) {
    const uint32_t first = sim_rocm_random(copy_count);
    for (uint32_t i = 0; i < copy_count; i++) {
        const uint32_t at = (first + i) % copy_count;
        if (!is_ready(&copies[at])) continue;
        current = copies[at];
        copies[at] = copies[--copy_count];
        return;
    }
}

static void move(const sim_copy *copy) {
    for (uint32_t layer = 0; layer < copy->layers; layer++)
        for (uint32_t row = 0; row < copy->rows; row++)
            memcpy(copy->destination.bytes + layer * copy->destination.slice + row * copy->destination.pitch,
                   copy->source.bytes + layer * copy->source.slice + row * copy->source.pitch, copy->size);
}

static void tell_written(const sim_copy *copy) {
    for (uint32_t layer = 0; layer < copy->layers; layer++)
        for (uint32_t row = 0; row < copy->rows; row++)
            sim_memory_wrote(copy->destination.bytes + layer * copy->destination.slice + row * copy->destination.pitch,
                             copy->size);
}

static void complete(const sim_copy *copy, uint64_t begin, bool failed) {
    sim_signal *signal = sim_rocm_signal(copy->completion);
    if (signal && timed) {
        signal->start = begin;
        signal->end = sim_rocm_ticks();
    }
    sim_rocm_signal_add(copy->completion, failed ? -2 : -1);
}

/* Fine-grained: the bytes appear while other threads look on, so they are moved outside the lock. */
static void run_current(void) {
    const sim_copy copy = current;
    const uint32_t delay = sim_rocm_delay();
    const bool fails = failing;
    const uint64_t begin = sim_rocm_ticks();
    sim_rocm_unlock();
    if (delay) nanosleep(&(struct timespec){.tv_nsec = (long)delay * 1000}, NULL);
    if (!fails) move(&copy);
    sim_rocm_lock();
    if (!fails) tell_written(&copy);
    current.size = 0;
    complete(&copy, begin, fails);
}

static void work(sim_turn *unused) {
    (void)unused;
    draw();
    run_current();
}

static void *engine(void *argument) {
    sim_rocm_lock();
    for (;;)
        sim_rocm_turn_await(argument);
    return NULL;
}

static void engine_start(void) {
    static sim_turn turn = {.is_ready = any_ready, .work = work};
    pthread_t thread;
    if (running) return;
    if (sim_rocm_has_threads()) {
        if (pthread_create(&thread, NULL, engine, &turn) != 0) return;
        pthread_detach(thread);
    }
    sim_rocm_turn_join(&turn);
    running = true;
}

/* Takes a copy whose ranges and shape are set. */
static kiln__hsa_status take(sim_copy *copy, uint32_t dependency_count, const kiln__hsa_signal *dependencies) {
    const sim_signal *signal = sim_rocm_signal(copy->completion);
    SIM_HSA_RULE(dependency_count <= DEPENDENCY_MAX && copy_count < COPY_ROOM, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_memory_async_copy: too many to wait for");
    SIM_HSA_RULE(signal && signal->value >= 1, SIM_HSA_ERROR_INVALID_SIGNAL,
                 "hsa_amd_memory_async_copy: the completion signal is not live or not 1 or more");
    copy->dependency_count = dependency_count;
    for (uint32_t i = 0; i < dependency_count; i++) {
        SIM_HSA_RULE(sim_rocm_signal(dependencies[i]), SIM_HSA_ERROR_INVALID_SIGNAL,
                     "hsa_amd_memory_async_copy: dependency %u is no live signal", i);
        copy->dependencies[i] = dependencies[i];
    }
    copies[copy_count++] = *copy;
    sim_rocm_strand_copies();
    engine_start();
    sim_rocm_handed_over();
    return KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status hsa_amd_memory_async_copy(void *destination, kiln__hsa_agent destination_agent, const void *source,
                                           kiln__hsa_agent source_agent, size_t size, uint32_t dependency_count,
                                           const kiln__hsa_signal *dependencies, kiln__hsa_signal completion) {
    SIM_HSA_ENTER();
    if (!sim_rocm_is_agent(destination_agent) || !sim_rocm_is_agent(source_agent)) return SIM_HSA_ERROR_INVALID_AGENT;
    const int32_t to = sim_rocm_device(destination_agent), from = sim_rocm_device(source_agent);
    const int32_t device = to >= 0 ? to : from;
    SIM_HSA_RULE(device >= 0, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_memory_async_copy: no GPU");
    sim_copy copy = {
        .destination = {.bytes = sim_rocm_resolve(device, destination, size), .extent = size},
        .source = {.bytes = sim_rocm_resolve(device, source, size), .extent = size},
        .size = size,
        .rows = 1,
        .layers = 1,
        .completion = completion,
    };
    SIM_HSA_RULE(copy.destination.bytes && copy.source.bytes, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_memory_async_copy: the device cannot reach %zu bytes at %p", size,
                 copy.destination.bytes ? source : destination);
    return take(&copy, dependency_count, dependencies);
}

/* One side as the device reaches it; its bytes are NULL if it does not. */
static sim_side side_of(int32_t device, const sim_pitched *memory, const kiln__hsa_dim3 *offset,
                        const kiln__hsa_dim3 *range) {
    sim_side side = {.pitch = memory->pitch, .slice = memory->slice};
    const size_t first = offset->z * memory->slice + offset->y * memory->pitch + offset->x;
    side.extent = (range->z - 1) * memory->slice + (range->y - 1) * memory->pitch + range->x;
    side.bytes = sim_rocm_resolve(device, (const uint8_t *)memory->base + first, side.extent);
    return side;
}

static bool is_of_words(const sim_pitched *memory) {
    return (((uintptr_t)memory->base | memory->pitch | memory->slice) & 3) == 0;
}

kiln__hsa_status hsa_amd_memory_async_copy_rect(const sim_pitched *destination,
                                                const kiln__hsa_dim3 *destination_offset, const sim_pitched *source,
                                                const kiln__hsa_dim3 *source_offset, const kiln__hsa_dim3 *range,
                                                kiln__hsa_agent agent, uint32_t direction, uint32_t dependency_count,
                                                const kiln__hsa_signal *dependencies, kiln__hsa_signal completion) {
    enum { DIRECTION_MAX = 3 };
    SIM_HSA_ENTER();
    const int32_t device = sim_rocm_device(agent);
    if (device < 0) return SIM_HSA_ERROR_INVALID_AGENT;
    SIM_HSA_RULE(destination && destination_offset && source && source_offset && range && range->x && range->y &&
                     range->z && direction <= DIRECTION_MAX,
                 SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_amd_memory_async_copy_rect: NULL or nothing to copy");
    SIM_HSA_RULE(is_of_words(destination) && is_of_words(source), SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_memory_async_copy_rect: memory, pitch or slice is not aligned to 4 bytes");
    sim_copy copy = {
        .destination = side_of(device, destination, destination_offset, range),
        .source = side_of(device, source, source_offset, range),
        .size = range->x,
        .rows = range->y,
        .layers = range->z,
        .completion = completion,
    };
    SIM_HSA_RULE(copy.destination.bytes && copy.source.bytes, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_memory_async_copy_rect: the device cannot reach the %s",
                 copy.destination.bytes ? "source" : "destination");
    return take(&copy, dependency_count, dependencies);
}

kiln__hsa_status hsa_amd_profiling_async_copy_enable(bool on) {
    SIM_HSA_ENTER();
    timed = on;
    return KILN__HSA_STATUS_SUCCESS;
}

static bool overlap(const void *a, size_t a_size, const void *b, size_t b_size) {
    const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
    return x < y + b_size && y < x + a_size;
}

static bool uses(const sim_copy *copy, const void *memory, size_t size) {
    return overlap(copy->destination.bytes, copy->destination.extent, memory, size) ||
           overlap(copy->source.bytes, copy->source.extent, memory, size);
}

bool sim_rocm_copy_uses(const void *memory, size_t size) {
    if (current.size && uses(&current, memory, size)) return true;
    for (uint32_t i = 0; i < copy_count; i++)
        if (!copies[i].stranded && uses(&copies[i], memory, size)) return true;
    return false;
}

/* True if a copy that is stranded itself was to complete the signal. */
static bool is_of_stranded(kiln__hsa_signal signal) {
    for (uint32_t i = 0; i < copy_count; i++)
        if (copies[i].stranded && copies[i].completion.handle == signal.handle) return true;
    return false;
}

static bool waits_for_ever(const sim_copy *copy) {
    for (uint32_t i = 0; i < copy->dependency_count; i++)
        if (sim_rocm_never_completes(copy->dependencies[i]) || is_of_stranded(copy->dependencies[i])) return true;
    return false;
}

void sim_rocm_strand_copies(void) {
    for (uint32_t i = 0; i < copy_count; i++) {
        if (copies[i].stranded || !waits_for_ever(&copies[i])) continue;
        copies[i].stranded = true;
        i = UINT32_MAX; /* others may wait for this one: from the first again */
    }
}

uint64_t kiln_sim_rocm_copies(void) {
    SIM_HSA_LOCK();
    return copy_count + (current.size != 0);
}

void kiln_sim_rocm_copy_error(int on) {
    SIM_HSA_LOCK();
    failing = on;
}
