/* Writes docs/kernel-report.md: what each kernel takes of each target, from its images, and what a call of it does
 * there, from the simulators' counters. The calls are those of kernels.def.
 *
 * A call's time is predicted from the counts and the card of cards.def that has the target.
 *
 * Arguments name the operators; without any, all. KILN_SIM_DEVICES names the devices; unset, one for each image of a
 * part. With KILN_SIM_RECORD=1 nothing is executed, and what would be counted is a dash. */
#include "loader/cli/call.h"
#include "tests/sim/core/sim_client.h"
#include <kiln/ops.h>

#define DEVICES                                                                                                \
    "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_110,sm_120,gfx90a,gfx942,gfx1030,gfx1100,gfx1201,gfx906,gfx1010," \
    "gfx1032,gfx1102,gfx1200"

enum { DEVICE_ROOM = 32, WARP = 32 };

/* What a card of the target does at most in a second. */
typedef struct card {
    const char *target, *name;
    double bytes, lane_instructions;
} card;

/* The share of a card's bandwidth that copies reach: 2.94 of 3.35 TB/s on an H100 (docs/real-gpu.md). */
#define COPY_SHARE 0.878

static const card cards[] = {
#define SIM_CARD(target, name, processors, lanes, megahertz, gigabytes) \
    {target, name, (gigabytes)*1e9 * COPY_SHARE, (double)(processors) * (lanes) * (megahertz)*1e6},
#include "tests/sim/document/cards.def"
#undef SIM_CARD
};

/* A device under test. */
typedef struct place {
    kiln_device *device;
    kiln_stream stream;
    kiln_device_info info;
    const sim_control *sim;
    uint32_t waves; /* that a multiprocessor has room for */
    const card *card;
} place;

/* A row of kernels.def. */
typedef struct report {
    const char *op, *kernel, *tensor, *settings;
} report;

static const report reports[] = {
#define REPORT_KERNEL(op, kernel, tensor, settings) {#op, #kernel, #tensor, settings},
#include "tests/sim/document/kernels.def"
#undef REPORT_KERNEL
};

enum { REPORTS = sizeof reports / sizeof *reports };

static sim_control cuda, rocm;
static place places[DEVICE_ROOM];
static size_t place_count;

static void ok(kiln_status status) {
    if (status == KILN_OK) return;
    fprintf(stderr, "%s\n", kiln_last_error());
    exit(1);
}

static void done(int code) {
    if (code != CLI_OK) exit(code);
}

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

static uint32_t waves_of(const kiln_device_info *info) {
    static const struct {
        int32_t capability;
        uint32_t warps;
    } processors[] = {
#define SIM_PROCESSOR(capability, count, shared, reserved, warps, blocks) {capability, warps},
#include "tests/sim/cuda/processors.def"
#undef SIM_PROCESSOR
    };
    static const struct {
        const char *prefix;
        uint32_t waves;
    } units[] = {
#define SIM_UNIT(prefix, lanes, simds, waves) {prefix, (simds) * (waves)},
#include "tests/sim/rocm/units.def"
#undef SIM_UNIT
    };
    if (info->backend == KILN_BACKEND_CUDA) {
        for (size_t i = 0; i < CLI_COUNT(processors); i++)
            if (processors[i].capability == info->target.compute_capability) return processors[i].warps;
    } else {
        for (size_t i = 0; i < CLI_COUNT(units); i++)
            if (!strncmp(info->target.processor, units[i].prefix, strlen(units[i].prefix))) return units[i].waves;
    }
    exit(cli_error(CLI_SYSTEM, "%s is on no list", info->name));
}

static const card *card_of(const kiln_device_info *info) {
    char target[64];
    kiln_target_text(&info->target, target, sizeof target);
    target[strcspn(target, ":")] = 0;
    for (size_t i = 0; i < CLI_COUNT(cards); i++)
        if (!strcmp(cards[i].target, target)) return &cards[i];
    exit(cli_error(CLI_SYSTEM, "cards.def has no card of %s", target));
}

static void places_open(kiln_backend_id backend, const char *library, sim_control *sim) {
    sim_client_open(library, sim);
    for (int32_t ordinal = 0; place_count < DEVICE_ROOM; ordinal++) {
        place *opened = &places[place_count];
        kiln_device_options options = {.backend = backend, .ordinal = ordinal};
        if (kiln_device_open(&options, &opened->device) != KILN_OK) return;
        ok(kiln_stream_open(opened->device, 0, &opened->stream));
        ok(kiln_device_get_info(opened->device, &opened->info));
        opened->waves = waves_of(&opened->info);
        opened->card = card_of(&opened->info);
        opened->sim = sim;
        place_count++;
    }
}

static void places_close(void) {
    for (size_t i = 0; i < place_count; i++) {
        kiln_stream_close(&places[i].stream);
        kiln_device_close(places[i].device);
    }
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static call_field *field_of(operator_call *call, const char *name) {
    for (uint32_t i = 0; i < call->op->field_count; i++)
        if (!strcmp(call->op->fields[i].name, name)) return &call->fields[i];
    exit(cli_error(CLI_SYSTEM, "%s has no %s", call->op->name, name));
}

/* The value that the settings give the name: empty for the name alone, NULL if they do not have it. It ends at a blank.
 */
static const char *setting(const char *settings, const char *name) {
    const size_t length = strlen(name);
    for (const char *at = settings; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strncmp(at, name, length) == 0 && strchr("= ", at[length])) return at + length + (at[length] == '=');
    return NULL;
}

static void set_sizes(operator_call *call, const char *settings) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        char text[32];
        const char *name = call->op->fields[i].name, *value = setting(settings, name);
        if (!value || call_is_tensor(&call->op->fields[i]) || call->op->fields[i].role == KILN_FIELD_STRIDE) continue;
        snprintf(text, sizeof text, "%.*s", (int)strcspn(value, " "), value);
        done(call_set(call, "--set ", name, text));
    }
}

/* Those that the settings name, into params that are complete otherwise. */
static void set_strides(operator_call *call, const char *settings) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        const kiln_field *field = &call->op->fields[i];
        const char *value = field->role == KILN_FIELD_STRIDE ? setting(settings, field->name) : NULL;
        const int64_t stride = value ? strtoll(value, NULL, 10) : 0;
        if (value) memcpy((char *)call->params + field->offset, &stride, sizeof stride);
    }
}

/* Takes the tensors back that are not asked for, and gives integers a meaning. */
static void set_tensors(operator_call *call, const char *settings) {
    for (uint32_t i = 0; i < call->op->field_count; i++) {
        call_field *field = &call->fields[i];
        if (!call_is_tensor(field->description)) continue;
        const char *text = setting(settings, field->description->name);
        const int64_t value = text && *text != ' ' && *text ? strtoll(text, NULL, 10) : -1;
        field->given = text || !field->description->optional;
        if (field->array.dtype != NPY_I32 || !field->host) continue;
        for (uint64_t n = 0; n < field->array.data_size / sizeof(int32_t); n++)
            ((int32_t *)field->host)[n] = (int32_t)(value >= 0 ? value : (int64_t)n);
    }
}

static uint64_t elements_of(const call_field *tensor) {
    uint64_t elements = 1;
    for (uint32_t i = 0; i < tensor->array.dimensions; i++)
        elements *= (uint64_t)tensor->array.shape[i];
    return elements;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* A kernel on a device. */
typedef struct row {
    const report *of;
    char kernel[64], image[64];
    bool text, executed; /* registers and spills, or counts, are not known */
    uint32_t registers, spills, shared, blocks, occupancy;
    double read, written, sectors, instructions; /* for each element */
    uint64_t conflicts;
    double memory, issue; /* picoseconds for each element */
} row;

/* What a call did: the last launch of the kernel, and the sums over all its launches. */
typedef struct account {
    sim_launch launch;
    sim_counters sum;
    uint64_t launches;
} account;

/* False where the kernel was not launched. */
static bool count(const sim_control *sim, const char *kernel, account *out) {
    static sim_launch launch;
    *out = (account){.launches = 0};
    for (uint64_t i = 0; sim->launch(i, &launch); i++) {
        if (strcmp(launch.kernel, kernel) != 0) continue;
        out->launch = launch;
        out->launches++;
#define ADD(name) out->sum.name += launch.counters.name;
        SIM_COUNTERS(ADD)
#undef ADD
    }
    return out->launches != 0;
}

/* What the image that was chosen on a device says of a kernel. */
static kiln_kernel_info told_of(const place *at, const kiln_bundle *bundle, const char *part_name, const char *name,
                                const kiln_module **out_module, kiln_image *out_image) {
    ok(kiln_module_get(at->device, bundle, part_name, out_module));
    ok(kiln_module_get_image(*out_module, out_image));
    for (uint32_t p = 0; p < bundle->part_count; p++) {
        const kiln_part *part = &bundle->parts[p];
        for (uint32_t i = 0; i < part->kernel_count && !strcmp(part->name, part_name); i++)
            if (!strcmp(part->kernel_names[i], name)) return kiln_image_kernel(part, out_image, i);
    }
    exit(cli_error(CLI_SYSTEM, "the bundle has no %s", name));
}

static void take_counts(row *out, const account *counted, const place *at, uint64_t elements) {
    const sim_counters *c = &counted->sum;
    const double each = 1.0 / (double)elements;
    out->executed = counted->launch.executed;
    out->read = (double)c->global_read_bytes * each;
    out->written = (double)c->global_written_bytes * each;
    out->sectors = (double)c->global_sectors * each;
    out->instructions = (double)c->instructions * (double)at->info.wave_size * each;
    out->conflicts = c->shared_conflicts;
    out->memory = (out->read + out->written) / at->card->bytes * 1e12;
    const uint64_t issues = c->unit_turns ? c->unit_turns : c->instructions;
    out->issue = (double)issues * (double)at->info.wave_size * each / at->card->lane_instructions * 1e12;
}

/* Whether a row was made: the image that was chosen may not have the kernel, or be one that has a row already, and the
 * call may be for another kernel. */
typedef enum outcome { MADE, NO_ROW, OTHER_KERNEL } outcome;

static outcome make_row(row *out, const row *first, const kiln_operator_function *function, const kiln_bundle *bundle,
                        place *at) {
    static account counted;
    operator_call call;
    const kiln_module *module;
    const kiln_kernel *kernel;
    kiln_image image;
    char name[128];
    snprintf(name, sizeof name, "kiln_%s_%s", out->of->kernel, function->part);
    const kiln_kernel_info told = told_of(at, bundle, function->part, name, &module, &image);
    if (told.absent) return NO_ROW;
    for (; first < out; first++) /* sm_89 has few images of its own, and runs those of sm_86 */
        if (!strcmp(first->image, image.target) && first->text == (image.kind == KILN_IMAGE_PTX)) return NO_ROW;
    ok(kiln_module_find_kernel(module, name, &kernel));
    done(call_begin(&call, "report", function->name));
    set_sizes(&call, out->of->settings);
    done(call_randomise(&call, 0));
    set_tensors(&call, out->of->settings);
    done(call_upload(&call, &at->stream));
    set_strides(&call, out->of->settings);
    at->sim->reset();
    ok(call_launch(&call, &at->stream));
    ok(kiln_stream_sync(&at->stream));
    if (!count(at->sim, name, &counted)) {
        call_free(&call, at->device);
        return OTHER_KERNEL;
    }
    take_counts(out, &counted, at, elements_of(field_of(&call, out->of->tensor)));
    call_free(&call, at->device);

    /* The packets of HSA have all of the shared memory, launches of CUDA the dynamic alone. */
    uint32_t dynamic = counted.launch.shared_bytes;
    if (at->info.backend == KILN_BACKEND_ROCM) dynamic -= told.shared_bytes;
    const uint32_t lanes = (uint32_t)at->info.wave_size, waves = (counted.launch.group[0] + lanes - 1) / lanes;
    ok(kiln_kernel_get_occupancy(kernel, counted.launch.group[0], dynamic, &out->blocks));
    snprintf(out->kernel, sizeof out->kernel, "%s_%s", out->of->kernel, function->part);
    snprintf(out->image, sizeof out->image, "%s", image.target);
    out->text = image.kind == KILN_IMAGE_PTX;
    out->registers = told.registers;
    out->spills = told.spill_bytes;
    out->shared = told.shared_bytes + dynamic;
    out->occupancy = 100 * out->blocks * waves / at->waves;
    return MADE;
}

/* Whether the operator is among those that the program's arguments name, if any. */
static bool is_wanted(const char *op, char **names) {
    if (!*names) return true;
    for (; *names; names++)
        if (!strcmp(*names, op)) return true;
    return false;
}

/* Whether a row of kernels.def has another call of the kernel of the row before. */
static bool is_further(size_t number) {
    return number && number < REPORTS && !strcmp(reports[number].kernel, reports[number - 1].kernel);
}

/* Every kernel in the order of kernels.def, of each part, on each device. The result is the caller's to free. */
static row *make_rows(char **names, size_t *out_count) {
    const kiln_operator *const *operators;
    size_t operator_count;
    ok(kiln_all_operators(&operators, &operator_count));
    row *rows = NULL;
    *out_count = 0;
    for (size_t i = 0; i < REPORTS; i++) {
        if (!is_wanted(reports[i].op, names) || is_further(i)) continue;
        const kiln_operator *op = NULL;
        for (size_t o = 0; o < operator_count; o++)
            if (!strcmp(operators[o]->name, reports[i].op)) op = operators[o];
        if (!op) exit(cli_error(CLI_SYSTEM, "kernels.def: there is no operator %s", reports[i].op));
        rows = realloc(rows, (*out_count + op->function_count * place_count) * sizeof *rows);
        if (!rows) exit(cli_error(CLI_SYSTEM, "no memory"));
        for (uint32_t f = 0; f < op->function_count; f++) {
            const row *first = &rows[*out_count];
            for (size_t p = 0; p < place_count; p++) {
                row *out = &rows[*out_count];
                size_t number = i;
                outcome made;
                do {
                    *out = (row){.of = &reports[number]};
                    made = make_row(out, first, &op->functions[f], op->bundle, &places[p]);
                } while (made == OTHER_KERNEL && is_further(++number));
                if (made == OTHER_KERNEL)
                    exit(cli_error(CLI_SYSTEM, "kernels.def: no call of %s launches it", reports[i].kernel));
                *out_count += made == MADE;
            }
        }
    }
    return rows;
}

/* ---- The page ---------------------------------------------------------------------------------------------------- */

static void print_head(void) {
    printf(
        "# Kernel report\n\n"
        "What each kernel takes of each target, and what a call of it does there. `make kernel-report` writes it,\n"
        "and a test says when it is stale. Simulated is not measured: its times are predicted.\n\n"
        "The first columns are of the images: what the assembler reported of registers (PTX has none yet: a\n"
        "dash), the bytes that spilled registers and a stack take, and the shared memory of a block, static and\n"
        "of the launch that is counted.\n\n"
        "**Blocks** is how many blocks of this launch a multiprocessor or compute unit has room for, as\n"
        "`kiln_kernel_get_occupancy` says, and **occupancy** the part of its warps or waves that they fill. It is\n"
        "the least of what these allow:\n\n"
        "- NVIDIA (CUDA C++ Programming Guide, \"Technical Specifications per Compute Capability\"; the limits\n"
        "  are in `tests/sim/cuda/processors.def`): resident warps; resident blocks; 16384 registers in each of\n"
        "  four partitions, which a warp takes by 256; shared memory, by 128 bytes (sm_75: 256), and from sm_80\n"
        "  on 1 KiB more for each block. The registers of PTX are not known and do not limit it here.\n"
        "- AMD (LLVM, \"User Guide for AMDGPU Backend\"; `loader/rocm/rocm_occupancy.c`,\n"
        "  `tests/sim/rocm/units.def`): waves for each SIMD, which are bound by the vector registers, taken by\n"
        "  granules; 64 KiB of LDS.\n\n"
        "The other columns are counted for one call with the sizes that each section names, on a simulated device\n"
        "(seed 1), and divided by the elements of the tensor that it names: **bytes read** and **written** of\n"
        "global memory, each thread's own, though a cache serves those that many threads read; the 32-byte\n"
        "**sectors** that requests touch; and **instructions**, those of a warp or wave for each of its lanes.\n"
        "**Conflicts** are the cycles of shared memory beyond the first of a request, of the whole call. On AMD\n"
        "none of it depends on the seed; on NVIDIA all but the bytes can, by a few in a thousand: where branches\n"
        "diverge the seed decides when the lanes of a warp meet again.\n\n"
        "**Memory** and **issue** are predicted times, in picoseconds for each element: the bytes at the bandwidth "
        "that\n"
        "copies reach, %.1f %% of the card's, and the instructions at one for each lane of each scheduler and cycle.\n"
        "On gfx9 those of the busiest unit count: in a turn of a SIMD a compute unit issues an instruction to each of\n"
        "its units, from different waves: vector, scalar, memory, LDS and branch (ROCm Compute Profiler, \"Pipeline\n"
        "descriptions\"), and waits to none. There elementary functions, the steps of a division and products of 32\n"
        "bits take four turns (LLVM, SISchedule.td; CLRX, \"GCN ISA Instruction Timings\"). A\n"
        "call that moves and computes much takes the longer of the two: on an H100 that came within 10 %% of the\n"
        "measured time for 21 of 30 functions ([real-gpu.md](real-gpu.md)). The **bound** is `memory` where the issue\n"
        "takes at most 0.6 of the memory's time, `issue` where it is the other way round, else `neither`. Bytes that\n"
        "many threads read count for each of them, so that the memory's time of products and attention is too long.\n"
        "`tests/sim/document/issue-bound` lists the places where operators that should be bound by memory are not.\n\n"
        "| target | card | bytes a second | lane-instructions a second |\n"
        "|---|---|---|---|\n",
        COPY_SHARE * 100);
    for (size_t i = 0; i < CLI_COUNT(cards); i++)
        printf("| %s | %s | %.2f T | %.1f T |\n", cards[i].target, cards[i].name, cards[i].bytes * 1e-12,
               cards[i].lane_instructions * 1e-12);
    printf("\n## All kernels\n\n"
           "The least and the most of all images. A sector that all threads of a request share has more than its 32\n"
           "bytes of **bytes for each sector**, one that they use in part fewer.\n\n"
           "| kernel | registers | spills | occupancy | bytes for each sector | conflicts |\n"
           "|---|---|---|---|---|---|\n");
}

typedef struct range {
    double least, most;
} range;

static void widen(range *r, double value) {
    if (value < r->least) r->least = value;
    if (value > r->most) r->most = value;
}

/* One line for the rows of a kernel: the ranges over its images. */
static void print_summary(const row *rows, size_t count) {
    const range none = {1e30, -1e30};
    range registers = none, occupancy = none, use = none, conflicts = none, spills = none;
    for (const row *r = rows; r < rows + count; r++) {
        if (!r->text) widen(&registers, r->registers);
        if (!r->text) widen(&spills, r->spills);
        widen(&occupancy, r->occupancy);
        widen(&use, (r->read + r->written) / r->sectors);
        widen(&conflicts, (double)r->conflicts);
    }
    printf("| %s | %.0f to %.0f | %.0f | %.0f%% to %.0f%% | %.1f to %.1f | %.0f |\n", rows->kernel, registers.least,
           registers.most, spills.most, occupancy.least, occupancy.most, use.least, use.most, conflicts.most);
}

static const char *bound_of(const row *r) {
    const double tolerance = 0.6;
    if (r->issue <= tolerance * r->memory) return "memory";
    return r->memory <= tolerance * r->issue ? "issue" : "neither";
}

static void print_row(const row *r) {
    printf("| %s | %s |", r->kernel, r->image);
    if (r->text)
        printf(" - | - |");
    else
        printf(" %u | %u |", r->registers, r->spills);
    printf(" %u | %u | %u%% |", r->shared, r->blocks, r->occupancy);
    if (r->executed)
        printf(" %.2f | %.2f | %.3f | %llu | %.1f | %.2f | %.2f | %s |\n", r->read, r->written, r->sectors,
               (unsigned long long)r->conflicts, r->instructions, r->memory, r->issue, bound_of(r));
    else
        printf(" - | - | - | - | - | - | - | - |\n");
}

static void print_section(const report *first) {
    printf("\n## %s\n\n", first->op);
    for (const report *r = first; r < reports + REPORTS && !strcmp(r->op, first->op); r++)
        printf("- `%s`%s: %s; for each element of `%s`\n", r->kernel,
               is_further((size_t)(r - reports)) ? ", where that is for another kernel" : "", r->settings, r->tensor);
    printf("\n| kernel | image | registers | spills | shared | blocks | occupancy | bytes read | written | sectors |"
           " conflicts | instructions | memory | issue | bound |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
}

int main(int argc, char **argv) {
    (void)argc;
    setenv("KILN_SIM_RECORD", "0", 0);
    setenv("KILN_SIM_SEED", "1", 1);
    setenv("KILN_SIM_THREADS", "1", 1); /* else blocks that wait for each other would look more or less often */
    setenv("KILN_SIM_DEVICES", DEVICES, 0);
    sim_client_start(argv, NULL);
    places_open(KILN_BACKEND_CUDA, "libcuda.so.1", &cuda);
    places_open(KILN_BACKEND_ROCM, "libhsa-runtime64.so.1", &rocm);
    size_t count;
    row *rows = make_rows(argv + 1, &count);
    print_head();
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i; end < count && !strcmp(rows[end].kernel, rows[i].kernel);)
            end++;
        print_summary(&rows[i], end - i);
    }
    for (size_t i = 0; i < count; i++) {
        if (!i || strcmp(rows[i].of->op, rows[i - 1].of->op) != 0) print_section(rows[i].of);
        print_row(&rows[i]);
    }
    free(rows);
    places_close();
    return 0;
}
