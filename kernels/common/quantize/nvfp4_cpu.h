/* Blocks of NVFP4 on the CPU: nvfp4_cpu.c defines their scales and codes. */
#ifndef KILN_KERNELS_COMMON_QUANTIZE_NVFP4_CPU_H
#define KILN_KERNELS_COMMON_QUANTIZE_NVFP4_CPU_H

#include "kernels/common/cpu.h"
#include "kernels/common/quantize/nvfp4_scale.h"
#include "kernels/common/reduce/greatest_cpu.h"

enum { KILN_NVFP4_TILE_BLOCKS = KILN_TILE / KILN_NVFP4_BLOCK };

/* The codes and the scales of whole blocks that lie one behind the other, at most those of a tile. */
#define kiln_nvfp4_encode KILN_CPU_COMMON(nvfp4_encode)
void kiln_nvfp4_encode(uint8_t *codes, uint8_t *scales, const float *values, float encode, size_t blocks);

#endif
