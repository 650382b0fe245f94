/* Queues, each with a packet processor on a thread of its own.
 *
 * A packet is taken when its doorbell rings: its header becomes INVALID and the read index moves on, although the
 * packet is done much later. So a read index proves nothing about kernargs, as with the real hardware. Packets are
 * completed in order, since every one that kiln writes has the barrier bit. */
#include "tests/sim/rocm/sim_rocm.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAKEN_AHEAD = 96, PACKET_SIZE = 64 };

/* A packet taken and not done. */
typedef struct sim_taken {
    kiln__hsa_dispatch_packet packet;
    uint32_t kernarg_size;
    uint64_t checksum; /* of the kernargs when the doorbell rang */
} sim_taken;

/* What a doorbell found out about a packet that is still in the ring. */
typedef struct sim_rung {
    bool rung;
    uint32_t kernarg_size;
    uint64_t checksum;
} sim_rung;

typedef struct sim_queue {
    kiln__hsa_queue native; /* first: the handle points to it */
    sim_turn turn;
    int32_t device;
    uint64_t read_index, write_index;
    sim_rung *rung; /* one for each packet of the ring */
    sim_taken taken[TAKEN_AHEAD];
    uint32_t taken_first, taken_count;
    kiln__hsa_queue_callback callback;
    void *callback_data;
    kiln__hsa_status refused; /* a packet, or its kernel stopped: what the callback is to be told */
    bool profiled, stopped, closing;
    bool threaded; /* it has a thread */
    pthread_t thread;
} sim_queue;

/* What the runtime makes of a time that is 0: long ago, and not 0. */
enum { UNTIMED_TICKS = 1000 };
static bool held, untimed;
static uint64_t completed;

/* The headers of the last packets that were taken, of all queues. */
enum { HEADERS_KEPT = 64 };
static uint16_t headers[HEADERS_KEPT];
static uint64_t headers_count;

static uint64_t checksum(const void *bytes, size_t size) {
    uint64_t sum = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return sum;
}

static kiln__hsa_dispatch_packet *packet_at(const sim_queue *queue, uint64_t index) {
    return (kiln__hsa_dispatch_packet *)queue->native.base_address + (index & (queue->native.size - 1));
}

static uint32_t header_of(const kiln__hsa_dispatch_packet *packet) {
    return __atomic_load_n((const uint32_t *)(const void *)packet, __ATOMIC_ACQUIRE);
}

/* ---- Taking ---- */

static void stop(sim_queue *queue) {
    queue->stopped = true;
    sim_rocm_strand_copies();
    sim_rocm_changed();
}

/* The processor's thread tells the callback, as the runtime does on a thread of its own: whoever rings the doorbell may
 * hold locks that the callback takes. */
static void refuse(sim_queue *queue, kiln__hsa_status status) {
    if (!queue->stopped) queue->refused = status;
    stop(queue);
}

/* Checks every packet that was published up to the one whose doorbell rang. */
static void check_published(sim_queue *queue, uint64_t last) {
    for (uint64_t index = queue->read_index; index <= last; index++) {
        const kiln__hsa_dispatch_packet *packet = packet_at(queue, index);
        sim_rung *rung = &queue->rung[index & (queue->native.size - 1)];
        if (rung->rung || (header_of(packet) & 0xff) == KILN__HSA_PACKET_TYPE_INVALID) continue;
        *rung = (sim_rung){.rung = true};
        const kiln__hsa_status status = sim_rocm_packet_check(packet, queue->device, &rung->kernarg_size);
        if (status != KILN__HSA_STATUS_SUCCESS) refuse(queue, status);
        if (rung->kernarg_size) rung->checksum = checksum(packet->kernarg_address, rung->kernarg_size);
    }
}

static void take_ready(sim_queue *queue) {
    while (!queue->stopped && queue->taken_count < TAKEN_AHEAD) {
        kiln__hsa_dispatch_packet *packet = packet_at(queue, queue->read_index);
        sim_rung *rung = &queue->rung[queue->read_index & (queue->native.size - 1)];
        if (!rung->rung) return;
        sim_taken *taken = &queue->taken[(queue->taken_first + queue->taken_count++) % TAKEN_AHEAD];
        *taken = (sim_taken){*packet, rung->kernarg_size, rung->checksum};
        rung->rung = false;
        headers[headers_count++ % HEADERS_KEPT] = packet->header;
        __atomic_store_n((uint32_t *)(void *)packet, KILN__HSA_PACKET_TYPE_INVALID, __ATOMIC_RELEASE);
        queue->read_index++;
    }
}

void sim_rocm_doorbell(sim_queue *queue, uint64_t index) {
    if (index >= queue->write_index) {
        sim_violation("doorbell of packet %llu, which is not reserved", (unsigned long long)index);
        return;
    }
    if (index < queue->read_index) return; /* taken at the doorbell of a later packet, by another thread */
    check_published(queue, index);
    if (!queue->rung[index & (queue->native.size - 1)].rung)
        sim_violation("doorbell of packet %llu, whose header is still INVALID", (unsigned long long)index);
    take_ready(queue);
    if (queue->stopped) sim_rocm_strand_copies();
    sim_rocm_handed_over();
}

/* ---- Completing ---- */

/* True when all signals that a barrier-AND packet depends on are 0; of a barrier-OR packet, any. */
static bool dependencies_met(const kiln__hsa_dispatch_packet *packet) {
    const uint32_t type = packet->header & 0xff;
    const bool any = type == SIM_PACKET_BARRIER_OR;
    if (type != KILN__HSA_PACKET_TYPE_BARRIER_AND && !any) return true;
    const kiln__hsa_barrier_packet *barrier = (const void *)packet;
    for (int i = 0; i < 5; i++) {
        if (!barrier->dep_signal[i].handle) continue;
        const sim_signal *signal = sim_rocm_signal(barrier->dep_signal[i]);
        if (!signal) {
            sim_violation("a signal was destroyed while a barrier packet waits for it");
        } else if ((signal->value == 0) == any) {
            return any;
        }
    }
    return !any;
}

static sim_queue *queue_of_turn(const sim_turn *turn) {
    return (sim_queue *)((uintptr_t)turn - offsetof(sim_queue, turn));
}

static bool is_ready(const sim_turn *turn) {
    const sim_queue *queue = queue_of_turn(turn);
    if (queue->refused != KILN__HSA_STATUS_SUCCESS) return true;
    return queue->taken_count && !queue->stopped && !held && dependencies_met(&queue->taken[queue->taken_first].packet);
}

/* Runs the packet. A kernel at fault is never done: its queue stops. */
static bool run(sim_queue *queue) {
    const sim_taken *taken = &queue->taken[queue->taken_first];
    const kiln__hsa_dispatch_packet *packet = &taken->packet;
    sim_report report;
    if ((packet->header & 0xff) != KILN__HSA_PACKET_TYPE_KERNEL_DISPATCH) return true;
    if (taken->kernarg_size && !sim_memory_find(packet->kernarg_address, taken->kernarg_size)) {
        sim_violation("kernargs were freed before their kernel was done");
        return true;
    }
    if (taken->kernarg_size && checksum(packet->kernarg_address, taken->kernarg_size) != taken->checksum)
        sim_violation("kernargs were rewritten before their kernel was done");
    if (sim_rocm_packet_run(packet, queue->device, &queue->native, &report)) return true;
    sim_rocm_unlock();
    const kiln__hsa_status status = sim_rocm_fault(queue->device, &report);
    sim_rocm_lock();
    if (status != KILN__HSA_STATUS_SUCCESS) refuse(queue, status);
    return false;
}

static void complete(sim_queue *queue, uint64_t begin) {
    const sim_taken *taken = &queue->taken[queue->taken_first];
    const kiln__hsa_dispatch_packet *packet = &taken->packet;
    if (packet->completion_signal.handle) {
        sim_signal *signal = sim_rocm_signal(packet->completion_signal);
        if (signal && queue->profiled) {
            signal->start = untimed ? UNTIMED_TICKS : begin;
            signal->end = untimed ? UNTIMED_TICKS : sim_rocm_ticks();
            signal->device = queue->device;
        }
        sim_rocm_signal_add(packet->completion_signal, -1);
    }
    queue->taken_first = (queue->taken_first + 1) % TAKEN_AHEAD;
    queue->taken_count--;
    completed++;
    take_ready(queue);
    sim_rocm_changed();
}

static void tell_refusal(sim_queue *queue) {
    const kiln__hsa_status status = queue->refused;
    queue->refused = KILN__HSA_STATUS_SUCCESS;
    if (!queue->callback) return;
    sim_rocm_unlock();
    queue->callback(status, &queue->native, queue->callback_data);
    sim_rocm_lock();
}

static void delay(void) {
    const uint32_t microseconds = sim_rocm_delay();
    if (!microseconds) return;
    sim_rocm_unlock();
    nanosleep(&(struct timespec){.tv_nsec = (long)microseconds * 1000}, NULL);
    sim_rocm_lock();
}

static void work(sim_turn *turn) {
    sim_queue *queue = queue_of_turn(turn);
    if (queue->refused != KILN__HSA_STATUS_SUCCESS) {
        tell_refusal(queue);
        return;
    }
    const uint64_t begin = sim_rocm_ticks();
    delay();
    /* Another queue's fault stops this one, too, and what it was at is never done. */
    if (!queue->stopped && !queue->closing && run(queue) && !queue->stopped) complete(queue, begin);
}

static void *process(void *argument) {
    sim_queue *queue = argument;
    sim_rocm_lock();
    while (!queue->closing)
        sim_rocm_turn_await(&queue->turn);
    sim_rocm_unlock();
    return NULL;
}

/* ---- The driver's functions ---- */

static void doorbell_create(sim_queue *queue) {
    sim_signal *doorbell = sim_object_new(".doorbell", sizeof *doorbell);
    if (!doorbell) return;
    doorbell->doorbell_of = queue;
    queue->native.doorbell_signal.handle = (uint64_t)(uintptr_t)doorbell;
}

kiln__hsa_status hsa_queue_create(kiln__hsa_agent agent, uint32_t size, uint32_t type,
                                  kiln__hsa_queue_callback callback, void *data, uint32_t private_segment_size,
                                  uint32_t group_segment_size, kiln__hsa_queue **out_queue) {
    SIM_HSA_ENTER();
    const int32_t device = sim_rocm_device(agent);
    if (device < 0) return SIM_HSA_ERROR_INVALID_AGENT;
    SIM_HSA_RULE(out_queue && size >= 64 && size <= 131072 && !(size & (size - 1)) && type <= 2,
                 SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_queue_create: size %u or type %u", size, type);
    (void)private_segment_size; /* hints */
    (void)group_segment_size;
    sim_queue *queue = sim_object_new("queue", sizeof *queue);
    if (!queue) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
    queue->native = (kiln__hsa_queue){
        .type = type,
        .features = KILN__HSA_QUEUE_FEATURE_KERNEL_DISPATCH,
        .base_address = aligned_alloc(PACKET_SIZE, (size_t)size * PACKET_SIZE),
        .size = size,
        .id = (uint64_t)(uintptr_t)queue,
    };
    queue->rung = calloc(size, sizeof *queue->rung);
    queue->device = device;
    queue->callback = callback;
    queue->callback_data = data;
    /* Fresh packets are INVALID and otherwise full of rubbish. */
    memset(queue->native.base_address, 0xcd, (size_t)size * PACKET_SIZE);
    for (uint32_t i = 0; i < size; i++)
        packet_at(queue, i)->header = KILN__HSA_PACKET_TYPE_INVALID;
    doorbell_create(queue);
    queue->turn = (sim_turn){.is_ready = is_ready, .work = work};
    queue->threaded = sim_rocm_has_threads();
    sim_rocm_turn_join(&queue->turn);
    if (queue->threaded) pthread_create(&queue->thread, NULL, process, queue);
    *out_queue = &queue->native;
    return KILN__HSA_STATUS_SUCCESS;
}

static sim_queue *queue_of(const char *function, const kiln__hsa_queue *native) {
    if (sim_object_live("queue", native)) return (sim_queue *)(uintptr_t)native;
    sim_violation("%s: %p is no live queue", function, (const void *)native);
    return NULL;
}

kiln__hsa_status hsa_queue_destroy(kiln__hsa_queue *native) {
    int32_t planned = sim_enter(__func__);
    sim_rocm_lock();
    sim_queue *queue = sim_rocm_started(__func__) ? queue_of(__func__, native) : NULL;
    if (!queue) {
        sim_rocm_unlock();
        return SIM_HSA_ERROR_INVALID_QUEUE;
    }
    if (!queue->stopped && (queue->taken_count || queue->read_index != queue->write_index))
        sim_violation("hsa_queue_destroy with %llu packets that are not done",
                      (unsigned long long)(queue->write_index - queue->read_index + queue->taken_count));
    queue->closing = true;
    sim_rocm_changed();
    sim_rocm_unlock();
    if (queue->threaded) pthread_join(queue->thread, NULL);
    sim_rocm_lock();
    sim_rocm_turn_leave(&queue->turn);
    sim_object_delete(".doorbell", (void *)(uintptr_t)native->doorbell_signal.handle);
    free(native->base_address);
    free(queue->rung);
    sim_object_delete("queue", queue);
    sim_rocm_unlock();
    return planned == SIM_LIE ? KILN__HSA_STATUS_SUCCESS : (kiln__hsa_status)planned;
}

kiln__hsa_status hsa_queue_inactivate(kiln__hsa_queue *native) {
    SIM_HSA_ENTER_RELEASE();
    sim_queue *queue = queue_of(__func__, native);
    if (!queue) return SIM_HSA_ERROR_INVALID_QUEUE;
    stop(queue);
    sim_rocm_kernels_wait();
    SIM_HSA_RELEASED();
}

kiln__hsa_status hsa_amd_queue_get_info(kiln__hsa_queue *native, uint32_t attribute, void *value) {
    SIM_HSA_ENTER();
    SIM_HSA_RULE(attribute == KILN__HSA_AMD_QUEUE_INFO_AGENT && value, SIM_HSA_ERROR_INVALID_ARGUMENT,
                 "hsa_amd_queue_get_info: attribute %u", attribute);
    if (!sim_object_live("queue", native)) return SIM_HSA_ERROR_INVALID_QUEUE;
    *(kiln__hsa_agent *)value = (kiln__hsa_agent){SIM_GPU_AGENT + (uint64_t)((const sim_queue *)native)->device};
    return KILN__HSA_STATUS_SUCCESS;
}

uint64_t hsa_queue_add_write_index_relaxed(const kiln__hsa_queue *native, uint64_t value) {
    SIM_HSA_LOCK();
    sim_queue *queue = queue_of(__func__, native);
    if (!queue) return 0;
    const uint64_t index = queue->write_index;
    queue->write_index += value;
    return index;
}

uint64_t hsa_queue_add_write_index_screlease(const kiln__hsa_queue *native, uint64_t value) {
    return hsa_queue_add_write_index_relaxed(native, value);
}

uint64_t hsa_queue_load_write_index_relaxed(const kiln__hsa_queue *native) {
    SIM_HSA_LOCK();
    const sim_queue *queue = queue_of(__func__, native);
    return queue ? queue->write_index : 0;
}

uint64_t hsa_queue_load_write_index_scacquire(const kiln__hsa_queue *native) {
    return hsa_queue_load_write_index_relaxed(native);
}

/* For a queue that one thread alone writes. */
static void store_write_index(const char *function, const kiln__hsa_queue *native, uint64_t value) {
    SIM_HSA_LOCK();
    sim_queue *queue = queue_of(function, native);
    if (!queue) return;
    if (value < queue->write_index)
        sim_violation("%s: from %llu back to %llu", function, (unsigned long long)queue->write_index,
                      (unsigned long long)value);
    else
        queue->write_index = value;
}

void hsa_queue_store_write_index_relaxed(const kiln__hsa_queue *native, uint64_t value) {
    store_write_index(__func__, native, value);
}

void hsa_queue_store_write_index_screlease(const kiln__hsa_queue *native, uint64_t value) {
    store_write_index(__func__, native, value);
}

uint64_t hsa_queue_load_read_index_relaxed(const kiln__hsa_queue *native) {
    return hsa_queue_load_read_index_scacquire(native);
}

uint64_t hsa_queue_load_read_index_scacquire(const kiln__hsa_queue *native) {
    SIM_HSA_LOCK();
    const sim_queue *queue = queue_of(__func__, native);
    sim_rocm_asked();
    return queue ? queue->read_index : 0;
}

kiln__hsa_status hsa_amd_profiling_set_profiler_enabled(kiln__hsa_queue *native, int enable) {
    SIM_HSA_ENTER();
    sim_queue *queue = queue_of(__func__, native);
    if (!queue) return SIM_HSA_ERROR_INVALID_QUEUE;
    queue->profiled = enable;
    return KILN__HSA_STATUS_SUCCESS;
}

/* Of no consequence: nothing here takes time from another queue, and every block is computed all the same. */
kiln__hsa_status hsa_amd_queue_set_priority(kiln__hsa_queue *native, uint32_t priority) {
    enum { PRIORITY_HIGH = 2 };
    SIM_HSA_ENTER();
    if (!queue_of(__func__, native)) return SIM_HSA_ERROR_INVALID_QUEUE;
    return priority <= PRIORITY_HIGH ? KILN__HSA_STATUS_SUCCESS : SIM_HSA_ERROR_INVALID_ARGUMENT;
}

kiln__hsa_status hsa_amd_queue_cu_set_mask(const kiln__hsa_queue *native, uint32_t bits, const uint32_t *mask) {
    SIM_HSA_ENTER();
    if (!queue_of(__func__, native)) return SIM_HSA_ERROR_INVALID_QUEUE;
    return mask && bits && bits % 32 == 0 ? KILN__HSA_STATUS_SUCCESS : SIM_HSA_ERROR_INVALID_ARGUMENT;
}

/* ---- For the other files and the tests ---- */

typedef struct kernarg_range {
    uintptr_t begin, end;
} kernarg_range;

static bool uses_kernargs(const void *object, const void *context) {
    const sim_queue *queue = object;
    const kernarg_range *range = context;
    for (uint32_t i = 0; i < queue->taken_count && !queue->stopped; i++) {
        const sim_taken *taken = &queue->taken[(queue->taken_first + i) % TAKEN_AHEAD];
        const uintptr_t at = (uintptr_t)taken->packet.kernarg_address;
        if (taken->kernarg_size && at >= range->begin && at < range->end) return true;
    }
    return false;
}

bool sim_rocm_kernargs_in_flight(const void *memory, size_t size) {
    const kernarg_range range = {(uintptr_t)memory, (uintptr_t)memory + size};
    return sim_object_find("queue", uses_kernargs, &range);
}

static bool runs_on(const void *object, const void *context) {
    const sim_queue *queue = object;
    return queue->device == *(const int32_t *)context && !queue->stopped;
}

void sim_rocm_stop_queues(int32_t device, kiln__hsa_status status) {
    sim_queue *queue;
    sim_rocm_lock();
    while ((queue = sim_object_find("queue", runs_on, &device))) {
        stop(queue);
        if (!status || !queue->callback) continue;
        sim_rocm_unlock();
        queue->callback(status, &queue->native, queue->callback_data);
        sim_rocm_lock();
    }
    sim_rocm_unlock();
}

/* Of a stopped queue: packets that were taken, and those that were handed over since. */
static bool has_undone(const void *object, const void *context) {
    const sim_queue *queue = object;
    const kiln__hsa_signal *signal = context;
    if (!queue->stopped) return false;
    for (uint32_t i = 0; i < queue->taken_count; i++)
        if (queue->taken[(queue->taken_first + i) % TAKEN_AHEAD].packet.completion_signal.handle == signal->handle)
            return true;
    for (uint64_t index = queue->read_index; index < queue->write_index; index++)
        if (queue->rung[index & (queue->native.size - 1)].rung &&
            packet_at(queue, index)->completion_signal.handle == signal->handle)
            return true;
    return false;
}

bool sim_rocm_never_completes(kiln__hsa_signal signal) {
    return sim_object_find("queue", has_undone, &signal);
}

void kiln_sim_rocm_queue_error(int32_t device, uint32_t status) {
    sim_rocm_stop_queues(device, status);
}

void kiln_sim_rocm_hold(int on) {
    SIM_HSA_LOCK();
    held = on;
    sim_rocm_changed();
}

void kiln_sim_rocm_untimed(int on) {
    SIM_HSA_LOCK();
    untimed = on;
}

uint32_t kiln_sim_rocm_header(uint32_t back) {
    SIM_HSA_LOCK();
    return back < HEADERS_KEPT && back < headers_count ? headers[(headers_count - 1 - back) % HEADERS_KEPT] : 0;
}

uint64_t kiln_sim_rocm_completed(void) {
    SIM_HSA_LOCK();
    return completed;
}
