#include "engine.h"
#include "docs/examples/llama/tokenizer.h"
#include "docs/examples/llama/try.h"
#include <stdlib.h>
#include <string.h>

/* What a running generation has of a step. */
typedef struct engine_part {
    generation *generation;
    int32_t rows;
    bool chosen; /* its last row is the sequence's last token */
} engine_part;

/* ---- Who runs ---- */

static void stop_running(engine *e, int32_t place) {
    kiln_blocks_end(e->blocks, e->running[place]->sequence);
    e->running_count--;
    memmove(&e->running[place], &e->running[place + 1], sizeof *e->running * (size_t)(e->running_count - place));
}

static void end_running(engine *e, int32_t place, generation_end why, const char *text) {
    generation *g = e->running[place];
    stop_running(e, place);
    e->counts.cancelled_requests += why == GENERATION_CANCELLED;
    e->counts.failed_requests += why == GENERATION_FAILED || why == GENERATION_CLOSED;
    g->end(g, why, text);
}

void engine_end_all(engine *e, generation_end why, const char *text) {
    while (e->running_count)
        end_running(e, e->running_count - 1, why, text);
}

int32_t engine_used_blocks(const engine *e) {
    kiln_blocks_info info;
    return kiln_blocks_get_info(e->blocks, &info) == KILN_OK ? info.block_count - info.free_blocks : 0;
}

/* Each that runs must be able to take a block more, or one of them would soon be preempted. */
bool engine_admit(engine *e, generation *g) {
    kiln_blocks_info info;
    int64_t reused;
    if (e->running_count == e->options.max_batch) return false;
    if (kiln_blocks_begin(e->blocks, g->tokens, g->count, 0, &g->sequence, &reused) != KILN_OK) return false;
    kiln_blocks_get_info(e->blocks, &info);
    if (info.free_blocks < e->running_count) {
        kiln_blocks_end(e->blocks, g->sequence);
        return false;
    }
    g->computed = (int32_t)reused;
    e->counts.prompt_tokens += g->count;
    e->counts.reused_tokens += reused;
    e->running[e->running_count++] = g;
    return true;
}

static void end_cancelled(engine *e) {
    for (int32_t i = e->running_count - 1; i >= 0; i--)
        if (e->running[i]->is_cancelled(e->running[i])) end_running(e, i, GENERATION_CANCELLED, "cancelled");
}

/* ---- A step ---- */

/* Divides the rows of a step: one for each generation whose prompt is computed, the others for prompts in the order of
 * their admission. Returns how many parts there are. */
static int32_t divide(engine *e) {
    int32_t parts = 0, left = e->options.max_step_tokens;
    for (int prompts = 0; prompts < 2; prompts++) {
        for (int32_t i = 0; i < e->running_count && left; i++) {
            generation *g = e->running[i];
            int32_t rows = g->count - g->computed;
            if ((rows > 1) != prompts) continue;
            if (rows > left) rows = left;
            left -= rows;
            e->parts[parts++] = (engine_part){g, rows, g->computed + rows == g->count};
        }
    }
    return parts;
}

static void fill_choice(paged_batch *b, const generation *g) {
    const int32_t place = b->chosen++;
    b->chosen_rows[place] = b->rows - 1;
    b->draws[place] = g->count - 1;
    b->seeds[place] = g->sampling.seed;
    b->temperatures[place] = g->sampling.temperature;
    b->top_k[place] = g->sampling.top_k;
    b->top_p[place] = g->sampling.top_p;
    b->min_p[place] = g->sampling.min_p;
}

static kiln_status fill_batch(engine *e, int32_t parts) {
    paged_batch *b = paged_llama_batch(e->model);
    b->sequences = parts;
    b->rows = b->chosen = b->max_rows_of_sequence = 0;
    for (int32_t i = 0; i < parts; i++) {
        const engine_part *part = &e->parts[i];
        const generation *g = part->generation;
        TRY(kiln_blocks_get_slots(e->blocks, g->sequence, g->computed, part->rows, b->slots + b->rows));
        b->first_rows[i] = b->rows;
        for (int32_t row = 0; row < part->rows; row++, b->rows++) {
            b->tokens[b->rows] = g->tokens[g->computed + row];
            b->positions[b->rows] = g->computed + row;
        }
        b->lengths[i] = g->computed + part->rows;
        if (part->rows > b->max_rows_of_sequence) b->max_rows_of_sequence = part->rows;
        if (part->chosen) fill_choice(b, g);
        e->sequences[i] = g->sequence;
    }
    b->first_rows[parts] = b->rows;
    return kiln_blocks_get_tables(e->blocks, e->sequences, parts, b->max_blocks, b->block_table, NULL);
}

/* Hands a chosen token over. Returns whether the generation goes on. */
static bool take_token(engine *e, generation *g, int32_t token, generation_end *out_why, const char **out_text) {
    *out_text = "";
    *out_why = GENERATION_STOP;
    if (token == LLAMA_BEGIN || token == LLAMA_END) return false;
    *out_why = GENERATION_FAILED;
    *out_text = "the model gave no token: every logit is NaN or -inf";
    if (token < 0 || token >= e->checkpoint->config.vocabulary_size) return false;
    *out_why = GENERATION_LENGTH;
    *out_text = "";
    g->tokens[g->count++] = token;
    e->counts.generated_tokens++;
    g->token(g, token);
    return g->count < g->limit;
}

static int32_t place_of(const engine *e, const generation *g) {
    int32_t place = 0;
    while (e->running[place] != g)
        place++;
    return place;
}

/* What was computed may be reused, and each that wanted a token gets it. */
static kiln_status take_tokens(engine *e, int32_t parts) {
    int32_t chosen = 0;
    for (int32_t i = 0; i < parts; i++) {
        const engine_part *part = &e->parts[i];
        generation *g = part->generation;
        generation_end why;
        const char *text;
        g->computed += part->rows;
        TRY(kiln_blocks_publish(e->blocks, g->sequence, g->computed));
        if (part->chosen && !take_token(e, g, e->chosen[chosen++], &why, &text))
            end_running(e, place_of(e, g), why, text);
    }
    return KILN_OK;
}

/* Makes room in the cache for the tokens that were chosen. Where there is none the youngest generation gives its blocks
 * back, be it the one that asks. Sequences are never forked, so no block is shared that is written. */
static kiln_status grow(engine *e, generation **out_preempted) {
    for (int32_t i = 0; i < e->running_count; i++) {
        generation *g = e->running[i];
        int64_t length;
        kiln_block_copy copy;
        TRY(kiln_blocks_get_length(e->blocks, g->sequence, &length));
        while (i < e->running_count && length < g->count) {
            kiln_status status = kiln_blocks_append(e->blocks, g->sequence, g->tokens + length, 1, &copy);
            if (status == KILN_OK) break;
            if (status != KILN_ERROR_OUT_OF_MEMORY) return status;
            generation *youngest = e->running[e->running_count - 1];
            stop_running(e, e->running_count - 1);
            youngest->next = *out_preempted;
            *out_preempted = youngest;
            e->counts.preemptions++;
        }
    }
    return KILN_OK;
}

kiln_status engine_step(engine *e, generation **out_preempted) {
    *out_preempted = NULL;
    end_cancelled(e);
    int32_t parts = divide(e);
    if (!parts) return KILN_OK;
    TRY(fill_batch(e, parts));
    TRY(paged_llama_step(e->model, e->chosen));
    e->counts.steps++;
    e->counts.step_tokens += paged_llama_batch(e->model)->rows;
    TRY(take_tokens(e, parts));
    return grow(e, out_preempted);
}

/* ---- Life ---- */

static kiln_status allocate(engine *e) {
    const size_t batch = (size_t)e->options.max_batch;
    e->running = calloc(batch, sizeof *e->running);
    e->parts = calloc(batch, sizeof *e->parts);
    e->sequences = calloc(batch, sizeof *e->sequences);
    e->chosen = calloc(batch, sizeof *e->chosen);
    return e->running && e->parts && e->sequences && e->chosen ? KILN_OK : KILN_ERROR_OUT_OF_MEMORY;
}

static kiln_status open_all(engine *e) {
    const engine_options *o = &e->options;
    const kiln_blocks_options blocks = {.block_count = o->block_count,
                                        .block_size = o->block_size,
                                        .max_sequences = o->max_batch,
                                        .max_blocks =
                                            (e->checkpoint->config.length + o->block_size - 1) / o->block_size,
                                        .no_reuse = o->no_reuse,
                                        .seed = o->hash_seed};
    const paged_llama_options model = {.precision = o->precision,
                                       .max_sequences = o->max_batch,
                                       .max_rows = o->max_step_tokens,
                                       .block_count = o->block_count,
                                       .block_size = o->block_size};
    TRY(allocate(e));
    TRY(kiln_blocks_create(&blocks, &e->blocks));
    TRY(kiln_device_open(&o->device, &e->device));
    TRY(kiln_stream_open(e->device, 0, &e->stream));
    return paged_llama_create(&e->stream, e->checkpoint, &model, &e->model);
}

kiln_status engine_open(engine *e) {
    kiln_status status = open_all(e);
    if (status != KILN_OK) engine_close(e);
    return status;
}

void engine_close(engine *e) {
    paged_llama_destroy(e->model);
    kiln_stream_close(&e->stream);
    kiln_device_close(e->device);
    kiln_blocks_destroy(e->blocks);
    free(e->running);
    free(e->parts);
    free(e->sequences);
    free(e->chosen);
    e->model = NULL;
    e->device = NULL;
    e->blocks = NULL;
    e->running = NULL;
    e->parts = NULL;
    e->sequences = NULL;
    e->chosen = NULL;
}
