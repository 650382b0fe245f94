/* kiln pack: GPU images and CPU functions of one's own as a bundle in C. */
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
    .details = "TARGET is what the PTX, cubin or code object was compiled for: sm_75, sm_90a, gfx942, gfx942:xnack-.\n"
               "LEVEL is the lowest CPU level that has FUNCTION, a kiln_cpu_function: x86-64-v2, aarch64.\n"
               "Every file is checked: is it for its target, and do all images hold the same kernels with arguments\n"
               "of the same size? Compile FILE with the program and declare: extern const kiln_bundle NAME;\n",
    .options = options,
    .option_count = CLI_COUNT(options),
    .run = run,
};

bool pack_is_identifier(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
    static const char more[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return text[0] && strchr(letters, text[0]) && text[strspn(text, more)] == '\0';
}

/* The image of a target and kind, or NULL. */
static pack_image *find_image(pack_package *package, const char *target, kiln_image_kind kind) {
    for (size_t i = 0; i < package->image_count; i++)
        if (package->images[i].facts.kind == kind && strcmp(package->images[i].target, target) == 0)
            return &package->images[i];
    return NULL;
}

/* LEVEL:KERNEL=FUNCTION; colon points to the colon. */
static int add_function(pack_package *package, const char *level, const char *kernel, const char *function) {
    if (!kernel[0] || strlen(kernel) >= sizeof package->images->kernels->name)
        return cli_error(CLI_USAGE, "pack: %s:%s=%s: no kernel of that name can be", level, kernel, function);
    if (!pack_is_identifier(function))
        return cli_error(CLI_USAGE, "pack: %s:%s=%s: the function is no C identifier", level, kernel, function);
    pack_image *image = find_image(package, level, KILN_IMAGE_CPU);
    if (!image) {
        image = &package->images[package->image_count++];
        image->target = cli_format("%s", level);
        image->facts.kind = KILN_IMAGE_CPU;
    }
    if (pack_find_kernel(image, kernel))
        return cli_error(CLI_USAGE, "pack: %s:%s has two functions", level, kernel);
    size_t count = ++image->kernel_count;
    image->kernels = cli_resize(image->kernels, count, sizeof *image->kernels);
    image->functions = cli_resize(image->functions, count, sizeof *image->functions);
    image->kernels[count - 1] = (kiln_kernel_facts){.info = {.arguments_size = 0}};
    strcpy(image->kernels[count - 1].name, kernel);
    image->functions[count - 1] = function;
    return CLI_OK;
}
