/* Buffer addresses: from a descriptor of four scalar registers and the lanes' offsets and indices to addresses (the ISA
 * documents, "Buffer addressing"; LLVM, "User Guide for AMDGPU Backend", Private Segment Buffer). */
#include "tests/sim/amdgcn/memory/amd_memory.h"

typedef struct buffer {
    uint64_t base;
    uint32_t stride, records;
    bool swizzles, adds_lane;
    uint32_t outside; /* gfx10 and later: which rule says what is outside */
} buffer;

enum { OUTSIDE_STRUCTURE, OUTSIDE_INDEX, OUTSIDE_NEVER, OUTSIDE_RAW };

static buffer buffer_read(const amd_wave *wave, const amd_operand *descriptor) {
    const uint32_t *words = &wave->s[descriptor->index];
    buffer read = {
        .base = words[0] | (uint64_t)(words[1] & 0xffff) << 32,
        .stride = words[1] >> 16 & 0x3fff,
        .records = words[2],
        .swizzles = words[1] >> 31,
        .adds_lane = words[3] >> 23 & 1,
        .outside = words[3] >> 28 & 3,
    };
    if (wave->program->target->major == 9) read.outside = read.stride ? OUTSIDE_INDEX : OUTSIDE_RAW;
    return read;
}

/* How many bytes from offset on, of the element index, are inside. */
static uint32_t bytes_inside(const buffer *in, uint64_t index, uint64_t offset, uint64_t scalar, uint32_t size) {
    uint64_t begin = offset, end = in->stride;
    switch (in->outside) {
    case OUTSIDE_STRUCTURE:
        if (index >= in->records) return 0;
        break;
    case OUTSIDE_INDEX:
        return index < in->records ? size : 0;
    case OUTSIDE_NEVER:
        return in->records ? size : 0;
    default:
        begin += in->stride * index + scalar;
        end = in->records;
    }
    if (begin >= end) return 0;
    return end - begin < size ? (uint32_t)(end - begin) : size;
}

/* Takes a lane out of exec of which not all is inside. Each dword of a load or store is looked at by itself, and an
 * atomic is inside or outside (the ISA documents, "Range checking"); of what would be cut they say nothing, and that is
 * a fault. */
static bool lane_settle(amd_wave *wave, const amd_op *op, const buffer *in, uint32_t lane, uint32_t inside,
                        amd_request *made) {
    bool in_dwords = (op->run == amd_run_buffer_load || op->run == amd_run_buffer_store) && inside % 4 == 0;
    if (inside == made->size) return true;
    made->exec &= ~(1ull << lane);
    if (inside && !in_dwords) {
        amd_fault(wave, op, SIM_FAULT_OUT_OF_BOUNDS, lane, made->address[lane], "%u bytes at the end of a buffer of %u",
                  made->size, in->records);
        return false;
    }
    made->dwords[lane] = (uint8_t)(inside / 4);
    if (inside) made->partly |= 1ull << lane;
    return true;
}

/* The scratch of a wave as a buffer: its lanes are interleaved dword by dword, the scalar offset is not. */
static bool scratch_offsets(amd_wave *wave, const amd_op *op, const buffer *in, uint32_t scalar, amd_request *made) {
    uint64_t row = 4ull * wave->lanes, frame = in->base + scalar - (uint64_t)(uintptr_t)wave->scratch;
    if (!wave->scratch || frame % row || frame / row * 4 > wave->group->launch->private_bytes) {
        amd_fault(wave, op, SIM_FAULT_STACK, AMD_LANES, in->base + scalar, "a swizzled buffer that is not the scratch");
        return false;
    }
    for (uint32_t l = 0; l < AMD_LANES; l++)
        made->address[l] += frame / row * 4;
    return true;
}

bool amd_buffer_make(amd_wave *wave, const amd_op *op, const amd_operand *vector, amd_request *made,
                     bool *out_scratch) {
    const buffer in = buffer_read(wave, &vector[1]);
    const uint32_t scalar = amd_read32(wave, &vector[2]);
    const uint64_t exec = amd_exec(wave);
    *made = (amd_request){.exec = exec, .size = amd_memory_bytes(op)};
    *out_scratch = in.swizzles;
    for (uint32_t l = 0; l < AMD_LANES; l++) {
        uint32_t first = vector->kind == AMD_OPERAND_VECTOR ? wave->v[vector->index][l] : 0;
        uint32_t second = op->idxen && op->offen ? wave->v[vector->index + 1][l] : first;
        uint64_t offset = (uint64_t)(op->offen ? second : 0) + (uint32_t)op->offset;
        uint64_t index = (op->idxen ? first : 0) + (in.adds_lane && !in.swizzles ? l : 0);
        made->address[l] = offset;
        if (in.swizzles || !(exec >> l & 1)) continue;
        made->address[l] = in.base + scalar + in.stride * index + offset;
        if (!lane_settle(wave, op, &in, l, bytes_inside(&in, index, offset, scalar, made->size), made)) return false;
    }
    if (in.swizzles) return scratch_offsets(wave, op, &in, scalar, made);
    amd_request_settle(wave, made);
    return true;
}

bool amd_buffer_scalar(amd_wave *wave, const amd_op *op, const amd_operand *descriptor, uint64_t offset,
                       uint64_t *out_address, bool *out_outside) {
    const buffer in = buffer_read(wave, descriptor);
    const uint64_t size = amd_memory_bytes(op), end = in.stride ? (uint64_t)in.stride * in.records : in.records;
    *out_address = in.base + offset;
    *out_outside = offset + size > end;
    if (!*out_outside || offset >= end) return true;
    amd_fault(wave, op, SIM_FAULT_OUT_OF_BOUNDS, AMD_LANES, *out_address, "%llu bytes at the end of a buffer of %llu",
              (unsigned long long)size, (unsigned long long)end);
    return false;
}
