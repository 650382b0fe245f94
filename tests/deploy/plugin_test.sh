# A plug-in that links libkiln.a, runs a kernel on a GPU and is closed by dlclose. What the HSA runtime and the C library
# keep of it must not lead into code that is gone: handlers of faults, error callbacks of queues, handlers of forks.
. tests/tap.sh
case $KILN_CONFIG in sanitize | thread | coverage | fuzz) skip_all "needs a library without a run-time of its own" ;; esac
CC=${CC:-cc}
cd "$KILN_SCRATCH" || exit 1
source_root=$OLDPWD

cat >plugin.c <<'END'
#include <kiln/ops.h>
#include <stdio.h>

/* Softmax of one row on rocm:0, and everything closed again. */
__attribute__((visibility("default"))) int run(int take_faults) {
    const float x[4] = {0, 0, 0, 0};
    float y[4] = {0};
    void *memory = NULL;
    kiln_device *device;
    kiln_stream stream;
    const kiln_device_options options = {.backend = KILN_BACKEND_ROCM, .take_faults = take_faults};
    if (kiln_device_open(&options, &device)) return fprintf(stderr, "%s\n", kiln_last_error()), 1;
    int failed = kiln_stream_open(device, 0, &stream) || kiln_memory_alloc(device, sizeof x, &memory) ||
                 kiln_copy(&stream, memory, x, sizeof x, KILN_COPY_TO_DEVICE);
    const kiln_softmax_params params = {.y = memory, .x = memory, .rows = 1, .cols = 4};
    failed = failed || kiln_softmax_f32(&stream, &params) ||
             kiln_copy(&stream, y, memory, sizeof y, KILN_COPY_TO_HOST) || kiln_stream_sync(&stream);
    if (failed) fprintf(stderr, "%s\n", kiln_last_error());
    kiln_memory_free(device, memory);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return failed || y[3] != 0.25f;
}
END

cat >main.c <<'END'
#define _GNU_SOURCE
#include "loader/rocm/rocm_abi.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST_GPU = 0x2000, FORMAT = 0x1009 }; /* the simulated runtime's handle; a status */
static kiln__hsa_queue *queue;
static int faults, errors;

static kiln__hsa_status on_fault(const kiln__hsa_event *event, void *data) {
    (void)event, (void)data;
    faults++;
    return KILN__HSA_STATUS_SUCCESS;
}

static void on_error(kiln__hsa_status status, kiln__hsa_queue *of, void *data) {
    (void)data;
    errors += status == FORMAT && of == queue;
}

static void *find(void *library, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol) exit((printf("no %s\n", name), 1));
    return symbol;
}

int main(int argc, char **argv) {
    const int take_faults = argc > 1 && !strcmp(argv[1], "take_faults");
    void *plugin = dlopen("./plugin.so", RTLD_NOW);
    if (!plugin) return printf("%s\n", dlerror()), 1;
    int (*run)(int);
    *(void **)&run = find(plugin, "run");
    if (run(take_faults)) return 1;
    dlclose(plugin);
    const int stays = dlopen("./plugin.so", RTLD_NOW | RTLD_NOLOAD) != NULL;
    if (stays != take_faults) return printf("the plug-in %s\n", stays ? "stays" : "is gone"), 1;

    /* The process's own queue has an error, and then its GPU a page fault. */
    void *hsa = dlopen("libhsa-runtime64.so.1", RTLD_NOW);
    kiln__hsa_status (*enroll)(kiln__hsa_event_callback, void *), (*destroy)(kiln__hsa_queue *);
    kiln__hsa_status (*create)(kiln__hsa_agent, uint32_t, uint32_t, kiln__hsa_queue_callback, void *, uint32_t, uint32_t,
                               kiln__hsa_queue **);
    void (*queue_error)(int32_t, uint32_t), (*page_fault)(int32_t);
    *(void **)&enroll = find(hsa, "hsa_amd_register_system_event_handler");
    *(void **)&create = find(hsa, "hsa_queue_create");
    *(void **)&destroy = find(hsa, "hsa_queue_destroy");
    *(void **)&queue_error = find(hsa, "kiln_sim_rocm_queue_error");
    *(void **)&page_fault = find(hsa, "kiln_sim_rocm_page_fault");
    const kiln__hsa_agent gpu = {FIRST_GPU};
    if (enroll(on_fault, NULL) || create(gpu, 64, 0, on_error, NULL, UINT32_MAX, UINT32_MAX, &queue)) return 1;
    queue_error(0, FORMAT);
    page_fault(0);
    if (errors != 1 || faults != 1) return printf("told of %d errors and %d faults\n", errors, faults), 1;
    destroy(queue);

    int status = -1;
    const pid_t child = fork();
    if (!child) _exit(0);
    return waitpid(child, &status, 0) != child || status;
}
END

build() {
    "$CC" -shared -fPIC -o plugin.so plugin.c "-I$source_root/include" "$KILN_BUILD/libkiln.a" -pthread -ldl -lm &&
        "$CC" -o main main.c "-I$source_root" -ldl
}

in_process() { # ARGUMENT...
    KILN_SIM_DEVICES=gfx90a LD_LIBRARY_PATH=$KILN_BUILD/sim ./main "$@" 2>told || { cat told && return 1; }
    ! grep '^sim:' told
}

check "a plug-in and its process link" build
check "closed, it is gone, and faults and forks do not lead into it" in_process
check "what takes faults stays, with its handler" in_process take_faults
finish
