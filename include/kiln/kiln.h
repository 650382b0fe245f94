/* kiln: a fat-binary GPU kernel loader.
 *
 * kiln finds the GPU driver with dlopen, selects the image in each embedded bundle that fits the device, loads it once
 * and launches kernels from it. Nothing is compiled at run time and no toolkit is required. On a machine without a GPU
 * the same calls run on the CPU.
 *
 * Read this header from top to bottom: its sections are in the order in which a program needs them.
 *
 *   1. Status and errors        what every call returns
 *   2. Devices                  find and open one
 *   3. Streams                  an ordered queue of work, owned or borrowed
 *   4. Memory                   device memory, pinned host memory, copies
 *   5. Bundles and selection    which image fits which device, and why the others do not
 *   6. Modules and kernels      load an image, find a kernel, launch it
 *   7. Events                   order and time
 *   8. Start-up check           fail when the server starts rather than at its first request
 *   9. Tracing                  every launch on a timeline
 *
 * Two tools have headers of their own: <kiln/plan.h> reports the launches that an operator call would make on any
 * device, and <kiln/inspect.h> reads PTX, cubin and HSACO files.
 *
 * Unless a function says otherwise, these conventions hold:
 *
 * - A function returns a kiln_status; KILN_OK is zero. On failure all outputs are zero, no partial state remains, and
 *   kiln_last_error() returns a message that names the invalid argument and the rule it violates, or the driver
 *   function that failed and its error.
 * - Results are returned through out_ parameters, which come last and are zeroed on entry. Passing NULL for an out_
 *   parameter is KILN_ERROR_INVALID_ARGUMENT.
 * - open, create and alloc functions transfer ownership to the caller, who releases the object with the matching close,
 *   destroy or free function. get and find functions return borrowed objects. Release functions return nothing and
 *   accept NULL.
 * - Threads: every function may be called from any thread at any time, except that only one thread at a time may use a
 *   given kiln_stream or kiln_event, and that an object must not be released while it is in use.
 * - Fork: in a child process, every call on a GPU device that was opened before the fork returns KILN_ERROR_FORKED. CPU
 *   devices keep working.
 * - Device loss: once a kernel or the hardware has failed, every pending wait ends, and every call on the device
 *   returns KILN_ERROR_DEVICE_LOST with the cause in the error text. Release functions still work. After the device has
 *   been closed it can be opened again, if its driver can still use it.
 * - Structs may grow in later versions. Zero a struct before filling it in, with a designated initialiser or memset: a
 *   field of 0 selects the default. A struct passed with its size may be longer or shorter than kiln's own definition.
 *   kiln_launch_config is passed without a size, and the fields after its flags are read only if a flag requests them.
 *   Structs that kiln fills in the caller's memory have reserved fields, which are 0 until a later version defines
 *   them. Structs that kiln owns (callback arguments, kiln_tree, kiln_operator) may become longer: do not copy them.
 * - The application must keep alive every driver object that kiln's handles refer to. After cuDevicePrimaryCtxReset
 *   (cudaDeviceReset), or after a borrowed context, stream or queue has been destroyed, kiln's handles to it are
 *   dangling, as are the driver's own: the next call that uses one, even to release it, may crash in the driver. Close
 *   kiln's handles first.
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

/* Marks the functions that libkiln.so exports. In libkiln.a all symbols are hidden, so that a shared object can contain
 * a private copy of kiln that no other object in the process sees. */
#define KILN_API

/* Returns the version of the linked library, as major * 10000 + minor * 100 + patch. Never fails. */
KILN_API uint32_t kiln_version(void);

/* ---- 1. Status and errors ---------------------------------------------------------------------------------------- */

/* The list of all statuses: (name, text). */
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

/* Returns the text of a status ("no image for this device"), or "unknown status" for any other number. The string is in
 * static storage. */
KILN_API const char *kiln_status_text(kiln_status status);

/* Returns the error text of the calling thread's most recent failure, at most 2047 bytes, including the vendor's error
 * name and number if a driver was involved; empty if no call has failed yet. The string belongs to the thread and is
 * valid until its next failure. */
KILN_API const char *kiln_last_error(void);

typedef enum kiln_log_level {
    KILN_LOG_INFO,    /* devices opened, the reasons why others were skipped, and images selected */
    KILN_LOG_WARNING, /* images that fit the device but were rejected by the driver */
    KILN_LOG_ERROR,   /* bundle parts without an image for the device, and the reasons */
} kiln_log_level;

/* Receives one line of text, without a newline. May be called from any thread that calls kiln, but never while kiln
 * holds a lock. */
typedef void (*kiln_log_callback)(void *user, kiln_log_level level, const char *text);

/* Sets the process-wide log callback. NULL, the initial state, disables logging. Set it before opening devices: a call
 * in progress may still invoke the previous callback, with either the old or the new user pointer. */
KILN_API void kiln_set_log(kiln_log_callback callback, void *user);

/* ---- 2. Devices -------------------------------------------------------------------------------------------------- */

/* The interface through which a device is driven, in order of preference. HIP drives the same GPUs as ROCm, but through
 * the HIP runtime's own streams, events and modules. It is meant for programs written for HIP: their hipStream_t can be
 * borrowed and captured, which is not possible through HSA, the interface that the ROCm backend uses. HIP is used only
 * if requested explicitly. */
typedef enum kiln_backend_id {
    KILN_BACKEND_ANY,
    KILN_BACKEND_CUDA,
    KILN_BACKEND_ROCM,
    KILN_BACKEND_CPU,
    KILN_BACKEND_HIP
} kiln_backend_id;

/* Returns "cuda", "rocm", "cpu", "hip" or "any", in static storage. */
KILN_API const char *kiln_backend_name(kiln_backend_id backend);

/* An open device: one GPU, or the CPU. There is one object for each (backend, ordinal, context). It is
 * reference-counted: opening it again returns the same pointer. */
typedef struct kiln_device kiln_device;

/* Calls body(context, i) once for every i in [0, count), in any order and on any threads, and returns after all calls
 * have returned. */
typedef void (*kiln_parallel_for)(void *user, size_t count, void (*body)(void *context, size_t index), void *context);

/* Options for opening a device. Zero in a field selects the default. Fields that apply to other backends are ignored.
 *
 * CPU: the launching thread works alone for 20 microseconds before it wakes the device's worker threads, which are
 * started by the first launch that needs them. An idle worker spins for 50 microseconds, waiting for the next job, and
 * then sleeps.
 *
 * ROCm, take_faults: the HSA runtime aborts the process on a page fault (a hardware exception, a memory error) unless
 * an event handler takes it, and it cannot tell a handler whose kernel caused it. By default, therefore, kiln registers
 * no handler: a fault ends the process, or is passed to the application's handler, which should call
 * kiln_device_mark_lost. With take_faults kiln registers a handler that takes every fault of this device's agent,
 * including those of kernels that another library, such as HIP, runs there: set it only if kiln alone uses the GPU. The
 * runtime reports only one fault per process; after that fault every open ROCm device is lost, and none can be opened
 * again. The runtime never releases a handler, so the library that contains this copy of kiln stays loaded even after
 * dlclose.
 *
 * HIP: the process must already have loaded libamdhip64 (HIP 5, 6 or 7), as every program that uses HIP has; kiln finds
 * the library but never loads it. Ordinals are HIP's, and the device is used in HIP's own context: memory that kiln
 * allocates can be freed by HIP, hipDeviceSynchronize waits for kiln's work, and HIP handles faults. kiln leaves the
 * thread's current device unchanged, and its own calls leave no error for hipGetLastError to return.
 *
 * id: when CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES is set, the same ordinal denotes different GPUs in different
 * libraries, since the HSA runtime does not read the latter variable. An id denotes the same device in all of them. It
 * is the device's UUID as written by nvidia-smi -L ("GPU-8f8c...", or "MIG-..."), rocminfo ("GPU-4d1b...") or PyTorch
 * (no prefix), or its PCI address as written by lspci ("41:00.0", "0000:41:00.0") or nvidia-smi ("00000000:41:00.0").
 * It is not case-sensitive.
 */
typedef struct kiln_device_options {
    kiln_backend_id backend; /* KILN_BACKEND_ANY: the first of CUDA, ROCm, CPU that has a device; never HIP */
    int32_t ordinal;         /* index of the device within the backend, in the driver's order */
    int32_t require_gpu;     /* non-zero: never fall back to the CPU */
    int32_t allow_amx; /* CPU: non-zero: kiln may request AMX state from the operating system, for the whole process */
    void *context;     /* CUDA: a CUcontext to borrow; must outlive the device. NULL: the primary context */
    const char *cpu_level; /* CPU: the highest level to use ("x86-64-v2"). NULL: the machine's best */
    int32_t threads;       /* CPU: number of threads, at most 1024. 0: as many as affinity and cgroup quota allow */
    int32_t take_faults;   /* ROCm: non-zero: a page fault loses the device instead of ending the process */
    kiln_parallel_for parallel_for; /* CPU: the application's thread pool. NULL: kiln's own */
    void *parallel_user;            /* CPU: passed to parallel_for */
    const char *id; /* open the GPU with this UUID or PCI address; ordinal must then be 0. NULL: by ordinal */
} kiln_device_options;

/* Counts the devices of a backend, and loads its driver. If the driver is absent, is a stub or has no device, the count
 * is 0 and the call succeeds, with the reason in kiln_last_error(); if the driver is present but does not work, the
 * call fails. HIP is absent unless the process has loaded it. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (unknown
 * backend, KILN_BACKEND_ANY, NULL); KILN_ERROR_DRIVER_TOO_OLD (it lacks a function that kiln needs, or does not match
 * the kernel module or the device); KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_FORKED (the driver was initialised, or was
 * about to be, before a fork); KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_device_count(kiln_backend_id backend, int32_t *out_count);

/* Opens a device, or adds a reference to it if it is already open; in that case the options of the first open remain in
 * effect, except for backend, ordinal and context, which identify the device. NULL options open the best available
 * device. Release with kiln_device_close.
 *
 * kiln falls back to the next backend only on a machine that lacks a driver or a device: no library, the toolkit's
 * stub, no device. If a GPU or its driver is present but cannot be used, the call fails and no other backend is tried.
 * To run on the CPU in that case, request KILN_BACKEND_CPU.
 *
 * On CUDA the device uses its primary context, or the context in options, which the caller must keep alive: an
 * application that resets (cuDevicePrimaryCtxReset, cudaDeviceReset) or destroys the context must close the device
 * first, as stated in the conventions above.
 *
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_NO_DRIVER (no driver or no device of the requested kind; the
 * error text lists what was tried); KILN_ERROR_NOT_FOUND (ordinal beyond the last device, no GPU with that id, unknown
 * cpu_level); KILN_ERROR_UNSUPPORTED (a cpu_level above this machine's; take_faults with a runtime that has no event
 * handlers); KILN_ERROR_DRIVER_TOO_OLD; KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_FORKED (the driver was initialised before
 * a fork); KILN_ERROR_DEVICE_LOST (the device is open and lost, or the driver reports it lost; ROCm: the runtime has
 * reported a fault); KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_device_open_sized(const kiln_device_options *options, size_t options_size,
                                            kiln_device **out_device);
static inline kiln_status kiln_device_open(const kiln_device_options *options, kiln_device **out_device) {
    return kiln_device_open_sized(options, options ? sizeof *options : 0, out_device);
}

/* Releases a reference. Releasing the last one unloads the device's modules and frees everything that kiln owns on the
 * device. Close the device's streams, destroy its events and free its memory first. NULL is accepted. Driver errors are
 * ignored. */
KILN_API void kiln_device_close(kiln_device *device);

/* Returns a line for each backend that was considered when the device was opened: "cpu: chosen", or why it was skipped.
 * A newline separates the lines; the last one has none. The string is valid until the device is closed. For a NULL
 * device it is "". */
KILN_API const char *kiln_device_selection_log(const kiln_device *device);

/* The properties of a device that determine which images fit it. */
typedef struct kiln_target {
    kiln_backend_id backend;    /* KILN_BACKEND_ROCM for a HIP device, which uses the same images */
    int32_t compute_capability; /* CUDA: major * 10 + minor (sm_90 is 90, sm_120 is 120) */
    int32_t driver_version;     /* CUDA: major * 1000 + minor * 10, as the driver reports it (12040 is 12.4) */
    int32_t xnack;              /* ROCm: 0 not supported, 1 off, 2 on */
    int32_t sramecc;            /* ROCm: 0 not supported, 1 off, 2 on */
    char processor[32];         /* ROCm: "gfx942"; CPU: "x86-64-v3" */
    char generic[32];           /* ROCm: the processor's generic family ("gfx11-generic"), or "" */
    int32_t reserved[7];        /* 0 */
} kiln_target;

/* Properties of a device, as reported by its driver. */
typedef struct kiln_device_info {
    kiln_backend_id backend; /* the backend on which it was opened */
    int32_t ordinal;
    kiln_target target;
    char name[128];           /* as reported by the driver */
    char driver[128];         /* the driver library that was loaded, and its version */
    uint64_t memory_bytes;    /* device memory; CPU: the machine's */
    int32_t multiprocessors;  /* SMs, compute units, or CPU threads used */
    int32_t wave_size;        /* threads that run in lock step: 32 or 64; CPU: 1 */
    int32_t max_threads;      /* per block */
    int32_t max_shared_bytes; /* per block, with opt-in; CPU: 0 */
    /* The device's identity, independent of CUDA_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES. Values that the driver does
     * not report are 0 in the UUID and -1 in the other fields: on the CPU, with drivers before CUDA 11.4 (UUID) or 12
     * (NUMA node), with runtimes before ROCm 4.0, and with HIP (NUMA node). */
    uint8_t uuid[16]; /* as from cuDeviceGetUuid_v2 or hipDeviceGetUuid; kiln_device_uuid_text formats it */
    int32_t pci_domain, pci_bus, pci_device, pci_function;
    int32_t numa_node; /* the NUMA node nearest to the device */
    int32_t reserved[15];
} kiln_device_info;

/* Gets the properties of an open device. Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_device_get_info(const kiln_device *device, kiln_device_info *out_info);

/* Formats a device's UUID as the vendor's tools print it: "GPU-8f8c1b5e-..." (CUDA), "GPU-4d1b2e..." (ROCm), or "" if
 * it has none. The text is NUL-terminated and truncated to size bytes. Returns the untruncated length, as snprintf
 * does, or 0 if info is NULL. */
KILN_API size_t kiln_device_uuid_text(const kiln_device_info *info, char *text, size_t size);

/* Formats a device's PCI address, such as "0000:41:00.0", in the same way. */
KILN_API size_t kiln_device_pci_text(const kiln_device_info *info, char *text, size_t size);

/* Enables peer access: kernels on device may read and write the memory of peer, another GPU of the same backend, and
 * copies go directly between the two. Access in the other direction requires a second call. It lasts until either
 * context is destroyed. ROCm, whose runtime grants access per allocation: device can access the memory that kiln
 * allocates on peer after this call, until peer is closed. No call is needed for a device's own memory, or between CPU
 * devices. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (a device of another backend); KILN_ERROR_UNSUPPORTED (the two
 * cannot access each other, or there are too many peers); KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST;
 * KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_device_enable_peer(kiln_device *device, kiln_device *peer);

/* ---- 3. Streams -------------------------------------------------------------------------------------------------- */

/* An ordered queue of work. The caller provides the storage, and may copy it while no call is using it. The caller may
 * read device and native, but must not write any field. CPU streams are synchronous: when a call returns, its work is
 * complete. A CPU stream holds KILN_CPU_SCRATCH bytes of scratch memory for the thread that uses it, whose stack may be
 * small.
 *
 * Graphs: kiln has no graph functions; use the driver's stream capture, which records what kiln enqueues. Load
 * everything first (with kiln_preload, or by making the same calls once), and begin a capture on native
 * (cuStreamBeginCapture, hipStreamBeginCapture). Then call operators, kiln_launch, kiln_copy, kiln_fill and
 * kiln_event_record as usual, end the capture and launch the graph. Keep values that change between replays (tokens,
 * positions, lengths, block tables, seeds) in device memory at fixed addresses; the sizes and pointers in params are
 * fixed by the capture. ROCm streams cannot be captured: HSA has no graphs. */
typedef struct kiln_stream {
    kiln_device *device;
    void *native; /* CUstream; HIP: hipStream_t; ROCm: kiln's or the application's hsa_queue_t *; CPU: NULL */
    void *state;  /* private */
} kiln_stream;

enum { KILN_STREAM_TIMING = 1 }; /* ROCm: enables timing of events, by profiling; elsewhere it is always enabled */

/* Opens a stream of the device. flags: 0 or KILN_STREAM_TIMING. Release with kiln_stream_close.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST,
 * KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_stream_open(kiln_device *device, uint32_t flags, kiln_stream *out_stream);

/* Wraps a stream or queue of the application in a kiln_stream. CUDA: native is a CUstream of the device's context,
 * where 0, 1 and 2 have the driver's meaning; nothing is allocated, and nothing needs to be released. HIP: the same,
 * with a hipStream_t; a value that is not a HIP stream, or is a stream of another device, is rejected. ROCm: native is
 * an hsa_queue_t * of the device's agent, which must outlive the stream; kiln_stream_close waits for kiln's last packet
 * and releases kiln's kernarg ring, but not the queue. The queue's error callback must call kiln_device_mark_lost, or
 * kiln may wait forever. CPU: native must be NULL, and the call is the same as kiln_stream_open. Returns the same
 * statuses as kiln_stream_open. */
KILN_API kiln_status kiln_stream_borrow(kiln_device *device, void *native, kiln_stream *out_stream);

/* Marks a device as lost after the driver has reported an error to the application. error is the driver's error number;
 * if it is 0 (success), or if device is NULL or the CPU, the call does nothing. May be called while other threads are
 * waiting.
 *
 * ROCm: when the device rejects a packet of a borrowed queue, or stops a kernel there for any reason other than a page
 * fault, the runtime stops that queue permanently. It reports this only to the error callback that the application
 * passed to hsa_queue_create; kiln cannot detect it. Call this function from that callback, with the hsa_status_t, and
 * every pending wait ends. Since nothing waits for a lost device, stop its other borrowed queues (hsa_queue_inactivate)
 * before closing their streams. */
KILN_API void kiln_device_mark_lost(kiln_device *device, uint32_t error);

/* Enables (on is not 0) or disables (0, the default) programmatic dependent launch on a stream: kernels may start
 * before the preceding kernel has ended, which hides the latency of a launch (CUDA C++ Programming Guide, "Programmatic
 * Dependent Launch"). It applies to kernels that perform the wait themselves, as recorded in their image
 * (kiln_kernel_info.programmatic): until all preceding work has completed they access no memory that it uses, except
 * for prefetches into L2, so results do not change. Other kernels, and copies, start as usual. Needs CUDA, sm_90 or
 * later, and a driver of CUDA 11.8 or later. The stream may be owned or borrowed; existing copies of the struct keep
 * their setting. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_UNSUPPORTED (on is non-zero, and the device
 * or its driver does not support it); KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST. */
KILN_API kiln_status kiln_stream_set_programmatic(kiln_stream *stream, int32_t on);

/* Blocks the calling thread until all work enqueued on the stream has completed.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_CAPTURING, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST,
 * KILN_ERROR_DRIVER (which may stem from earlier work). */
KILN_API kiln_status kiln_stream_sync(kiln_stream *stream);

/* Queries, without waiting, whether all work of the stream has completed: *out_done is 1 or 0. CPU: always 1. ROCm: a
 * queue does not expose its progress, so the first call after new work enqueues a packet to track it, and may return 0
 * although the work has completed; call again. Returns the same statuses as kiln_stream_sync. */
KILN_API kiln_status kiln_stream_query(kiln_stream *stream, int32_t *out_done);

/* Waits for the work of an owned stream and closes it, or releases the resources that kiln holds for a borrowed one.
 * Zeroes *stream. NULL and a zeroed stream are accepted. */
KILN_API void kiln_stream_close(kiln_stream *stream);

/* ---- 4. Memory --------------------------------------------------------------------------------------------------- */

/* Allocates size bytes on the device, aligned to at least 256 bytes, with undefined contents; for the CPU this is host
 * memory. A size of 0 returns NULL. Release with kiln_memory_free. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_CAPTURING, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_memory_alloc(kiln_device *device, size_t size, void **out_memory);

/* Frees memory from kiln_memory_alloc. No work in flight may use it. NULL memory is accepted. */
KILN_API void kiln_memory_free(kiln_device *device, void *memory);

/* Allocates memory in stream order: work that is enqueued on the stream after this call may use it, and so may other
 * streams once they wait for this one. Does not block, and may be called during capture of the stream if the driver
 * allows it. Release with kiln_memory_free_async, or with kiln_memory_free once no work uses it. CPU: the same as
 * kiln_memory_alloc. ROCm, whose runtime has no stream-ordered allocation: kiln caches and reuses memory freed by
 * kiln_memory_free_async, until kiln_memory_alloc runs short of memory or the device is closed. Returns the same
 * statuses as kiln_memory_alloc, and KILN_ERROR_UNSUPPORTED (a CUDA driver before 11.2; a device without memory
 * pools). */
KILN_API kiln_status kiln_memory_alloc_async(kiln_stream *stream, size_t size, void **out_memory);

/* Frees memory from kiln_memory_alloc_async or kiln_memory_alloc in stream order, after all work enqueued on the stream
 * so far. NULL memory is accepted. Returns the same statuses as kiln_memory_alloc_async, among them
 * KILN_ERROR_INVALID_ARGUMENT (ROCm: memory is not the start of an allocation on the device, or is already freed). */
KILN_API kiln_status kiln_memory_free_async(kiln_stream *stream, void *memory);

/* Allocates pinned host memory, which the device and the other GPUs of its backend can read and write directly. Release
 * with kiln_host_free. Returns the same statuses as kiln_memory_alloc. */
KILN_API kiln_status kiln_host_alloc(kiln_device *device, size_t size, void **out_memory);

/* Frees memory from kiln_host_alloc. No work in flight may use it. NULL memory is accepted. */
KILN_API void kiln_host_free(kiln_device *device, void *memory);

/* Pins memory of the application, so that it can be used like memory from kiln_host_alloc. ROCm: this applies to
 * kernels only; a copy to or from it may block, as for any other host memory. *out_device_memory receives the address
 * at which kernels access it, which may differ from memory; out_device_memory may be NULL. Release with
 * kiln_host_unregister before the memory is freed. CPU: does nothing. Returns the same statuses as kiln_memory_alloc,
 * and KILN_ERROR_UNSUPPORTED (the driver cannot pin it). */
KILN_API kiln_status kiln_host_register(kiln_device *device, void *memory, size_t size, void **out_device_memory);

/* Unpins memory. memory is the address that was passed to kiln_host_register. No work in flight may use it. NULL is
 * accepted. */
KILN_API void kiln_host_unregister(kiln_device *device, void *memory);

/* Gets the device's free and total memory in bytes; the free memory accounts for the allocations of all processes. CPU:
 * the memory of the machine. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_UNSUPPORTED (ROCm: older runtimes
 * and kernel drivers do not report it), KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST,
 * KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_memory_get_info(kiln_device *device, uint64_t *out_free, uint64_t *out_total);

typedef enum kiln_copy_direction { KILN_COPY_TO_DEVICE, KILN_COPY_TO_HOST, KILN_COPY_ON_DEVICE } kiln_copy_direction;

/* Copies size bytes in stream order. The ranges must not overlap. The host side may be any memory. If it is from
 * kiln_host_alloc the copy is asynchronous, and the memory must stay valid until the stream has completed it; otherwise
 * the call may block until the copy has completed. While a stream is being captured (CUDA, HIP), host memory of either
 * kind is read or written when the graph runs, not during the call, and must stay valid until then. A size of 0 does
 * nothing. After an error no part of the copy is in flight, with one exception: if the device is lost during the copy,
 * and the copy does not end within a second, the call returns, and the memory that kiln allocated or pinned for the
 * copy is never released. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_CAPTURING,
 * KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_copy(kiln_stream *stream, void *destination, const void *source, size_t size,
                               kiln_copy_direction direction);

/* Sets size bytes of device memory to value in stream order, without waiting. ROCm: implemented by copies of 4 KiB,
 * followed by copies of the part already filled. Returns the same statuses as kiln_copy. */
KILN_API kiln_status kiln_fill(kiln_stream *stream, void *destination, uint8_t value, size_t size);

/* ---- 5. Bundles and selection ------------------------------------------------------------------------------------ */

typedef enum kiln_image_kind { KILN_IMAGE_PTX = 1, KILN_IMAGE_CUBIN, KILN_IMAGE_HSACO, KILN_IMAGE_CPU } kiln_image_kind;

/* Returns "ptx", "cubin", "hsaco", "cpu" or "unknown", in static storage. */
KILN_API const char *kiln_image_kind_name(kiln_image_kind kind);

enum { KILN_CPU_SCRATCH = 1 << 20 }; /* bytes; later versions may have more */

/* The share of a CPU launch that one call computes: blocks [begin, end) of the x * y * z blocks of the grid, x varying
 * fastest. Since the calling thread may have a small stack, the call has KILN_CPU_SCRATCH bytes of scratch memory, with
 * undefined contents. If the function launches on the stream that it runs on, the contents are lost. */
typedef struct kiln_cpu_span {
    uint64_t begin, end;
    uint32_t grid[3];
    uint32_t reserved;
    void *scratch; /* aligned to 64 bytes */
} kiln_cpu_span;

/* A CPU kernel. arguments is the argument struct of the launch. The function may be called from several threads at
 * once, with disjoint spans that together cover the grid. */
typedef void (*kiln_cpu_function)(const void *arguments, const kiln_cpu_span *span);

enum { KILN_KERNEL_MAPS = 4, KILN_KERNEL_MAP_RANK = 4 };

/* A kernel in an image. 0 means unknown; PTX, for example, has no register count. */
typedef struct kiln_kernel_info {
    const char *name;
    uint32_t arguments_size; /* bytes of its argument struct */
    uint32_t registers;      /* per thread (CUDA), VGPRs per lane (ROCm) */
    uint32_t spill_bytes;
    uint32_t shared_bytes; /* static shared memory (LDS) per block */
    uint32_t max_threads;  /* per block */
    uint32_t absent;       /* non-zero: this image lacks the kernel. Some tuned images have kernels that others lack */
    kiln_cpu_function function; /* CPU images only */
    /* For tuned kernels only, used by the host code that chooses the launch shape; 0 for other kernels: */
    uint32_t tile[3];     /* rows and columns of the result computed by a block, and the depth of one stage */
    uint32_t stage_bytes; /* bytes of dynamic shared memory per stage */
    uint32_t rate;        /* throughput of a multiprocessor, relative to the image's other kernels */
    uint32_t stages;      /* stages in shared memory at a time; 0: chosen by the host code */
    uint32_t cluster;     /* blocks per cluster, fixed by the image; 0: no clusters */
    uint32_t map_offset;  /* offset of its tensor maps, 128 bytes each, in its argument struct */
    /* The box of each tensor map, in the order of the operator's tensors: the number of elements that one copy
     * transfers in each dimension, innermost first; 0 after the last dimension, and for maps that the kernel does not
     * have. */
    uint16_t boxes[KILN_KERNEL_MAPS][KILN_KERNEL_MAP_RANK];
    uint32_t programmatic; /* non-zero: may start before the preceding kernel has ended, and waits for it itself */
    uint32_t reserved[9];  /* 0 */
} kiln_kernel_info;

/* The bundle table: constant data, written by `kiln pack` and by kiln's own build. Every level states the size of its
 * entries, so that tables compiled against one version of kiln keep working with later ones. */

enum { KILN_BUNDLE_VERSION = 1 };

/* A precompiled binary for one target. */
typedef struct kiln_image {
    const char *target; /* the exact target it was compiled for: "sm_90a", "gfx942:xnack-", "x86-64-v3" */
    const void *data;   /* NULL for CPU. Compressed if packed_size is not 0; otherwise PTX ends with a NUL byte */
    uint64_t size;      /* bytes of the uncompressed image, without that NUL byte */
    kiln_image_kind kind;
    uint32_t format_version; /* PTX: ISA version * 10 (63 is 6.3); HSACO: code object version; else 0 */
    uint32_t driver_version; /* lowest CUDA driver version that can load it, major * 1000 + minor * 10; else 0 */
    uint32_t kernel_size;    /* sizeof(kiln_kernel_info) when the table was compiled */
    const kiln_kernel_info *kernels; /* in the order of the part's kernel_names */
    uint8_t sha256[32];              /* of the uncompressed image; for integrity, not authenticity */
    uint64_t packed_size; /* bytes of data if compressed, as one gzip member (RFC 1952) without a file name; else 0 */
    uint64_t reserved[3]; /* 0 */
} kiln_image;

/* The images of a bundle that contain the same kernels, normally those of one precision. One of the images is
 * loaded. */
typedef struct kiln_part {
    const char *name; /* "f16" */
    const kiln_image *images;
    const char *const *kernel_names;
    uint32_t image_count;
    uint32_t image_size; /* sizeof(kiln_image) when the table was compiled */
    uint32_t kernel_count;
    uint32_t reserved[5]; /* 0 */
} kiln_part;

/* All images of one operator or one user package. */
typedef struct kiln_bundle {
    uint32_t version;   /* KILN_BUNDLE_VERSION */
    uint32_t part_size; /* sizeof(kiln_part) when the table was compiled */
    const char *name;   /* "softmax" */
    const kiln_part *parts;
    uint32_t part_count;
    uint32_t reserved;
} kiln_bundle;

/* Adds a bundle to the list of kiln_linked_bundles. Place it after the bundle's definition. The retain attribute, if
 * the compiler supports it, keeps the entry when the linker discards unused sections. */
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

/* Lists the bundles in the program or shared object that libkiln.a is linked into: each of kiln's operators that it
 * calls and each packed bundle. libkiln.so lists every operator, but not the bundles packed by its users, which they
 * refer to by name. *out_bundles points to static storage. Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_linked_bundles(const kiln_bundle *const **out_bundles, size_t *out_count);

/* Lists the bundles of all operators. A program that calls this function links the images of every operator, so it is
 * intended for tools only. Returns the same statuses as kiln_linked_bundles. */
KILN_API kiln_status kiln_all_bundles(const kiln_bundle *const **out_bundles, size_t *out_count);

/* The reasons why an image does not fit a device: (name, bit number, sentence). kiln_reason_text completes the sentence
 * with the properties of the image and the device. */
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

/* The verdict on one image of a part. */
typedef struct kiln_candidate {
    uint32_t image;   /* index in the part */
    uint32_t reasons; /* KILN_REASON_ bits; 0: it fits */
    uint32_t rank;    /* among the images that fit: higher is better. 0: it does not fit */
    uint32_t reserved;
} kiln_candidate;

/* Evaluates every image of a part for a target. kiln_module_get selects the image to load with this function, which is
 * pure, calls no driver and allocates nothing. candidates must have room for part->image_count entries. On return the
 * images that fit come first, best first, followed by the others in the part's order; *out_fitting is the number that
 * fit.
 * Returns KILN_OK (even if none fits), or KILN_ERROR_INVALID_ARGUMENT (NULL, a table of an unknown version). */
KILN_API kiln_status kiln_select(const kiln_bundle *bundle, const kiln_part *part, const kiln_target *target,
                                 kiln_candidate *candidates, uint32_t *out_fitting);

/* Formats the reasons as a sentence such as "sm_90a cubin: needs exactly sm_90a, device is sm_120". The text is
 * NUL-terminated and truncated to size bytes. Returns the untruncated length, as snprintf does, or 0 for NULL
 * arguments. */
KILN_API size_t kiln_reason_text(const kiln_image *image, const kiln_target *target, uint32_t reasons, char *text,
                                 size_t size);

/* Parses a target name, such as "sm_90", "gfx942:xnack-" or "x86-64-v3", so that selection can be evaluated for
 * machines that are not available. The suffix a or f of an sm_ name is accepted and denotes the same chip.
 * driver_version (CUDA) is as in kiln_target; 0 is the newest version that kiln knows. ROCm features that the processor
 * supports and the name omits take the driver's defaults: xnack off, sramecc on. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND (the error text lists the names). */
KILN_API kiln_status kiln_target_parse(const char *name, int32_t driver_version, kiln_target *out_target);

/* Formats the name of a target ("sm_90", "gfx942:sramecc+:xnack-", "x86-64-v3"). text, size and the result are as for
 * kiln_reason_text. */
KILN_API size_t kiln_target_text(const kiln_target *target, char *text, size_t size);

/* Returns a part of a bundle by index, in the layout of this version of kiln: fields that an older table lacks are
 * zero. bundle must be valid; an index out of range returns a zeroed entry. */
KILN_API kiln_part kiln_bundle_part(const kiln_bundle *bundle, uint32_t index);

/* Returns an image of a part in the same way. */
KILN_API kiln_image kiln_part_image(const kiln_part *part, uint32_t index);

/* Returns a kernel of an image in the same way. index is that of the kernel's name in the part. */
KILN_API kiln_kernel_info kiln_image_kernel(const kiln_part *part, const kiln_image *image, uint32_t index);

/* Finds a part by name. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND (the error text lists the
 * parts). */
KILN_API kiln_status kiln_bundle_find_part(const kiln_bundle *bundle, const char *name, kiln_part *out_part);

/* ---- 6. Modules and kernels -------------------------------------------------------------------------------------- */

/* A bundle part that has been loaded on a device. */
typedef struct kiln_module kiln_module;

/* A kernel of a module, ready to launch. Valid as long as its module. */
typedef struct kiln_kernel kiln_kernel;

/* Gets the module of a bundle part on a device. The first call loads it: it evaluates the images, loads the best one
 * that the driver accepts and looks up all its kernels. Later calls return the same module. The bundle must outlive the
 * device. Loads on one device are serialised. A load does not affect a capture in progress on another thread. The
 * module belongs to the device and is unloaded when the device is closed. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT;
 * KILN_ERROR_NOT_FOUND (no such part, or the chosen image lacks a kernel that its table lists); KILN_ERROR_NO_IMAGE
 * (the error text gives the reason for each image); KILN_ERROR_CORRUPT_IMAGE; KILN_ERROR_UNSUPPORTED (a kernel needs
 * something that kiln does not provide); KILN_ERROR_CAPTURING; KILN_ERROR_OUT_OF_MEMORY; KILN_ERROR_FORKED;
 * KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_module_get(kiln_device *device, const kiln_bundle *bundle, const char *part,
                                     const kiln_module **out_module);

/* Gets the image from which a module was loaded. Its data is uncompressed, and valid until the device is closed.
 * Returns KILN_OK or KILN_ERROR_INVALID_ARGUMENT. */
KILN_API kiln_status kiln_module_get_image(const kiln_module *module, kiln_image *out_image);

/* Finds a kernel by name. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_NOT_FOUND (the error text lists the
 * kernels). The kernel lives as long as the module. */
KILN_API kiln_status kiln_module_find_kernel(const kiln_module *module, const char *name,
                                             const kiln_kernel **out_kernel);

/* Finds a variable (__device__ or __constant__) of the module's image, and returns its address in device memory and its
 * size in bytes. name is the symbol name in the image, which for C++ is mangled. The address is valid as long as the
 * module. Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT; KILN_ERROR_NOT_FOUND; KILN_ERROR_UNSUPPORTED (CPU: link to it
 * by name); KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_module_find_variable(const kiln_module *module, const char *name, void **out_address,
                                               size_t *out_size);

/* The resources of a loaded kernel. */
typedef struct kiln_kernel_attributes {
    uint32_t arguments_size; /* bytes of the argument struct; 0: not stated by the image, and any size is accepted */
    uint32_t registers;
    uint32_t local_bytes;  /* per thread: spills and stack */
    uint32_t shared_bytes; /* static, per block */
    uint32_t max_threads;  /* per block */
    uint32_t max_dynamic_shared_bytes;
    uint32_t reserved[10];
} kiln_kernel_attributes;

/* Gets the attributes that the driver reports for a loaded kernel. Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT,
 * KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST, KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_kernel_get_attributes(const kiln_kernel *kernel, kiln_kernel_attributes *out_attributes);

/* Gets the number of blocks, with the given threads and bytes of dynamic shared memory per block, that can be resident
 * on one multiprocessor. Returns the same statuses as kiln_kernel_get_attributes. */
KILN_API kiln_status kiln_kernel_get_occupancy(const kiln_kernel *kernel, uint32_t threads,
                                               uint32_t dynamic_shared_bytes, uint32_t *out_blocks);

/* The launch flags: (name, bit number, text). Supported by CUDA drivers 11.8 and later; KILN_ERROR_UNSUPPORTED
 * elsewhere. */
#define KILN_LAUNCH_FLAG_MAP(X)                                                                                        \
    X(COOPERATIVE, 0, "cooperative launch") /* all blocks are resident at once and may synchronise with one another */ \
    X(PROGRAMMATIC, 1,                                                                                                 \
      "programmatic dependent launch")     /* sm_90 and later: may start before the preceding kernel ends */           \
    X(PRIORITY, 2, "priority of a launch") /* priority replaces that of the stream */

enum {
#define KILN_LAUNCH_FLAG_ENUM(name, bit, text) KILN_LAUNCH_##name = 1 << (bit),
    KILN_LAUNCH_FLAG_MAP(KILN_LAUNCH_FLAG_ENUM)
#undef KILN_LAUNCH_FLAG_ENUM
};

/* The shape of a launch. Zero in a dimension of grid or block means 1. A block is what HSA and OpenCL call a
 * work-group; an HSA grid counts work-items, this one counts blocks. */
typedef struct kiln_launch_config {
    uint32_t grid[3];              /* blocks */
    uint32_t block[3];             /* threads per block; ignored by the CPU */
    uint32_t dynamic_shared_bytes; /* in addition to static shared memory; above 48 KB kiln performs the opt-in */
    uint32_t cluster[3]; /* CUDA, sm_90 and later: blocks per cluster, at most 8 in total, or 16 (non-portable) if the
                          * device has room for them. All 0: no clusters */
    uint32_t flags;      /* KILN_LAUNCH_ bits */
    int32_t priority;    /* with KILN_LAUNCH_PRIORITY: as for cuStreamCreateWithPriority; lower is more urgent */
} kiln_launch_config;

/* Launches a kernel on a stream of its device. arguments points to the kernel's argument struct, which is copied;
 * arguments_size must be the size that the kernel expects. For a kernel with several parameters the struct has a member
 * for each, in order, and its size is sizeof the struct, with or without the padding after the last member. A kernel
 * without parameters takes NULL and 0. The call allocates nothing, takes no lock, and blocks only if the queue is full.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (NULL, wrong size, a shape beyond the device's limits, more blocks
 * than a cooperative launch can have, unknown flags, a kernel of another device); KILN_ERROR_OUT_OF_MEMORY (from the
 * driver, for the kernel's stack); KILN_ERROR_UNSUPPORTED (clusters or flags that the device does not support);
 * KILN_ERROR_CAPTURING (the launch invalidated the stream's capture); KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST;
 * KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_launch(kiln_stream *stream, const kiln_kernel *kernel, const kiln_launch_config *config,
                                 const void *arguments, size_t arguments_size);

/* ---- 7. Events --------------------------------------------------------------------------------------------------- */

/* A point in a stream's work. */
typedef struct kiln_event kiln_event;

enum { KILN_EVENT_NO_TIMING = 1 }; /* cannot be used with kiln_event_elapsed; cheaper to record on CUDA */

/* Creates an event for streams of the device. flags: 0 or KILN_EVENT_NO_TIMING. Release with kiln_event_destroy.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT, KILN_ERROR_OUT_OF_MEMORY, KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST,
 * KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_event_create(kiln_device *device, uint32_t flags, kiln_event **out_event);

/* Wraps an event of the application in a kiln_event, so that kiln's work can wait for the application's work and vice
 * versa. native must outlive the kiln_event. The event counts as recorded. CUDA: native is a CUevent of the device's
 * context. HIP:
 * a hipEvent_t. ROCm: native is the handle of an hsa_signal_t, which is complete when its value is 0 or less and which
 * kiln_event_record first sets to 1; it must stay valid until every wait for it has ended, and kiln_event_elapsed does
 * not accept the event. CPU: native must be NULL. Release with kiln_event_destroy, which does not affect native.
 * Returns the same statuses as kiln_event_create. */
KILN_API kiln_status kiln_event_borrow(kiln_device *device, void *native, kiln_event **out_event);

/* Releases an event. NULL is accepted. */
KILN_API void kiln_event_destroy(kiln_event *event);

/* Records the event after all work enqueued on the stream so far. Recording it again replaces the previous recording.
 * Returns the same statuses as kiln_launch. */
KILN_API kiln_status kiln_event_record(kiln_event *event, kiln_stream *stream);

/* Blocks the calling thread until the event has completed. An event that was never recorded counts as complete. Returns
 * the same statuses as kiln_stream_sync. */
KILN_API kiln_status kiln_event_sync(kiln_event *event);

/* Queries, without waiting, whether the event has completed: *out_done is 1 or 0. An event that was never recorded
 * counts as complete, and so does every event of the CPU. Returns the same statuses as kiln_event_sync. */
KILN_API kiln_status kiln_event_query(kiln_event *event, int32_t *out_done);

/* Makes all work enqueued on the stream after this call wait for the event; the host does not wait. Returns the same
 * statuses as kiln_launch. */
KILN_API kiln_status kiln_stream_wait_event(kiln_stream *stream, kiln_event *event);

/* Gets the time between two events of one device, in nanoseconds of the device's clock. Both must have completed.
 * Returns KILN_OK; KILN_ERROR_INVALID_ARGUMENT (not recorded, of different devices, created with
 * KILN_EVENT_NO_TIMING, recorded on a ROCm stream opened without KILN_STREAM_TIMING, borrowed on ROCm);
 * KILN_ERROR_FORKED; KILN_ERROR_DEVICE_LOST; KILN_ERROR_DRIVER. */
KILN_API kiln_status kiln_event_elapsed(kiln_event *start, kiln_event *end, double *out_nanoseconds);

/* ---- 8. Start-up check ------------------------------------------------------------------------------------------- */

/* The result for one bundle part on one device. The strings are valid until the callback returns. */
typedef struct kiln_preload_result {
    kiln_device *device;
    const kiln_bundle *bundle;
    const char *part;
    kiln_status status;
    const char *target; /* of the selected image; NULL if there is none */
    kiln_image_kind kind;
    uint32_t reserved;
    const char *text; /* "sm_90 cubin", or the reason why each image did not fit, one per line */
} kiln_preload_result;

typedef void (*kiln_preload_callback)(void *user, const kiln_preload_result *result);

/* Loads every part of the given bundles on the given devices and passes each result to report, which may be NULL. All
 * parts are tried even if some fail. If all succeed, no later call has to load anything. Returns KILN_OK, or the status
 * of the first failure, the same statuses as kiln_module_get; kiln_last_error() then returns its error text. */
KILN_API kiln_status kiln_preload(kiln_device *const *devices, size_t device_count, const kiln_bundle *const *bundles,
                                  size_t bundle_count, kiln_preload_callback report, void *user);

/* ---- 9. Tracing -------------------------------------------------------------------------------------------------- */

/* Starts recording every launch, copy and load on a device, with host times and, where events can be timed, device
 * times. At most capacity records are kept (0: 65536); further ones are counted and dropped. Tracing has no cost when
 * it is off.
 * Returns KILN_OK, KILN_ERROR_INVALID_ARGUMENT (already tracing, a capacity above 2^24), KILN_ERROR_OUT_OF_MEMORY,
 * KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST. */
KILN_API kiln_status kiln_trace_start(kiln_device *device, size_t capacity);

typedef enum kiln_trace_format { KILN_TRACE_CHROME_JSON, KILN_TRACE_TEXT } kiln_trace_format;

/* Receives the next bytes of the trace. Returns 0 to continue; any other value stops the writing. */
typedef int (*kiln_write_callback)(void *user, const char *bytes, size_t size);

/* Stops recording, writes the records through the callback and discards them. Returns KILN_OK,
 * KILN_ERROR_INVALID_ARGUMENT (not tracing), KILN_ERROR_FORKED, KILN_ERROR_DEVICE_LOST (nothing is written then),
 * KILN_ERROR_DRIVER (the callback stopped the writing). */
KILN_API kiln_status kiln_trace_stop(kiln_device *device, kiln_trace_format format, kiln_write_callback write,
                                     void *user);

#ifdef __cplusplus
}
#endif

#endif
