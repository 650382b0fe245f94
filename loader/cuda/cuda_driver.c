#include "loader/cuda/cuda_driver.h"
#include "loader/cuda/cuda_status.h"
#include "loader/dl.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

kiln__cuda_table kiln__cuda;

/* The plain name is tried because some applications load the driver by it; the last is where WSL keeps it, outside the
 * search path. */
static const char *const library_names[] = {"libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1", NULL};

enum { required = 1, optional = 0 };

static const kiln__symbol symbols[] = {
#define KILN_CUDA(field, name, requirement, result, parameters) {#name, offsetof(kiln__cuda_table, field), requirement},
#include "loader/cuda/symbols.def"
#undef KILN_CUDA
};

static struct {
    pthread_mutex_t lock;
    _Atomic pid_t process; /* that initialised it, or is about to; 0: none */
    _Atomic bool ready;
    const char *library;
    int version;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The thread that held it is not in the child. */
static void after_fork_in_child(void) {
    pthread_mutex_init(&driver.lock, NULL);
}

static void prepare(void) {
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

static kiln_status find(void) {
    char bytes[512] = "";
    kiln__text tried = {bytes, sizeof bytes, 0};
    void *handle = kiln__dl_open(library_names, &tried, &driver.library);
    if (!handle) return kiln__fail(KILN_ERROR_NO_DRIVER, "no CUDA driver: %s", bytes);
    return kiln__dl_symbols(handle, driver.library, symbols, sizeof symbols / sizeof *symbols, &kiln__cuda);
}

static kiln_status initialise(void) {
    kiln__cu_result result = kiln__cuda.cuInit(0);
    if (result == KILN__CU_ERROR_STUB_LIBRARY)
        return kiln__fail(KILN_ERROR_NO_DRIVER,
                          "%s is the toolkit's stub and not a driver (CUDA_ERROR_STUB_LIBRARY, %u)", driver.library,
                          result);
    /* What a child gets for a driver that its parent initialised. */
    if (result == KILN__CU_ERROR_NOT_INITIALIZED) {
        kiln__cuda_fail(NULL, "cuInit", result);
        return kiln__fail_within(KILN_ERROR_FORKED, "the CUDA driver was initialised before this process was forked");
    }
    if (result) return kiln__cuda_fail(NULL, "cuInit", result);
    driver.version = 0;
    result = kiln__cuda.cuDriverGetVersion(&driver.version);
    if (result) return kiln__cuda_fail(NULL, "cuDriverGetVersion", result);
    if (driver.version <= 0)
        return kiln__fail(KILN_ERROR_DRIVER, "cuDriverGetVersion: the version is %d", driver.version);
    return KILN_OK;
}

/* From before the driver's first call on, a child that is forked by any thread, or by the driver itself, is told so:
 * half of an initialisation is of no use to it. */
static kiln_status start(void) {
    KILN__TRY(find());
    atomic_store(&driver.process, getpid());
    kiln_status status = initialise();
    if (status == KILN_OK)
        atomic_store_explicit(&driver.ready, true, memory_order_release);
    else
        atomic_store(&driver.process, 0);
    return status;
}

kiln_status kiln__cuda_driver_ready(void) {
    kiln_status status = KILN_OK;
    pthread_once(&once, prepare);
    pid_t process = atomic_load(&driver.process);
    if (process && process != getpid())
        return kiln__fail(KILN_ERROR_FORKED, "the CUDA driver was initialised before this process was forked");
    if (atomic_load_explicit(&driver.ready, memory_order_acquire)) return KILN_OK;
    pthread_mutex_lock(&driver.lock);
    if (!atomic_load_explicit(&driver.ready, memory_order_relaxed)) status = start();
    pthread_mutex_unlock(&driver.lock);
    return status;
}

int32_t kiln__cuda_driver_version(void) {
    return driver.version;
}

const char *kiln__cuda_driver_library(void) {
    return driver.library;
}
