# Where install puts things, and what.

VERSION = $(shell awk '/define KILN_VERSION_(MAJOR|MINOR|PATCH)/ {v = v dot $$3; dot = "."} END {print v}' include/kiln/kiln.h)
FILL    = sed -e 's|@PREFIX@|$(PREFIX)|g' -e 's|@LIBDIR@|$(LIBDIR)|g' -e 's|@VERSION@|$(VERSION)|g'
INSTALLED = $(patsubst include/%,$(PREFIX)/include/%,$(wildcard include/kiln/*.h include/kiln/ops/*.h)) $(LIBDIR)/libkiln.a \
	$(LIBDIR)/libkiln.so.0 $(LIBDIR)/libkiln.so $(LIBDIR)/pkgconfig/kiln.pc $(LIBDIR)/cmake/kiln/kilnConfig.cmake \
	$(LIBDIR)/cmake/kiln/kilnConfigVersion.cmake $(PREFIX)/bin/kiln $(PREFIX)/share/man/man1/kiln.1

.PHONY: install
install: all ## headers, libraries, kiln.pc, a CMake package, the program and its manual page
	install -d $(sort $(dir $(INSTALLED:%=$(DESTDIR)%)))
	install -m 644 include/kiln/*.h $(DESTDIR)$(PREFIX)/include/kiln/
	install -m 644 include/kiln/ops/*.h $(DESTDIR)$(PREFIX)/include/kiln/ops/
	install -m 644 $(OUT)/libkiln.a $(DESTDIR)$(LIBDIR)/
	install -m 755 $(OUT)/libkiln.so.0 $(DESTDIR)$(LIBDIR)/
	ln -sf libkiln.so.0 $(DESTDIR)$(LIBDIR)/libkiln.so
	$(FILL) -e 's|^libdir=$(PREFIX)/|libdir=$${prefix}/|' scripts/kiln.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/kiln.pc
	$(FILL) scripts/kilnConfig.cmake.in >$(DESTDIR)$(LIBDIR)/cmake/kiln/kilnConfig.cmake
	$(FILL) scripts/kilnConfigVersion.cmake.in >$(DESTDIR)$(LIBDIR)/cmake/kiln/kilnConfigVersion.cmake
	install -m 755 $(OUT)/kiln $(DESTDIR)$(PREFIX)/bin/
	install -m 644 docs/kiln.1 $(DESTDIR)$(PREFIX)/share/man/man1/

.PHONY: install-sim
install-sim: sim ## the simulated drivers, into libexec/kiln/sim, where no linker looks
	install -d $(DESTDIR)$(PREFIX)/libexec/kiln/sim
	install -m 755 $(OUT)/sim/libcuda.so.1 $(OUT)/sim/libhsa-runtime64.so.1 $(DESTDIR)$(PREFIX)/libexec/kiln/sim/

.PHONY: uninstall
uninstall: ## remove what install put there
	rm -f $(INSTALLED:%=$(DESTDIR)%)
