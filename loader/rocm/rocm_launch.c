#include "loader/rocm/rocm_queue.h"
#include <string.h>

/* The shape of a launch, with zeros replaced by ones: threads of a block, and work-items of the grid. */
typedef struct launch_shape {
    uint32_t block[3];
    uint64_t grid[3];
} launch_shape;

static launch_shape shape_of(const kiln_launch_config *config) {
    const uint32_t x = kiln__at_least_one(config->block[0]), y = kiln__at_least_one(config->block[1]),
                   z = kiln__at_least_one(config->block[2]);
    return (launch_shape){{x, y, z},
                          {(uint64_t)kiln__at_least_one(config->grid[0]) * x,
                           (uint64_t)kiln__at_least_one(config->grid[1]) * y,
                           (uint64_t)kiln__at_least_one(config->grid[2]) * z}};
}

/* One dimension, no clusters, no flags (bit 0 is one, and is moved up) and within the limits: what most launches are. A
 * zero size is not, and wraps. */
static inline bool is_plain(const kiln__rocm_device *rocm, const kiln__rocm_kernel *function,
                            const kiln_launch_config *config) {
    const uint32_t ones = config->grid[1] | config->grid[2] | config->block[1] | config->block[2] | config->cluster[0] |
                          config->cluster[1] | config->cluster[2] | config->flags | config->flags << 1;
    return ones <= 1 && config->block[0] - 1 < function->line_max &&
           (uint64_t)config->grid[0] * config->block[0] - 1 < rocm->line_max &&
           config->dynamic_shared_bytes <= function->dynamic_max;
}

/* Says which limit a launch exceeds, if any. */
static kiln_status __attribute__((cold, noinline))
check_shape(const kiln__rocm_device *rocm, const kiln_kernel *kernel, const kiln_launch_config *config) {
    const kiln__rocm_kernel *function = kernel->function;
    const launch_shape shape = shape_of(config);
    if (config->flags) KILN__TRY(kiln__launch_flags_refuse(kernel, config));
    KILN__REQUIRE(config->dynamic_shared_bytes <= function->dynamic_max,
                  "kiln_launch: dynamic_shared_bytes is %u: kernel %s may have at most %u",
                  config->dynamic_shared_bytes, kernel->name, function->dynamic_max);
    for (int i = 0; i < 3; i++) {
        if (config->cluster[i] > 1)
            return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_launch: cluster[%d] is %u: rocm has no clusters", i,
                              config->cluster[i]);
        KILN__REQUIRE(shape.block[i] <= rocm->block_max[i], "kiln_launch: block[%d] is %u: at most %u", i,
                      shape.block[i], rocm->block_max[i]);
        KILN__REQUIRE(shape.grid[i] <= rocm->grid_max[i],
                      "kiln_launch: grid[%d] of %u blocks is %llu work-items: at most %u", i, config->grid[i],
                      (unsigned long long)shape.grid[i], rocm->grid_max[i]);
    }
    const uint64_t threads = (uint64_t)shape.block[0] * shape.block[1] * shape.block[2];
    KILN__REQUIRE(threads <= function->threads_max, "kiln_launch: block has %llu threads: kernel %s takes at most %u",
                  (unsigned long long)threads, kernel->name, function->threads_max);
    uint64_t items;
    KILN__REQUIRE(!__builtin_mul_overflow(shape.grid[0] * shape.grid[1], shape.grid[2], &items) &&
                      items <= rocm->grid_size_max,
                  "kiln_launch: grid is %u x %u x %u blocks of kernel %s: too large: at most %u work-items",
                  config->grid[0], config->grid[1], config->grid[2], kernel->name, rocm->grid_size_max);
    return KILN_OK;
}

static void __attribute__((cold, noinline))
write_shape(kiln__hsa_dispatch_packet *packet, const kiln_launch_config *config) {
    const launch_shape shape = shape_of(config);
    packet->workgroup_size_x = (uint16_t)shape.block[0];
    packet->workgroup_size_y = (uint16_t)shape.block[1];
    packet->workgroup_size_z = (uint16_t)shape.block[2];
    packet->reserved0 = 0;
    packet->grid_size_x = (uint32_t)shape.grid[0];
    packet->grid_size_y = (uint32_t)shape.grid[1];
    packet->grid_size_z = (uint32_t)shape.grid[2];
}

/* Writes the hidden arguments behind the explicit ones. Offsets and sizes were bounded when the kernel was loaded. */
static void __attribute__((noinline))
write_hidden(const kiln__rocm_kernel *function, const kiln_launch_config *config, uint8_t *kernarg) {
    const launch_shape shape = shape_of(config);
    const uint32_t *block = shape.block;
    const uint64_t values[KILN__HIDDEN_KIND_COUNT] = {
        [KILN__HIDDEN_BLOCK_COUNT_X] = kiln__at_least_one(config->grid[0]),
        [KILN__HIDDEN_BLOCK_COUNT_Y] = kiln__at_least_one(config->grid[1]),
        [KILN__HIDDEN_BLOCK_COUNT_Z] = kiln__at_least_one(config->grid[2]),
        [KILN__HIDDEN_GROUP_SIZE_X] = block[0],
        [KILN__HIDDEN_GROUP_SIZE_Y] = block[1],
        [KILN__HIDDEN_GROUP_SIZE_Z] = block[2],
        [KILN__HIDDEN_GRID_DIMS] = shape.grid[2] > 1   ? 3
                                   : shape.grid[1] > 1 ? 2
                                                       : 1,
        [KILN__HIDDEN_DYNAMIC_LDS_SIZE] = config->dynamic_shared_bytes,
    };
    memset(kernarg + function->arguments_bytes, 0, function->kernarg_bytes - function->arguments_bytes);
    for (uint32_t i = 0; i < function->hidden_count; i++)
        memcpy(kernarg + function->hidden[i].offset, &values[function->hidden[i].kind], function->hidden[i].size);
}

/* The section that a slot is in, of all slots that were ever taken. */
static inline uint32_t section_of(uint64_t slot) {
    return (uint32_t)(slot % KILN__ROCM_RING_SLOTS) / KILN__ROCM_SECTION_SLOTS;
}

/* Enters a section of the ring. Its slots are free once its last launch of the previous lap is done. */
static kiln_status __attribute__((cold, noinline)) enter_section(kiln__rocm_stream *stream, uint32_t section) {
    if (kiln__rocm.signal_load(stream->sections[section]) == 0) return KILN_OK;
    return kiln__rocm_wait(stream->rocm, stream->sections[section]);
}

/* The completion signal for the last launch of a section. */
static kiln__hsa_signal __attribute__((cold, noinline)) leave_section(kiln__rocm_stream *stream, uint32_t section) {
    kiln__rocm.signal_store_relaxed(stream->sections[section], 1);
    return stream->sections[section];
}

/* Starts the next section: the ring has come to its first slot, or the kernargs do not fit in what is left of the one
 * before, which a barrier packet then completes in place of a launch. */
static kiln_status __attribute__((cold, noinline)) start_section(kiln__rocm_stream *stream) {
    const uint32_t place = (uint32_t)(stream->slots % KILN__ROCM_SECTION_SLOTS);
    if (place) {
        const kiln__hsa_signal done = leave_section(stream, section_of(stream->slots));
        KILN__TRY(kiln__rocm_barrier(stream, (kiln__hsa_signal){0}, done));
        stream->slots += KILN__ROCM_SECTION_SLOTS - place;
    }
    return enter_section(stream, section_of(stream->slots));
}

/* Launches a kernel whose shape is within the limits. plain is a constant, so that what most launches are has no branch
 * for others. */
static inline __attribute__((always_inline)) kiln_status dispatch(kiln__rocm_stream *state,
                                                                  const kiln__rocm_kernel *function,
                                                                  const kiln_launch_config *config,
                                                                  const void *arguments, bool plain) {
    /* At a section's first slot, where place - 1 wraps, and where the kernargs do not fit behind place. */
    uint32_t place = (uint32_t)(state->slots % KILN__ROCM_SECTION_SLOTS);
    if (KILN__UNLIKELY(place - 1 >= function->last_place)) {
        KILN__TRY(start_section(state));
        place = 0;
    }
    uint8_t *kernarg = state->ring + state->slots % KILN__ROCM_RING_SLOTS * KILN__ROCM_SLOT_BYTES;
    memcpy(kernarg, arguments, function->arguments_bytes);
    if (KILN__UNLIKELY(function->hidden_count)) write_hidden(function, config, kernarg);

    uint64_t index;
    KILN__TRY(kiln__rocm_reserve(state, &index));
    state->slots += function->slots;
    kiln__hsa_dispatch_packet *packet = kiln__rocm_packet(state, index);
    if (plain) {
        packet->workgroup_size_x = (uint16_t)config->block[0];
        packet->workgroup_size_y = 1;
        packet->workgroup_size_z = 1;
        packet->reserved0 = 0;
        packet->grid_size_x = config->grid[0] * config->block[0];
        packet->grid_size_y = 1;
        packet->grid_size_z = 1;
    } else {
        write_shape(packet, config);
    }
    packet->private_segment_size = function->private_bytes;
    packet->group_segment_size = function->lds_bytes + config->dynamic_shared_bytes;
    packet->kernel_object = function->object;
    packet->kernarg_address = kernarg;
    packet->reserved2 = 0;
    packet->completion_signal = (kiln__hsa_signal){0};
    if (KILN__UNLIKELY(place == function->last_place))
        packet->completion_signal = leave_section(state, section_of(state->slots - 1));
    kiln__rocm_publish(state, index, packet, state->header);
    state->header = state->header_behind;
    return KILN_OK;
}

static kiln_status __attribute__((cold, noinline))
launch_shaped(kiln__rocm_stream *state, const kiln_kernel *kernel, const kiln_launch_config *config,
              const void *arguments) {
    KILN__TRY(check_shape(state->rocm, kernel, config));
    return dispatch(state, kernel->function, config, arguments, false);
}

kiln_status kiln__rocm_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                              const void *arguments) {
    kiln__rocm_stream *state = stream->state;
    const kiln__rocm_kernel *function = kernel->function;
    if (KILN__UNLIKELY(!is_plain(state->rocm, function, config)))
        return launch_shaped(state, kernel, config, arguments);
    return dispatch(state, function, config, arguments, true);
}
