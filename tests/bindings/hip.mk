# kiln inside programs that live in HIP: loader/hip.

## HIP_DIR: where check-hip keeps Debian's HIP, 0.1 GB, or 0.2 where LLVM 15 is not installed
HIP_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kiln/hip-5

HIP_TESTS := $(OUT)/tests/bindings/hip_test $(patsubst %,$(OUT)/tests/ops/%_test,softmax gemm mha)

.PHONY: check-hip
check-hip: ## kiln in AMD's own HIP, which is downloaded the first time, on the simulated driver; not in check
	@scripts/deps.sh check
	@$(SUBMAKE) $(OUT)/kiln $(HIP_TESTS) sim
	@tests/bindings/hip_install.sh '$(HIP_DIR)' || { status=$$?; [ $$status -eq 77 ]; exit; }; \
		KILN_BUILD=$(OUT) HIP_DIR='$(HIP_DIR)' tests/bindings/hip.sh
