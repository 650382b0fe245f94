/* Variables of code objects, as a program that calls nothing of kiln finds them in the simulated HSA driver: their
 * symbols, what they hold, who may access them. */
#include "loader/rocm/rocm_abi.h"
#include "tests/assert_ok.h"
#include "tests/sim/core/sim_client.h"
#include "tests/sim/rocm/extra_types.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/common/programs_host.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { DEVICES = 2, BYTES = 4096, BELOW = 2, FOUND = 8 };
enum { INVALID_ARGUMENT = 0x1001, INVALID_CODE_OBJECT = 0x1010, INVALID_SYMBOL_NAME = 0x1013, UNDEFINED = 0x1015 };
enum { VARIABLE = 0, KERNEL = 1, MODULE = 0, PROGRAM = 1, GLOBAL = 0 };

/* Attributes of symbols. */
enum {
    TYPE = 0,
    NAME_LENGTH = 1,
    NAME = 2,
    MODULE_NAME_LENGTH = 3,
    MODULE_NAME = 4,
    LINKAGE = 5,
    ALLOCATION = 6,
    SEGMENT = 7,
    ALIGNMENT = 8,
    SIZE = 9,
    IS_CONST = 10,
    IS_DEFINITION = 17,
    AGENT = 20,
    ADDRESS = 21
};

static const char *const targets[DEVICES] = {"gfx942", "gfx1100"};
static sim_control sim;
static kiln__hsa_agent agents[1 + DEVICES]; /* the host is the first */
static kiln__hsa_pool pools[1 + DEVICES], kernargs;

/* hsa.signal_create is hsa_signal_create. */
static struct {
#define KILN_HSA(field, exported, required, result, parameters) result(*field) parameters;
#include "loader/rocm/symbols.def"
#include "tests/sim/rocm/extra_symbols.def"
#undef KILN_HSA
} hsa;

#define expect_hsa(wanted, call) assert_int_equal((call), (wanted))
#define OK(call)                 expect_hsa(KILN__HSA_STATUS_SUCCESS, call)

static kiln__hsa_status take_agent(kiln__hsa_agent agent, void *data) {
    uint32_t *count = data;
    agents[(*count)++] = agent;
    return KILN__HSA_STATUS_SUCCESS;
}

static kiln__hsa_status take_pool(kiln__hsa_pool pool, void *data) {
    uint32_t segment, flags = 0;
    OK(hsa.pool_get_info(pool, KILN__HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    if (segment != KILN__HSA_AMD_SEGMENT_GLOBAL) return KILN__HSA_STATUS_SUCCESS;
    OK(hsa.pool_get_info(pool, KILN__HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    *(flags & KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT ? &kernargs : (kiln__hsa_pool *)data) = pool;
    return KILN__HSA_STATUS_SUCCESS;
}

static void (*rearm)(void); /* the runtime tells of one fault, and here each is a process's first */
static _Atomic uint32_t faults;

static kiln__hsa_status on_fault(const kiln__hsa_event *event, void *data) {
    (void)event;
    (void)data;
    faults++;
    return KILN__HSA_STATUS_SUCCESS;
}

static int setup(void **state) {
    (void)state;
    uint32_t count = 0;
    OK(hsa.init());
    OK(hsa.iterate_agents(take_agent, &count));
    for (uint32_t i = 0; i < count; i++)
        OK(hsa.agent_iterate_pools(agents[i], take_pool, &pools[i]));
    OK(hsa.register_event_handler(on_fault, NULL));
    return count != 1 + DEVICES;
}

static uint64_t kept; /* what a copy that never runs needs */

static int teardown(void **state) {
    (void)state;
    OK(hsa.shut_down());
    sim.reset();
    return sim.live("*") != kept;
}

/* ---- Code objects ---- */

/* A code object that is loaded, and what launches its kernels. */
typedef struct module {
    kiln__hsa_agent agent;
    kiln__hsa_pool pool;
    char *bytes;
    kiln__hsa_reader reader;
    kiln__hsa_executable executable;
    kiln__hsa_queue *queue;
    kiln__hsa_signal done;
    uint64_t *arguments;
    uint32_t *memory; /* the device's */
} module;

static kiln__hsa_status module_load(module *m, int device, const char *variant) {
    char path[128];
    size_t size;
    snprintf(path, sizeof path, "tests/sim/tests/programs/variables.%s%s.hsaco", targets[device], variant);
    *m = (module){.agent = agents[1 + device], .pool = pools[1 + device], .bytes = programs_read(path, &size)};
    OK(hsa.reader_create(m->bytes, size, &m->reader));
    OK(hsa.executable_create(0, 0, NULL, &m->executable));
    return hsa.executable_load(m->executable, m->agent, m->reader, NULL, NULL);
}

static void module_free(module *m) {
    OK(hsa.executable_destroy(m->executable));
    OK(hsa.reader_destroy(m->reader));
    free(m->bytes);
}

static void module_open(module *m, int device) {
    OK(module_load(m, device, ""));
    OK(hsa.executable_freeze(m->executable, NULL));
    OK(hsa.queue_create(m->agent, 64, 0, NULL, NULL, 0, 0, &m->queue));
    OK(hsa.signal_create(0, 0, NULL, &m->done));
    OK(hsa.pool_allocate(kernargs, BYTES, 0, (void **)&m->arguments));
    OK(hsa.agents_allow_access(1, &m->agent, NULL, m->arguments));
    OK(hsa.pool_allocate(m->pool, BYTES, 0, (void **)&m->memory));
    memset(m->arguments, 0, BYTES);
}

static void module_close(module *m) {
    OK(hsa.queue_destroy(m->queue));
    OK(hsa.signal_destroy(m->done));
    OK(hsa.pool_free(m->arguments));
    OK(hsa.pool_free(m->memory));
    module_free(m);
}

static kiln__hsa_symbol symbol_of(const module *m, const char *name) {
    kiln__hsa_symbol symbol;
    OK(hsa.executable_get_symbol(m->executable, name, &m->agent, &symbol));
    return symbol;
}

/* An attribute of a symbol of 32 bits, or a bool. */
static uint32_t number_of(const module *m, const char *name, uint32_t attribute) {
    uint32_t number = 0;
    OK(hsa.symbol_get_info(symbol_of(m, name), attribute, &number));
    return number;
}

static uint8_t *address_of(const module *m, const char *name) {
    uint64_t address;
    OK(hsa.symbol_get_info(symbol_of(m, name), ADDRESS, &address));
    return (uint8_t *)(uintptr_t)address;
}

/* Between the host and the device. */
static void copy(const module *m, void *to, const void *from, void *host, size_t size) {
    const bool down = host == to;
    void *locked;
    OK(hsa.memory_lock(host, size, NULL, 0, &locked));
    hsa.signal_store_relaxed(m->done, 1);
    OK(hsa.async_copy(down ? locked : to, down ? agents[0] : m->agent, down ? from : locked,
                      down ? m->agent : agents[0], size, 0, NULL, m->done));
    hsa.signal_wait(m->done, BELOW, 1, UINT64_MAX, 0);
    OK(hsa.memory_unlock(host));
}

static uint32_t get(const module *m, const void *at) {
    uint32_t word = 0;
    copy(m, &word, at, &word, sizeof word);
    return word;
}

static void set(const module *m, void *at, uint32_t word, size_t size) {
    copy(m, at, &word, &word, size);
}

static void submit(const module *m, const char *kernel, const void *first, uint64_t second) {
    const uint64_t index = hsa.queue_load_write_index(m->queue);
    kiln__hsa_dispatch_packet packet = {.setup = 1, .grid_size_x = 1, .grid_size_y = 1, .grid_size_z = 1};
    kiln__hsa_dispatch_packet *at = (kiln__hsa_dispatch_packet *)m->queue->base_address + index % m->queue->size;
    const uint32_t header = KILN__HSA_PACKET_TYPE_KERNEL_DISPATCH | 1 << KILN__HSA_PACKET_HEADER_BARRIER |
                            KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                            KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    packet.workgroup_size_x = packet.workgroup_size_y = packet.workgroup_size_z = 1;
    OK(hsa.symbol_get_info(symbol_of(m, kernel), KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT,
                           &packet.kernel_object));
    m->arguments[0] = (uintptr_t)first;
    m->arguments[1] = second;
    packet.kernarg_address = m->arguments;
    packet.completion_signal = m->done;
    hsa.signal_store_relaxed(m->done, 1);
    hsa.queue_store_write_index_release(m->queue, index + 1);
    packet.header = KILN__HSA_PACKET_TYPE_INVALID;
    *at = packet;
    __atomic_store_n((uint32_t *)(void *)at, header | (uint32_t)packet.setup << 16, __ATOMIC_RELEASE);
    hsa.signal_store_relaxed(m->queue->doorbell_signal, (kiln__hsa_signal_value)index);
}

/* Runs a kernel to its end. True if it was a fault. */
static bool faults_when_run(const module *m, const char *kernel, const void *first, uint64_t second) {
    const uint32_t before = faults;
    submit(m, kernel, first, second);
    while (hsa.signal_load_relaxed(m->done) && faults == before)
        ;
    return faults != before;
}

static void run(const module *m, const char *kernel, const void *first, uint64_t second) {
    assert_false(faults_when_run(m, kernel, first, second));
    assert_int_equal(sim.violations(), 0);
}

/* Runs one that faults, which ends its module. */
static void run_into_fault(module *m, const char *kernel, const void *first, uint64_t second, const char *says) {
    assert_true(faults_when_run(m, kernel, first, second));
    if (!strstr(sim.violation(), says)) fail_msg("expected \"%s\", got \"%s\"", says, sim.violation());
    sim.reset();
    rearm();
    module_close(m);
}

/* ---- Tests ---- */

static const char *const symbols[] = {"counter", "table",       "third",  "spare",    "narrow", "narrower",
                                      "primes",  "__hip_cuid_", "use.kd", "store.kd", "load.kd"};
enum { SYMBOLS = sizeof symbols / sizeof *symbols };

typedef struct seen {
    const module *of;
    uint32_t times[SYMBOLS];
} seen;

static kiln__hsa_status take_symbol(kiln__hsa_executable executable, kiln__hsa_agent agent, kiln__hsa_symbol symbol,
                                    void *data) {
    seen *all = data;
    char name[32] = "";
    uint32_t length, type;
    kiln__hsa_agent of;
    OK(hsa.symbol_get_info(symbol, NAME_LENGTH, &length));
    assert_true(length < sizeof name);
    OK(hsa.symbol_get_info(symbol, NAME, name));
    assert_int_equal(strlen(name), length);
    OK(hsa.symbol_get_info(symbol, TYPE, &type));
    OK(hsa.symbol_get_info(symbol, AGENT, &of));
    assert_int_equal(type, strstr(name, ".kd") ? KERNEL : VARIABLE);
    assert_int_equal(of.handle, agent.handle);
    assert_int_equal(executable.handle, all->of->executable.handle);
    assert_int_equal(symbol.handle, symbol_of(all->of, name).handle);
    uint32_t i = 0;
    while (i < SYMBOLS && strcmp(symbols[i], name) != 0)
        i++;
    if (i == SYMBOLS) fail_msg("%s is no symbol", name);
    all->times[i]++;
    return KILN__HSA_STATUS_SUCCESS;
}

/* What has no dynamic symbol of an object is none: functions and static variables. */
static void variables_and_kernels_are_the_symbols(void **state) {
    (void)state;
    for (int device = 0; device < DEVICES; device++) {
        static const char *const none[] = {"hidden", "use", "elsewhere", ""};
        module m;
        module_open(&m, device);
        seen all = {&m, {0}};
        OK(hsa.iterate_agent_symbols(m.executable, m.agent, take_symbol, &all));
        for (uint32_t i = 0; i < SYMBOLS; i++)
            assert_int_equal(all.times[i], 1);
        for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
            kiln__hsa_symbol symbol;
            expect_hsa(INVALID_SYMBOL_NAME, hsa.executable_get_symbol(m.executable, none[i], &m.agent, &symbol));
        }
        expect_hsa(INVALID_SYMBOL_NAME,
                   hsa.executable_get_symbol(m.executable, "table", &agents[1 + !device], &(kiln__hsa_symbol){0}));
        assert_int_equal(sim.violations(), 0);
        module_close(&m);
    }
}

/* As ROCr has it: what is constant and what is not stand the wrong way round, and an alignment is the section's. */
static void symbols_say_what_variables_are(void **state) {
    (void)state;
    static const struct {
        const char *name;
        uint32_t size, alignment, linkage, constant;
    } rows[] = {
        {"counter", 4, 4, PROGRAM, 1}, {"table", 20, 16, PROGRAM, 1},   {"third", 8, 16, PROGRAM, 1},
        {"spare", 4, 16, MODULE, 1},   {"narrower", 1, 16, PROGRAM, 1}, {"primes", 12, 64, PROGRAM, 0},
    };
    for (int device = 0; device < DEVICES; device++) {
        module m;
        module_open(&m, device);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const char *name = rows[i].name;
            assert_int_equal(number_of(&m, name, SIZE), rows[i].size);
            assert_int_equal(number_of(&m, name, ALIGNMENT), rows[i].alignment);
            assert_int_equal(number_of(&m, name, LINKAGE), rows[i].linkage);
            assert_int_equal(number_of(&m, name, IS_CONST), rows[i].constant);
            assert_int_equal(number_of(&m, name, ALLOCATION), PROGRAM);
            assert_int_equal(number_of(&m, name, SEGMENT), GLOBAL);
            assert_int_equal(number_of(&m, name, IS_DEFINITION), 1);
            assert_int_equal(number_of(&m, name, MODULE_NAME_LENGTH), 0);
            assert_int_equal(number_of(&m, name, MODULE_NAME), 0);
            assert_int_equal((uintptr_t)address_of(&m, name) % (rows[i].size < 4 ? rows[i].size : 4), 0);
        }
        assert_int_equal(number_of(&m, "use.kd", LINKAGE), PROGRAM);
        assert_int_equal(number_of(&m, "use.kd", IS_DEFINITION), 1);
        assert_int_equal(sim.violations(), 0);
        uint32_t value;
        expect_hsa(INVALID_ARGUMENT,
                   hsa.symbol_get_info(symbol_of(&m, "table"),
                                       KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &value));
        assert_non_null(strstr(sim.violation(), "attribute 13 of variable table"));
        expect_hsa(INVALID_ARGUMENT, hsa.symbol_get_info(symbol_of(&m, "use.kd"), SIZE, &value));
        sim.reset();
        module_close(&m);
    }
}

static void expect_found(const module *m, const uint32_t *expected) {
    uint32_t found[FOUND];
    copy(m, found, m->memory, found, sizeof found);
    assert_memory_equal(found, expected, sizeof found);
}

/* Two modules of one code object have variables of their own. */
static void kernels_and_the_host_share_variables(void **state) {
    (void)state;
    for (int device = 0; device < DEVICES; device++) {
        module m, other;
        module_open(&m, device);
        module_open(&other, device);
        uint8_t *table = address_of(&m, "table"), *counter = address_of(&m, "counter");
        assert_int_equal(get(&m, counter), 0);
        assert_int_equal(get(&m, table + 4), 20);
        run(&m, "use.kd", m.memory, 1);
        expect_found(&m, (const uint32_t[FOUND]){0, 50, 30, 7, 300, 9, 3, 0});
        run(&m, "use.kd", m.memory, 3);
        expect_found(&m, (const uint32_t[FOUND]){1, 51, 31, 7, 300, 9, 2, 1});
        assert_int_equal(get(&m, counter), 4);
        assert_int_equal(get(&m, table + 8), 34);
        assert_int_equal(get(&m, table + 16), 54);
        set(&m, counter, 1000, 4);
        set(&m, address_of(&m, "narrow"), 77, 2);
        set(&m, address_of(&m, "primes") + 8, 11, 4);
        set(&m, address_of(&m, "third"), (uint32_t)(uintptr_t)(table + 4), 4);
        OK(hsa.memory_fill(address_of(&m, "spare"), 8, 1));
        run(&m, "use.kd", m.memory, 5);
        expect_found(&m, (const uint32_t[FOUND]){1000, 54, 20, 8, 77, 9, 11, 4});
        assert_int_equal(get(&m, counter), 1005);
        run(&other, "use.kd", other.memory, 1);
        expect_found(&other, (const uint32_t[FOUND]){0, 50, 30, 7, 300, 9, 3, 0});
        module_close(&other);
        module_close(&m);
    }
}

static void a_variable_is_reached_from_another_module(void **state) {
    (void)state;
    for (int device = 0; device < DEVICES; device++) {
        module m, other;
        module_open(&m, device);
        module_open(&other, device);
        run(&other, "store.kd", address_of(&m, "table") + 8, 0x900000008);
        assert_int_equal(get(&m, address_of(&m, "table") + 12), 9);
        assert_int_equal(get(&other, address_of(&other, "table") + 12), 40);
        run_into_fault(&other, "store.kd", address_of(&m, "primes"), 1, "store to constant memory");
        module_open(&other, device);
        run_into_fault(&other, "store.kd", address_of(&m, "table") + 16, 1, "access outside of every live allocation");
        module_close(&m);
    }
}

/* An access is of one variable, and copies too. */
static void accesses_beyond_a_variable_are_faults(void **state) {
    (void)state;
    static const struct {
        const char *kernel, *variable;
        int offset;
        const char *says;
    } rows[] = {
        {"store.kd", "table", 16, "access outside of every live allocation: store of 8 bytes"},
        {"store.kd", "counter", 0, "access outside of every live allocation: store of 8 bytes"},
        {"load.kd", "counter", 0, "access outside of every live allocation: load of 8 bytes"},
        {"store.kd", "counter", 64, "access outside of every live allocation: store of 8 bytes"},
        {"load.kd", "table", -16, "access outside of every live allocation: load of 8 bytes"},
        {"store.kd", "primes", 0, "store to constant memory: store of 8 bytes"},
    };
    for (int device = 0; device < DEVICES; device++) {
        module m;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            module_open(&m, device);
            run_into_fault(&m, rows[i].kernel, address_of(&m, rows[i].variable) + rows[i].offset, (uintptr_t)m.memory,
                           rows[i].says);
        }
        module_open(&m, device);
        run(&m, "store.kd", address_of(&m, "table") + 12, 0x700000006);
        run(&m, "load.kd", address_of(&m, "table") + 12, (uintptr_t)m.memory);
        assert_int_equal(get(&m, m.memory + 1), 7);
        module_close(&m);
    }
}

static void copies_beyond_a_variable_are_refused(void **state) {
    (void)state;
    for (int device = 0; device < DEVICES; device++) {
        module m;
        module_open(&m, device);
        uint8_t *table = address_of(&m, "table");
        const kiln__hsa_agent other = agents[1 + !device];
        hsa.signal_store_relaxed(m.done, 1);
        expect_hsa(INVALID_ARGUMENT, hsa.async_copy(m.memory, m.agent, table, m.agent, 24, 0, NULL, m.done));
        assert_non_null(strstr(sim.violation(), "cannot reach 24 bytes"));
        expect_hsa(INVALID_ARGUMENT, hsa.async_copy(table + 16, m.agent, m.memory, m.agent, 8, 0, NULL, m.done));
        assert_non_null(strstr(sim.violation(), "cannot reach 8 bytes"));
        expect_hsa(INVALID_ARGUMENT, hsa.async_copy(table, other, table + 4, other, 4, 0, NULL, m.done));
        assert_int_equal(sim.violations(), 3);
        assert_int_not_equal(hsa.memory_fill(table, 1, 6), KILN__HSA_STATUS_SUCCESS);
        assert_int_equal(sim.violations(), 4);
        sim.reset();
        module_close(&m);
    }
}

/* A variable's address is of what the runtime allocated for its code object. */
static void addresses_tell_the_code_object(void **state) {
    (void)state;
    for (int device = 0; device < DEVICES; device++) {
        module m;
        kiln__hsa_pointer_info info = {.size = sizeof info}, primes = {.size = sizeof primes};
        kiln__hsa_agent *listed;
        uint32_t count;
        module_open(&m, device);
        uint8_t *table = address_of(&m, "table");
        OK(hsa.pointer_info(table + 5, &info, malloc, &count, &listed));
        OK(hsa.pointer_info(address_of(&m, "primes"), &primes, NULL, NULL, NULL));
        assert_int_equal(info.type, KILN__HSA_EXT_POINTER_TYPE_HSA);
        assert_int_equal(info.agent_owner.handle, m.agent.handle);
        assert_true((uint8_t *)info.agent_base_address <= table);
        assert_true(table + 20 <= (uint8_t *)info.agent_base_address + info.size_in_bytes);
        assert_ptr_equal(info.agent_base_address, primes.agent_base_address);
        assert_int_equal(count, 1);
        assert_int_equal(listed[0].handle, m.agent.handle);
        free(listed);
        module_close(&m);
        info = (kiln__hsa_pointer_info){.size = sizeof info};
        OK(hsa.pointer_info(table, &info, NULL, NULL, NULL));
        assert_int_equal(info.type, 0);
        assert_int_equal(sim.violations(), 0);
    }
}

static void what_another_must_provide_is_refused(void **state) {
    (void)state;
    module m;
    expect_hsa(UNDEFINED, module_load(&m, 0, "-elsewhere"));
    assert_non_null(strstr(sim.violation(), "needs elsewhere, which nothing defines"));
    module_free(&m);
    expect_hsa(INVALID_CODE_OBJECT, module_load(&m, 0, "-managed"));
    assert_non_null(strstr(sim.violation(), "variable common.managed: there is no managed memory"));
    module_free(&m);
    sim.reset();
}

/* Where launches are only recorded, the host finds what the file has. */
static void variables_of_what_is_recorded(void **state) {
    (void)state;
    setenv("KILN_SIM_RECORD", "1", 1);
    module m;
    module_open(&m, 0);
    assert_int_equal(get(&m, address_of(&m, "table") + 16), 50);
    assert_int_equal(get(&m, address_of(&m, "counter")), 0);
    set(&m, address_of(&m, "counter"), 6, 4);
    assert_int_equal(get(&m, address_of(&m, "counter")), 6);
    assert_int_equal(sim.violations(), 0);
    module_close(&m);
    setenv("KILN_SIM_RECORD", "0", 1);
}

/* The last test: its copy waits for ever, so that it meets no memory that is gone. */
static void a_variable_outlives_its_copies(void **state) {
    (void)state;
    module m;
    kiln__hsa_signal never;
    module_open(&m, 0);
    OK(hsa.signal_create(1, 0, NULL, &never));
    hsa.signal_store_relaxed(m.done, 1);
    OK(hsa.async_copy(m.memory, m.agent, address_of(&m, "table"), m.agent, 20, 1, &never, m.done));
    OK(hsa.queue_destroy(m.queue));
    OK(hsa.pool_free(m.arguments));
    assert_int_equal(sim.violations(), 0);
    module_free(&m);
    assert_int_equal(sim.violations(), 1);
    assert_non_null(strstr(sim.violation(), "a copy in flight uses variable table"));
    kept = sim.live("signal") + sim.live("device memory");
    assert_int_equal(kept, 3);
}

/* Before the device is lost: the same by kiln's own call. */
static void kiln_finds_variables(void **state) {
    (void)state;
    static const kiln_kernel_info kernels[] = {{.name = "use", .arguments_size = 12}};
    static const char *const names[] = {"use"};
    size_t size, found_size;
    char *bytes = programs_read("tests/sim/tests/programs/variables.gfx942.hsaco", &size);
    const kiln_image image = {.target = "gfx942",
                              .data = bytes,
                              .size = size,
                              .kind = KILN_IMAGE_HSACO,
                              .format_version = 6,
                              .kernel_size = sizeof *kernels,
                              .kernels = kernels};
    const kiln_part part = {.name = "all",
                            .images = &image,
                            .kernel_names = names,
                            .image_count = 1,
                            .image_size = sizeof image,
                            .kernel_count = 1};
    const kiln_bundle bundle = {
        .version = KILN_BUNDLE_VERSION, .part_size = sizeof part, .name = "variables", .parts = &part, .part_count = 1};
    kiln_device *device;
    const kiln_module *found;
    kiln_stream stream;
    void *address;
    uint32_t table[5];
    assert_ok(kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_ROCM}, &device));
    assert_ok(kiln_stream_open(device, 0, &stream));
    assert_ok(kiln_module_get(device, &bundle, "all", &found));
    assert_ok(kiln_module_find_variable(found, "table", &address, &found_size));
    assert_int_equal(found_size, sizeof table);
    assert_ok(kiln_copy(&stream, table, address, sizeof table, KILN_COPY_TO_HOST));
    assert_ok(kiln_stream_sync(&stream));
    assert_int_equal(table[4], 50);
    assert_int_equal(kiln_module_find_variable(found, "use.kd", &address, &found_size), KILN_ERROR_NOT_FOUND);
    assert_non_null(strstr(kiln_last_error(), "use.kd: is no variable"));
    assert_int_equal(kiln_module_find_variable(found, "none", &address, &found_size), KILN_ERROR_NOT_FOUND);
    assert_non_null(strstr(kiln_last_error(), "none: hsa_executable_get_symbol_by_name"));
    assert_null(address);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    free(bytes);
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_RECORD", "0", 1);
    sim_client_start(argv, "gfx942,gfx1100");
    if (!amdgcn_harness_ready()) return 0;
    void *library = sim_client_open("libhsa-runtime64.so.1", &sim);
    *(void **)&rearm = dlsym(library, "kiln_sim_rocm_rearm");
#define KILN_HSA(field, exported, required, result, parameters) *(void **)&hsa.field = dlsym(library, #exported);
#include "loader/rocm/symbols.def"
#include "tests/sim/rocm/extra_symbols.def"
#undef KILN_HSA
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_and_kernels_are_the_symbols),
        cmocka_unit_test(symbols_say_what_variables_are),
        cmocka_unit_test(kernels_and_the_host_share_variables),
        cmocka_unit_test(kiln_finds_variables),
        cmocka_unit_test(a_variable_is_reached_from_another_module),
        cmocka_unit_test(accesses_beyond_a_variable_are_faults),
        cmocka_unit_test(copies_beyond_a_variable_are_refused),
        cmocka_unit_test(addresses_tell_the_code_object),
        cmocka_unit_test(what_another_must_provide_is_refused),
        cmocka_unit_test(variables_of_what_is_recorded),
        cmocka_unit_test(a_variable_outlives_its_copies),
    };
    return cmocka_run_group_tests_name("rocm_variables", tests, setup, teardown);
}
