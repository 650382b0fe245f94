# Fuzzing: build/fuzz/fuzz/<target> is tests/fuzz/<target>_fuzz.c under libFuzzer.

FUZZERS := $(patsubst tests/fuzz/%_fuzz.c,$(OUT)/fuzz/%,$(sort $(wildcard tests/fuzz/*_fuzz.c)))
# The parsers, and what they use of the loader.
PARSER_OBJECTS := $(filter $(OBJ)/loader/image/%,$(LOADER_OBJECTS)) $(OBJ)/loader/cli/npy.o \
	$(patsubst %,$(OBJ)/loader/%.o,bundle status target)

$(OBJ)/fuzz/%.o: tests/fuzz/entry/libfuzzer.c $(FLAGS)
	@mkdir -p $(@D)
	$(CC) $(KILN_CFLAGS) -DFUZZ_TARGET=fuzz_$* -MMD -MP -c -o $@ $<

$(OUT)/fuzz/%: $(OBJ)/fuzz/%.o $(OBJ)/tests/fuzz/%_fuzz.o $(PARSER_OBJECTS)
	@mkdir -p $(@D)
	$(CC) -fsanitize=fuzzer -o $@ $^ $(KILN_LDFLAGS)

# For scripts/fuzz.sh.
.PHONY: fuzzers
fuzzers: $(FUZZERS)

## FUZZ_SECONDS: how long fuzz runs each parser
FUZZ_SECONDS ?= 60

.PHONY: fuzz fuzz-merge fuzz-coverage
fuzz: ## run libFuzzer on each parser; skips, and says so, where clang has none
	@scripts/fuzz.sh run $(FUZZ_SECONDS)
fuzz-merge: ## take what fuzzing found that reaches new code into tests/fuzz/corpus
	@scripts/fuzz.sh merge
fuzz-coverage: ## the lines of each parser that its committed inputs reach; fails below 95 %
	@$(MAKE) --no-print-directory config=coverage build/coverage/tests/fuzz/replay_test
	@scripts/fuzz_coverage.sh build/coverage
