/* kiln: a fat-binary GPU kernel loader.
 *
 * kiln finds the GPU driver with dlopen, picks from each embedded bundle the image that fits the device, loads it once
 * and launches from it. There is no run-time compilation and no toolkit to install; on a machine without a GPU the
 * same calls run on the CPU.
 *
 * Read this header from top to bottom; it is written in order of need:
 *
 *   1. Status and errors        what every call returns
 *   2. Devices                  find and open one
 *   3. Streams                  an ordered queue of work, owned or borrowed
 *   4. Memory                   device memory, pinned host memory, copies
 *   5. Bundles and selection    which image fits which device, and why the others do not
 *   6. Modules and kernels      load an image, find a kernel, launch it
 *   7. Events                   order and time
 *   8. Start-up check           fail when the server starts, not at its first request
 *   9. Tracing                  every launch, on a time line
 *  10. Image inspection         read a PTX, cubin or HSACO file
 *
 * Conventions, which hold for every function unless it says otherwise:
 *
 * - A function returns a kiln_status; KILN_OK is zero. On failure its outputs are zero, nothing is half done, and
 *   kiln_last_error() has a sentence that names the argument and the rule, or the driver's call and error.
 * - Results come back through out_ parameters, which stand last and are zeroed on entry. A NULL out_ parameter is
 *   KILN_ERROR_INVALID_ARGUMENT.
 * - open, create and alloc give ownership, to be released with the matching close, destroy and free. get and find
 *   borrow. Functions that release return nothing and accept NULL.
 * - Threads: every function may be called from any thread at any time, except that one kiln_stream or kiln_event is
 *   used by one thread at a time, and that releasing an object must not race with its use.
 * - Fork: a child process that inherits an open GPU device gets KILN_ERROR_FORKED from every call on it. CPU devices go
 *   on working.
 * - Loss: once a kernel or the hardware has failed, every wait ends, and every call on the device returns
 *   KILN_ERROR_DEVICE_LOST with what it was lost by. Releasing works as ever; a device that was closed may be opened
 *   again, if its driver can still use it.
 * - Structs grow. One that the caller fills is cleared first, by a designated initialiser or memset: a field that is 0
 *   asks for nothing. One passed with its size may be longer or shorter than kiln's own. kiln_launch_config is passed
 *   without, and what stands behind its flags is read only if a flag says so. kiln_device_info and
 *   kiln_kernel_attributes end with reserved fields, which are 0 until a later version gives them a name.
 * - The host keeps alive what kiln's handles stand on. After cuDevicePrimaryCtxReset (cudaDeviceReset), or once a
 *   borrowed context, stream or queue is destroyed, every handle of kiln's on it dangles as the driver's own do: the
 *   next call with it, a release included, may crash in the driver. Close them first.
 * - kiln never prints, exits or aborts, and reads no environment variable and no configuration file.
 */
#ifndef KILN_KILN_H
#define KILN_KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0

/* Marks what libkiln.so exports. In libkiln.a everything is hidden, so that a shared object can hold a copy of its own
 * that no other one in the process sees. */
#if defined(KILN_BUILD_SHARED) && defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#else
#define KILN_API
#endif

/* The version of the library linked in, as major * 10000 + minor * 100 + patch. Never fails. */
KILN_API uint32_t kiln_version(void);

/* ---- 1. Status and errors ---------------------------------------------------------------------------------------- */

/* Every status, in one list: (name, text). */
#define KILN_STATUS_MAP(X)                                             \
    X(OK, "ok")                                                        \
    X(ERROR_INVALID_ARGUMENT, "invalid argument")                      \
    X(ERROR_OUT_OF_MEMORY, "out of memory")                            \
    X(ERROR_NOT_FOUND, "not found")                                    \
    X(ERROR_NO_DRIVER, "driver absent")                                \
    X(ERROR_NO_IMAGE, "no image for this device")                      \
    X(ERROR_CORRUPT_IMAGE, "corrupt image")                            \
    X(ERROR_UNSUPPORTED, "unsupported")                                \
    X(ERROR_DRIVER_TOO_OLD, "driver too old")                          \
    X(ERROR_DRIVER, "driver error")                                    \
    X(ERROR_FORKED, "device opened before fork")                       \
    X(ERROR_CAPTURING, "not allowed while a stream is being captured") \
    X(ERROR_DEVICE_LOST, "device lost")

typedef enum kiln_status {
#define KILN_STATUS_ENUM(name, text) KILN_##name,
    KILN_STATUS_MAP(KILN_STATUS_ENUM)
#undef KILN_STATUS_ENUM
} kiln_status;

/* The text of a status ("no image for this device"); "unknown status" for a number that is none. Static storage. */
KILN_API const char *kiln_status_text(kiln_status status);

/* The text of the calling thread's last failure, at most 2047 bytes, with the vendor's error name and number where a
 * driver was involved. Empty if nothing failed yet. The bytes are the thread's own and live until its next failure. */
KILN_API const char *kiln_last_error(void);

typedef enum kiln_log_level {
    KILN_LOG_INFO,    /* devices opened, with why others were left, and images chosen */
    KILN_LOG_WARNING, /* images that fit and that the driver refused */
    KILN_LOG_ERROR,   /* bundle parts that no image serves, with why */
} kiln_log_level;

/* Receives one line of text without a newline. Called from any thread that calls kiln, never under a lock of kiln's. */
typedef void (*kiln_log_callback)(void *user, kiln_log_level level, const char *text);

/* Sets the process's log callback. NULL (the initial state) turns logging off. Set it before devices are opened: a call
 * in flight may still use the previous callback, with either user. */
KILN_API void kiln_set_log(kiln_log_callback callback, void *user);

/* ---- 2. Devices -------------------------------------------------------------------------------------------------- */

/* How a device is driven. The order is the order of preference. */
typedef enum kiln_backend_id {
    KILN_BACKEND_ANY,
    KILN_BACKEND_CUDA,
    KILN_BACKEND_ROCM,
    KILN_BACKEND_CPU
} kiln_backend_id;

/* "cuda", "rocm", "cpu", or "any". Static storage. */
KILN_API const char *kiln_backend_name(kiln_backend_id backend);

/* One GPU or the CPU, opened. Unique for (backend, ordinal, context) and counted: opening it again gives the same
 * pointer. */
typedef struct kiln_device kiln_device;

/* Runs body(context, i) for every i in [0, count), in any order and on any threads, and returns when all are done. */
typedef void (*kiln_parallel_for)(void *user, size_t count, void (*body)(void *context, size_t index), void *context);

/* Zero in each field is the default. Fields that do not concern the backend that is opened are ignored.
 * CPU: a launch's caller works alone for 20 microseconds before it calls the device's other threads, which the first
 * such launch starts. Each of them, once it has nothing more to do, looks out for the next job for 50 microseconds, at
 * its processor's cost, and then sleeps.
 * ROCm: the HSA runtime aborts the process on a page fault (a hardware exception, a memory error) unless an event
 * handler takes it, and cannot tell a handler whose kernel it was. So by default kiln registers none: a fault ends the
 * process, or is told to the application's handler, which is to call kiln_device_mark_lost. With take_faults kiln
 * registers one, which takes every fault of this device's agent, also one by kernels that another library runs there,
 * such as HIP: set it only where kiln alone uses that GPU. The runtime tells of one fault in a process and then of
 * none, so the first loses every ROCm device that is open, and none can be opened after it. The runtime keeps the
 * handler for good: the library that has this copy of kiln in it stays loaded, even if it is closed by dlclose.
 * id: an ordinal names another GPU to each library when CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES is set, since the
 * HSA runtime does not read the latter. An id names one device to all of them: its UUID as nvidia-smi -L
 * ("GPU-8f8c...", or "MIG-..."), rocminfo ("GPU-4d1b...") or PyTorch (without the prefix) writes it, or its PCI address
 * as lspci ("41:00.0", "0000:41:00.0") or nvidia-smi ("00000000:41:00.0") does. Letters of either case. */
typedef struct kiln_device_options {
    kiln_backend_id backend; /* KILN_BACKEND_ANY: the first of CUDA, ROCm, CPU that has a device */
    int32_t ordinal;         /* which device of the backend, in the driver's order */
    int32_t require_gpu;     /* non-zero: never fall back to the CPU */
    int32_t allow_amx;       /* CPU: non-zero lets kiln ask the kernel for AMX state, which changes the process */
    void *context;           /* CUDA: a CUcontext to borrow; must outlive the device. NULL: the primary context */
    const char *cpu_level;   /* CPU: the highest level to use ("x86-64-v2"). NULL: the best one of the machine */
    int32_t threads;         /* CPU: threads to use, at most 1024. 0: what affinity and cgroup quota allow */
    int32_t take_faults;     /* ROCm: non-zero: a page fault is the loss of the device, and not the process's end */
    kiln_parallel_for parallel_for; /* CPU: the host's own pool instead of kiln's. NULL: kiln's */
    void *parallel_user;            /* CPU: passed to parallel_for */
    const char *id; /* open the GPU of this UUID or PCI address; ordinal must be 0 then. NULL: by ordinal */
} kiln_device_options;

/* How many devices a backend has. A driver that is absent, a stub or without a device counts as 0, with the reason in
 * kiln_last_error(); that is not a failure. A driver that is there and does not work is one. Loads the backend's
 * driver. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (unknown backend, KILN_BACKEND_ANY, NULL);
 * KILN_ERROR_DRIVER_TOO_OLD (it lacks a function that kiln needs, or does not fit the kernel's module or the device);
 * KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_FORKED (the driver was initialised, or was about to be, before a fork);
 * KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_device_count(kiln_backend_id backend, int32_t *out_count);

/* Opens a device, or adds a reference to it if it is open already (options other than backend, ordinal and context are
 * those of the first open). options may be NULL: the best device there is. Release with kiln_device_close.
 * Falling back is for machines that lack a driver or a device: no library, the toolkit's stub, no device. A GPU, or a
 * driver, that is present and cannot be used is an error, which is returned; the next backend is not asked. To run on
 * the CPU all the same, ask for it. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_NO_DRIVER (no driver, or
 * no device, of the asked kind: the error text lists what was tried); KILN_ERROR_NOT_FOUND (ordinal beyond the last
 * device, no GPU of that id, unknown cpu_level); KILN_ERROR_UNSUPPORTED (a cpu_level above this machine's; take_faults
 * of a runtime without event handlers); KILN_ERROR_DRIVER_TOO_OLD; KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_FORKED (the
 * driver was initialised before a fork); KILN_ERROR_DEVICE_LOST (it is open and lost, or the driver says so of it;
 * ROCm: the runtime has told of a fault); KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_device_open_sized(const kiln_device_options *options, size_t options_size,
                                            kiln_device **out_device);
static inline kiln_status kiln_device_open(const kiln_device_options *options, kiln_device **out_device) {
    return kiln_device_open_sized(options, options ? sizeof *options : 0, out_device);
}

/* Drops a reference; the last one unloads the device's modules and releases what kiln owns there. Streams and events of
 * the device must be closed, and memory freed, before. NULL is accepted. Quiet whatever the state of the driver. */
KILN_API void kiln_device_close(kiln_device *device);

/* One line for each backend that was considered when the device was opened: why it was left, or that it was chosen.
 * Lives as long as the device. NULL device: "". */
KILN_API const char *kiln_device_selection_log(const kiln_device *device);

/* What selection needs to know about a device. Filled by kiln_device_get_target or kiln_target_parse. */
typedef struct kiln_target {
    kiln_backend_id backend;
    int32_t compute_capability; /* CUDA: major * 10 + minor (sm_90 is 90, sm_120 is 120) */
    int32_t driver_version;     /* CUDA: major * 1000 + minor * 10, as the driver says it (12040 is 12.4) */
    int32_t xnack;              /* ROCm: 0 not supported, 1 off, 2 on */
    int32_t sramecc;            /* ROCm: the same */
    char processor[32];         /* ROCm: "gfx942"; CPU: "x86-64-v3" */
    char generic[32];           /* ROCm: the processor's generic family ("gfx11-generic"), or "" */
    int32_t reserved[7];        /* 0 */
} kiln_target;

/* What a device is, as its driver says. */
typedef struct kiln_device_info {
    kiln_backend_id backend;
    int32_t ordinal;
    kiln_target target;
    char name[128];           /* as the driver gives it */
    char driver[128];         /* library opened and its version, in words */
    uint64_t memory_bytes;    /* device memory; CPU: the machine's */
    int32_t multiprocessors;  /* SMs, compute units, or CPU threads used */
    int32_t wave_size;        /* threads that run in lock step: 32 or 64; CPU: 1 */
    int32_t max_threads;      /* per block */
    int32_t max_shared_bytes; /* per block, with opt-in; CPU: 0 */
    /* Which device it is, whatever order an environment gives (CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES). What the
     * driver does not tell is 0 in the UUID and -1 in the others: the CPU's, drivers before CUDA 11.4 (UUID), 12
     * (NUMA node), runtimes before ROCm 4.0. */
    uint8_t uuid[16]; /* as cuDeviceGetUuid_v2 or hipDeviceGetUuid gives it; kiln_device_uuid_text writes it out */
    int32_t pci_domain, pci_bus, pci_device, pci_function;
    int32_t numa_node; /* of the host's memory next to it */
    int32_t reserved[15];
} kiln_device_info;

/* Describes an open device. Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_device_get_info(const kiln_device *device, kiln_device_info *out_info);

/* Writes a device's UUID as its vendor's tools do: "GPU-8f8c1b5e-..." (CUDA), "GPU-4d1b2e..." (ROCm), or "" if it has
 * none. NUL-terminated and cut to size bytes; returns the length without cutting, as snprintf does; 0 for NULL. */
KILN_API size_t kiln_device_uuid_text(const kiln_device_info *info, char *text, size_t size);

/* The same for its PCI address, "0000:41:00.0". */
KILN_API size_t kiln_device_pci_text(const kiln_device_info *info, char *text, size_t size);

/* Lets kernels on device read and write the memory of peer, another GPU of the same backend, and
 * copies go directly between the two; the other direction is a call of its own. It lasts until either context ends.
 * ROCm, whose runtime grants access to each allocation: the memory is what peer allocates from then on by kiln, until
 * peer is closed. A device reaches its own memory, and the CPU the CPU's, without. Returns KILN_OK;
 * KILN_ERROR_INVALID_ARGUMENT (of another backend); KILN_ERROR_UNSUPPORTED (the two cannot reach each other, or there
 * are too many peers); KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_device_enable_peer(kiln_device *device, kiln_device *peer);

/* ---- 3. Streams -------------------------------------------------------------------------------------------------- */

/* An ordered queue of work. The storage is the caller's and may be copied while no call uses it; the fields are kiln's.
 * CPU streams are synchronous: each call has finished its work when it returns. Each holds KILN_CPU_SCRATCH bytes for
 * the thread that uses it, whose stack may be small. */
typedef struct kiln_stream {
    kiln_device *device;
    void *native; /* CUstream; ROCm: kiln's or the application's hsa_queue_t */
    void *state;  /* kiln's own */
} kiln_stream;

enum { KILN_STREAM_TIMING = 1 }; /* events on this stream can be timed (ROCm profiling; CUDA and CPU always can) */

/* Opens a stream of the device. flags: 0 or KILN_STREAM_TIMING. Release with kiln_stream_close.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST,
 * KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream);

/* Uses a queue of the application's. CUDA: native is a CUstream of the device's context; 0, 1 and 2 mean what they mean
 * to the driver; nothing is allocated and nothing need be released. ROCm: native is an hsa_queue_t * of the device's
 * agent, which must outlive the stream; kiln_stream_close releases kiln's kernarg ring after its last packet is done
 * and leaves the queue. CPU: native must be NULL; the same as kiln_stream_open. Returns as kiln_stream_open.
 * ROCm: have the queue's error callback call kiln_device_mark_lost, or kiln may wait for ever. */
KILN_API kiln_status kiln_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream);

/* Tells kiln that the driver has told the application of an error: the device is lost by it. error is the driver's
 * number; 0 (success), a NULL device and one of the CPU are left as they are. May be called while other threads wait.
 * ROCm: when the device refuses a packet of a borrowed queue, or stops a kernel there for anything but a page fault,
 * the runtime stops that queue for good and calls the error callback that the application gave to hsa_queue_create, and
 * nobody else; kiln cannot ask. Call this from there, with the hsa_status_t, and every call that waits ends. Nothing
 * waits for a lost device any more, so stop its other borrowed queues (hsa_queue_inactivate) before their streams are
 * closed. */
KILN_API void kiln_device_mark_lost(kiln_device *device, uint32_t error);

/* Waits until all work of the stream is done.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_CAPTURING, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST,
 * KILN_ERROR_DRIVER (which may stem from earlier work). */
KILN_API kiln_status kiln_stream_sync(kiln_stream *stream);

/* Whether all work of the stream is done: *out_done is 1 or 0. Does not wait. CPU: always 1.
 * ROCm: a queue does not say what is done, so the first call behind new work puts a packet there, and may answer 0
 * though the work is done; ask again. Returns as kiln_stream_sync. */
KILN_API kiln_status kiln_stream_query(kiln_stream *stream, int32_t *out_done);

/* Closes an owned stream after its work is done, or gives back what a borrowed one holds; zeroes *stream. NULL and a
 * zeroed stream are accepted. */
KILN_API void kiln_stream_close(kiln_stream *stream);

/* ---- 4. Memory --------------------------------------------------------------------------------------------------- */

/* Allocates size bytes on the device, aligned to 256 bytes at least, contents undefined. size 0 gives NULL. Release
 * with kiln_memory_free. On the CPU this is host memory. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_CAPTURING, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_memory_alloc(kiln_device *device, size_t size, void **out_memory);

/* Frees memory of kiln_memory_alloc; no work in flight may use it. NULL memory is accepted. */
KILN_API void kiln_memory_free(kiln_device *device, void *memory);

/* Allocates in stream order: the memory may be used by work that the stream is given after this call, and by other
 * streams once they wait for it. Does not wait, and can be called while the stream is captured where the driver allows
 * it. Release with kiln_memory_free_async, or with kiln_memory_free once its work is done. CPU: as kiln_memory_alloc.
 * ROCm, whose runtime has no such allocation: kiln keeps what kiln_memory_free_async frees, and gives it out again,
 * until kiln_memory_alloc lacks memory or the device is closed. Returns as kiln_memory_alloc; KILN_ERROR_UNSUPPORTED (a
 * CUDA driver before 11.2; a device without memory pools). */
KILN_API kiln_status kiln_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory);

/* Frees memory of kiln_memory_alloc_async or kiln_memory_alloc in stream order: after all work that the stream has been
 * given. NULL memory is accepted. Returns as kiln_memory_alloc_async; KILN_ERROR_INVALID_ARGUMENT
 * (ROCm: memory is not the beginning of an allocation of the device's, or is freed already). */
KILN_API kiln_status kiln_memory_free_async(kiln_stream *stream, void *memory);

/* Allocates host memory that the device and its backend's other GPUs can read and write directly (pinned). Release with
 * kiln_host_free. Returns as kiln_memory_alloc. */
KILN_API kiln_status kiln_host_alloc(kiln_device *device, size_t size, void **out_memory);

/* Frees memory of kiln_host_alloc; no work in flight may use it. NULL memory is accepted. */
KILN_API void kiln_host_free(kiln_device *device, void *memory);

/* Pins memory of the application's, so that it serves as that of kiln_host_alloc does; ROCm: for kernels, while a copy
 * of it may wait, as of any memory. *out_device_memory (NULL: not asked) is where kernels find it, which need not be
 * memory. Release with kiln_host_unregister before the memory is freed. CPU: nothing is done. Returns as
 * kiln_memory_alloc; KILN_ERROR_UNSUPPORTED (the driver cannot pin it). */
KILN_API kiln_status kiln_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory);

/* Ends kiln_host_register; memory is the address that it was given. No work in flight may use it. NULL is accepted. */
KILN_API void kiln_host_unregister(kiln_device *device, void *memory);

/* The device memory that is free now, to this process and all others, and all there is, in bytes. CPU: the machine's.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_UNSUPPORTED (ROCm: older runtimes and kernel
 * drivers do not tell), KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_memory_get_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total);

typedef enum kiln_copy_direction { KILN_COPY_TO_DEVICE, KILN_COPY_TO_HOST, KILN_COPY_ON_DEVICE } kiln_copy_direction;

/* Copies size bytes in stream order. The host side may be any memory; if it is from kiln_host_alloc the copy is
 * asynchronous, and the bytes must stay until the stream is done; otherwise the call may wait for the copy. While a
 * stream is captured (CUDA), host memory is read or written when the graph runs, and not at the call: it must stay
 * until then, whatever memory it is. Ranges must not overlap. size 0 does nothing. After an error nothing of this call
 * is in flight; only if the device was lost with the copy under way, and it did not end within a second, does the call
 * return without it: what kiln allocated or locked for the copy then stays so for good. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_CAPTURING, KILN_ERROR_FORKED,
 * KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                               kiln_copy_direction direction);

/* Sets size bytes of device memory to value in stream order, without waiting. ROCm: a run of copies, of 4 KiB and then
 * what is filled already. Returns as kiln_copy. */
KILN_API kiln_status kiln_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size);

/* ---- 5. Bundles and selection ------------------------------------------------------------------------------------ */

typedef enum kiln_image_kind { KILN_IMAGE_PTX = 1, KILN_IMAGE_CUBIN, KILN_IMAGE_HSACO, KILN_IMAGE_CPU } kiln_image_kind;

/* "ptx", "cubin", "hsaco", "cpu", or "unknown". Static storage. */
KILN_API const char *kiln_image_kind_name(kiln_image_kind kind);

enum { KILN_CPU_SCRATCH = 128 << 10 }; /* a later version may have more */

/* The share of a CPU launch that one call does: blocks [begin, end) of grid x*y*z, x fastest. The stack of the thread
 * that calls may be small; so there are KILN_CPU_SCRATCH bytes of the call's own, their contents undefined. A function
 * that launches on the stream that it runs on loses them. */
typedef struct kiln_cpu_span {
    uint64_t begin, end;
    uint32_t grid[3];
    uint32_t reserved;
    void *scratch; /* aligned to 64 bytes */
} kiln_cpu_span;

/* A kernel on the CPU. arguments is the launch's argument struct. May be called from several threads at once, with
 * disjoint spans that together are the grid. */
typedef void (*kiln_cpu_function)(const void *arguments, const kiln_cpu_span *span);

enum { KILN_KERNEL_MAPS = 4, KILN_KERNEL_MAP_RANK = 4 };

/* One kernel as one image has it. 0 means not known (PTX has no register count). */
typedef struct kiln_kernel_info {
    const char *name;
    uint32_t arguments_size; /* bytes of its one argument struct */
    uint32_t registers;      /* per thread (CUDA), VGPRs per lane (ROCm) */
    uint32_t spill_bytes;
    uint32_t shared_bytes; /* static shared memory (LDS) per block */
    uint32_t max_threads;  /* per block */
    uint32_t absent;       /* non-zero: only other images of the part have it, as tuned ones do beside the portable */
    kiln_cpu_function function; /* CPU images only */
    /* Of a tuned kernel, for the host side that shapes its launches; 0 of others: */
    uint32_t tile[3];     /* rows and columns of the result that a block does, and the depth that it has in shared
                           * memory at a time */
    uint32_t stage_bytes; /* dynamic shared memory of one such depth */
    uint32_t rate;        /* work that a multiprocessor does in the same time, relative to the image's other kernels */
    uint32_t stages;      /* such depths that it has at a time; 0: what the host side chooses */
    uint32_t cluster;     /* blocks of a cluster, which the image fixes itself; 0: none */
    uint32_t map_offset;  /* of its tensor maps among its arguments, of 128 bytes each */
    /* Of each tensor map, in the order of the operator's tensors, what one copy takes: elements of each dimension from
     * the innermost on; 0 behind the last dimension, and behind the last map. */
    uint16_t boxes[KILN_KERNEL_MAPS][KILN_KERNEL_MAP_RANK];
} kiln_kernel_info;

/* The bundle table: constant data that `kiln pack` and kiln's own build write. Every level carries the size of its
 * entries, so that tables compiled against one version of kiln go on working with later ones. */

enum { KILN_BUNDLE_VERSION = 1 };

/* One precompiled binary for one target. */
typedef struct kiln_image {
    const char *target; /* exactly as it was asked for when fired: "sm_90a", "gfx942:xnack-", "x86-64-v3" */
    const void *data;   /* PTX ends with a NUL byte, not counted in size. NULL for CPU */
    uint64_t size;
    kiln_image_kind kind;
    uint32_t format_version;         /* PTX: ISA version * 10 (63 is 6.3); HSACO: code object version; else 0 */
    uint32_t driver_version;         /* lowest CUDA driver that reads it, major * 1000 + minor * 10; else 0 */
    uint32_t kernel_size;            /* sizeof(kiln_kernel_info) where the table was compiled */
    const kiln_kernel_info *kernels; /* in the order of the part's kernel_names */
    uint8_t sha256[32];              /* of data; integrity, not authenticity */
} kiln_image;

/* What is loaded together: normally one precision. All its images hold the same kernels. */
typedef struct kiln_part {
    const char *name; /* "f16" */
    const kiln_image *images;
    const char *const *kernel_names;
    uint32_t image_count;
    uint32_t image_size; /* sizeof(kiln_image) where the table was compiled */
    uint32_t kernel_count;
    uint32_t reserved;
} kiln_part;

/* All images of one operator or one user package. */
typedef struct kiln_bundle {
    uint32_t version;   /* KILN_BUNDLE_VERSION */
    uint32_t part_size; /* sizeof(kiln_part) where the table was compiled */
    const char *name;   /* "softmax" */
    const kiln_part *parts;
    uint32_t part_count;
    uint32_t reserved;
} kiln_bundle;

/* Puts a bundle on the list of kiln_linked_bundles; stands behind its definition. retain, where the compiler has it,
 * keeps the entry when a linker collects unused sections. */
#ifdef __has_attribute
#if __has_attribute(retain)
#define KILN_RETAIN , retain
#endif
#endif
#ifndef KILN_RETAIN
#define KILN_RETAIN
#endif
#define KILN_LINK_BUNDLE(bundle) \
    static const kiln_bundle *const bundle##_linked __attribute__((section("kiln_bundles"), used KILN_RETAIN)) = &bundle

/* The bundles in the program or shared object that libkiln.a was linked into: every operator of kiln's that it calls
 * and every packed bundle. libkiln.so has every operator, and not what its users pack: they have that by name.
 * *out_bundles points to static storage. Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_linked_bundles(const kiln_bundle *const **out_bundles, size_t *out_count);

/* Every operator's bundle. Referring to this function links all images; only tools want that. Returns as
 * kiln_linked_bundles. */
KILN_API kiln_status kiln_all_bundles(const kiln_bundle *const **out_bundles, size_t *out_count);

/* Why an image does not fit a device: one list of (name, bit number, sentence). The sentence is completed with the
 * image's and the device's properties by kiln_reason_text. */
#define KILN_REASON_MAP(X)                                          \
    X(BACKEND, 0, "is for another backend")                         \
    X(TARGET, 1, "its target is not known to this version of kiln") \
    X(EXACT, 2, "needs exactly this chip")                          \
    X(FAMILY, 3, "needs a chip of this family")                     \
    X(MAJOR, 4, "needs the same major compute capability")          \
    X(MINOR, 5, "needs a higher minor compute capability")          \
    X(CAPABILITY, 6, "needs a higher compute capability")           \
    X(DRIVER, 7, "needs a newer driver")                            \
    X(PROCESSOR, 8, "is for another processor")                     \
    X(XNACK, 9, "its xnack setting differs")                        \
    X(SRAMECC, 10, "its sramecc setting differs")                   \
    X(CPU_LEVEL, 11, "needs a higher CPU level")                    \
    X(REFUSED, 12, "was refused by the driver")                     \
    X(MALFORMED, 13, "its table entry is malformed")

enum {
#define KILN_REASON_ENUM(name, bit, text) KILN_REASON_##name = 1 << (bit),
    KILN_REASON_MAP(KILN_REASON_ENUM)
#undef KILN_REASON_ENUM
};

/* The judgement on one image of a part. */
typedef struct kiln_candidate {
    uint32_t image;   /* index in the part */
    uint32_t reasons; /* KILN_REASON_ bits; 0: it fits */
    uint32_t rank;    /* among those that fit: higher is better. 0: does not fit */
} kiln_candidate;

/* Judges every image of a part for a target: a pure function, which touches no driver, allocates nothing and is the one
 * that loading uses. candidates has room for part->image_count entries; on return the images that fit stand first, best
 * first, then the others in the part's order. *out_fitting is how many fit.
 * Returns KILN_OK (even if none fits), or KILN_ERROR_INVALID_ARGUMENT (NULL, a table of an unknown version). */
KILN_API kiln_status kiln_select(const kiln_bundle *bundle, const kiln_part *part, const kiln_target *target,
                                 kiln_candidate *candidates, uint32_t *out_fitting);

/* Writes the sentence for one judgement, like "sm_90a cubin: needs exactly sm_90a, device is sm_120", NUL-terminated
 * and cut to size bytes. Returns the length without cutting, as snprintf does; 0 for NULL arguments. */
KILN_API size_t kiln_reason_text(const kiln_image *image, const kiln_target *target, uint32_t reasons, char *text,
                                 size_t size);

/* Reads a target's name, so that selection can be asked about machines that are not here: "sm_90", "gfx942:xnack-",
 * "x86-64-v3". A suffix a or f of an sm_ name is accepted and names the same chip. driver_version (CUDA) as in
 * kiln_target; 0 means the newest that kiln knows. Unstated ROCm features that the processor supports are taken as off
 * (xnack) and on (sramecc), the driver's defaults.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND (the error text lists the names). */
KILN_API kiln_status kiln_target_parse(const char *name, int32_t driver_version, kiln_target *out_target);

/* The name of a target ("sm_90", "gfx942:sramecc+:xnack-", "x86-64-v3"), as kiln_reason_text. */
KILN_API size_t kiln_target_text(const kiln_target *target, char *text, size_t size);

/* Entries of a table, by number, as this version of kiln sees them: fields that an older table lacks are zero. bundle
 * or part must be valid; a number out of range gives a zeroed entry. */
KILN_API kiln_part kiln_bundle_part(const kiln_bundle *bundle, uint32_t index);

/* The same for an image of a part. */
KILN_API kiln_image kiln_part_image(const kiln_part *part, uint32_t index);

/* The same for what an image's manifest says of a kernel: index is that of the part's kernel names. */
KILN_API kiln_kernel_info kiln_image_kernel(const kiln_part *part, const kiln_image *image, uint32_t index);

/* Finds a part by name. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND (the text lists the parts).
 */
KILN_API kiln_status kiln_bundle_find_part(const kiln_bundle *bundle, const char *name, kiln_part *out_part);

/* ---- 6. Modules and kernels -------------------------------------------------------------------------------------- */

/* A bundle part loaded on a device. */
typedef struct kiln_module kiln_module;

/* One entry point, resolved. Lives as long as its module. */
typedef struct kiln_kernel kiln_kernel;

/* The module of a bundle part on a device. The first call loads it: judges the images, loads the best that the driver
 * accepts and resolves all its kernels; later calls give the same module. The bundle must outlive the device. Loads on
 * one device wait for each other. A load inside a capture does not disturb it. The module is the device's and is
 * unloaded when the device closes. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_NOT_FOUND (no such part, or
 * the chosen image lacks a kernel that it promises); KILN_ERROR_NO_IMAGE (the error text says why for each image);
 * KILN_ERROR_CORRUPT_IMAGE; KILN_ERROR_UNSUPPORTED (a kernel needs what kiln does not provide); KILN_ERROR_CAPTURING;
 * KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_module_get(kiln_device *device, const kiln_bundle *bundle, const char *part,
                                     const kiln_module **out_module);

/* The image that was chosen. Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_module_get_image(const kiln_module *module, kiln_image *out_image);

/* Finds a kernel by name. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND (the text lists them). */
KILN_API kiln_status kiln_module_find_kernel(const kiln_module *module, const char *name,
                                             const kiln_kernel **out_kernel);

/* Finds a variable of the module's image (__device__ or __constant__) by its name in the image, which a C++ compiler
 * may have changed: its address in device memory and its size in bytes. It lives as long as the module. Returns
 * KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_NOT_FOUND; KILN_ERROR_UNSUPPORTED (CPU: link to it by name);
 * KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_module_find_variable(const kiln_module *module, const char *name, void **out_address,
                                               size_t *out_size);

/* What a loaded kernel takes. */
typedef struct kiln_kernel_attributes {
    uint32_t arguments_size; /* bytes of the argument struct; 0: the image does not say, any size is taken */
    uint32_t registers;
    uint32_t local_bytes;  /* per thread: spills and stack */
    uint32_t shared_bytes; /* static, per block */
    uint32_t max_threads;  /* per block */
    uint32_t max_dynamic_shared_bytes;
    uint32_t reserved[10];
} kiln_kernel_attributes;

/* What the driver says of a loaded kernel. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_FORKED,
 * KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_kernel_get_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes);

/* How many blocks of so many threads and bytes of dynamic shared memory can be resident on one multiprocessor.
 * Returns as kiln_kernel_get_attributes. */
KILN_API kiln_status kiln_kernel_get_occupancy(const kiln_kernel *kernel, uint32_t threads,
                                               uint32_t dynamic_shared_bytes, uint32_t *out_blocks);

/* What a launch can ask for beside its shape: (name, bit number, in words). CUDA from driver 11.8 on; elsewhere
 * KILN_ERROR_UNSUPPORTED. */
#define KILN_LAUNCH_FLAG_MAP(X)                                                                             \
    X(COOPERATIVE, 0, "cooperative launch") /* all blocks run at once and may wait for each other */        \
    X(PROGRAMMATIC, 1,                                                                                      \
      "programmatic dependent launch")     /* sm_90 and later: may begin before the kernel in front ends */ \
    X(PRIORITY, 2, "priority of a launch") /* priority is the launch's own instead of its stream's */

enum {
#define KILN_LAUNCH_FLAG_ENUM(name, bit, text) KILN_LAUNCH_##name = 1 << (bit),
    KILN_LAUNCH_FLAG_MAP(KILN_LAUNCH_FLAG_ENUM)
#undef KILN_LAUNCH_FLAG_ENUM
};

/* The shape of a launch. Zero in a dimension of grid or block means 1. A block of
 * threads is what HSA and OpenCL call a work-group; an HSA grid counts threads, this one counts blocks. */
typedef struct kiln_launch_config {
    uint32_t grid[3];              /* blocks */
    uint32_t block[3];             /* threads per block; the CPU ignores it */
    uint32_t dynamic_shared_bytes; /* beside the static; above 48 KB the opt-in is made */
    uint32_t cluster[3]; /* CUDA, sm_90 and later: blocks per cluster, at most 8 in all, or 16 where the device
                          * has room for those (non-portable). All 0: none */
    uint32_t flags;      /* KILN_LAUNCH_ bits */
    int32_t priority;    /* with KILN_LAUNCH_PRIORITY: as cuStreamCreateWithPriority takes it, less is sooner */
} kiln_launch_config;

/* Launches a kernel on a stream. arguments points to the kernel's one argument struct, which is copied; its size must
 * be the kernel's. For a kernel of several parameters that is a struct with a member for each, in their order; its size
 * is that without the padding behind the last member, or sizeof. It may be NULL for a kernel without arguments, whose
 * size is 0. Allocates nothing and takes no lock;
 * waits only when the queue is full. The kernel must be of the stream's device.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (NULL, wrong size, a shape beyond the device's limits, more blocks
 * than a cooperative launch can have, unknown flags, a kernel of another device); KILN_ERROR_OUT_OF_MEMORY (the
 * driver's, for the kernel's stack); KILN_ERROR_UNSUPPORTED (clusters or flags where there are none);
 * KILN_ERROR_CAPTURING (the stream's capture cannot go on); KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST;
 * KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                                 const void *arguments, size_t arguments_size);

/* ---- 7. Events --------------------------------------------------------------------------------------------------- */

/* A point in a stream's work. */
typedef struct kiln_event kiln_event;

enum { KILN_EVENT_NO_TIMING = 1 }; /* it orders work and is not for kiln_event_elapsed: cheaper to record on CUDA */

/* Creates an event for streams of the device. flags: 0 or KILN_EVENT_NO_TIMING. Release with kiln_event_destroy.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST,
 * KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_event_create(kiln_device *device, uint32_t flags, kiln_event **out_event);

/* Makes an event of one of the application's, which must outlive it: work of kiln's can wait for the application's, and
 * the other way round. native is a CUevent of the device's context; ROCm: the handle of an hsa_signal_t, which has
 * happened when its value is 0 or less, which kiln_event_record sets to 1 first, and which must live until all that
 * waits for it has ended; CPU: must be NULL. It counts as recorded. ROCm: kiln_event_elapsed does not take it. Release
 * with kiln_event_destroy, which leaves native as it is. Returns as kiln_event_create. */
KILN_API kiln_status kiln_event_borrow(kiln_device *device, void *native, kiln_event **out_event);

/* Releases an event. NULL is accepted. */
KILN_API void kiln_event_destroy(kiln_event *event);

/* Records the event after all work of the stream so far; recording again moves it. Returns as kiln_launch. */
KILN_API kiln_status kiln_event_record(kiln_event *event, kiln_stream *stream);

/* Waits on the host until the event has happened; an event never recorded has. Returns as kiln_stream_sync. */
KILN_API kiln_status kiln_event_sync(kiln_event *event);

/* Whether the event has happened: *out_done is 1 or 0. Does not wait. An event never recorded has; one of the CPU
 * always. Returns as kiln_event_sync. */
KILN_API kiln_status kiln_event_query(kiln_event *event, int32_t *out_done);

/* Makes later work of the stream wait for the event, without the host. Returns as kiln_launch. */
KILN_API kiln_status kiln_stream_wait_event(kiln_stream *stream, kiln_event *event);

/* Nanoseconds on the device from one event to another; both must have happened and be of one device.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (not recorded, of different devices, created with
 * KILN_EVENT_NO_TIMING, recorded on a ROCm stream opened without KILN_STREAM_TIMING, borrowed on ROCm);
 * KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds);

/* ---- 8. Start-up check ------------------------------------------------------------------------------------------- */

/* The outcome for one bundle part on one device. The strings live during the callback. */
typedef struct kiln_preload_result {
    kiln_device *device;
    const kiln_bundle *bundle;
    const char *part;
    kiln_status status;
    const char *target; /* of the image that was picked; NULL if none */
    kiln_image_kind kind;
    uint32_t reserved;
    const char *text; /* "sm_90 cubin", or why each image did not fit, a line each */
} kiln_preload_result;

typedef void (*kiln_preload_callback)(void *user, const kiln_preload_result *result);

/* Loads every part of the given bundles on the given devices and reports each outcome to report (which may be NULL).
 * After KILN_OK no later call loads anything for them. Tries everything, then returns the first failure, whose text
 * kiln_last_error has, as kiln_module_get, or KILN_OK. */
KILN_API kiln_status kiln_preload(kiln_device *const *devices, size_t device_count, const kiln_bundle *const *bundles,
                                  size_t bundle_count, kiln_preload_callback report, void *user);

/* ---- 9. Tracing -------------------------------------------------------------------------------------------------- */

/* Starts recording every launch, copy and load on a device, with host times and, where events can be timed, device
 * times. At most capacity records are kept (0: 65536); later ones are counted and dropped. Off, tracing costs nothing.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT (already tracing, a capacity above 2^24), KILN_ERROR_OUT_OF_MEMORY,
 * KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST. */
KILN_API kiln_status kiln_trace_start(kiln_device *device, size_t capacity);

typedef enum kiln_trace_format { KILN_TRACE_CHROME_JSON, KILN_TRACE_TEXT } kiln_trace_format;

/* Receives a piece of the trace. Returns 0 to go on; anything else ends the writing. */
typedef int (*kiln_write_callback)(void *user, const char *bytes, size_t size);

/* Stops recording, writes what was recorded and forgets it. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT (not tracing),
 * KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST (nothing is written then), KILN_ERROR_DRIVER (the callback ended the
 * writing). */
KILN_API kiln_status kiln_trace_stop(kiln_device *device, kiln_trace_format format, kiln_write_callback write,
                                     void *user);

/* ---- 10. Image inspection ---------------------------------------------------------------------------------------- */

/* What a file of device code says of itself. Strings point into the inspected bytes or static storage unless an array.
 */
typedef struct kiln_image_facts {
    kiln_image_kind kind;
    char target[32];         /* as far as the file can tell: a cubin of sm_90a says sm_90 and exact */
    uint32_t exact;          /* cubin: non-zero if it says that it is an 'a' image */
    uint32_t format_version; /* PTX ISA * 10, code object version, cubin ELF ABI version */
    uint32_t driver_version; /* as in kiln_image */
    uint32_t kernel_count;   /* may exceed the room given */
} kiln_image_facts;

/* One kernel of an inspected file. Its name is of any length; no NUL byte is in it, and none need stand behind it. */
typedef struct kiln_kernel_facts {
    const char *name; /* in the inspected bytes */
    size_t name_size;
    kiln_kernel_info info; /* info.name is NULL */
} kiln_kernel_facts;

/* Reads the bytes of a PTX, cubin or HSACO file, trusting none of them, and lists its kernels; kernels has room for
 * kernel_room entries and may be NULL if that is 0.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_CORRUPT_IMAGE (the text says what is wrong where);
 * KILN_ERROR_UNSUPPORTED (device code of a kind or version that kiln does not read). */
KILN_API kiln_status kiln_image_inspect(const void *bytes, size_t size, kiln_image_facts *out_facts,
                                        kiln_kernel_facts *kernels, size_t kernel_room);

/* Checks an image of a bundle: its sha256, its structure, and that it is for the target and holds the kernels that the
 * table says. CPU images: that every function is there.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_CORRUPT_IMAGE, KILN_ERROR_UNSUPPORTED. */
KILN_API kiln_status kiln_image_verify(const kiln_part *part, const kiln_image *image);

/* The sha256 of size bytes (FIPS 180-4). Never fails. */
KILN_API void kiln_sha256(const void *bytes, size_t size, uint8_t out_digest[32]);

#ifdef __cplusplus
}
#endif

#endif
