/* What runs: a module's PTX, or the PTX that its cubin was assembled from. */
#include "tests/sim/core/sim_kept.h"
#include "tests/sim/core/sim_mutants.h"
#include "tests/sim/cuda/sim_cuda.h"
#include "tests/sim/ptx/warp/ptx_warp.h"
#include <elf.h>
#include <kiln/inspect.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char module_memory[] = ".module memory";

enum { BUDGET = 1 << 28 };

/* The bytes of an ELF file: the end of its last section or header. */
static size_t elf_size(const uint8_t *bytes) {
    const Elf64_Ehdr *elf = (const void *)bytes;
    const Elf64_Shdr *sections = (const void *)(bytes + elf->e_shoff);
    size_t size = elf->e_shoff + (size_t)elf->e_shnum * sizeof *sections;
    size_t programs = elf->e_phoff + (size_t)elf->e_phnum * sizeof(Elf64_Phdr);
    if (programs > size) size = programs;
    for (unsigned i = 0; i < elf->e_shnum; i++) {
        size_t end = sections[i].sh_type == SHT_NOBITS ? 0 : sections[i].sh_offset + sections[i].sh_size;
        if (end > size) size = end;
    }
    return size;
}

/* The variables of a module, each of which is as far as a kernel may go from it. */
static bool globals_new(sim_module *module) {
    const ptx_program *program = module->program;
    if (!program->global_bytes) return true;
    module->globals =
        sim_memory_new(module_memory, module->context->device, program->global_bytes, 256, (uintptr_t)module->context);
    if (!module->globals) return false;
    ptx_program_initialise(program, module->globals);
    for (const ptx_variable *v = program->module->variables; v; v = v->next) {
        if (v->space != PTX_SPACE_GLOBAL && v->space != PTX_SPACE_CONST) continue;
        if (!sim_memory_add_part(module->globals, v->offset, v->size, v->space == PTX_SPACE_CONST)) return false;
    }
    return true;
}

static ptx_program *load(const char *text, size_t size, int32_t capability, char *log, size_t log_size) {
    char target[16];
    snprintf(target, sizeof target, "%d", capability);
    ptx_program *program = sim_kept_take(text, size, target);
    if (program) return program;
    program = ptx_program_load(text, size, capability, log, log_size);
    if (program) sim_kept_add(text, size, target, program);
    return program;
}

kiln__cu_result sim_cuda_program_load(sim_module *module, const void *image, char *log, size_t log_size) {
    if (sim_setting_number("KILN_SIM_RECORD", 0)) return SIM_CUDA_SUCCESS;
    const char *text = image;
    size_t size = 0;
    if (memcmp(text, ELFMAG, SELFMAG)) {
        size = strlen(text);
    } else {
        uint8_t digest[32];
        kiln_sha256(image, elf_size(image), digest);
        text = sim_setting_number("KILN_SIM_NO_CUBIN", 0) ? NULL : sim_cuda_parent_of(digest, &size);
        if (!text) {
            snprintf(log, log_size, "a cubin that no manifest knows: it cannot be simulated\n");
            return SIM_CUDA_NO_BINARY_FOR_GPU;
        }
    }
    module->program = load(text, size, sim_cuda_capability(module->context->device), log, log_size);
    if (!module->program) return SIM_CUDA_INVALID_PTX;
    sim_cuda_mutants_watch(module->program, text, size);
    if (globals_new(module)) return SIM_CUDA_SUCCESS;
    sim_cuda_program_unload(module);
    return SIM_CUDA_OUT_OF_MEMORY;
}

static void discard(void *program) {
    ptx_program_free(program);
}

void sim_cuda_program_unload(sim_module *module) {
    if (module->program) sim_kept_release(module->program, discard);
    if (module->globals) sim_memory_delete(module_memory, module->globals);
    module->program = NULL;
    module->globals = NULL;
}

kiln__cu_result sim_cuda_program_global(const sim_module *module, const char *name, kiln__cu_address *out_address,
                                        size_t *out_size) {
    const ptx_variable *v = module->program ? module->program->module->variables : NULL;
    while (v && (strcmp(v->name, name) || (v->space != PTX_SPACE_GLOBAL && v->space != PTX_SPACE_CONST)))
        v = v->next;
    if (!v) return SIM_CUDA_NOT_FOUND;
    if (out_address) *out_address = (uintptr_t)module->globals + v->offset;
    if (out_size) *out_size = v->size;
    return SIM_CUDA_SUCCESS;
}

static uint64_t bytes_of(const ptx_variable *variables, ptx_space space) {
    uint64_t bytes = 0;
    for (const ptx_variable *v = variables; v; v = v->next)
        if (v->space == space) bytes += v->size;
    return bytes;
}

uint64_t sim_cuda_program_local(const sim_function *function) {
    const ptx_program *program = function->module->program;
    if (!program) return 0;
    return bytes_of(ptx_program_find(program, function->entry->name)->function->variables, PTX_SPACE_LOCAL);
}

uint64_t sim_cuda_program_const(const sim_module *module) {
    return module->program ? bytes_of(module->program->module->variables, PTX_SPACE_CONST) : 0;
}

/* The driver's error for a fault of a kernel. What hardware would not notice is a launch failure here. */
static int32_t error_of(sim_fault_kind kind) {
    switch (kind) {
    case SIM_FAULT_OUT_OF_BOUNDS:
    case SIM_FAULT_STORE_TO_CONSTANT:
        return SIM_CUDA_ILLEGAL_ADDRESS;
    case SIM_FAULT_MISALIGNED:
        return SIM_CUDA_MISALIGNED_ADDRESS;
    case SIM_FAULT_REGISTERS:
    case SIM_FAULT_ENDLESS:
        return SIM_CUDA_LAUNCH_TIMEOUT;
    case SIM_FAULT_ASSERT:
        return SIM_CUDA_ASSERT;
    case SIM_FAULT_ILLEGAL:
        return SIM_CUDA_ILLEGAL_INSTRUCTION;
    default:
        return SIM_CUDA_LAUNCH_FAILED;
    }
}

void sim_cuda_execute(sim_context *context, const sim_function *function, const void *arguments, sim_launch *launch,
                      const struct ptx_writes *unseen, struct ptx_writes *writes) {
    static uint64_t launches; /* under the lock */
    _Alignas(16) uint32_t workspace[PTX_WORKSPACE / 4] = {0};
    const sim_processor *processor = sim_cuda_processor(context->device);
    const ptx_program *program = function->module->program;
    sim_regions regions;
    sim_report report;
    _Atomic uint32_t same_store = 0;
    uint64_t owners[1 + SIM_CUDA_PEERS] = {(uintptr_t)context};
    for (int i = 0; i < SIM_CUDA_PEERS; i++) /* no peer: the context once more */
        owners[1 + i] = (uintptr_t)(context->peers[i] ? context->peers[i] : context);
    if (!program || !sim_regions_take(owners, 1 + SIM_CUDA_PEERS, &regions)) return;
    ptx_launch run = {
        .program = program,
        .code = ptx_program_find(program, function->entry->name),
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .block = {launch->group[0], launch->group[1], launch->group[2]},
        .cluster = {launch->cluster[0], launch->cluster[1], launch->cluster[2]},
        .number = ++launches,
        .multiprocessors = sim_multiprocessors((uint32_t)processor->count),
        .registers = function->entry->registers,
        .dynamic_shared_bytes = launch->shared_bytes,
        .reserved_shared_bytes = processor->reserved,
        .parameters = arguments,
        .globals = (uintptr_t)function->module->globals,
        .host_writes = regions.host,
        .unseen = unseen,
        .writes = writes,
        .find = sim_regions_find,
        .find_context = &regions,
        .seed = sim_setting_number("KILN_SIM_SEED", 1),
        .budget = sim_setting_number("KILN_SIM_BUDGET", BUDGET),
        .room = sim_cuda_blocks_together(function, (uint64_t)launch->group[0] * launch->group[1] * launch->group[2],
                                         launch->shared_bytes),
        .threads = sim_threads(),
        .sum_mode = sim_setting_matrix(sim_cuda_capability(context->device) == 90 ? SIM_SUM_HOPPER : SIM_SUM_EXACT),
    };
    if (sim_setting_number("KILN_SIM_SAME_STORE", 1)) run.same_store = &same_store;
    if (launch->cooperative) run.workspace = workspace;
    launch->executed = 1;
    if (!sim_cuda_runtime_begin(context, &run)) {
        context->fault = SIM_CUDA_OUT_OF_MEMORY;
    } else if (!ptx_launch_run(&run, &launch->counters, &report)) {
        context->fault = error_of(report.kind);
        fprintf(stderr, "sim: %s (KILN_SIM_SEED=%llu)\n", report.text, (unsigned long long)run.seed);
        sim_noticed();
    }
    if (same_store)
        fprintf(stderr, "sim note: kernel %s, PTX line %u: warps store the same value to one place of shared memory\n",
                function->entry->name, same_store);
    free(regions.regions);
}
