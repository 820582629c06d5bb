# Coppice. `make run` starts it, `make test` proves it, `make help` lists the rest.
#
#   make CC=clang        the other compiler
#   make CORO=libdill    coroutines by libdill instead of the native switch
#   make test TEST=word  only the tests whose path holds the word
#   make V=1             every command as it runs
#
# Objects go to build/<variant>/, one folder per compiler and mode; sources are found by folder, so a new file needs no line
# here. docs/decisions/0001-house-and-build.md says why things are as they are.

VERSION := 0.1.0

ifeq ($(origin CC),default)
CC := gcc
endif
OBJCOPY ?= objcopy
MODE    ?=
# With sanitizers a compiler needs twice as long for -O2, and the tests take no less time for it. Branches are counted as they are
# written: inlining copies some of them, and folding drops others.
USUAL   := $(if $(filter asan tsan,$(MODE)),-O1,$(if $(filter coverage mcdc,$(MODE)),-O0,-O2))
OPT     ?= $(USUAL)
CORO    ?= native
PREFIX  ?= /usr/local
TEST    ?=
V       ?=

ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif
ifneq ($(word 2,$(MAKECMDGOALS)),)
.NOTPARALLEL: # several goals go one after the other: they share objects
endif
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := build
say := $(if $(V),@:,@echo)
run := $(if $(V),,@)

# --- variant: gcc, clang, asan, asan-clang, gcc-O0, gcc-libdill, ... ---------------------------------------------------

COMPILER := $(notdir $(firstword $(CC)))
MACHINE  := $(firstword $(subst -, ,$(shell $(CC) -dumpmachine 2>/dev/null)))
VARIANT  := $(if $(MODE),$(MODE)$(if $(filter-out gcc,$(COMPILER)),-$(COMPILER)),$(COMPILER))
VARIANT  := $(VARIANT)$(filter-out $(USUAL),$(OPT))$(if $(filter-out native,$(CORO)),-$(CORO))
B        := build/$(VARIANT)

WARN := -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wstrict-prototypes -Wmissing-prototypes \
	-Wpointer-arith -Wcast-qual -Wvla -Wundef -Werror
CODE := -std=gnu17 $(OPT) -g -fno-omit-frame-pointer -ftls-model=initial-exec -fstack-protector-strong -fPIE

# A copy of the tree with a planted defect (chaos/mutants/run): it compiles only with this, and is for no one to install.
MUTANT ?=
ifneq ($(MUTANT),)
CODE += -DCOPPICE_MUTANT
ifneq ($(filter install,$(MAKECMDGOALS)),)
$(error MUTANT is '$(MUTANT)': what holds a planted defect is not installed)
endif
endif

# gcc for any x86-64 clears and copies a few dozen bytes by `rep stos` and `rep movs`, which cost some 30 cycles before the first of
# them; as clang does it, small ones become stores in a row and the others calls of memset and memcpy.
ifeq ($(findstring clang,$(COMPILER))$(MACHINE),x86_64)
CODE += -mmemset-strategy=libcall:-1:noalign -mmemcpy-strategy=libcall:-1:noalign
endif

# What gcc warns of after following values it knows less of with -O0 and -O1: that is looked at without sanitizers.
WARN += $(if $(filter -O0 -O1,$(OPT)),$(if $(filter gcc,$(COMPILER)),-Wno-format-truncation -Wno-maybe-uninitialized))

ifeq ($(MODE),asan)
CODE += -fsanitize=address,undefined -fno-sanitize-recover=all
else ifeq ($(MODE),tsan)
CODE += -fsanitize=thread
# gcc warns that this sanitizer does not follow fences: ours order a flag against a queue, and hand nothing over.
WARN += $(if $(filter gcc,$(COMPILER)),-Wno-tsan)
else ifeq ($(MODE),fuzz)
CODE += -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
else ifeq ($(MODE),coverage)
CODE += --coverage -fprofile-update=atomic
else ifeq ($(MODE),mcdc)
CODE += -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc -fprofile-update=atomic
else ifeq ($(MODE),)
CODE += $(if $(filter-out -O0,$(OPT)),-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
else
$(error MODE is '$(MODE)'; it can be empty, asan, tsan, fuzz, coverage or mcdc)
endif

# --- what comes from outside: .ci/deps brings it -----------------------------------------------------------------------

PACKAGES := lmdb libcurl libcrypto libssl
LLHTTP   := $(wildcard build/deps/llhttp/*.c)
PARSON   := $(wildcard build/deps/parson/*.c)
PACKAGES += $(if $(LLHTTP),,libllhttp)

ifeq ($(CORO),libdill)
ifneq ($(shell pkg-config --exists libdill && echo yes),yes)
$(error CORO=libdill: pkg-config does not find libdill; install it, or leave CORO out for the native switch)
endif
CORO_CFLAGS := $(shell pkg-config --cflags libdill)
CORO_LIBS   := $(shell pkg-config --libs libdill)
else ifneq ($(CORO),native)
$(error CORO is '$(CORO)'; it can be native or libdill)
endif

INCLUDE := -I. -isystem build/deps/llhttp -isystem build/deps/parson $(CORO_CFLAGS)
INCLUDE += $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null)
# libcurl, libcrypto and libssl are loaded when they are first needed (docs/decisions/0021-libcurl-when-needed.md, 0022-...): the
# program is linked without them. Tests call the last two by themselves.
LIBS    := $(shell pkg-config --libs $(filter-out libcurl,$(PACKAGES)) 2>/dev/null) -ldl $(if $(PARSON),,-lparson)
OWN_LIBS := $(filter-out -lcrypto -lssl,$(LIBS))

# Whoever links libcoppice.a passes these as well: runtime/guard.c brackets each call of the allocator, so that a fault
# inside it is known to be one, and catches abort and assert in actor code. coppice.pc repeats them.
WRAP  := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=abort,--wrap=__assert_fail
# A coverage build also keeps what a process has counted that ends by _exit (tests/support/coverage.c).
ifneq ($(filter coverage mcdc,$(MODE)),)
WRAP  += -Wl,--wrap=_exit
COUNTS = $(B)/tests/support/coverage.o
endif
LINK   = $(CC) $(CODE) -pie -pthread -Wl,-z,relro,-z,now,--as-needed $(WRAP)
COMPILE = $(CC) $(CODE) $(WARN) -pthread -MMD -MP $(INCLUDE) -DCOPPICE_VERSION='"$(VERSION)"'

# --- sources, floor by floor -------------------------------------------------------------------------------------------

CORO_REST := $(if $(filter native,$(CORO)),runtime/coro_libdill.c,runtime/coro_native.c)

RUNTIME := $(filter-out $(CORO_REST),$(wildcard runtime/*.c))
RUNTIME += $(if $(filter native,$(CORO)),$(wildcard runtime/*_$(MACHINE).S))
UPPER   := $(filter-out config/main.c,$(wildcard config/*.c http/*.c actors/*.c store/*.c))
MAIN    := $(wildcard config/main.c)
TESTS   := $(wildcard tests/*/*_test.c)
BENCHES := $(wildcard tests/bench/*_bench.c)
FUZZERS := $(wildcard tests/fuzz/*_fuzz.c)
SCRIPTS := $(wildcard tests/*.sh tests/api/*_test.sh)
# Any other file in a folder of tests helps the programs of that folder; one in tests/support helps all.
HELPERS := $(filter-out %_test.c %_bench.c %_fuzz.c tests/support/coverage.c,$(wildcard tests/*/*.c))
# In chaos/ a file with a header of its own helps the others; the others are programs.
CHAOS_HELPERS := $(filter $(patsubst %.h,%.c,$(wildcard chaos/*.h)),$(wildcard chaos/*.c))
CHAOS         := $(filter-out $(CHAOS_HELPERS),$(wildcard chaos/*.c))

# These two look at the source tree, not at the program: once is enough.
ifneq ($(MODE),)
SCRIPTS := $(filter-out tests/house_test.sh tests/install_test.sh,$(SCRIPTS))
endif
# One thread each, and a hundred thousand stores or pipelines: nothing races in them, and with the thread sanitizer they take minutes.
ifeq ($(MODE),tsan)
TESTS := $(filter-out $(addprefix tests/,$(addsuffix _test.c,store/failing store/failing_deeds store/image store/job_model \
	http/splitter)),$(TESTS))
endif
ifneq ($(TEST),)
TESTS   := $(foreach t,$(TESTS),$(if $(findstring $(TEST),$t),$t))
SCRIPTS := $(foreach t,$(SCRIPTS),$(if $(findstring $(TEST),$t),$t))
endif

objects  = $(addprefix $(B)/,$(addsuffix .o,$(basename $(1))))
programs = $(addprefix $(B)/,$(basename $(1)))
helpers  = $(call objects,$(filter-out tests/support/%,$(filter $(dir $(1))%,$(HELPERS)))) $(SUPPORT)

RUNTIME_O := $(call objects,$(RUNTIME))
UPPER_O   := $(call objects,$(UPPER))
OUTSIDE_O := $(patsubst build/deps/%.c,$(B)/deps/%.o,$(LLHTTP) $(PARSON))
HELPERS_O := $(call objects,$(HELPERS))
LIBRARY   := $(B)/libcoppice.a
HOUSE     := $(B)/libhouse.a
PROGRAM   := $(if $(MAIN),$(B)/coppice)
LINKED    := $(call programs,$(TESTS) $(BENCHES))
FUZZED    := $(call programs,$(FUZZERS))
CUTTERS   := $(call programs,$(CHAOS))
CHAOS_A   := $(B)/libchaos.a
# From an archive only what a test uses comes along: those of the runtime link without the house.
SUPPORT   := $(B)/libsupport.a

# chaos/disk.c stands between LMDB and the system: these calls of LMDB and of ours go to it, so LMDB is linked statically.
DISK_CALLS   := open openat close read lseek write pwrite writev pwritev fdatasync fsync ftruncate fallocate posix_fallocate \
	rename renameat mkdir mkdirat unlink unlinkat rmdir
DISK_WRAP    := $(foreach c,$(DISK_CALLS),-Wl,--wrap=$c)
LIBS_STATIC  := $(patsubst -llmdb,-l:liblmdb.a,$(LIBS))

# For tests/store/failing_*test.c and tests/http/failing_test.c: in copies of the two archives each of these calls goes to
# failing_NAME in tests/support/failing.c. Of LMDB's functions those are missing that can only say EINVAL.
FAILING_SYSTEM := malloc calloc realloc aligned_alloc posix_memalign strdup free open openat opendir readdir pread pwrite write \
	writev lseek fstat fstatat __fxstat lstat fstatfs fdatasync fsync ftruncate posix_fallocate renameat mkdir mkdirat unlinkat \
	flock fcntl mmap dlopen
FAILING_LMDB   := $(addprefix mdb_,env_create env_open env_set_mapsize env_sync reader_check txn_begin txn_renew txn_commit \
	dbi_open get put del cursor_open cursor_get cursor_put cursor_del)
FAILING_TEST   := $(filter $(addprefix $(B)/tests/,store/failing_test store/failing_deeds_test store/failing_jobs_test store/failing_environment_test http/failing_test),$(LINKED))
FAILING_A      := $(B)/tests/store/failing_house.a $(B)/tests/store/failing_lmdb.a
LINKED         := $(filter-out $(FAILING_TEST),$(LINKED))

# For tests/runtime/supervisor_failing_test.c: the same with the supervisor's objects, and what says that something is used up.
FAILING_RUNTIME    := message_new actor_try_alloc actor_timer actor_monitor actor_own actor_inspect actor_start malloc calloc
FAILING_SUPERVISOR := $(patsubst $(B)/runtime/%,$(B)/tests/runtime/failing/%,$(filter $(B)/runtime/supervisor%,$(RUNTIME_O)))

# --- everyday ----------------------------------------------------------------------------------------------------------

.PHONY: help build run test deps bench asan tsan lint fuzz coverage branches mcdc conformance install clean precommit format
.PHONY: powercut powercut-full kill9 damage contain limp everycall comeback leases doublecheck mutants traffic chaos chaos-full sim sim-full soak contract docs
.PHONY: fuzz-farm lint-deep present present-test peers always check tests benches fuzzers cutters

build: $(LIBRARY) $(HOUSE) $(PROGRAM) ## build the library and the program (the default)
	$(if $(PROGRAM),@ln -sfn $(VARIANT)/coppice build/coppice)

run: ## install what is missing, build, start the server (ARGS= for its options)
	@.ci/deps build $(filter clang,$(COMPILER))
	@$(MAKE) --no-print-directory build
	@[ ! -e README.md ] || { echo "A first job, in another terminal:"; sed -n '/^<!-- first job/,/^<!-- end/p' README.md | grep -v '^<'; }
	@$(if $(MAIN),exec build/coppice serve $(ARGS),echo "there is no program yet: config/main.c is missing"; exit 1)

test: deps ## install what is missing, build, run every test
	@$(MAKE) --no-print-directory check

asan: deps ## the same tests with the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory check MODE=asan

tsan: deps ## the same tests with the thread sanitizer
	@$(MAKE) --no-print-directory check MODE=tsan

conformance: deps ## the rows of OTP's behaviour, each under CONFORMANCE_SEEDS=1000 random schedules
	@CONFORMANCE_SEEDS=$(or $(CONFORMANCE_SEEDS),1000) TEST_TIMEOUT=600 $(MAKE) --no-print-directory check TEST=tests/conformance/

lint: deps ## format, clang-tidy, cppcheck, and the house's own rules
	@.ci/deps lint
	@$(MAKE) --no-print-directory build
	@LIBRARY=$(LIBRARY) INCLUDE='$(INCLUDE)' .ci/lint

lint-deep: deps ## clang-tidy with the analyzer's whole budget, which takes three times as long
	@.ci/deps lint
	@TIDY_NODES=225000 INCLUDE='$(INCLUDE)' .ci/lint tidy

contract: ## make docs/contract/generated anew from the documents, check them all with npm's tools, and try the client on a server
	@.ci/contract --write

docs: deps ## make the tables that the program prints anew on their pages, and check what the documents say
	@$(MAKE) --no-print-directory build
	@COPPICE='$(PROGRAM)' CC='$(CC)' .ci/docs-tables
	@COPPICE='$(PROGRAM)' CC='$(CC)' sh tests/docs_test.sh

format: ## rewrite every C file as .clang-format says
	@find runtime store actors http config tests chaos -name '*.[ch]' 2>/dev/null | xargs -r clang-format -i

precommit: ## what to run before a commit: lint and tests
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory test

bench: deps peers ## every figure as a line `name value unit`; bench-runtime and so on for one section
	@$(MAKE) --no-print-directory benches
	@for b in $(call programs,$(BENCHES)); do $$b || exit; done

bench-jobs: peers
# Where code and stacks lie is each process's chance, and one in ten is a nanosecond slower for one of the classes by that (with
# setarch -R none of 14 was). A comparison that tells something does so in every process: three in a row have to.
bench-timing: deps
	@$(MAKE) --no-print-directory benches
	@for i in 1 2 3; do $(B)/tests/bench/timing_bench && exit; done; exit 1

bench-%: deps
	@$(MAKE) --no-print-directory benches
	@for b in $(call programs,$(filter tests/bench/$*%,$(BENCHES))); do $$b || exit; done

bench-goals: deps peers ## the figures beside their goals: pass or miss
	@$(MAKE) --no-print-directory benches >/dev/null
	@for b in $(call programs,$(BENCHES)); do $$b; done | .ci/bench-goals

fuzz: deps ## every fuzzer for T minutes or FUZZ_SECONDS=10 each, those of requests for FRONT_SECONDS, with clang
	@.ci/deps clang
	@$(MAKE) --no-print-directory fuzzers MODE=fuzz CC=clang

FUZZ_SUMS := tests/fuzz/sums.tsv
fuzz-farm: deps ## the same, and what it did is added to tests/fuzz/sums.tsv, the sum of which is printed
	@.ci/deps clang
	@FUZZ_SUM=$(FUZZ_SUMS) $(MAKE) --no-print-directory fuzzers MODE=fuzz CC=clang
	@.ci/fuzz-sum $(FUZZ_SUMS)

powercut: deps ## a power cut at every point of a recorded workload: 1,000,000 states, none may be wrong
	@$(MAKE) --no-print-directory $(B)/chaos/powercut
	@$(B)/chaos/powercut --states 1000000

powercut-full: deps ## the same with 10,000,000
	@$(MAKE) --no-print-directory $(B)/chaos/powercut
	@$(B)/chaos/powercut --states 10000000

kill9: deps ## kill -9 at random instants under load, 10,000 times: nothing acknowledged may be lost
	@$(MAKE) --no-print-directory $(B)/chaos/kill9
	@$(B)/chaos/kill9

KILLS ?= 10000
kill9-service: deps ## kill -9 of the whole server under load, KILLS=10000 times: no acknowledged job may be lost
	@$(MAKE) --no-print-directory $(B)/chaos/kill9_service $(PROGRAM)
	@$(B)/chaos/kill9_service $(PROGRAM) --cycles $(KILLS)

OVERLOAD ?= 60
overload: deps ## ten times as many jobs as the server can do, for OVERLOAD=60 seconds: nothing it took is lost, and it gets over it at once
	@$(MAKE) --no-print-directory $(B)/chaos/overload $(PROGRAM)
	@$(B)/chaos/overload $(PROGRAM) --seconds $(OVERLOAD)

CRASHES ?= 100000
contain: deps ## CRASHES=100000 crashes of actors in a server under load, and a hundredth of it of endless loops: nobody else notices
	@$(MAKE) --no-print-directory $(B)/chaos/contain $(B)/chaos/poisoned
	@$(B)/chaos/contain $(B)/chaos/poisoned --crashes $(CRASHES) --requests $$(($(CRASHES) * 10)) --loops $$(($(CRASHES) / 100)) $(ARGS)

LIMPS ?= 1000
limp: deps ## LIMPS=1000 crashes of the kind that nothing may survive: the process ends each time, and no acknowledged job is lost
	@$(MAKE) --no-print-directory $(B)/chaos/limp $(B)/chaos/poisoned $(PROGRAM)
	@$(B)/chaos/limp $(B)/chaos/poisoned $(PROGRAM) --cycles $(LIMPS)

everycall: deps ## the end of the process at every call of the store, for each operation of the API: wholly there or not at all
	@$(MAKE) --no-print-directory $(B)/chaos/everycall $(B)/chaos/poisoned $(PROGRAM)
	@$(B)/chaos/everycall $(B)/chaos/poisoned $(PROGRAM) $(ARGS)

COMEBACKS ?= 1000
comeback: deps ## COMEBACKS=1000 times kill -9 of a server with 100,000 open jobs in 1 GiB: how long until it answers again (ARGS=--times judges that)
	@$(MAKE) --no-print-directory $(B)/chaos/comeback $(PROGRAM)
	@$(B)/chaos/comeback $(PROGRAM) --restarts $(COMEBACKS) --jobs $$(($(COMEBACKS) * 100)) --bytes 10800 $(ARGS)

damage: deps ## 100,000 damaged data files: never taken for empty, never a wrong value
	@$(MAKE) --no-print-directory $(B)/chaos/damage
	@$(B)/chaos/damage

traffic: deps ## clients of the job API, and what they see of a running server: ARGS='--url http://127.0.0.1:8080 --jobs 400'
	@$(MAKE) --no-print-directory $(B)/chaos/traffic
	@$(B)/chaos/traffic $(ARGS)

HASHES ?= 10000
doublecheck: deps ## HASHES=10000 seeds of the simulated runtime: one trace each, with gcc and clang, -O0 and -O2
	@.ci/deps clang
	@SIM_HASHES=$(HASHES) sh tests/sim_hash.sh

SEEDS ?= 20000
sim: deps ## the whole server simulated, under SEEDS=20000 seeds with faults at every seam, its controls first
	@$(MAKE) --no-print-directory $(B)/chaos/sim
	@COMMIT=$$(git rev-parse --short HEAD 2>/dev/null) $(B)/chaos/sim --controls --kept --reach --seeds 1..$(SEEDS) --workers $$(nproc)

sim-full: deps ## the same with 1,000,000, each scenario
	@$(MAKE) --no-print-directory $(B)/chaos/sim
	@for s in mixed calm crashes actors net; do \
		COMMIT=$$(git rev-parse --short HEAD 2>/dev/null) $(B)/chaos/sim --kept --seeds 1..200000 --scenario $$s --workers $$(nproc) || exit; \
	done

chaos: deps ## every scenario of chaos/scripts against a server that is started for it; ARGS=--full for all of each
	@$(MAKE) --no-print-directory build
	@COPPICE=$(PROGRAM) sh chaos/run.sh $(ARGS)

soak: deps ## 30 virtual days with daily faults under 100 seeds: size, memory, descriptors and timers stay as they were
	@$(MAKE) --no-print-directory $(B)/chaos/sim
	@$(B)/chaos/sim --scenario soak --days 30 --seeds 1..100 --workers $$(nproc)

races: deps ## two processes that open one store at the same moment, 10,000 times: exactly one has it
	@$(MAKE) --no-print-directory $(B)/tests/store/two_test
	@TWO_RACES=10000 $(B)/tests/store/two_test

LEASES ?= 10000000
leases: deps ## LEASES=10000000 operations on jobs at random, with clocks that leap, against a model: no end of a job counts twice
	@$(MAKE) --no-print-directory $(B)/tests/store/job_model_test
	@JOB_MODEL_OPERATIONS=$(LEASES) $(B)/tests/store/job_model_test

MUTANTS ?=
mutants: deps ## defects planted one by one, each of which a harness has to find: MUTANTS='--some 12', MUTANTS=lease
	@B=$(B) chaos/mutants/run $(MUTANTS)

# For a night. What a campaign says is in docs/reliability.md.
chaos-full: deps ## every campaign at its full length, one after the other; hours
	@$(MAKE) --no-print-directory lint-deep
	@$(MAKE) --no-print-directory mutants
	@$(MAKE) --no-print-directory mutants MUTANTS=--sim
	@$(MAKE) --no-print-directory chaos ARGS=--full
	@for campaign in powercut-full kill9 kill9-service damage races contain limp everycall comeback leases doublecheck sim-full soak; do \
		$(MAKE) --no-print-directory $$campaign || exit; \
	done

coverage: deps ## run the tests and print the share of executed lines and of branches taken per file and floor
	@find build/coverage -name '*.gcda' -delete 2>/dev/null || true
	@$(MAKE) --no-print-directory check MODE=coverage
	@.ci/coverage build/coverage

OF ?= supervisor
branches: ## the branches not taken by the last `make coverage`, in the files whose path holds a word of OF='supervisor'
	@.ci/coverage build/coverage $(OF)

MCDC := runtime/supervisor store/job store/lifecycle store/outbox store/delivery store/ledger store/api_key store/standing
mcdc: ## modified condition/decision coverage of supervisor and job state machines: the conditions that no test showed to decide alone
	@.ci/deps mcdc
	@rm -rf build/mcdc-clang-19/profiles
	@LLVM_PROFILE_FILE='$(CURDIR)/build/mcdc-clang-19/profiles/%4m.profraw' $(MAKE) --no-print-directory check MODE=mcdc CC=clang-19
	@.ci/mcdc build/mcdc-clang-19 $(MCDC)

# The yardsticks of bench-jobs; it goes on without those that can't be had.
peers:
	@.ci/deps bench && tests/npm/bullmq/fetch || true

deps: ## install and unpack what is missing for building and testing
	@.ci/deps build test $(filter clang,$(COMPILER))

clean: ## remove everything built (what was unpacked in build/deps stays)
	@find build -mindepth 1 -maxdepth 1 ! -name deps -exec rm -rf {} + 2>/dev/null || true

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

install: build ## put program, library, headers and documents under DESTDIR PREFIX
	@.ci/install '$(DESTDIR)' '$(PREFIX)' '$(B)' '$(VERSION)' '$(WRAP)' '$(CORO_LIBS)'

# --- rules -------------------------------------------------------------------------------------------------------------

present:
	@.ci/deps --check build

present-test:
	@.ci/deps --check build test

check: tests $(PROGRAM) $(if $(filter tests/api/traffic_test.sh tests/api/kill_test.sh,$(SCRIPTS)),$(B)/chaos/traffic)
	$(if $(strip $(TESTS) $(SCRIPTS)),,$(if $(TEST),@echo "no test's path holds '$(TEST)'"; exit 1))
	@COPPICE='$(PROGRAM)' MODE='$(MODE)' CC='$(CC)' \
		.ci/run-tests $(B) $(call programs,$(TESTS)) $(SCRIPTS)

tests: $(call programs,$(TESTS))

benches: $(call programs,$(BENCHES)) $(PROGRAM)

cutters: $(CUTTERS)

# What is read from requests comes first, and may get more time than the rest.
FRONT := $(filter $(foreach f,chunks config connection json_text jwt parser schema token url,%/$f_fuzz),$(FUZZED))
FUZZ_SECONDS  ?= $(if $(T),$(shell expr $(T) \* 60),10)
FRONT_SECONDS ?= $(FUZZ_SECONDS)
fuzzers: $(FUZZED)
	@.ci/fuzz $(FRONT_SECONDS) $(FRONT) $(FUZZ_SECONDS) $(filter-out $(FRONT),$(FUZZED))

$(RUNTIME_O) $(UPPER_O) $(OUTSIDE_O) $(call objects,$(MAIN)): Makefile | present
$(HELPERS_O) $(call objects,$(TESTS) $(BENCHES) $(FUZZERS) $(CHAOS) $(CHAOS_HELPERS)): Makefile | present-test

# All code of the runtime goes into a section of its own, so that "in the runtime" is a comparison of addresses: the linker
# provides __start_coppice_text and __stop_coppice_text. Compilers spread code over these sections; .ci/lint-text finds what
# a new one would leave outside.
TEXT := $(foreach s,.text $(foreach p,hot unlikely startup exit asan.module_ctor asan.module_dtor tsan.module_ctor,\
	.text.$p .text.$p.),--rename-section $s=coppice_text,alloc,load,readonly,code,contents)

$(B)/runtime/%.o: runtime/%.c
	$(say) "CC   $@"
	@mkdir -p $(@D)
	$(run)$(COMPILE) -c -o $@ $<
	$(run)$(OBJCOPY) $(TEXT) $@

$(B)/runtime/%.o: runtime/%.S
	$(say) "AS   $@"
	@mkdir -p $(@D)
	$(run)$(COMPILE) -c -o $@ $<
	$(run)$(OBJCOPY) $(TEXT) $@

# The assembler takes the contracts' documents in as they are (http/contract.c), and the scripts of chaos (config/chaos_scripts.c).
$(B)/config/chaos_scripts.o: $(wildcard chaos/scripts/*.sh)
$(B)/http/contract.o: $(wildcard docs/contract/*.yaml docs/contract/*.tsv docs/contract/generated/*.json)

# parson has a json_string, and so has runtime/json.h: parson's is called parson_json_string here.
$(B)/deps/%.o: build/deps/%.c
	$(say) "CC   $@"
	@mkdir -p $(@D)
	$(run)$(CC) $(CODE) -w -MMD -MP $(INCLUDE) -Djson_string=parson_json_string -c -o $@ $<

$(B)/tests/%.o: tests/%.c
	$(say) "CC   $@"
	@mkdir -p $(@D)
	$(run)$(COMPILE) -isystem build/deps/acutest -c -o $@ $<

$(B)/%.o: %.c
	$(say) "CC   $@"
	@mkdir -p $(@D)
	$(run)$(COMPILE) -c -o $@ $<

# A member is called after its whole path, as runtime-actor.o: two files of one name are two members, and ln refuses two paths
# that come to the same. The list beside an archive changes when a file comes or goes, so that no archive keeps what has gone.
# It gets its name when it is whole.
MEMBERS_OF_$(LIBRARY) := $(RUNTIME_O)
MEMBERS_OF_$(HOUSE)   := $(UPPER_O) $(OUTSIDE_O)
MEMBERS_OF_$(CHAOS_A) := $(call objects,$(CHAOS_HELPERS))
MEMBERS_OF_$(SUPPORT) := $(call objects,$(filter tests/support/%,$(HELPERS)))
ARCHIVES := $(LIBRARY) $(HOUSE) $(CHAOS_A) $(SUPPORT)
member    = $$part/$(subst /,-,$(1:$(B)/%=%))
$(addsuffix .list,$(ARCHIVES)): %.list: always
	@mkdir -p $(@D)
	@echo '$(MEMBERS_OF_$*)' | cmp -s - $@ || echo '$(MEMBERS_OF_$*)' >$@
.SECONDEXPANSION:
$(ARCHIVES): %: %.list $$(MEMBERS_OF_$$*)
	$(say) "AR   $@"
	$(run)set -e; part=$$(mktemp -d $@.XXXXXX); trap 'rm -r $$part' EXIT; \
	$(foreach o,$(MEMBERS_OF_$@),ln $o $(call member,$o);) \
	$(AR) rcs $$part/archive $(foreach o,$(MEMBERS_OF_$@),$(call member,$o)); \
	mv $$part/archive $@

# Tests of the runtime link as a user's program does: with the library alone. The journal's has the workload of chaos/, too,
# and those of chaos/ have its helpers.
archives = $(if $(filter tests/store/journal_test tests/chaos/%,$(1)),$(CHAOS_A)) \
	$(if $(filter tests/runtime/supervisor_failing_test,$(1)),$(FAILING_SUPERVISOR)) \
	$(if $(filter tests/runtime/% tests/conformance/%,$(1)),,$(HOUSE)) $(LIBRARY)

$(PROGRAM): $(call objects,$(MAIN)) $(HOUSE) $(LIBRARY)
$(filter $(B)/tests/conformance/%,$(LINKED)): $(B)/tests/conformance/harness.o
$(LINKED) $(FUZZED): $(B)/%: $(B)/%.o $$(call helpers,$$*) $$(call archives,$$*)
$(PROGRAM) $(LINKED) $(FAILING_TEST): $(COUNTS)
$(PROGRAM): private LIBS := $(OWN_LIBS)
$(PROGRAM) $(LINKED):
	$(say) "LINK $@"
	$(run)$(LINK) -o $@ $^ $(CORO_LIBS) $(LIBS)

# What these test calls others who seldom fail, or differ: the calls go through the test.
$(B)/tests/http/parser_test: private WRAP += -Wl,--wrap=llhttp_execute
$(B)/tests/store/writer_test: private WRAP += -Wl,--wrap=message_new,--wrap=actor_try_alloc,--wrap=actor_listen
$(B)/tests/store/standing_test: private WRAP += -Wl,--wrap=message_new,--wrap=mdb_txn_begin
$(B)/tests/config/file_test: private WRAP += -Wl,--wrap=read,--wrap=fstat
OPERATED := $(addprefix $(B)/tests/http/,chaos_test entrance_test events_test metrics_test probe_test)
$(OPERATED): private WRAP += -Wl,--wrap=actor_deadline_ms

$(FAILING_TEST): $(B)/%: $(B)/%.o $$(call helpers,$$*) $(CHAOS_A) $(FAILING_A) $(LIBRARY)
	$(say) "LINK $@"
	$(run)$(LINK) -o $@ $^ $(CORO_LIBS) $(LIBS)

renamed = $(foreach c,$(1),--redefine-sym $c=failing_$c)
$(FAILING_SUPERVISOR): $(B)/tests/runtime/failing/%: $(B)/runtime/% Makefile
	$(say) "COPY $@"
	@mkdir -p $(@D)
	$(run)$(OBJCOPY) $(call renamed,$(FAILING_RUNTIME)) $< $@
$(B)/tests/store/failing_house.a: $(HOUSE) Makefile
	$(say) "COPY $@"
	@mkdir -p $(@D)
	$(run)$(OBJCOPY) $(call renamed,$(FAILING_SYSTEM) $(FAILING_LMDB)) $< $@
$(B)/tests/store/failing_lmdb.a: Makefile | present
	$(say) "COPY $@"
	@mkdir -p $(@D)
	$(run)$(OBJCOPY) $(call renamed,$(FAILING_SYSTEM)) "$$($(CC) -print-file-name=liblmdb.a)" $@

$(CUTTERS): $(B)/%: $(B)/%.o $$(if $$(filter chaos/poisoned,$$*),$(call objects,$(MAIN))) $(CHAOS_A) $(SUPPORT) $(HOUSE) $(LIBRARY)
	$(say) "LINK $@"
	$(run)$(LINK) $(CHAOS_LINK) -o $@ $^ $(CORO_LIBS) $(LIBS_STATIC)
$(B)/chaos/powercut: private CHAOS_LINK := $(DISK_WRAP)
# chaos/world.c stands around the whole server.
WORLD_CALLS := env_real contracts_create surface_routes fetch_begin sim_trace_add pool_take_slow send sendmsg shutdown accept4 getpid
GROUND_CALLS := mmap madvise
$(B)/chaos/sim: private CHAOS_LINK := $(DISK_WRAP) $(foreach c,$(WORLD_CALLS) $(GROUND_CALLS),-Wl,--wrap=$c)

# The product's own program, with what crashes on demand around it (chaos/board.h).
STORE_CALLS := pwrite pwritev fdatasync fsync ftruncate fallocate posix_fallocate
$(B)/chaos/poisoned: private CHAOS_LINK := $(foreach c,$(STORE_CALLS) front_serve,-Wl,--wrap=$c)

$(FUZZED):
	$(say) "LINK $@"
	$(run)$(LINK) -fsanitize=fuzzer -Wl,--wrap=_exit -o $@ $^ $(CORO_LIBS) $(LIBS)

-include $(patsubst %.o,%.d,$(RUNTIME_O) $(UPPER_O) $(OUTSIDE_O) $(HELPERS_O) \
	$(call objects,$(MAIN) $(TESTS) $(BENCHES) $(FUZZERS) $(CHAOS) $(CHAOS_HELPERS)))
