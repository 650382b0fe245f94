/* The plan of a call: the operator itself is asked, on a stream that plans. */
#include "loader/cli/explain_call.h"
#include "loader/cli/call.h"
#include "loader/cli/device.h"
#include "loader/cli/json.h"
#include <inttypes.h>
#include <kiln/plan.h>
#include <string.h>

enum { STEPS_MOST = 64 };

/* Of a kernel of the image: how it came out. */
typedef struct weighed_kernel {
    const char *name;
    const char *why; /* of one that a rule took or left; NULL: it was weighed */
    kiln_kernel_info info;
    double time; /* of one that was weighed */
    uint32_t splits;
} weighed_kernel;

typedef struct planned_launch {
    const char *name;
    kiln_launch_config config;
} planned_launch;

typedef struct call_plan_record {
    bool calling; /* and not asking for the workspace's size, which weighs too */
    char image[64];
    weighed_kernel kernels[STEPS_MOST];
    size_t kernel_count;
    planned_launch launches[STEPS_MOST];
    size_t launch_count;
} call_plan_record;

static void record_step(void *user, const kiln_plan_step *step) {
    call_plan_record *record = user;
    if (!record->calling) return;
    snprintf(record->image, sizeof record->image, "%s %s", step->image->target,
             kiln_image_kind_name(step->image->kind));
    if (step->kind == KILN_PLAN_LAUNCHED) {
        if (record->launch_count < STEPS_MOST)
            record->launches[record->launch_count++] = (planned_launch){step->kernel, step->config};
        return;
    }
    const weighed_kernel *last = record->kernel_count ? &record->kernels[record->kernel_count - 1] : NULL;
    const bool again = last && last->name == step->kernel && last->splits == step->splits; /* it cannot be divided */
    if (!again && record->kernel_count < STEPS_MOST)
        record->kernels[record->kernel_count++] =
            (weighed_kernel){step->kernel, step->why, *step->info, step->time, step->splits};
}

/* The shortest time of those that were weighed; 0 if none was. */
static double shortest(const call_plan_record *record) {
    double least = 0;
    for (size_t i = 0; i < record->kernel_count; i++) {
        const weighed_kernel *kernel = &record->kernels[i];
        if (!kernel->why && (least == 0 || kernel->time < least)) least = kernel->time;
    }
    return least;
}

static bool is_launched(const call_plan_record *record, const char *kernel) {
    for (size_t i = 0; i < record->launch_count; i++)
        if (record->launches[i].name == kernel) return true;
    return false;
}

/* Of a kernel that is weighed whole and divided, the launched one is the faster. */
static bool is_taken(const call_plan_record *record, const weighed_kernel *kernel) {
    return is_launched(record, kernel->name) && (kernel->why || kernel->time == shortest(record));
}

/* The sizes of the call's tensors, what else was given, and no option's first choice. */
static bool is_shown(const call_field *field) {
    return field->given && (field->description->role != KILN_FIELD_OPTION || field->value);
}

static double real_of(const call_field *field) {
    float real;
    memcpy(&real, &field->value, sizeof real);
    return (double)real;
}

static char *value_of(const call_field *field) {
    switch (field->description->role) {
    case KILN_FIELD_OPTION:
        return call_choice(field);
    case KILN_FIELD_REAL:
        return cli_format("%g", real_of(field));
    default:
        return cli_format("%" PRId64, field->value);
    }
}

static void print_parameters(const operator_call *call) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        if (!is_shown(&call->fields[i])) continue;
        printf(" %s", call->op->fields[i].name);
        if (call_is_tensor(&call->op->fields[i])) continue;
        char *value = value_of(&call->fields[i]);
        printf("=%s", value);
        free(value);
    }
}

static void write_parameters(json_writer *json, const operator_call *call) {
    json_object(json, "parameters");
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const call_field *field = &call->fields[i];
        if (!is_shown(field) || call_is_tensor(field->description)) continue;
        char *value = value_of(field);
        if (field->description->role == KILN_FIELD_OPTION)
            json_string(json, field->description->name, value);
        else if (field->description->role == KILN_FIELD_REAL)
            json_number(json, field->description->name, real_of(field));
        else
            json_integer(json, field->description->name, field->value);
        free(value);
    }
    json_close(json);
    json_array(json, "optional_tensors");
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const call_field *field = &call->fields[i];
        if (is_shown(field) && call_is_tensor(field->description)) json_string(json, NULL, field->description->name);
    }
    json_close(json);
}

static void print_kernel(const call_plan_record *record, const weighed_kernel *kernel) {
    fputs(is_taken(record, kernel) ? "  > " : "  - ", stdout);
    cli_put(stdout, kernel->name);
    const kiln_kernel_info *info = &kernel->info;
    if (info->tile[0]) printf(": tile %u x %u x %u", info->tile[0], info->tile[1], info->tile[2]);
    if (kernel->why) {
        printf("%s %s\n", info->tile[0] ? "," : ":", kernel->why);
        return;
    }
    printf(", predicted time %.2f", kernel->time / shortest(record));
    if (kernel->splits > 1) printf(" with %u blocks a tile", kernel->splits);
    putchar('\n');
}

static void print_launch(const planned_launch *launch) {
    const uint32_t *grid = launch->config.grid, *block = launch->config.block;
    fputs("  launch ", stdout);
    cli_put(stdout, launch->name);
    printf(": grid %u x %u x %u, block %u x %u x %u, %u bytes of dynamic shared memory\n", grid[0], grid[1], grid[2],
           block[0], block[1], block[2], launch->config.dynamic_shared_bytes);
}

static void print_plan(const kiln_device_info *info, const operator_call *call, const call_plan_record *record) {
    char target[TARGET_NAME_SIZE], version[CLI_VERSION_SIZE];
    target_name(&info->target, target);
    cli_driver(info->target.driver_version, version);
    cli_put(stdout, target);
    printf("%s%s, ", *version ? ", driver " : "", version);
    cli_put(stdout, info->name);
    if (info->max_shared_bytes)
        printf(": %d multiprocessors, %d bytes of shared memory for a block", info->multiprocessors,
               info->max_shared_bytes);
    putchar('\n');
    printf("%s", call->function->name);
    print_parameters(call);
    printf(": %s, workspace %zu bytes\n", record->launch_count ? record->image : "nothing to launch",
           call->workspace_size);
    for (size_t i = 0; i < record->kernel_count; i++)
        print_kernel(record, &record->kernels[i]);
    for (size_t i = 0; i < record->launch_count; i++)
        print_launch(&record->launches[i]);
}

static void write_three(json_writer *json, const char *key, const uint32_t values[3]) {
    json_array(json, key);
    for (int i = 0; i < 3; i++)
        json_integer(json, NULL, values[i]);
    json_close(json);
}

static void write_kernel(json_writer *json, const call_plan_record *record, const weighed_kernel *kernel) {
    json_object(json, NULL);
    json_string(json, "kernel", kernel->name);
    json_bool(json, "taken", is_taken(record, kernel));
    if (kernel->info.tile[0]) write_three(json, "tile", kernel->info.tile);
    if (kernel->why) {
        json_string(json, "why", kernel->why);
    } else {
        json_number(json, "relative_time", kernel->time / shortest(record));
        json_integer(json, "splits", kernel->splits);
    }
    json_close(json);
}

static void write_plan(const kiln_device_info *info, const operator_call *call, const call_plan_record *record) {
    char target[TARGET_NAME_SIZE], version[CLI_VERSION_SIZE];
    json_writer json = {.file = stdout};
    cli_driver(info->target.driver_version, version);
    json_object(&json, NULL);
    json_string(&json, "target", target_name(&info->target, target));
    json_string(&json, "driver", *version ? version : NULL);
    json_string(&json, "device", info->name);
    json_integer(&json, "multiprocessors", info->multiprocessors);
    json_integer(&json, "shared_bytes", info->max_shared_bytes);
    json_string(&json, "function", call->function->name);
    write_parameters(&json, call);
    json_string(&json, "image", record->launch_count ? record->image : NULL);
    json_integer(&json, "workspace_bytes", (int64_t)call->workspace_size);
    json_array(&json, "kernels");
    for (size_t i = 0; i < record->kernel_count; i++)
        write_kernel(&json, record, &record->kernels[i]);
    json_close(&json);
    json_array(&json, "launches");
    for (size_t i = 0; i < record->launch_count; i++) {
        const kiln_launch_config *config = &record->launches[i].config;
        json_object(&json, NULL);
        json_string(&json, "kernel", record->launches[i].name);
        write_three(&json, "grid", config->grid);
        write_three(&json, "block", config->block);
        json_integer(&json, "dynamic_shared_bytes", config->dynamic_shared_bytes);
        json_close(&json);
    }
    json_close(&json);
    json_close(&json);
}

bool explain_is_function(const char *operand) {
    const kiln_operator *const *operators;
    size_t count;
    if (kiln_all_operators(&operators, &count) != KILN_OK) return false;
    for (size_t i = 0; i < count; i++)
        for (uint32_t f = 0; f < operators[i]->function_count; f++)
            if (strcmp(operators[i]->functions[f].name, operand) == 0) return true;
    return false;
}

int explain_card(const kiln_target *target, kiln_device_info *out_info) {
    static const struct {
        const char *target, *name;
        int32_t multiprocessors, shared_bytes;
    } cards[] = {
#define CLI_CARD(target, name, multiprocessors, shared_bytes) {target, name, multiprocessors, shared_bytes},
#include "loader/cli/cards.def"
#undef CLI_CARD
    };
    char name[TARGET_NAME_SIZE];
    target_name(target, name);
    const size_t length = strcspn(name, ":");
    *out_info = (kiln_device_info){.backend = target->backend, .target = *target};
    if (target->backend == KILN_BACKEND_CPU) {
        out_info->multiprocessors = 1;
        snprintf(out_info->name, sizeof out_info->name, "a CPU with one thread");
        return CLI_OK;
    }
    for (size_t i = 0; i < CLI_COUNT(cards); i++) {
        if (strlen(cards[i].target) != length || memcmp(cards[i].target, name, length) != 0) continue;
        out_info->multiprocessors = cards[i].multiprocessors;
        out_info->max_shared_bytes = cards[i].shared_bytes;
        snprintf(out_info->name, sizeof out_info->name, "%s", cards[i].name);
        return CLI_OK;
    }
    return cli_error(CLI_USAGE,
                     "explain: --target %s: no card of it is known, so that a call cannot be planned: --device, where "
                     "there is one",
                     name);
}

/* Neither a value nor a tensor: a line that lists the tensors, as call_set lists the sizes and options. */
static int refuse_parameter(const operator_call *call, const char *parameter) {
    char *names = NULL;
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const kiln_field *field = &call->op->fields[i];
        if (!call_is_tensor(field) || !field->optional) continue;
        char *longer = cli_format("%s%s", names ? names : ", or an optional tensor: ", field->name);
        free(names);
        names = cli_format("%s, ", longer);
        free(longer);
    }
    if (names) names[strlen(names) - 2] = '\0';
    int code = cli_error(CLI_USAGE, "explain: %s: must be NAME=VALUE, a size or an option of %s%s", parameter,
                         call->function->name, names ? names : "");
    free(names);
    return code;
}

static int set_parameters(operator_call *call, int count, char **assignments) {
    for (int i = 0; i < count; i++) {
        char *name = cli_format("%s", assignments[i]), *equals = strchr(name, '=');
        if (equals) *equals = '\0';
        const call_field *field = call_find(call, name);
        const bool is_value = equals && equals > name && !(field && call_is_tensor(field->description));
        int code = CLI_OK;
        if (is_value)
            code = call_set(call, "", name, equals + 1);
        else if (equals || !call_give(call, name))
            code = refuse_parameter(call, assignments[i]);
        free(name);
        if (code != CLI_OK) return code;
    }
    return CLI_OK;
}

int explain_call(const kiln_device_info *info, int count, char **operands, bool as_json) {
    call_plan_record record = {0};
    kiln_stream stream;
    operator_call call;
    kiln_status status = kiln_plan_open(info, record_step, &record, &stream);
    if (status != KILN_OK) return cli_fail(status, "explain");
    int code = call_begin(&call, "explain", operands[0]);
    if (code == CLI_OK) code = set_parameters(&call, count - 1, operands + 1);
    if (code == CLI_OK) code = call_plan(&call, &stream);
    record.calling = true;
    if (code == CLI_OK) {
        status = call_launch(&call, &stream);
        if (status != KILN_OK) code = cli_fail(status, "%s", call.function->name);
    }
    if (code == CLI_OK && as_json) write_plan(info, &call, &record);
    if (code == CLI_OK && !as_json) print_plan(info, &call, &record);
    call_free(&call, NULL);
    kiln_stream_close(&stream);
    return code;
}
