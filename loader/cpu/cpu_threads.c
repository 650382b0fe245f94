#include "loader/cpu/cpu_threads.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t kiln__cpu_mask_read(kiln__cpu_mask *out_mask) {
    memset(out_mask, 0, sizeof *out_mask);
    if (sched_getaffinity(0, sizeof *out_mask, out_mask->sets) != 0) return 1;
    int count = CPU_COUNT_S(sizeof *out_mask, out_mask->sets);
    return count > 0 ? (uint32_t)count : 1;
}

void kiln__cpu_avoid(int cpu, int *avoided) {
    if (cpu == *avoided) return;
    kiln__cpu_mask mask;
    kiln__cpu_mask_read(&mask);
    if (*avoided >= 0) CPU_SET_S((size_t)*avoided, sizeof mask, mask.sets);
    bool other =
        cpu >= 0 && CPU_ISSET_S((size_t)cpu, sizeof mask, mask.sets) && CPU_COUNT_S(sizeof mask, mask.sets) > 1;
    if (!other && *avoided < 0) return;
    if (other) CPU_CLR_S((size_t)cpu, sizeof mask, mask.sets);
    *avoided = other ? cpu : -1;
    sched_setaffinity(0, sizeof mask, mask.sets); /* which moves the thread before it returns */
}

/* Opens the file at root/directory/name; NULL if there is none. */
static FILE *open_file(const char *root, const char *directory, const char *name) {
    char *path;
    if (asprintf(&path, "%s%s/%s", root, directory, name) < 0) return NULL;
    FILE *file = fopen(path, "re");
    free(path);
    return file;
}

/* Whether a comma-separated list has a word. */
static bool list_has(const char *list, const char *word) {
    size_t length = strlen(word);
    for (const char *at = list; at; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (strncmp(at, word, length) == 0 && (at[length] == ',' || at[length] == '\0')) return true;
    }
    return false;
}

/* The quota that stands in one cgroup's folder, in CPUs. */
static uint32_t folder_quota(const char *root, const char *folder, bool version_2) {
    long long quota = -1, period = 0;
    FILE *file = open_file(root, folder, version_2 ? "cpu.max" : "cpu.cfs_quota_us");
    if (!file) return UINT32_MAX;
    int found = fscanf(file, version_2 ? "%lld %lld" : "%lld", &quota, &period); /* "max 100000" or -1: no quota */
    fclose(file);
    if (found < 1 || quota <= 0) return UINT32_MAX;
    if (!version_2) {
        file = open_file(root, folder, "cpu.cfs_period_us");
        if (!file) return UINT32_MAX;
        if (fscanf(file, "%lld", &period) != 1) period = 0;
        fclose(file);
    }
    if (period <= 0) return UINT32_MAX;
    long long cpus = quota / period + (quota % period != 0);
    return cpus < UINT32_MAX ? (uint32_t)cpus : UINT32_MAX;
}

/* The least quota from a cgroup up to the root of its hierarchy's mount. A container may see only a subtree mounted,
 * whose root is then the front of the process's path, or a path outside it, of which nothing can be read but the mount.
 */
static uint32_t hierarchy_quota(const char *root, const char *mount, const char *mount_root, const char *path,
                                bool version_2) {
    size_t skip = strcmp(mount_root, "/") == 0 ? 0 : strlen(mount_root);
    bool inside = skip == 0 || (strncmp(path, mount_root, skip) == 0 && (path[skip] == '/' || path[skip] == '\0'));
    char *folder;
    if (asprintf(&folder, "%s%s", mount, inside ? path + skip : "") < 0) return UINT32_MAX;
    uint32_t least = UINT32_MAX;
    for (size_t end = strlen(folder); end >= strlen(mount); end--) {
        if (folder[end] != '/' && folder[end] != '\0') continue;
        folder[end] = '\0';
        uint32_t quota = folder_quota(root, folder, version_2);
        if (quota < least) least = quota;
    }
    free(folder);
    return least;
}

/* The least quota of the hierarchies of one version that are mounted, for the cgroup at path. */
static uint32_t mounted_quota(const char *root, const char *path, bool version_2) {
    FILE *mounts = open_file(root, "/proc/self", "mountinfo");
    if (!mounts) return UINT32_MAX;
    uint32_t least = UINT32_MAX;
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, mounts) > 0) {
        char *mount_root = NULL, *mount = NULL, *type = NULL, *options = NULL;
        const char *tail = strstr(line, " - "); /* optional fields of any number end here */
        if (tail && sscanf(line, "%*s %*s %*s %ms %ms", &mount_root, &mount) == 2 &&
            sscanf(tail, " - %ms %*s %ms", &type, &options) == 2 &&
            strcmp(type, version_2 ? "cgroup2" : "cgroup") == 0 && (version_2 || list_has(options, "cpu"))) {
            uint32_t quota = hierarchy_quota(root, mount, mount_root, path, version_2);
            if (quota < least) least = quota;
        }
        free(mount_root);
        free(mount);
        free(type);
        free(options);
    }
    free(line);
    fclose(mounts);
    return least;
}

uint32_t kiln__cpu_quota(const char *root) {
    FILE *cgroups = open_file(root, "/proc/self", "cgroup");
    if (!cgroups) return UINT32_MAX;
    uint32_t least = UINT32_MAX;
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, cgroups) > 0) { /* number:controllers:path, no controllers in version 2 */
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) continue;
        *controllers++ = '\0';
        *path++ = '\0';
        bool version_2 = *controllers == '\0';
        if (!version_2 && !list_has(controllers, "cpu")) continue;
        uint32_t quota = mounted_quota(root, path, version_2);
        if (quota < least) least = quota;
    }
    free(line);
    fclose(cgroups);
    return least;
}
