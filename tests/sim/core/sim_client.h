/* For tests: run with a recording driver on the library path, and steer it.
 *
 * The path must be set before the program starts, so that the library under test finds the driver as it would any. */
#ifndef KILN_TESTS_SIM_CLIENT_H
#define KILN_TESTS_SIM_CLIENT_H

#include "tests/sim/core/sim_control.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void sim_client_program(char path[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0) {
        perror("/proc/self/exe");
        exit(1);
    }
    path[length] = 0;
}

/* The folder with the drivers of the build that this program is of: KILN_SIM_DIR, or the first sim/ with drivers in a
 * folder above the program. */
static inline void sim_client_folder(char folder[PATH_MAX + 16]) {
    const char *chosen = getenv("KILN_SIM_DIR");
    if (chosen) {
        snprintf(folder, PATH_MAX + 16, "%s", chosen);
        return;
    }
    char at[PATH_MAX], driver[PATH_MAX + 32];
    sim_client_program(at);
    for (char *slash; (slash = strrchr(at, '/')) && slash != at;) {
        *slash = 0;
        snprintf(driver, sizeof driver, "%s/sim/libcuda.so.1", at);
        if (access(driver, R_OK) == 0) break;
    }
    snprintf(folder, PATH_MAX + 16, "%s/sim", at);
}

/* Call first in main: sets the variables (devices may be NULL) and starts the program again with the drivers' folder
 * at the head of LD_LIBRARY_PATH; with a subfolder ("cuda-10"), that one of it. Launches are recorded and not executed,
 * unless KILN_SIM_RECORD is set to 0 before. Returns in the second run.
 */
static inline void sim_client_start_in(char **argv, const char *devices, const char *subfolder) {
    if (getenv("KILN_SIM_STARTED")) return;
    char program[PATH_MAX], folder[PATH_MAX + 16], path[2 * PATH_MAX];
    sim_client_folder(folder);
    const char *old = getenv("LD_LIBRARY_PATH");
    snprintf(path, sizeof path, "%s/%s%s%s", folder, subfolder, old ? ":" : "", old ? old : "");
    setenv("LD_LIBRARY_PATH", path, 1);
    setenv("KILN_SIM_STARTED", "1", 1);
    setenv("KILN_SIM_RECORD", "1", 0);
    if (devices) setenv("KILN_SIM_DEVICES", devices, 1);
    sim_client_program(program);
    execv(program, argv);
    perror(program);
    exit(1);
}

static inline void sim_client_start(char **argv, const char *devices) {
    sim_client_start_in(argv, devices, "");
}

/* Fills the control table of a driver ("libcuda.so.1"); ends the program if it is not a recording driver. The handle,
 * for dlsym of the driver's own functions, is returned. */
static inline void *sim_client_open(const char *library, sim_control *out_control) {
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    /* dlsym gives an object pointer; POSIX has it hold a function's address. */
#define SIM_CONTROL_LOAD(result, name, parameters)                                       \
    *(void **)&out_control->name = dlsym(handle, "kiln_sim_" #name);                     \
    if (!out_control->name) {                                                            \
        fprintf(stderr, "%s: no kiln_sim_" #name ": not a recording driver\n", library); \
        exit(1);                                                                         \
    }
    SIM_CONTROL_MAP(SIM_CONTROL_LOAD)
#undef SIM_CONTROL_LOAD
    return handle;
}

#endif
