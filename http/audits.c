#include "http/audits.h"

#include <string.h>

#include "http/paging.h"
#include "http/parameter.h"
#include "runtime/runtime.h"
#include "store/audit.h"
#include "store/store.h"
#include "store/token.h"
#include "store/uuid.h"
#include "store/view.h"

enum {
    PAGE_BYTES = 60000, /* of entries: one of the largest always fits */
    AUDITS_LIST = 1,    /* the number of this list in its tokens */
    SUBMIT_MS = 5000,
    RETRY_MS = 5,
    TARGET_MAX = 256, /* bytes of it in an entry */
};

/* ---- reading ---- */

struct page {
    char *bytes; /* "{...},{...}" */
    size_t size, count;
    struct key last;
    bool more;
};

/* False: there is no room for it on this page. */
static bool page_add(struct page *p, const struct audit *audit, struct span key)
{
    struct json_sink sink;
    struct json json;
    size_t comma = p->count > 0;
    if (p->size + comma >= PAGE_BYTES)
        return false;
    json_sink_init(&sink, p->bytes + p->size + comma, PAGE_BYTES - p->size - comma, NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    record_write_json(&audit_record, audit, &json);
    json_object_end(&json);
    if (json_end(&json) != JSON_OK)
        return false;
    if (comma)
        p->bytes[p->size] = ',';
    p->size += comma + sink.length;
    p->count++;
    p->last.size = 0;
    key_add(&p->last, key.bytes, key.size);
    return true;
}

static enum error page_read(struct store *store, const struct key *from, size_t limit, struct page *ret)
{
    struct audit audit;
    struct view *view = view_open(store);
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(from), 0, SCAN_DOWN);
    while (scan_next(&scan)) {
        if (span_equal(scan.key, key_span(from))) /* where the page before ended */
            continue;
        if (ret->count == limit || scan_read(&scan, &audit) != OK || !page_add(ret, &audit, scan.key)) {
            ret->more = true;
            break;
        }
    }
    enum error e = scan_end(&scan);
    view_close(view);
    return e;
}

static void page_write(const struct page *page, const struct paging_next *next, struct json_sink *sink)
{
    json_sink_text(sink, "{\"audits\":[");
    json_sink_bytes(sink, page->bytes, page->size);
    json_sink_text(sink, "],\"next\":");
    if (next->size) {
        json_sink_text(sink, "\"");
        json_sink_bytes(sink, next->text, next->size);
        json_sink_text(sink, "\"}\n");
    } else {
        json_sink_text(sink, "null}\n");
    }
}

void audits_serve(const struct request *q, struct response *r)
{
    struct store *store = store_here();
    struct page page = {.size = 0};
    struct key from = {.size = 0};
    struct paging_next next;
    char after[TOKEN_TEXT_MAX];
    uint64_t limit;
    if (!parameter_text(q, r, "after", after, sizeof(after)) ||
        !parameter_number(q, r, "limit", AUDITS_DEFAULT, AUDITS_MAX, &limit))
        return;
    if (!store) {
        response_error(r, ERROR_OPS_503_UNAVAILABLE, "there is no store");
        return;
    }
    if (after[0] && token_open(store, AUDITS_LIST, 0, after, strlen(after), &from) != OK) {
        response_error(r, ERROR_OPS_400_INVALID,
                       "after is no token of this list; it must be the next of an earlier answer");
        return;
    }
    page.bytes = actor_alloc(PAGE_BYTES);
    enum error e = page_read(store, &from, limit, &page);
    if (e) {
        response_error(r, ERROR_OPS_503_STORE, "the audit entries can't be read: %s", error_name(e));
        return;
    }
    if (!page.more)
        page.last.size = 0;
    paging_go_on(q, r, "after", AUDITS_LIST, 0, &page.last, &next);
    response_begin(r, 200, RESPONSE_JSON);
    page_write(&page, &next, &r->sink);
}

/* ---- writing ---- */

/* What the entry would have said, except its details. */
static void tell_unwritten(const struct audit_append *entry, enum error e)
{
    char line[8192]; /* whatever its texts hold: 6 bytes for each of 112 + 256 + 512 + 128, and the rest */
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, "error");
    JSON_MEMBER(&json, "msg", string, "an audit entry was not written");
    JSON_MEMBER(&json, "error", string, error_name(e));
    JSON_MEMBER(&json, "who", string_n, entry->who.bytes, entry->who.size);
    JSON_MEMBER(&json, "verb", string_n, entry->verb.bytes, entry->verb.size);
    JSON_MEMBER(&json, "target", string_n, entry->target.bytes, entry->target.size);
    JSON_MEMBER(&json, "reason", string_n, entry->reason.bytes, entry->reason.size);
    JSON_MEMBER(&json, "outcome", string_n, entry->outcome.bytes, entry->outcome.size);
    json_object_end(&json);
    json_end(&json);
    runtime_log(runtime_self(), line, sink.length);
}

/* Between two characters. */
static struct span cut(struct span text, size_t most)
{
    const unsigned char *bytes = text.bytes;
    if (text.size <= most)
        return text;
    while (most && (bytes[most] & 0xc0) == 0x80)
        most--;
    return span_of(bytes, most);
}

static enum error append(struct audit_append *entry, uint64_t deadline)
{
    struct store *store = store_here();
    struct uuid_source source;
    if (!store)
        return ERR_UNAVAILABLE;
    uuid_source_init(&source, store->env);
    entry->id = uuid_v7(&source);
    /* A verb may have ended the writer itself: the entry waits for the next one. The same id again is the same entry. */
    for (;;) {
        enum error e = store_submit(&audit_append_class, entry, NULL, 0, NULL, deadline);
        if (e == ERR_EXISTS)
            return OK;
        if ((e != ERR_NOPROC && e != ERR_UNAVAILABLE && e != ERR_DOWN) || actor_now() >= deadline)
            return e;
        actor_sleep(actor_deadline_ms(RETRY_MS));
    }
}

static bool note(struct span who, struct span request_id, const struct audits_entry *entry, uint64_t deadline)
{
    struct audit_append append_entry = {
        .who = cut(who, AUDIT_WHO_MAX),
        .verb = span_text(entry->verb),
        .target = cut(span_text(entry->target), TARGET_MAX),
        .reason = cut(entry->reason, AUDITS_REASON_MAX),
        .outcome = span_text(entry->outcome),
        .request_id = request_id,
        .details = entry->details,
    };
    enum error e = append(&append_entry, deadline);
    if (e)
        tell_unwritten(&append_entry, e);
    return e == OK;
}

bool audits_note(const struct request *q, const struct audits_entry *entry)
{
    struct span who = q->identity.subject;
    return note(who.size ? who : span_text("operator"),
                span_of(q->trace.request_id, q->trace.request_id_length), entry,
                actor_deadline_ms(SUBMIT_MS));
}

bool audits_note_by(const char *who, const struct audits_entry *entry, uint64_t deadline)
{
    return note(span_text(who), span_of(NULL, 0), entry, deadline);
}
