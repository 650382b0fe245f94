/* llama: a Llama model in the format of llama2.c tells a story, on any backend. The story is on standard output, what
 * it took on standard error. */
#include "arguments.h"
#include "bench.h"
#include "decoder.h"
#include "perplexity.h"
#include "speculate.h"
#include "tokenizer.h"
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_WRONG_INPUT = 2 }; /* EXIT_FAILURE: the device or the output failed */

typedef struct request {
    const char *model, *tokenizer, *prompt;
    const char *logits; /* a file for the logits of each step, float32; NULL: none */
    bool perplexity;    /* is wanted */
    long steps;
    kiln_device_options device;
    llama_options options;
    llama_speculation_options speculation;
} request;

static const char usage[] =
    "usage: llama MODEL TOKENIZER [OPTION...]\n"
    "       llama --bench --shape SHAPE [OPTION...]: measures a model of random weights; --bench --help\n"
    "  --device D         cpu, cuda:N or rocm:N (default: the best there is)\n"
    "  --precision P      f32 (default), f16 or bf16\n"
    "  --weights W        the layers' matrices in fewer bits, quantised as they are loaded: w4a16 (4 bits in\n"
    "                     groups), or fp8 or int8, with activations quantised too (default: as P)\n"
    "  --cache C          same (default): of the precision; fp8: a byte for each element\n"
    "  --prompt TEXT      how the story begins\n"
    "  --steps N          how many tokens, the prompt's among them (default 200); at most the model's length\n"
    "  --temperature T    0 (default): the most likely token; 1: by the model's own probabilities\n"
    "  --seed N           of the random numbers with which tokens are drawn (default 1)\n"
    "  --cpu-level L      the highest level of instructions on the CPU (x86-64-v2, ...)\n"
    "  --threads N        on the CPU (default: all)\n"
    "  --logits FILE      writes the logits of each step, as float32\n"
    "  --perplexity       prints the model's perplexity over the story, the prompt included\n"
    "  --draft D          drafts tokens, which the model verifies in one pass: ngram takes them from the\n"
    "                     story so far; the file of a smaller model with the same vocabulary generates\n"
    "                     them. The story is the same\n"
    "  --draft-layers N   how many of the smaller model's layers to use (default: all)\n"
    "  --draft-tokens N   how many tokens to draft for a pass, 1 to 63 (default 4)\n"
    "  --tree PATHS       drafts a tree instead: 0,1,00,01 are two tokens and two that follow the first; a\n"
    "                     digit is the rank of a token among the draft's candidates, 0 the most likely\n"
    "The exit status is 0 when the story is complete, 1 when the device or the output failed, and\n"
    "2 when an option, the model, the tokenizer or the prompt is wrong.\n";

/* ---- Arguments ---- */

/* 0, or what `sample` takes. */
static bool read_temperature(const char *text, float *out) {
    char *end;
    errno = 0; /* what is too small for a float becomes 0, and is none */
    *out = strtof(text, &end);
    return end != text && !*end && !errno && (*out == 0 || (*out >= 1e-6f && *out <= 100));
}

static bool read_option(const char *name, const char *value, request *r) {
    long number;
    if (!strcmp(name, "prompt")) r->prompt = value;
    if (!strcmp(name, "logits")) r->logits = value;
    if (!strcmp(name, "cpu-level")) r->device.cpu_level = value;
    if (!strcmp(name, "device") && !llama_read_device(value, &r->device))
        return llama_wrong(name, value, "cpu, cuda:N or rocm:N with N from 0 to 1023");
    if (!strcmp(name, "precision") && !llama_read_precision(value, &r->options.precision))
        return llama_wrong(name, value, "f32, f16 or bf16");
    if (!strcmp(name, "weights") && !llama_read_quantisation(value, &r->options.quantisation))
        return llama_wrong(name, value, "w4a16, fp8 or int8");
    if (!strcmp(name, "perplexity")) r->perplexity = true;
    if (!strcmp(name, "cache") && !llama_read_cache(value, &r->options.fp8_cache))
        return llama_wrong(name, value, "same or fp8");
    if (!strcmp(name, "steps") && !llama_read_number(value, 1, 1 << 20, &r->steps))
        return llama_wrong(name, value, "a number from 1 to 2^20");
    if (!strcmp(name, "seed")) {
        if (!llama_read_number(value, 0, LONG_MAX, &number))
            return llama_wrong(name, value, "a number from 0 to 2^63 - 1");
        r->options.seed = (uint64_t)number;
    }
    if (!strcmp(name, "threads")) {
        if (!llama_read_number(value, 1, 1024, &number)) return llama_wrong(name, value, "a number from 1 to 1024");
        r->device.threads = (int32_t)number;
    }
    if (!strcmp(name, "draft")) r->speculation.draft = value;
    if (!strcmp(name, "draft-layers")) {
        if (!llama_read_number(value, 1, 1 << 20, &number)) return llama_wrong(name, value, "a number from 1 to 2^20");
        r->speculation.layers = (int32_t)number;
    }
    if (!strcmp(name, "tree")) r->speculation.tree = value;
    if (!strcmp(name, "draft-tokens")) {
        if (!llama_read_number(value, 1, LLAMA_NODES_MOST - 1, &number))
            return llama_wrong(name, value, "a number from 1 to 63");
        r->speculation.tokens = (int32_t)number;
    }
    if (!strcmp(name, "temperature") && !read_temperature(value, &r->options.temperature))
        return llama_wrong(name, value, "0, or a number from 1e-6 to 100");
    return true;
}

enum { LONG = 256, HELP = LONG + 16 }; /* behind all letters */

/* No two have the same number: getopt would take the beginning of both for the first. */
static const struct option options[] = {
    {"device", required_argument, NULL, LONG},
    {"precision", required_argument, NULL, LONG + 1},
    {"prompt", required_argument, NULL, LONG + 2},
    {"steps", required_argument, NULL, LONG + 3},
    {"temperature", required_argument, NULL, LONG + 4},
    {"seed", required_argument, NULL, LONG + 5},
    {"cpu-level", required_argument, NULL, LONG + 6},
    {"threads", required_argument, NULL, LONG + 7},
    {"logits", required_argument, NULL, LONG + 8},
    {"draft", required_argument, NULL, LONG + 9},
    {"draft-layers", required_argument, NULL, LONG + 10},
    {"draft-tokens", required_argument, NULL, LONG + 11},
    {"weights", required_argument, NULL, LONG + 12},
    {"perplexity", no_argument, NULL, LONG + 13},
    {"cache", required_argument, NULL, LONG + 14},
    {"tree", required_argument, NULL, LONG + 15},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

/* Of letters that stand together argv tells no more than where they begin. */
static bool refuse_option(const char *argument, const char *why) {
    if (optopt > 0 && optopt < LONG)
        fprintf(stderr, "llama: -%c: %s\n", optopt, why);
    else
        fprintf(stderr, "llama: %s: %s\n", argument, why);
    return false;
}

/* Options that do not go together. */
static bool agree(request *r) {
    const llama_speculation_options *s = &r->speculation;
    const char *why = NULL;
    if (!s->draft && s->layers) why = "--draft-layers: wants --draft";
    if (!s->draft && s->tokens) why = "--draft-tokens: wants --draft";
    if (!s->draft && s->tree) why = "--tree: wants --draft";
    if (s->tree && s->tokens) why = "--tree: cannot go with --draft-tokens, which are a tree without branches";
    if (s->draft && r->logits) why = "--draft: cannot go with --logits, which are of each step";
    if (s->draft && r->perplexity) why = "--draft: cannot go with --perplexity, which is of each step";
    if (s->draft && r->options.fp8_cache) why = "--draft: cannot go with --cache fp8";
    if (why) fprintf(stderr, "llama: %s\n", why);
    if (!s->tokens) r->speculation.tokens = 4;
    return !why;
}

static bool read_arguments(int argc, char **argv, request *r) {
    opterr = 0;
    for (int found; (found = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (found == 'h' || found == HELP) {
            fputs(usage, stdout);
            exit(llama_written() ? EXIT_SUCCESS : EXIT_FAILURE);
        }
        if (found < LONG) return refuse_option(argv[optind - 1], found == ':' ? "wants a value" : "is no option");
        if (!read_option(options[found - LONG].name, optarg, r)) return false;
    }
    if (argc - optind != 2) {
        fprintf(stderr, "llama: wants MODEL and TOKENIZER, and was given %d arguments: see --help\n", argc - optind);
        return false;
    }
    r->model = argv[optind];
    r->tokenizer = argv[optind + 1];
    return agree(r);
}

/* ---- The story ---- */

static void show_progress(size_t done, size_t all) {
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, done < all ? "\rloading %zu%%" : "\r              \r", 100 * done / all);
}

static bool failed(kiln_status status, const char *what) {
    if (status == KILN_OK) return false;
    fprintf(stderr, "llama: %s: %s: %s\n", what, kiln_status_text(status), kiln_last_error());
    return true;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool write_logits(const float *logits, size_t count, FILE *file) {
    if (fwrite(logits, sizeof *logits, count, file) == count) return true;
    fprintf(stderr, "llama: --logits: %s\n", strerror(errno));
    return false;
}

/* What generating a story takes. */
typedef struct teller {
    llama_decoder *decoder;        /* NULL where there is a draft */
    llama_speculation speculation; /* zeroed where there is none */
    const llama_tokenizer *tokenizer;
    int32_t *prompt; /* tokens */
    int32_t prompt_count, steps;
    FILE *logits_file;         /* NULL: none is wanted */
    bool perplexity;           /* is wanted */
    llama_perplexity measured; /* of the tokens so far */
    float *logits;
} teller;

static kiln_status take_step(teller *t, int32_t token, int32_t position, int32_t *out_next) {
    return t->decoder ? llama_decoder_step(t->decoder, token, position, out_next)
                      : llama_speculate(&t->speculation, position + 1, out_next);
}

/* What is wanted of a step's logits, after which `next` comes. */
static bool take_logits(teller *t, int32_t next) {
    const size_t count = (size_t)t->tokenizer->count;
    if (!t->logits_file && !t->perplexity) return true;
    if (failed(llama_decoder_logits(t->decoder, t->logits), "logits")) return false;
    if (t->perplexity && next >= 0 && next < t->tokenizer->count)
        llama_perplexity_add(&t->measured, t->logits, count, next);
    return !t->logits_file || write_logits(t->logits, count, t->logits_file);
}

static void show_speculation(const llama_speculation *s, int32_t tokens) {
    double rate = s->drafted ? 100.0 * (double)s->accepted / (double)s->drafted : 0;
    fprintf(stderr,
            "%" PRId64 " passes for %d tokens, %" PRId64 " steps saved: %.1f%% of %" PRId64 " draft tokens accepted\n",
            s->passes, tokens, tokens - s->passes, rate, s->drafted);
}

static bool has_graph(const teller *t) {
    return t->decoder ? llama_decoder_has_graph(t->decoder) : llama_tree_decoder_has_graph(t->speculation.decoder);
}

static bool tell(teller *t) {
    int32_t token = t->prompt[0], next, position = 0;
    double begin = 0;
    while (position < t->steps) {
        if (failed(take_step(t, token, position, &next), "step")) return false;
        if (++position < t->prompt_count) next = t->prompt[position];
        if (!take_logits(t, next)) return false;
        if (position == 1) begin = seconds(); /* the first step finds all memory cold */
        if (next < 0 || next >= t->tokenizer->count) {
            fprintf(stderr, "llama: the model gave token %d, which is none\n", next);
            return false;
        }
        if (next == LLAMA_BEGIN || next == LLAMA_END) break;
        llama_piece piece;
        llama_decode(t->tokenizer, token, next, &piece);
        fwrite(piece.bytes, 1, piece.size, stdout);
        if (!llama_written()) return false;
        token = next;
    }
    printf("\n");
    if (!llama_written()) return false;
    if (position > 1)
        fprintf(stderr, "%.1f tokens per second%s\n", (position - 1) / (seconds() - begin),
                has_graph(t) ? ", as a graph" : "");
    if (t->perplexity)
        fprintf(stderr, "perplexity %.3f over %" PRId64 " tokens\n", llama_perplexity_value(&t->measured),
                t->measured.tokens);
    if (!t->decoder) show_speculation(&t->speculation, t->speculation.count - t->prompt_count);
    return true;
}

static bool tell_on(kiln_stream *stream, const request *r, const llama_checkpoint *checkpoint, teller *t) {
    kiln_status status = r->speculation.draft
                             ? llama_speculation_create(&t->speculation, stream, checkpoint, &r->options, show_progress)
                             : llama_decoder_create(stream, checkpoint, &r->options, show_progress, &t->decoder);
    if (status != KILN_OK) show_progress(1, 1); /* the error has a line of its own */
    bool good = !failed(status, "loading") && tell(t);
    llama_decoder_destroy(t->decoder);
    llama_speculation_destroy(&t->speculation);
    return good;
}

static bool open_and_tell(const request *r, const llama_checkpoint *checkpoint, teller *t) {
    kiln_device *device = NULL;
    kiln_stream stream = {0};
    bool good = !failed(kiln_device_open(&r->device, &device), "device") &&
                !failed(kiln_stream_open(device, 0, &stream), "stream") && tell_on(&stream, r, checkpoint, t);
    kiln_stream_close(&stream);
    kiln_device_close(device);
    return good;
}

/* Whether two paths lead to one file. */
static bool is_same_file(const char *one, const char *other) {
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static bool open_logits(const request *r, FILE **out) {
    if (is_same_file(r->logits, r->model) || is_same_file(r->logits, r->tokenizer))
        return llama_wrong("logits", r->logits, "another file than the model and the tokenizer");
    *out = fopen(r->logits, "wb");
    if (!*out) fprintf(stderr, "llama: --logits %s: %s\n", r->logits, strerror(errno));
    return *out != NULL;
}

static bool wrong_prompt(int32_t why) {
    fprintf(stderr, "llama: --prompt: %s\n",
            why == LLAMA_TOO_LONG   ? "has more tokens than --steps and the model's length leave room for"
            : why == LLAMA_NO_TOKEN ? "has a byte that no token has"
                                    : "there is no memory for it");
    return false;
}

/* The model and the tokenizer. */
static bool open_files(const request *r, llama_checkpoint *checkpoint, llama_tokenizer *tokenizer) {
    char reason[LLAMA_REASON_SIZE];
    if (llama_checkpoint_open(r->model, checkpoint, reason) &&
        llama_tokenizer_open(r->tokenizer, checkpoint->config.vocabulary_size, tokenizer, reason))
        return true;
    fprintf(stderr, "llama: %s\n", reason);
    return false;
}

/* The draft, as far as it needs no device. */
static bool prepare_draft(const request *r, const llama_checkpoint *checkpoint, teller *t) {
    char reason[LLAMA_REASON_SIZE];
    if (!r->speculation.draft || llama_speculation_prepare(&t->speculation, &r->speculation, &checkpoint->config,
                                                           t->prompt, t->prompt_count, t->steps + 1, reason))
        return true;
    fprintf(stderr, "llama: %s\n", reason);
    return false;
}

/* Everything that needs no device. */
static bool prepare(const request *r, const llama_checkpoint *checkpoint, teller *t) {
    const int32_t length = checkpoint->config.length;
    t->perplexity = r->perplexity;
    t->steps = r->steps < length ? (int32_t)r->steps : length;
    t->prompt = malloc(sizeof *t->prompt * ((size_t)t->steps + 1));
    t->logits = malloc(sizeof *t->logits * (size_t)t->tokenizer->count);
    if (!t->prompt || !t->logits) {
        fprintf(stderr, "llama: there is no memory for the prompt and the logits\n");
        return false;
    }
    t->prompt_count = llama_encode(t->tokenizer, r->prompt, t->prompt, t->steps + 1);
    if (t->prompt_count < 0) return wrong_prompt(t->prompt_count);
    if (!prepare_draft(r, checkpoint, t)) return false;
    return !r->logits || open_logits(r, &t->logits_file);
}

/* Where a standard stream is closed no other file must get its number, and be written to in its place. To this one
 * nothing can be written. */
static void hold_standard_streams(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 && open("/dev/null", O_RDONLY) < 0) exit(EXIT_FAILURE);
}

/* Closes the file of the logits; what it could not hold may show only now. */
static bool close_logits(FILE *file, bool good) {
    if (!file || fclose(file) == 0 || !good) return good;
    fprintf(stderr, "llama: --logits: %s\n", strerror(errno));
    return false;
}

int main(int argc, char **argv) {
    request r = {.prompt = "", .steps = 200, .options = {.seed = 1}};
    llama_checkpoint checkpoint = {0};
    llama_tokenizer tokenizer = {0};
    teller t = {.tokenizer = &tokenizer};
    int status = EXIT_WRONG_INPUT;
    hold_standard_streams();
    if (llama_bench_is_wanted(argc, argv)) return llama_bench(argc, argv);
    if (read_arguments(argc, argv, &r) && open_files(&r, &checkpoint, &tokenizer) && prepare(&r, &checkpoint, &t)) {
        bool good = open_and_tell(&r, &checkpoint, &t);
        status = close_logits(t.logits_file, good) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    llama_speculation_destroy(&t.speculation);
    free(t.logits);
    free(t.prompt);
    llama_tokenizer_close(&tokenizer);
    llama_checkpoint_close(&checkpoint);
    return status;
}
