/* What a server asks of the simulated CUDA driver beside launches: its functions by name and version, functions of the
 * host's in a stream, copies of rows, what devices, contexts and streams are, and graphs that are updated. */
#include "tests/sim/tests/cuda/cuda_driver.h"
#include <pthread.h>
#include <time.h>

enum { BYTES = 64, THREADS = BYTES / 4, CU_INVALID_CONTEXT = 201, CU_PEER_UNSUPPORTED = 217 };
enum { CU_PEER_NOT_ENABLED = 705, CU_NOT_PERMITTED = 800, CU_UPDATE_FAILURE = 910, NEWEST = 13000 };

static sim_control sim;
static cuda_driver driver;
static kiln__cu_context context;

static int setup(void **state) {
    (void)state;
    return cuda_driver_enter(&driver, &context);
}

static int teardown(void **state) {
    (void)state;
    sim.reset();
    return cuda_driver_leave(&driver) || sim.live("*");
}

/* ---- Functions by name ---- */

static const char *const listed[] = {
#define KILN_CUDA(field, name, requirement, result, parameters) #field,
#include "loader/cuda/symbols.def"
#include "tests/sim/cuda/extra_symbols.def"
#undef KILN_CUDA
};

static const void *address_of(const char *name, int version, kiln__cu_enum status) {
    void *found = (void *)1, *again = (void *)1;
    kiln__cu_enum told = 77;
    expect_cu(CU_OK, driver.cuGetProcAddress_v2(name, &found, version, 0, &told));
    expect_cu(CU_OK, driver.cuGetProcAddress(name, &again, version, 1));
    assert_int_equal(told, status);
    assert_ptr_equal(found, again);
    return found;
}

static void functions_have_names_and_versions(void **state) {
    void *library = *state, *found;
    enum { FOUND, NOT_FOUND, TOO_OLD };
    for (size_t i = 0; i < sizeof listed / sizeof *listed; i++) {
        if (strstr(listed[i], "_v")) continue; /* a number is no part of a name */
        assert_non_null(address_of(listed[i], NEWEST, FOUND));
    }
    assert_ptr_equal(address_of("cuMemAlloc", NEWEST, FOUND), dlsym(library, "cuMemAlloc_v2"));
    assert_ptr_equal(address_of("cuEventElapsedTime", 12070, FOUND), dlsym(library, "cuEventElapsedTime"));
    assert_ptr_equal(address_of("cuEventElapsedTime", 12080, FOUND), dlsym(library, "cuEventElapsedTime_v2"));
    assert_ptr_equal(address_of("cuCtxCreate", 12040, FOUND), dlsym(library, "cuCtxCreate_v2"));
    assert_ptr_equal(address_of("cuCtxCreate", NEWEST, FOUND), dlsym(library, "cuCtxCreate_v4"));
    assert_ptr_equal(address_of("cuGraphInstantiate", 12000, FOUND), dlsym(library, "cuGraphInstantiateWithFlags"));
    assert_null(address_of("cuMemAllocAsync", 11010, TOO_OLD));
    assert_null(address_of("cuMemAllocNowhere", NEWEST, NOT_FOUND));
    assert_null(address_of("cuMem", NEWEST, NOT_FOUND));
    expect_cu(CU_INVALID_VALUE, driver.cuGetProcAddress_v2("cuInit", &found, NEWEST + 10, 0, NULL));
    assert_int_equal(sim.violations(), 0);
    expect_cu(CU_NOT_SUPPORTED, driver.cuGetProcAddress_v2("cuInit", &found, NEWEST, 2, NULL));
    assert_non_null(strstr(sim.violation(), "default stream of each thread"));
    sim.reset();
}

/* ---- Functions of the host's ---- */

typedef struct hosted {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const uint32_t *pinned;
    uint32_t seen, calls;
    kiln__cu_result inside;
} hosted;

/* Looks at what the copy in front of it wrote, tells who waits, and tries what is not permitted. */
static void look(void *data) {
    hosted *h = data;
    kiln__cu_stream stream;
    pthread_mutex_lock(&h->lock);
    h->inside = driver.cuStreamCreate(&stream, 0);
    h->seen = *h->pinned;
    h->calls++;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

/* Nothing of the driver's is called meanwhile. */
static void wait_for_calls(hosted *h, uint32_t calls) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&h->lock);
    while (h->calls < calls)
        if (pthread_cond_timedwait(&h->changed, &h->lock, &until) != 0) fail_msg("the function was not called");
    pthread_mutex_unlock(&h->lock);
}

static void a_stream_calls_functions_of_the_host(void **state) {
    (void)state;
    hosted h = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    kiln__cu_stream stream, other;
    kiln__cu_event event;
    kiln__cu_address memory;
    void *pinned;
    struct CUgraph_st *graph;
    struct CUgraphExec_st *executable;
    expect_cu(CU_OK, driver.cuStreamCreate(&stream, KILN__CU_STREAM_NON_BLOCKING));
    expect_cu(CU_OK, driver.cuStreamCreate(&other, KILN__CU_STREAM_NON_BLOCKING));
    expect_cu(CU_OK, driver.cuEventCreate(&event, 0));
    expect_cu(CU_OK, driver.cuMemAlloc(&memory, BYTES));
    expect_cu(CU_OK, driver.cuMemHostAlloc(&pinned, BYTES, 0));
    h.pinned = pinned;
    for (uint32_t i = 1; i <= 3; i++) {
        expect_cu(CU_OK, driver.cuMemsetD32Async(memory, i, THREADS, other));
        expect_cu(CU_OK, driver.cuEventRecord(event, other));
        expect_cu(CU_OK, driver.cuStreamWaitEvent(stream, event, 0));
        expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(pinned, memory, BYTES, stream));
        expect_cu(CU_OK, driver.cuLaunchHostFunc(stream, look, &h));
        expect_cu(CU_OK, driver.cuMemsetD32Async(memory, 99, THREADS, stream));
        wait_for_calls(&h, i);
        assert_int_equal(h.seen, i);
        expect_cu(CU_OK, driver.cuStreamSynchronize(stream));
    }
    assert_int_equal(h.inside, CU_NOT_PERMITTED);
    assert_int_equal(sim.violations(), 3);
    expect_cu(CU_OK, driver.cuStreamBeginCapture(stream, CU_CAPTURE_RELAXED));
    expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(pinned, memory, BYTES, stream));
    expect_cu(CU_OK, driver.cuLaunchHostFunc(stream, look, &h));
    expect_cu(CU_OK, driver.cuStreamEndCapture(stream, &graph));
    expect_cu(CU_OK, driver.cuGraphInstantiateWithFlags(&executable, graph, 1 | 8));
    assert_int_equal(h.calls, 3);
    expect_cu(CU_OK, driver.cuGraphLaunch(executable, stream));
    expect_cu(CU_OK, driver.cuGraphLaunch(executable, stream));
    expect_cu(CU_OK, driver.cuStreamSynchronize(stream));
    assert_int_equal(h.calls, 5);
    assert_int_equal(h.seen, 99);
    expect_cu(CU_INVALID_VALUE, driver.cuLaunchHostFunc(stream, NULL, NULL));
    expect_cu(CU_OK, driver.cuGraphExecDestroy(executable));
    expect_cu(CU_OK, driver.cuGraphDestroy(graph));
    expect_cu(CU_OK, driver.cuMemFreeHost(pinned));
    expect_cu(CU_OK, driver.cuMemFree(memory));
    expect_cu(CU_OK, driver.cuEventDestroy(event));
    expect_cu(CU_OK, driver.cuStreamDestroy(other));
    expect_cu(CU_OK, driver.cuStreamDestroy(stream));
}

/* ---- Copies of rows: the driver's CUDA_MEMCPY2D ---- */

struct CUDA_MEMCPY2D_st {
    struct rows {
        size_t x, y;
        kiln__cu_enum type;
        void *host;
        kiln__cu_address device;
        void *array;
        size_t pitch;
    } from, to;
    size_t width, height;
};

static void rows_are_copied(void **state) {
    (void)state;
    enum { HOST = 1, DEVICE = 2, ARRAY = 3, UNIFIED = 4, WIDTH = 12, HEIGHT = 5, HOST_PITCH = 20 };
    uint8_t from[HEIGHT + 1][HOST_PITCH], to[HEIGHT][WIDTH];
    kiln__cu_address memory;
    size_t pitch;
    for (size_t i = 0; i < sizeof from; i++)
        from[i / HOST_PITCH][i % HOST_PITCH] = (uint8_t)i;
    expect_cu(CU_OK, driver.cuMemAllocPitch(&memory, &pitch, 2 * WIDTH, HEIGHT + 2, 4));
    assert_true(pitch >= 2 * WIDTH);
    struct CUDA_MEMCPY2D_st in = {.from = {.x = 3, .y = 1, .type = HOST, .host = from, .pitch = HOST_PITCH},
                                  .to = {.x = 4, .y = 2, .type = DEVICE, .device = memory, .pitch = pitch},
                                  .width = WIDTH,
                                  .height = HEIGHT};
    struct CUDA_MEMCPY2D_st out = {.from = in.to, .to = {.type = HOST, .host = to}, .width = WIDTH, .height = HEIGHT};
    out.from.type = UNIFIED;
    expect_cu(CU_OK, driver.cuMemcpy2D(&in));
    expect_cu(CU_OK, driver.cuMemcpy2DAsync(&out, NULL));
    for (size_t row = 0; row < HEIGHT; row++)
        assert_memory_equal(to[row], &from[row + 1][3], WIDTH);
    assert_int_equal(sim.violations(), 0);
    out.from.type = DEVICE;
    out.from.y = 3;
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpy2DUnaligned(&out));
    assert_non_null(strstr(sim.violation(), "not device memory"));
    in.to.x = pitch - WIDTH + 1;
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpy2D(&in));
    in.to.type = ARRAY;
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpy2D(&in));
    expect_cu(CU_OK, driver.cuMemFree(memory));
}

/* ---- Devices, contexts, streams, addresses ---- */

static void devices_are_told_apart(void **state) {
    (void)state;
    enum { BUS = 33, UUID = 16 };
    struct CUuuid_st {
        char bytes[UUID];
    } uuid[2];
    char text[2][16];
    int bus[2], can = 1;
    for (int i = 0; i < 2; i++) {
        expect_cu(CU_OK, driver.cuDeviceGetUuid((void *)&uuid[i], i));
        expect_cu(CU_OK, driver.cuDeviceGetPCIBusId(text[i], sizeof text[i], i));
        expect_cu(CU_OK, driver.cuDeviceGetAttribute(&bus[i], BUS, i));
        assert_int_equal(strtol(strchr(text[i], ':') + 1, NULL, 16), bus[i]);
    }
    assert_memory_not_equal(uuid[0].bytes, uuid[1].bytes, UUID);
    assert_int_not_equal(bus[0], bus[1]);
    expect_cu(CU_OK, driver.cuDeviceCanAccessPeer(&can, 0, 1));
    assert_int_equal(can, 0);
}

static void contexts_have_memory_of_their_own(void **state) {
    (void)state;
    kiln__cu_context other, of;
    kiln__cu_address memory[2];
    kiln__cu_stream stream;
    unsigned flags, version;
    int active, priority, least = 1;
    uint8_t bytes[BYTES];
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxGetState(1, &flags, &active));
    assert_int_equal(active, 0);
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxSetFlags(1, 4));
    expect_cu(CU_INVALID_VALUE, driver.cuDevicePrimaryCtxSetFlags(1, 5));
    expect_cu(CU_OK, driver.cuMemAlloc(&memory[0], BYTES));
    expect_cu(CU_OK, driver.cuMemsetD8(memory[0], 5, BYTES));
    expect_cu(CU_OK, driver.cuStreamCreateWithPriority(&stream, 1, -2));
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRetain(&other, 1));
    expect_cu(CU_PEER_UNSUPPORTED, driver.cuCtxEnablePeerAccess(other, 0));
    expect_cu(CU_PEER_NOT_ENABLED, driver.cuCtxDisablePeerAccess(other));
    expect_cu(CU_INVALID_CONTEXT, driver.cuCtxEnablePeerAccess(context, 0));
    expect_cu(CU_OK, driver.cuStreamGetFlags(stream, &flags));
    assert_int_equal(flags, 1);
    expect_cu(CU_OK, driver.cuStreamGetPriority(stream, &priority));
    expect_cu(CU_OK, driver.cuCtxGetStreamPriorityRange(&least, NULL));
    assert_true(priority == 0 && least == 0);
    expect_cu(CU_OK, driver.cuCtxPushCurrent(other));
    expect_cu(CU_OK, driver.cuStreamGetCtx(stream, &of));
    assert_ptr_equal(of, context);
    expect_cu(CU_OK, driver.cuStreamGetCtx(NULL, &of));
    assert_ptr_equal(of, other);
    expect_cu(CU_OK, driver.cuCtxGetFlags(&flags));
    assert_int_equal(flags, 4);
    expect_cu(CU_OK, driver.cuCtxGetApiVersion(NULL, &version));
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxGetState(1, &flags, &active));
    assert_true(active && flags == 4);
    expect_cu(CU_OK, driver.cuMemAlloc(&memory[1], BYTES));
    sim.reset();
    expect_cu(CU_OK, driver.cuMemcpyPeer(memory[1], other, memory[0], context, BYTES));
    expect_cu(CU_OK, driver.cuMemcpyDtoH(bytes, memory[1], BYTES));
    assert_int_equal(bytes[BYTES - 1], 5);
    assert_int_equal(sim.violations(), 0);
    expect_cu(CU_INVALID_VALUE, driver.cuMemcpyPeerAsync(memory[1], context, memory[0], context, BYTES, NULL));
    expect_cu(CU_OK, driver.cuMemFree(memory[1]));
    expect_cu(CU_OK, driver.cuCtxPopCurrent(NULL));
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxRelease(1));
    expect_cu(CU_OK, driver.cuDevicePrimaryCtxSetFlags(1, 0));
    expect_cu(CU_OK, driver.cuStreamDestroy(stream));
    expect_cu(CU_OK, driver.cuMemFree(memory[0]));
}

static void addresses_have_ranges(void **state) {
    (void)state;
    kiln__cu_address memory, base, at;
    void *pinned;
    size_t size;
    expect_cu(CU_OK, driver.cuMemAlloc(&memory, BYTES));
    expect_cu(CU_OK, driver.cuMemAllocHost(&pinned, BYTES));
    expect_cu(CU_OK, driver.cuMemGetAddressRange(&base, &size, memory + 7));
    assert_true(base == memory && size == BYTES);
    expect_cu(CU_NOT_FOUND, driver.cuMemGetAddressRange(&base, &size, 7));
    expect_cu(CU_OK, driver.cuMemHostGetDevicePointer(&at, pinned, 0));
    expect_cu(CU_OK, driver.cuMemGetAddressRange(&base, NULL, at));
    assert_int_equal(sim.violations(), 0);
    expect_cu(CU_INVALID_VALUE, driver.cuMemHostGetDevicePointer(&at, &size, 0));
    expect_cu(CU_OK, driver.cuMemFreeHost(pinned));
    expect_cu(CU_OK, driver.cuMemFree(memory));
}

/* A pool keeps what it is told, and tells what is used of it. */
static void a_device_has_a_pool(void **state) {
    (void)state;
    enum { OPPORTUNISTIC = 2, THRESHOLD = 4, USED = 7, USED_HIGH = 8 };
    struct CUmemPoolHandle_st *pool, *current, *other;
    kiln__cu_address memory;
    uint64_t threshold = UINT64_MAX, kept = 0, before, after;
    int reuses = 0;
    expect_cu(CU_OK, driver.cuDeviceGetDefaultMemPool(&pool, 0));
    expect_cu(CU_OK, driver.cuDeviceGetMemPool(&current, 0));
    expect_cu(CU_OK, driver.cuDeviceGetDefaultMemPool(&other, 1));
    assert_ptr_equal(pool, current);
    assert_ptr_not_equal(pool, other);
    expect_cu(CU_OK, driver.cuMemPoolGetAttribute(pool, THRESHOLD, &kept));
    assert_int_equal(kept, 0);
    expect_cu(CU_OK, driver.cuMemPoolSetAttribute(pool, THRESHOLD, &threshold));
    expect_cu(CU_OK, driver.cuMemPoolGetAttribute(pool, THRESHOLD, &kept));
    assert_true(kept == threshold);
    expect_cu(CU_OK, driver.cuMemPoolGetAttribute(pool, OPPORTUNISTIC, &reuses));
    assert_int_equal(reuses, 1);
    expect_cu(CU_OK, driver.cuMemPoolGetAttribute(pool, USED, &before));
    expect_cu(CU_OK, driver.cuMemAllocFromPoolAsync(&memory, BYTES, pool, NULL));
    expect_cu(CU_OK, driver.cuMemsetD8Async(memory, 1, BYTES, NULL));
    expect_cu(CU_OK, driver.cuMemPoolGetAttribute(pool, USED, &after));
    assert_true(after >= before + BYTES);
    expect_cu(CU_OK, driver.cuMemFreeAsync(memory, NULL));
    expect_cu(CU_OK, driver.cuCtxSynchronize());
    expect_cu(CU_OK, driver.cuMemPoolTrimTo(pool, 0));
    expect_cu(CU_OK, driver.cuMemPoolGetAttribute(pool, USED, &after));
    assert_int_equal(after, before);
    assert_int_equal(sim.violations(), 0);
    expect_cu(CU_INVALID_VALUE, driver.cuMemAllocFromPoolAsync(&memory, BYTES, other, NULL));
    expect_cu(CU_INVALID_VALUE, driver.cuMemPoolSetAttribute(pool, USED, &after));
    expect_cu(CU_INVALID_VALUE, driver.cuMemPoolGetAttribute(pool, USED_HIGH, &after));
    expect_cu(CU_INVALID_VALUE, driver.cuMemPoolTrimTo((struct CUmemPoolHandle_st *)&kept, 0));
}

/* ---- Graphs that are updated: the driver's CUgraphExecUpdateResultInfo ---- */

struct CUgraphExecUpdateResultInfo_st {
    kiln__cu_enum result;
    void *node, *from;
};

/* A fill with a value, and if extra another one, or if copy a copy in its place. */
static struct CUgraph_st *graph_of(kiln__cu_stream stream, kiln__cu_address memory, uint32_t value, bool extra,
                                   bool copy) {
    struct CUgraph_st *graph;
    expect_cu(CU_OK, driver.cuStreamBeginCapture(stream, CU_CAPTURE_RELAXED));
    if (copy)
        expect_cu(CU_OK, driver.cuMemcpyDtoDAsync(memory, memory + BYTES / 2, BYTES / 2, stream));
    else
        expect_cu(CU_OK, driver.cuMemsetD32Async(memory, value, THREADS, stream));
    if (extra) expect_cu(CU_OK, driver.cuMemsetD32Async(memory, value, THREADS, stream));
    expect_cu(CU_OK, driver.cuStreamEndCapture(stream, &graph));
    return graph;
}

static void a_graph_of_the_same_shape_is_taken(void **state) {
    (void)state;
    enum { UPDATED, TOPOLOGY = 2, NODE_TYPE = 3 };
    static const struct {
        bool extra, copy;
        kiln__cu_enum result;
    } rows[] = {{false, false, UPDATED}, {true, false, TOPOLOGY}, {false, true, NODE_TYPE}};
    kiln__cu_stream stream;
    kiln__cu_address memory;
    struct CUgraphExec_st *executable;
    expect_cu(CU_OK, driver.cuStreamCreate(&stream, 0));
    expect_cu(CU_OK, driver.cuMemAlloc(&memory, BYTES));
    struct CUgraph_st *first = graph_of(stream, memory, 1, false, false);
    expect_cu(CU_OK, driver.cuGraphInstantiateWithFlags(&executable, first, 0));
    expect_cu(CU_OK, driver.cuGraphDestroy(first));
    expect_cu(CU_OK, driver.cuGraphUpload(executable, stream));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint32_t seen[THREADS];
        struct CUgraphExecUpdateResultInfo_st info = {.result = 77};
        struct CUgraph_st *graph = graph_of(stream, memory, 20, rows[i].extra, rows[i].copy);
        expect_cu(CU_OK, driver.cuMemsetD8Async(memory, 0, BYTES, stream));
        expect_cu(CU_OK, driver.cuGraphLaunch(executable, stream)); /* is what it was */
        expect_cu(rows[i].result ? CU_UPDATE_FAILURE : CU_OK, driver.cuGraphExecUpdate(executable, graph, &info));
        assert_int_equal(info.result, rows[i].result);
        expect_cu(CU_OK, driver.cuGraphDestroy(graph));
        expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(seen, memory, BYTES, stream));
        assert_int_equal(seen[THREADS - 1], i ? 20 : 1);
        expect_cu(CU_OK, driver.cuGraphLaunch(executable, stream));
        expect_cu(CU_OK, driver.cuMemcpyDtoHAsync(seen, memory, BYTES, stream));
        assert_int_equal(seen[THREADS - 1], 20);
    }
    assert_int_equal(sim.violations(), 0);
    expect_cu(CU_OK, driver.cuGraphExecDestroy(executable));
    expect_cu(CU_OK, driver.cuMemFree(memory));
    expect_cu(CU_OK, driver.cuStreamDestroy(stream));
}

/* ---- Fat binaries, made as nvcc -fatbin makes them ---- */

enum { PLAIN, LZ4 = 0x2000, ZSTD = 0x8000, ELF_KIND = 2, PTX_KIND = 1, FAT_ROOM = 2048 };

typedef struct fat {
    _Alignas(8) uint8_t bytes[FAT_ROOM];
    size_t size;
} fat;

static void put(fat *f, const void *bytes, size_t size) {
    assert_true(size <= FAT_ROOM - f->size);
    memcpy(f->bytes + f->size, bytes, size);
    f->size += size;
}

/* Of a text: all literals, or a frame of one block that is not compressed; behind both a repetition of its last byte.
 */
static size_t pack(const char *text, uint32_t flags, uint8_t *out) {
    enum { REPEATED = 20 };
    const size_t size = strlen(text);
    uint8_t *at = out;
    if (flags == LZ4) {
        *at++ = 0xff;
        for (size_t left = size - 15; left >= 255 || (*at++ = (uint8_t)left, false); left -= 255)
            *at++ = 255;
        at = (uint8_t *)memcpy(at, text, size) + size;
        memcpy(at, (uint8_t[]){1, 0, REPEATED - 15 - 4}, 3);
        return (size_t)(at + 3 - out);
    }
    const uint32_t content = (uint32_t)(size + REPEATED - 256);
    const uint32_t first = (uint32_t)size << 3, last = (uint32_t)REPEATED << 3 | 1 << 1 | 1;
    memcpy(at, (uint8_t[]){0x28, 0xb5, 0x2f, 0xfd, 0x60, (uint8_t)content, (uint8_t)(content >> 8)}, 7);
    memcpy(at + 7, &first, 3);
    memcpy(at + 10, text, size);
    memcpy(at + 10 + size, &last, 3);
    at[13 + size] = (uint8_t)text[size - 1];
    return 14 + size;
}

static void put_image(fat *f, uint16_t kind, uint32_t target, uint32_t flags, const char *text) {
    enum { REPEATED = 20, HEADER = 64 };
    uint8_t packed[FAT_ROOM] = {0};
    const size_t size = flags ? pack(text, flags, packed) : strlen(text);
    const uint64_t padded = flags ? (size + 7) / 8 * 8 : size, whole = strlen(text) + REPEATED;
    if (!flags) memcpy(packed, text, size);
    put(f, (uint16_t[]){kind, 0x101}, 4);
    put(f, (uint32_t[]){HEADER}, 4);
    put(f, &padded, 8);
    put(f, (uint32_t[]){flags ? (uint32_t)size : 0, HEADER, 9 << 16, target, 0, 0}, 24);
    put(f, (uint64_t[]){flags, 0, flags ? whole : 0}, 24);
    put(f, packed, padded);
}

static void the_text_of_a_fat_binary_is_taken(void **state) {
    (void)state;
    enum { CU_INVALID_IMAGE = 200, CU_NO_BINARY = 209 };
    static const char low[] = ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry low() {\nret;\n}\n"
                              "// this text goes on for more than 255 bytes, as that is where a compressed length has "
                              "more than one byte, and where the head of a frame has two bytes for its size. So here "
                              "are some more of them: abcdefghijklmnopqrstuvwxyz\n";
    static const char high[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry high() {\nret;\n}\n";
    static const uint32_t flags[] = {PLAIN, LZ4, ZSTD};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (flags[i] == ZSTD && !dlopen("libzstd.so.1", RTLD_NOW)) continue;
        for (uint32_t rows = 1; rows <= 3; rows++) {
            fat f = {.size = 16};
            kiln__cu_module module;
            kiln__cu_function function;
            put_image(&f, ELF_KIND, 80, PLAIN, "12345678");
            if (rows & 1) put_image(&f, PTX_KIND, 75, flags[i], low);
            if (rows & 2) put_image(&f, PTX_KIND, 80, PLAIN, high);
            put_image(&f, PTX_KIND, 90, PLAIN, "of no device here");
            memcpy(f.bytes, &(uint32_t){0xba55ed50}, 4);
            memcpy(f.bytes + 4, (uint16_t[]){1, 16}, 4);
            memcpy(f.bytes + 8, &(uint64_t){f.size - 16}, 8);
            const struct {
                uint32_t magic, version;
                const void *data, *more;
            } around = {0x466243b1, 1, f.bytes, NULL};
            expect_cu(CU_OK, driver.cuModuleLoadFatBinary(&module, &around));
            expect_cu(CU_OK, driver.cuModuleGetFunction(&function, module, rows & 2 ? "high" : "low"));
            expect_cu(CU_OK, driver.cuModuleUnload(module));
            if (flags[i] && rows == 1) {
                f.bytes[16 + 64 + 8 + 64] ^= 0x55; /* the first byte of what is compressed */
                expect_cu(CU_INVALID_IMAGE, driver.cuModuleLoadData(&module, f.bytes));
            }
        }
    }
    fat f = {.size = 16};
    kiln__cu_module module;
    char log[128] = "";
    kiln__cu_enum options[] = {KILN__CU_JIT_ERROR_LOG_BUFFER, KILN__CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    put_image(&f, ELF_KIND, 80, PLAIN, "12345678");
    memcpy(f.bytes, &(uint32_t){0xba55ed50}, 4);
    memcpy(f.bytes + 4, (uint16_t[]){1, 16}, 4);
    memcpy(f.bytes + 8, &(uint64_t){f.size - 16}, 8);
    expect_cu(CU_NO_BINARY, driver.cuModuleLoadDataEx(&module, f.bytes, 2, options, values));
    assert_non_null(strstr(log, "without PTX for sm_80"));
    assert_int_equal(sim.violations(), 0);
}

/* Both logs are texts when the call returns, and their sizes are what was written. */
static void logs_of_a_module_are_filled(void **state) {
    (void)state;
    enum { INFO = 3, INFO_SIZE = 4, ROOM = 10 };
    char info[ROOM], log[ROOM];
    kiln__cu_module module;
    kiln__cu_enum options[] = {INFO, INFO_SIZE, KILN__CU_JIT_ERROR_LOG_BUFFER,
                               KILN__CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {info, (void *)ROOM, log, (void *)ROOM};
    memset(info, 'x', ROOM);
    memset(log, 'x', ROOM);
    assert_int_not_equal(driver.cuModuleLoadDataEx(&module, ".version 7.0 and nothing else", 4, options, values),
                         CU_OK);
    assert_string_equal(info, "");
    assert_int_equal(strnlen(log, ROOM), ROOM - 1);
    assert_int_equal((uintptr_t)values[1], 0);
    assert_int_equal((uintptr_t)values[3], ROOM - 1);
}

#define APPLICATION_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv) {
    (void)argc;
    cuda_driver_start(argv, "sm_80,sm_90", &sim, &driver);
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(functions_have_names_and_versions, library),
        APPLICATION_TEST(a_stream_calls_functions_of_the_host),
        APPLICATION_TEST(rows_are_copied),
        APPLICATION_TEST(devices_are_told_apart),
        APPLICATION_TEST(contexts_have_memory_of_their_own),
        APPLICATION_TEST(addresses_have_ranges),
        APPLICATION_TEST(a_device_has_a_pool),
        APPLICATION_TEST(a_graph_of_the_same_shape_is_taken),
        APPLICATION_TEST(the_text_of_a_fat_binary_is_taken),
        APPLICATION_TEST(logs_of_a_module_are_filled),
    };
    return cmocka_run_group_tests_name("cuda_application", tests, NULL, NULL);
}
