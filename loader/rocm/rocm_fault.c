/* Page faults, hardware exceptions and memory errors. The runtime calls each registered handler, on a thread of its
 * own, and aborts the process unless one of them returns success; whose kernel caused the event is not known. It then
 * drops the handlers, so nothing that happens after the first such event is reported. */
#include "loader/dl.h"
#include "loader/rocm/rocm_backend.h"

static struct {
    pthread_mutex_t lock;
    kiln__rocm_device *devices; /* that are open */
    bool registered;
    bool told;
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lose_by(kiln_device *device, const kiln__hsa_event *event) {
    if (event->event_type == KILN__HSA_AMD_GPU_MEMORY_FAULT_EVENT)
        kiln__device_lose(device, "a page fault at 0x%llx (HSA's reasons 0x%x)",
                          (unsigned long long)event->virtual_address, (unsigned)event->fault_reason_mask);
    else
        kiln__device_lose(device, "a hardware exception or memory error (HSA's event %u)", (unsigned)event->event_type);
}

/* An agent's fault stops its queues; the other devices would wait for ever for the second one's. */
static kiln__hsa_status on_event(const kiln__hsa_event *event, void *data) {
    (void)data;
    kiln__hsa_status status = KILN__HSA_STATUS_ERROR;
    pthread_mutex_lock(&faults.lock);
    faults.told = true;
    for (kiln__rocm_device *rocm = faults.devices; rocm; rocm = rocm->next) {
        if (rocm->agent.handle != event->agent.handle) {
            kiln__device_lose(rocm->device, "a fault of another GPU, after which the HSA runtime tells of none");
            continue;
        }
        lose_by(rocm->device, event);
        if (rocm->takes_faults) status = KILN__HSA_STATUS_SUCCESS;
    }
    pthread_mutex_unlock(&faults.lock);
    return status;
}

/* The runtime keeps a handler for good, so the process must keep this one's code. */
static kiln_status enroll(void) {
    if (faults.registered) return KILN_OK;
    if (!kiln__rocm.register_event_handler)
        return kiln__fail(KILN_ERROR_UNSUPPORTED, "kiln_device_open: take_faults: the HSA runtime has no %s",
                          kiln__rocm_names.register_event_handler);
    KILN__ROCM_TRY(NULL, register_event_handler, on_event, NULL);
    kiln__dl_stay(&faults);
    faults.registered = true;
    return KILN_OK;
}

static kiln_status join(kiln__rocm_device *rocm) {
    if (faults.told)
        return kiln__fail(KILN_ERROR_DEVICE_LOST,
                          "rocm: the HSA runtime told of a fault in this process, and tells of no second one");
    if (rocm->takes_faults) KILN__TRY(enroll());
    rocm->next = faults.devices;
    faults.devices = rocm;
    return KILN_OK;
}

kiln_status kiln__rocm_faults_join(kiln__rocm_device *rocm) {
    pthread_mutex_lock(&faults.lock);
    kiln_status status = join(rocm);
    pthread_mutex_unlock(&faults.lock);
    return status;
}

void kiln__rocm_faults_leave(kiln__rocm_device *rocm) {
    pthread_mutex_lock(&faults.lock);
    kiln__rocm_device **link = &faults.devices;
    while (*link != rocm)
        link = &(*link)->next;
    *link = rocm->next;
    pthread_mutex_unlock(&faults.lock);
}
