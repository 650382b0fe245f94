# Two shared objects with a static copy of kiln each, in one process: neither sees the other's state.
. tests/tap.sh
case $KILN_CONFIG in sanitize | thread | coverage | fuzz) skip_all "needs a library without a run-time of its own" ;; esac
CC=${CC:-cc}
cd "$KILN_SCRATCH" || exit 1
source_root=$OLDPWD

cat >copy.c <<'END'
#include <kiln/ops.h>
#include <string.h>

static int lines;

static void count_line(void *user, kiln_log_level level, const char *text) {
    (void)user, (void)level, (void)text;
    lines++;
}

/* Softmax of one row by this copy; leaves a device open. NULL if it fails. */
__attribute__((visibility("default"))) kiln_device *run_NAME(float y[4]) {
    const float x[4] = {0, 0, 0, 0};
    kiln_device *device;
    kiln_stream stream;
    kiln_device_options options = {.backend = KILN_BACKEND_CPU};
    kiln_set_log(count_line, NULL);
    memcpy(y, x, sizeof x);
    if (kiln_device_open(&options, &device) || kiln_stream_open(device, 0, &stream)) return NULL;
    kiln_softmax_params params = {.y = y, .x = y, .rows = 1, .cols = 4};
    if (kiln_softmax_f32(&stream, &params)) return NULL;
    kiln_stream_close(&stream);
    return device;
}

__attribute__((visibility("default"))) void close_NAME(kiln_device *device) { kiln_device_close(device); }

__attribute__((visibility("default"))) const char *error_NAME(int fail) {
    kiln_device *device;
    if (fail) (void)kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CPU, .ordinal = 99}, &device);
    return kiln_last_error();
}
END
cat >main.c <<'END'
#include <stdio.h>
#include <string.h>
typedef struct kiln_device kiln_device;
kiln_device *run_one(float *), *run_two(float *);
void close_one(kiln_device *), close_two(kiln_device *);
const char *error_one(int), *error_two(int);

int main(void) {
    float y[4], z[4];
    kiln_device *one = run_one(y), *two = run_two(z);
    if (!one || !two || y[0] != 0.25f || z[3] != 0.25f) return printf("one of them failed: %s, %s\n", error_one(0), error_two(0)), 1;
    if (one == two) return printf("they share a device\n"), 1;
    if (error_one(1)[0] == '\0' || error_two(0)[0] != '\0') return printf("they share the last error\n"), 1;
    close_one(one);
    if (run_two(z) != two || z[1] != 0.25f) return printf("closing one hurt the other\n"), 1;
    close_two(two);
    close_two(two);
    return 0;
}
END

build() {
    local name
    for name in one two; do
        sed "s/NAME/$name/g" copy.c >"$name.c" &&
            "$CC" -shared -fPIC -o "lib$name.so" "$name.c" "-I$source_root/include" "$KILN_BUILD/libkiln.a" -pthread -ldl -lm ||
            return 1
    done
    "$CC" -o main main.c -L. -lone -ltwo "-Wl,-rpath,$PWD"
}

exports_of_copy() {
    ! readelf --dyn-syms -W libone.so | awk '$7 != "UND" && $6 == "DEFAULT" { print $8 }' | grep kiln
}

check "two shared objects link" build
check "neither exports kiln" exports_of_copy
check "both work, each for itself" ./main
finish
