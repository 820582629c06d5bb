/* Faults: which trap is an actor's own, and how it lands.
 *
 * A trap is contained only if all of this holds: the thread runs an actor's callback; no guarded section is open; no fault
 * is being handled; the canaries of scheduler and worker are whole; and the program counter is in actor code, or in a leaf
 * function of a library that actor code called directly (the innermost return address is in actor code: strlen(NULL), a
 * call through a null pointer). Runtime code lies in a section of its own (coppice_text), so "in actor code" is two
 * comparisons. Everything else ends the process with one JSON line.
 *
 * The handler runs on the thread's alternate stack, writes down what happened and changes the interrupted context so
 * that returning from the signal continues in fault_lands, on the actor's own stack near its bottom, where longjmp takes
 * over. The kernel restores the signal mask on the way.
 */
#define _GNU_SOURCE
#include "runtime/scheduler.h"
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ucontext.h>
#include <unistd.h>

extern char __executable_start[], __etext[];
extern char __start_coppice_text[] __attribute__((weak)), __stop_coppice_text[] __attribute__((weak));

#define SIGNAL_STACK_SIZE (64 * 1024)

static const int contained_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};

static bool in_runtime_text(uintptr_t pc)
{
    return pc >= (uintptr_t)__start_coppice_text && pc < (uintptr_t)__stop_coppice_text;
}

bool fault_in_actor_text(uintptr_t pc)
{
    return pc >= (uintptr_t)__executable_start && pc < (uintptr_t)__etext && !in_runtime_text(pc);
}

/* ---- the last words of the process ---- */

static void put(char *line, size_t *used, size_t size, const char *text)
{
    for (; *text && *used + 8 < size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            line[(*used)++] = '\\';
        line[(*used)++] = c < ' ' ? ' ' : (char)c;
    }
}

static void put_raw(char *line, size_t *used, size_t size, const char *text)
{
    while (*text && *used + 2 < size)
        line[(*used)++] = *text++;
}

static void put_hex(char *line, size_t *used, size_t size, uint64_t n)
{
    char digits[19] = "0x";
    int at = 2;
    for (int shift = 60; shift >= 0; shift -= 4) {
        unsigned d = (unsigned)(n >> shift) & 15;
        if (d || at > 2 || shift == 0)
            digits[at++] = "0123456789abcdef"[d];
    }
    digits[at] = 0;
    put_raw(line, used, size, digits);
}

static _Noreturn void die(const char *what, const char *detail, const struct fault *f)
{
    char line[1024];
    size_t n = 0;
    put_raw(line, &n, sizeof line, "{\"level\":\"fatal\",\"msg\":\"");
    put(line, &n, sizeof line, what);
    put_raw(line, &n, sizeof line, "\",\"detail\":\"");
    put(line, &n, sizeof line, detail);
    put_raw(line, &n, sizeof line, "\"");
    if (f) {
        put_raw(line, &n, sizeof line, ",\"address\":\"");
        put_hex(line, &n, sizeof line, f->address);
        put_raw(line, &n, sizeof line, "\",\"pc\":\"");
        put_hex(line, &n, sizeof line, f->pc - (uintptr_t)__executable_start);
        put_raw(line, &n, sizeof line, "\"");
    }
    put_raw(line, &n, sizeof line, "}\n");
    env_error_write(line, n);
    if (f && f->signal) { /* the default action leaves a core where that is enabled */
        signal(f->signal, SIG_DFL);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, f->signal);
        pthread_sigmask(SIG_UNBLOCK, &set, NULL);
        raise(f->signal);
    }
    _exit(70);
}

void fault_fatal(const char *what, const char *detail)
{
    die(what, detail, NULL);
}

/* ---- reading the interrupted context ---- */

#if defined(__x86_64__)
static uintptr_t context_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
}
static uintptr_t context_sp(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gregs[REG_RSP];
}
static uintptr_t context_fp(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.gregs[REG_RBP];
}
/* A leaf function's return address is where the stack pointer points; elsewhere this is some other word, and the fault
 * is not contained. */
static uintptr_t context_return(const ucontext_t *u, uintptr_t low, uintptr_t high)
{
    uintptr_t sp = context_sp(u);
    return sp >= low && sp + 8 <= high ? *(const uintptr_t *)sp : 0;
}
static void context_go(ucontext_t *u, uintptr_t pc, uintptr_t sp)
{
    u->uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
    u->uc_mcontext.gregs[REG_RSP] = (greg_t)((sp & ~(uintptr_t)15) - 8);
    u->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)0x400; /* direction flag: the ABI wants it clear */
}
#elif defined(__aarch64__)
static uintptr_t context_pc(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.pc;
}
static uintptr_t context_sp(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.sp;
}
static uintptr_t context_fp(const ucontext_t *u)
{
    return (uintptr_t)u->uc_mcontext.regs[29];
}
static uintptr_t context_return(const ucontext_t *u, uintptr_t low, uintptr_t high)
{
    (void)low;
    (void)high;
    return (uintptr_t)u->uc_mcontext.regs[30];
}
static void context_go(ucontext_t *u, uintptr_t pc, uintptr_t sp)
{
    u->uc_mcontext.pc = pc;
    u->uc_mcontext.sp = sp & ~(uintptr_t)15;
}
#else
#error "fault containment knows x86-64 and aarch64"
#endif

/* Frame pointers, as far as they stay on the actor's stack. */
static void walk(struct fault *f, uintptr_t fp, uintptr_t low, uintptr_t high)
{
    f->frames = 0;
    f->frame[f->frames++] = f->pc;
    while (f->frames < FAULT_FRAMES && fp >= low && fp + 16 <= high && !(fp & 7)) {
        const uintptr_t *frame = (const uintptr_t *)fp;
        if (!frame[1])
            break;
        f->frame[f->frames++] = frame[1];
        if (frame[0] <= fp)
            break;
        fp = frame[0];
    }
}

/* The stubs through which the program calls shared libraries lie in none of our sections, and the runtime's own calls go
 * through them, too, with a lock held perhaps: whoever is in one is taken for the runtime. */
static bool in_linkage_stub(uintptr_t pc)
{
#if defined(__x86_64__)
    const unsigned char *at = (const unsigned char *)pc; /* endbr64 and bnd perhaps, then jmp *slot(%rip) */
    if (at[0] == 0xf3 && at[1] == 0x0f && at[2] == 0x1e && at[3] == 0xfa)
        at += 4;
    if (at[0] == 0xf2)
        at++;
    return at[0] == 0xff && at[1] == 0x25;
#else
    const uint32_t *at = (const uint32_t *)pc; /* adrp, ldr, add, br x17 */
    for (int i = 0; i < 4; i++)
        if (at[i] == 0xd61f0220)
            return true;
    return false;
#endif
}

bool fault_in_actor_code(const void *context)
{
    uintptr_t pc = context_pc(context);
    return fault_in_actor_text(pc) && !in_linkage_stub(pc);
}

/* ---- landing ---- */

struct reason fault_reason(const struct fault *f)
{
    char text[480];
    size_t n = 0;
    if (f->text[0]) {
        put_raw(text, &n, sizeof text, f->text);
        put_raw(text, &n, sizeof text, "; ");
    }
    put_raw(text, &n, sizeof text, "backtrace");
    for (uint32_t i = 0; i < f->frames; i++) {
        put_raw(text, &n, sizeof text, " ");
        uintptr_t pc = f->frame[i];
        bool ours = pc >= (uintptr_t)__executable_start && pc < (uintptr_t)__etext;
        put_raw(text, &n, sizeof text, ours ? "+" : "");
        put_hex(text, &n, sizeof text, ours ? pc - (uintptr_t)__executable_start : pc);
    }
    struct reason r = {.kind = REASON_CRASH,
                       .signal = (uint8_t)f->signal,
                       .crash = (uint16_t)f->crash,
                       .address = f->address};
    return reason_with_detail(r, text, n);
}

static _Noreturn void fault_lands(void)
{
    struct scheduler *s = scheduler_current;
    reason_drop(&s->worker->ending);
    s->worker->ending = fault_reason(&s->fault);
    s->fault.text[0] = 0;
    s->in_fault = 0;
    worker_land(s, LAND_FAULT);
}

static bool canaries_whole(const struct scheduler *s)
{
    return s->canary == WORKER_CANARY && s->worker->canary == WORKER_CANARY &&
           s->worker->canary_end == WORKER_CANARY;
}

/* abort() raises its signal some frames below whoever called it, in a library without frame pointers. The innermost word
 * on the stack that points into our own code is taken for the caller; a stale one in between can only make us stricter or
 * name another frame of the same actor. */
static bool aborted_by_actor(uintptr_t sp, uintptr_t low, uintptr_t high)
{
    if (sp < low || sp >= high)
        return false;
    for (uintptr_t at = (sp + 7) & ~(uintptr_t)7; at + 8 <= high; at += 8) {
        uintptr_t word = *(const uintptr_t *)at;
        if (in_runtime_text(word))
            return false;
        if (fault_in_actor_text(word))
            return true;
    }
    return false;
}

static const char *why_not(const struct scheduler *s, const ucontext_t *u, int signal, uintptr_t address)
{
    if (!s || !s->current || !s->worker)
        return "outside any actor";
    if (s->in_fault)
        return "while handling another fault";
    if (!s->rt->contained)
        return "containment is off";
    if (s->guard)
        return "in a guarded section";
    if (!canaries_whole(s))
        return "a canary is broken: memory is corrupt";
    uintptr_t pc = context_pc(u), low, high;
    coro_stack_bounds(s->worker->coro, &low, &high);
    if (fault_in_actor_text(pc))
        return NULL;
    if (signal == SIGABRT)
        return aborted_by_actor(context_sp(u), low, high) ? NULL : "abort in the runtime or a library";
    if (in_runtime_text(pc))
        return "in the runtime";
    if (fault_in_actor_text(context_return(u, low, high)))
        return NULL;
    return coro_guard_hit(s->worker->coro, address)
               ? "the actor's stack is full inside a library that may hold a lock"
               : "in a library that may hold a lock";
}

/* The frames that are left behind are nobody's any more; ASan has marks around what was in them. */
static void go_landing(struct scheduler *s, ucontext_t *u, uintptr_t low, uintptr_t high)
{
#if POOL_ASAN
    ASAN_UNPOISON_MEMORY_REGION((void *)low, high - low);
#endif
    (void)low;
    (void)high;
    context_go(u, (uintptr_t)fault_lands, s->worker->landing_sp - 512);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    struct scheduler *s = scheduler_current;
    ucontext_t *u = context;
    struct fault here = {.signal = signal, .address = (uintptr_t)info->si_addr, .pc = context_pc(u)};
    if (signal == SIGABRT)
        here.address = 0;
    const char *refusal = why_not(s, u, signal, here.address);
    /* A watchdog's, say: no fault of who happens to run. */
    if (info->si_code == SI_USER || info->si_code == SI_QUEUE)
        refusal = "sent to the process";
    if (refusal)
        die(strsignal(signal), refusal, &here);
    struct fault *f = &s->fault;
    uintptr_t low, high;
    s->in_fault = 1;
    f->signal = signal;
    f->crash = coro_guard_hit(s->worker->coro, here.address) && signal == SIGSEGV ? CRASH_STACK_OVERFLOW
                                                                                  : CRASH_SIGNAL;
    f->address = here.address;
    f->pc = here.pc;
    coro_stack_bounds(s->worker->coro, &low, &high);
    walk(f, context_fp(u), low, high);
    uintptr_t caller = context_return(u, low, high);
    if (!fault_in_actor_text(here.pc) && fault_in_actor_text(caller)) { /* a leaf has no frame */
        f->frames -= f->frames == FAULT_FRAMES;
        memmove(f->frame + 2, f->frame + 1, (f->frames - 1) * sizeof *f->frame);
        f->frame[1] = caller;
        f->frames++;
    }
    go_landing(s, u, low, high);
}

bool fault_stack_spent(struct scheduler *s, void *context)
{
    uintptr_t low, high;
    if (context_sp(context) >= s->stack_limit)
        return false;
    coro_stack_bounds(s->worker->coro, &low, &high);
    s->in_fault = 1;
    s->fault = (struct fault){.signal = SIGSEGV,
                              .crash = CRASH_STACK_OVERFLOW,
                              .address = context_sp(context),
                              .pc = context_pc(context)};
    walk(&s->fault, context_fp(context), low, high);
    go_landing(s, context, low, high);
    return true;
}

void fault_stack_exhausted(struct scheduler *s)
{
    s->fault = (struct fault){.signal = SIGSEGV,
                              .crash = CRASH_STACK_OVERFLOW,
                              .address = (uintptr_t)__builtin_frame_address(0),
                              .pc = (uintptr_t)__builtin_return_address(0)};
    walk(&s->fault, (uintptr_t)__builtin_frame_address(0), s->stack_limit - STACK_RESERVE,
         s->worker->landing_sp);
    fault_lands();
}

static _Noreturn void assert_lands(const char *expression, const char *file, int line, const char *function,
                                   uintptr_t caller)
{
    struct scheduler *s = scheduler_current;
    char text[160];
    snprintf(text, sizeof text, "%s:%d: %s: assertion failed: %s", file, line, function, expression);
    if (!s || !s->current || !s->worker || s->guard || s->in_fault || !s->rt->contained ||
        !canaries_whole(s) || !fault_in_actor_text(caller))
        die("assertion failed", text, NULL);
    s->fault = (struct fault){.signal = SIGABRT, .crash = CRASH_ASSERTION, .pc = caller};
    memcpy(s->fault.text, text, sizeof text);
    walk(&s->fault, (uintptr_t)__builtin_frame_address(0), s->stack_limit - STACK_RESERVE,
         s->worker->landing_sp);
    fault_lands();
}

void assert_failed(const char *expression, const char *file, int line, const char *function)
{
    assert_lands(expression, file, line, function, (uintptr_t)__builtin_return_address(0));
}

/* abort() and assert() of the C library, when actor code calls them (linked with --wrap): here the caller is known, and no
 * signal is needed. */
extern _Noreturn void __real_abort(void);
extern _Noreturn void __real___assert_fail(const char *expression, const char *file, unsigned line,
                                           const char *function);
_Noreturn void __wrap_abort(void);
_Noreturn void __wrap___assert_fail(const char *expression, const char *file, unsigned line,
                                    const char *function);

static bool called_by_actor(const struct scheduler *s, uintptr_t caller)
{
    return s && s->current && s->worker && !s->guard && !s->in_fault && s->rt->contained &&
           canaries_whole(s) && fault_in_actor_text(caller);
}

void __wrap_abort(void)
{
    struct scheduler *s = scheduler_current;
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!called_by_actor(s, caller))
        __real_abort();
    s->fault = (struct fault){.signal = SIGABRT, .crash = CRASH_SIGNAL, .pc = caller};
    walk(&s->fault, (uintptr_t)__builtin_frame_address(0), s->stack_limit - STACK_RESERVE,
         s->worker->landing_sp);
    fault_lands();
}

void __wrap___assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
    if (!called_by_actor(scheduler_current, (uintptr_t)__builtin_return_address(0)))
        __real___assert_fail(expression, file, line, function);
    assert_lands(expression, file, (int)line, function, (uintptr_t)__builtin_return_address(0));
}

/* ---- installing ---- */

void fault_install(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof contained_signals / sizeof *contained_signals; i++)
        sigaction(contained_signals[i], &action, NULL);
}

void fault_thread_begin(struct scheduler *s)
{
    void *p = mmap(NULL, SIGNAL_STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        fault_fatal("no memory", "a signal stack could not be mapped");
    s->signal_stack = p;
    stack_t stack = {.ss_sp = p, .ss_size = SIGNAL_STACK_SIZE};
    sigaltstack(&stack, NULL);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    memcpy(&s->blocked, &mask, sizeof s->blocked);
}

void fault_thread_end(struct scheduler *s)
{
    stack_t off = {.ss_flags = SS_DISABLE};
    sigaltstack(&off, NULL);
    munmap(s->signal_stack, SIGNAL_STACK_SIZE);
    s->signal_stack = NULL;
}
