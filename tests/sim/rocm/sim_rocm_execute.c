/* What a dispatch does: its kernel runs on the interpreter of AMD machine code, before the packet is done. */
#include "tests/sim/amdgcn/decode/amd_llvm.h"
#include "tests/sim/amdgcn/wave/amd_launch.h"
#include "tests/sim/core/sim_kept.h"
#include "tests/sim/rocm/sim_rocm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static amd_program *load(const sim_reader *reader, const char *processor, char *why, size_t why_size) {
    amd_program *program = sim_kept_take(reader->bytes, reader->size, processor);
    if (program) {
        amd_program_renew(program, reader->bytes, reader->size);
        return program;
    }
    program = amd_program_load(reader->bytes, reader->size, processor, why, why_size);
    if (program) sim_kept_add(reader->bytes, reader->size, processor, program);
    return program;
}

kiln__hsa_status sim_rocm_program_load(sim_executable *executable) {
    static bool told;
    char why[512];
    const char *absent;
    sim_target target;
    if (sim_setting_number("KILN_SIM_RECORD", 0)) return KILN__HSA_STATUS_SUCCESS;
    if (!amd_llvm_present(&absent)) {
        if (!told) fprintf(stderr, "sim: %s: AMD kernels are recorded and NOT executed\n", absent);
        told = true;
        return KILN__HSA_STATUS_SUCCESS;
    }
    if (!sim_rocm_target(executable->device, &target)) return SIM_HSA_ERROR_INVALID_AGENT;
    const sim_reader *reader = executable->reader;
    executable->program = load(reader, target.processor, why, sizeof why);
    if (!executable->program) {
        sim_violation("code object for %s: %s", target.processor, why);
        return SIM_HSA_ERROR_INVALID_CODE_OBJECT;
    }
    sim_rocm_mutants_watch(executable);
    for (uint32_t i = 0; i < executable->kernel_count; i++)
        executable->kernels[i]->program = executable->program;
    return KILN__HSA_STATUS_SUCCESS;
}

static void discard(void *program) {
    amd_program_free(program);
}

void sim_rocm_program_unload(sim_executable *executable) {
    if (!executable->program) return;
    sim_rocm_mutants_forget(executable->program);
    sim_kept_release(executable->program, discard);
}

/* Live memory that the device may access, the host's that is locked, and variables of other code objects. */
static bool find(void *context, uint64_t address, sim_region *out_region) {
    const sim_lock_range *range = address & SIM_ALIAS ? sim_rocm_locked(sim_host_bytes(address), 1) : NULL;
    if (range) *out_region = (sim_region){(uintptr_t)range->host | SIM_ALIAS, range->size, NULL, false};
    if (address & SIM_ALIAS) return range;
    const void *pointer = (const void *)(uintptr_t)address;
    const sim_memory *memory = sim_memory_find(pointer, 1);
    const sim_variable *variable = memory ? NULL : sim_rocm_variable_at(*(const int32_t *)context, pointer, 1);
    if (variable) {
        *out_region = (sim_region){(uintptr_t)variable->bytes, variable->size, NULL, !variable->writable};
        return true;
    }
    if (!memory || !sim_rocm_reaches(*(const int32_t *)context, pointer, 1)) return false;
    *out_region = (sim_region){(uintptr_t)memory->bytes, memory->size, memory->written, false};
    return true;
}

static uint32_t running; /* kernels, of all queues */

void sim_rocm_kernels_wait(void) {
    while (running)
        sim_rocm_wait_change(50000000);
}

/* Without the lock, so that other queues, copies and calls go on meanwhile. */
static bool launch_run(sim_kernel *kernel, const amd_launch *launch, sim_counters *counters, sim_report *out_report) {
    running++;
    kernel->running++;
    sim_rocm_unlock();
    const bool good = amd_launch_run(launch, counters, out_report);
    sim_rocm_lock();
    kernel->running--;
    running--;
    sim_rocm_changed();
    return good;
}

bool sim_rocm_execute(const kiln__hsa_dispatch_packet *packet, const kiln__hsa_queue *queue, sim_launch *launch,
                      sim_report *out_report) {
    sim_kernel *kernel = (void *)(uintptr_t)packet->kernel_object;
    const amd_launch run = {
        .program = kernel->program,
        .kernel = amd_program_find(kernel->program, launch->kernel),
        .grid = {launch->grid[0], launch->grid[1], launch->grid[2]},
        .group = {launch->group[0], launch->group[1], launch->group[2]},
        .group_bytes = packet->group_segment_size,
        .private_bytes = packet->private_segment_size,
        .kernarg = (uintptr_t)packet->kernarg_address,
        .dispatch_packet = (uintptr_t)packet,
        .queue = (uintptr_t)queue,
        .unaligned = sim_setting_number("KILN_SIM_UNALIGNED", 1),
        .find = find,
        .find_context = &launch->device,
        .seed = sim_setting_number("KILN_SIM_SEED", 1),
        .sums = sim_setting_matrix(SIM_SUM_EXACT),
        .budget = sim_setting_number("KILN_SIM_BUDGET", 1u << 28),
        .threads = sim_threads(),
    };
    launch->executed = 1;
    return launch_run(kernel, &run, &launch->counters, out_report);
}

/* Accesses beyond memory are page faults; everything else stops the kernel's queue with an error. */
kiln__hsa_status sim_rocm_fault(int32_t device, const sim_report *report) {
    sim_violation("%s (KILN_SIM_SEED=%llu)", report->text, (unsigned long long)sim_setting_number("KILN_SIM_SEED", 1));
    if (report->kind == SIM_FAULT_OUT_OF_BOUNDS || report->kind == SIM_FAULT_STORE_TO_CONSTANT) {
        sim_rocm_page_fault(device, report->address);
        return KILN__HSA_STATUS_SUCCESS;
    }
    return report->kind == SIM_FAULT_ILLEGAL ? SIM_HSA_ERROR_ILLEGAL_INSTRUCTION : SIM_HSA_ERROR_EXCEPTION;
}
