/* The parsers that are fuzzed. Each target is a total function: it reads all that its parser offers of any bytes, and
 * returns. What may not happen is for the sanitizers to see.
 *
 * A target is fuzz_<name> in <name>_fuzz.c; its inputs stand in corpus/<name>. `make fuzz` runs each under libFuzzer,
 * replay_test.c runs each over its inputs, with any compiler.
 *
 * Rows: (name, the source that its inputs must cover). */
#ifndef KILN_TESTS_FUZZ_TARGETS_H
#define KILN_TESTS_FUZZ_TARGETS_H

#include <stddef.h>
#include <stdint.h>

#define FUZZ_TARGETS(X)                  \
    X(elf, "loader/image/elf.c")         \
    X(inflate, "loader/image/inflate.c") \
    X(msgpack, "loader/image/msgpack.c") \
    X(hsaco, "loader/image/hsaco.c")     \
    X(cubin, "loader/image/cubin.c")     \
    X(ptx, "loader/image/ptx.c")         \
    X(inspect, "loader/image/inspect.c") \
    X(npy, "loader/cli/npy.c")

#define FUZZ_DECLARE(name, source) void fuzz_##name(const uint8_t *bytes, size_t size);
FUZZ_TARGETS(FUZZ_DECLARE)
#undef FUZZ_DECLARE

#endif
