/* What no simulated GPU has, each refused as the runtime does without it: images and samplers (no agent tells of the
 * extension), memory of other processes and of graphics, shared virtual memory, and tables of extensions. */
#include "tests/sim/rocm/sim_rocm.h"

#define ABSENT(error, function, parameters) \
    kiln__hsa_status function parameters {  \
        SIM_HSA_ENTER();                    \
        return error;                       \
    }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
ABSENT(SIM_HSA_ERROR_INVALID_ARGUMENT, hsa_system_get_major_extension_table,
       (uint16_t extension, uint16_t major, size_t size, void *out_table))
ABSENT(SIM_HSA_ERROR_OUT_OF_RESOURCES, hsa_amd_ipc_memory_create, (void *memory, size_t size, void *out_handle))
ABSENT(SIM_HSA_ERROR_INVALID_ARGUMENT, hsa_amd_ipc_memory_attach,
       (const void *handle, size_t size, uint32_t agent_count, const kiln__hsa_agent *agents, void **out_memory))
ABSENT(SIM_HSA_ERROR_INVALID_ARGUMENT, hsa_amd_ipc_memory_detach, (void *memory))
ABSENT(SIM_HSA_ERROR, hsa_amd_interop_map_buffer,
       (uint32_t agent_count, kiln__hsa_agent *agents, int handle, uint32_t flags, size_t *out_size, void **out_memory,
        size_t *out_metadata_size, const void **out_metadata))
ABSENT(SIM_HSA_ERROR_INVALID_ARGUMENT, hsa_amd_interop_unmap_buffer, (void *memory))
ABSENT(SIM_HSA_ERROR, hsa_amd_svm_attributes_set, (void *memory, size_t size, void *attributes, size_t count))
ABSENT(SIM_HSA_ERROR, hsa_amd_svm_attributes_get, (void *memory, size_t size, void *attributes, size_t count))
ABSENT(SIM_HSA_ERROR, hsa_amd_svm_prefetch_async,
       (void *memory, size_t size, kiln__hsa_agent agent, uint32_t dependency_count,
        const kiln__hsa_signal *dependencies, kiln__hsa_signal completion))
ABSENT(SIM_HSA_ERROR, hsa_ext_image_create,
       (kiln__hsa_agent agent, const void *descriptor, const void *data, uint32_t access, uint64_t *out_image))
ABSENT(SIM_HSA_ERROR, hsa_amd_image_create,
       (kiln__hsa_agent agent, const void *descriptor, const void *layout, const void *data, uint32_t access,
        uint64_t *out_image))
ABSENT(SIM_HSA_ERROR, hsa_ext_image_create_with_layout,
       (kiln__hsa_agent agent, const void *descriptor, const void *data, uint32_t access, uint32_t layout,
        size_t row_pitch, size_t slice_pitch, uint64_t *out_image))
ABSENT(SIM_HSA_ERROR, hsa_ext_image_data_get_info,
       (kiln__hsa_agent agent, const void *descriptor, uint32_t access, void *out_info))
ABSENT(SIM_HSA_ERROR, hsa_ext_image_destroy, (kiln__hsa_agent agent, uint64_t image))
ABSENT(SIM_HSA_ERROR, hsa_ext_image_export,
       (kiln__hsa_agent agent, uint64_t image, void *memory, size_t row_pitch, size_t slice_pitch, const void *region))
ABSENT(SIM_HSA_ERROR, hsa_ext_image_import,
       (kiln__hsa_agent agent, const void *memory, size_t row_pitch, size_t slice_pitch, uint64_t image,
        const void *region))
ABSENT(SIM_HSA_ERROR, hsa_ext_sampler_create, (kiln__hsa_agent agent, const void *descriptor, uint64_t *out_sampler))
ABSENT(SIM_HSA_ERROR, hsa_ext_sampler_destroy, (kiln__hsa_agent agent, uint64_t sampler))
ABSENT(SIM_HSA_ERROR, hsa_executable_agent_global_variable_define,
       (kiln__hsa_executable executable, kiln__hsa_agent agent, const char *name, void *address))
#pragma GCC diagnostic pop

kiln__hsa_status hsa_system_extension_supported(uint16_t extension, uint16_t major, uint16_t minor,
                                                bool *out_supported) {
    (void)extension, (void)major, (void)minor;
    SIM_HSA_ENTER();
    SIM_HSA_RULE(out_supported, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_system_extension_supported: no result");
    *out_supported = false;
    return KILN__HSA_STATUS_SUCCESS;
}

kiln__hsa_status hsa_agent_extension_supported(uint16_t extension, kiln__hsa_agent agent, uint16_t major,
                                               uint16_t minor, bool *out_supported) {
    (void)extension, (void)major, (void)minor;
    SIM_HSA_ENTER();
    if (!sim_rocm_is_agent(agent)) return SIM_HSA_ERROR_INVALID_AGENT;
    SIM_HSA_RULE(out_supported, SIM_HSA_ERROR_INVALID_ARGUMENT, "hsa_agent_extension_supported: no result");
    *out_supported = false;
    return KILN__HSA_STATUS_SUCCESS;
}
