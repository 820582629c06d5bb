/* Why an actor ended: a value with meaning, not a string.
 *
 * A reason is 24 bytes and copied by value; its detail (a structured term, a backtrace) is an immutable shared byte
 * string. Whoever stores a reason owns one reference: take it with reason_copy, give it back with reason_drop.
 * "Abnormal" is everything but normal, shutdown and shutdown(detail). None of these functions blocks.
 */
#ifndef COPPICE_RUNTIME_REASON_H
#define COPPICE_RUNTIME_REASON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blob;

#define REASONS(X)                                                                                          \
    X(REASON_NORMAL, "normal")                                                                              \
    X(REASON_SHUTDOWN, "shutdown") /* with a code or detail: OTP's {shutdown, Term} */                      \
    X(REASON_KILLED, "killed")     /* not trappable; terminate doesn't run */                               \
    X(REASON_NOPROC, "noproc")                                                                              \
    X(REASON_CRASH, "crash")     /* signal, address and backtrace are known */                              \
    X(REASON_OVERRUN, "overrun") /* computed past the runaway budget */                                     \
    X(REASON_QUOTA, "quota")     /* the arena's quota */                                                    \
    X(REASON_BAD_RETURN, "bad_return_value")                                                                \
    X(REASON_CHILD_FAILED, "failed_to_start_child") /* code: position of the child; detail: "id: reason" */ \
    X(REASON_ERROR, "error") /* anything else an actor says: code and detail are its own */

enum reason_kind {
#define X(name, text) name,
    REASONS(X)
#undef X
        REASON_KIND_COUNT
};

/* What kind of crash, beyond the signal. */
enum { CRASH_SIGNAL = 0, CRASH_STACK_OVERFLOW = 1, CRASH_ASSERTION = 2 };

struct reason {
    uint8_t kind;        /* enum reason_kind */
    uint8_t signal;      /* REASON_CRASH: the signal's number */
    uint16_t crash;      /* REASON_CRASH: CRASH_... */
    int32_t code;        /* shutdown, error: the actor's own number */
    uint64_t address;    /* REASON_CRASH: the faulting address */
    struct blob *detail; /* NULL, or text / bytes; one reference is ours */
};

#define REASON_DETAIL_MAX 65536 /* bytes; a longer detail is refused by reason_with_detail */

static inline struct reason reason_of(enum reason_kind kind)
{
    return (struct reason){.kind = (uint8_t)kind};
}

static inline struct reason reason_error(int code)
{
    return (struct reason){.kind = REASON_ERROR, .code = code};
}

/* A copy with these bytes as its detail; without them when blob memory is used up. */
struct reason reason_with_detail(struct reason r, const void *bytes, size_t size);
struct reason reason_copy(const struct reason *r);
void reason_drop(struct reason *r);

/* The detail's bytes (NULL when there is none); borrowed from r. */
const void *reason_detail(const struct reason *r, size_t *ret_size);

bool reason_abnormal(const struct reason *r);
bool reason_equal(const struct reason *a, const struct reason *b); /* detail compared byte by byte */
const char *reason_name(enum reason_kind kind);

/* "crash(SIGSEGV) at 0x0", "shutdown(7)", "error(12): text". Always terminates; returns the length written. */
#define REASON_TEXT_MAX 512
size_t reason_format(const struct reason *r, char *text, size_t size);

#endif
