#include "loader/call.h"
#include "loader/kept.h"
#include <string.h>

/* ---- The table --------------------------------------------------------------------------------------------------- */

enum { SLOTS_LOG2 = 12, NOT_KEPT = KILN__CALL_LAUNCHES + 1 };

/* What a call's launches depend on besides its parameters. Device numbers are never reused; a CUDA stream's state
 * determines whether its kernels overlap. */
typedef struct kept_for {
    uint64_t device_number;
    uint64_t operator_slot;
    const void *stream_state;
} kept_for;

typedef struct kept_call {
    kiln__kept users;
    kept_for made_for; /* all zero: the slot is empty */
    char params[KILN__CALL_PARAMS_BYTES];
    kiln__call_launches made;
} kept_call;

static kept_call calls[1 << SLOTS_LOG2];

/* The innermost call that the thread is making. */
static _Thread_local kiln__call *current;

static kept_for stream_of(const kiln_stream *stream, unsigned slot) {
    return (kept_for){stream->device->number, slot, stream->state};
}

static inline uint64_t turned(uint64_t word) {
    return word << 9 | word >> 55;
}

/* Hashes with two independent sums, which the processor can compute in parallel. */
static kept_call *slot_of(const kept_for *made_for, const char *params, size_t size) {
    uint64_t sums[2] = {made_for->device_number, made_for->operator_slot};
    for (; size >= sizeof sums; size -= sizeof sums, params += sizeof sums) {
        uint64_t words[2];
        memcpy(words, params, sizeof words);
        sums[0] = turned(sums[0]) ^ words[0];
        sums[1] = turned(sums[1]) ^ words[1];
    }
    uint64_t rest = 0;
    if (size) memcpy(&rest, params, sizeof rest);
    const uint64_t mixed = (sums[0] ^ rest) * 0x9e3779b97f4a7c15u + sums[1] * 0xbf58476d1ce4e5b9u;
    return &calls[(mixed ^ mixed >> 32) * 0x9e3779b97f4a7c15u >> (64 - SLOTS_LOG2)];
}

static bool is_same(const kept_call *at, const kept_for *made_for, const void *params, size_t size) {
    return at->made_for.device_number == made_for->device_number &&
           at->made_for.operator_slot == made_for->operator_slot &&
           at->made_for.stream_state == made_for->stream_state && memcmp(at->params, params, size) == 0;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* Whether calls on the stream are kept: its device is a GPU that is not traced, not lost and does not plan. */
static bool keeps_calls(const kiln_stream *stream) {
    const kiln_device *device = stream ? stream->device : NULL;
    return device && device->number && atomic_load_explicit(device->state, memory_order_relaxed) == KILN__READY;
}

static kiln_status launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                          const void *arguments, size_t arguments_size) {
    if (KILN__UNLIKELY(config->cluster[0] | config->cluster[1] | config->cluster[2]))
        return kiln_launch(stream, kernel, config, arguments, arguments_size);
    return kiln__operator_launch(stream, kernel, config, arguments, arguments_size);
}

static kiln_status launch_all(kiln_stream *stream, const kiln__call_launches *made) {
    for (unsigned i = 0; i < made->count; i++) {
        const kiln__call_launch_of *one = &made->launches[i];
        KILN__TRY(launch(stream, one->kernel, &one->config, made->arguments + one->at, one->size));
    }
    return KILN_OK;
}

bool kiln__call_again(kiln_stream *stream, unsigned slot, const void *params, size_t params_size,
                      kiln_status *out_status) {
    if (!params || !keeps_calls(stream)) return false;
    const kept_for made_for = stream_of(stream, slot);
    kept_call *at = slot_of(&made_for, params, params_size);
    if (!kiln__kept_read_begin(&at->users)) return false;
    const bool found = is_same(at, &made_for, params, params_size);
    if (found) {
        if (current) current->made.count = NOT_KEPT;
        *out_status = launch_all(stream, &at->made);
    }
    kiln__kept_read_end(&at->users);
    return found;
}

void kiln__call_begin(kiln__call *call) {
    call->outer = current;
    call->made.count = 0;
    if (current) current->made.count = NOT_KEPT;
    current = call;
}

kiln_status kiln__call_end(kiln__call *call, const kiln_stream *stream, unsigned slot, const void *params,
                           size_t params_size, kiln_status status) {
    const kiln__call_launches *made = &call->made;
    current = call->outer;
    if (status != KILN_OK || !params_size || !made->count || made->count == NOT_KEPT || !keeps_calls(stream))
        return status;
    const kept_for made_for = stream_of(stream, slot);
    kept_call *at = slot_of(&made_for, params, params_size);
    if (!kiln__kept_write_begin(&at->users)) return status;
    at->made_for = made_for;
    memcpy(at->params, params, params_size);
    at->made = *made;
    kiln__kept_write_end(&at->users);
    return status;
}

/* Records a launch of the call. If there is no room for it, marks the call as not to be kept. */
static void note(kiln__call_launches *made, const kiln_kernel *kernel, const kiln_launch_config *config,
                 const void *arguments, size_t size) {
    size_t at = 0;
    if (made->count && made->count <= KILN__CALL_LAUNCHES)
        at = ((size_t)made->launches[made->count - 1].at + made->launches[made->count - 1].size + 15) & ~(size_t)15;
    if (made->count >= KILN__CALL_LAUNCHES || at + size > sizeof made->arguments) {
        made->count = NOT_KEPT;
        return;
    }
    made->launches[made->count++] = (kiln__call_launch_of){kernel, *config, (uint32_t)at, (uint32_t)size};
    memcpy(made->arguments + at, arguments, size);
}

kiln_status kiln__call_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                              const void *arguments, size_t arguments_size) {
    if (current) note(&current->made, kernel, config, arguments, arguments_size);
    return launch(stream, kernel, config, arguments, arguments_size);
}
