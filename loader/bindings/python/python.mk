# The Python package: docs/python.md. What it has besides Python and libkiln.so.0.

PYTHON_BINDING := loader/bindings/python
## PYTHON: a Python whose headers fast calls are compiled with, for any from 3.11 on; without headers there are none
PYTHON ?= python3
PYTHON_INCLUDE := $(shell $(PYTHON) -c 'import os, sys, sysconfig; path = sysconfig.get_path("include"); \
	print(path if sys.version_info >= (3, 11) and os.path.exists(path + "/Python.h") else "")' 2>/dev/null)
PYTHON_OBJECTS := $(OUT)/python/_jax.so $(if $(PYTHON_INCLUDE),$(OUT)/python/_fast.abi3.so)
PYTHON_FAST    := $(patsubst %.c,$(OBJ)/%.o,$(sort $(wildcard $(PYTHON_BINDING)/fast*.c)))

$(PYTHON_FAST): private KILN_CFLAGS += -isystem $(PYTHON_INCLUDE)

# As the package has them, side by side. What is of Python is found in its process.
$(OUT)/python/_jax.so: $(OBJ)/$(PYTHON_BINDING)/jax.o $(OUT)/libkiln.so.0
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' -o $@ $^ $(KILN_LDFLAGS)
$(OUT)/python/_fast.abi3.so: $(PYTHON_FAST) $(OUT)/libkiln.so.0
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,nodelete -Wl,-rpath,'$$ORIGIN' -o $@ $^ $(KILN_LDFLAGS)

# The handlers, called as XLA does.
$(OUT)/tests/bindings/jax_handler_test: $(OBJ)/$(PYTHON_BINDING)/jax.o

.PHONY: python-objects
python-objects: $(PYTHON_OBJECTS)

.PHONY: wheel
wheel: $(OUT)/libkiln.so.0 $(PYTHON_OBJECTS) ## the Python package with the shared library in it, into build/wheel; needs Python 3
	scripts/wheel.py $(OUT)/wheel $(VERSION) $^

# Unpacking a wheel is installing it.
.PHONY: bench-python
bench-python: wheel $(OUT)/bench/c_call.so ## what a call costs from Python, beside NumPy's and PyTorch's, and a patched model beside its own, if PYTHON has them
	@rm -rf $(OUT)/python/packages
	@$(PYTHON) -m zipfile -e $(OUT)/wheel/*.whl $(OUT)/python/packages
	@PYTHONPATH=$(OUT)/python/packages $(PYTHON) tests/bench/python_calls.py $(OUT)/bench/c_call.so
	@PYTHONPATH=$(OUT)/python/packages $(PYTHON) tests/bench/patched_models.py
$(OUT)/bench/c_call.so: $(OBJ)/tests/bench/c_call.o $(OUT)/libkiln.so.0
	@mkdir -p $(@D)
	$(CC) -shared -o $@ $^ $(KILN_LDFLAGS)

## PYTHON_DIR, TORCH_DIR: where check-python and check-torch keep the packages that they test with, 0.7 and 6.2 GB
PYTHON_DIR ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kiln/python
TORCH_DIR  ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/kiln/torch

# $(call CHECK_PYTHON,list,folder,packages): the package's tests with that Python, which they take for the only one.
define CHECK_PYTHON
	@scripts/deps.sh build python
	@$(SUBMAKE) all sim $(PYTHON_OBJECTS) $(OUT)/tests/run
	@status=0; $(PYTHON_BINDING)/install.sh $(PYTHON_BINDING)/$(1) '$(2)' $(3) || status=$$?; [ $$status -ne 77 ] || exit 0; \
		[ $$status -eq 0 ] && PATH='$(2)/bin':$$PATH $(SUBMAKE) run-tests TESTS=bindings/python_test
endef
.PHONY: check-python check-torch check-hosts
check-python: ## the Python package with NumPy, JAX, safetensors and gguf from PyPI, downloaded the first time; not in check
	$(call CHECK_PYTHON,hosts.txt,$(PYTHON_DIR),)
check-torch: ## the same with PyTorch, transformers and AutoAWQ, too; not in check
	$(call CHECK_PYTHON,hosts-torch.txt,$(TORCH_DIR),autoawq==0.2.9)
check-hosts: ## what kiln runs inside: check-python, -torch, -ggml, -triton and -hip, with the time and the room that each took
	@scripts/check_hosts.sh python='$(PYTHON_DIR)' torch='$(TORCH_DIR)' ggml='$(GGML_DIR)' triton='$(TRITON_DIR)' \
		hip='$(HIP_DIR)'
