/* Argument structs are read by three compilers. Between KILN_ARGS_BEGIN and KILN_ARGS_END each field has its natural
 * alignment and directly follows the previous one, and padding is an explicit field, so that the layout is the same for
 * all three. The host's compiler refuses anything else, and images whose kernels take structs of different sizes cannot
 * be fired. */
#ifndef KILN_KERNELS_COMMON_ARGS_H
#define KILN_KERNELS_COMMON_ARGS_H

#include <stddef.h>
#include <stdint.h>

#define KILN_ARGS_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wpadded\"")
#define KILN_ARGS_END   _Pragma("GCC diagnostic pop")

#endif
