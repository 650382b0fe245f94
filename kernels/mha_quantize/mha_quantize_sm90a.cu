/* mha_quantize for sm_90a: mha_quantize_gpu.c, whose kernels may begin before the preceding kernel has ended, whose
 * codes of E4M3 an instruction makes, and which have a shorter way for most tiles, mha_quantize_whole.h; and
 * mha_quantize_once, which reads k and v from memory once.
 *
 * mha_quantize_once: what the three kernels of mha_quantize_gpu.c do, in one launch whose blocks are ordered so that
 * the codes of some sequences' head of k or v, a unit, follow its statistics closely: L2 still has what these read. A
 * period of the grid has the blocks of one unit's statistics, of another's codes, that many periods before, and a share
 * of q's, evenly mixed, so that memory is read and written all the time. The block that finds the statistics of the
 * last chunk of a sequence joins them, and counts the sequence; blocks of codes load their tokens and then wait for the
 * sequences of their unit. They wait for blocks of lower numbers alone, which have begun before (as scans with
 * look-back assume, too); 396 are resident, and the last of a unit's statistics is 640 before its first codes. Codes,
 * q, and k and v the second time, go through L2 as what is evicted first. It is for sequences of one length that tiles
 * of tokens divide, and for heads of 128 elements. mha_quantize_clear zeroes the counters.
 *
 * Floor: q, k and v are read once, and a byte is written for each element. For q, k and v of bf16, 67 MB each: 302 MB
 * at the speed of a copy are 103 us. Measured before (H100, driver 580.159.04, 2026-11-26): 146 us for 4 sequences of
 * 4096 tokens, 166 for one of 16384, with the way of mha_quantize_gpu.c for all tiles, of which the instructions alone
 * took some 79 us; six divisions before the first load; four barriers between a tile's loads and its codes; statistics
 * of 16 KB in flight a block that met in eight steps; and codes that began while their statistics were being made,
 * since the lag counted from the first of these to the last of those. Predicted, not measured, as it is: instructions
 * 50 us, 32 KB in flight a block of either kind, three blocks a multiprocessor. A model of L2 that evicts what was used
 * least recently reads 201 MB from memory with a lag of 512 blocks if it has 32 MB, and if it heeds the hints 16 MB;
 * the three launches read 335. Tried: four blocks a multiprocessor, whose 64 registers do not suffice by three. */
#include "kernels/arch/sm90a.h"
#include "kernels/arch/sm90a_programmatic.h"
#include "kernels/common/tuned.h"

#define WHOLE
#define CHANNELS_WAIT(of) channels_wait((const channels_count *)(of))
#define LAST_LOAD(from)   load_last(from)
#define LAST_STORE(to, p) store_last(to, p)

/* What is loaded for the last time. */
KILN_INLINE kiln_vector load_last(const kiln_element *from) {
    const uint4 words = __ldcs((const uint4 *)from);
    return {{words.x, words.y, words.z, words.w}};
}

template <class piece_type> KILN_INLINE void store_last(uint8_t *to, piece_type p) {
    __stcs((uint2 *)to, make_uint2(p.words[0], p.words[1]));
}

/* What a block of codes waits for. */
typedef struct channels_count {
    const uint32_t *joined; /* NULL: nothing */
    uint32_t sequences;
} channels_count;

/* of: NULL for nothing. All threads of the block call this. */
KILN_INLINE void channels_wait(const channels_count *of) {
    if (!of) return;
    if (kiln_thread() == 0 && of->joined) kiln_sm90a_wait_count(of->joined, of->sequences);
    kiln_barrier();
}

#include "kernels/mha_quantize/mha_quantize_gpu.c"
#include "kernels/mha_quantize/mha_quantize_once_args.h"

KILN_TUNED_PARTS(f16 bf16)
KILN_PROGRAMMATIC(mha_quantize_channels)
KILN_PROGRAMMATIC(mha_quantize_join)
KILN_PROGRAMMATIC(mha_quantize_codes)
KILN_PROGRAMMATIC(mha_quantize_clear)
KILN_PROGRAMMATIC(mha_quantize_once)

KILN_INLINE uint32_t quotient(uint32_t number, kiln_divisor divisor) {
    return divisor.reciprocal ? __umulhi(number, divisor.reciprocal) : number;
}

/* Whether a block is one of those that are spread; *number becomes its number among these, or among the others. */
KILN_INLINE bool is_of(kiln_spread spread, uint32_t *number) {
    const uint32_t before = quotient(*number, spread.every);
    if (before < spread.count && before * spread.every.by == *number) {
        *number = before;
        return true;
    }
    *number -= before < spread.count ? before + 1 : spread.count;
    return false;
}

/* A unit's place. */
typedef struct unit {
    uint32_t tensor, kv_head, group; /* tensor: 0 is k, 1 is v */
    uint32_t first, sequences;
} unit;

KILN_INLINE unit unit_of(const kiln_mha_quantize_once_args *args, uint32_t number) {
    unit u;
    u.tensor = number % 2;
    u.group = quotient(number / 2, args->kv_heads);
    u.kv_head = number / 2 - u.group * args->kv_heads.by;
    u.first = u.group * args->group;
    u.sequences = args->of.batch - u.first < args->group ? args->of.batch - u.first : args->group;
    return u;
}

/* The statistics of one chunk; after the last of a sequence, its means and scales. */
KILN_INLINE void once_chunk(const kiln_mha_quantize_once_args *args, uint32_t number, uint32_t chunk,
                            channel_facts &facts, uint32_t *shared_before) {
    const kiln_mha_quantize_args *of = &args->of;
    const unit u = unit_of(args, number);
    const uint32_t sequence = quotient(chunk, args->chunks_of_sequence), d = kiln_thread();
    const uint32_t batch = u.first + sequence;
    if (sequence >= u.sequences || !needs_channels(of, u.tensor)) return; /* the whole block */
    chunk_facts(of, u.tensor, batch, u.kv_head, chunk - sequence * of->chunks, facts);
    kiln_barrier();
    if (d == 0) *shared_before = kiln_sm90a_count(&args->arrived[(batch * of->kv_heads + u.kv_head) * 2 + u.tensor]);
    kiln_barrier();
    if (*shared_before + 1 != of->chunks) return;
    if (d < of->head_dim) join_channel(of, u.tensor, batch, u.kv_head, d);
    kiln_barrier();
    if (d == 0) kiln_sm90a_count(&args->joined[number]);
}

/* The codes of one tile of a unit, or of q. */
KILN_INLINE void once_codes(const kiln_mha_quantize_once_args *args, uint32_t period, uint32_t number, bool of_query,
                            shared_numbers *shared) {
    const kiln_mha_quantize_args *of = &args->of;
    channels_count awaited = {0, 0};
    segment s = {0, 0, 0, false};
    head h;
    if (of_query) {
        const uint32_t item = period * args->queries + number, tile = quotient(item, args->heads);
        if (!of->heads || !head_of(&h, of, item - tile * of->heads, tile)) return; /* the whole block */
    } else {
        const uint32_t before = period - args->lag;
        if (before >= args->units) return;
        const unit u = unit_of(args, before);
        const bool needs = needs_channels(of, u.tensor);
        if (!head_of(&h, of, of->heads + u.tensor * of->kv_heads + u.kv_head, u.group * args->tiles + number)) return;
        s.sequence = u.first + (args->group > 1 ? quotient(number * TOKENS, args->keys_of_sequence) : 0);
        awaited = {needs ? &args->joined[before] : 0, u.sequences};
    }
    s.end = h.tokens;
    whole_head_codes(of, &h, &s, shared, &awaited);
}

KILN_ENTRY(mha_quantize_once, kiln_mha_quantize_once_args) {
    KILN_SHARED union {
        channel_facts facts;
        shared_numbers numbers;
    } shared;
    KILN_SHARED uint32_t before;
    const uint32_t period = (uint32_t)kiln_block();
    uint32_t number = kiln_tile();
    if (is_of(args.chunks, &number)) {
        if (period < args.units) once_chunk(&args, period, number, shared.facts, &before);
        return;
    }
    const bool fewer = is_of(args.fewer, &number);
    once_codes(&args, period, number, fewer == (args.queries < args.tiles), &shared.numbers);
}

KILN_ENTRY(mha_quantize_clear, kiln_mha_quantize_once_args) {
    KILN_LOOP
    for (uint32_t i = kiln_thread(); i < args.counters; i += KILN_BLOCK)
        args.arrived[i] = 0;
}
