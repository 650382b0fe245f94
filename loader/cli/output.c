#include "loader/cli/output.h"
#include "loader/cli/cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail(output_file *output, const char *why) {
    cli_error(CLI_USAGE, "--out: cannot write %s: %s", output->path, why);
    output_discard(output);
    return false;
}

bool output_is(const char *path, const char *other) {
    struct stat status[2];
    if (strcmp(path, other) == 0) return true;
    return stat(path, &status[0]) == 0 && stat(other, &status[1]) == 0 && status[0].st_dev == status[1].st_dev &&
           status[0].st_ino == status[1].st_ino;
}

bool output_create(output_file *output, const char *path) {
    struct stat status;
    *output = (output_file){.path = path, .file = -1};
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) return fail(output, "not a regular file");
    output->temporary = cli_format("%s.XXXXXX", path);
    output->file = mkstemp(output->temporary);
    if (output->file < 0) {
        int error = errno;
        free(output->temporary);
        output->temporary = NULL;
        return fail(output, strerror(error));
    }
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(output->file, 0666 & ~mask) != 0) return fail(output, strerror(errno));
    return true;
}

bool output_write(output_file *output, const void *bytes, size_t size) {
    const char *at = bytes;
    while (size) {
        ssize_t written = write(output->file, at, size);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail(output, strerror(errno));
        at += written;
        size -= (size_t)written;
    }
    return true;
}

bool output_commit(output_file *output) {
    if (fsync(output->file) != 0) return fail(output, strerror(errno));
    if (rename(output->temporary, output->path) != 0) return fail(output, strerror(errno));
    close(output->file);
    free(output->temporary);
    *output = (output_file){.file = -1};
    return true;
}

void output_discard(output_file *output) {
    if (!output->temporary) return;
    close(output->file);
    unlink(output->temporary);
    free(output->temporary);
    *output = (output_file){.path = output->path, .file = -1};
}
