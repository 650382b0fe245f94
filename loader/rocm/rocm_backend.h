/* The structures of the ROCm backend and its functions, one source file per noun. rocm_backend.c has their table;
 * loader/backend.h documents them. */
#ifndef KILN_LOADER_ROCM_BACKEND_H
#define KILN_LOADER_ROCM_BACKEND_H

#include "loader/backend.h"
#include "loader/image/hsaco.h"
#include "loader/rocm/rocm_signal.h"

enum {
    KILN__ROCM_QUEUES = 4,        /* per device; further streams share them */
    KILN__ROCM_RING_SLOTS = 1024, /* for kernargs, per stream; a launch takes one or more */
    KILN__ROCM_SLOT_BYTES = 512,
    KILN__ROCM_RING_SECTIONS = 16,
    KILN__ROCM_SECTION_SLOTS = KILN__ROCM_RING_SLOTS / KILN__ROCM_RING_SECTIONS,
    KILN__ROCM_KERNARG_MOST = KILN__ROCM_SECTION_SLOTS * KILN__ROCM_SLOT_BYTES,
    KILN__ROCM_GPUS = 128, /* that are given access to pinned memory */
};

/* A queue that kiln owns. */
typedef struct kiln__rocm_queue {
    kiln__hsa_queue *queue; /* NULL: not created */
    uint32_t streams;
    bool profiled;
} kiln__rocm_queue;

typedef struct kiln__rocm_freed kiln__rocm_freed;

/* device->native */
typedef struct kiln__rocm_device {
    /* Limits of a launch. Grids are in work-items. */
    uint32_t block_max[3];
    uint32_t block_size_max;
    uint32_t grid_max[3];
    uint32_t grid_size_max;
    uint32_t line_max; /* work-items of a one-dimensional grid */

    kiln__hsa_agent agent;
    kiln__hsa_agent gpus[KILN__ROCM_GPUS]; /* the runtime's GPUs, up to KILN__ROCM_GPUS */
    int32_t gpu_count;
    kiln__hsa_agent host; /* the CPU agent that owns the two host pools */
    kiln__hsa_pool device_pool;
    kiln__hsa_pool host_pool;
    kiln__hsa_pool kernarg_pool;
    uint32_t queue_packets;
    uint64_t ticks_per_second; /* of the system clock, for timeouts and dispatch times */
    uint32_t waves_per_unit;   /* wave slots of a compute unit */
    uint32_t simds_per_unit;

    kiln__rocm_signals signals;
    pthread_mutex_t queue_lock; /* guards queues */
    kiln__rocm_queue queues[KILN__ROCM_QUEUES];
    pthread_mutex_t pages_lock;             /* guards pages */
    void *pages;                            /* source of fills; NULL before the first */
    pthread_mutex_t freed_lock;             /* guards freed */
    kiln__rocm_freed *freed;                /* freed by streams, not yet returned to the runtime */
    pthread_mutex_t peers_lock;             /* guards peers */
    kiln__hsa_agent peers[KILN__ROCM_GPUS]; /* with access to device memory; first, the device's own agent */
    uint32_t peer_count;
    kiln_device *device;
    bool takes_faults;
    struct kiln__rocm_device *next; /* open devices, for the fault handler */
} kiln__rocm_device;

/* kernel->function */
typedef struct kiln__rocm_kernel {
    uint64_t object;
    uint32_t lds_bytes; /* static LDS */
    uint32_t private_bytes;
    uint32_t kernarg_bytes;
    uint32_t threads_max; /* per block: the smaller of the kernel's and the device's limit */
    uint32_t line_max;    /* threads of a one-dimensional block */
    uint32_t dynamic_max; /* bytes of dynamic LDS that a launch may have */
    uint32_t arguments_bytes;
    uint32_t slots;      /* ring slots that its kernargs take */
    uint32_t last_place; /* last slot of a section at which they fit */
    uint32_t vgprs;
    uint32_t wave_size;
    uint32_t hidden_count; /* mostly 0; then a launch pays nothing */
    kiln__hidden_argument hidden[KILN__HSACO_HIDDEN_MAX];
} kiln__rocm_kernel;

/* stream->state */
typedef struct kiln__rocm_stream {
    /* First, what a launch touches. */
    uint64_t slots;         /* taken so far; modulo the ring's size, the next one */
    uint32_t header;        /* of the next launch; acquires at system scope after a host wait */
    uint32_t header_behind; /* of a launch that follows another */
    uint8_t *ring;          /* kernargs */
    kiln__hsa_queue *queue;
    kiln__hsa_dispatch_packet *packets;
    uint64_t packet_mask;
    uint64_t read_seen; /* the queue's read index when last loaded: a lower bound */
    kiln__hsa_signal doorbell;
    kiln__rocm_device *rocm;

    kiln__hsa_signal
        sections[KILN__ROCM_RING_SECTIONS]; /* 0 once the section's last launch of the previous lap is done */
    kiln__hsa_signal idle;                  /* what sync waits for */
    kiln__hsa_signal mark;                  /* what query polls: 0 when the marked work is done */
    uint64_t marked;                        /* kiln__rocm_queue_work at the mark */
    uint64_t barriers;                      /* barrier packets; plus slots: the stream's work */
    void *staging;                          /* pinned, for copies of pageable memory; NULL before the first */
    kiln__rocm_queue *own;                  /* NULL: the queue is borrowed */
    bool timing;
} kiln__rocm_stream;

/* rocm_device.c */
kiln_status kiln__rocm_count(int32_t *out_count);
kiln_status kiln__rocm_identify(kiln_device_info *info);
kiln_status kiln__rocm_device_open(kiln_device *device, const kiln_device_options *options);
void kiln__rocm_device_close(kiln_device *device);
kiln_status kiln__rocm_device_enable_peer(kiln_device *device, kiln_device *peer);

/* rocm_fault.c: page faults and other runtime events. The runtime reports one per process. */
/* Adds an open device; if it has takes_faults, its agent's faults lose it. Returns KILN_OK, KILN_ERROR_UNSUPPORTED,
 * KILN_ERROR_DRIVER, KILN_ERROR_DEVICE_LOST (the runtime has reported a fault and will not report another). */
kiln_status kiln__rocm_faults_join(kiln__rocm_device *rocm);
void kiln__rocm_faults_leave(kiln__rocm_device *rocm);

/* rocm_agent.c: properties of agents. */
/* Lists up to room GPUs that can run code; *out_count is the number of all of them. */
kiln_status kiln__rocm_agents(kiln__hsa_agent *agents, int32_t room, int32_t *out_count);
/* Fills in the UUID, PCI address and NUMA node, as far as the runtime reports them. */
void kiln__rocm_agent_identify(kiln__hsa_agent agent, kiln_device_info *info);
/* Finds the CPU agent with the pools for host memory and kernargs, and the GPU's pools and limits. */
kiln_status kiln__rocm_agent_describe(kiln__rocm_device *rocm, kiln_device_info *info);

/* rocm_module.c, rocm_occupancy.c */
kiln_status kiln__rocm_module_load(kiln_module *module);
void kiln__rocm_module_unload(kiln_module *module);
kiln_status kiln__rocm_module_variable(const kiln_module *module, const char *name, void **out_address,
                                       size_t *out_size);
kiln_status kiln__rocm_kernel_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes);
kiln_status kiln__rocm_kernel_occupancy(const kiln_kernel *kernel, uint32_t threads, uint32_t dynamic_shared_bytes,
                                        uint32_t *out_blocks);

/* rocm_launch.c */
kiln_status kiln__rocm_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                              const void *arguments);

/* rocm_stream.c */
kiln_status kiln__rocm_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream);
kiln_status kiln__rocm_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream);
kiln_status kiln__rocm_stream_sync(kiln_stream *stream);
kiln_status kiln__rocm_stream_query(kiln_stream *stream, bool *out_done);
void kiln__rocm_stream_close(kiln_stream *stream);
kiln_status kiln__rocm_stream_capturing(kiln_stream *stream, bool *out_capturing);

/* rocm_memory.c, rocm_order.c, rocm_copy.c, rocm_fill.c */
kiln_status kiln__rocm_memory_alloc(kiln_device *device, size_t size, void **out_memory);
void kiln__rocm_memory_free(kiln_device *device, void *memory);
kiln_status kiln__rocm_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory);
kiln_status kiln__rocm_memory_free_async(kiln_stream *stream, void *memory);
kiln_status kiln__rocm_memory_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total);
kiln_status kiln__rocm_host_alloc(kiln_device *device, size_t size, void **out_memory);
void kiln__rocm_host_free(kiln_device *device, void *memory);
kiln_status kiln__rocm_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory);
void kiln__rocm_host_unregister(kiln_device *device, void *memory);
/* Allocates memory from a pool and gives count agents access to it. */
kiln_status kiln__rocm_pool_alloc(kiln_device *device, kiln__hsa_pool pool, const kiln__hsa_agent *agents,
                                  uint32_t count, size_t size, void **out_memory);
/* rocm_order.c: gives the runtime back memory that streams have freed and no longer use; true if any. */
bool kiln__rocm_freed_release(kiln__rocm_device *rocm);
/* Returns all freed memory. No stream may be open. */
void kiln__rocm_freed_close(kiln__rocm_device *rocm);
kiln_status kiln__rocm_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                            kiln_copy_direction direction);
kiln_status kiln__rocm_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size);

/* rocm_event.c */
kiln_status kiln__rocm_event_create(kiln_event *event);
kiln_status kiln__rocm_event_borrow(kiln_event *event, void *native);
void kiln__rocm_event_destroy(kiln_event *event);
kiln_status kiln__rocm_event_record(kiln_event *event, kiln_stream *stream);
kiln_status kiln__rocm_event_sync(kiln_event *event);
kiln_status kiln__rocm_event_query(kiln_event *event, bool *out_done);
kiln_status kiln__rocm_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds);
kiln_status kiln__rocm_stream_wait_event(kiln_stream *stream, kiln_event *event);

#endif
