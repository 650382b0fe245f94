/* llama --bench: what a model of random weights does in a second. */
#ifndef LLAMA_BENCH_H
#define LLAMA_BENCH_H

#include <stdbool.h>

/* Whether --bench is among the arguments. */
bool llama_bench_is_wanted(int argc, char **argv);

/* The command. Gives the exit status: 0, 1 where the device or the output failed, 2 where an option is wrong. */
int llama_bench(int argc, char **argv);

#endif
