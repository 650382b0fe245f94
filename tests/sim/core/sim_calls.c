/* Settings, the log of calls, the fault plan, violations and launches. */
#include "tests/sim/core/sim.h"
#include "tests/sim/core/sim_mutants.h"
#include "tests/sim/core/sim_random.h"
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Calls and launches beyond these are counted, not kept. */
enum { CALL_ROOM = 1 << 16, LAUNCH_ROOM = 256, NAME_SIZE = 64, SETTING_ROOM = 16 };

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static struct {
    const char *calls[CALL_ROOM];
    uint64_t call_count;
    char violation[512];
    uint64_t violation_count;
    sim_launch launches[LAUNCH_ROOM];
    uint64_t launch_count;
} record;

static struct {
    char function[NAME_SIZE]; /* "": no fault */
    uint64_t countdown;       /* calls until it strikes; 0: it has struck */
    int32_t error;
    uint64_t struck;
} fault;

static struct {
    char variable[NAME_SIZE];
    char value[512];
    bool set;
} settings[SETTING_ROOM];

void sim_lock(void) {
    pthread_mutex_lock(&lock);
}
void sim_unlock(void) {
    pthread_mutex_unlock(&lock);
}

/* ---- Settings ---- */

const char *sim_setting(const char *variable) {
    for (size_t i = 0; i < SETTING_ROOM; i++) {
        if (!strcmp(settings[i].variable, variable)) return settings[i].set ? settings[i].value : NULL;
    }
    return getenv(variable);
}

uint64_t sim_setting_number(const char *variable, uint64_t otherwise) {
    const char *value = sim_setting(variable);
    return value ? strtoull(value, NULL, 0) : otherwise;
}

uint32_t sim_multiprocessors(uint32_t chip) {
    const uint64_t number = sim_setting_number("KILN_SIM_MULTIPROCESSORS", chip);
    return number && number < chip ? (uint32_t)number : chip;
}

uint32_t sim_threads(void) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return (uint32_t)sim_setting_number("KILN_SIM_THREADS", processors > 1 ? (uint64_t)processors : 1);
}

uint64_t sim_chance(void) {
    static uint64_t drawn;
    uint64_t state = sim_setting_number("KILN_SIM_SEED", 1) * 0xd1342543de82ef95u + drawn++ * 0x9e3779b97f4a7c15u;
    return sim_random(&state);
}

sim_sum_mode sim_setting_matrix(sim_sum_mode unset) {
    const char *name = sim_setting("KILN_SIM_MATRIX");
    sim_sum_mode mode = unset;
    if (!sim_sum_mode_named(name, &mode))
        sim_violation("KILN_SIM_MATRIX=%s: not exact, sequential, truncating or hopper", name);
    return mode;
}

uint64_t sim_memory_bytes(void) {
    return sim_setting_number("KILN_SIM_MEMORY", 1u << 30);
}

/* The index-th number of KILN_SIM_VISIBLE; false beyond the last. */
static bool visible_place(size_t index, size_t *out_place) {
    const char *at = sim_setting("KILN_SIM_VISIBLE");
    *out_place = index;
    while (at && index--) {
        at = strchr(at, ',');
        if (!at) return false;
        at++;
    }
    if (at) *out_place = strtoul(at, NULL, 10);
    return true;
}

size_t sim_device_place(size_t index) {
    size_t place;
    return visible_place(index, &place) ? place : index;
}

bool sim_device_name(const char *prefix, size_t index, char *name, size_t size) {
    const char *at = sim_setting("KILN_SIM_DEVICES");
    if (!visible_place(index, &index)) return false;
    while (at && *at) {
        size_t length = strcspn(at, ",");
        if (!strncmp(at, prefix, strlen(prefix)) && index-- == 0) {
            snprintf(name, size, "%.*s", (int)length, at);
            return true;
        }
        at += length + (at[length] == ',');
    }
    return false;
}

size_t sim_device_count(const char *prefix) {
    char name[NAME_SIZE];
    size_t count = 0;
    while (sim_device_name(prefix, count, name, sizeof name))
        count++;
    return count;
}

SIM_EXPORT void kiln_sim_configure(const char *variable, const char *value) {
    sim_lock();
    size_t i = 0;
    while (i < SETTING_ROOM && settings[i].variable[0] && strcmp(settings[i].variable, variable))
        i++;
    if (i == SETTING_ROOM) {
        sim_violation("kiln_sim_configure: no room for %s", variable);
    } else {
        snprintf(settings[i].variable, sizeof settings[i].variable, "%s", variable);
        snprintf(settings[i].value, sizeof settings[i].value, "%s", value ? value : "");
        settings[i].set = value != NULL;
    }
    sim_unlock();
}

/* ---- Calls and faults ---- */

static bool names(const char *pattern, const char *function) {
    return !strcmp(pattern, "*") || !strcmp(pattern, function);
}

SIM_EXPORT void kiln_sim_fault(const char *function, uint64_t nth, int32_t error) {
    sim_lock();
    snprintf(fault.function, sizeof fault.function, "%s", function ? function : "");
    fault.countdown = nth;
    fault.error = error;
    fault.struck = 0;
    sim_unlock();
}

/* KILN_SIM_FAULT, read when the driver is loaded. */
__attribute__((constructor)) static void read_fault(void) {
    const char *value = getenv("KILN_SIM_FAULT");
    char function[NAME_SIZE];
    unsigned long long nth;
    int error;
    if (!value) return;
    if (sscanf(value, "%63[^,],%llu,%d", function, &nth, &error) == 3) {
        kiln_sim_fault(function, nth, error);
    } else {
        sim_violation("KILN_SIM_FAULT is \"%s\": must be function,nth,error", value);
    }
}

int32_t sim_enter(const char *function) {
    int32_t error = 0;
    sim_lock();
    if (record.call_count < CALL_ROOM) record.calls[record.call_count] = function;
    record.call_count++;
    if (fault.function[0] && fault.countdown && names(fault.function, function) && --fault.countdown == 0) {
        fault.struck++;
        error = fault.error;
    }
    sim_unlock();
    return error;
}

SIM_EXPORT uint64_t kiln_sim_faulted(void) {
    sim_lock();
    uint64_t struck = fault.struck;
    sim_unlock();
    return struck;
}

SIM_EXPORT uint64_t kiln_sim_calls(const char *function) {
    sim_lock();
    uint64_t count = 0;
    if (!strcmp(function, "*")) {
        count = record.call_count;
    } else {
        for (uint64_t i = 0; i < record.call_count && i < CALL_ROOM; i++)
            count += !strcmp(record.calls[i], function);
    }
    sim_unlock();
    return count;
}

SIM_EXPORT const char *kiln_sim_call(uint64_t index) {
    sim_lock();
    const char *function = index < record.call_count && index < CALL_ROOM ? record.calls[index] : NULL;
    sim_unlock();
    return function;
}

/* ---- Violations ---- */

void sim_violation(const char *format, ...) {
    va_list arguments;
    sim_lock();
    va_start(arguments, format);
    vsnprintf(record.violation, sizeof record.violation, format, arguments);
    va_end(arguments);
    record.violation_count++;
    fprintf(stderr, "sim: violation: %s\n", record.violation);
    sim_noticed();
    sim_unlock();
}

SIM_EXPORT uint64_t kiln_sim_violations(void) {
    sim_lock();
    uint64_t count = record.violation_count;
    sim_unlock();
    return count;
}

SIM_EXPORT const char *kiln_sim_violation(void) {
    return record.violation;
}

/* ---- Launches ---- */

void sim_launch_add(const sim_launch *launch) {
    sim_lock();
    if (record.launch_count < LAUNCH_ROOM) record.launches[record.launch_count] = *launch;
    record.launch_count++;
    sim_unlock();
}

SIM_EXPORT uint64_t kiln_sim_launches(void) {
    sim_lock();
    uint64_t count = record.launch_count;
    sim_unlock();
    return count;
}

SIM_EXPORT int kiln_sim_launch(uint64_t index, sim_launch *out_launch) {
    sim_lock();
    bool kept = index < record.launch_count && index < LAUNCH_ROOM;
    if (kept) *out_launch = record.launches[index];
    sim_unlock();
    return kept;
}

SIM_EXPORT int kiln_sim_counter(uint64_t index, const char *name, uint64_t *out) {
    static const struct {
        const char *name;
        size_t offset;
    } counters[] = {
#define SIM_COUNTER_ROW(name) {#name, offsetof(sim_launch, counters.name)},
        SIM_COUNTERS(SIM_COUNTER_ROW)
#undef SIM_COUNTER_ROW
    };
    bool found = false;
    sim_lock();
    for (size_t i = 0; i < sizeof counters / sizeof *counters && index < record.launch_count && index < LAUNCH_ROOM;
         i++) {
        if (strcmp(counters[i].name, name) != 0) continue;
        memcpy(out, (const char *)&record.launches[index] + counters[i].offset, sizeof *out);
        found = true;
    }
    sim_unlock();
    return found;
}

SIM_EXPORT void kiln_sim_reset(void) {
    sim_lock();
    record.call_count = 0;
    record.violation_count = 0;
    record.violation[0] = 0;
    record.launch_count = 0;
    fault.function[0] = 0;
    fault.struck = 0;
    sim_unlock();
}
