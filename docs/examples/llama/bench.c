#include "bench.h"
#include "arguments.h"
#include "bench_batch.h"
#include "bench_rates.h"
#include "try.h"
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_WRONG_INPUT = 2, BATCHES_MOST = 16, SHOWN = 16, PREFILLS = 3, WARM_STEPS = 2 };

typedef struct request {
    const bench_shape *shape;
    long batches[BATCHES_MOST];
    size_t batch_count;
    long prompt, steps;
    double peak; /* operations a second; 0: the best product's */
    bool as_json, is_programmatic, fp8_cache;
    llama_quantisation quantisation;
    kiln_device_options device;
    llama_precision precision;
} request;

static const char usage[] =
    "usage: llama --bench --shape SHAPE [OPTION...]\n"
    "Measures a model of random weights in the architecture of Llama 3: the prompt of one sequence, then steps of\n"
    "one token of each sequence of a batch, greedily, both as CUDA graphs where the device has them.\n"
    "  --shape S          llama3-8b, llama3.2-1b, llama3-70b-shard (one of eight, without the sums over all)\n"
    "                     or tiny\n"
    "  --batch N,N,...    sequences at a time (default 1)\n"
    "  --prompt N         tokens of each sequence before the first step (default 1024)\n"
    "  --steps N          tokens that each sequence gets (default 128)\n"
    "  --precision P      f32, f16 or bf16 (default)\n"
    "  --weights W        the layers' matrices quantised: w4a16, fp8 or int8 (default: as P)\n"
    "  --cache C          keys and values: same (as P, default) or fp8\n"
    "  --device D         cpu, cuda:N or rocm:N (default: the best there is)\n"
    "  --cpu-level L      the highest level of instructions on the CPU (x86-64-v2, ...)\n"
    "  --threads N        on the CPU (default: all)\n"
    "  --peak T           the device's peak in TFLOP/s, instead of that of the best product of the same run\n"
    "  --programmatic     kernels begin before those in front of them have ended (CUDA, sm_90 and later)\n"
    "  --json             writes JSON instead of a table\n"
    "Reading: the least time in which the weights can be read, as a share of a step's. Products: operations of the\n"
    "prompt's products and of attention, as a share of the peak.\n";

/* ---- Arguments ---- */

static bool read_batches(const char *text, request *r) {
    char copy[256], *rest = copy;
    r->batch_count = 0;
    if (strlen(text) >= sizeof copy) return false;
    strcpy(copy, text);
    for (const char *one; (one = strsep(&rest, ","));) {
        if (r->batch_count == BATCHES_MOST || !llama_read_number(one, 1, 65536, &r->batches[r->batch_count]))
            return false;
        r->batch_count++;
    }
    return r->batch_count > 0;
}

static bool read_peak(const char *text, double *out) {
    char *end;
    *out = 1e12 * strtod(text, &end);
    return end != text && !*end && isfinite(*out) && *out > 0;
}

static bool read_option(const char *name, const char *value, request *r) {
    long threads;
    if (!strcmp(name, "shape") && !(r->shape = bench_shape_find(value)))
        return llama_wrong(name, value, "llama3-8b, llama3.2-1b, llama3-70b-shard or tiny");
    if (!strcmp(name, "batch") && !read_batches(value, r))
        return llama_wrong(name, value, "at most 16 numbers from 1 to 65536, with commas");
    if (!strcmp(name, "prompt") && !llama_read_number(value, 1, 1 << 20, &r->prompt))
        return llama_wrong(name, value, "a number from 1 to 2^20");
    if (!strcmp(name, "steps") && !llama_read_number(value, 1, 1 << 20, &r->steps))
        return llama_wrong(name, value, "a number from 1 to 2^20");
    if (!strcmp(name, "precision") && !llama_read_precision(value, &r->precision))
        return llama_wrong(name, value, "f32, f16 or bf16");
    if (!strcmp(name, "weights") && !llama_read_quantisation(value, &r->quantisation))
        return llama_wrong(name, value, "w4a16, fp8 or int8");
    if (!strcmp(name, "cache") && !llama_read_cache(value, &r->fp8_cache))
        return llama_wrong(name, value, "same or fp8");
    if (!strcmp(name, "device") && !llama_read_device(value, &r->device))
        return llama_wrong(name, value, "cpu, cuda:N or rocm:N with N from 0 to 1023");
    if (!strcmp(name, "cpu-level")) r->device.cpu_level = value;
    if (!strcmp(name, "threads")) {
        if (!llama_read_number(value, 1, 1024, &threads)) return llama_wrong(name, value, "a number from 1 to 1024");
        r->device.threads = (int32_t)threads;
    }
    if (!strcmp(name, "peak") && !read_peak(value, &r->peak))
        return llama_wrong(name, value, "a positive number of TFLOP/s");
    if (!strcmp(name, "json")) r->as_json = true;
    if (!strcmp(name, "programmatic")) r->is_programmatic = true;
    return true;
}

static const struct option options[] = {
    {"bench", no_argument, NULL, 0},         {"shape", required_argument, NULL, 0},
    {"batch", required_argument, NULL, 0},   {"prompt", required_argument, NULL, 0},
    {"steps", required_argument, NULL, 0},   {"precision", required_argument, NULL, 0},
    {"weights", required_argument, NULL, 0}, {"cache", required_argument, NULL, 0},
    {"device", required_argument, NULL, 0},  {"cpu-level", required_argument, NULL, 0},
    {"threads", required_argument, NULL, 0}, {"peak", required_argument, NULL, 0},
    {"json", no_argument, NULL, 0},          {"programmatic", no_argument, NULL, 0},
    {"help", no_argument, NULL, 'h'},        {NULL, 0, NULL, 0},
};

static bool read_arguments(int argc, char **argv, request *r) {
    int index = 0;
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":h", options, &index)) != -1;) {
        if (found == 'h') {
            fputs(usage, stdout);
            exit(llama_written() ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        if (found != 0) {
            fprintf(stderr, "llama: %s: %s\n", argv[optind - 1], found == ':' ? "wants a value" : "is no option");
            return false;
        }
        if (!read_option(options[index].name, optarg, r)) return false;
    }
    if (optind < argc || !r->shape) {
        fprintf(stderr, "llama: --bench wants %s: see --bench --help\n", optind < argc ? "options alone" : "a --shape");
        return false;
    }
    return true;
}

bool llama_bench_is_wanted(int argc, char **argv) {
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--bench")) return true;
    return false;
}

/* ---- Measuring ---- */

typedef struct batch_result {
    long batch;
    double seconds; /* of a step */
} batch_result;

typedef struct results {
    kiln_device_info info;
    double opening, weights, first_token; /* seconds; the last from the program's start */
    double prefill;                       /* seconds */
    bool has_graphs;
    uint64_t weight_bytes;
    double prefill_operations;
    bench_rates rates;
    batch_result batches[BATCHES_MOST];
    int32_t tokens[SHOWN]; /* the last ones of the batch's sequences */
    size_t token_count;
} results;

static kiln_status timed(bench_batch *b, kiln_status (*work)(bench_batch *batch), double *out) {
    const double begin = bench_now();
    TRY(work(b));
    TRY(kiln_stream_sync(b->model->format.stream));
    *out = bench_now() - begin;
    return KILN_OK;
}

/* The first prompt finds all cold, and its token is the program's first. */
static kiln_status measure_prefill(bench_batch *b, double begin, results *out) {
    TRY(timed(b, bench_prefill, &out->prefill));
    out->first_token = bench_now() - begin;
    for (int i = 0; i < PREFILLS; i++) {
        double seconds;
        TRY(timed(b, bench_prefill, &seconds));
        if (seconds < out->prefill) out->prefill = seconds;
    }
    return KILN_OK;
}

static kiln_status measure_decode(bench_batch *b, double *out_seconds) {
    const int64_t warm = b->steps < WARM_STEPS ? b->steps : WARM_STEPS;
    TRY(bench_decode(b, warm));
    TRY(kiln_stream_sync(b->model->format.stream));
    const double begin = bench_now();
    TRY(bench_decode(b, b->steps));
    TRY(kiln_stream_sync(b->model->format.stream));
    *out_seconds = (bench_now() - begin) / (double)b->steps;
    return KILN_OK;
}

static kiln_status measure_batch(bench_batch *b, double begin, size_t number, results *out) {
    if (number == 0)
        TRY(measure_prefill(b, begin, out));
    else
        TRY(bench_prefill(b));
    TRY(bench_spread(b));
    TRY(measure_decode(b, &out->batches[number].seconds));
    out->has_graphs = b->prefill && b->decode;
    out->token_count = b->batch < SHOWN ? (size_t)b->batch : SHOWN;
    TRY(kiln_copy(b->model->format.stream, out->tokens, b->tokens, out->token_count * sizeof *out->tokens,
                  KILN_COPY_TO_HOST));
    return kiln_stream_sync(b->model->format.stream);
}

static kiln_status measure_model(const request *r, const bench_model *m, double begin, results *out) {
    out->weight_bytes = bench_weight_bytes(m);
    out->prefill_operations = bench_prefill_operations(m, r->prompt);
    for (size_t i = 0; i < r->batch_count; i++) {
        bench_batch batch;
        out->batches[i].batch = r->batches[i];
        kiln_status status = bench_batch_open(m, r->fp8_cache, r->batches[i], r->prompt, r->steps, &batch);
        if (status == KILN_OK) status = measure_batch(&batch, begin, i, out);
        kiln_stream_sync(m->format.stream);
        bench_batch_close(&batch);
        TRY(status);
    }
    TRY(bench_measure_rates(m, &out->rates));
    if (r->peak > 0) {
        out->rates.products = r->peak;
        out->rates.product_size = 0;
    }
    return KILN_OK;
}

static kiln_status measure_on(const request *r, kiln_stream *stream, double begin, results *out) {
    bench_model model;
    const double before = bench_now();
    kiln_status status = bench_model_open(stream, r->shape, r->precision, r->quantisation, &model);
    out->weights = bench_now() - before;
    if (status == KILN_OK) status = measure_model(r, &model, begin, out);
    kiln_stream_sync(stream);
    bench_model_close(&model);
    return status;
}

static kiln_status measure(const request *r, double begin, results *out) {
    kiln_device *device;
    kiln_stream stream;
    TRY(kiln_device_open(&r->device, &device));
    kiln_status status = kiln_device_get_info(device, &out->info);
    if (status == KILN_OK) status = kiln_stream_open(device, 0, &stream);
    if (status == KILN_OK) {
        out->opening = bench_now() - begin;
        status = kiln_stream_set_programmatic(&stream, r->is_programmatic);
        if (status == KILN_OK) status = measure_on(r, &stream, begin, out);
        kiln_stream_close(&stream);
    }
    kiln_device_close(device);
    return status;
}

/* ---- Results ---- */

static double read_share(const results *all, const batch_result *one) {
    return (double)all->weight_bytes / all->rates.read / one->seconds;
}

static double product_share(const results *all) {
    return all->prefill_operations / all->prefill / all->rates.products;
}

static const char *peak_source(const results *all) {
    static char text[64];
    if (!all->rates.product_size) return "--peak";
    snprintf(text, sizeof text, "gemm %" PRId64, all->rates.product_size);
    return text;
}

static void print_table(const request *r, const results *all) {
    char target[64];
    kiln_target_text(&all->info.target, target, sizeof target);
    printf("%s %s", r->shape->name, llama_precision_name(r->precision));
    if (r->quantisation != LLAMA_AS_THEY_ARE) printf(", weights %s", llama_quantisation_name(r->quantisation));
    if (r->fp8_cache) printf(", cache fp8");
    printf(" on %s (%s)%s: %.2f GB of weights\n", all->info.name, target, all->has_graphs ? ", as graphs" : "",
           1e-9 * (double)all->weight_bytes);
    printf("reads %.1f GB/s, products %.3f TFLOP/s (%s)\n", 1e-9 * all->rates.read, 1e-12 * all->rates.products,
           peak_source(all));
    printf("device %.2f s, weights %.2f s, first token %.2f s after the start\n", all->opening, all->weights,
           all->first_token);
    printf("prompt of %ld: %.2f ms, %.1f tokens/s, %.3f TFLOP/s, %.0f%% of products\n", r->prompt, 1e3 * all->prefill,
           (double)r->prompt / all->prefill, 1e-12 * all->prefill_operations / all->prefill, 100 * product_share(all));
    for (size_t i = 0; i < r->batch_count; i++) {
        const batch_result *one = &all->batches[i];
        printf("batch %ld: %.3f ms a step, %.1f tokens/s, %.0f%% of reading\n", one->batch, 1e3 * one->seconds,
               (double)one->batch / one->seconds, 100 * read_share(all, one));
    }
}

/* A device's name, whose driver may write anything. */
static void write_string(const char *key, const char *value) {
    printf("  \"%s\": \"", key);
    for (; *value; value++)
        if (*value == '"' || *value == '\\' || (unsigned char)*value < 0x20 || (unsigned char)*value > 0x7e)
            printf("\\u%04x", (unsigned char)*value);
        else
            putchar(*value);
    puts("\",");
}

static void write_json(const request *r, const results *all) {
    char target[64];
    kiln_target_text(&all->info.target, target, sizeof target);
    puts("{");
    write_string("shape", r->shape->name);
    write_string("precision", llama_precision_name(r->precision));
    write_string("weights", llama_quantisation_name(r->quantisation));
    write_string("cache", r->fp8_cache ? "fp8" : "same");
    write_string("device", all->info.name);
    write_string("target", target);
    write_string("driver", all->info.driver);
    printf("  \"threads\": %d,\n", all->info.backend == KILN_BACKEND_CPU ? all->info.multiprocessors : 0);
    printf("  \"graphs\": %s,\n", all->has_graphs ? "true" : "false");
    printf("  \"programmatic\": %s,\n", r->is_programmatic ? "true" : "false");
    printf("  \"weight_bytes\": %" PRIu64 ",\n", all->weight_bytes);
    printf("  \"read_bytes_per_second\": %.6g,\n", all->rates.read);
    printf("  \"peak_operations_per_second\": %.6g,\n", all->rates.products);
    write_string("peak", peak_source(all));
    printf("  \"seconds\": {\"device\": %.6g, \"weights\": %.6g, \"first_token\": %.6g},\n", all->opening, all->weights,
           all->first_token);
    printf("  \"prefill\": {\"tokens\": %ld, \"seconds\": %.6g, \"tokens_per_second\": %.6g, \"operations\": %.6g, "
           "\"share_of_peak\": %.4g},\n",
           r->prompt, all->prefill, (double)r->prompt / all->prefill, all->prefill_operations, product_share(all));
    printf("  \"steps\": %ld,\n  \"decode\": [", r->steps);
    for (size_t i = 0; i < r->batch_count; i++) {
        const batch_result *one = &all->batches[i];
        printf(
            "%s\n    {\"batch\": %ld, \"seconds_per_step\": %.6g, \"tokens_per_second\": %.6g, \"share_of_reading\": "
            "%.4g}",
            i ? "," : "", one->batch, one->seconds, (double)one->batch / one->seconds, read_share(all, one));
    }
    printf("\n  ],\n  \"last_tokens\": [");
    for (size_t i = 0; i < all->token_count; i++)
        printf("%s%d", i ? ", " : "", all->tokens[i]);
    printf("]\n}\n");
}

int llama_bench(int argc, char **argv) {
    const double begin = bench_now();
    request r = {.batches = {1}, .batch_count = 1, .prompt = 1024, .steps = 128, .precision = LLAMA_BF16};
    results all = {.opening = 0};
    if (!read_arguments(argc, argv, &r)) return EXIT_WRONG_INPUT;
    const kiln_status status = measure(&r, begin, &all);
    if (status != KILN_OK) {
        fprintf(stderr, "llama: --bench: %s: %s\n", kiln_status_text(status), kiln_last_error());
        return EXIT_FAILURE;
    }
    if (r.as_json)
        write_json(&r, &all);
    else
        print_table(&r, &all);
    return llama_written() ? EXIT_SUCCESS : EXIT_FAILURE;
}
