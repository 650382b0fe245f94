/* kiln pack: writes a user's GPU images and CPU functions as a bundle in C. */
#include "loader/cli/pack.h"
#include "loader/cli/output.h"
#include <getopt.h>
#include <string.h>

enum { NAME, OUT };

static const cli_option options[] = {
    [NAME] = {"name", "NAME", "what the bundle and its one part are called: a C identifier"},
    [OUT] = {"out", "FILE", "the C file to write"},
};

static int run(int argc, char **argv);

const cli_command cli_pack = {
    .name = "pack",
    .operands = "TARGET=FILE... [LEVEL:KERNEL=FUNCTION...]",
    .summary = "write GPU images and CPU functions as a bundle in C",
    .details =
        "TARGET is what the PTX, cubin or code object was compiled for: sm_75, sm_90a, gfx942, gfx942:xnack-.\n"
        "LEVEL is the lowest CPU level that has FUNCTION, a kiln_cpu_function: x86-64-v2, aarch64.\n"
        "Every file is checked: is it for its target, and do all images hold the same kernels with arguments\n"
        "of the same size? Compile FILE as C or C++ with the program and declare: extern const kiln_bundle NAME;\n"
        "(in C++ as extern \"C\"). A kernel may have several parameters: they are the members of a struct.\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

/* The image of a target and kind, or NULL. */
static pack_image *find_image(pack_package *package, const char *target, kiln_image_kind kind) {
    for (size_t i = 0; i < package->image_count; i++)
        if (package->images[i].facts.kind == kind && strcmp(package->images[i].target, target) == 0)
            return &package->images[i];
    return NULL;
}

static pack_image *add_image(pack_package *package, const char *target, kiln_image_kind kind) {
    pack_image *image = &package->images[package->image_count++];
    image->target = cli_format("%s", target);
    image->facts.kind = kind;
    return image;
}

/* Whether what stands behind "NAME_" is a name that pack_write uses. */
static bool is_internal(const char *rest) {
    static const char *const names[] = {"images", "parts", "kernel_names", "image_", "kernels_", "linked"};
    for (size_t i = 0; i < CLI_COUNT(names); i++)
        if (strncmp(rest, names[i], strlen(names[i])) == 0) return true;
    return false;
}

/* LEVEL:KERNEL=FUNCTION. There are at most room functions in all. */
static int add_function(pack_package *package, const char *level, const char *kernel, const char *function,
                        size_t room) {
    pack_image *image = find_image(package, level, KILN_IMAGE_CPU);
    if (!image) {
        image = add_image(package, level, KILN_IMAGE_CPU);
        image->kernels = cli_allocate(room, sizeof *image->kernels);
        image->functions = cli_allocate(room, sizeof *image->functions);
    }
    kiln_kernel_facts *facts = &image->kernels[image->kernel_count];
    if (!kernel[0]) return cli_error(CLI_USAGE, "pack: %s:=%s: the kernel has no name", level, function);
    const char *fault = pack_name_fault(function);
    if (fault) return cli_error(CLI_USAGE, "pack: %s:%s=%s: the function %s", level, kernel, function, fault);
    size_t length = strlen(package->name);
    if (strncmp(function, package->name, length) == 0 && (!function[length] || function[length] == '_') &&
        (!function[length] || is_internal(function + length + 1)))
        return cli_error(CLI_USAGE, "pack: %s:%s=%s: the bundle has that name itself", level, kernel, function);
    if (pack_find_kernel(image, kernel, strlen(kernel)))
        return cli_error(CLI_USAGE, "pack: %s:%s is given twice", level, kernel);
    facts->name = kernel;
    facts->name_size = strlen(kernel);
    image->functions[image->kernel_count++] = function;
    return CLI_OK;
}

static int add_file(pack_package *package, const char *name, const kiln_target *target, const char *path) {
    pack_image *image = add_image(package, name, 0);
    image->path = path;
    int code = pack_read(image, path, target->backend);
    if (code == CLI_OK && find_image(package, name, image->facts.kind) != image)
        return cli_error(CLI_USAGE, "pack: %s: there are two files of this kind for %s", path, name);
    return code;
}

/* Adds what one operand, which is taken apart in place, asks for. */
static int add_operand(pack_package *package, char *operand, size_t room) {
    char *value = strchr(operand, '=');
    if (!value || !value[1])
        return cli_error(CLI_USAGE, "pack: %s: neither TARGET=FILE nor LEVEL:KERNEL=FUNCTION", operand);
    *value++ = '\0';
    char *colon = strchr(operand, ':');
    kiln_target target;
    if (colon) {
        *colon = '\0';
        bool cpu = kiln_target_parse(operand, 0, &target) == KILN_OK && target.backend == KILN_BACKEND_CPU;
        if (cpu) return add_function(package, operand, colon + 1, value, room);
        *colon = ':';
    }
    if (kiln_target_parse(operand, 0, &target) != KILN_OK) return cli_error(CLI_USAGE, "pack: %s", kiln_last_error());
    if (target.backend == KILN_BACKEND_CPU)
        return cli_error(CLI_USAGE, "pack: %s=%s: a CPU function is given as %s:KERNEL=FUNCTION", operand, value,
                         operand);
    return add_file(package, operand, &target, value);
}

static int write_package(const pack_package *package, const char *path) {
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file) return cli_error(CLI_SYSTEM, "pack: out of memory");
    pack_write(file, package);
    bool whole = !ferror(file);
    whole = fclose(file) == 0 && whole;
    output_file output = {0};
    int code = CLI_OK;
    if (!whole)
        code = cli_error(CLI_SYSTEM, "pack: out of memory");
    else if (!output_create(&output, path) || !output_write(&output, text, size) || !output_commit(&output))
        code = CLI_USAGE;
    output_discard(&output);
    free(text);
    return code;
}

static void release(pack_package *package) {
    for (size_t i = 0; i < package->image_count; i++) {
        pack_image *image = &package->images[i];
        free(image->target);
        free(image->bytes);
        free(image->kernels);
        free(image->functions);
    }
    free(package->images);
}

static int run(int argc, char **argv) {
    const char *value, *out = NULL;
    pack_package package = {0};
    for (int option; (option = cli_next_option(&cli_pack, argc, argv, &value)) != CLI_END;) {
        switch (option) {
        case NAME:
            package.name = value;
            break;
        case OUT:
            out = value;
            break;
        default:
            return cli_stop(&cli_pack, option);
        }
    }
    if (!package.name || !out || optind == argc) return cli_error(CLI_USAGE, "pack: needs --name, --out and images");
    const char *fault = pack_name_fault(package.name);
    if (fault) return cli_error(CLI_USAGE, "pack: --name %s: %s", package.name, fault);

    size_t room = (size_t)(argc - optind);
    package.images = cli_allocate(room, sizeof *package.images);
    int code = CLI_OK;
    for (int i = optind; i < argc && code == CLI_OK; i++)
        code = add_operand(&package, argv[i], room);
    for (size_t i = 0; i < package.image_count && code == CLI_OK; i++)
        if (package.images[i].path && output_is(package.images[i].path, out))
            code = cli_error(CLI_USAGE, "pack: --out %s: is the image for %s", out, package.images[i].target);
    if (code == CLI_OK) code = pack_agree(&package);
    if (code == CLI_OK) code = write_package(&package, out);
    release(&package);
    return code;
}
