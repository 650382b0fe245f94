/* How many threads: affinity, and the cgroup quotas of made-up machines. */
#include "loader/cpu/cpu_threads.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* ---- A machine's /proc and /sys in a folder ---------------------------------------------------------------------- */

typedef struct fake_machine {
    char root[256];
} fake_machine;

static int make_machine(void **state) {
    fake_machine *machine = calloc(1, sizeof *machine);
    assert_non_null(machine);
    const char *scratch = getenv("KILN_SCRATCH");
    snprintf(machine->root, sizeof machine->root, "%s/machine-XXXXXX", scratch ? scratch : "/tmp");
    assert_non_null(mkdtemp(machine->root));
    *state = machine;
    return 0;
}

static int remove_machine(void **state) {
    fake_machine *machine = *state;
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", machine->root);
    int status = system(command);
    free(machine);
    return status;
}

static void add_file(const fake_machine *machine, const char *path, const char *text) {
    char full[1024];
    snprintf(full, sizeof full, "%s%s", machine->root, path);
    for (char *slash = full + strlen(machine->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* ---- Quota ------------------------------------------------------------------------------------------------------- */

static const char mountinfo_v2[] = "22 1 0:21 / /proc rw,relatime - proc proc rw\n"
                                   "29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw\n";
static const char mountinfo_v1[] =
    "31 23 0:28 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "33 31 0:30 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "34 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

static void test_no_proc_means_no_quota(void **state) {
    fake_machine *machine = *state;
    assert_int_equal(kiln__cpu_quota(machine->root), UINT32_MAX);
    add_file(machine, "/proc/self/cgroup", "0::/app\n");
    assert_int_equal(kiln__cpu_quota(machine->root), UINT32_MAX);
    add_file(machine, "/proc/self/mountinfo", mountinfo_v2);
    assert_int_equal(kiln__cpu_quota(machine->root), UINT32_MAX);
}

static void test_version_2(void **state) {
    static const struct {
        const char *text;
        uint32_t quota;
    } cases[] = {
        {"200000 100000\n", 2},      {"150000 100000\n", 2},     {"1000 100000\n", 1},     {"max 100000\n", UINT32_MAX},
        {"-5 100000\n", UINT32_MAX}, {"200000 0\n", UINT32_MAX}, {"200000\n", UINT32_MAX}, {"", UINT32_MAX},
    };
    fake_machine *machine = *state;
    add_file(machine, "/proc/self/cgroup", "0::/app/web\n");
    add_file(machine, "/proc/self/mountinfo", mountinfo_v2);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        add_file(machine, "/sys/fs/cgroup/app/web/cpu.max", cases[i].text);
        assert_int_equal(kiln__cpu_quota(machine->root), cases[i].quota);
    }
}

static void test_version_2_least_of_the_ancestors(void **state) {
    fake_machine *machine = *state;
    add_file(machine, "/proc/self/cgroup", "0::/app/web\n");
    add_file(machine, "/proc/self/mountinfo", mountinfo_v2);
    add_file(machine, "/sys/fs/cgroup/app/web/cpu.max", "max 100000\n");
    add_file(machine, "/sys/fs/cgroup/app/cpu.max", "300000 100000\n");
    assert_int_equal(kiln__cpu_quota(machine->root), 3);
    add_file(machine, "/sys/fs/cgroup/cpu.max", "100000 50000\n");
    assert_int_equal(kiln__cpu_quota(machine->root), 2);
}

static void test_version_1(void **state) {
    fake_machine *machine = *state;
    add_file(machine, "/proc/self/cgroup", "5:cpuset:/pods\n4:cpu,cpuacct:/pods/a\n0::/\n");
    add_file(machine, "/proc/self/mountinfo", mountinfo_v1);
    add_file(machine, "/sys/fs/cgroup/cpuset/pods/cpu.cfs_quota_us", "50000\n"); /* not the cpu hierarchy */
    add_file(machine, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    add_file(machine, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    assert_int_equal(kiln__cpu_quota(machine->root), UINT32_MAX);
    add_file(machine, "/sys/fs/cgroup/cpu,cpuacct/pods/a/cpu.cfs_quota_us", "250000\n");
    assert_int_equal(kiln__cpu_quota(machine->root), UINT32_MAX); /* no period */
    add_file(machine, "/sys/fs/cgroup/cpu,cpuacct/pods/a/cpu.cfs_period_us", "100000\n");
    assert_int_equal(kiln__cpu_quota(machine->root), 3);
}

static void test_container_sees_a_subtree(void **state) {
    fake_machine *machine = *state;
    add_file(machine, "/proc/self/cgroup", "0::/docker/1234/app\n");
    add_file(machine, "/proc/self/mountinfo", "29 23 0:26 /docker/1234 /cg rw - cgroup2 cgroup rw\n");
    add_file(machine, "/cg/cpu.max", "400000 100000\n");
    assert_int_equal(kiln__cpu_quota(machine->root), 4);
    add_file(machine, "/cg/app/cpu.max", "200000 100000\n");
    assert_int_equal(kiln__cpu_quota(machine->root), 2);
    add_file(machine, "/proc/self/cgroup", "0::/docker/12345\n"); /* the name only begins alike */
    assert_int_equal(kiln__cpu_quota(machine->root), 4);
}

/* ---- Affinity ---------------------------------------------------------------------------------------------------- */

static void test_mask_is_the_threads_own(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    kiln__cpu_mask mask;
    assert_int_equal(kiln__cpu_mask_read(&mask), CPU_COUNT(&all));
    assert_memory_equal(&mask, &all, sizeof all);
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(kiln__cpu_mask_read(&mask), 1);
    assert_memory_equal(&mask, &one, sizeof one);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void test_one_cpu_is_avoided_at_a_time(void **state) {
    (void)state;
    kiln__cpu_mask before, during, after;
    uint32_t count = kiln__cpu_mask_read(&before);
    int avoided = -1;
    for (int i = 0; i < 100; i++) {
        int cpu = sched_getcpu();
        kiln__cpu_avoid(cpu, &avoided);
        assert_int_equal(avoided, count > 1 ? cpu : -1);
        assert_true(count == 1 || sched_getcpu() != cpu);
        assert_int_equal(kiln__cpu_mask_read(&during), count > 1 ? count - 1 : 1);
        if (i % 10) continue; /* the next one frees it */
        kiln__cpu_avoid(-1, &avoided);
        assert_int_equal(avoided, -1);
        assert_int_equal(kiln__cpu_mask_read(&after), count);
        assert_memory_equal(&after, &before, sizeof before);
    }
    kiln__cpu_avoid(-1, &avoided);
    kiln__cpu_mask_read(&after);
    assert_memory_equal(&after, &before, sizeof before);
}

int main(void) {
#define MACHINE_TEST(test) cmocka_unit_test_setup_teardown(test, make_machine, remove_machine)
    const struct CMUnitTest tests[] = {
        MACHINE_TEST(test_no_proc_means_no_quota),           MACHINE_TEST(test_version_2),
        MACHINE_TEST(test_version_2_least_of_the_ancestors), MACHINE_TEST(test_version_1),
        MACHINE_TEST(test_container_sees_a_subtree),         cmocka_unit_test(test_mask_is_the_threads_own),
        cmocka_unit_test(test_one_cpu_is_avoided_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
