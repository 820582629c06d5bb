#include "http/audits.h"

#include <string.h>

#include "http/sheet.h"
#include "runtime/runtime.h"
#include "store/audit.h"
#include "store/store.h"
#include "store/token.h"
#include "store/uuid.h"
#include "store/view.h"

enum {
    AUDITS_LIST = 1, /* the number of this list in its tokens */
    SUBMIT_MS = 5000,
    RETRY_MS = 5,
    TARGET_MAX = 256, /* bytes of it in an entry */
};

/* ---- reading ---- */

static void write_row(struct sheet *s, const struct audit *audit, struct span key)
{
    struct json *json = sheet_row(s);
    if (!json)
        return;
    json_object_begin(json);
    record_write_json(&audit_record, audit, json);
    json_object_end(json);
    sheet_keep(s, key);
}

static enum error read_rows(struct sheet *s)
{
    struct audit audit;
    struct view *view = view_open(store_here());
    if (!view)
        return ERR_UNAVAILABLE;
    struct scan scan = txn_scan(&view->txn, TABLE_AUDITS, key_span(&s->from), 0, SCAN_DOWN);
    while (!s->more && scan_next(&scan) && scan_read(&scan, &audit) == OK)
        if (!sheet_passed(s, scan.key))
            write_row(s, &audit, scan.key);
    enum error e = scan_end(&scan);
    view_close(view);
    return e;
}

void audits_serve(const struct request *q, struct response *r)
{
    static const struct sheet_list list = {.name = "audits", .number = AUDITS_LIST};
    struct sheet sheet;
    if (!sheet_take(q, r, &list, &sheet))
        return;
    enum error e = read_rows(&sheet);
    if (e)
        response_error(r, catalogue_code(r->surface, catalogue_failure(e)),
                       "the audit entries can't be read: %s", catalogue_sentence(e));
    else
        sheet_answer(q, r, &list, &sheet);
}

/* ---- writing ---- */

/* What the entry would have said, or will say, except its details. */
static void tell(const struct audit_append *entry, enum error e, bool handed)
{
    char line[8192]; /* whatever its texts hold: 6 bytes for each of 112 + 256 + 512 + 128, and the rest */
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, line, sizeof(line), NULL, NULL);
    json_init(&json, &sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "level", string, handed ? "warn" : "error");
    JSON_MEMBER(&json, "msg", string,
                handed ? "an audit entry was not waited for: the store has it"
                       : "an audit entry was not written");
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

struct span audits_cut(struct span text, size_t most)
{
    const unsigned char *bytes = text.bytes;
    if (text.size <= most)
        return text;
    while (most && (bytes[most] & 0xc0) == 0x80)
        most--;
    return span_of(bytes, most);
}

struct span audits_reason(const struct request *q)
{
    return audits_cut(request_text(q, "reason"), AUDITS_REASON_MAX);
}

/* Without a time after which the store would drop it. */
static enum error hand(const struct audit_append *entry, uint64_t deadline)
{
    uint64_t ref;
    enum error e = store_ask(&audit_append_class, entry, &ref);
    if (e)
        return e;
    e = store_hear(ref, NULL, 0, NULL, deadline);
    if (e == ERR_TIMEOUT)
        actor_request_drop(ref);
    return e;
}

static enum error submit(const struct audit_append *entry, uint64_t deadline)
{
    return store_submit(&audit_append_class, entry, NULL, 0, NULL, deadline);
}

typedef enum error delivery(const struct audit_append *entry, uint64_t deadline);

static enum error append(delivery *deliver, struct audit_append *entry, uint64_t deadline)
{
    struct store *store = store_here();
    struct uuid_source source;
    if (!store)
        return ERR_UNAVAILABLE;
    uuid_source_init(&source, store->env);
    entry->id = uuid_v7(&source);
    /* A verb may have ended the writer itself: the entry waits for the next one. The same id again is the same entry. */
    for (;;) {
        enum error e = deliver(entry, deadline);
        if (e == ERR_EXISTS)
            return OK;
        if ((e != ERR_NOPROC && e != ERR_UNAVAILABLE && e != ERR_DOWN) || actor_now() >= deadline)
            return e;
        actor_sleep(actor_deadline_ms(RETRY_MS));
    }
}

static bool note(delivery *deliver, const struct audits_by *by, const struct audits_entry *entry,
                 uint64_t deadline)
{
    struct audit_append append_entry = {
        .who = audits_cut(by->who, AUDIT_WHO_MAX),
        .verb = span_text(entry->verb),
        .target = audits_cut(span_text(entry->target), TARGET_MAX),
        .reason = audits_cut(entry->reason, AUDITS_REASON_MAX),
        .outcome = span_text(entry->outcome),
        .request_id = by->request_id,
        .details = entry->details,
    };
    enum error e = append(deliver, &append_entry, deadline);
    if (e)
        tell(&append_entry, e, deliver == hand && e == ERR_TIMEOUT);
    return e == OK;
}

bool audits_note_by(const struct audits_by *by, const struct audits_entry *entry, uint64_t deadline)
{
    return note(submit, by, entry, deadline);
}

bool audits_hand_by(const struct audits_by *by, const struct audits_entry *entry, uint64_t deadline)
{
    return note(hand, by, entry, deadline);
}

struct audits_by audits_by(const struct request *q)
{
    struct span who = q->identity.subject;
    return (struct audits_by){.who = who.size ? who : span_text("operator"),
                              .request_id = span_of(q->trace.request_id, q->trace.request_id_length)};
}

bool audits_note(const struct request *q, const struct audits_entry *entry)
{
    struct audits_by by = audits_by(q);
    return audits_note_by(&by, entry, actor_deadline_ms(SUBMIT_MS));
}
