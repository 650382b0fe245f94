# The Python package: docs/python.md. What it has besides Python and libkiln.so.0.

PYTHON_BINDING := loader/bindings/python
PYTHON_OBJECTS := $(OUT)/python/_jax.so

# As the package has them, side by side.
$(OUT)/python/_jax.so: $(OBJ)/$(PYTHON_BINDING)/jax.o $(OUT)/libkiln.so.0
	@mkdir -p $(@D)
	$(CC) -shared -Wl,-z,nodelete -Wl,--no-undefined -Wl,-rpath,'$$ORIGIN' -o $@ $^ $(KILN_LDFLAGS)

.PHONY: python-objects
python-objects: $(PYTHON_OBJECTS)

.PHONY: wheel
wheel: $(OUT)/libkiln.so.0 $(PYTHON_OBJECTS) ## the Python package with the shared library in it, into build/wheel; needs Python 3
	scripts/wheel.py $(OUT)/wheel $(VERSION) $^
