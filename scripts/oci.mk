# Container images from scratch: docs/containers.md.

# The command and the example with the shared library, so that the image has the kernels once.
$(OBJ)/oci/kiln: $(CLI_OBJECTS) $(OUT)/libkiln.so.0
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -ldl -lm
$(OBJ)/oci/llama: $(LLAMA_SOURCES:%.c=$(OBJ)/%.o) $(OUT)/libkiln.so.0
	@mkdir -p $(@D)
	$(CC) -o $@ $^ $(KILN_LDFLAGS) -ldl -lm

.PHONY: oci oci-layout
oci: ## container images from scratch, kiln and kiln-softmax, into build/oci; installs umoci when run as root on Debian
	@scripts/deps.sh oci
	@$(SUBMAKE) oci-layout
oci-layout: $(OUT)/kiln $(OUT)/libkiln.so.0 $(OBJ)/oci/kiln $(OBJ)/oci/llama $(OUT)/examples/quickstart
	scripts/oci.sh $(OUT) $(VERSION)
