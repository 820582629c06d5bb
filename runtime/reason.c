#include "runtime/reason.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "runtime/blob.h"

static const char *const reason_names[] = {
#define X(name, text) [name] = text,
    REASONS(X)
#undef X
};

const char *reason_name(enum reason_kind kind)
{
    return (unsigned)kind < REASON_KIND_COUNT ? reason_names[kind] : "unknown";
}

struct reason reason_with_detail(struct reason r, const void *bytes, size_t size)
{
    if (size <= REASON_DETAIL_MAX)
        r.detail = blob_create(bytes, size);
    return r;
}

struct reason reason_copy(const struct reason *r)
{
    if (r->detail)
        blob_ref(r->detail);
    return *r;
}

void reason_drop(struct reason *r)
{
    if (r->detail)
        blob_unref(r->detail);
    r->detail = NULL;
}

const void *reason_detail(const struct reason *r, size_t *ret_size)
{
    *ret_size = r->detail ? blob_size(r->detail) : 0;
    return r->detail ? blob_bytes(r->detail) : NULL;
}

bool reason_abnormal(const struct reason *r)
{
    return r->kind != REASON_NORMAL && r->kind != REASON_SHUTDOWN;
}

bool reason_equal(const struct reason *a, const struct reason *b)
{
    if (a->kind != b->kind || a->signal != b->signal || a->crash != b->crash || a->code != b->code ||
        a->address != b->address)
        return false;
    size_t size_a, size_b;
    const void *bytes_a = reason_detail(a, &size_a), *bytes_b = reason_detail(b, &size_b);
    return size_a == size_b && (size_a == 0 || memcmp(bytes_a, bytes_b, size_a) == 0);
}

static const char *signal_text(int signal)
{
    switch (signal) {
    case SIGSEGV:
        return "SIGSEGV";
    case SIGBUS:
        return "SIGBUS";
    case SIGFPE:
        return "SIGFPE";
    case SIGILL:
        return "SIGILL";
    case SIGABRT:
        return "SIGABRT";
    case SIGTRAP:
        return "SIGTRAP";
    default:
        return "signal";
    }
}

static int format_head(const struct reason *r, char *text, size_t size)
{
    const char *name = reason_name(r->kind);
    if (r->kind == REASON_CRASH && r->crash == CRASH_STACK_OVERFLOW)
        return snprintf(text, size, "crash(stack_overflow) at 0x%llx", (unsigned long long)r->address);
    if (r->kind == REASON_CRASH)
        return snprintf(text, size, "crash(%s) at 0x%llx", signal_text(r->signal),
                        (unsigned long long)r->address);
    if (r->code)
        return snprintf(text, size, "%s(%d)", name, (int)r->code);
    return snprintf(text, size, "%s", name);
}

size_t reason_format(const struct reason *r, char *text, size_t size)
{
    if (!size)
        return 0;
    size_t used = (size_t)format_head(r, text, size);
    if (used >= size)
        return size - 1;
    size_t detail_size;
    const char *detail = reason_detail(r, &detail_size);
    if (!detail || !detail_size || used + 3 > size)
        return used;
    memcpy(text + used, ": ", 3);
    used += 2;
    for (size_t i = 0; i < detail_size && used + 1 < size; i++)
        text[used++] = detail[i] >= ' ' && detail[i] < 127 ? detail[i] : '.';
    text[used] = 0;
    return used;
}
