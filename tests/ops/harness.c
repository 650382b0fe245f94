#include "tests/ops/harness.h"
#include "loader/target.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The poison is NaN in every precision: what is read beyond a row spoils a result even where it is multiplied by 0. */
enum { POISON = 0xff, DEVICES_MAX = 64, RESULTS_MAX = 65536, TEXT_SIZE = 256 };

typedef struct device_spec {
    char name[TEXT_SIZE];
    kiln_device_options options;
    int group; /* results of one group are bitwise equal */
} device_spec;

static device_spec devices[DEVICES_MAX];
static int device_count;
static uint64_t seed, random_state;
static char description[TEXT_SIZE];
static const char *device_name = "no device";
static kiln_device *device; /* open; left so by a test that fails */

/* The hashes of one group's results, in the order of the calls, from the group's first device. */
static uint64_t results[RESULTS_MAX];
static size_t result_count, results_known;

/* ---- Failure ----------------------------------------------------------------------------------------------------- */

void harness_describe(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(description, sizeof description, format, arguments);
    va_end(arguments);
}

void harness_fail(const char *format, ...) {
    char text[4 * TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_msg("%s on %s, KILN_TEST_SEED=%llu: %s", description, device_name, (unsigned long long)seed, text);
    abort(); /* fail_msg does not return */
}

void harness_ok(kiln_status status) {
    if (status != KILN_OK) harness_fail("%s: %s", kiln_status_text(status), kiln_last_error());
}

/* ---- Random numbers: splitmix64 ---------------------------------------------------------------------------------- */

uint64_t random_bits(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t random_integer(int64_t low, int64_t high) {
    return low + (int64_t)(random_bits() % (uint64_t)(high - low + 1));
}

double random_number(double low, double high) {
    return low + (high - low) * ((double)(random_bits() >> 11) * 0x1p-53);
}

void harness_dot(const double *a, const double *b, int64_t count, double *out_sum, double *out_magnitude) {
    enum { PARTS = 8 };
    double sums[PARTS] = {0}, magnitudes[PARTS] = {0};
    int64_t whole = count / PARTS * PARTS;
    for (int64_t i = 0; i < whole; i += PARTS)
        for (int j = 0; j < PARTS; j++) {
            double product = a[i + j] * b[i + j];
            sums[j] += product;
            magnitudes[j] += fabs(product);
        }
    for (int64_t i = whole; i < count; i++) {
        sums[i % PARTS] += a[i] * b[i];
        magnitudes[i % PARTS] += fabs(a[i] * b[i]);
    }
    *out_sum = *out_magnitude = 0;
    for (int j = 0; j < PARTS; j++) {
        *out_sum += sums[j];
        *out_magnitude += magnitudes[j];
    }
}

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

static void add_device(kiln_device_options options, int group, const char *format, ...) {
    assert_true(device_count < DEVICES_MAX);
    device_spec *d = &devices[device_count++];
    *d = (device_spec){.options = options, .group = group};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(d->name, sizeof d->name, format, arguments);
    va_end(arguments);
}

/* Every level of this machine, each with several numbers of threads. */
static void add_cpu_devices(void) {
    static const int32_t threads[] = {1, 2, 3, 7};
    for (size_t i = 0; i < kiln__cpu_target_count; i++) {
        const char *level = kiln__cpu_targets[i].name;
        kiln_device_options options = {.backend = KILN_BACKEND_CPU, .cpu_level = level};
        kiln_device *probe;
        kiln_status status = kiln_device_open(&options, &probe);
        if (status == KILN_ERROR_UNSUPPORTED || status == KILN_ERROR_NOT_FOUND) continue; /* not of this machine */
        harness_ok(status);
        kiln_device_close(probe);
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            options.threads = threads[t];
            add_device(options, (int)i, "cpu (%s, threads %d)", level, threads[t]);
        }
    }
}

/* Reads "cuda:0 rocm:1 cpu". For "hip:0" the process was started with HIP in LD_PRELOAD. */
static void add_named_devices(const char *names) {
    char text[TEXT_SIZE], *rest = NULL;
    snprintf(text, sizeof text, "%s", names);
    for (char *name = strtok_r(text, " ,", &rest); name; name = strtok_r(NULL, " ,", &rest)) {
        char *colon = strchr(name, ':');
        int32_t ordinal = colon ? (int32_t)strtol(colon + 1, NULL, 10) : 0;
        size_t length = colon ? (size_t)(colon - name) : strlen(name);
        kiln_backend_id backend = KILN_BACKEND_CUDA;
        while (backend <= KILN_BACKEND_HIP && (strlen(kiln_backend_name(backend)) != length ||
                                               strncmp(kiln_backend_name(backend), name, length) != 0)) {
            backend++;
        }
        if (backend > KILN_BACKEND_HIP) harness_fail("KILN_TEST_DEVICES: %s is no device", name);
        add_device((kiln_device_options){.backend = backend, .ordinal = ordinal, .take_faults = 1}, 1000 + device_count,
                   "%s", name);
    }
}

static void print_log(void *user, kiln_log_level level, const char *text) {
    (void)user, (void)level;
    printf("# log: %s\n", text);
}

static void list_devices(void) {
    if (device_count > 0) return;
    if (getenv("KILN_TEST_LOG")) kiln_set_log(print_log, NULL);
    const char *given = getenv("KILN_TEST_SEED");
    const char *names = getenv("KILN_TEST_DEVICES");
    seed = given ? strtoull(given, NULL, 0) : (uint64_t)getpid() * 2654435761u + (uint64_t)time(NULL);
    if (names) {
        add_named_devices(names);
    } else {
        add_cpu_devices();
    }
    assert_true(device_count > 0);
    printf("# KILN_TEST_SEED=%llu on %d devices, %s to %s\n", (unsigned long long)seed, device_count, devices[0].name,
           devices[device_count - 1].name);
}

static void run_on(const device_spec *d, harness_body body) {
    kiln_stream stream;
    device_name = d->name;
    random_state = seed;
    kiln_device_close(device);
    harness_ok(kiln_device_open(&d->options, &device));
    harness_ok(kiln_stream_open(device, 0, &stream));
    /* Where kernels may begin early they do: a simulated device reports those that do not wait. */
    const kiln_status early = kiln_stream_set_programmatic(&stream, 1);
    assert_true(early == KILN_OK || early == KILN_ERROR_UNSUPPORTED);
    body(&stream);
    harness_ok(kiln_stream_sync(&stream));
    kiln_stream_close(&stream);
    kiln_device_close(device);
    device = NULL;
}

void harness_on_each_device(harness_body body) {
    list_devices();
    for (int i = 0; i < device_count; i++) {
        if (i == 0 || devices[i].group != devices[i - 1].group) results_known = 0;
        result_count = 0;
        run_on(&devices[i], body);
        if (results_known == 0) results_known = result_count;
    }
}

void harness_on_one_device(harness_body body) {
    list_devices();
    result_count = results_known = 0;
    run_on(&devices[device_count - 1], body);
}

void harness_each_device_test(void **state) {
    harness_on_each_device(*(const harness_body *)*state);
}

void harness_one_device_test(void **state) {
    harness_on_one_device(*(const harness_body *)*state);
}

bool harness_needs_reference(void) {
    return results_known == 0;
}

/* A hash goes on: FNV-1a of words, with a shift that brings down what the product moves up. */
static uint64_t hash_of(uint64_t hash, const unsigned char *bytes, size_t size) {
    for (size_t i = 0; i < size; i += sizeof hash) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, size - i < sizeof word ? size - i : sizeof word);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Remembers a result of a group's first device; holds that of another one against it. */
static void expect_same_result(const matrix *m) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int64_t row = 0; row < m->rows; row++) {
        const unsigned char *bytes = m->mirror + m->start + (size_t)(row * m->stride) * precision_size(m->p);
        hash = hash_of(hash, bytes, (size_t)m->cols * precision_size(m->p));
    }
    if (result_count == RESULTS_MAX) harness_fail("more than %d results", RESULTS_MAX);
    if (results_known == 0) {
        results[result_count] = hash;
    } else if (results[result_count] != hash) {
        harness_fail("the bits differ from those with one thread");
    }
    result_count++;
}

/* ---- Precisions -------------------------------------------------------------------------------------------------- */

/* (fraction bits, smallest exponent of a normal number, largest exponent) */
static const struct {
    const char *name;
    size_t size;
    int fraction, smallest, largest;
} precisions[] = {
    [F32] = {"f32", 4, 23, -126, 127}, [F16] = {"f16", 2, 10, -14, 15}, [BF16] = {"bf16", 2, 7, -126, 127},
    [I32] = {"i32", 4, 31, 0, 31},     [I64] = {"i64", 8, 63, 0, 63},   [U8] = {"u8", 1, 8, 0, 7},
    [I8] = {"i8", 1, 7, 0, 7}};

/* The one that KILN_TEST_PRECISION names, or all_of_them. */
static precision precision_wanted(precision all_of_them) {
    const char *wanted = getenv("KILN_TEST_PRECISION");
    if (!wanted) return all_of_them;
    for (precision p = F32; p < PRECISION_COUNT; p++)
        if (!strcmp(precisions[p].name, wanted)) return p;
    harness_fail("KILN_TEST_PRECISION: %s is none", wanted);
}

precision precision_first(void) {
    return precision_wanted(F32);
}

precision precision_end(void) {
    return precision_wanted(PRECISION_COUNT - 1) + 1;
}

const char *precision_name(precision p) {
    return precisions[p].name;
}

size_t precision_size(precision p) {
    return precisions[p].size;
}

/* The exponent of a number that is not 0: that of 1 is 0. Of f64's subnormal numbers it is less than any format's. */
static int exponent_of(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (int)(bits >> 52 & 0x7ff) - 1023;
}

/* The exponent of the last bit that p keeps of value. */
static int last_bit(precision p, double value) {
    int exponent = exponent_of(value), smallest = precisions[p].smallest;
    return (exponent < smallest ? smallest : exponent) - precisions[p].fraction;
}

/* value * 2^exponent, as ldexp has it, where 2^exponent is a normal number. */
static double scaled(double value, int exponent) {
    union {
        uint64_t bits;
        double number;
    } power = {.bits = (uint64_t)(exponent + 1023) << 52};
    return value * power.number;
}

/* To nearest even, by the digits that go; a carry moves on into the exponent by itself. */
static inline double rounded_normal(int fraction, double value) {
    union {
        double number;
        uint64_t bits;
    } x = {.number = value};
    const int drop = 52 - fraction;
    x.bits += (1ull << (drop - 1)) - 1 + (x.bits >> drop & 1);
    x.bits = x.bits >> drop << drop;
    return x.number;
}

static inline __attribute__((always_inline)) double round_to(precision p, double value) {
    if (!isfinite(value) || value == 0 || p >= I32) return value;
    if (p == F32) return (float)value;
    if (exponent_of(value) >= precisions[p].smallest && exponent_of(value) < precisions[p].largest)
        return rounded_normal(precisions[p].fraction, value);
    int last = last_bit(p, value);
    double rounded = scaled(nearbyint(scaled(value, -last)), last);
    return fabs(rounded) >= scaled(1, precisions[p].largest + 1) ? copysign(INFINITY, value) : rounded;
}

double precision_round(precision p, double value) {
    return round_to(p, value);
}

double precision_half_ulp(precision p, double value) {
    return isfinite(value) && value != 0 ? scaled(0.5, last_bit(p, value)) : 0;
}

typedef union float_bits {
    float number;
    uint32_t bits;
} float_bits;

/* The bits of a number that p can hold. */
static inline __attribute__((always_inline)) uint64_t encode(precision p, double value) {
    if (p == I64) return (uint64_t)(int64_t)value;
    if (p == U8 || p == I8) return (uint8_t)(int)value;
    if (p == F32) return (float_bits){.number = (float)value}.bits;
    if (p == I32) return (uint32_t)(int32_t)value;
    int fraction = precisions[p].fraction, bias = precisions[p].largest;
    int bits = (int)precisions[p].size * 8;
    uint32_t sign = signbit(value) ? 1u << (bits - 1) : 0;
    uint32_t top = (uint32_t)(2 * bias + 1) << fraction;
    if (isnan(value)) return sign | top | 1u << (fraction - 1);
    if (isinf(value)) return sign | top;
    if (value == 0) return sign;
    int exponent = exponent_of(value);
    if (exponent < precisions[p].smallest) { /* a denormal counts units of the last place */
        return sign | (uint32_t)scaled(fabs(value), fraction - precisions[p].smallest);
    }
    uint32_t mantissa = (uint32_t)scaled(fabs(value), fraction - exponent) - (1u << fraction);
    return sign | (uint32_t)(exponent + bias) << fraction | mantissa;
}

static inline __attribute__((always_inline)) double decode(precision p, uint64_t bits_of) {
    const uint32_t word = (uint32_t)bits_of;
    if (p == I64) return (double)(int64_t)bits_of;
    if (p == U8) return (uint8_t)word;
    if (p == I8) return (int8_t)word;
    if (p == F32) return (float_bits){.bits = word}.number;
    if (p == I32) return (int32_t)word;
    if (p == BF16) return (float_bits){.bits = word << 16}.number;
    int fraction = precisions[p].fraction, bias = precisions[p].largest;
    int bits = (int)precisions[p].size * 8;
    double sign = word >> (bits - 1) ? -1.0 : 1.0;
    int exponent = (int)(word >> fraction) & (2 * bias + 1);
    uint32_t mantissa = word & ((1u << fraction) - 1);
    if (exponent == 2 * bias + 1) return mantissa ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0) return sign * scaled(mantissa, precisions[p].smallest - fraction);
    return sign * scaled(mantissa + (1u << fraction), exponent - bias - fraction);
}

/* ---- Matrices ---------------------------------------------------------------------------------------------------- */

bool harness_on_cpu(const kiln_stream *stream) {
    kiln_device_info info;
    harness_ok(kiln_device_get_info(stream->device, &info));
    return info.backend == KILN_BACKEND_CPU;
}

/* The part of a bundle and its image that the stream's device has. */
static void find_image(const kiln_stream *stream, const kiln_bundle *bundle, precision p, kiln_part *out_part,
                       kiln_image *out_image) {
    const kiln_module *module;
    harness_ok(kiln_bundle_find_part(bundle, precision_name(p), out_part));
    harness_ok(kiln_module_get(stream->device, bundle, precision_name(p), &module));
    harness_ok(kiln_module_get_image(module, out_image));
}

bool harness_has_tuned(const kiln_stream *stream, const kiln_bundle *bundle, precision p) {
    kiln_part part;
    kiln_image image;
    find_image(stream, bundle, p, &part, &image);
    for (uint32_t i = 0; i < part.kernel_count; i++) {
        const kiln_kernel_info kernel = kiln_image_kernel(&part, &image, i);
        if (kernel.stage_bytes && !kernel.absent) return true;
    }
    return false;
}

bool harness_find_kernel(const kiln_stream *stream, const kiln_bundle *bundle, precision p, const char *name,
                         kiln_kernel_info *out_info) {
    kiln_part part;
    kiln_image image;
    find_image(stream, bundle, p, &part, &image);
    for (uint32_t i = 0; i < part.kernel_count; i++) {
        *out_info = kiln_image_kernel(&part, &image, i);
        if (strcmp(part.kernel_names[i], name) == 0 && !out_info->absent) return true;
    }
    return false;
}

int harness_rounds(const kiln_stream *stream, int many) {
    return harness_on_cpu(stream) ? many : (many + 3) / 4;
}

static unsigned char *element(const matrix *m, int64_t row, int64_t col) {
    return m->mirror + m->start + (size_t)(row * m->stride + col) * precision_size(m->p);
}

/* The memory of a matrix: on the CPU a mapping with a page at each end that cannot be touched. */
static void allocate(matrix *m) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!harness_on_cpu(m->stream)) {
        void *memory;
        harness_ok(kiln_memory_alloc(m->stream->device, m->size, &memory));
        m->memory = memory;
        return;
    }
    m->mapping = mmap(NULL, m->size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m->mapping == MAP_FAILED) harness_fail("no memory for %zu bytes", m->size);
    m->memory = (unsigned char *)m->mapping + page;
    if (mprotect(m->memory, m->size, PROT_READ | PROT_WRITE) != 0) harness_fail("mprotect failed");
}

static void send(matrix *m) {
    harness_ok(kiln_copy(m->stream, m->memory, m->mirror, m->size, KILN_COPY_TO_DEVICE));
    harness_ok(kiln_stream_sync(m->stream));
}

int64_t random_place(void) {
    static const int64_t places[] = {0, 1, 2, 3, 5, 8, 13, AT_END};
    return places[random_integer(0, sizeof places / sizeof *places - 1)];
}

matrix matrix_create(kiln_stream *stream, precision p, int64_t rows, int64_t cols, int64_t stride, int64_t place) {
    matrix m = {.p = p, .rows = rows, .cols = cols, .stride = stride ? stride : cols, .stream = stream};
    size_t page = (size_t)sysconf(_SC_PAGESIZE), unit = precision_size(p);
    size_t extent = rows > 0 && cols > 0 ? (size_t)((rows - 1) * m.stride + cols) * unit : 0;
    m.start = place == AT_END ? 0 : (size_t)place * unit;
    m.size = (m.start + extent + page) / page * page;
    if (place == AT_END) m.start = m.size - extent;
    m.mirror = malloc(m.size);
    m.values = malloc(sizeof(double) * (size_t)(rows * cols > 0 ? rows * cols : 1));
    if (!m.mirror || !m.values) harness_fail("no memory for a matrix of %lld x %lld", (long long)rows, (long long)cols);
    allocate(&m);
    m.data = m.memory + m.start;
    memset(m.mirror, POISON, m.size);
    send(&m);
    return m;
}

void matrix_destroy(matrix *m) {
    if (m->mapping) {
        munmap(m->mapping, m->size + 2 * (size_t)sysconf(_SC_PAGESIZE));
    } else {
        kiln_memory_free(m->stream->device, m->memory);
    }
    free(m->mirror);
    free(m->values);
}

/* p is m's; where it is a constant, the compiler makes loops for it. */
static inline __attribute__((always_inline)) void set_elements(const matrix *m, const double *values, precision p) {
    for (int64_t row = 0; row < m->rows; row++) {
        unsigned char *to = element(m, row, 0);
        for (int64_t i = row * m->cols; i < (row + 1) * m->cols; i++, to += precisions[p].size) {
            const double rounded = round_to(p, values[i]);
            const uint64_t word = encode(p, rounded);
            m->values[i] = rounded;
            memcpy(to, &word, precisions[p].size); /* little-endian */
        }
    }
}

void matrix_set(matrix *m, const double *values) {
    if (m->p == F32)
        set_elements(m, values, F32);
    else if (m->p == F16)
        set_elements(m, values, F16);
    else if (m->p == BF16)
        set_elements(m, values, BF16);
    else
        set_elements(m, values, m->p);
    send(m);
}

void matrix_fill(matrix *m, double (*value)(void)) {
    for (int64_t i = 0; i < m->rows * m->cols; i++) {
        m->values[i] = value();
    }
    matrix_set(m, m->values);
}

void matrix_poison(matrix *m) {
    memset(m->mirror, POISON, m->size);
    send(m);
}

/* Reads the memory into found, a new block. */
static unsigned char *fetch(matrix *m) {
    unsigned char *found = malloc(m->size);
    if (!found) harness_fail("no memory");
    harness_ok(kiln_copy(m->stream, found, m->memory, m->size, KILN_COPY_TO_HOST));
    harness_ok(kiln_stream_sync(m->stream));
    return found;
}

/* As set_elements, from a copy of the memory; kept gets the elements' bytes. */
static inline __attribute__((always_inline)) void get_elements(const matrix *m, unsigned char *kept, precision p) {
    for (int64_t row = 0; row < m->rows; row++) {
        const unsigned char *from = element(m, row, 0);
        memcpy(kept + (from - m->mirror), from, (size_t)m->cols * precisions[p].size);
        for (int64_t i = row * m->cols; i < (row + 1) * m->cols; i++, from += precisions[p].size) {
            uint64_t word = 0;
            memcpy(&word, from, precisions[p].size);
            m->values[i] = decode(p, word);
        }
    }
}

void matrix_get(matrix *m) {
    unsigned char *found = fetch(m);
    unsigned char *old = m->mirror;
    m->mirror = found;
    if (m->p == F32)
        get_elements(m, old, F32);
    else if (m->p == F16)
        get_elements(m, old, F16);
    else if (m->p == BF16)
        get_elements(m, old, BF16);
    else
        get_elements(m, old, m->p);
    bool same = memcmp(old, found, m->size) == 0;
    free(old);
    if (!same) harness_fail("bytes around the output's elements were written");
}

void matrix_expect_unchanged(matrix *m) {
    unsigned char *found = fetch(m);
    bool same = memcmp(m->mirror, found, m->size) == 0;
    free(found);
    if (!same) harness_fail("memory that is not an output, or the output of a refused call, was written");
}

/* Fails with the first element that is not right. */
static void expect_elements(matrix *m, const double *expected, const double *allowed) {
    matrix_get(m);
    for (int64_t i = 0; (!allowed || harness_needs_reference()) && i < m->rows * m->cols; i++) {
        double got = m->values[i], want = expected[i];
        if (allowed && got == want) continue;
        /* what is allowed may lead to where the steps are greater */
        double most = allowed ? allowed[i] + 1.01 * precision_half_ulp(m->p, fabs(want) + allowed[i]) : 0;
        double nearest = allowed ? want : precision_round(m->p, want);
        bool overflow = allowed && isinf(got) && fabs(want) + most >= scaled(1, precisions[m->p].largest + 1);
        bool right =
            isnan(want) ? isnan(got) != 0 : got == nearest || fabs(got - want) <= most || (overflow && got * want > 0);
        if (!right) {
            harness_fail("row %lld, column %lld: got %.9g, expected %.9g, which is off by %.3g; %.3g is allowed",
                         (long long)(i / m->cols), (long long)(i % m->cols), got, nearest, fabs(got - want), most);
        }
    }
    expect_same_result(m);
}

void matrix_expect(matrix *m, const double *expected, const double *allowed) {
    expect_elements(m, expected, allowed);
}

void matrix_expect_exact(matrix *m, const double *expected) {
    expect_elements(m, expected, NULL);
    for (int64_t i = 0; i < m->rows * m->cols; i++) {
        if (expected[i] == 0 && signbit(m->values[i]) != signbit(expected[i])) {
            harness_fail("element %lld: got %g, expected %g", (long long)i, m->values[i], expected[i]);
        }
    }
}

/* ---- Operators --------------------------------------------------------------------------------------------------- */

const kiln_operator_function *operator_function(const kiln_operator *op, precision p) {
    for (uint32_t i = 0; i < op->function_count; i++) {
        if (strcmp(op->functions[i].part, precision_name(p)) == 0) return &op->functions[i];
    }
    harness_fail("%s has no function for %s", op->name, precision_name(p));
}

void expect_refusal(kiln_stream *stream, const kiln_operator_function *function, const void *params, size_t params_size,
                    const char *parameter) {
    kiln_status status = function->call(stream, params, params_size);
    const char *text = kiln_last_error();
    size_t length = strlen(function->name);
    if (status != KILN_ERROR_INVALID_ARGUMENT) {
        harness_fail("a wrong %s was not refused: %s", parameter, kiln_status_text(status));
    }
    if (strncmp(text, function->name, length) != 0 || text[length] != ':' || !strstr(text + length, parameter)) {
        harness_fail("the error text names not both %s and %s: %s", function->name, parameter, text);
    }
}
