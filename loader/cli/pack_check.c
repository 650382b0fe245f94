/* Checks that each image is what it claims to be, and that all images of a package fit together. */
#include "loader/cli/pack.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The whole of a regular file, or a line on stderr. */
static int read_file(pack_image *image, const char *path) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return cli_error(CLI_USAGE, "pack: cannot open %s: %s", path, strerror(errno));
    struct stat status;
    int code = CLI_OK;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        code = cli_error(CLI_USAGE, "pack: %s: not a regular file", path);
    } else {
        size_t size = (size_t)status.st_size;
        image->bytes = cli_allocate(size + 1, 1);
        while (image->size < size) {
            ssize_t got = read(file, image->bytes + image->size, size - image->size);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) break;
            image->size += (size_t)got;
        }
        if (image->size < size) code = cli_error(CLI_USAGE, "pack: cannot read %s", path);
    }
    close(file);
    return code;
}

/* Whether a cubin, which tells an 'a' image from others but not an 'f' image from a plain one, can be for target. One
 * that does not name its chip is left to the driver. */
static bool cubin_fits(const kiln_image_facts *facts, const char *target) {
    size_t length = strspn(target, "sm_0123456789");
    bool exact = target[length] == 'a';
    return !facts->target[0] || (strlen(facts->target) == length && strncmp(facts->target, target, length) == 0 &&
                                 exact == (facts->exact != 0));
}

/* Text of a later version than this kiln knows is taken by the rule that has held so far, which is said. */
static void tell_version(const pack_image *image, const char *path) {
    kiln_target known = {0};
    char version[CLI_VERSION_SIZE];
    if (image->facts.kind != KILN_IMAGE_PTX || kiln_target_parse("sm_75", 0, &known) != KILN_OK ||
        image->facts.driver_version <= (uint32_t)known.driver_version)
        return;
    cli_error(CLI_OK, "pack: %s: PTX %u.%u is newer than this kiln knows: taken to need a driver of CUDA %s", path,
              image->facts.format_version / 10, image->facts.format_version % 10,
              cli_driver(image->facts.driver_version, version));
}

static int check_target(const pack_image *image, const char *path, kiln_backend_id backend) {
    const kiln_image_facts *facts = &image->facts;
    const char *kind = kiln_image_kind_name(facts->kind);
    bool fits =
        facts->kind == KILN_IMAGE_CUBIN ? cubin_fits(facts, image->target) : strcmp(facts->target, image->target) == 0;
    if ((facts->kind == KILN_IMAGE_HSACO) != (backend == KILN_BACKEND_ROCM) || !fits)
        return cli_error(CLI_NO, "pack: %s: not an image for %s but a %s for %s%s", path, image->target, kind,
                         facts->target[0] ? facts->target : "a chip that it does not name",
                         facts->kind == KILN_IMAGE_CUBIN && facts->exact ? "a" : "");
    if (facts->kernel_count == 0) return cli_error(CLI_NO, "pack: %s: a %s without a kernel", path, kind);
    return CLI_OK;
}

int pack_read(pack_image *image, const char *path, kiln_backend_id backend) {
    int code = read_file(image, path);
    if (code != CLI_OK) return code;
    /* Text may come with the NUL that the driver wants; the bundle has one of its own. */
    if (image->size && image->bytes[0] != 0x7f && image->bytes[image->size - 1] == '\0') image->size--;

    kiln_status status = kiln_image_inspect(image->bytes, image->size, &image->facts, NULL, 0);
    if (status != KILN_OK) return cli_error(CLI_NO, "pack: %s: %s", path, kiln_last_error());
    code = check_target(image, path, backend);
    if (code != CLI_OK) return code;
    tell_version(image, path);
    image->kernel_count = image->facts.kernel_count;
    image->kernels = cli_allocate(image->kernel_count, sizeof *image->kernels);
    status = kiln_image_inspect(image->bytes, image->size, &image->facts, image->kernels, image->kernel_count);
    return status == KILN_OK ? CLI_OK : cli_error(CLI_NO, "pack: %s: %s", path, kiln_last_error());
}

const kiln_kernel_facts *pack_find_kernel(const pack_image *image, const char *name, size_t name_size) {
    for (size_t i = 0; i < image->kernel_count; i++)
        if (image->kernels[i].name_size == name_size && memcmp(image->kernels[i].name, name, name_size) == 0)
            return &image->kernels[i];
    return NULL;
}

/* How many bytes of a kernel's name a message shows. */
static int shown(const kiln_kernel_facts *kernel) {
    enum { SHOWN = 1000 };
    return kernel->name_size < SHOWN ? (int)kernel->name_size : SHOWN;
}

/* Whether every kernel of one image is in the other. */
static int check_kernels(const pack_image *some, const pack_image *others) {
    for (size_t i = 0; i < some->kernel_count; i++) {
        const kiln_kernel_facts *kernel = &some->kernels[i];
        if (!pack_find_kernel(others, kernel->name, kernel->name_size))
            return cli_error(CLI_NO, "pack: kernel %.*s is in the %s for %s and not in the %s for %s", shown(kernel),
                             kernel->name, kiln_image_kind_name(some->facts.kind), some->target,
                             kiln_image_kind_name(others->facts.kind), others->target);
    }
    return CLI_OK;
}

int pack_agree(pack_package *package) {
    pack_image *first = &package->images[0];
    for (size_t i = 1; i < package->image_count; i++) {
        const pack_image *image = &package->images[i];
        int code = check_kernels(first, image);
        if (code == CLI_OK) code = check_kernels(image, first);
        if (code != CLI_OK) return code;
        for (size_t k = 0; k < first->kernel_count; k++) {
            kiln_kernel_facts *kernel = &first->kernels[k];
            uint32_t size = pack_find_kernel(image, kernel->name, kernel->name_size)->info.arguments_size;
            if (!kernel->info.arguments_size) kernel->info.arguments_size = size;
            if (size && size != kernel->info.arguments_size)
                return cli_error(
                    CLI_NO, "pack: kernel %.*s takes %u bytes of arguments in the %s for %s, %u in images before it",
                    shown(kernel), kernel->name, size, kiln_image_kind_name(image->facts.kind), image->target,
                    kernel->info.arguments_size);
        }
    }
    return CLI_OK;
}
