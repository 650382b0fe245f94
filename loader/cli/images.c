/* kiln images: every embedded image. */
#include "loader/cli/bundles.h"
#include "loader/cli/json.h"
#include <string.h>

enum { TARGET, JSON };

static const cli_option options[] = {
    [TARGET] = {"target", "TARGET", "only the images for this target, like sm_90 or gfx942"},
    [JSON] = {"json", NULL, "write JSON, with every kernel and the sha256"},
};

static int run(int argc, char **argv);

const cli_command cli_images = {
    .name = "images",
    .operands = "[OP]",
    .summary = "list the embedded images",
    .details = "The driver is the lowest CUDA version that reads the image. Registers are the most of any kernel,\n"
               "spills the bytes of all; - is what the image does not say.\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

typedef struct image_listing {
    const char *target; /* NULL: all */
    json_writer *json;  /* NULL: a table */
    cli_table table;
    unsigned images;
    uint64_t bytes, linked_bytes;
} image_listing;

enum { MAPS_SIZE = 128 };

/* The offset of a kernel's tensor maps and their boxes: "240:64x128:64x64". */
static const char *write_maps(const kiln_kernel_info *kernel, char *bytes) {
    int length = snprintf(bytes, MAPS_SIZE, "%u", kernel->map_offset);
    for (int i = 0; i < KILN_KERNEL_MAPS && kernel->boxes[i][0]; i++)
        for (int dimension = 0; dimension < KILN_KERNEL_MAP_RANK && kernel->boxes[i][dimension]; dimension++)
            length += snprintf(bytes + length, MAPS_SIZE - (size_t)length, "%c%u", dimension ? 'x' : ':',
                               kernel->boxes[i][dimension]);
    return bytes;
}

/* What an image takes of the program, where it may be compressed. */
static uint64_t linked_bytes(const kiln_image *image) {
    return image->packed_size ? image->packed_size : image->size;
}

static void list_json(json_writer *json, const kiln_bundle *bundle, const kiln_part *part, const kiln_image *image) {
    char version[CLI_VERSION_SIZE], digest[65];
    for (size_t i = 0; i < sizeof image->sha256; i++)
        snprintf(digest + 2 * i, 3, "%02x", image->sha256[i]);
    json_object(json, NULL);
    json_string(json, "operator", bundle->name);
    json_string(json, "part", part->name);
    json_string(json, "target", image->target);
    json_string(json, "kind", kiln_image_kind_name(image->kind));
    json_integer(json, "bytes", (int64_t)image->size);
    json_integer(json, "linked_bytes", (int64_t)linked_bytes(image));
    json_integer(json, "format_version", image->format_version);
    json_string(json, "driver", image->driver_version ? cli_driver(image->driver_version, version) : NULL);
    json_string(json, "sha256", image->data ? digest : NULL);
    json_array(json, "kernels");
    for (uint32_t i = 0; i < part->kernel_count; i++) {
        kiln_kernel_info kernel = kiln_image_kernel(part, image, i);
        char maps[MAPS_SIZE];
        if (kernel.absent) continue;
        json_object(json, NULL);
        json_string(json, "name", kernel.name);
        json_integer(json, "arguments_bytes", kernel.arguments_size);
        json_integer(json, "registers", kernel.registers);
        json_integer(json, "spill_bytes", kernel.spill_bytes);
        json_integer(json, "shared_bytes", kernel.shared_bytes);
        json_integer(json, "max_threads", kernel.max_threads);
        json_integer(json, "tile_rows", kernel.tile[0]);
        json_integer(json, "tile_columns", kernel.tile[1]);
        json_integer(json, "tile_depth", kernel.tile[2]);
        json_integer(json, "stage_bytes", kernel.stage_bytes);
        json_integer(json, "rate", kernel.rate);
        json_integer(json, "stages", kernel.stages);
        json_integer(json, "cluster", kernel.cluster);
        json_string(json, "tensor_maps", kernel.boxes[0][0] ? write_maps(&kernel, maps) : NULL);
        json_close(json);
    }
    json_close(json);
    json_close(json);
}

static void list_row(cli_table *table, const kiln_bundle *bundle, const kiln_part *part, const kiln_image *image) {
    char bytes[CLI_BYTES_SIZE], version[CLI_VERSION_SIZE];
    uint32_t registers = 0, spills = 0;
    for (uint32_t i = 0; i < part->kernel_count; i++) {
        kiln_kernel_info kernel = kiln_image_kernel(part, image, i);
        if (kernel.registers > registers) registers = kernel.registers;
        spills += kernel.spill_bytes;
    }
    cli_cell(table, "%s", bundle->name);
    cli_cell(table, "%s", part->name);
    cli_cell(table, "%s", image->target);
    cli_cell(table, "%s", kiln_image_kind_name(image->kind));
    cli_cell(table, "%s", image->data ? cli_bytes(image->size, bytes) : "-");
    cli_cell(table, "%s", image->driver_version ? cli_driver(image->driver_version, version) : "-");
    if (registers)
        cli_cell(table, "%u", registers);
    else
        cli_cell(table, "-");
    if (registers)
        cli_cell(table, "%u", spills);
    else
        cli_cell(table, "-");
}

static int list(void *user, const kiln_bundle *bundle, const kiln_part *part, const kiln_image *image) {
    image_listing *listing = user;
    if (listing->target && strcmp(listing->target, image->target) != 0) return CLI_OK;
    listing->images++;
    listing->bytes += image->size;
    listing->linked_bytes += linked_bytes(image);
    if (listing->json)
        list_json(listing->json, bundle, part, image);
    else
        list_row(&listing->table, bundle, part, image);
    return CLI_OK;
}

static void print_json(const bundle_list *bundles, image_listing *listing) {
    json_writer json = {.file = stdout};
    listing->json = &json;
    json_object(&json, NULL);
    json_array(&json, "images");
    bundles_each_image(bundles, list, listing);
    json_close(&json);
    json_integer(&json, "bytes", (int64_t)listing->bytes);
    json_integer(&json, "linked_bytes", (int64_t)listing->linked_bytes);
    json_close(&json);
}

static void print_table(const bundle_list *bundles, image_listing *listing) {
    static const char *const titles[] = {"operator", "part", "target", "kind", "size", "driver", "registers", "spills"};
    char bytes[CLI_BYTES_SIZE], linked[CLI_BYTES_SIZE];
    cli_titles(&listing->table, titles, CLI_COUNT(titles));
    bundles_each_image(bundles, list, listing);
    cli_table_print(&listing->table);
    printf("%u images, %s, %s as linked\n", listing->images, cli_bytes(listing->bytes, bytes),
           cli_bytes(listing->linked_bytes, linked));
}

static int run(int argc, char **argv) {
    bool as_json = false;
    image_listing listing = {0};
    const char *value;
    for (int option; (option = cli_next_option(&cli_images, argc, argv, &value)) != CLI_END;) {
        if (option == JSON)
            as_json = true;
        else if (option == TARGET)
            listing.target = value;
        else
            return cli_stop(&cli_images, option);
    }
    kiln_target known;
    if (listing.target && kiln_target_parse(listing.target, 0, &known) != KILN_OK)
        return cli_error(CLI_USAGE, "images: --target %s: %s", listing.target, kiln_last_error());
    bundle_list bundles;
    int code = bundles_find(argc, argv, &bundles);
    if (code != CLI_OK) return code;
    if (as_json)
        print_json(&bundles, &listing);
    else
        print_table(&bundles, &listing);
    return listing.images ? CLI_OK : CLI_NO;
}
