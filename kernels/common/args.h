/* Argument structs are read by three compilers. Between KILN_ARGS_BEGIN and KILN_ARGS_END each field lies on its
 * natural alignment right behind the one before, and padding is a field: the layout is then the same for all three. The
 * host's compiler refuses anything else, and the firing of images that their kernels take structs of different sizes.
 */
#ifndef KILN_KERNELS_COMMON_ARGS_H
#define KILN_KERNELS_COMMON_ARGS_H

#include <stddef.h>
#include <stdint.h>

#define KILN_ARGS_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wpadded\"")
#define KILN_ARGS_END   _Pragma("GCC diagnostic pop")

#endif
