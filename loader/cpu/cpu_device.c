#include "loader/cpu/cpu_device.h"
#include "loader/cpu/cpu_amx.h"
#include "loader/cpu/cpu_features.h"
#include "loader/cpu/cpu_threads.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

enum { THREADS_MAX = 1024 };

kiln_status kiln__cpu_device_count(int32_t *out_count) {
    *out_count = 1;
    return KILN_OK;
}

/* A CPU has no UUID and no PCI address. */
kiln_status kiln__cpu_identify(kiln_device_info *info) {
    (void)info;
    return KILN_OK;
}

/* The row of the level asked for, if the machine has it. */
static kiln_status find_level(const char *name, const kiln__cpu_features *features, const kiln__cpu_target **out_row) {
    const kiln__cpu_target *row = kiln__cpu_target_find(name);
    if (!row) {
        char names[256];
        kiln__text list = {names, sizeof names, 0};
        for (size_t i = 0; i < kiln__cpu_target_count; i++)
            kiln__text_add(&list, "%s%s", i ? ", " : "", kiln__cpu_targets[i].name);
        return kiln__fail(KILN_ERROR_NOT_FOUND, "cpu_level \"%s\" is none of: %s", name, names);
    }
    if (strcmp(row->host, KILN__CPU_HOST) != 0)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "cpu_level \"%s\" is of another architecture than this machine's, %s",
                          name, KILN__CPU_HOST);
    const char *missing = kiln__cpu_features_missing(features, row->level);
    if (missing)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "cpu_level \"%s\" needs %s, which this machine lacks", name, missing);
    *out_row = row;
    return KILN_OK;
}

/* Threads to use: what was asked for, or what affinity and quota allow. */
static uint32_t thread_count(int32_t asked) {
    if (asked > 0) return (uint32_t)asked;
    kiln__cpu_mask mask;
    uint32_t allowed = kiln__cpu_mask_read(&mask), quota = kiln__cpu_quota("");
    if (quota < allowed) allowed = quota;
    return allowed < THREADS_MAX ? allowed : THREADS_MAX;
}

static uint64_t machine_memory(void) {
    struct sysinfo machine;
    return sysinfo(&machine) == 0 ? (uint64_t)machine.totalram * machine.mem_unit : 0;
}

kiln_status kiln__cpu_device_open(kiln_device *device, const kiln_device_options *options) {
    kiln_device_info *info = &device->info;
    KILN__REQUIRE(options->threads >= 0 && options->threads <= THREADS_MAX,
                  "kiln_device_open: threads is %d: must be 0 to %d", options->threads, THREADS_MAX);
    kiln__cpu_features features;
    kiln__cpu_features_read(&features);
    const kiln__cpu_target *row = kiln__cpu_features_best(&features);
    if (options->cpu_level) KILN__TRY(find_level(options->cpu_level, &features, &row));

    kiln__cpu_device *native = calloc(1, sizeof *native);
    if (!native) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "cpu: no memory for the device");
    uint32_t threads = thread_count(options->threads);
    kiln_status status = kiln__cpu_pool_create(threads, options->parallel_for, options->parallel_user, &native->pool);
    if (status != KILN_OK) {
        free(native);
        return status;
    }
    kiln__cpu_amx = options->allow_amx ? kiln__cpu_amx_request() : 0;

    device->native = native;
    device->key_context = NULL;
    info->target.backend = KILN_BACKEND_CPU;
    /* A machine below the lowest level has no name here, so that no image fits it and selection says so. */
    snprintf(info->target.processor, sizeof info->target.processor, "%s", row ? row->name : "");
    kiln__cpu_name(info->name, sizeof info->name);
    info->memory_bytes = machine_memory();
    info->multiprocessors = (int32_t)threads;
    info->wave_size = 1;
    info->max_threads = 1024; /* the CPU ignores the shape of a block; this is what every GPU takes */
    return KILN_OK;
}

void kiln__cpu_device_close(kiln_device *device) {
    kiln__cpu_device *native = device->native;
    kiln__cpu_pool_destroy(native->pool);
    free(native);
    device->native = NULL;
}
