/* Tokens per second of the model of docs/examples/llama on the CPU, against the same model in plain C:
 *
 *   cpu_story_bench [--json] MODEL
 *
 * At each level of this machine both tell the first 200 tokens of the story, by turns; they must be the very same. The
 * plain one has one thread and the compiler's flags of kiln's kernels. Behind the ratio of the best rounds stands that
 * of a round, in the middle and at the ends. One thread is measured in its processor time, more threads by the clock.
 */
#include "docs/examples/llama/decoder.h"
#include "docs/examples/llama/tokenizer.h"
#include "tests/bench/plain_llama.h"
#include "tests/bench/rounds.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 15, STEPS = 200 };

typedef struct instruction_level {
    const char *name;
    plain_llama_step *plain;
} instruction_level;

#if defined(__x86_64__)
static const instruction_level levels[] = {{"x86-64-v2", plain_llama_step_x86_64_v2},
                                           {"x86-64-v3", plain_llama_step_x86_64_v3},
                                           {"x86-64-v4", plain_llama_step_x86_64_v4}};
#else
static const instruction_level levels[] = {{"aarch64", plain_llama_step_aarch64}};
#endif

typedef struct story {
    int32_t tokens[STEPS];
    int count;
} story;

static void check(kiln_status status) {
    if (status == KILN_OK) return;
    fprintf(stderr, "cpu_story_bench: %s\n", kiln_last_error());
    exit(1);
}

/* Takes the token behind the last one. false if the story ends with it. */
static bool go_on(story *told, int32_t token) {
    told->tokens[told->count++] = token;
    return token != LLAMA_BEGIN && token != LLAMA_END && told->count < STEPS;
}

/* Both return tokens per second. */
static double tell_plain(plain_llama *llama, plain_llama_step *step, int threads, story *out) {
    double start = seconds(threads);
    out->count = 0;
    for (int32_t token = LLAMA_BEGIN; go_on(out, token = step(llama, token, out->count));)
        continue;
    return out->count / (seconds(threads) - start);
}

static double tell_kiln(llama_decoder *decoder, int threads, story *out) {
    double start = seconds(threads);
    int32_t token = LLAMA_BEGIN;
    out->count = 0;
    do
        check(llama_decoder_step(decoder, token, out->count, &token));
    while (go_on(out, token));
    return out->count / (seconds(threads) - start);
}

static void compare(const char *level, const story *kiln, const story *plain) {
    if (kiln->count == plain->count && !memcmp(kiln->tokens, plain->tokens, sizeof(int32_t) * (size_t)kiln->count))
        return;
    fprintf(stderr, "cpu_story_bench: %s: the stories differ\n", level);
    exit(1);
}

static void measure(const instruction_level *level, llama_decoder *decoder, plain_llama *llama, int threads,
                    bool json) {
    double kiln[ROUNDS], plain[ROUNDS], ratio[ROUNDS];
    story by_kiln, by_plain;
    for (int i = -1; i < ROUNDS; i++) { /* the first round is not counted */
        int place = i < 0 ? 0 : i;
        plain[place] = tell_plain(llama, level->plain, threads, &by_plain);
        kiln[place] = tell_kiln(decoder, threads, &by_kiln);
        ratio[place] = kiln[place] / plain[place];
        compare(level->name, &by_kiln, &by_plain);
    }
    spread k = spread_of(kiln, ROUNDS), p = spread_of(plain, ROUNDS), r = spread_of(ratio, ROUNDS);
    const char *format =
        json ? "{\"level\": \"%s\", \"threads\": %d, \"tokens\": %d, \"kiln_tokens_per_second\": %.0f, "
               "\"plain_tokens_per_second\": %.0f, \"ratio\": %.3f, \"round_ratio\": [%.3f, %.3f, %.3f]}"
             : "cpu-story: %-9s  threads %d  %d tokens, the same  kiln %6.0f a second  plain C %6.0f  "
               "ratio %.2f (%.2f to %.2f to %.2f)\n";
    printf(format, level->name, threads, by_kiln.count, k.most, p.most, k.most / p.most, r.least, r.median, r.most);
    fflush(stdout);
}

static bool has_level(const instruction_level *level) {
    kiln_device *device;
    kiln_status status =
        kiln_device_open(&(kiln_device_options){.backend = KILN_BACKEND_CPU, .cpu_level = level->name}, &device);
    if (status != KILN_ERROR_UNSUPPORTED) check(status);
    kiln_device_close(device);
    return status == KILN_OK;
}

static void measure_on(const instruction_level *level, int threads, const llama_checkpoint *checkpoint,
                       plain_llama *llama, bool json) {
    kiln_device *device;
    kiln_stream stream;
    llama_decoder *decoder;
    kiln_device_options options = {.backend = KILN_BACKEND_CPU, .cpu_level = level->name, .threads = threads};
    check(kiln_device_open(&options, &device));
    check(kiln_stream_open(device, 0, &stream));
    check(llama_decoder_create(&stream, checkpoint, &(llama_options){.precision = LLAMA_F32}, NULL, &decoder));
    measure(level, decoder, llama, threads, json);
    llama_decoder_destroy(decoder);
    kiln_stream_close(&stream);
    kiln_device_close(device);
}

int main(int argc, char **argv) {
    bool json = argc == 3 && !strcmp(argv[1], "--json");
    llama_checkpoint checkpoint;
    char reason[LLAMA_REASON_SIZE];
    if (argc != 2 + json) {
        fprintf(stderr, "usage: cpu_story_bench [--json] MODEL\n");
        return 2;
    }
    if (access(argv[1 + json], R_OK) != 0) {
        fprintf(stderr, "cpu-story: there is no %s: nothing is measured\n", argv[1 + json]);
        return 0;
    }
    if (!llama_checkpoint_open(argv[1 + json], &checkpoint, reason)) {
        fprintf(stderr, "cpu_story_bench: %s\n", reason);
        return 1;
    }
    const llama_config *c = &checkpoint.config;
    plain_llama llama = {.checkpoint = &checkpoint};
#define BUFFER(name, count) \
    if (!(llama.name = calloc((size_t)(count), sizeof(float)))) return 1;
    PLAIN_LLAMA_BUFFERS(BUFFER)
#undef BUFFER
    int most = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1;
    const char *separator = json ? "[\n" : "";
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
        for (int threads = 1; threads <= most && has_level(&levels[i]); threads++) {
            printf("%s", separator);
            if (json) separator = ",\n";
            measure_on(&levels[i], threads, &checkpoint, &llama, json);
        }
    if (json) printf("\n]\n");
#define BUFFER(name, count) free(llama.name);
    PLAIN_LLAMA_BUFFERS(BUFFER)
#undef BUFFER
    llama_checkpoint_close(&checkpoint);
    return 0;
}
