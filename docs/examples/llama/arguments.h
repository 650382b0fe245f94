/* Values of options, as the program's two commands read them. */
#ifndef LLAMA_ARGUMENTS_H
#define LLAMA_ARGUMENTS_H

#include "quantised.h"

/* Says that an option's value is wrong, and the rule. Returns false. */
bool llama_wrong(const char *option, const char *value, const char *rule);

/* Reads a decimal number from least to most. */
bool llama_read_number(const char *text, long least, long most, long *out);

/* "f32", "f16" or "bf16" */
bool llama_read_precision(const char *text, llama_precision *out);

/* "w4a16", "fp8" or "int8" */
bool llama_read_quantisation(const char *text, llama_quantisation *out);

/* "same" or "fp8" */
bool llama_read_cache(const char *text, bool *out_fp8);

/* "cpu", "cuda:0" */
bool llama_read_device(const char *text, kiln_device_options *out);

/* Whether all that was printed has left: a full disk or a closed descriptor shows only now. */
bool llama_written(void);

#endif
