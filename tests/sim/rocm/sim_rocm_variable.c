/* The variables of code objects: where they were loaded, and what the runtime says of them. */
#include "tests/sim/amdgcn/decode/amd_code.h"
#include "tests/sim/rocm/sim_rocm.h"
#include <stdlib.h>
#include <string.h>

static const char kind[] = ".variable";

/* Beside what sim_rocm_code.c answers of every symbol. */
enum {
    SYMBOL_ALLOCATION = 6,
    SYMBOL_SEGMENT = 7,
    SYMBOL_ALIGNMENT = 8,
    SYMBOL_SIZE = 9,
    SYMBOL_IS_CONST = 10,
    SYMBOL_ADDRESS = 21,
    ALLOCATION_PROGRAM = 1,
    SEGMENT_GLOBAL = 0
};

kiln__hsa_status sim_rocm_variable_add(sim_executable *executable, const sim_variable *described) {
    sim_lock(); /* kernels at work look for variables without the driver's lock */
    sim_variable *variable = sim_object_new(kind, sizeof *variable);
    if (variable) {
        *variable = *described;
        variable->device = executable->device;
        variable->next = executable->variables;
        executable->variables = variable;
    }
    sim_unlock();
    return variable ? KILN__HSA_STATUS_SUCCESS : SIM_HSA_ERROR_OUT_OF_RESOURCES;
}

/* Of a code object whose launches are only recorded: bytes that the host may copy to and from. */
static uint8_t *stand_in(const sim_variable *variable) {
    const size_t alignment = variable->alignment > sizeof(void *) ? variable->alignment : sizeof(void *);
    uint8_t *bytes = aligned_alloc(alignment, (variable->size + alignment - 1) / alignment * alignment);
    if (!bytes) return NULL;
    memset(bytes, 0, variable->size);
    if (variable->initial) memcpy(bytes, variable->initial, variable->size);
    return bytes;
}

kiln__hsa_status sim_rocm_variables_place(sim_executable *executable) {
    const struct amd_program *program = executable->program;
    for (sim_variable *variable = executable->variables; variable; variable = variable->next) {
        uint8_t *bytes = program ? program->image + variable->address : stand_in(variable);
        if (!bytes) return SIM_HSA_ERROR_OUT_OF_RESOURCES;
        sim_lock();
        variable->bytes = bytes;
        variable->object = program ? program->image : bytes;
        variable->object_size = program ? program->image_size : variable->size;
        sim_unlock();
    }
    return KILN__HSA_STATUS_SUCCESS;
}

void sim_rocm_variables_delete(sim_executable *executable) {
    for (sim_variable *variable = executable->variables, *next; variable; variable = next) {
        next = variable->next;
        if (variable->bytes && sim_rocm_copy_uses(variable->bytes, variable->size))
            sim_violation("hsa_executable_destroy: a copy in flight uses variable %s", variable->symbol);
        if (!executable->program) free(variable->bytes);
        sim_object_delete(kind, variable);
    }
    executable->variables = NULL;
}

const sim_variable *sim_rocm_variable_of(kiln__hsa_symbol symbol) {
    const sim_variable *variable = (const void *)(uintptr_t)symbol.handle;
    return sim_object_live(kind, variable) ? variable : NULL;
}

typedef struct range {
    int32_t device;
    uintptr_t begin;
    size_t size;
} range;

static bool holds(const void *object, const void *context) {
    const sim_variable *variable = object;
    const range *wanted = context;
    const uintptr_t offset = wanted->begin - (uintptr_t)variable->bytes;
    if (!variable->bytes || (wanted->device >= 0 && wanted->device != variable->device)) return false;
    return offset < variable->size && wanted->size <= variable->size - offset;
}

const sim_variable *sim_rocm_variable_at(int32_t device, const void *address, size_t size) {
    return sim_object_find(kind, holds, &(range){device, (uintptr_t)address, size});
}

kiln__hsa_status sim_rocm_variable_info(const sim_variable *variable, uint32_t attribute, void *value) {
    uint32_t number;
    switch (attribute) {
    case SYMBOL_ADDRESS:
        memcpy(value, &(uint64_t){(uintptr_t)variable->bytes}, sizeof(uint64_t));
        return KILN__HSA_STATUS_SUCCESS;
    case SYMBOL_IS_CONST: /* as ROCr has it, which is the wrong way round */
        memcpy(value, &variable->writable, sizeof variable->writable);
        return KILN__HSA_STATUS_SUCCESS;
    case SYMBOL_ALLOCATION: /* the same of all, though each is its agent's */
        number = ALLOCATION_PROGRAM;
        break;
    case SYMBOL_SEGMENT:
        number = SEGMENT_GLOBAL;
        break;
    case SYMBOL_ALIGNMENT:
        number = variable->alignment;
        break;
    case SYMBOL_SIZE:
        number = variable->size;
        break;
    default:
        sim_violation("hsa_executable_symbol_get_info: attribute %u of variable %s", attribute, variable->symbol);
        return SIM_HSA_ERROR_INVALID_ARGUMENT;
    }
    memcpy(value, &number, sizeof number);
    return KILN__HSA_STATUS_SUCCESS;
}
