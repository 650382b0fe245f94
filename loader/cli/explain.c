/* kiln explain: which image a device would get, and why not the others; and what a call would launch there. */
#include "loader/cli/bundles.h"
#include "loader/cli/device.h"
#include "loader/cli/explain_call.h"
#include "loader/cli/json.h"
#include <getopt.h>
#include <string.h>

enum { TARGET, DRIVER, DEVICE, ALL, JSON };

static const cli_option options[] = {
    [TARGET] = {"target", "TARGET", "a device that need not be here: sm_90a, gfx942:xnack-, x86-64-v3"},
    [DRIVER] = {"driver", "VERSION", "its CUDA driver version, like 12.4; default: the newest known"},
    [DEVICE] = {"device", "DEVICE",
                "a device of this machine: cpu, cuda:N, rocm:N, hip:N, a UUID or a PCI address; default: the best"},
    [ALL] = {"all", NULL, "every operator, which is also the default"},
    [JSON] = {"json", NULL, "write JSON"},
};

static int run(int argc, char **argv);

const cli_command cli_explain = {
    .name = "explain",
    .operands = "[OP | FUNCTION [NAME=VALUE | NAME ...]]",
    .summary = "show which image a device would get, or which kernel a call would take, and why",
    .details =
        "With --target no device and no driver is needed. The exit code is 1 if an operator has no image there.\n"
        "Of the image that is picked, the kernels of matrix units are listed: the tile of the result that a block\n"
        "does and the depth that it has in shared memory, and their relative rates, by which a call chooses.\n"
        "Of a function, like `gemm_bf16 m=1 n=8192 k=8192 bias`, nothing is called: the operator is asked for its\n"
        "plan. Most sizes that are not given are typical; an optional tensor is given by its name. All tensors are\n"
        "aligned. Times are predicted, relative to the shortest. A --target's multiprocessors and shared memory are\n"
        "those of one card.\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

typedef struct explain_request {
    const char *target, *driver, *device;
    bool all, as_json;
} explain_request;

/* Reads "12.4" as 12040; gives false if it is not a version. */
static bool parse_driver(const char *text, int32_t *out_version) {
    unsigned major, minor;
    int length = 0;
    *out_version = 0;
    if (strspn(text, "0123456789.") != strlen(text)) return false;
    if (sscanf(text, "%3u.%2u%n", &major, &minor, &length) != 2 || text[length]) return false;
    *out_version = (int32_t)(major * 1000 + minor * 10);
    return major > 0;
}

static int parse_target(const explain_request *request, kiln_target *out_target) {
    int32_t driver = 0;
    if (request->driver && !parse_driver(request->driver, &driver))
        return cli_error(CLI_USAGE, "explain: --driver %s: must be a CUDA version like 12.4, from 1.0 to 999.99",
                         request->driver);
    kiln_status status = kiln_target_parse(request->target, driver, out_target);
    if (status == KILN_OK && driver && out_target->backend != KILN_BACKEND_CUDA)
        return cli_error(CLI_USAGE, "explain: --driver %s: only an sm_ target has a CUDA driver", request->driver);
    if (status == KILN_OK) return CLI_OK;
    cli_fail(status, "explain: --target %s", request->target);
    return CLI_USAGE;
}

/* The device that is asked for; with --target its target alone. */
static int find_device(const explain_request *request, kiln_device_info *out_info) {
    *out_info = (kiln_device_info){0};
    if (request->target) return parse_target(request, &out_info->target);
    kiln_device *device;
    int code = device_open("explain", request->device, &device);
    if (code != CLI_OK) return code;
    kiln_status status = kiln_device_get_info(device, out_info);
    kiln_device_close(device);
    return status == KILN_OK ? CLI_OK : cli_fail(status, "explain");
}

/* The judgement on all images of one part. */
typedef struct part_verdict {
    const kiln_target *target;
    const kiln_bundle *bundle;
    const kiln_part *part;
    const kiln_candidate *candidates;
    uint32_t fitting;
} part_verdict;

enum { SENTENCE_SIZE = 512 };

/* The kernels that say how they divide the work: a call takes one of them by its sizes, or one of those that say
 * nothing. */
static void print_tuned(const kiln_part *part, const kiln_image *image) {
    for (uint32_t i = 0; i < part->kernel_count; i++) {
        const kiln_kernel_info kernel = kiln_image_kernel(part, image, i);
        if (kernel.absent || !kernel.tile[0]) continue;
        fputs("      ", stdout);
        cli_put(stdout, part->kernel_names[i]);
        printf(": tile %u x %u x %u", kernel.tile[0], kernel.tile[1], kernel.tile[2]);
        if (kernel.stages) printf(", %u stages", kernel.stages);
        if (kernel.stage_bytes) printf(", %u bytes a stage", kernel.stage_bytes);
        if (kernel.cluster) printf(", clusters of %u", kernel.cluster);
        if (kernel.boxes[0][0]) printf(", tensor maps");
        printf(", %u threads, rate %u\n", kernel.max_threads, kernel.rate);
    }
}

static void print_verdict(const part_verdict *verdict) {
    cli_put(stdout, verdict->bundle->name);
    putchar(' ');
    cli_put(stdout, verdict->part->name);
    printf("%s\n", verdict->fitting ? "" : ": no image");
    for (uint32_t i = 0; i < verdict->part->image_count; i++) {
        const kiln_candidate *candidate = &verdict->candidates[i];
        kiln_image image = kiln_part_image(verdict->part, candidate->image);
        char sentence[SENTENCE_SIZE] = "";
        if (candidate->reasons)
            kiln_reason_text(&image, verdict->target, candidate->reasons, sentence, sizeof sentence);
        else
            snprintf(sentence, sizeof sentence, "%s %s: %s", image.target, kiln_image_kind_name(image.kind),
                     i == 0 ? "picked" : "fits, is tried if those above are refused");
        fputs(candidate->reasons ? "  - " : i == 0 ? "  > " : "  + ", stdout);
        cli_put(stdout, sentence);
        putchar('\n');
        if (!candidate->reasons && i == 0) print_tuned(verdict->part, &image);
    }
}

static void write_verdict(json_writer *json, const part_verdict *verdict) {
    json_object(json, NULL);
    json_string(json, "operator", verdict->bundle->name);
    json_string(json, "part", verdict->part->name);
    json_array(json, "images");
    for (uint32_t i = 0; i < verdict->part->image_count; i++) {
        const kiln_candidate *candidate = &verdict->candidates[i];
        kiln_image image = kiln_part_image(verdict->part, candidate->image);
        char sentence[SENTENCE_SIZE] = "";
        json_object(json, NULL);
        json_string(json, "target", image.target);
        json_string(json, "kind", kiln_image_kind_name(image.kind));
        json_bool(json, "fits", !candidate->reasons);
        json_bool(json, "picked", !candidate->reasons && i == 0);
        if (candidate->reasons) {
            kiln_reason_text(&image, verdict->target, candidate->reasons, sentence, sizeof sentence);
            json_string(json, "why", sentence);
        }
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

/* Judges one part; *missing counts those without an image. json may be NULL. */
static int explain_part(const kiln_bundle *bundle, const kiln_part *part, const kiln_target *target, json_writer *json,
                        unsigned *missing) {
    kiln_candidate *candidates = cli_allocate(part->image_count, sizeof *candidates);
    part_verdict verdict = {target, bundle, part, candidates, 0};
    kiln_status status = kiln_select(bundle, part, target, candidates, &verdict.fitting);
    if (status == KILN_OK && json) write_verdict(json, &verdict);
    if (status == KILN_OK && !json) print_verdict(&verdict);
    *missing += status == KILN_OK && verdict.fitting == 0;
    free(candidates);
    return status == KILN_OK ? CLI_OK : cli_fail(status, "explain: %s %s", bundle->name, part->name);
}

static int explain_all(const bundle_list *list, const kiln_target *target, json_writer *json, unsigned *missing) {
    for (size_t b = 0; b < list->count; b++) {
        for (uint32_t p = 0; p < list->bundles[b]->part_count; p++) {
            kiln_part part = kiln_bundle_part(list->bundles[b], p);
            int code = explain_part(list->bundles[b], &part, target, json, missing);
            if (code != CLI_OK) return code;
        }
    }
    return CLI_OK;
}

static int explain(const bundle_list *list, const kiln_target *target, bool as_json) {
    char name[TARGET_NAME_SIZE], version[CLI_VERSION_SIZE];
    json_writer json = {.file = stdout};
    unsigned missing = 0;
    target_name(target, name);
    cli_driver(target->driver_version, version);
    if (as_json) {
        json_object(&json, NULL);
        json_string(&json, "target", name);
        json_string(&json, "driver", *version ? version : NULL);
        json_array(&json, "parts");
    } else {
        cli_put(stdout, name);
        printf("%s%s\n", *version ? ", driver " : "", version);
    }
    int code = explain_all(list, target, as_json ? &json : NULL, &missing);
    if (as_json) {
        json_close(&json);
        json_integer(&json, "missing", missing);
        json_close(&json);
    } else if (missing) {
        printf("%u without an image\n", missing);
    }
    return code != CLI_OK ? code : missing ? CLI_NO : CLI_OK;
}

static int check_request(const explain_request *request, bool operand) {
    if (request->target && request->device) return cli_error(CLI_USAGE, "explain: --target or --device, not both");
    if (request->driver && !request->target) return cli_error(CLI_USAGE, "explain: --driver needs --target");
    if (request->all && operand) return cli_error(CLI_USAGE, "explain: an operator or --all, not both");
    return CLI_OK;
}

static int run(int argc, char **argv) {
    explain_request request = {0};
    const char *value;
    for (int option; (option = cli_next_option(&cli_explain, argc, argv, &value)) != CLI_END;) {
        switch (option) {
        case TARGET:
            request.target = value;
            break;
        case DRIVER:
            request.driver = value;
            break;
        case DEVICE:
            request.device = value;
            break;
        case ALL:
            request.all = true;
            break;
        case JSON:
            request.as_json = true;
            break;
        default:
            return cli_stop(&cli_explain, option);
        }
    }
    kiln_device_info info;
    int code = check_request(&request, optind < argc);
    const bool call = optind < argc && (optind + 1 < argc || explain_is_function(argv[optind]));
    if (code == CLI_OK && call) {
        code = find_device(&request, &info);
        if (code == CLI_OK && request.target) code = explain_card(&info.target, &info);
        return code == CLI_OK ? explain_call(&info, argc - optind, argv + optind, request.as_json) : code;
    }
    bundle_list list;
    if (code == CLI_OK) code = bundles_find(argc, argv, &list);
    if (code == CLI_OK) code = find_device(&request, &info);
    return code == CLI_OK ? explain(&list, &info.target, request.as_json) : code;
}
