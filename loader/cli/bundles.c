#include "loader/cli/bundles.h"
#include <getopt.h>
#include <string.h>

static const char *bundle_name(const void *names, size_t index) {
    return ((const kiln_bundle *const *)names)[index]->name;
}

/* The operator of a function, such as softmax of softmax_f16; NULL if there is none. */
static const char *operator_of(const char *function, const bundle_list *list) {
    const char *part = strrchr(function, '_');
    for (size_t i = 0; part && i < list->count; i++) {
        const char *name = list->bundles[i]->name;
        const size_t length = (size_t)(part - function);
        if (strlen(name) == length && memcmp(name, function, length) == 0) return name;
    }
    return NULL;
}

int bundles_find(int argc, char **argv, bundle_list *out_list) {
    kiln_status status = kiln_all_bundles(&out_list->bundles, &out_list->count);
    if (status != KILN_OK) return cli_fail(status, "%s", argv[0]);
    if (optind == argc) return CLI_OK;
    if (optind + 1 < argc) return cli_error(CLI_USAGE, "%s: one operator at most", argv[0]);

    const char *name = argv[optind];
    for (size_t i = 0; i < out_list->count; i++) {
        if (strcmp(out_list->bundles[i]->name, name) != 0) continue;
        *out_list = (bundle_list){out_list->bundles + i, 1};
        return CLI_OK;
    }
    const char *nearest = operator_of(name, out_list);
    if (!nearest) nearest = cli_nearest(name, bundle_name, out_list->bundles, out_list->count);
    return cli_error(CLI_USAGE, "%s: no operator %s%s%s%s", argv[0], name, nearest ? "; did you mean " : "",
                     nearest ? nearest : "", nearest ? "?" : "");
}

int bundles_each_image(const bundle_list *list, image_visitor visit, void *user) {
    for (size_t b = 0; b < list->count; b++) {
        for (uint32_t p = 0; p < list->bundles[b]->part_count; p++) {
            kiln_part part = kiln_bundle_part(list->bundles[b], p);
            for (uint32_t i = 0; i < part.image_count; i++) {
                kiln_image image = kiln_part_image(&part, i);
                int code = visit(user, list->bundles[b], &part, &image);
                if (code != CLI_OK) return code;
            }
        }
    }
    return CLI_OK;
}
