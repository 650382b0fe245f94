/* Attention for few rows with many keys, on both vendors: the rows of a block, all of one sequence, and its share of
 * their keys. Includers define what attention_gpu.h asks for. */
#ifndef KILN_KERNELS_COMMON_ATTENTION_ATTENTION_DECODE_H
#define KILN_KERNELS_COMMON_ATTENTION_ATTENTION_DECODE_H

#include "kernels/common/device.h"

#include "kernels/common/attention/sequence.h"

/* A block's rows and keys. */
struct decode_work {
    kiln_sequence s;
    kiln_attention_work work;
    uint32_t rows;
};

/* A block's share of the keys that its rows see. It begins where a tile of KILN_ATTENTION_KEYS does. */
KILN_INLINE void take_share(const kiln_attention_args &args, decode_work *d) {
    kiln_window first = kiln_window_of(&args, &d->s, d->work.row / args.group);
    kiln_window last = kiln_window_of(&args, &d->s, (d->work.row + d->rows - 1) / args.group);
    uint32_t begin = first.end ? first.begin / KILN_ATTENTION_KEYS * KILN_ATTENTION_KEYS : 0;
    uint32_t tiles = last.end > begin ? (last.end - begin + KILN_ATTENTION_KEYS - 1) / KILN_ATTENTION_KEYS : 0;
    uint32_t share = (tiles + args.splits - 1) / args.splits * KILN_ATTENTION_KEYS;
    d->work.key = begin + d->work.split * share;
    d->work.key_end = d->work.key + share < last.end ? d->work.key + share : last.end;
}

/* The work of this block; without rows: none. */
KILN_INLINE decode_work decode_work_of(const kiln_attention_args &args) {
    decode_work d;
    d.work = kiln_attention_work_of(&args, 0, (uint32_t)kiln_block());
    d.work.row = kiln_tile() * KILN_ATTENTION_DECODE_ROWS;
    d.rows = 0;
    if (d.work.batch >= args.batch) return d;
    d.s = kiln_sequence_of(&args, d.work.batch);
    uint32_t end = d.s.seqlen_q * args.group;
    if (d.work.row >= end) return d;
    d.rows = end - d.work.row < KILN_ATTENTION_DECODE_ROWS ? end - d.work.row : KILN_ATTENTION_DECODE_ROWS;
    take_share(args, &d);
    return d;
}

#endif
