/* kiln info: the devices of this machine, and what was tried to find them. */
#include "loader/cli/bundles.h"
#include "loader/cli/device.h"
#include "loader/cli/json.h"
#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { CHECK, HIP, JSON };

static const cli_option options[] = {
    [CHECK] = {"check", NULL, "load every image on every device found"},
    [HIP] = {"hip", NULL, "load HIP, and list its devices too"},
    [JSON] = {"json", NULL, "write JSON"},
};

static int run(int argc, char **argv);

const cli_command cli_info = {
    .name = "info",
    .operands = "",
    .summary = "list devices and drivers, and why others were left out",
    .details =
        "The exit code is 1 if --check found an operator that no image serves, 3 if a device cannot be opened.\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

/* What could not be opened, or a backend without a device, and why. */
typedef struct left_out {
    char name[DEVICE_NAME_SIZE];
    char *why;
} left_out;

typedef struct machine_view {
    kiln_device *best; /* what a program that does not ask gets; NULL if it gets none */
    kiln_device **devices;
    kiln_device_info *infos;
    size_t count;
    left_out *left;
    size_t left_count;
    bool failed; /* a device that is there could not be opened */
} machine_view;

static void *grow(void *array, size_t count, size_t size) {
    void *grown = realloc(array, (count + 1) * size);
    if (!grown) exit(cli_error(CLI_SYSTEM, "out of memory: %zu devices", count + 1));
    return grown;
}

static void leave_out(machine_view *machine, const char *name, const char *why) {
    machine->left = grow(machine->left, machine->left_count, sizeof *machine->left);
    left_out *left = &machine->left[machine->left_count++];
    snprintf(left->name, sizeof left->name, "%s", name);
    left->why = cli_format("%s", why);
}

static void open_one(machine_view *machine, kiln_backend_id backend, int32_t ordinal) {
    kiln_device_options wanted = {.backend = backend, .ordinal = ordinal};
    kiln_device *device;
    kiln_device_info info;
    kiln_status status = kiln_device_open(&wanted, &device);
    if (status == KILN_OK) status = kiln_device_get_info(device, &info);
    if (status != KILN_OK) {
        char name[DEVICE_NAME_SIZE];
        snprintf(name, sizeof name, "%s:%d", kiln_backend_name(backend), ordinal);
        leave_out(machine, name, kiln_last_error());
        kiln_device_close(device);
        machine->failed = true;
        return;
    }
    machine->devices = grow(machine->devices, machine->count, sizeof *machine->devices);
    machine->infos = grow(machine->infos, machine->count, sizeof *machine->infos);
    machine->devices[machine->count] = device;
    machine->infos[machine->count++] = info;
}

static void find_of_backend(machine_view *machine, kiln_backend_id backend) {
    int32_t count;
    kiln_status status = kiln_device_count(backend, &count);
    if (status != KILN_OK || count == 0) leave_out(machine, kiln_backend_name(backend), kiln_last_error());
    for (int32_t ordinal = 0; status == KILN_OK && ordinal < count; ordinal++)
        open_one(machine, backend, ordinal);
}

static void find_hip(machine_view *machine) {
    char *why;
    if (device_load_hip(&why)) {
        find_of_backend(machine, KILN_BACKEND_HIP);
        return;
    }
    leave_out(machine, kiln_backend_name(KILN_BACKEND_HIP), why);
    free(why);
}

static void find_devices(machine_view *machine, bool hip) {
    /* First, since a device remembers the story of its first opening. */
    if (kiln_device_open(NULL, &machine->best) != KILN_OK) {
        leave_out(machine, "default device", kiln_last_error());
        machine->failed = true;
    }
    for (kiln_backend_id backend = KILN_BACKEND_CUDA; backend <= KILN_BACKEND_CPU; backend++)
        find_of_backend(machine, backend);
    if (hip) find_hip(machine);
}

static void close_devices(machine_view *machine) {
    for (size_t i = 0; i < machine->count; i++)
        kiln_device_close(machine->devices[i]);
    for (size_t i = 0; i < machine->left_count; i++)
        free(machine->left[i].why);
    free(machine->devices);
    free(machine->infos);
    free(machine->left);
    kiln_device_close(machine->best);
}

enum { ID_SIZE = 64 };

/* ---- What was found ---------------------------------------------------------------------------------------------- */

static void print_devices(const machine_view *machine) {
    static const char *const titles[] = {"device", "target", "units", "memory", "name", "driver"};
    cli_table table = {0};
    cli_titles(&table, titles, CLI_COUNT(titles));
    for (size_t i = 0; i < machine->count; i++) {
        const kiln_device_info *info = &machine->infos[i];
        char name[DEVICE_NAME_SIZE], target[TARGET_NAME_SIZE], bytes[CLI_BYTES_SIZE];
        cli_cell(&table, "%s", device_name(info, name));
        cli_cell(&table, "%s", target_name(&info->target, target));
        cli_cell(&table, "%d", info->multiprocessors);
        cli_cell(&table, "%s", cli_bytes(info->memory_bytes, bytes));
        cli_cell(&table, "%s", info->name);
        cli_cell(&table, "%s", *info->driver ? info->driver : "-");
    }
    cli_table_print(&table);
}

/* By what each GPU can be opened whatever order the environment gives them. */
static void print_ids(const machine_view *machine) {
    static const char *const titles[] = {"device", "PCI address", "NUMA node", "UUID"};
    cli_table table = {0};
    cli_titles(&table, titles, CLI_COUNT(titles));
    size_t gpus = 0;
    for (size_t i = 0; i < machine->count; i++) {
        const kiln_device_info *info = &machine->infos[i];
        char name[DEVICE_NAME_SIZE], uuid[ID_SIZE], pci[ID_SIZE];
        if (info->backend == KILN_BACKEND_CPU) continue;
        gpus++;
        cli_cell(&table, "%s", device_name(info, name));
        cli_cell(&table, "%s", kiln_device_pci_text(info, pci, sizeof pci) ? pci : "-");
        if (info->numa_node >= 0)
            cli_cell(&table, "%d", info->numa_node);
        else
            cli_cell(&table, "-");
        cli_cell(&table, "%s", kiln_device_uuid_text(info, uuid, sizeof uuid) ? uuid : "-");
    }
    if (gpus) putchar('\n');
    if (gpus) cli_table_print(&table);
}

/* What the story of the default device does not tell already. */
static void print_left_out(const machine_view *machine) {
    bool titled = false;
    for (size_t i = 0; i < machine->left_count; i++) {
        if (strstr(kiln_device_selection_log(machine->best), machine->left[i].why)) continue;
        if (!titled) printf("\nnot there:\n");
        titled = true;
        char *line = cli_format("%s: %s", machine->left[i].name, machine->left[i].why);
        cli_put_lines(stdout, 2, line);
        free(line);
    }
}

static void print_machine(const machine_view *machine) {
    char version[CLI_VERSION_SIZE];
    printf("kiln %s\n\n", cli_kiln_version(version));
    print_devices(machine);
    print_ids(machine);
    if (machine->best) printf("\ndefault device:\n");
    cli_put_lines(stdout, 2, kiln_device_selection_log(machine->best));
    print_left_out(machine);
}

static void write_machine(json_writer *json, const machine_view *machine) {
    char version[CLI_VERSION_SIZE];
    json_string(json, "version", cli_kiln_version(version));
    json_array(json, "devices");
    for (size_t i = 0; i < machine->count; i++) {
        const kiln_device_info *info = &machine->infos[i];
        char name[DEVICE_NAME_SIZE], target[TARGET_NAME_SIZE], driver[CLI_VERSION_SIZE];
        char uuid[ID_SIZE], pci[ID_SIZE];
        kiln_device_uuid_text(info, uuid, sizeof uuid);
        kiln_device_pci_text(info, pci, sizeof pci);
        cli_driver(info->target.driver_version, driver);
        json_object(json, NULL);
        json_string(json, "device", device_name(info, name));
        json_bool(json, "default", machine->devices[i] == machine->best);
        json_string(json, "target", target_name(&info->target, target));
        json_string(json, "name", info->name);
        json_string(json, "driver", info->driver);
        json_string(json, "cuda", *driver ? driver : NULL);
        json_string(json, "uuid", *uuid ? uuid : NULL);
        json_string(json, "pci", *pci ? pci : NULL);
        if (info->numa_node >= 0) json_integer(json, "numa_node", info->numa_node);
        json_integer(json, "memory_bytes", (int64_t)info->memory_bytes);
        json_integer(json, "multiprocessors", info->multiprocessors);
        json_integer(json, "wave_size", info->wave_size);
        json_integer(json, "max_threads", info->max_threads);
        json_integer(json, "max_shared_bytes", info->max_shared_bytes);
        json_close(json);
    }
    json_close(json);
    json_array(json, "not_there");
    for (size_t i = 0; i < machine->left_count; i++) {
        json_object(json, NULL);
        json_string(json, "device", machine->left[i].name);
        json_string(json, "why", machine->left[i].why);
        json_close(json);
    }
    json_close(json);
    json_string(json, "why", kiln_device_selection_log(machine->best));
}

/* ---- --check ----------------------------------------------------------------------------------------------------- */

typedef struct check_tally {
    json_writer *json; /* NULL: text */
    unsigned parts;
    unsigned failures;
} check_tally;

static void report(void *user, const kiln_preload_result *result) {
    check_tally *tally = user;
    kiln_device_info info = {0};
    char name[DEVICE_NAME_SIZE];
    kiln_device_get_info(result->device, &info);
    device_name(&info, name);
    tally->parts++;
    tally->failures += result->status != KILN_OK;
    if (tally->json) {
        json_object(tally->json, NULL);
        json_string(tally->json, "device", name);
        json_string(tally->json, "operator", result->bundle->name);
        json_string(tally->json, "part", result->part);
        json_string(tally->json, "status", kiln_status_text(result->status));
        json_string(tally->json, "target", result->target);
        json_string(tally->json, "text", result->text);
        json_close(tally->json);
        return;
    }
    char *line = cli_format("%s %s %s: %s", name, result->bundle->name, result->part,
                            result->status == KILN_OK ? result->text : kiln_status_text(result->status));
    cli_put_lines(stdout, 2, line);
    if (result->status != KILN_OK && result->text) cli_put_lines(stdout, 6, result->text);
    free(line);
}

/* Gives how many parts failed. */
static unsigned check(const machine_view *machine, const bundle_list *bundles, json_writer *json) {
    check_tally tally = {.json = json};
    if (json)
        json_array(json, "check");
    else
        printf("\ncheck:\n");
    kiln_preload(machine->devices, machine->count, bundles->bundles, bundles->count, report, &tally);
    if (json)
        json_close(json);
    else
        printf("  %u parts checked, %u failed\n", tally.parts, tally.failures);
    return tally.failures;
}

static int show(const machine_view *machine, bool as_json, const bundle_list *bundles) {
    json_writer json = {.file = stdout};
    unsigned failures = 0;
    if (as_json) {
        json_object(&json, NULL);
        write_machine(&json, machine);
    } else {
        print_machine(machine);
    }
    if (bundles) failures = check(machine, bundles, as_json ? &json : NULL);
    if (as_json) json_close(&json);
    return machine->failed ? CLI_SYSTEM : failures ? CLI_NO : CLI_OK;
}

static int run(int argc, char **argv) {
    bool as_json = false, checks = false, hip = false;
    const char *value;
    for (int option; (option = cli_next_option(&cli_info, argc, argv, &value)) != CLI_END;) {
        if (option == JSON)
            as_json = true;
        else if (option == CHECK)
            checks = true;
        else if (option == HIP)
            hip = true;
        else
            return cli_stop(&cli_info, option);
    }
    if (optind < argc) return cli_error(CLI_USAGE, "info: no operand is taken: %s", argv[optind]);
    bundle_list bundles;
    machine_view machine = {0};
    int code = bundles_find(argc, argv, &bundles);
    if (code != CLI_OK) return code;
    find_devices(&machine, hip);
    code = show(&machine, as_json, checks ? &bundles : NULL);
    close_devices(&machine);
    return code;
}
