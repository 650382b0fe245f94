/* How fast a CUDA device copies its own memory: by the driver's copy and by a kernel that reads and writes vectors of
 * 16 bytes, the bounds that operators on rows are held against. What the kernel copies is compared first. gpu_copy
 * DEVICE MIB      writes JSON; of a simulated device no times */
#include "loader/cli/count.h"
#include "loader/cli/device.h"
#include "loader/cli/json.h"
#include "tests/kernel_bundle.h"
#include <string.h>

enum { MIB = 1 << 20, THREADS = 256, VECTORS = 4, VECTOR = 16, COMPARED = MIB + 3 * VECTOR };

/* Each thread copies four vectors, THREADS apart. */
static const char text[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n"
    ".visible .entry copy(.param .align 8 .b8 args[24])\n{\n"
    ".reg .pred %p<4>;\n.reg .b32 %r<24>;\n.reg .b64 %rd<16>;\n"
    "ld.param.u64 %rd1, [args];\nld.param.u64 %rd2, [args+8];\nld.param.u64 %rd3, [args+16];\n"
    "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %rd4, %r1, 1024;\ncvt.u64.u32 %rd5, %r2;\n"
    "add.s64 %rd4, %rd4, %rd5;\nadd.s64 %rd5, %rd4, 256;\nadd.s64 %rd6, %rd4, 512;\nadd.s64 %rd7, %rd4, 768;\n"
    "setp.lt.u64 %p0, %rd4, %rd3;\nsetp.lt.u64 %p1, %rd5, %rd3;\n"
    "setp.lt.u64 %p2, %rd6, %rd3;\nsetp.lt.u64 %p3, %rd7, %rd3;\n"
    "shl.b64 %rd4, %rd4, 4;\nadd.s64 %rd8, %rd2, %rd4;\nadd.s64 %rd9, %rd1, %rd4;\n"
    "@%p0 ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd8];\n"
    "@%p1 ld.global.v4.u32 {%r8, %r9, %r10, %r11}, [%rd8+4096];\n"
    "@%p2 ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd8+8192];\n"
    "@%p3 ld.global.v4.u32 {%r16, %r17, %r18, %r19}, [%rd8+12288];\n"
    "@%p0 st.global.v4.u32 [%rd9], {%r4, %r5, %r6, %r7};\n"
    "@%p1 st.global.v4.u32 [%rd9+4096], {%r8, %r9, %r10, %r11};\n"
    "@%p2 st.global.v4.u32 [%rd9+8192], {%r12, %r13, %r14, %r15};\n"
    "@%p3 st.global.v4.u32 [%rd9+12288], {%r16, %r17, %r18, %r19};\nret;\n}\n";

typedef struct copy_args {
    void *to;
    const void *from;
    uint64_t vectors;
} copy_args;

typedef struct copy_job {
    const kiln_kernel *kernel;
    copy_args args;
} copy_job;

static kiln_status by_kernel(void *user, kiln_stream *stream) {
    const copy_job *job = user;
    uint64_t groups = (job->args.vectors + VECTORS * THREADS - 1) / (VECTORS * THREADS);
    const kiln_launch_config config = {.grid = {(uint32_t)groups}, .block = {THREADS}};
    return kiln_launch(stream, job->kernel, &config, &job->args, sizeof job->args);
}

static kiln_status by_driver(void *user, kiln_stream *stream) {
    const copy_job *job = user;
    return kiln_copy(stream, job->args.to, job->args.from, job->args.vectors * VECTOR, KILN_COPY_ON_DEVICE);
}

/* Whether the kernel copies what it should, and nothing behind it. */
static kiln_status compare(copy_job *job, kiln_stream *stream, bool *out_same) {
    static uint8_t sent[COMPARED + VECTOR], found[COMPARED + VECTOR];
    uint64_t all = job->args.vectors;
    for (size_t i = 0; i < sizeof sent; i++)
        sent[i] = (uint8_t)(i * 7 + i / 251);
    kiln_status status = kiln_copy(stream, (void *)(uintptr_t)job->args.from, sent, sizeof sent, KILN_COPY_TO_DEVICE);
    if (status == KILN_OK) status = kiln_fill(stream, job->args.to, 0xa5, sizeof sent);
    job->args.vectors = COMPARED / VECTOR;
    if (status == KILN_OK) status = by_kernel(job, stream);
    if (status == KILN_OK) status = kiln_copy(stream, found, job->args.to, sizeof found, KILN_COPY_TO_HOST);
    if (status == KILN_OK) status = kiln_stream_sync(stream);
    job->args.vectors = all;
    memset(sent + COMPARED, 0xa5, VECTOR);
    *out_same = memcmp(sent, found, sizeof sent) == 0;
    return status;
}

static kiln_status measure_both(copy_job *job, kiln_stream *stream, json_writer *json) {
    const double bytes = 2.0 * VECTOR * (double)job->args.vectors;
    measurement time;
    kiln_status status = measure(stream, by_driver, job, MEASURED_NANOSECONDS, &time);
    if (status != KILN_OK) return status;
    json_number(json, "driver_bytes_per_second", 1e9 * bytes / time.median);
    status = measure(stream, by_kernel, job, MEASURED_NANOSECONDS, &time);
    if (status == KILN_OK) json_number(json, "kernel_bytes_per_second", 1e9 * bytes / time.median);
    return status;
}

static kiln_status prepare(kiln_stream *stream, copy_job *job, size_t size) {
    static kernel_bundle bundle;
    void *from = NULL;
    kernel_bundle_make(&bundle, (kiln_kernel_info){.name = "copy", .arguments_size = sizeof(copy_args)},
                       (kiln_image){.target = "sm_75",
                                    .data = text,
                                    .size = sizeof text - 1,
                                    .kind = KILN_IMAGE_PTX,
                                    .format_version = 63,
                                    .driver_version = 10000});
    kiln_status status = kernel_bundle_load(&bundle, stream->device, &job->kernel);
    if (status == KILN_OK) status = kiln_memory_alloc(stream->device, size, &from);
    if (status == KILN_OK) status = kiln_memory_alloc(stream->device, size, &job->args.to);
    job->args.from = from;
    job->args.vectors = size / VECTOR;
    return status == KILN_OK ? kiln_fill(stream, from, 1, size) : status;
}

static int run(kiln_stream *stream, size_t size) {
    copy_job job = {0};
    json_writer json = {.file = stdout};
    kiln_device_info info;
    counting unused;
    bool same = false;
    kiln_status status = kiln_device_get_info(stream->device, &info);
    if (status == KILN_OK) status = prepare(stream, &job, size);
    if (status == KILN_OK) status = compare(&job, stream, &same);
    if (same) {
        json_object(&json, NULL);
        json_integer(&json, "bytes", (int64_t)size);
        if (!counting_find(&info, &unused)) status = measure_both(&job, stream, &json);
        json_close(&json);
    }
    kiln_memory_free(stream->device, (void *)(uintptr_t)job.args.from);
    kiln_memory_free(stream->device, job.args.to);
    if (status != KILN_OK) return cli_fail(status, "gpu_copy");
    return same ? CLI_OK : cli_error(CLI_NO, "gpu_copy: the kernel copies something else");
}

int main(int argc, char **argv) {
    int64_t mib;
    kiln_device *device;
    kiln_stream stream;
    if (argc != 3 || !cli_number(argv[2], 1 << 20, &mib) || mib < 2)
        return cli_error(CLI_USAGE, "usage: gpu_copy DEVICE MIB, of 2 or more");
    int code = device_open("gpu_copy", argv[1], &device);
    if (code != CLI_OK) return code;
    kiln_status status = kiln_stream_open(device, KILN_STREAM_TIMING, &stream);
    code = status == KILN_OK ? run(&stream, (size_t)mib * MIB) : cli_fail(status, "gpu_copy");
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return code;
}
