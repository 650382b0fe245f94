/* The subset of the HSA runtime's binary interface that kiln calls, declared here so that no ROCm header is needed to
 * build. (HSA Runtime Programmer's Reference 1.2; AMD's extensions as in ROCr.)
 * tests/unit/rocm_abi_test.c compares every line with the vendor's headers where they are installed. */
#ifndef KILN_LOADER_ROCM_ABI_H
#define KILN_LOADER_ROCM_ABI_H

#include <stddef.h>
#include <stdint.h>

/* Every constant in one list: (name without HSA_, value). */
#define KILN__HSA_CONSTANTS(X)                                \
    X(STATUS_SUCCESS, 0)                                      \
    X(STATUS_INFO_BREAK, 1)                                   \
    X(STATUS_ERROR, 0x1000)                                   \
    X(STATUS_ERROR_INVALID_ARGUMENT, 0x1001)                  \
    X(SYSTEM_INFO_VERSION_MAJOR, 0)                           \
    X(SYSTEM_INFO_VERSION_MINOR, 1)                           \
    X(SYSTEM_INFO_TIMESTAMP, 2)                               \
    X(SYSTEM_INFO_TIMESTAMP_FREQUENCY, 3)                     \
    X(DEVICE_TYPE_CPU, 0)                                     \
    X(DEVICE_TYPE_GPU, 1)                                     \
    X(AGENT_INFO_NAME, 0)                                     \
    X(AGENT_INFO_WAVEFRONT_SIZE, 6)                           \
    X(AGENT_INFO_WORKGROUP_MAX_DIM, 7)                        \
    X(AGENT_INFO_WORKGROUP_MAX_SIZE, 8)                       \
    X(AGENT_INFO_GRID_MAX_DIM, 9)                             \
    X(AGENT_INFO_GRID_MAX_SIZE, 10)                           \
    X(AGENT_INFO_QUEUE_MIN_SIZE, 13)                          \
    X(AGENT_INFO_QUEUE_MAX_SIZE, 14)                          \
    X(AGENT_INFO_NODE, 16)                                    \
    X(AGENT_INFO_DEVICE, 17)                                  \
    X(AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, 0xA002)              \
    X(AMD_AGENT_INFO_BDFID, 0xA006)                           \
    X(AMD_AGENT_INFO_PRODUCT_NAME, 0xA009)                    \
    X(AMD_AGENT_INFO_MAX_WAVES_PER_CU, 0xA00A)                \
    X(AMD_AGENT_INFO_NUM_SIMDS_PER_CU, 0xA00B)                \
    X(AMD_AGENT_INFO_DOMAIN, 0xA00F)                          \
    X(AMD_AGENT_INFO_UUID, 0xA011)                            \
    X(AMD_AGENT_INFO_MEMORY_AVAIL, 0xA015)                    \
    X(AMD_AGENT_INFO_NEAREST_CPU, 0xA113)                     \
    X(ISA_INFO_NAME_LENGTH, 0)                                \
    X(ISA_INFO_NAME, 1)                                       \
    X(PROFILE_FULL, 1)                                        \
    X(DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, 0)                 \
    X(SYMBOL_KIND_VARIABLE, 0)                                \
    X(EXECUTABLE_SYMBOL_INFO_TYPE, 0)                         \
    X(EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, 9)                \
    X(EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, 21)            \
    X(EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, 11) \
    X(EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, 13)   \
    X(EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, 14) \
    X(EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK, 15)    \
    X(EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, 22)               \
    X(QUEUE_TYPE_MULTI, 0)                                    \
    X(QUEUE_FEATURE_KERNEL_DISPATCH, 1)                       \
    X(AMD_QUEUE_INFO_AGENT, 0)                                \
    X(SIGNAL_CONDITION_LT, 2)                                 \
    X(WAIT_STATE_BLOCKED, 0)                                  \
    X(PACKET_TYPE_INVALID, 1)                                 \
    X(PACKET_TYPE_KERNEL_DISPATCH, 2)                         \
    X(PACKET_TYPE_BARRIER_AND, 3)                             \
    X(PACKET_HEADER_TYPE, 0)                                  \
    X(PACKET_HEADER_BARRIER, 8)                               \
    X(PACKET_HEADER_SCACQUIRE_FENCE_SCOPE, 9)                 \
    X(PACKET_HEADER_SCRELEASE_FENCE_SCOPE, 11)                \
    X(KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS, 0)             \
    X(FENCE_SCOPE_AGENT, 1)                                   \
    X(FENCE_SCOPE_SYSTEM, 2)                                  \
    X(AMD_SEGMENT_GLOBAL, 0)                                  \
    X(AMD_SEGMENT_GROUP, 3)                                   \
    X(AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT, 1)            \
    X(AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, 2)            \
    X(AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, 4)          \
    X(AMD_MEMORY_POOL_INFO_SEGMENT, 0)                        \
    X(AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, 1)                   \
    X(AMD_MEMORY_POOL_INFO_SIZE, 2)                           \
    X(AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, 5)          \
    X(AMD_AGENT_MEMORY_POOL_INFO_ACCESS, 0)                   \
    X(AMD_MEMORY_POOL_ACCESS_NEVER_ALLOWED, 0)                \
    X(EXT_POINTER_TYPE_HSA, 1)                                \
    X(AMD_GPU_MEMORY_FAULT_EVENT, 0)

enum {
#define KILN__HSA_ENUM(name, value) KILN__HSA_##name = (value),
    KILN__HSA_CONSTANTS(KILN__HSA_ENUM)
#undef KILN__HSA_ENUM
};

typedef uint32_t kiln__hsa_status;
typedef int64_t kiln__hsa_signal_value;

/* Handles: 0 is none. */
typedef struct kiln__hsa_agent {
    uint64_t handle;
} kiln__hsa_agent;

typedef struct kiln__hsa_isa {
    uint64_t handle;
} kiln__hsa_isa;

typedef struct kiln__hsa_signal {
    uint64_t handle;
} kiln__hsa_signal;

typedef struct kiln__hsa_pool {
    uint64_t handle;
} kiln__hsa_pool;

typedef struct kiln__hsa_reader {
    uint64_t handle;
} kiln__hsa_reader;

typedef struct kiln__hsa_executable {
    uint64_t handle;
} kiln__hsa_executable;

typedef struct kiln__hsa_symbol {
    uint64_t handle;
} kiln__hsa_symbol;

/* A user-mode queue: the runtime owns it, the application writes packets at base_address. */
typedef struct kiln__hsa_queue {
    uint32_t type;
    uint32_t features;
    void *base_address;
    kiln__hsa_signal doorbell_signal;
    uint32_t size; /* packets, a power of two */
    uint32_t reserved1;
    uint64_t id;
} kiln__hsa_queue;

typedef struct kiln__hsa_dim3 {
    uint32_t x, y, z;
} kiln__hsa_dim3;

/* Packets are 64 bytes. header and setup are written last and together, as the packet's first 32 bits. */
typedef struct kiln__hsa_dispatch_packet {
    uint16_t header;
    uint16_t setup;
    uint16_t workgroup_size_x;
    uint16_t workgroup_size_y;
    uint16_t workgroup_size_z;
    uint16_t reserved0;
    uint32_t grid_size_x; /* in work-items */
    uint32_t grid_size_y;
    uint32_t grid_size_z;
    uint32_t private_segment_size;
    uint32_t group_segment_size; /* static and dynamic LDS */
    uint64_t kernel_object;
    void *kernarg_address; /* 16-byte aligned */
    uint64_t reserved2;
    kiln__hsa_signal completion_signal;
} kiln__hsa_dispatch_packet;

/* Completes when every dependency signal is 0; absent ones have handle 0. */
typedef struct kiln__hsa_barrier_packet {
    uint16_t header;
    uint16_t reserved0;
    uint32_t reserved1;
    kiln__hsa_signal dep_signal[5];
    uint64_t reserved2;
    kiln__hsa_signal completion_signal;
} kiln__hsa_barrier_packet;

typedef struct kiln__hsa_dispatch_time {
    uint64_t start; /* ticks of the system clock */
    uint64_t end;
} kiln__hsa_dispatch_time;

typedef struct kiln__hsa_pointer_info {
    uint32_t size; /* of this struct */
    uint32_t type;
    void *agent_base_address;
    void *host_base_address;
    size_t size_in_bytes;
    void *user_data;
    kiln__hsa_agent agent_owner;
    uint32_t global_flags;
} kiln__hsa_pointer_info;

/* A page fault, or in later runtimes a hardware exception or memory error: each begins with the agent. */
typedef struct kiln__hsa_event {
    uint32_t event_type;
    kiln__hsa_agent agent;
    uint64_t virtual_address;
    uint32_t fault_reason_mask;
} kiln__hsa_event;

typedef kiln__hsa_status (*kiln__hsa_agent_callback)(kiln__hsa_agent agent, void *data);
typedef kiln__hsa_status (*kiln__hsa_isa_callback)(kiln__hsa_isa isa, void *data);
typedef kiln__hsa_status (*kiln__hsa_pool_callback)(kiln__hsa_pool pool, void *data);
typedef void (*kiln__hsa_queue_callback)(kiln__hsa_status status, kiln__hsa_queue *queue, void *data);
typedef kiln__hsa_status (*kiln__hsa_event_callback)(const kiln__hsa_event *event, void *data);

#endif
