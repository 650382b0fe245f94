/* kiln verify: sha256 and structure of every embedded image. */
#include "loader/cli/bundles.h"
#include "loader/cli/json.h"
#include <kiln/inspect.h>

enum { JSON };

static const cli_option options[] = {
    [JSON] = {"json", NULL, "write JSON"},
};

static int run(int argc, char **argv);

const cli_command cli_verify = {
    .name = "verify",
    .operands = "[OP]",
    .summary = "check the sha256 and the structure of every embedded image",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

typedef struct verify_tally {
    json_writer *json; /* NULL: text */
    unsigned images;
    unsigned failures;
} verify_tally;

static int verify(void *user, const kiln_bundle *bundle, const kiln_part *part, const kiln_image *image) {
    verify_tally *tally = user;
    kiln_status status = kiln_image_verify(part, image);
    const char *kind = kiln_image_kind_name(image->kind);
    tally->images++;
    tally->failures += status != KILN_OK;
    if (tally->json) {
        json_object(tally->json, NULL);
        json_string(tally->json, "operator", bundle->name);
        json_string(tally->json, "part", part->name);
        json_string(tally->json, "target", image->target);
        json_string(tally->json, "kind", kind);
        json_bool(tally->json, "ok", status == KILN_OK);
        if (status != KILN_OK) json_string(tally->json, "error", kiln_last_error());
        json_close(tally->json);
    } else if (status != KILN_OK) {
        char *what = cli_format("%s %s %s %s: %s", bundle->name, part->name, image->target, kind, kiln_last_error());
        cli_put_lines(stdout, 0, what);
        free(what);
    }
    return CLI_OK;
}

static int run(int argc, char **argv) {
    bool as_json = false;
    const char *value;
    for (int option; (option = cli_next_option(&cli_verify, argc, argv, &value)) != CLI_END;) {
        if (option != JSON) return cli_stop(&cli_verify, option);
        as_json = true;
    }
    bundle_list list;
    int code = bundles_find(argc, argv, &list);
    if (code != CLI_OK) return code;

    json_writer json = {.file = stdout};
    verify_tally tally = {.json = as_json ? &json : NULL};
    if (as_json) {
        json_object(&json, NULL);
        json_array(&json, "images");
    }
    bundles_each_image(&list, verify, &tally);
    if (as_json) {
        json_close(&json);
        json_integer(&json, "failures", tally.failures);
        json_close(&json);
    } else {
        printf("%u images verified, %u failed\n", tally.images, tally.failures);
    }
    return tally.failures ? CLI_NO : CLI_OK;
}
