# SPDX-License-Identifier: BSD-2-Clause
#
# One non-recursive Makefile. Everything built goes to build/ (out of tree); `make help` lists the targets.
# Sources are found by folder: a new .c file in format/, config/, daemon/, daemon/ctl/ or tests/unit/ needs
# no line here. Which folder may use which is checked by tests/lint/ in `make lint`.

VERSION := 0.1.0
B ?= build
V ?= 0
CC ?= gcc
CLANG ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
CFLAGS ?= -O2 -g
prefix ?= /usr/local
bindir ?= $(prefix)/bin
sbindir ?= $(prefix)/sbin
libexecdir ?= $(prefix)/libexec
mandir ?= $(prefix)/share/man
sysconfdir ?= /etc
unitdir ?= $(prefix)/lib/systemd/system
sysusersdir ?= $(prefix)/lib/sysusers.d
catalogdir ?= $(prefix)/lib/systemd/catalog
bashdir ?= $(prefix)/share/bash-completion/completions
zshdir ?= $(prefix)/share/zsh/site-functions

ifeq ($(V),1)
Q :=
say := @:
else
Q := @
say = @printf '  %-8s %s\n'
endif
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wpointer-arith -Wwrite-strings -Wvla -Wformat=2 -Wundef -Wimplicit-fallthrough
CPPFLAGS_ALL := -I. -I$(B)/gen -D_GNU_SOURCE -DIOTRACED_VERSION='"$(VERSION)"' $(CPPFLAGS)
CFLAGS_ALL := -std=gnu11 $(WARN) -fstack-protector-strong -fno-strict-aliasing $(CFLAGS) $(SAN)
LDFLAGS_ALL := $(LDFLAGS) $(SAN) -Wl,-z,relro,-z,now

FORMAT_LIBS := -llz4 -lxxhash -lm
CONFIG_LIBS := -lyaml
DAEMON_LIBS := -lbpf -lelf -lz -lpcap -lsystemd -ljson-c -pthread
# libmd: SHA-256 for anonymized exports. dpkg itself needs it, so that it is wherever the package can be.
CTL_LIBS := -ljson-c -lmd

FORMAT_SRC := $(wildcard format/*.c)
CONFIG_SRC := $(wildcard config/*.c)
DAEMON_SRC := $(filter-out daemon/main.c,$(wildcard daemon/*.c))
CTL_SRC := $(wildcard daemon/ctl/*.c) daemon/control-proto.c
BPF_SRC := $(wildcard bpf/*.bpf.c)
UNIT_SRC := $(wildcard tests/unit/test-*.c)
FUZZ_SRC := $(wildcard tests/fuzz/fuzz-*.c)
TOOL_SRC := $(wildcard tests/tools/*.c)
BENCH_SRC := $(wildcard tests/bench/*.c)

obj = $(patsubst %.c,$(B)/obj/%.o,$(1))
SKEL := $(patsubst bpf/%.bpf.c,$(B)/gen/%.skel.h,$(BPF_SRC))
LIBS_A := $(B)/libiotformat.a $(B)/libiotconfig.a $(B)/libiotdaemon.a
UNIT_BIN := $(patsubst tests/unit/%.c,$(B)/tests/unit/%,$(UNIT_SRC))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(B)/tests/fuzz/%,$(FUZZ_SRC))
FUZZ_REPLAY := $(patsubst tests/fuzz/%.c,$(B)/tests/fuzz-replay/%,$(FUZZ_SRC))
TOOL_BIN := $(patsubst tests/tools/%.c,$(B)/tests/tools/%,$(TOOL_SRC)) $(B)/tests/tools/iotraced-other-layout
# Programs for the kernel that tests load, compiled as ours are but with the C library's headers.
TEST_BPF := $(patsubst %.bpf.c,$(B)/%.bpf.o,$(wildcard tests/bpf/*.bpf.c))
PRELOAD := $(patsubst %.c,$(B)/%.so,$(wildcard tests/preload/*.c))
BENCH_BIN := $(patsubst tests/bench/%.c,$(B)/tests/bench/%,$(BENCH_SRC))

.PHONY: all
all: $(B)/iotraced $(B)/iotracectl ## Build iotraced and iotracectl

# ---- objects -------------------------------------------------------------------------------------

$(B)/obj/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(say) CC $<
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

# Changed flags rebuild everything: a sanitizer build never mixes with a plain one.
$(B)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' '$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL)' | cmp -s - $@ || printf '%s\n' '$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL)' > $@
.PHONY: FORCE
FORCE:

# Only the daemon's libbpf side sees the skeletons.
$(call obj,$(DAEMON_SRC)): | $(SKEL)

define archive
	@mkdir -p $(@D)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^
endef
$(B)/libiotformat.a: $(call obj,$(FORMAT_SRC))
	$(archive)
$(B)/libiotconfig.a: $(call obj,$(CONFIG_SRC))
	$(archive)
$(B)/libiotdaemon.a: $(call obj,$(DAEMON_SRC))
	$(archive)
$(B)/libiotctl.a: $(call obj,$(filter-out daemon/ctl/main.c,$(CTL_SRC)))
	$(archive)

$(B)/iotraced: $(call obj,daemon/main.c) $(B)/libiotdaemon.a $(B)/libiotconfig.a $(B)/libiotformat.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(CONFIG_LIBS) $(FORMAT_LIBS) $(DAEMON_LIBS)

# The page of `report --html` is in the program as it is (.incbin), which the compiler's dependencies do not know.
$(call obj,daemon/ctl/page.c): $(wildcard daemon/ctl/page/*)

# iotracectl links neither libbpf nor libsystemd nor libyaml: segments are readable anywhere.
$(B)/iotracectl: $(call obj,daemon/ctl/main.c) $(B)/libiotctl.a $(B)/libiotformat.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(FORMAT_LIBS) $(CTL_LIBS)

# ---- BPF: never reads the build host's kernel; bpf/kernel.bpf.h declares the few fields we touch -----

# Where it was built is no part of what was built: packages are reproducible.
BPF_CFLAGS := -g -O2 -target bpf -mcpu=v2 -D__TARGET_ARCH_x86 -I. -Wall -Wextra -Werror \
	-Wno-unused-parameter -Wno-missing-declarations -fno-stack-protector -ffile-prefix-map=$(CURDIR)=.
$(B)/bpf/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(say) BPF $<
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MT $@ -MF $(@:.o=.d) -c -o $@ $<
$(B)/tests/bpf/%.bpf.o: tests/bpf/%.bpf.c
	@mkdir -p $(@D)
	$(say) BPF $<
	$(Q)$(CLANG) $(BPF_CFLAGS) -I/usr/include/$(shell $(CC) -print-multiarch) -MMD -MP -MT $@ -MF $(@:.o=.d) -c -o $@ $<
# Kept, or the next make would compile it again.
.SECONDARY: $(patsubst bpf/%.bpf.c,$(B)/bpf/%.bpf.o,$(BPF_SRC))
$(B)/gen/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $(subst -,_,$*)_bpf > $@

# ---- tests -----------------------------------------------------------------------------------------

TEST_LIBS := $(B)/libiotctl.a $(LIBS_A)
$(B)/tests/unit/%: tests/unit/%.c $(TEST_LIBS) $(B)/flags
	@mkdir -p $(@D)
	$(say) TEST $@
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(B)/libiotctl.a $(B)/libiotdaemon.a \
		$(B)/libiotconfig.a $(B)/libiotformat.a -lcmocka $(CONFIG_LIBS) $(FORMAT_LIBS) $(DAEMON_LIBS) $(CTL_LIBS)
$(B)/tests/tools/%: tests/tools/%.c $(TEST_LIBS) $(B)/flags
	@mkdir -p $(@D)
	$(say) TOOL $@
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(B)/libiotctl.a $(B)/libiotdaemon.a \
		$(B)/libiotconfig.a $(B)/libiotformat.a $(CONFIG_LIBS) $(FORMAT_LIBS) $(DAEMON_LIBS) $(CTL_LIBS)
# The daemon as a build that hands another layout on, for tests of upgrades.
$(B)/tests/tools/iotraced-other-layout: daemon/adopt.c $(B)/iotraced $(B)/flags
	@mkdir -p $(@D)
	$(say) TOOL $@
	$(Q)$(CC) $(CPPFLAGS_ALL) -DADOPT_VERSION=1000U $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ daemon/adopt.c \
		$(call obj,daemon/main.c) $(B)/libiotdaemon.a $(B)/libiotconfig.a $(B)/libiotformat.a \
		$(CONFIG_LIBS) $(FORMAT_LIBS) $(DAEMON_LIBS)
$(B)/tests/bench/%: tests/bench/%.c $(TEST_LIBS) $(B)/flags
	@mkdir -p $(@D)
	$(say) BENCH $@
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -o $@ $< $(B)/libiotctl.a $(B)/libiotdaemon.a \
		$(B)/libiotconfig.a $(B)/libiotformat.a $(CONFIG_LIBS) $(FORMAT_LIBS) $(DAEMON_LIBS) $(CTL_LIBS)

# Replays the seed corpus through each fuzz target's entry point, without libFuzzer: `make fuzz-smoke`.
$(B)/tests/fuzz-replay/%: tests/fuzz/%.c tests/fuzz/replay-main.c $(TEST_LIBS) $(B)/flags
	@mkdir -p $(@D)
	$(say) FUZZ $@
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(LDFLAGS_ALL) -o $@ $< tests/fuzz/replay-main.c $(B)/libiotctl.a \
		$(B)/libiotdaemon.a $(B)/libiotconfig.a $(B)/libiotformat.a $(CONFIG_LIBS) $(FORMAT_LIBS) $(DAEMON_LIBS) $(CTL_LIBS)

# Loaded into other programs, so without anybody's sanitizer and without what the compiler knows of malloc.
$(B)/tests/preload/%.so: tests/preload/%.c tests/preload/fail-nth.h $(B)/flags
	@mkdir -p $(@D)
	$(say) PRELOAD $@
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=gnu11 $(WARN) -O2 -g -fno-builtin -fPIC -shared -o $@ $< -ldl

.PHONY: unit tests-bin
tests-bin: $(UNIT_BIN) $(FUZZ_REPLAY) $(TOOL_BIN) $(PRELOAD) $(TEST_BPF)
unit: all $(UNIT_BIN) ## Build and run the unit tests only (no root)
	$(Q)KIND=unit tests/run-all.sh

.PHONY: deps
deps: ## Install what building and testing needs (Debian, root)
	$(Q)tests/lib/install-deps.sh check

.PHONY: check
check: ## Run all tests: unit, golden, fuzz-smoke, live, vm (KIND=..., T=... select)
	$(Q)tests/lib/install-deps.sh check
	$(Q)$(MAKE) -j$$(nproc) all tests-bin
	$(Q)tests/run-all.sh

.PHONY: kills
kills: ## Kill a recording daemon KILLS=500 times with each kind of rings, NAMED=50 times at each named point (root, hours)
	$(Q)$(MAKE) -j$$(nproc) all tests-bin
	$(Q)export IOT_ADOPT_KILLS=$(or $(KILLS),500) IOT_ADOPT_NAMED=$(or $(NAMED),50); \
		tests/live/test-adopt.sh one two small named named-two && tests/live/test-adopt-packet.sh one both small named

.PHONY: systemd
systemd: ## Try the unit under this Debian's systemd in a virtual machine, with kills under I/O (root)
	$(Q)tests/lib/install-deps.sh systemd
	$(Q)$(MAKE) -j$$(nproc) all tests-bin
	$(Q)KIND=systemd tests/run-all.sh

.PHONY: browser
browser: ## Use the page of report --html in headless Chromium, in several sizes (root once, for the packages)
	$(Q)tests/lib/install-deps.sh browser
	$(Q)$(MAKE) -j$$(nproc) all $(B)/tests/tools/make-segment $(B)/tests/tools/make-packets
	$(Q)KIND=browser tests/run-all.sh

# How often the power fails under a recording machine; make check takes a few of it.
TIMES ?= 100
.PHONY: power-cut
power-cut: all tests-bin ## Cut the power of a machine under load TIMES=100 times, and look at each disk (root)
	$(Q)KIND=live T=live/test-power-cut POWER_CUTS=$(TIMES) tests/run-all.sh

.PHONY: run
run: ## Install dependencies, build, record real I/O in the foreground, show what was seen (root)
	$(Q)tests/lib/install-deps.sh build
	$(Q)$(MAKE) -j$$(nproc) all
	$(Q)tests/lib/run-demo.sh

.PHONY: bench
bench: ## Measure against perf, bpftrace and plain LZ4, in pairs, in one run (root)
	$(Q)tests/lib/install-deps.sh bench
	$(Q)$(MAKE) -j$$(nproc) all $(BENCH_BIN) $(TOOL_BIN)
	$(Q)tests/bench/run.sh

.PHONY: bench-read
bench-read: all $(B)/tests/tools/make-segment $(B)/tests/tools/peak-rss ## How fast segments are read, reported and exported, in how much memory
	$(Q)tests/bench/read.sh

.PHONY: bench-origin
bench-origin: ## What telling swap, file and cgroup costs a request, in pairs (root)
	$(Q)tests/lib/install-deps.sh bench
	$(Q)$(MAKE) -j$$(nproc) $(TOOL_BIN)
	$(Q)tests/bench/origin.sh

.PHONY: fuzz-smoke
fuzz-smoke: $(FUZZ_REPLAY) ## Replay all fuzz seeds
	$(Q)KIND=fuzz-smoke tests/run-all.sh

# libFuzzer is part of clang, so everything is built once more with it (gcc has warned already), below build/fuzz.
$(B)/tests/fuzz/%: tests/fuzz/%.c $(TEST_LIBS) $(B)/flags
	@mkdir -p $(@D)
	$(say) FUZZ $@
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $< $(B)/libiotctl.a \
		$(B)/libiotdaemon.a $(B)/libiotconfig.a $(B)/libiotformat.a $(CONFIG_LIBS) $(FORMAT_LIBS) $(DAEMON_LIBS) $(CTL_LIBS)
.PHONY: fuzz fuzz-bin
fuzz-bin: $(FUZZ_BIN)
fuzz: ## Fuzz under ASan and UBSan, TIME=60 seconds a target (T=part-of-a-name selects)
	$(Q)$(MAKE) B=$(B)/fuzz CC=$(CLANG) SAN='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all' \
		CFLAGS='-O1 -g -w' fuzz-bin
	$(Q)B=$(B)/fuzz tests/fuzz/run.sh

.PHONY: asan ubsan valgrind
asan: ## Unit tests under AddressSanitizer
	$(Q)$(MAKE) B=$(B)/asan SAN='-fsanitize=address -fno-omit-frame-pointer' CFLAGS='-O1 -g' unit
ubsan: ## Unit tests under UndefinedBehaviorSanitizer
	$(Q)$(MAKE) B=$(B)/ubsan SAN='-fsanitize=undefined -fno-sanitize-recover=all' CFLAGS='-O1 -g' unit
# Those that have threads: the manager's jobs, and its loop beside a worker. -Wno-tsan: fences are not understood by gcc's.
TSAN_BIN := $(addprefix $(B)/tests/unit/,test-jobs test-manager)
.PHONY: tsan tsan-bin
tsan-bin: $(TSAN_BIN) $(B)/iotraced
	$(Q)set -e; for t in $(TSAN_BIN); do TSAN_OPTIONS=halt_on_error=1 $$t; done
tsan: ## The unit tests that have threads under ThreadSanitizer; leaves build/tsan/iotraced for a recording
	$(Q)$(MAKE) B=$(B)/tsan SAN=-fsanitize=thread CFLAGS='-O1 -g -Wno-tsan' tsan-bin
valgrind: all $(UNIT_BIN) ## Unit tests under valgrind
	$(Q)KIND=unit WRAP='valgrind -q --error-exitcode=99 --leak-check=full' tests/run-all.sh

.PHONY: lint format
lint: $(SKEL) $(B)/flags $(B)/iotracectl ## clang-format, clang-tidy, cppcheck, shellcheck, include directions, rules
	$(Q)B=$(B) tests/lint/run.sh
format: ## Reformat all C sources
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i

# ---- install ---------------------------------------------------------------------------------------

UNITS := iotraced.service iotraced-archive.service iotraced-archive.path iotraced-archive.timer \
	iotraced-metrics.service iotraced-metrics.timer iotraced-metrics-http.socket iotraced-metrics-http@.service
MAN := $(notdir $(wildcard packaging/man/*.[1-9]))
.PHONY: install uninstall
install: all ## Install below $(DESTDIR)$(prefix) (V=1 shows the commands)
	$(say) INSTALL $(DESTDIR)$(sbindir)/iotraced
	$(Q)install -D -m 0755 $(B)/iotraced $(DESTDIR)$(sbindir)/iotraced
	$(say) INSTALL $(DESTDIR)$(bindir)/iotracectl
	$(Q)install -D -m 0755 $(B)/iotracectl $(DESTDIR)$(bindir)/iotracectl
	$(say) INSTALL $(DESTDIR)$(libexecdir)/iotraced/metrics-http
	$(Q)install -D -m 0755 units/metrics-http.sh $(DESTDIR)$(libexecdir)/iotraced/metrics-http
	$(say) INSTALL $(DESTDIR)$(sysconfdir)/iotraced/iotraced.yaml
	$(Q)install -D -m 0644 config/iotraced.yaml $(DESTDIR)$(sysconfdir)/iotraced/iotraced.yaml
	$(Q)install -d -m 0755 $(DESTDIR)$(sysconfdir)/iotraced/conf.d $(DESTDIR)$(unitdir)
	$(say) INSTALL $(DESTDIR)$(sysconfdir)/iotraced/archive.conf
	$(Q)install -D -m 0644 config/archive.conf $(DESTDIR)$(sysconfdir)/iotraced/archive.conf
	$(say) INSTALL "$(DESTDIR)$(unitdir): $(UNITS)"
	$(Q)set -e; cd units; for unit in $(UNITS); do sed 's|@sbindir@|$(sbindir)|g; s|@bindir@|$(bindir)|g; s|@libexecdir@|$(libexecdir)|g' \
		$$unit$$([ -e $$unit ] || echo .in) > $(abspath $(DESTDIR)$(unitdir))/$$unit; done
	$(say) INSTALL $(DESTDIR)$(sysusersdir)/iotraced.conf
	$(Q)install -D -m 0644 units/iotraced.sysusers $(DESTDIR)$(sysusersdir)/iotraced.conf
	$(say) INSTALL $(DESTDIR)$(catalogdir)/iotraced.catalog
	$(Q)install -D -m 0644 units/iotraced.catalog $(DESTDIR)$(catalogdir)/iotraced.catalog
	$(say) INSTALL "$(DESTDIR)$(mandir): $(MAN)"
	$(Q)set -e; for page in $(MAN); do install -D -m 0644 packaging/man/$$page $(DESTDIR)$(mandir)/man$${page##*.}/$$page; done
	$(say) INSTALL $(DESTDIR)$(bashdir)/iotracectl
	$(Q)install -D -m 0644 packaging/completion/iotracectl.bash $(DESTDIR)$(bashdir)/iotracectl
	$(Q)ln -sf iotracectl $(DESTDIR)$(bashdir)/iotraced
	$(say) INSTALL $(DESTDIR)$(zshdir)/_iotracectl
	$(Q)install -D -m 0644 packaging/completion/_iotracectl $(DESTDIR)$(zshdir)/_iotracectl
uninstall: ## Remove what install put there (the configuration stays)
	$(say) REMOVE $(DESTDIR)$(sbindir)/iotraced
	$(say) REMOVE $(DESTDIR)$(bindir)/iotracectl
	$(Q)rm -f $(DESTDIR)$(sbindir)/iotraced $(DESTDIR)$(bindir)/iotracectl
	$(say) REMOVE $(DESTDIR)$(libexecdir)/iotraced
	$(Q)rm -f $(DESTDIR)$(libexecdir)/iotraced/metrics-http
	$(Q)rmdir $(DESTDIR)$(libexecdir)/iotraced 2>/dev/null || :
	$(say) REMOVE "$(DESTDIR)$(unitdir): $(UNITS)"
	$(say) REMOVE $(DESTDIR)$(sysusersdir)/iotraced.conf
	$(Q)rm -f $(addprefix $(DESTDIR)$(unitdir)/,$(UNITS)) $(DESTDIR)$(sysusersdir)/iotraced.conf
	$(say) REMOVE $(DESTDIR)$(catalogdir)/iotraced.catalog
	$(Q)rm -f $(DESTDIR)$(catalogdir)/iotraced.catalog
	$(say) REMOVE "$(DESTDIR)$(mandir): $(MAN)"
	$(Q)for page in $(MAN); do rm -f $(DESTDIR)$(mandir)/man$${page##*.}/$$page; done
	$(say) REMOVE "completions of bash and zsh"
	$(Q)rm -f $(DESTDIR)$(bashdir)/iotracectl $(DESTDIR)$(bashdir)/iotraced $(DESTDIR)$(zshdir)/_iotracectl

.PHONY: archive-check
archive-check: ## Ship to SFTP and S3 servers of this Debian that fail half of the time; load an archive into ClickHouse (root)
	$(Q)tests/lib/install-deps.sh archive
	$(Q)$(MAKE) -j$$(nproc) all $(B)/tests/tools/make-segment
	$(Q)KIND=archive tests/run-all.sh

# ---- packages --------------------------------------------------------------------------------------

.PHONY: deb deb-check rpm
deb: ## Build the Debian packages into build/deb
	$(Q)tests/lib/install-deps.sh deb
	$(Q)packaging/build-deb.sh $(B)/deb
deb-check: ## Build the packages twice, compare, lintian, install and read with them; build the RPMs, too
	$(Q)tests/lib/install-deps.sh deb-check
	$(Q)KIND=packages tests/run-all.sh
rpm: ## Build the RPMs into build/rpm (on Debian as well, without its dependency check)
	$(Q)packaging/build-rpm.sh $(B)/rpm

.PHONY: clean help
clean: ## Remove build/
	$(say) REMOVE $(B)
	$(Q)rm -rf $(B)
help: ## This list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{n=split($$1,t," "); printf "  %-12s %s\n", t[1], $$2}' $(MAKEFILE_LIST)

# Not those of the packages' builds.
-include $(shell find $(B) -path $(B)/deb -prune -o -type f -name '*.d' -print 2>/dev/null)
