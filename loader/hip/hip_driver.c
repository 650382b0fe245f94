#include "loader/hip/hip_driver.h"
#include "loader/dl.h"
#include "loader/hip/hip_status.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

kiln__hip_table kiln__hip;

static const char *const library_names[] = {
#define KILN_HIP_LIBRARY(name) name,
#include "loader/hip/libraries.def"
#undef KILN_HIP_LIBRARY
};

enum { required = 1, optional = 0 };

static const kiln__symbol symbols[] = {
#define KILN_HIP(name, requirement, result, parameters) {#name, offsetof(kiln__hip_table, name), requirement},
#include "loader/hip/symbols.def"
#undef KILN_HIP
};

/* A version is major * MAJOR + minor * MINOR + patch. */
enum { MAJOR = 10000000, MINOR = 100000, RECENT = 5 * MAJOR + 6 * MINOR };

static struct {
    pthread_mutex_t lock;
    _Atomic pid_t process; /* that initialised it, or is about to; 0: none */
    _Atomic bool ready;
    int version;
    char text[64];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The thread that held it is not in the child. */
static void after_fork_in_child(void) {
    pthread_mutex_init(&driver.lock, NULL);
}

static void prepare(void) {
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

/* The handle keeps the library loaded for good, as a driver's does. */
static kiln_status find(const char **out_library) {
    for (size_t i = 0; i < sizeof library_names / sizeof *library_names; i++) {
        void *handle = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
        if (!handle) continue;
        *out_library = library_names[i];
        KILN__TRY(kiln__dl_symbols(handle, *out_library, symbols, sizeof symbols / sizeof *symbols, &kiln__hip));
        if (kiln__hip.hipGetDevicePropertiesR0600 || kiln__hip.hipGetDeviceProperties) return KILN_OK;
        return kiln__fail(KILN_ERROR_DRIVER_TOO_OLD, "%s has no function hipGetDeviceProperties, which kiln needs",
                          *out_library);
    }
    return kiln__fail(KILN_ERROR_NO_DRIVER,
                      "HIP is not loaded in this process (libamdhip64.so), and kiln does not load it: without it, the "
                      "rocm backend opens the same GPUs");
}

static kiln_status initialise(const char *library) {
    kiln__hip_error result = kiln__hip.hipInit(0);
    if (result) return kiln__hip_fail(NULL, "hipInit", result);
    driver.version = 0;
    result = kiln__hip.hipRuntimeGetVersion(&driver.version);
    if (result) return kiln__hip_fail(NULL, "hipRuntimeGetVersion", result);
    snprintf(driver.text, sizeof driver.text, "%s, HIP %d.%d", library, driver.version / MAJOR,
             driver.version / MINOR % (MAJOR / MINOR));
    return KILN_OK;
}

static kiln_status start(void) {
    const char *library = NULL;
    KILN__TRY(find(&library));
    atomic_store(&driver.process, getpid());
    kiln_status status = initialise(library);
    if (status == KILN_OK)
        atomic_store_explicit(&driver.ready, true, memory_order_release);
    else
        atomic_store(&driver.process, 0);
    return status;
}

kiln_status kiln__hip_driver_ready(void) {
    kiln_status status = KILN_OK;
    pthread_once(&once, prepare);
    pid_t process = atomic_load(&driver.process);
    if (process && process != getpid())
        return kiln__fail(KILN_ERROR_FORKED, "HIP was initialised before this process was forked");
    if (atomic_load_explicit(&driver.ready, memory_order_acquire)) return KILN_OK;
    pthread_mutex_lock(&driver.lock);
    if (!atomic_load_explicit(&driver.ready, memory_order_relaxed)) status = start();
    pthread_mutex_unlock(&driver.lock);
    return status;
}

const char *kiln__hip_driver_text(void) {
    return driver.text;
}

bool kiln__hip_driver_is_recent(void) {
    return driver.version >= RECENT;
}
