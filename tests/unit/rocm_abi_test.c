/* loader/rocm/rocm_abi.h and symbols.def against the vendor's headers, where they are installed (libhsa-runtime-dev):
 * every constant, layout, signature and status. The comparison is made by the compiler. */
#include "loader/rocm/rocm_driver.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#if __has_include(<hsa/hsa_ext_amd.h>)
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

/* Headers before version 1.5 lack what symbols.def calls optional: here it is as the later ones have it. */
#if HSA_AMD_INTERFACE_VERSION_MAJOR == 1 && HSA_AMD_INTERFACE_VERSION_MINOR < 5
enum { HSA_AMD_QUEUE_INFO_AGENT, HSA_AMD_AGENT_INFO_NEAREST_CPU = 0xA113 };
hsa_status_t hsa_amd_queue_get_info(hsa_queue_t *queue, uint32_t attribute, void *value);
#endif
/* And those before version 1.1 a status and an attribute. */
#if HSA_AMD_INTERFACE_VERSION_MAJOR == 1 && HSA_AMD_INTERFACE_VERSION_MINOR < 1
enum { HSA_STATUS_ERROR_OUT_OF_REGISTERS = 45, HSA_AMD_AGENT_INFO_MEMORY_AVAIL = 0xA015 };
#endif

#define CONSTANT(name, value) _Static_assert((int)HSA_##name == (value), "HSA_" #name);
KILN__HSA_CONSTANTS(CONSTANT)
#undef CONSTANT

#define KILN_ROCM_ERROR(name, number, status) _Static_assert((int)HSA_STATUS_##name == (number), #name);
#include "loader/rocm/rocm_errors.def"
#undef KILN_ROCM_ERROR

#define SAME_SIZE(ours, theirs) \
    _Static_assert(sizeof(ours) == sizeof(theirs) && _Alignof(ours) == _Alignof(theirs), #theirs);
#define SAME_FIELD(ours, our_field, theirs, their_field)                                     \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&             \
                       sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field), \
                   #theirs "." #their_field);

/* Handles. */
#define HANDLES(X)                                \
    X(kiln__hsa_agent, hsa_agent_t)               \
    X(kiln__hsa_isa, hsa_isa_t)                   \
    X(kiln__hsa_signal, hsa_signal_t)             \
    X(kiln__hsa_pool, hsa_amd_memory_pool_t)      \
    X(kiln__hsa_reader, hsa_code_object_reader_t) \
    X(kiln__hsa_executable, hsa_executable_t)     \
    X(kiln__hsa_symbol, hsa_executable_symbol_t)
#define HANDLE(ours, theirs) SAME_SIZE(ours, theirs) SAME_FIELD(ours, handle, theirs, handle)
HANDLES(HANDLE)
SAME_SIZE(kiln__hsa_status, hsa_status_t)
SAME_SIZE(kiln__hsa_signal_value, hsa_signal_value_t)

#define QUEUE_FIELD(name) SAME_FIELD(kiln__hsa_queue, name, hsa_queue_t, name)
SAME_SIZE(kiln__hsa_queue, hsa_queue_t)
QUEUE_FIELD(type)
QUEUE_FIELD(features)
QUEUE_FIELD(base_address)
QUEUE_FIELD(doorbell_signal)
QUEUE_FIELD(size)
QUEUE_FIELD(reserved1)
QUEUE_FIELD(id)

SAME_SIZE(kiln__hsa_dim3, hsa_dim3_t)
SAME_FIELD(kiln__hsa_dim3, x, hsa_dim3_t, x)
SAME_FIELD(kiln__hsa_dim3, z, hsa_dim3_t, z)

#define DISPATCH_FIELD(name) SAME_FIELD(kiln__hsa_dispatch_packet, name, hsa_kernel_dispatch_packet_t, name)
_Static_assert(sizeof(kiln__hsa_dispatch_packet) == 64, "a packet is 64 bytes");
SAME_SIZE(kiln__hsa_dispatch_packet, hsa_kernel_dispatch_packet_t)
DISPATCH_FIELD(header)
DISPATCH_FIELD(setup)
DISPATCH_FIELD(workgroup_size_x)
DISPATCH_FIELD(workgroup_size_y)
DISPATCH_FIELD(workgroup_size_z)
DISPATCH_FIELD(reserved0)
DISPATCH_FIELD(grid_size_x)
DISPATCH_FIELD(grid_size_y)
DISPATCH_FIELD(grid_size_z)
DISPATCH_FIELD(private_segment_size)
DISPATCH_FIELD(group_segment_size)
DISPATCH_FIELD(kernel_object)
DISPATCH_FIELD(kernarg_address)
DISPATCH_FIELD(reserved2)
DISPATCH_FIELD(completion_signal)

#define BARRIER_FIELD(name) SAME_FIELD(kiln__hsa_barrier_packet, name, hsa_barrier_and_packet_t, name)
SAME_SIZE(kiln__hsa_barrier_packet, hsa_barrier_and_packet_t)
BARRIER_FIELD(header)
BARRIER_FIELD(reserved0)
BARRIER_FIELD(reserved1)
BARRIER_FIELD(dep_signal)
BARRIER_FIELD(reserved2)
BARRIER_FIELD(completion_signal)

SAME_SIZE(kiln__hsa_dispatch_time, hsa_amd_profiling_dispatch_time_t)
SAME_FIELD(kiln__hsa_dispatch_time, start, hsa_amd_profiling_dispatch_time_t, start)
SAME_FIELD(kiln__hsa_dispatch_time, end, hsa_amd_profiling_dispatch_time_t, end)

#define POINTER_FIELD(ours, theirs) SAME_FIELD(kiln__hsa_pointer_info, ours, hsa_amd_pointer_info_t, theirs)
SAME_SIZE(kiln__hsa_pointer_info, hsa_amd_pointer_info_t)
POINTER_FIELD(size, size)
POINTER_FIELD(type, type)
POINTER_FIELD(agent_base_address, agentBaseAddress)
POINTER_FIELD(host_base_address, hostBaseAddress)
POINTER_FIELD(size_in_bytes, sizeInBytes)
POINTER_FIELD(user_data, userData)
POINTER_FIELD(agent_owner, agentOwner)
POINTER_FIELD(global_flags, global_flags)

SAME_SIZE(kiln__hsa_event, hsa_amd_event_t)
SAME_FIELD(kiln__hsa_event, event_type, hsa_amd_event_t, event_type)
SAME_FIELD(kiln__hsa_event, agent, hsa_amd_event_t, memory_fault.agent)
SAME_FIELD(kiln__hsa_event, virtual_address, hsa_amd_event_t, memory_fault.virtual_address)
SAME_FIELD(kiln__hsa_event, fault_reason_mask, hsa_amd_event_t, memory_fault.fault_reason_mask)

/* Signatures. The vendor's types are other types of the same layout, so each function is compared with the one that its
 * row of symbols.def would be with the vendor's types in place of kiln's: the names of ours are read as theirs. */
#define kiln__hsa_status         hsa_status_t
#define kiln__hsa_signal_value   hsa_signal_value_t
#define kiln__hsa_agent          hsa_agent_t
#define kiln__hsa_isa            hsa_isa_t
#define kiln__hsa_signal         hsa_signal_t
#define kiln__hsa_pool           hsa_amd_memory_pool_t
#define kiln__hsa_reader         hsa_code_object_reader_t
#define kiln__hsa_executable     hsa_executable_t
#define kiln__hsa_symbol         hsa_executable_symbol_t
#define kiln__hsa_queue          hsa_queue_t
#define kiln__hsa_dispatch_time  hsa_amd_profiling_dispatch_time_t
#define kiln__hsa_pointer_info   hsa_amd_pointer_info_t
#define kiln__hsa_event_callback hsa_amd_system_event_callback_t
typedef hsa_status_t (*agent_callback)(hsa_agent_t agent, void *data);
typedef hsa_status_t (*isa_callback)(hsa_isa_t isa, void *data);
typedef hsa_status_t (*pool_callback)(hsa_amd_memory_pool_t pool, void *data);
typedef void (*queue_callback)(hsa_status_t status, hsa_queue_t *queue, void *data);
#define kiln__hsa_agent_callback agent_callback
#define kiln__hsa_isa_callback   isa_callback
#define kiln__hsa_pool_callback  pool_callback
#define kiln__hsa_queue_callback queue_callback

/* Enumerations of the vendor's are unsigned int, which C takes as compatible with uint32_t; out_loaded alone is void *
 * in kiln, which only passes NULL. */
#define KILN_HSA(field, exported, required, result, parameters)                             \
    _Static_assert(__builtin_types_compatible_p(__typeof__(exported), result parameters) || \
                       __builtin_strcmp(#field, "executable_load") == 0,                    \
                   #exported);
#include "loader/rocm/symbols.def"
#undef KILN_HSA
_Static_assert(__builtin_types_compatible_p(__typeof__(hsa_executable_load_agent_code_object),
                                            hsa_status_t(hsa_executable_t, hsa_agent_t, hsa_code_object_reader_t,
                                                         const char *, hsa_loaded_code_object_t *)),
               "hsa_executable_load_agent_code_object");

static void agrees_with_the_vendors_headers(void **state) {
    (void)state;
    /* The static assertions above are the test; this says that they were compiled. */
    assert_int_equal(sizeof(hsa_kernel_dispatch_packet_t), 64);
}
#else
static void agrees_with_the_vendors_headers(void **state) {
    (void)state;
    print_message("hsa/hsa_ext_amd.h is not installed (libhsa-runtime-dev)\n");
    skip();
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_the_vendors_headers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
