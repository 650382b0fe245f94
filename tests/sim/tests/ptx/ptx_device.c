#include "tests/sim/tests/ptx/ptx_device.h"
#include "loader/target.h"
#include "tests/sim/tests/cuda/cuda_driver.h"

enum { LOG_SIZE = 1024 };

static cuda_driver driver;
static kiln__cu_device device;
static char target[16], version[16];
static int32_t capability;
static char lost[LOG_SIZE]; /* why the device runs nothing more */

static void stop(const char *what, unsigned int result) {
    fprintf(stderr, "KILN_TEST_REAL_CUDA=%s: %s (%u)\n", getenv("KILN_TEST_REAL_CUDA"), what, result);
    exit(1);
}

static void must(const char *what, kiln__cu_result result) {
    if (result) stop(what, result);
}

static void close_device(void) {
    driver.cuDevicePrimaryCtxRelease(device);
}

static void open_device(const char *path) {
    const char *ordinal = getenv("KILN_TEST_REAL_DEVICE");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    kiln__cu_context context;
    int major, minor, of_driver;
    char name[128] = "";
    if (!library) stop(dlerror(), 0);
    cuda_driver_find(library, &driver);
    if (!driver.cuInit) stop("has no cuInit", 0);
    must("cuInit", driver.cuInit(0));
    must("cuDeviceGet", driver.cuDeviceGet(&device, ordinal ? atoi(ordinal) : 0));
    must("cuDeviceGetName", driver.cuDeviceGetName(name, sizeof name, device));
    must("cuDeviceGetAttribute",
         driver.cuDeviceGetAttribute(&major, KILN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    must("cuDeviceGetAttribute",
         driver.cuDeviceGetAttribute(&minor, KILN__CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
    must("cuDriverGetVersion", driver.cuDriverGetVersion(&of_driver));
    must("cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(&context, device));
    atexit(close_device);
    must("cuCtxSetCurrent", driver.cuCtxSetCurrent(context));
    /* The simulator reads texts of PTX 9.0 and of a newer version alike. */
    int32_t ptx = kiln__driver_ptx(of_driver) < 90 ? kiln__driver_ptx(of_driver) : 90;
    capability = major * 10 + minor;
    snprintf(target, sizeof target, "sm_%d", (int)capability);
    snprintf(version, sizeof version, "%d.%d", (int)ptx / 10, (int)ptx % 10);
    printf("# compared with %s (%s), driver %d, PTX %s\n", name, target, of_driver, version);
}

bool device_present(void) {
    const char *path = getenv("KILN_TEST_REAL_CUDA");
    if (!path) return false;
    if (!capability) open_device(path);
    return true;
}

const char *device_target(void) {
    return target;
}

const char *device_version(void) {
    return version;
}

const char *device_target_for(const char *wanted) {
    int32_t number;
    char suffix;
    bool own = wanted && kiln__nvidia_parse(wanted, &number, &suffix) && suffix && number == capability;
    return own ? wanted : target;
}

/* ---- Running ---- */

typedef struct loaded {
    kiln__cu_module module;
    kiln__cu_address memory[DEVICE_ARRAYS];
} loaded;

static bool failed(const char *what, kiln__cu_result result, char *why, size_t why_size) {
    if (!result) return false;
    snprintf(why, why_size, "%s gives %u", what, result);
    return true;
}

static bool load(const char *text, loaded *out, kiln__cu_function *function, char *why, size_t why_size) {
    char log[LOG_SIZE] = "";
    kiln__cu_enum options[] = {KILN__CU_JIT_ERROR_LOG_BUFFER, KILN__CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    kiln__cu_result result = driver.cuModuleLoadDataEx(&out->module, text, 2, options, values);
    if (result) {
        out->module = NULL;
        snprintf(why, why_size, "cuModuleLoadDataEx gives %u: %s", result, log);
        for (char *c = why; *c; c++)
            if (*c == '\n') *c = ' ';
        return false;
    }
    return !failed("cuModuleGetFunction", driver.cuModuleGetFunction(function, out->module, "kernel"), why, why_size);
}

static bool send(const device_array *arrays, uint32_t count, loaded *out, char *why, size_t why_size) {
    for (uint32_t i = 0; i < count; i++) {
        if (!arrays[i].bytes) continue;
        if (failed("cuMemAlloc", driver.cuMemAlloc(&out->memory[i], arrays[i].size), why, why_size)) return false;
        kiln__cu_result result =
            driver.cuMemcpyHtoDAsync(out->memory[i], arrays[i].bytes, arrays[i].size, CU_STREAM_LEGACY);
        if (failed("cuMemcpyHtoDAsync", result, why, why_size)) return false;
    }
    return true;
}

/* What fails here leaves the context useless. */
static bool launch_and_fetch(kiln__cu_function function, uint32_t blocks, uint32_t threads, const device_array *arrays,
                             uint32_t count, loaded *from, char *why, size_t why_size) {
    void *parameters[DEVICE_ARRAYS];
    for (uint32_t i = 0; i < count; i++)
        parameters[i] = &from->memory[i];
    if (failed("cuLaunchKernel",
               driver.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, CU_STREAM_LEGACY, parameters, NULL), why,
               why_size))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        if (!arrays[i].bytes) continue;
        kiln__cu_result result =
            driver.cuMemcpyDtoHAsync(arrays[i].bytes, from->memory[i], arrays[i].size, CU_STREAM_LEGACY);
        if (failed("the kernel", result, why, why_size)) return false;
    }
    return !failed("the kernel", driver.cuStreamSynchronize(CU_STREAM_LEGACY), why, why_size);
}

bool device_run(const char *text, uint32_t blocks, uint32_t threads, const device_array *arrays, uint32_t count,
                char *why, size_t why_size) {
    if (*lost) {
        snprintf(why, why_size, "the device was lost: %s", lost);
        return false;
    }
    loaded its = {0};
    kiln__cu_function function;
    bool ok = load(text, &its, &function, why, why_size) && send(arrays, count, &its, why, why_size);
    if (ok) {
        ok = launch_and_fetch(function, blocks, threads, arrays, count, &its, why, why_size);
        if (!ok) snprintf(lost, sizeof lost, "%s", why);
    }
    for (uint32_t i = 0; i < count; i++)
        if (its.memory[i]) driver.cuMemFree(its.memory[i]);
    if (its.module) driver.cuModuleUnload(its.module);
    return ok;
}
