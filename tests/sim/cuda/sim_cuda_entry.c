/* Functions by their names without a suffix: of each that was changed since, the newest that a version of CUDA has. */
#include "tests/sim/cuda/sim_cuda.h"
#include <string.h>

enum { FOUND, NOT_FOUND, VERSION_NOT_SUFFICIENT };
enum { FLAGS_DEFAULT, FLAGS_LEGACY_STREAM };

typedef void function(void);

static const struct {
    const char *name;
    function *address;
} functions[] = {
#define KILN_CUDA(field, name, requirement, result, parameters) {#name, (function *)name},
#include "loader/cuda/symbols.def"
#include "tests/sim/cuda/extra_symbols.def"
#undef KILN_CUDA
};

static const struct {
    const char *name;
    int version;
} versions[] = {
#define SIM_CUDA_VERSION(name, version) {#name, version},
#include "tests/sim/cuda/versions.def"
#undef SIM_CUDA_VERSION
};

/* Whether an exported name is one of the functions of a name: itself, or with a number behind it. */
static bool is_of(const char *exported, const char *name) {
    const size_t length = strlen(name);
    if (strncmp(exported, name, length) != 0) return false;
    exported += length;
    return !*exported || (!strncmp(exported, "_v", 2) && exported[2] >= '2' && exported[2] <= '9' && !exported[3]);
}

static function *address_of(const char *exported) {
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!strcmp(functions[i].name, exported)) return functions[i].address;
    return NULL;
}

static kiln__cu_enum find(const char *name, int version, function **out_function) {
    enum { INSTANTIATES_WITH_FLAGS = 12000 };
    kiln__cu_enum status = NOT_FOUND;
    int best = 0;
    if (!strcmp(name, "cuGraphInstantiate") && version >= INSTANTIATES_WITH_FLAGS) name = "cuGraphInstantiateWithFlags";
    *out_function = NULL;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (!is_of(versions[i].name, name)) continue;
        if (status != FOUND) status = VERSION_NOT_SUFFICIENT;
        if (versions[i].version > version || versions[i].version < best) continue;
        best = versions[i].version;
        *out_function = address_of(versions[i].name);
        status = FOUND;
    }
    return status;
}

/* A name that is not there is no error, but a pointer that is NULL. */
static kiln__cu_result get(const char *call, const char *name, void **out_function, int version, uint64_t flags,
                           kiln__cu_enum *out_status) {
    SIM_CUDA_RULE(name && out_function, SIM_CUDA_INVALID_VALUE, "%s: the name or the result is NULL", call);
    SIM_CUDA_RULE(flags <= FLAGS_LEGACY_STREAM, SIM_CUDA_NOT_SUPPORTED,
                  "%s: flags %llu: functions for a default stream of each thread are not presented", call,
                  (unsigned long long)flags);
    if (version > sim_cuda_version()) return SIM_CUDA_INVALID_VALUE;
    function *found;
    const kiln__cu_enum status = find(name, version, &found);
    memcpy(out_function, &found, sizeof found);
    if (out_status) *out_status = status;
    return SIM_CUDA_SUCCESS;
}

/* Both may be called before cuInit. */
kiln__cu_result cuGetProcAddress(const char *name, void **out_function, int version, uint64_t flags) {
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? SIM_CUDA_SUCCESS : (kiln__cu_result)planned;
    return get(__func__, name, out_function, version, flags, NULL);
}

kiln__cu_result cuGetProcAddress_v2(const char *name, void **out_function, int version, uint64_t flags,
                                    kiln__cu_enum *out_status) {
    int32_t planned = sim_enter(__func__);
    if (planned) return planned == SIM_LIE ? SIM_CUDA_SUCCESS : (kiln__cu_result)planned;
    return get(__func__, name, out_function, version, flags, out_status);
}
