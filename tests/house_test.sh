#!/bin/sh
# The house's own checks, tried on small trees: each must accept a good tree and refuse each kind of bad one. Then the test
# runner, the dependencies script and the Makefile, on trees of their own. Ends with `N passed, N failed`.
set -u
cd "$(dirname "$0")/.." || exit 1
top=$PWD
checks=$top/.ci
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# The make that runs this test must not steer the ones that it runs.
compiler=${CC:-gcc}
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES TEST MODE CC COPPICE OPT CORO V LIBRARY INCLUDE TEST_TIMEOUT TEST_JOBS CONFORMANCE_SEEDS RUN_ONE
passed=0
failed=0

pass() {
    passed=$((passed + 1))
}

fail() {
    failed=$((failed + 1))
    echo "FAILED: $1"
    [ ! -e "$tmp/out" ] || sed 's/^/    /' "$tmp/out"
}

# fresh: an empty tree to work in
fresh() {
    rm -rf "$tmp/tree"
    mkdir -p "$tmp/tree"
    cd "$tmp/tree" || exit 1
}

# file PATH: the standard input becomes that file
file() {
    mkdir -p "$(dirname "$1")"
    cat >"$1"
}

# accepts NAME COMMAND...
accepts() {
    name=$1
    shift
    if "$@" >"$tmp/out" 2>&1; then pass; else fail "$name: should have been accepted"; fi
}

# refuses NAME PATTERN COMMAND...: fails, and says so with words that match
refuses() {
    name=$1 pattern=$2
    shift 2
    if "$@" >"$tmp/out" 2>&1; then
        fail "$name: should have been refused"
    elif grep -q -- "$pattern" "$tmp/out"; then
        pass
    else
        fail "$name: refused, but without saying '$pattern'"
    fi
}

# last_line NAME LINE COMMAND...: whatever the status, this is the last line
last_line() {
    name=$1 line=$2
    shift 2
    "$@" >"$tmp/out" 2>&1
    if [ "$(tail -n 1 "$tmp/out")" = "$line" ]; then pass; else fail "$name: the last line should be '$line'"; fi
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# --- layers -----------------------------------------------------------------------------------------------------------

good_tree() {
    fresh
    for floor in runtime store actors http config tests/store chaos docs packaging; do mkdir -p $floor; done
    : >Makefile
    : >README.md
    : >LICENSE
    echo '#include <stdint.h>' >runtime/a.h
    echo '#include "runtime/a.h"' >store/a.c
    printf '#include "store/a.h"\n#include <lmdb.h>\n' >actors/a.c
    echo '#include "actors/a.h"' >http/a.c
    printf '#include "http/a.h"\n#include "runtime/a.h"\n' >config/main.c
    printf '#include "acutest.h"\n#include "store/a.h"\n' >tests/store/a_test.c
}

good_tree
accepts 'layers: a good tree' "$checks/lint-layers" .
mkdir build coppice-data
accepts 'layers: what a build and a server leave' "$checks/lint-layers" .

# layer_refused FILE INCLUDE PATTERN
layer_refused() {
    good_tree
    echo "#include $2" >>"$1"
    refuses "layers: $2 in $1" "$3" "$checks/lint-layers" .
}
layer_refused runtime/a.h '"store/a.h"' 'runtime/a.h:2: store/a.h points up'
layer_refused runtime/a.h '"config/topology.h"' 'points up'
layer_refused store/a.c '"actors/a.h"' 'points up'
layer_refused store/a.c '<http/a.h>' 'points up'
layer_refused actors/a.c '"http/a.h"' 'points up'
layer_refused http/a.c '"config/options.h"' 'points up'
layer_refused http/a.c '"tests/support/a.h"' 'not part of a floor'
layer_refused http/a.c '"chaos/a.h"' 'not part of a floor'
layer_refused config/main.c '"docs/a.h"' 'not part of a floor'
layer_refused store/a.c '"../runtime/a.h"' 'not named from the root'
layer_refused store/a.c '"a.h"' 'not named from the root'
layer_refused store/a.c '<runtime/a.h>' 'with quotes'
layer_refused runtime/a.h '<lmdb.h>' 'stands alone'
layer_refused runtime/a.h '<curl/curl.h>' 'stands alone'

good_tree
mkdir lib
refuses 'layers: a folder that the house has not' 'lib: the top level' "$checks/lint-layers" .
good_tree
: >notes.md
refuses 'layers: a file that the house has not' 'notes.md: the top level' "$checks/lint-layers" .

# --- environment and heap ---------------------------------------------------------------------------------------------

env_tree() {
    fresh
    file store/a.c <<'C'
/* time(NULL) and malloc(1) in a comment, also
   clock_gettime(CLOCK_MONOTONIC) over lines */
const char *text = "poll(it) \" rand() "; // free(text)
void a(struct x *x) { x->free(x); x->env->poll(x); times[0] = time; uptime(); my_malloc(3); }
C
}

env_tree
accepts 'env: comments, strings, members and other names' "$checks/lint-env" .

# env_refused CODE PATTERN
env_refused() {
    env_tree
    echo "$1" >>store/a.c
    refuses "env: $1" "$2" "$checks/lint-env" .
}
env_refused 'void b(void) { clock_gettime(CLOCK_REALTIME, &t); }' 'store/a.c:5: clock_gettime: ask the environment'
for call in gettimeofday time getrandom rand random epoll_create1 epoll_wait epoll_ctl eventfd timerfd_create \
    nanosleep clock_nanosleep usleep sleep poll select timer_create; do
    env_refused "int b(void) { return $call(1); }" "$call: ask"
done
for call in malloc calloc realloc free strdup posix_memalign; do
    env_refused "int b(void) { return $call (1); }" "$call: the heap"
done
env_refused 'static release *f = free;' 'free: the heap'
env_refused 'static release *f = &clock_gettime;' 'clock_gettime: ask'
env_refused '/* one */ int c = rand(); /* two */' 'rand: ask'
env_refused "int c = '\"'; int d = rand(); int e = '\"';" 'rand: ask'

env_tree
echo 'int now(void) { return clock_gettime(CLOCK_MONOTONIC, &t); }' | file runtime/env_real.c
accepts 'env: the environment itself' "$checks/lint-env" .
echo 'int now(void) { return malloc(1); }' | file runtime/env_real.c
refuses 'env: the heap in the environment' 'malloc: the heap' "$checks/lint-env" .
env_tree
echo 'int now(void) { return clock_gettime(CLOCK_MONOTONIC, &t); }' | file runtime/envelope/a.c
refuses 'env: a folder with a like name' 'ask the environment' "$checks/lint-env" .

env_tree
echo 'void b(void) { free(malloc(1)); }' >>store/a.c
echo 'store/a.c malloc,free boot: one record' | file .ci/lint-env.allow
accepts 'env: an allowed call' "$checks/lint-env" .
echo 'store/a.c malloc boot: one record' | file .ci/lint-env.allow
refuses 'env: a call beside the allowed one' 'free: the heap' "$checks/lint-env" .
echo 'store/a.c malloc,free,calloc boot: one record' | file .ci/lint-env.allow
refuses 'env: an entry that nothing needs' 'does not call calloc' "$checks/lint-env" .
echo 'store/a.c malloc,free' | file .ci/lint-env.allow
refuses 'env: an entry without a reason' 'without a reason' "$checks/lint-env" .

# --- words ------------------------------------------------------------------------------------------------------------

words_tree() {
    fresh
    file docs/a.md <<'C'
GET /v1/jobs/{id}, /proc/self/maps, /dev/null, #!/usr/bin/env sh, PREFIX /usr/local, mktemp .part.XXXXXX, $HOME/work/x,
https://example.org/home/page, the TODOLIST of nobody
C
}

words_tree
accepts 'words: a good tree' "$checks/lint-words" .

# words_refused TEXT PATTERN; the texts are put together here so that this file stays clean itself
words_refused() {
    words_tree
    echo "see: $1" >>docs/a.md
    refuses "words: $1" "docs/a.md:3:.*$2" "$checks/lint-words" .
}
words_refused "TO""DO: later" 'unfinished'
words_refused "FIX""ME" 'unfinished'
words_refused "XX""X" 'unfinished'
words_refused "/ho""me/me/x" 'absolute'
words_refused "\"/wo""rk/main\"" 'absolute'
words_refused "/us""r/share/x" 'absolute'
words_refused "-I/us""r/include" 'absolute'
words_refused "http://deb.""debian.org/debian" 'registry'
words_refused "registry.""npmjs.org" 'registry'
words_refused "py""pi.org/simple" 'registry'

# --- the runtime's code section ---------------------------------------------------------------------------------------

fresh
echo 'int f(void); int f(void) { return 1; }' | file a.c
echo 'int g(void); __attribute__((cold)) int g(void) { return 1; }' | file b.c
gather() {
    objcopy --rename-section .text=coppice_text,alloc,load,readonly,code,contents \
        --rename-section .text.unlikely=coppice_text,alloc,load,readonly,code,contents "$1"
}
gcc -O2 -c a.c b.c && ar rcs plain.a a.o b.o && gather a.o && ar rcs half.a a.o b.o && gather b.o && ar rcs whole.a a.o b.o
accepts 'text: gathered' "$checks/lint-text" whole.a
refuses 'text: not gathered' 'a.o has code in .text' "$checks/lint-text" plain.a
refuses 'text: one function outside' 'b.o has code in .text.unlikely' "$checks/lint-text" half.a
echo 'extern int x; int x;' | file c.c
gcc -c c.c && ar rcs empty.a c.o
refuses 'text: no code at all' 'no object has any code' "$checks/lint-text" empty.a
refuses 'text: no library' 'no object has any code' "$checks/lint-text" absent.a

# --- the tools: present when `make lint` has brought them -------------------------------------------------------------

if has clang-format; then
    fresh
    cp "$top/.clang-format" .
    printf 'int a(void)\n{\n    return 1;\n}\n' | file runtime/a.c
    accepts 'format: formatted' "$checks/lint-format" .
    echo 'int  b( void ) { return 1; }' >>runtime/a.c
    refuses 'format: not formatted' 'runtime/a.c' "$checks/lint-format" .
fi
if has cppcheck; then
    fresh
    echo 'int a(int x) { return x; }' | file runtime/a.c
    accepts 'cppcheck: clean' "$checks/lint-cppcheck" .
    echo 'int b(void) { int t[2] = {1, 2}; return t[2]; }' >>runtime/a.c
    refuses 'cppcheck: out of bounds' 'arrayIndexOutOfBounds' "$checks/lint-cppcheck" .
fi
if has clang-tidy; then
    fresh
    cp "$top/.clang-tidy" .
    echo 'int a(int x) { return x; }' | file runtime/a.c
    accepts 'tidy: clean' "$checks/lint-tidy" .
    echo 'int b(int *p) { return p ? 1 : *p; }' >>runtime/a.c
    refuses 'tidy: null dereference' 'clang-analyzer-core.NullDereference' "$checks/lint-tidy" .
    printf '#include "runtime/b.h"\nint a(int x) { return B(x); }\n' | file runtime/a.c
    echo '#define B(x) ((x) + 1)' | file runtime/b.h
    accepts 'tidy: a file and its header' "$checks/lint-tidy" .
    if [ -s build/tidy/runtime/a.c ]; then pass; else fail 'tidy: what passed is remembered'; fi
    echo '#define B(x) ((x) / 0)' | file runtime/b.h
    refuses 'tidy: a changed header is noticed' 'DivideZero' "$checks/lint-tidy" .
    rm runtime/a.c runtime/b.h
    printf '#include <string.h>\nvoid a(char *p) { memset(p, 0x1234, 4); }\n' | file store/a.c
    refuses 'tidy: a suspicious argument' 'bugprone-suspicious-memset-usage' "$checks/lint-tidy" .
fi

# --- the test runner --------------------------------------------------------------------------------------------------

fresh
file tests/x/good_test.c <<'C'
#include "acutest.h"
static void one(void) { TEST_CHECK(1 == 1); }
static void two(void) { TEST_CHECK(2 == 2); }
TEST_LIST = {{"one", one}, {"two", two}, {NULL, NULL}};
C
file tests/x/bad_test.c <<'C'
#include "acutest.h"
#include <stdlib.h>
#include <unistd.h>
static void one(void) { TEST_CHECK(1 == 1); }
static void wrong(void) { TEST_CHECK(1 == 2); }
static void crash(void) { abort(); }
static void leaves(void) { _exit(99); }
TEST_LIST = {{"one", one}, {"wrong", wrong}, {"crash", crash}, {"leaves", leaves}, {NULL, NULL}};
C
file tests/x/crash_test.c <<'C'
#include <stdlib.h>
int main(void) { abort(); }
C
file tests/x/late_test.c <<'C'
#include "acutest.h"
#include <stdlib.h>
#include <unistd.h>
static pid_t main_process;
static void late(void) { if (getpid() == main_process) _exit(99); }
__attribute__((constructor)) static void begin(void) { main_process = getpid(); atexit(late); }
static void one(void) { TEST_CHECK(1 == 1); }
static void two(void) { TEST_CHECK(2 == 2); }
TEST_LIST = {{"one", one}, {"two", two}, {NULL, NULL}};
C
file tests/x/hang_test.c <<'C'
#include <unistd.h>
int main(void) { for (;;) pause(); }
C
for t in good bad crash late hang; do gcc -w -isystem "$top/build/deps/acutest" -o tests/x/${t}_test tests/x/${t}_test.c; done
echo 'echo fine; echo "3 passed, 0 failed"' | file tests/counts.sh
echo 'echo "3 passed, 2 failed"; exit 1' | file tests/counts_bad.sh
echo 'echo "3 passed, 0 failed"; exit 1' | file tests/liar.sh
echo 'true' | file tests/silent.sh
echo 'false' | file tests/silent_bad.sh

last_line 'runner: units are counted' '2 passed, 0 failed' "$checks/run-tests" out tests/x/good_test
last_line 'runner: failures, crashes and exits of units' '1 passed, 3 failed' "$checks/run-tests" out tests/x/bad_test
refuses 'runner: a failure is a failure, and shown' 'Check 1 == 2... failed' "$checks/run-tests" out tests/x/bad_test
last_line 'runner: a program that crashes' '0 passed, 1 failed' "$checks/run-tests" out tests/x/crash_test
last_line 'runner: a status after good units' '2 passed, 1 failed' "$checks/run-tests" out tests/x/late_test
TEST_TIMEOUT=1
export TEST_TIMEOUT
refuses 'runner: a program that hangs' 'did not end within 1 s' "$checks/run-tests" out tests/x/hang_test
unset TEST_TIMEOUT
refuses 'runner: a program that is not there' '0 passed, 1 failed' "$checks/run-tests" out tests/x/absent_test
last_line 'runner: a script that counts' '3 passed, 0 failed' "$checks/run-tests" out tests/counts.sh
last_line 'runner: a script that counts failures' '3 passed, 2 failed' "$checks/run-tests" out tests/counts_bad.sh
last_line 'runner: a script whose status says otherwise' '3 passed, 1 failed' "$checks/run-tests" out tests/liar.sh
last_line 'runner: scripts that say nothing' '1 passed, 1 failed' "$checks/run-tests" out tests/silent.sh tests/silent_bad.sh
last_line 'runner: the sum' '6 passed, 2 failed' "$checks/run-tests" out tests/x/good_test tests/counts.sh \
    tests/silent.sh tests/silent_bad.sh tests/x/crash_test

# --- fuzzers ----------------------------------------------------------------------------------------------------------

fresh
mkdir -p tests/corpus/good
# shellcheck disable=SC2016 # for the scripts, not for here
printf '#!/bin/sh\ncase "$*" in *build/fuzz/corpus/good*tests/corpus/good*) echo "stat::number_of_executed_units: 7" ;; *) exit 1 ;; esac\n' | file good_fuzz
printf '#!/bin/sh\necho "a crash"\nexit 77\n' | file bad_fuzz
chmod +x good_fuzz bad_fuzz
last_line 'fuzz: executions are counted, and each fuzzer' '1 passed, 0 failed' "$checks/fuzz" 1 ./good_fuzz
if grep -q '^fuzz.good.executions 7 count$' "$tmp/out"; then pass; else fail 'fuzz: the number of executions'; fi
refuses 'fuzz: a finding is a failure, and shown' 'a crash' "$checks/fuzz" 1 ./good_fuzz ./bad_fuzz
last_line 'fuzz: findings are counted' '1 passed, 1 failed' "$checks/fuzz" 1 ./good_fuzz ./bad_fuzz
last_line 'fuzz: a program that is not there' '0 passed, 1 failed' "$checks/fuzz" 1 ./absent_fuzz
# shellcheck disable=SC2016 # for the scripts, not for here
printf '#!/bin/sh\necho "stat::number_of_executed_units: ${1#-max_total_time=}"\n' | tee long_fuzz >short_fuzz
chmod +x long_fuzz short_fuzz
last_line 'fuzz: some longer than others' '2 passed, 0 failed' "$checks/fuzz" 60 ./long_fuzz 5 ./short_fuzz
if grep -q '^fuzz.long.executions 60 ' "$tmp/out" && grep -q '^fuzz.short.executions 5 ' "$tmp/out"; then pass; else fail 'fuzz: for how long'; fi

# --- conditions ----------------------------------------------------------------------------------------------------------

refuses 'mcdc: no words' 'usage: ' "$checks/mcdc" build
refuses 'mcdc: a word that no path holds' "holds 'jbo'" "$checks/mcdc" build jbo

# --- .ci/run sums what the steps say ----------------------------------------------------------------------------------

fresh
mkdir -p .ci tests/conformance
cp "$checks/run" .ci/
cat >.ci/deps <<'C'
#!/bin/sh
true
C
cp .ci/deps .ci/contract
chmod +x .ci/deps .ci/contract
file Makefile <<'M'
test:
	@echo 'many words'; echo '5 passed, 0 failed'
lint:
	@echo '6 passed, 0 failed'
asan tsan conformance:
	@echo '1 passed, 0 failed'
.DEFAULT:
	@true
M
last_line 'ci: the sum of all steps' '19 passed, 0 failed' .ci/run
accepts 'ci: all good' .ci/run
printf 'bench:\n\ttrue\n' >>Makefile
sed -i "s/echo '6 passed, 0 failed'/echo '4 passed, 2 failed'; exit 1/" Makefile
last_line 'ci: failures are summed' '17 passed, 2 failed' .ci/run
refuses 'ci: a failure is a failure' 'failed' .ci/run
sed -i "s/^\t@echo '4 passed.*/\t@exit 3/" Makefile
last_line 'ci: a step that dies without a count' '13 passed, 1 failed' .ci/run

# --- dependencies: nothing half done is taken for done ----------------------------------------------------------------

# A machine whose apt names a mirror, and whose downloads go wrong in the way that $APT_FAULT says.
broken_mirror() {
    fresh
    mkdir -p .ci bin build/deps
    cp "$checks/deps" .ci/
    cp -r "$top/build/deps/parson" "$top/build/deps/llhttp" build/deps/ 2>/dev/null
    cat >bin/apt-get <<'C'
#!/bin/sh
case "$*" in
indextargets*) echo "http://mirror.invalid/debian/" ;;
*update*)
    [ "$APT_FAULT" != update ] || {
        echo "E: Failed to fetch the lists: no network" >&2
        echo "E: Some index files failed to download." >&2
        exit 100
    }
    ;;
*source*)
    case $APT_FAULT in
    truncated) head -c 100 /dev/urandom >x_1.orig.tar.gz ;;
    empty)
        mkdir -p x/src/testing
        : >x/src/testing/acutest.h
        tar -czf x_1.orig.tar.gz x
        ;;
    killed) kill -TERM "$(cat "$DEPS_PID")" ;;
    absent) exit 100 ;;
    esac
    ;;
esac
C
    chmod +x bin/apt-get
}

# Not started through `sh -c` directly, so that the fake apt-get knows whom to kill.
cat >"$tmp/start-deps" <<'C'
#!/bin/sh
echo $$ >"$DEPS_PID"
PATH=$PWD/bin:$PATH
exec .ci/deps test
C
chmod +x "$tmp/start-deps"
DEPS_PID=$tmp/deps.pid
export DEPS_PID APT_FAULT

if echo '#include <acutest.h>' | gcc -E -x c - >/dev/null 2>&1; then
    echo "this machine has its own acutest.h: nothing would be downloaded, so the download is not tried"
else
    for APT_FAULT in update truncated empty absent; do
        broken_mirror
        refuses "deps: download $APT_FAULT" 'acutest could not be had' "$tmp/start-deps"
        if [ ! -e build/deps/acutest ] && [ -z "$(ls -d build/deps/.part.* 2>/dev/null)" ]; then
            pass
        else
            fail "deps: $APT_FAULT left something behind"
        fi
    done
    APT_FAULT=update
    broken_mirror
    refuses "deps: the first thing that went wrong is told, and what helps" \
        '(E: Failed to fetch the lists: no network). Without a network, build/deps of another checkout will do' "$tmp/start-deps"
    APT_FAULT=killed
    broken_mirror
    if "$tmp/start-deps" >"$tmp/out" 2>&1; then
        fail 'deps: killed in the middle'
    elif [ -e build/deps/acutest ] || [ -n "$(ls -d build/deps/.part.* 2>/dev/null)" ]; then
        fail 'deps: killed in the middle, left something behind'
    else
        pass
    fi
    refuses 'deps: a missing piece is named' "acutest; 'make deps' brings it" .ci/deps --check build test
fi
refuses 'deps: an unknown group' "no group 'tset'" "$checks/deps" tset
accepts 'deps: nothing to do here' "$checks/deps" --check build test
last_line 'deps: a second run says nothing' '' "$checks/deps" build test

# --- the Makefile, on a small house -----------------------------------------------------------------------------------

# The small house has an allocator guard of its own, for malloc alone.
house() {
    make CC="$compiler" WRAP=-Wl,--wrap=malloc "$@"
}

fresh
cp -r "$top/Makefile" "$top/.ci" "$top/LICENSE" .
mkdir build
ln -s "$top/build/deps" build/deps
accepts 'make: an empty house builds' house
refuses 'make: nothing to run yet' 'config/main.c is missing' house run
refuses 'make: an unknown CORO' "CORO is 'green'" make CORO=green
refuses 'make: an unknown MODE' "MODE is 'fast'" make MODE=fast
if ! pkg-config --exists libdill; then
    refuses 'make: libdill is missing' 'pkg-config does not find libdill' house CORO=libdill
fi

file runtime/guard.h <<'C'
#include <stddef.h>
void *__wrap_malloc(size_t size);
C
file runtime/guard.c <<'C'
#include "runtime/guard.h"
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size) { return __real_malloc(size); }
C
file runtime/where.h <<'C'
#include <stdbool.h>
#define WHERE_ANSWER 1
bool where_is_runtime(void (*code)(void));
void where_cold(void);
int where_begun(void);
C
file runtime/where.c <<'C'
#include "runtime/where.h"
#include <stdint.h>
extern const char __start_coppice_text[], __stop_coppice_text[];
static int begun;
bool where_is_runtime(void (*code)(void))
{
    return (uintptr_t)code >= (uintptr_t)__start_coppice_text && (uintptr_t)code < (uintptr_t)__stop_coppice_text;
}
__attribute__((cold, noinline)) void where_cold(void) { begun += WHERE_ANSWER; }
__attribute__((constructor)) static void begin(void) { where_cold(); }
int where_begun(void) { return begun; }
C
file store/file.c <<'C'
int file_answer(void);
int file_answer(void) { return 42; }
C
echo 'int same_answer(void); int same_answer(void) { return 5; }' | file http/file.c
echo 'int gone_answer(void); int gone_answer(void) { return 6; }' | file http/gone.c
file config/main.c <<'C'
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[2], "list") == 0) return puts("coppice.1\ncoppice-api.7") < 0;
    return printf("coppice %s %s\n", COPPICE_VERSION, argc > 1 ? argv[1] : "") < 0;
}
C
echo 'ExecStart=@prefix@/bin/coppice serve' | file packaging/coppice.service
echo 'ListenStream=7000' | file packaging/coppice.socket
echo '{}' | file packaging/coppice.json
file tests/runtime/where_test.c <<'C'
#include "acutest.h"
#include "runtime/where.h"

static void inside(void) { TEST_CHECK(where_is_runtime((void (*)(void))where_is_runtime) && where_is_runtime(where_cold)); }
static void outside(void) { TEST_CHECK(!where_is_runtime(outside)); }
int here(void);
int everywhere(void);
static void sound(void) { TEST_CHECK(where_begun() == 1 && here() == 1 && everywhere() == 2); }
TEST_LIST = {{"inside", inside}, {"outside", outside}, {"sound", sound}, {NULL, NULL}};
C
echo 'int here(void); int here(void) { return 1; }' | file tests/runtime/here.c
echo 'int everywhere(void); int everywhere(void) { return 2; }' | file tests/support/everywhere.c
file tests/store/file_test.c <<'C'
#include "acutest.h"
#include "runtime/where.h"
int file_answer(void);
int same_answer(void);
static void above(void) { TEST_CHECK(file_answer() == 42 && same_answer() == 5 && !where_is_runtime((void (*)(void))file_answer)); }
TEST_LIST = {{"above", above}, {NULL, NULL}};
C
file tests/bench/runtime_bench.c <<'C'
#include <stdio.h>
int main(void) { return puts("runtime.nothing 1 ns") < 0; }
C
# shellcheck disable=SC2016 # for the script, not for here
echo '[ "$("$COPPICE" serve)" = "coppice $(sed -n "s/^VERSION := //p" Makefile) serve" ]' | file tests/program.sh

last_line 'make: test' '5 passed, 0 failed' house test
accepts 'make: the runtime is gathered' .ci/lint-text "build/$compiler/libcoppice.a"
last_line 'make: one test' '3 passed, 0 failed' house test TEST=where
refuses 'make: no such test' "no test's path holds 'nosuch'" house test TEST=nosuch
accepts 'make: run' house run
last_line 'make: bench' 'runtime.nothing 1 ns' house bench-runtime
last_line 'make: nothing is built twice' '' house
sed -i 's/WHERE_ANSWER 1/WHERE_ANSWER 2/' runtime/where.h
house_counts() {
    house test | grep 'passed, .* failed$'
}
last_line 'make: a changed header is noticed, in code and test' '4 passed, 1 failed' house_counts
members() {
    ar t "build/$compiler/libhouse.a" | grep -v '^deps-' | sort | xargs
}
if [ "$(members)" = 'http-file.o http-gone.o store-file.o' ]; then pass; else fail "make: two files of one name in an archive: $(members)"; fi
rm http/gone.c
accepts 'make: a file is removed' house
if [ "$(members)" = 'http-file.o store-file.o' ]; then pass; else fail "make: a removed file leaves its archive: $(members)"; fi
rm -r runtime/where.h runtime/where.c tests/runtime tests/store
accepts 'make: a removed header is noticed' house
accepts 'make: install' house install DESTDIR="$tmp/tree/dest" PREFIX=/opt
for installed in bin/coppice lib/libcoppice.a include/coppice/runtime/guard.h lib/pkgconfig/coppice.pc share/doc/coppice/LICENSE \
    share/man/man1/coppice.1 share/man/man7/coppice-api.7 share/bash-completion/completions/coppice share/zsh/site-functions/_coppice \
    share/fish/vendor_completions.d/coppice.fish lib/systemd/system/coppice.socket share/doc/coppice/examples/coppice.json; do
    if [ -e "dest/opt/$installed" ]; then pass; else fail "make install: $installed is missing"; fi
done
accepts 'make install: the unit starts what was installed' grep -qx 'ExecStart=/opt/bin/coppice serve' dest/opt/lib/systemd/system/coppice.service
refuses 'make: a relative PREFIX' "PREFIX is 'here'" house install PREFIX=here
accepts 'make: clean' house clean
if [ ! -e "build/$compiler" ] && [ -e build/deps ]; then pass; else fail 'make clean: removes what was built and nothing else'; fi

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
