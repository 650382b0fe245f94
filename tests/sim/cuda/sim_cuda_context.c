/* Initialisation, devices and contexts. */
#include "tests/sim/cuda/sim_cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_ROOM = 16, DEVICE_ROOM = 64, MILLION = 1000000 };

static struct {
    pid_t process; /* that called cuInit */
    sim_context *primary[DEVICE_ROOM];
    uint32_t flags[DEVICE_ROOM]; /* of primary contexts */
} driver;

/* Each thread has a stack of contexts; the top is current. */
static _Thread_local struct {
    sim_context *stack[STACK_ROOM];
    int depth;
} thread;

static const char prefix[] = "sm_";

static const sim_processor processors[] = {
#define SIM_PROCESSOR(capability, count, shared, reserved, warps, blocks) \
    {capability, count, (shared) << 10, (reserved) << 10, warps, blocks},
#include "tests/sim/cuda/processors.def"
#undef SIM_PROCESSOR
};

static const char sim_name[] = "kiln simulated";

bool sim_cuda_initialised(const char *function) {
    if (driver.process == getpid()) return true;
    if (!driver.process) sim_violation("%s: before cuInit", function);
    return false;
}

sim_context *sim_cuda_current(const char *function) {
    sim_context *current = thread.depth ? thread.stack[thread.depth - 1] : NULL;
    if (!current) sim_violation("%s: no context is current", function);
    return current;
}

int32_t sim_cuda_version(void) {
    return (int32_t)sim_setting_number("KILN_SIM_DRIVER_VERSION", 13000);
}

int32_t sim_cuda_capability(kiln__cu_device device) {
    char name[64];
    if (device < 0 || device >= DEVICE_ROOM || !sim_device_name(prefix, (size_t)device, name, sizeof name)) return 0;
    return atoi(name + strlen(prefix));
}

const sim_processor *sim_cuda_processor(kiln__cu_device device) {
    int32_t capability = sim_cuda_capability(device);
    size_t found = 0;
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++)
        if (processors[i].capability <= capability) found = i;
    return &processors[found];
}

/* ---- Initialisation and devices ---- */

/* As drivers before 555 do where device files are missing: nvidia-modprobe, which makes them, is a child of whoever
 * initialises. Here it only ends, once the program's atfork handlers are through, and well. */
static void fork_as_for_device_files(void) {
    int status = -1;
    if (!sim_setting_number("KILN_SIM_INIT_FORKS", 0)) return;
    pid_t child = fork();
    if (!child) _exit(0);
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        sim_violation("cuInit: the child of KILN_SIM_INIT_FORKS ended with %d", status);
}

kiln__cu_result cuInit(unsigned int flags) {
    fork_as_for_device_files();
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? SIM_CUDA_SUCCESS : (kiln__cu_result)planned;
    SIM_CUDA_RULE(flags == 0, SIM_CUDA_INVALID_VALUE, "cuInit: flags is %u: must be 0", flags);
    sim_lock();
    bool forked = driver.process && driver.process != getpid();
    if (!forked) driver.process = getpid();
    size_t count = sim_device_count(prefix);
    sim_unlock();
    if (forked) return SIM_CUDA_NOT_INITIALIZED;
    return count ? SIM_CUDA_SUCCESS : SIM_CUDA_NO_DEVICE;
}

/* May be called before cuInit. */
kiln__cu_result cuDriverGetVersion(int *out_version) {
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? SIM_CUDA_SUCCESS : (kiln__cu_result)planned;
    SIM_CUDA_RULE(out_version, SIM_CUDA_INVALID_VALUE, "cuDriverGetVersion: the result is NULL");
    *out_version = sim_cuda_version();
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDeviceGetCount(int *out_count) {
    int32_t planned = sim_enter(__func__);
    SIM_CUDA_RULE(out_count, SIM_CUDA_INVALID_VALUE, "cuDeviceGetCount: the result is NULL");
    if (planned == SIM_LIE) *out_count = MILLION;
    if (planned) return planned == SIM_LIE ? SIM_CUDA_SUCCESS : (kiln__cu_result)planned;
    if (!sim_cuda_initialised(__func__)) return SIM_CUDA_NOT_INITIALIZED;
    *out_count = (int)sim_device_count(prefix);
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDeviceGet(kiln__cu_device *out_device, int ordinal) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_device, SIM_CUDA_INVALID_VALUE, "cuDeviceGet: the result is NULL");
    if (!sim_cuda_capability(ordinal)) return SIM_CUDA_INVALID_DEVICE;
    *out_device = ordinal;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDeviceGetName(char *out_name, int size, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_name && size > 0, SIM_CUDA_INVALID_VALUE, "cuDeviceGetName: no room for the name");
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "cuDeviceGetName: no device %d", device);
    snprintf(out_name, (size_t)size, "%s sm_%d", sim_name, sim_cuda_capability(device));
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDeviceTotalMem_v2(size_t *out_bytes, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_bytes, SIM_CUDA_INVALID_VALUE, "cuDeviceTotalMem: the result is NULL");
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "cuDeviceTotalMem: no device %d", device);
    *out_bytes = sim_memory_bytes();
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDeviceGetAttribute(int *out_value, kiln__cu_enum attribute, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_value, SIM_CUDA_INVALID_VALUE, "cuDeviceGetAttribute: the result is NULL");
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "cuDeviceGetAttribute: no device %d", device);
    const sim_processor *processor = sim_cuda_processor(device);
    const int32_t capability = sim_cuda_capability(device);
    switch (attribute) {
#define SIM_CUDA_ATTRIBUTE(name, number, value) \
    case number:                                \
        *out_value = (int)(value);              \
        break;
#include "tests/sim/cuda/device_attributes.def"
#undef SIM_CUDA_ATTRIBUTE
    default:
        sim_violation("cuDeviceGetAttribute: attribute %u is not presented", attribute);
        return SIM_CUDA_INVALID_VALUE;
    }
    return SIM_CUDA_SUCCESS;
}

/* ---- Contexts ---- */

kiln__cu_result cuDevicePrimaryCtxRetain(kiln__cu_context *out_context, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_context, SIM_CUDA_INVALID_VALUE, "cuDevicePrimaryCtxRetain: the result is NULL");
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "cuDevicePrimaryCtxRetain: no device %d",
                  device);
    if (!driver.primary[device]) {
        sim_context *created = sim_object_new("context", sizeof *created);
        if (!created) return SIM_CUDA_OUT_OF_MEMORY;
        *created = (sim_context){.device = device, .primary = true, .flags = driver.flags[device]};
        driver.primary[device] = created;
    }
    driver.primary[device]->references++;
    *out_context = driver.primary[device];
    return SIM_CUDA_SUCCESS;
}

/* What lives in a primary context when it goes stays listed, as a leak of its user. */
static void contents_sweep(const sim_context *context) {
    sim_cuda_modules_sweep(context);
    sim_cuda_streams_sweep(context);
    sim_cuda_memory_sweep(context);
}

kiln__cu_result cuDevicePrimaryCtxRelease_v2(kiln__cu_device device) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "cuDevicePrimaryCtxRelease: no device %d",
                  device);
    SIM_CUDA_RULE(driver.primary[device], SIM_CUDA_INVALID_CONTEXT,
                  "cuDevicePrimaryCtxRelease: device %d was not retained", device);
    sim_context *context = driver.primary[device];
    if (--context->references == 0) {
        /* After a fault nothing could be freed, and all goes with the context; otherwise what is left is a leak. */
        sim_cuda_finish_all(context);
        if (context->fault) contents_sweep(context);
        sim_cuda_runtime_end(context);
        sim_object_delete("context", context);
        driver.primary[device] = NULL;
    }
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuDevicePrimaryCtxGetState(kiln__cu_device device, unsigned int *out_flags, int *out_active) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_flags && out_active, SIM_CUDA_INVALID_VALUE, "cuDevicePrimaryCtxGetState: a result is NULL");
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "cuDevicePrimaryCtxGetState: no device %d",
                  device);
    *out_flags = driver.flags[device];
    *out_active = driver.primary[device] != NULL;
    return SIM_CUDA_SUCCESS;
}

/* How to wait (0, 1, 2 or 4), and three that are set or not. */
static bool flags_are(unsigned int flags) {
    enum { WAYS = 7, OTHERS = 8 | 16 | 128 };
    const unsigned int way = flags & WAYS;
    return !(flags & ~(unsigned int)(WAYS | OTHERS)) && !(way & (way - 1));
}

kiln__cu_result cuDevicePrimaryCtxSetFlags_v2(kiln__cu_device device, unsigned int flags) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_cuda_capability(device), SIM_CUDA_INVALID_DEVICE, "cuDevicePrimaryCtxSetFlags: no device %d",
                  device);
    SIM_CUDA_RULE(flags_are(flags), SIM_CUDA_INVALID_VALUE, "cuDevicePrimaryCtxSetFlags: flags is %u", flags);
    driver.flags[device] = flags;
    if (driver.primary[device]) driver.primary[device]->flags = flags;
    return SIM_CUDA_SUCCESS;
}

static kiln__cu_result context_create(kiln__cu_context *out_context, unsigned int flags, kiln__cu_device device) {
    SIM_CUDA_RULE(flags_are(flags), SIM_CUDA_INVALID_VALUE, "cuCtxCreate: flags is %u", flags);
    SIM_CUDA_RULE(out_context && sim_cuda_capability(device) && thread.depth < STACK_ROOM, SIM_CUDA_INVALID_VALUE,
                  "cuCtxCreate: invalid");
    sim_context *created = sim_object_new("context", sizeof *created);
    if (!created) return SIM_CUDA_OUT_OF_MEMORY;
    *created = (sim_context){.device = device, .flags = flags};
    thread.stack[thread.depth++] = created;
    *out_context = created;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxCreate_v2(kiln__cu_context *out_context, unsigned int flags, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    return context_create(out_context, flags, device);
}

kiln__cu_result cuCtxCreate_v4(kiln__cu_context *out_context, struct CUctxCreateParams_st *parameters,
                               unsigned int flags, kiln__cu_device device) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(!parameters, SIM_CUDA_INVALID_VALUE, "cuCtxCreate_v4: parameters are not presented");
    return context_create(out_context, flags, device);
}

kiln__cu_result cuCtxDestroy_v2(kiln__cu_context context) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_object_live("context", context) && !context->primary, SIM_CUDA_INVALID_CONTEXT,
                  "cuCtxDestroy: %p is no context that was created", (void *)context);
    sim_cuda_finish_all(context);
    contents_sweep(context);
    sim_cuda_runtime_end(context);
    sim_object_delete("context", context);
    if (thread.depth && thread.stack[thread.depth - 1] == context) thread.depth--;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxGetCurrent(kiln__cu_context *out_context) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_context, SIM_CUDA_INVALID_VALUE, "cuCtxGetCurrent: the result is NULL");
    *out_context = thread.depth ? thread.stack[thread.depth - 1] : NULL;
    return SIM_CUDA_SUCCESS;
}

/* Replaces the top of the thread's stack; NULL takes it off. */
kiln__cu_result cuCtxSetCurrent(kiln__cu_context context) {
    SIM_CUDA_ENTER();
    if (context && !sim_object_live("context", context)) return SIM_CUDA_CONTEXT_IS_DESTROYED;
    if (thread.depth) thread.depth--;
    if (context) thread.stack[thread.depth++] = context;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxPushCurrent_v2(kiln__cu_context context) {
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(sim_object_live("context", context) && thread.depth < STACK_ROOM, SIM_CUDA_INVALID_CONTEXT,
                  "cuCtxPushCurrent: %p is no context", (void *)context);
    thread.stack[thread.depth++] = context;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxPopCurrent_v2(kiln__cu_context *out_context) {
    SIM_CUDA_ENTER_CONTEXT(context);
    if (out_context) *out_context = context;
    thread.depth--;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxGetDevice(kiln__cu_device *out_device) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_device, SIM_CUDA_INVALID_VALUE, "cuCtxGetDevice: the result is NULL");
    *out_device = context->device;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxGetFlags(unsigned int *out_flags) {
    SIM_CUDA_ENTER_CONTEXT(context);
    SIM_CUDA_RULE(out_flags, SIM_CUDA_INVALID_VALUE, "cuCtxGetFlags: the result is NULL");
    *out_flags = context->flags;
    return SIM_CUDA_SUCCESS;
}

/* Of the newest interface that created contexts: 3020. */
kiln__cu_result cuCtxGetApiVersion(kiln__cu_context context, unsigned int *out_version) {
    enum { CONTEXT_VERSION = 3020 };
    SIM_CUDA_ENTER();
    SIM_CUDA_RULE(out_version && (!context || sim_object_live("context", context)), SIM_CUDA_INVALID_CONTEXT,
                  "cuCtxGetApiVersion: %p is no context, or the result is NULL", (void *)context);
    if (!context && !sim_cuda_current(__func__)) return SIM_CUDA_INVALID_CONTEXT;
    *out_version = CONTEXT_VERSION;
    return SIM_CUDA_SUCCESS;
}

/* All streams are alike. */
kiln__cu_result cuCtxGetStreamPriorityRange(int *out_least, int *out_greatest) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    if (out_least) *out_least = 0;
    if (out_greatest) *out_greatest = 0;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuCtxSynchronize(void) {
    SIM_CUDA_ENTER_CONTEXT(context);
    kiln__cu_result result = sim_cuda_unsafe();
    return result ? result : sim_cuda_finish_all(context);
}

/* ---- The profiler: there is none to tell ---- */

kiln__cu_result cuProfilerStart(void) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    return SIM_CUDA_SUCCESS;
}

kiln__cu_result cuProfilerStop(void) {
    SIM_CUDA_ENTER_CONTEXT(context);
    (void)context;
    return SIM_CUDA_SUCCESS;
}
