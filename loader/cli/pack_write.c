/* A package as C: the bundle table of <kiln/kiln.h>, section 5, and the images as arrays. */
#include "loader/cli/pack.h"
#include <string.h>

/* A string literal. Names come from the files: what is not plain is written as octal, which ends after three digits. */
static void write_string(FILE *file, const char *text, size_t size) {
    fputc('"', file);
    for (size_t i = 0; i < size; i++) {
        const unsigned char byte = (unsigned char)text[i];
        bool plain = byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\' && byte != '?';
        fprintf(file, plain ? "%c" : "\\%03o", byte);
    }
    fputc('"', file);
}

static void write_data(FILE *file, const pack_image *image, size_t index) {
    fprintf(file, "\nstatic const unsigned char image_%zu[] __attribute__((aligned(64))) = {", index);
    for (size_t i = 0; i < image->size; i++)
        fprintf(file, "%s0x%02x,", i % 16 ? " " : "\n    ", image->bytes[i]);
    if (image->facts.kind == KILN_IMAGE_PTX) fputs("\n    0x00,", file);
    fputs("\n};\n", file);
}

static void write_functions(FILE *file, const pack_image *image) {
    fputc('\n', file);
    for (size_t i = 0; i < image->kernel_count; i++)
        fprintf(file, "extern void %s(const void *arguments, const kiln_cpu_span *span);\n", image->functions[i]);
}

/* The kernels of an image in the order of the package's first. */
static void write_kernels(FILE *file, const pack_package *package, const pack_image *image, size_t index) {
    const pack_image *first = &package->images[0];
    fprintf(file, "\nstatic const kiln_kernel_info kernels_%zu[] = {\n", index);
    for (size_t i = 0; i < first->kernel_count; i++) {
        const char *name = first->kernels[i].name;
        const kiln_kernel_facts *kernel = pack_find_kernel(image, name, first->kernels[i].name_size);
        fputs("    {.name = ", file);
        write_string(file, name, first->kernels[i].name_size);
        fprintf(file, ", .arguments_size = %u", first->kernels[i].info.arguments_size);
        if (image->functions)
            fprintf(file, ", .function = %s},\n", image->functions[kernel - image->kernels]);
        else
            fprintf(file, ", .registers = %u, .spill_bytes = %u, .shared_bytes = %u, .max_threads = %u},\n",
                    kernel->info.registers, kernel->info.spill_bytes, kernel->info.shared_bytes,
                    kernel->info.max_threads);
    }
    fputs("};\n", file);
}

static void write_image(FILE *file, const pack_image *image, size_t index) {
    static const char *const kinds[] = {[KILN_IMAGE_PTX] = "KILN_IMAGE_PTX",
                                        [KILN_IMAGE_CUBIN] = "KILN_IMAGE_CUBIN",
                                        [KILN_IMAGE_HSACO] = "KILN_IMAGE_HSACO",
                                        [KILN_IMAGE_CPU] = "KILN_IMAGE_CPU"};
    fputs("    {.target = ", file);
    write_string(file, image->target, strlen(image->target));
    fprintf(file, ",\n     .kind = %s,\n     .kernel_size = sizeof(kiln_kernel_info),\n     .kernels = kernels_%zu",
            kinds[image->facts.kind], index);
    if (image->bytes) {
        uint8_t digest[32];
        kiln_sha256(image->bytes, image->size, digest);
        fprintf(
            file,
            ",\n     .data = image_%zu,\n     .size = %zu,\n     .format_version = %u,\n     .driver_version = %u,\n"
            "     .sha256 = {",
            index, image->size, image->facts.kind == KILN_IMAGE_CUBIN ? 0 : image->facts.format_version,
            image->facts.driver_version);
        for (size_t i = 0; i < sizeof digest; i++)
            fprintf(file, "%s0x%02x", i ? ", " : "", digest[i]);
        fputc('}', file);
    }
    fputs("},\n", file);
}

static void write_table(FILE *file, const pack_package *package) {
    const pack_image *first = &package->images[0];
    fputs("\nstatic const char *const kernel_names[] = {\n", file);
    for (size_t i = 0; i < first->kernel_count; i++) {
        fputs("    ", file);
        write_string(file, first->kernels[i].name, first->kernels[i].name_size);
        fputs(",\n", file);
    }
    fputs("};\n\nstatic const kiln_image images[] = {\n", file);
    for (size_t i = 0; i < package->image_count; i++)
        write_image(file, &package->images[i], i);
    fprintf(file,
            "};\n\nstatic const kiln_part parts[] = {{.name = \"%s\",\n"
            "                                   .images = images,\n"
            "                                   .kernel_names = kernel_names,\n"
            "                                   .image_count = sizeof images / sizeof *images,\n"
            "                                   .image_size = sizeof *images,\n"
            "                                   .kernel_count = sizeof kernel_names / sizeof *kernel_names}};\n\n"
            "extern const kiln_bundle %s;\n"
            "const kiln_bundle %s = {.version = KILN_BUNDLE_VERSION,\n"
            "                        .part_size = sizeof *parts,\n"
            "                        .name = \"%s\",\n"
            "                        .parts = parts,\n"
            "                        .part_count = 1};\n"
            "KILN_LINK_BUNDLE(%s);\n",
            package->name, package->name, package->name, package->name, package->name);
}

void pack_write(FILE *file, const pack_package *package) {
    fprintf(file, "/* Written by kiln pack. Declare it as: extern const kiln_bundle %s; */\n#include <kiln/kiln.h>\n",
            package->name);
    for (size_t i = 0; i < package->image_count; i++) {
        const pack_image *image = &package->images[i];
        if (image->functions)
            write_functions(file, image);
        else
            write_data(file, image, i);
        write_kernels(file, package, image, i);
    }
    write_table(file, package);
}
