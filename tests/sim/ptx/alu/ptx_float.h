/* Floating-point values of every width, as the instructions of ptx_float.c, ptx_float_compare.c, ptx_special.c and
 * ptx_convert.c see them. (PTX ISA, "Floating-Point Instructions" and "Half Precision Floating-Point Instructions".)
 *
 * f32 and narrower formats are decoded to f64, where the operation is exact or rounded to odd, and encoded with one
 * rounding. f64 is computed by the host under the instruction's rounding mode. */
#ifndef KILN_TESTS_SIM_PTX_FLOAT_H
#define KILN_TESTS_SIM_PTX_FLOAT_H

#include "tests/sim/core/sim_float.h"
#include "tests/sim/ptx/decode/ptx_decode.h"
#include "tests/sim/ptx/warp/ptx_lanes.h"

/* ---- Decoding ---- */

/* Takes .rn .rz .rm .rp: a sim_rounding. missing stands for none of them; if it is negative, that is refused. */
sim_rounding ptx_take_rounding(ptx_decoder *decoder, int missing);

/* Takes a modifier that sets a flag. */
void ptx_take_flag(ptx_decoder *decoder, int modifier, uint32_t flag);

/* Parts of the families arithmetic and special. */
void ptx_decode_float_divide(ptx_decoder *decoder);
void ptx_decode_copysign(ptx_decoder *decoder);
void ptx_decode_testp(ptx_decoder *decoder);
/* cvt to a packed type, which op->type and op->from are set to. */
void ptx_decode_convert_packed(ptx_decoder *decoder);

/* ---- Values of 32 bits and fewer ---- */

/* The format of f32, f16, bf16 and of the elements of f32x2, f16x2 and bf16x2, and how many elements a register holds.
 */
sim_format ptx_format_of(ptx_type type);
uint32_t ptx_elements_of(ptx_type type);

/* The NaN that instructions produce: all ones but the sign. */
uint32_t ptx_narrow_nan(sim_format format);
/* The value, with a subnormal one as a zero of its sign if flags has PTX_F_FTZ. */
double ptx_narrow_load(sim_format format, uint32_t bits, uint32_t flags);
/* Rounds once, and does what flags asks for: PTX_F_FTZ, PTX_F_SAT, PTX_F_RELU, PTX_F_SATFINITE. */
uint32_t ptx_narrow_store(sim_format format, double value, sim_rounding rounding, uint32_t flags);

/* The element of an array of 16- or 32-bit ones. */
static inline uint32_t ptx_element(const void *array, sim_format format, uint32_t index) {
    return format == SIM_f32 ? ((const uint32_t *)array)[index] : ((const uint16_t *)array)[index];
}

static inline void ptx_element_set(void *array, sim_format format, uint32_t index, uint32_t bits) {
    if (format == SIM_f32)
        ((uint32_t *)array)[index] = bits;
    else
        ((uint16_t *)array)[index] = (uint16_t)bits;
}

/* Stores f32 results that were computed for all lanes to those of mask; each NaN becomes the canonical one. */
void ptx_store_f32(ptx_warp *warp, uint32_t place, const float *results, uint32_t mask);

/* ---- f64 ---- */

/* The host's rounding mode for an instruction, and back to nearest. The arithmetic between the two calls must load its
 * operands from a frame and store its results there, which keeps compilers from moving it. */
void ptx_host_rounding(sim_rounding rounding);

/* The NaN that instructions produce. */
double ptx_double_nan(void);

#endif
