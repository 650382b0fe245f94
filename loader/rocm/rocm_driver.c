#include "loader/rocm/rocm_driver.h"
#include "loader/dl.h"
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

kiln__rocm_table kiln__rocm;

const kiln__rocm_name_table kiln__rocm_names = {
#define KILN_HSA(field, exported, required, result, parameters) .field = #exported,
#include "loader/rocm/symbols.def"
#undef KILN_HSA
};

static const kiln__symbol symbols[] = {
#define KILN_HSA(field, exported, required, result, parameters) \
    {#exported, offsetof(kiln__rocm_table, field), required},
#include "loader/rocm/symbols.def"
#undef KILN_HSA
};

static struct {
    pthread_mutex_t lock;
    const char *library; /* NULL until its functions are found */
    pid_t process;       /* that started the runtime, or is about to; 0 before */
    bool ready;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The thread that held it is not in the child. */
static void after_fork_in_child(void) {
    pthread_mutex_init(&driver.lock, NULL);
}

static void prepare(void) {
    pthread_atfork(NULL, NULL, after_fork_in_child);
}

static kiln_status find_functions(void) {
    static const char *const names[] = {"libhsa-runtime64.so.1", "libhsa-runtime64.so", NULL};
    char bytes[1024] = "";
    kiln__text tried = {bytes, sizeof bytes, 0};
    const char *name = NULL;
    void *handle = kiln__dl_open(names, &tried, &name);
    if (!handle) return kiln__fail(KILN_ERROR_NO_DRIVER, "no HSA runtime: %s", bytes);
    KILN__TRY(kiln__dl_symbols(handle, name, symbols, sizeof symbols / sizeof *symbols, &kiln__rocm));
    driver.library = name;
    return KILN_OK;
}

/* The runtime says "out of resources" where the kernel driver is absent or closed to this user. */
static kiln_status start(void) {
    driver.process = getpid(); /* a child forked from here on is told so: half of a start is of no use to it */
    kiln__hsa_status status = kiln__rocm.init();
    if (status == KILN__HSA_STATUS_SUCCESS) {
        driver.ready = true;
        return KILN_OK;
    }
    driver.process = 0;
    kiln__rocm_fail(NULL, kiln__rocm_names.init, status);
    if (access("/dev/kfd", R_OK | W_OK) == 0)
        return kiln__fail_within(KILN_ERROR_DRIVER, "rocm: the HSA runtime does not start");
    if (errno == ENOENT) return kiln__fail_within(KILN_ERROR_NO_DRIVER, "no device: /dev/kfd is absent");
    return kiln__fail_within(KILN_ERROR_DRIVER, "rocm: /dev/kfd may not be opened by this user");
}

static kiln_status open_locked(void) {
    if (driver.process && driver.process != getpid())
        return kiln__fail(KILN_ERROR_FORKED, "rocm: the HSA runtime was started before a fork");
    if (!driver.library) KILN__TRY(find_functions());
    if (!driver.ready) KILN__TRY(start());
    return KILN_OK;
}

kiln_status kiln__rocm_driver_ready(void) {
    pthread_once(&once, prepare);
    pthread_mutex_lock(&driver.lock);
    kiln_status status = open_locked();
    pthread_mutex_unlock(&driver.lock);
    return status;
}

const char *kiln__rocm_driver_library(void) {
    return driver.library;
}
