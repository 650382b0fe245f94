/* The simulated HSA driver as a program of its own meets it, which calls nothing of kiln: what it is told of agents,
 * pools, addresses and symbols, who reaches what, and signals that count more than one thing. */
#include "loader/rocm/rocm_abi.h"
#include "tests/sim/core/sim_client.h"
#include "tests/sim/rocm/extra_types.h"
#include "tests/sim/tests/amdgcn/amdgcn_harness.h"
#include "tests/sim/tests/common/programs_host.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { BYTES = 4096, AGENTS = 3, CPU = 0, FIRST = 1, SECOND = 2, BELOW = 2 };
enum { INVALID_ARGUMENT = 0x1001, INVALID_AGENT = 0x1004, NOT_INITIALIZED = 0x100b };

static sim_control sim;
static kiln__hsa_agent agents[AGENTS];
static kiln__hsa_pool pools[AGENTS], kernargs;

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

/* The first pool of an agent; of the host's, also the one of kernargs. */
static kiln__hsa_status take_pool(kiln__hsa_pool pool, void *data) {
    kiln__hsa_pool *first = data;
    uint32_t segment, flags = 0;
    OK(hsa.pool_get_info(pool, KILN__HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    if (segment != KILN__HSA_AMD_SEGMENT_GLOBAL) return KILN__HSA_STATUS_SUCCESS;
    OK(hsa.pool_get_info(pool, KILN__HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    if (flags & KILN__HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT)
        kernargs = pool;
    else
        *first = pool;
    return KILN__HSA_STATUS_SUCCESS;
}

static int setup(void **state) {
    (void)state;
    uint32_t count = 0;
    OK(hsa.init());
    OK(hsa.iterate_agents(take_agent, &count));
    for (uint32_t i = 0; i < count; i++)
        OK(hsa.agent_iterate_pools(agents[i], take_pool, &pools[i]));
    return count != AGENTS;
}

static int teardown(void **state) {
    (void)state;
    OK(hsa.shut_down());
    sim.reset();
    return sim.live("*") != 0;
}

/* Each hsa_init wants its hsa_shut_down, and after the last every call is an error. */
static void starts_are_counted(void **state) {
    (void)state;
    uint16_t version;
    const char *text;
    OK(hsa.init());
    OK(hsa.shut_down());
    OK(hsa.system_get_info(KILN__HSA_SYSTEM_INFO_VERSION_MAJOR, &version));
    assert_int_equal(sim.violations(), 0);
    OK(hsa.shut_down());
    expect_hsa(NOT_INITIALIZED, hsa.system_get_info(KILN__HSA_SYSTEM_INFO_VERSION_MAJOR, &version));
    expect_hsa(NOT_INITIALIZED, hsa.shut_down());
    OK(hsa.status_string(NOT_INITIALIZED, &text));
    assert_string_equal(text, "HSA_STATUS_ERROR_NOT_INITIALIZED");
    expect_hsa(INVALID_ARGUMENT, hsa.status_string(77, &text));
    OK(hsa.init());
    sim.reset();
}

static void agents_and_pools_say_what_they_are(void **state) {
    (void)state;
    enum { VENDOR = 1, FEATURE = 2, NODE = 16, ISA = 19, LOCATION = 0xa006 };
    enum { GRANULE = 6, ALIGNMENT = 7, BY_ALL = 15, LARGEST = 16, ACCESS = 0, HOPS = 1 };
    char name[64];
    uint32_t first, second;
    size_t size;
    bool by_all = true;
    kiln__hsa_isa isa;
    OK(hsa.agent_get_info(agents[CPU], KILN__HSA_AGENT_INFO_NAME, name));
    OK(hsa.agent_get_info(agents[FIRST], VENDOR, name));
    assert_string_equal(name, "AMD");
    for (uint32_t attribute = NODE; attribute <= LOCATION; attribute += LOCATION - NODE) {
        OK(hsa.agent_get_info(agents[FIRST], attribute, &first));
        OK(hsa.agent_get_info(agents[SECOND], attribute, &second));
        assert_int_not_equal(first, second);
    }
    OK(hsa.agent_get_info(agents[CPU], FEATURE, &first));
    OK(hsa.agent_get_info(agents[FIRST], FEATURE, &second));
    assert_int_equal(first, 0);
    assert_int_equal(second, 1);
    OK(hsa.agent_get_info(agents[SECOND], ISA, &isa));
    OK(hsa.isa_get_info_alt(isa, KILN__HSA_ISA_INFO_NAME_LENGTH, &first));
    for (int i = 0; i < AGENTS; i++) {
        OK(hsa.pool_get_info(pools[i], GRANULE, &size));
        assert_int_equal(size % 4096, 0);
        OK(hsa.pool_get_info(pools[i], ALIGNMENT, &size));
        OK(hsa.pool_get_info(pools[i], LARGEST, &size));
        OK(hsa.pool_get_info(pools[i], BY_ALL, &by_all));
        assert_false(by_all);
        OK(hsa.agent_pool_get_info(agents[FIRST], pools[i], ACCESS, &first));
        OK(hsa.agent_pool_get_info(agents[FIRST], pools[i], HOPS, &second));
        assert_int_equal(first, i == FIRST ? 1 : 2);
        assert_int_equal(second, i != FIRST);
    }
    assert_int_equal(sim.violations(), 0);
}

static void expect_agents(void *memory, const kiln__hsa_agent *expected, uint32_t count) {
    kiln__hsa_pointer_info info = {.size = sizeof info};
    kiln__hsa_agent *listed;
    uint32_t found;
    OK(hsa.pointer_info((uint8_t *)memory + 5, &info, malloc, &found, &listed));
    assert_int_equal(info.type, KILN__HSA_EXT_POINTER_TYPE_HSA);
    assert_int_equal(info.agent_owner.handle, agents[FIRST].handle);
    assert_ptr_equal(info.agent_base_address, memory);
    assert_int_equal(found, count);
    assert_memory_equal(listed, expected, count * sizeof *expected);
    free(listed);
}

/* Those that have access are those that were listed last, beside the agent whose memory it is. */
static void access_is_for_those_listed_last(void **state) {
    (void)state;
    kiln__hsa_signal done;
    void *memory, *other;
    const kiln__hsa_agent both[] = {agents[FIRST], agents[SECOND]}, unknown[] = {agents[SECOND], {7}};
    OK(hsa.pool_allocate(pools[FIRST], BYTES, 0, &memory));
    OK(hsa.pool_allocate(pools[SECOND], BYTES, 0, &other));
    OK(hsa.memory_fill(memory, 1, BYTES / 4));
    OK(hsa.signal_create(1, 0, NULL, &done));
    expect_agents(memory, both, 1);
    OK(hsa.agents_allow_access(2, both, NULL, memory));
    expect_agents(memory, both, 2);
    OK(hsa.async_copy(other, agents[SECOND], memory, agents[SECOND], BYTES, 0, NULL, done));
    assert_int_equal(hsa.signal_wait_relaxed(done, BELOW, 1, UINT64_MAX, 0), 0);
    expect_hsa(INVALID_AGENT, hsa.agents_allow_access(2, unknown, NULL, memory));
    expect_agents(memory, both, 2);
    OK(hsa.agents_allow_access(1, both, NULL, memory));
    expect_agents(memory, both, 1);
    hsa.signal_store_relaxed(done, 1);
    expect_hsa(INVALID_ARGUMENT, hsa.async_copy(other, agents[SECOND], memory, agents[SECOND], BYTES, 0, NULL, done));
    assert_non_null(strstr(sim.violation(), "cannot reach"));
    OK(hsa.signal_destroy(done));
    OK(hsa.pool_free(other));
    OK(hsa.pool_free(memory));
    sim.reset();
}

/* The caller's structure may be shorter or longer than this runtime's. */
static void addresses_tell_what_they_are_of(void **state) {
    (void)state;
    enum { LOCKED = 2, SHORT = offsetof(kiln__hsa_pointer_info, user_data) };
    static uint8_t host[BYTES];
    struct {
        kiln__hsa_pointer_info info;
        uint64_t later;
    } info = {.info.size = sizeof info, .later = 99};
    void *locked;
    OK(hsa.memory_lock(host, sizeof host, NULL, 0, &locked));
    OK(hsa.pointer_info(host + 9, &info.info, NULL, NULL, NULL));
    assert_int_equal(info.info.type, LOCKED);
    assert_ptr_equal(info.info.host_base_address, host);
    assert_ptr_equal(info.info.agent_base_address, locked);
    assert_int_equal(info.info.size_in_bytes, BYTES);
    assert_int_equal(info.later, 99);
    info.info = (kiln__hsa_pointer_info){.size = SHORT, .global_flags = 77};
    OK(hsa.pointer_info((uint8_t *)locked + 9, &info.info, NULL, NULL, NULL));
    assert_int_equal(info.info.type, LOCKED);
    assert_int_equal(info.info.global_flags, 77);
    OK(hsa.memory_unlock(host));
    info.info = (kiln__hsa_pointer_info){.size = sizeof info.info};
    OK(hsa.pointer_info(host, &info.info, NULL, NULL, NULL));
    assert_int_equal(info.info.type, 0);
    assert_int_equal(sim.violations(), 0);
}

static void a_signal_counts_several_copies(void **state) {
    (void)state;
    enum { COPIES = 5 };
    kiln__hsa_signal done;
    void *from, *to;
    OK(hsa.pool_allocate(pools[FIRST], BYTES, 0, &from));
    OK(hsa.pool_allocate(pools[FIRST], BYTES, 0, &to));
    OK(hsa.memory_fill(from, 1, BYTES / 4));
    OK(hsa.signal_create(COPIES - 2, 0, NULL, &done));
    hsa.signal_add_relaxed(done, 3);
    hsa.signal_subtract_release(done, 1);
    for (int i = 0; i < COPIES; i++)
        OK(hsa.async_copy(to, agents[FIRST], from, agents[FIRST], BYTES, 0, NULL, done));
    assert_int_equal(hsa.signal_wait(done, BELOW, 1, UINT64_MAX, 0), 0);
    assert_int_equal(hsa.signal_load_relaxed(done), 0);
    assert_int_equal(sim.violations(), 0);
    OK(hsa.signal_destroy(done));
    OK(hsa.pool_free(from));
    OK(hsa.pool_free(to));
}

/* ---- A kernel, found among the symbols, which writes what it is given ---- */

static kiln__hsa_status take_symbol(kiln__hsa_executable executable, kiln__hsa_agent agent, kiln__hsa_symbol symbol,
                                    void *data) {
    (void)executable;
    enum { TYPE = 0, NAME_LENGTH = 1, NAME = 2, AGENT = 20, KERNEL = 1 };
    char name[16] = "";
    uint32_t type, length;
    kiln__hsa_agent of;
    OK(hsa.symbol_get_info(symbol, TYPE, &type));
    if (type != KERNEL) return KILN__HSA_STATUS_SUCCESS;
    OK(hsa.symbol_get_info(symbol, NAME_LENGTH, &length));
    OK(hsa.symbol_get_info(symbol, NAME, name));
    OK(hsa.symbol_get_info(symbol, AGENT, &of));
    assert_int_equal(length, strlen("meet.kd"));
    assert_string_equal(name, "meet.kd");
    assert_int_equal(of.handle, agent.handle);
    return hsa.symbol_get_info(symbol, KILN__HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, data);
}

static void submit(const kiln__hsa_queue *queue, kiln__hsa_dispatch_packet packet) {
    const uint64_t index = hsa.queue_load_write_index(queue);
    kiln__hsa_dispatch_packet *at = (kiln__hsa_dispatch_packet *)queue->base_address + index % queue->size;
    const uint32_t header = KILN__HSA_PACKET_TYPE_KERNEL_DISPATCH | 1 << KILN__HSA_PACKET_HEADER_BARRIER |
                            KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                            KILN__HSA_FENCE_SCOPE_SYSTEM << KILN__HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    hsa.queue_store_write_index_release(queue, index + 1);
    packet.header = KILN__HSA_PACKET_TYPE_INVALID;
    *at = packet;
    __atomic_store_n((uint32_t *)(void *)at, header | (uint32_t)packet.setup << 16, __ATOMIC_RELEASE);
    hsa.signal_store_relaxed(queue->doorbell_signal, (kiln__hsa_signal_value)index);
}

static void a_kernel_of_the_symbols_is_launched(void **state) {
    const char *bytes = ((char **)*state)[0];
    const size_t size = (size_t)(((char **)*state)[1] - bytes);
    enum { LAUNCHES = 3, ROUNDING_DEFAULT = 0, PROFILE_BASE = 0, MULTI = 0 };
    struct meet_args {
        uint32_t *flag, *out;
        uint32_t raises, padding;
    } * args;
    kiln__hsa_reader reader;
    kiln__hsa_executable executable;
    kiln__hsa_queue *queue;
    kiln__hsa_dispatch_packet packet = {.setup = 1, .grid_size_x = 1, .grid_size_y = 1, .grid_size_z = 1};
    uint32_t out = 0;
    void *memory, *locked;
    packet.workgroup_size_x = packet.workgroup_size_y = packet.workgroup_size_z = 1;
    OK(hsa.reader_create(bytes, size, &reader));
    OK(hsa.executable_create(PROFILE_BASE, ROUNDING_DEFAULT, NULL, &executable));
    OK(hsa.executable_load(executable, agents[FIRST], reader, NULL, NULL));
    OK(hsa.executable_freeze(executable, NULL));
    OK(hsa.iterate_agent_symbols(executable, agents[FIRST], take_symbol, &packet.kernel_object));
    assert_true(packet.kernel_object);
    OK(hsa.queue_create(agents[FIRST], 64, MULTI, NULL, NULL, 0, 0, &queue));
    OK(hsa.pool_allocate(pools[FIRST], BYTES, 0, &memory));
    OK(hsa.pool_allocate(kernargs, BYTES, 0, (void **)&args));
    OK(hsa.agents_allow_access(1, &agents[FIRST], NULL, args));
    OK(hsa.signal_create(LAUNCHES, 0, NULL, &packet.completion_signal));
    for (uint32_t i = 0; i < LAUNCHES; i++) {
        args[i * 2] = (struct meet_args){memory, NULL, i + 5, 0};
        packet.kernarg_address = &args[i * 2];
        submit(queue, packet);
    }
    assert_int_equal(hsa.signal_wait(packet.completion_signal, BELOW, 1, UINT64_MAX, 0), 0);
    assert_int_equal(hsa.queue_load_read_index_relaxed(queue), LAUNCHES);
    OK(hsa.memory_lock(&out, sizeof out, NULL, 0, &locked));
    hsa.signal_store_relaxed(packet.completion_signal, 1);
    OK(hsa.async_copy(locked, agents[CPU], memory, agents[FIRST], sizeof out, 0, NULL, packet.completion_signal));
    hsa.signal_wait(packet.completion_signal, BELOW, 1, UINT64_MAX, 0);
    assert_int_equal(out, LAUNCHES - 1 + 5);
    /* A kernel reaches what the host has locked, by the device's address of it. */
    args[0] = (struct meet_args){locked, NULL, 77, 0};
    packet.kernarg_address = args;
    hsa.signal_store_relaxed(packet.completion_signal, 1);
    submit(queue, packet);
    assert_int_equal(hsa.signal_wait(packet.completion_signal, BELOW, 1, UINT64_MAX, 0), 0);
    assert_int_equal(out, 77);
    assert_int_equal(sim.violations(), 0);
    OK(hsa.memory_unlock(&out));
    OK(hsa.queue_destroy(queue));
    OK(hsa.signal_destroy(packet.completion_signal));
    OK(hsa.pool_free(args));
    OK(hsa.pool_free(memory));
    OK(hsa.executable_destroy(executable));
    OK(hsa.reader_destroy(reader));
}

static void rows_are_copied(void **state) {
    (void)state;
    enum { ROWS = 3, LAYERS = 2, PITCH = 16, SLICE = 64, WIDTH = 8, TO_HOST = 2 };
    static uint8_t host[LAYERS * SLICE], expected[LAYERS * SLICE];
    void *memory, *locked;
    kiln__hsa_signal done;
    kiln__hsa_dispatch_time time;
    OK(hsa.profiling_async_copy_enable(true));
    OK(hsa.pool_allocate(pools[FIRST], BYTES, 0, &memory));
    OK(hsa.memory_fill(memory, 0x01010101, BYTES / 4));
    memset(host, 9, sizeof host);
    memset(expected, 9, sizeof expected);
    for (int layer = 0; layer < LAYERS; layer++)
        for (int row = 0; row < ROWS; row++)
            memset(expected + layer * SLICE + (row + 1) * PITCH + 4, 1, WIDTH);
    OK(hsa.memory_lock(host, sizeof host, NULL, 0, &locked));
    OK(hsa.signal_create(1, 0, NULL, &done));
    const sim_pitched to = {locked, PITCH, SLICE}, from = {memory, 4 * PITCH, 8 * SLICE};
    OK(hsa.async_copy_rect(&to, &(kiln__hsa_dim3){4, 1, 0}, &from, &(kiln__hsa_dim3){0, 2, 1},
                           &(kiln__hsa_dim3){WIDTH, ROWS, LAYERS}, agents[FIRST], TO_HOST, 0, NULL, done));
    assert_int_equal(hsa.signal_wait(done, BELOW, 1, UINT64_MAX, 0), 0);
    assert_memory_equal(host, expected, sizeof host);
    OK(hsa.get_async_copy_time(done, &time));
    assert_true(time.end >= time.start);
    assert_int_equal(sim.violations(), 0);
    OK(hsa.profiling_async_copy_enable(false));
    OK(hsa.memory_unlock(host));
    OK(hsa.signal_destroy(done));
    OK(hsa.pool_free(memory));
}

/* Called twice: what it counts down from asks for another call. */
static bool count_down(kiln__hsa_signal_value value, void *argument) {
    kiln__hsa_signal *signals = argument;
    const kiln__hsa_signal_value left = hsa.signal_load(signals[1]);
    assert_int_equal(value, 0);
    if (left > 1) hsa.signal_store_silent(signals[0], 0);
    hsa.signal_subtract_relaxed(signals[1], 1);
    return left > 1;
}

static void a_signal_calls_its_handler(void **state) {
    (void)state;
    kiln__hsa_signal signals[2];
    OK(hsa.signal_create_with(1, 0, NULL, 0, &signals[0]));
    OK(hsa.signal_create(2, 0, NULL, &signals[1]));
    OK(hsa.signal_async_handler(signals[0], BELOW, 1, count_down, signals));
    hsa.signal_store_release(signals[0], 0);
    assert_int_equal(hsa.signal_wait(signals[1], BELOW, 1, UINT64_MAX, 0), 0);
    assert_int_equal(sim.violations(), 0);
    OK(hsa.signal_destroy(signals[0]));
    OK(hsa.signal_destroy(signals[1]));
}

static void what_no_gpu_has_is_refused(void **state) {
    (void)state;
    uint64_t image;
    uint8_t handle[64];
    bool supported = true;
    OK(hsa.agent_extension_supported(1, agents[FIRST], 1, 0, &supported));
    assert_false(supported);
    assert_int_not_equal(hsa.image_create(agents[FIRST], NULL, NULL, 0, &image), KILN__HSA_STATUS_SUCCESS);
    assert_int_not_equal(hsa.ipc_memory_create(handle, sizeof handle, handle), KILN__HSA_STATUS_SUCCESS);
    assert_int_not_equal(hsa.svm_attributes_set(handle, sizeof handle, NULL, 0), KILN__HSA_STATUS_SUCCESS);
    assert_int_equal(sim.violations(), 0);
}

int main(int argc, char **argv) {
    (void)argc;
    size_t size;
    setenv("KILN_SIM_RECORD", "0", 1);
    sim_client_start(argv, "gfx942,gfx942");
    if (!amdgcn_harness_ready()) return 0;
    void *library = sim_client_open("libhsa-runtime64.so.1", &sim);
#define KILN_HSA(field, exported, required, result, parameters) *(void **)&hsa.field = dlsym(library, #exported);
#include "loader/rocm/symbols.def"
#include "tests/sim/rocm/extra_symbols.def"
#undef KILN_HSA
    char *bytes = programs_read("tests/sim/tests/programs/meet.gfx942.hsaco", &size);
    char *code[] = {bytes, bytes + size};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts_are_counted),
        cmocka_unit_test(agents_and_pools_say_what_they_are),
        cmocka_unit_test(access_is_for_those_listed_last),
        cmocka_unit_test(addresses_tell_what_they_are_of),
        cmocka_unit_test(a_signal_counts_several_copies),
        cmocka_unit_test(rows_are_copied),
        cmocka_unit_test(a_signal_calls_its_handler),
        cmocka_unit_test(what_no_gpu_has_is_refused),
        cmocka_unit_test_prestate(a_kernel_of_the_symbols_is_launched, code),
    };
    int failed = cmocka_run_group_tests_name("rocm_application", tests, setup, teardown);
    free(bytes);
    return failed;
}
