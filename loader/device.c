#include "loader/device.h"
#include "loader/backend.h"
#include "loader/fork.h"
#include "loader/identity.h"
#include "loader/operator.h"
#include "loader/trace.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The open devices. The atfork handlers take registry_lock, so that a child never sees the list half changed. No driver
 * is called with it held, because a driver may itself fork (nvidia-modprobe), or be busy while another thread forks.
 * Opens are serialised by open_lock, which is taken first and reinitialised in a child process. */
static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;
static kiln_device *registry;

enum { WHY_SIZE = 2048, SEEN_SIZE = 1024 };

static const kiln__backend *const backends[] = {
#define KILN_BACKEND(id, name) [id] = &kiln__backend_##name,
#include "loader/backends.def"
#undef KILN_BACKEND
};
enum { BACKEND_END = sizeof backends / sizeof *backends };

const kiln__backend *kiln__backend_find(kiln_backend_id id) {
    return (unsigned)id < BACKEND_END ? backends[(unsigned)id] : NULL;
}

const char *kiln_backend_name(kiln_backend_id backend) {
    const kiln__backend *found = kiln__backend_find(backend);
    return found ? found->name : "any";
}

static void before_fork(void) {
    pthread_mutex_lock(&registry_lock);
}
static void after_fork_in_parent(void) {
    pthread_mutex_unlock(&registry_lock);
}

/* GPU devices are unusable in a child; the CPU device stays usable, with reinitialised locks. */
static void after_fork_in_child(void) {
    for (kiln_device *device = registry; device; device = device->next) {
        if (device->info.backend != KILN_BACKEND_CPU) atomic_store(device->state, 0);
        pthread_mutex_init(&device->load_lock, NULL);
        pthread_mutex_init(&device->trace_lock, NULL);
    }
    pthread_mutex_init(&open_lock, NULL);
    pthread_mutex_unlock(&registry_lock);
}

static void registry_prepare(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

kiln_status kiln__device_check(const kiln_device *device) {
    uint32_t state = atomic_load_explicit(device->state, memory_order_acquire);
    if (KILN__LIKELY((state & (KILN__READY | KILN__LOST | KILN__CLOSING | KILN__PLANNING)) == KILN__READY))
        return KILN_OK;
    if (!(state & KILN__READY))
        return kiln__fail(KILN_ERROR_FORKED,
                          "%s:%d was opened before this process was forked: open the device in the child, before the "
                          "parent uses a GPU",
                          device->backend->name, device->info.ordinal);
    if (state & KILN__LOST)
        return kiln__fail(KILN_ERROR_DEVICE_LOST, "%s:%d is lost: %s", device->backend->name, device->info.ordinal,
                          device->lost);
    if (state & KILN__PLANNING)
        return kiln__fail(KILN_ERROR_INVALID_ARGUMENT, "a stream of kiln_plan_open is for operators' functions alone");
    return kiln__fail(KILN_ERROR_INVALID_ARGUMENT, "%s:%d is being closed", device->backend->name,
                      device->info.ordinal);
}

kiln_status kiln__device_argument_check(const char *function, const kiln_device *device) {
    KILN__REQUIRE(device, "%s: device is NULL", function);
    return kiln__device_check(device);
}

void kiln__device_lose(kiln_device *device, const char *format, ...) {
    va_list arguments;
    if (atomic_fetch_or(device->state, KILN__LOSING) & KILN__LOSING) return;
    va_start(arguments, format);
    vsnprintf(device->lost, sizeof device->lost, format, arguments);
    va_end(arguments);
    atomic_fetch_or(device->state, KILN__LOST);
}

void kiln_device_mark_lost(kiln_device *device, uint32_t error) {
    if (device && error) device->backend->device_lose(device, error);
}

kiln_status kiln_device_count(kiln_backend_id backend, int32_t *out_count) {
    KILN__REQUIRE(out_count, "kiln_device_count: out_count is NULL");
    *out_count = 0;
    const kiln__backend *found = kiln__backend_find(backend);
    KILN__REQUIRE(found,
                  "kiln_device_count: backend is %d: must be KILN_BACKEND_CUDA, KILN_BACKEND_ROCM, KILN_BACKEND_CPU or "
                  "KILN_BACKEND_HIP",
                  (int)backend);
    return found->count(out_count);
}

void kiln__device_free(kiln_device *device) {
    if (!device) return;
    kiln__fork_word_free(device->state);
    pthread_mutex_destroy(&device->load_lock);
    pthread_mutex_destroy(&device->trace_lock);
    free(device->why);
    free(device);
}

/* The info of a device about which nothing else is known yet. */
static kiln_device_info info_of(const kiln__backend *backend, int32_t ordinal) {
    return (kiln_device_info){.backend = backend->id,
                              .ordinal = ordinal,
                              .pci_domain = -1,
                              .pci_bus = -1,
                              .pci_device = -1,
                              .pci_function = -1,
                              .numa_node = -1};
}

kiln_device *kiln__device_new(const kiln__backend *backend, int32_t ordinal) {
    kiln_device *device = calloc(1, sizeof *device);
    if (!device) return NULL;
    pthread_mutex_init(&device->load_lock, NULL);
    pthread_mutex_init(&device->trace_lock, NULL);
    device->backend = backend;
    device->launch = backend->launch;
    device->launch_plain = backend->launch_plain;
    device->threads_most = UINT64_MAX;
    device->references = 1;
    device->info = info_of(backend, ordinal);
    device->state = kiln__fork_word_alloc(backend->id != KILN_BACKEND_CPU);
    if (device->state) return device;
    kiln__device_free(device);
    return NULL;
}

static kiln_status device_create(const kiln__backend *backend, const kiln_device_options *options,
                                 kiln_device **out_device) {
    kiln_device *device = kiln__device_new(backend, options->ordinal);
    if (!device) return kiln__fail(KILN_ERROR_OUT_OF_MEMORY, "kiln_device_open: no memory for the device");
    kiln_status status = backend->device_open(device, options);
    if (status != KILN_OK) {
        kiln__device_free(device);
        return status;
    }
    static _Atomic uint64_t opened;
    if (backend->id != KILN_BACKEND_CPU) device->number = atomic_fetch_add(&opened, 1) + 1;
    atomic_store(device->state, KILN__READY);
    *out_device = device;
    return KILN_OK;
}

/* Finds the open device of a backend, ordinal and context and adds a reference. *out_device is NULL if there is none
 * (KILN_OK) or if it cannot be used (an error). */
static kiln_status find_open(const kiln__backend *backend, int32_t ordinal, const void *context,
                             kiln_device **out_device) {
    kiln_status status = KILN_OK;
    pthread_mutex_lock(&registry_lock);
    kiln_device *device = registry;
    while (device && (device->backend != backend || device->info.ordinal != ordinal || device->key_context != context))
        device = device->next;
    if (device) status = kiln__device_check(device);
    if (device && status == KILN_OK) device->references++;
    pthread_mutex_unlock(&registry_lock);
    *out_device = status == KILN_OK ? device : NULL;
    return status;
}

/* Finds the ordinal of the backend's GPU with this id; -1 if there is none, with the GPUs' ids in the error text. */
static kiln_status find_id(const kiln__backend *backend, int32_t count, const char *id, int32_t *out_ordinal) {
    char bytes[SEEN_SIZE] = "";
    kiln__text seen = {bytes, sizeof bytes, 0};
    *out_ordinal = -1;
    for (int32_t ordinal = 0; ordinal < count; ordinal++) {
        kiln_device_info info = info_of(backend, ordinal);
        char uuid[KILN__IDENTITY_SIZE], pci[KILN__IDENTITY_SIZE];
        KILN__TRY(backend->identify(&info));
        if (kiln__identity_is(&info, id)) {
            *out_ordinal = ordinal;
            return KILN_OK;
        }
        kiln_device_uuid_text(&info, uuid, sizeof uuid);
        kiln_device_pci_text(&info, pci, sizeof pci);
        kiln__text_add(&seen, "%s%s:%d is %s%s%s", ordinal ? ", " : "", backend->name, ordinal, uuid,
                       *uuid && *pci   ? " at "
                       : *uuid || *pci ? ""
                                       : "not told",
                       pci);
    }
    kiln__fail(KILN_ERROR_NOT_FOUND, "kiln_device_open: no device is %s: %s", id, bytes);
    return KILN_OK;
}

/* Opens one backend's device, or finds it open. Called under open_lock. *out_absent: the backend has no device, or none
 * with the requested id. */
static kiln_status open_on(const kiln__backend *backend, const kiln_device_options *options, kiln_device **out_device,
                           bool *out_absent) {
    int32_t count;
    *out_absent = false;
    KILN__TRY(backend->count(&count));
    if (count == 0) {
        *out_absent = true;
        return KILN_ERROR_NO_DRIVER; /* the backend has set the text */
    }
    kiln_device_options wanted = *options;
    if (options->id) KILN__TRY(find_id(backend, count, options->id, &wanted.ordinal));
    if (wanted.ordinal < 0) {
        *out_absent = true;
        return KILN_ERROR_NOT_FOUND; /* the text lists the ids that exist */
    }
    if (wanted.ordinal >= count)
        return kiln__fail(KILN_ERROR_NOT_FOUND, "kiln_device_open: ordinal is %d, %s has %d device%s", wanted.ordinal,
                          backend->name, count, count == 1 ? "" : "s");
    void *context = backend->id == KILN_BACKEND_CUDA ? wanted.context : NULL;
    KILN__TRY(find_open(backend, wanted.ordinal, context, out_device));
    return *out_device ? KILN_OK : device_create(backend, &wanted, out_device);
}

/* Adds a newly opened device at the head of the registry, with the selection log why. */
static void registry_add(kiln_device *device, const char *why) {
    device->why = strdup(why);
    pthread_mutex_lock(&registry_lock);
    device->next = registry;
    registry = device;
    device->listed = true;
    pthread_mutex_unlock(&registry_lock);
}

/* Whether the backend must be requested by name, because its devices are also another backend's. */
static bool is_by_name(const kiln__backend *backend) {
    return backend->id == KILN_BACKEND_HIP;
}

/* Tries the backends that the options allow, in order of preference, and writes the selection log to why. */
static kiln_status open_first(const kiln_device_options *options, kiln__text *why, kiln_device **out_device) {
    kiln_status status = KILN_OK, absence = KILN_ERROR_NO_DRIVER;
    for (unsigned id = KILN_BACKEND_ANY + 1; id < BACKEND_END; id++) {
        const kiln__backend *backend = backends[id];
        bool absent;
        if (options->backend != backend->id && (options->backend != KILN_BACKEND_ANY || is_by_name(backend))) continue;
        if ((options->require_gpu || options->id) && backend->id == KILN_BACKEND_CPU) {
            kiln__text_add(why, "%scpu: skipped, %s", why->length ? "\n" : "",
                           options->id ? "id names a GPU" : "a GPU is required");
            continue;
        }
        status = open_on(backend, options, out_device, &absent);
        if (status == KILN_OK) {
            kiln__text_add(why, "%s%s: chosen", why->length ? "\n" : "", backend->name);
            return KILN_OK;
        }
        kiln__text_add(why, "%s%s: skipped, %s", why->length ? "\n" : "", backend->name, kiln_last_error());
        if (!absent) return status;
        if (status == KILN_ERROR_NOT_FOUND) absence = status;
    }
    return kiln__fail(absence, "no device: %s", why->bytes);
}

kiln_status kiln_device_open_sized(const kiln_device_options *options, size_t options_size, kiln_device **out_device) {
    KILN__REQUIRE(out_device, "kiln_device_open: out_device is NULL");
    *out_device = NULL;
    kiln_device_options wanted = {0};
    if (options)
        KILN__TRY(kiln__params_copy("kiln_device_open", "options", &wanted, sizeof wanted, options, options_size));
    KILN__REQUIRE(wanted.backend == KILN_BACKEND_ANY || kiln__backend_find(wanted.backend),
                  "kiln_device_open: backend is %d: not a kiln_backend_id", (int)wanted.backend);
    KILN__REQUIRE(wanted.ordinal >= 0, "kiln_device_open: ordinal is %d: must not be negative", wanted.ordinal);
    KILN__REQUIRE(!wanted.id || wanted.ordinal == 0, "kiln_device_open: ordinal is %d: must be 0 beside id %s",
                  wanted.ordinal, wanted.id);
    KILN__REQUIRE(!wanted.id || wanted.backend != KILN_BACKEND_CPU, "kiln_device_open: id is %s: the CPU has none",
                  wanted.id);
    char bytes[WHY_SIZE] = "";
    kiln__text why = {bytes, sizeof bytes, 0};
    pthread_once(&registry_once, registry_prepare);
    pthread_mutex_lock(&open_lock);
    kiln_device *device = NULL;
    kiln_status status = open_first(&wanted, &why, &device);
    if (status == KILN_OK && !device->listed) registry_add(device, bytes);
    pthread_mutex_unlock(&open_lock);
    if (status == KILN_OK) {
        kiln__log(KILN_LOG_INFO, "opened %s:%d (%s)\n%s", device->backend->name, device->info.ordinal,
                  device->info.name, bytes);
        *out_device = device;
    }
    return status;
}

static void registry_remove(kiln_device *device) {
    for (kiln_device **link = &registry; *link; link = &(*link)->next) {
        if (*link != device) continue;
        *link = device->next;
        return;
    }
}

void kiln_device_close(kiln_device *device) {
    if (!device) return;
    pthread_mutex_lock(&registry_lock);
    bool last = --device->references == 0;
    if (last) registry_remove(device);
    pthread_mutex_unlock(&registry_lock);
    if (!last) return;
    bool forked = !(atomic_fetch_or(device->state, KILN__CLOSING) & KILN__READY);
    kiln__trace_discard(device);
    kiln__modules_close(device, forked);
    if (!forked) device->backend->device_close(device);
    kiln__device_free(device);
}

const char *kiln_device_selection_log(const kiln_device *device) {
    return device && device->why ? device->why : "";
}

kiln_status kiln_device_enable_peer(kiln_device *device, kiln_device *peer) {
    KILN__REQUIRE(device && peer, "kiln_device_enable_peer: %s is NULL", device ? "peer" : "device");
    KILN__TRY(kiln__device_check(device));
    KILN__TRY(kiln__device_check(peer));
    KILN__REQUIRE(device->backend == peer->backend, "kiln_device_enable_peer: device is of %s, peer of %s",
                  device->backend->name, peer->backend->name);
    return device == peer ? KILN_OK : device->backend->device_enable_peer(device, peer);
}

kiln_status kiln_device_get_info(const kiln_device *device, kiln_device_info *out_info) {
    KILN__REQUIRE(out_info, "kiln_device_get_info: out_info is NULL");
    memset(out_info, 0, sizeof *out_info);
    KILN__REQUIRE(device, "kiln_device_get_info: device is NULL");
    *out_info = device->info;
    return KILN_OK;
}
