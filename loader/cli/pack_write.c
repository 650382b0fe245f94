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

static void write_data(FILE *file, const pack_package *package, const pack_image *image, size_t index) {
    fprintf(file, "\nstatic const unsigned char %s_image_%zu[] __attribute__((aligned(64))) = {", package->name, index);
    for (size_t i = 0; i < image->size; i++)
        fprintf(file, "%s0x%02x,", i % 16 ? " " : "\n    ", image->bytes[i]);
    if (image->facts.kind == KILN_IMAGE_PTX) fputs("\n    0x00,", file);
    fputs("\n};\n", file);
}

/* The kernels of an image in the order of the package's first. */
static void write_kernels(FILE *file, const pack_package *package, const pack_image *image, size_t index) {
    const pack_image *first = &package->images[0];
    fprintf(file, "\nstatic const kiln_kernel_info %s_kernels_%zu[] = {\n", package->name, index);
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

static void write_image(FILE *file, const pack_package *package, const pack_image *image, size_t index) {
    static const char *const kinds[] = {[KILN_IMAGE_PTX] = "KILN_IMAGE_PTX",
                                        [KILN_IMAGE_CUBIN] = "KILN_IMAGE_CUBIN",
                                        [KILN_IMAGE_HSACO] = "KILN_IMAGE_HSACO",
                                        [KILN_IMAGE_CPU] = "KILN_IMAGE_CPU"};
    fputs("    {.target = ", file);
    write_string(file, image->target, strlen(image->target));
    if (image->bytes)
        fprintf(file, ",\n     .data = %s_image_%zu,\n     .size = %zu", package->name, index, image->size);
    fprintf(file, ",\n     .kind = %s", kinds[image->facts.kind]);
    if (image->bytes)
        fprintf(file, ",\n     .format_version = %u,\n     .driver_version = %u",
                image->facts.kind == KILN_IMAGE_CUBIN ? 0 : image->facts.format_version, image->facts.driver_version);
    fprintf(file, ",\n     .kernel_size = sizeof(kiln_kernel_info),\n     .kernels = %s_kernels_%zu", package->name,
            index);
    if (image->bytes) {
        uint8_t digest[32];
        kiln_sha256(image->bytes, image->size, digest);
        fputs(",\n     .sha256 = {", file);
        for (size_t i = 0; i < sizeof digest; i++)
            fprintf(file, "%s0x%02x", i ? ", " : "", digest[i]);
        fputc('}', file);
    }
    fputs("},\n", file);
}

static void write_table(FILE *file, const pack_package *package) {
    const pack_image *first = &package->images[0];
    const char *name = package->name;
    fprintf(file, "\nstatic const char *const %s_kernel_names[] = {\n", name);
    for (size_t i = 0; i < first->kernel_count; i++) {
        fputs("    ", file);
        write_string(file, first->kernels[i].name, first->kernels[i].name_size);
        fputs(",\n", file);
    }
    fprintf(file, "};\n\nstatic const kiln_image %s_images[] = {\n", name);
    for (size_t i = 0; i < package->image_count; i++)
        write_image(file, package, &package->images[i], i);
    fprintf(file,
            "};\n\nstatic const kiln_part %s_parts[] = {\n"
            "    {.name = \"%s\",\n"
            "     .images = %s_images,\n"
            "     .kernel_names = %s_kernel_names,\n"
            "     .image_count = sizeof %s_images / sizeof *%s_images,\n"
            "     .image_size = sizeof *%s_images,\n"
            "     .kernel_count = sizeof %s_kernel_names / sizeof *%s_kernel_names}};\n\n",
            name, name, name, name, name, name, name, name, name);
    fprintf(file,
            "const kiln_bundle %s = {.version = KILN_BUNDLE_VERSION,\n"
            "    .part_size = sizeof *%s_parts,\n"
            "    .name = \"%s\",\n"
            "    .parts = %s_parts,\n"
            "    .part_count = 1};\n"
            "KILN_LINK_BUNDLE(%s);\n",
            name, name, name, name, name);
}

/* What other files define or refer to, under its own name in C++ too. */
static void write_declarations(FILE *file, const pack_package *package) {
    fputs("\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n", file);
    fprintf(file, "extern const kiln_bundle %s;\n", package->name);
    for (size_t i = 0; i < package->image_count; i++)
        for (size_t k = 0; package->images[i].functions && k < package->images[i].kernel_count; k++)
            fprintf(file, "extern void %s(const void *arguments, const kiln_cpu_span *span);\n",
                    package->images[i].functions[k]);
    fputs("#ifdef __cplusplus\n}\n#endif\n", file);
}

/* Warnings of C++ about what is C: designated initialisers, and members that they leave out. */
static const char cpp_warnings[] = "#if defined(__cplusplus) && defined(__GNUC__)\n"
                                   "#pragma GCC diagnostic ignored \"-Wmissing-field-initializers\"\n"
                                   "#pragma GCC diagnostic ignored \"-Wpedantic\"\n"
                                   "#if __GNUC__ >= 12\n"
                                   "#pragma GCC diagnostic ignored \"-Wc++20-extensions\"\n"
                                   "#endif\n"
                                   "#endif\n";

void pack_write(FILE *file, const pack_package *package) {
    fprintf(file, "/* Written by kiln pack. Declare it as: extern const kiln_bundle %s; */\n#include <kiln/kiln.h>\n%s",
            package->name, cpp_warnings);
    write_declarations(file, package);
    for (size_t i = 0; i < package->image_count; i++) {
        const pack_image *image = &package->images[i];
        if (image->bytes) write_data(file, package, image, i);
        write_kernels(file, package, image, i);
    }
    write_table(file, package);
}
