#include "acutest.h"

#include <stdio.h>
#include <stdlib.h>

#include "http/commit.h"
#include "http/trace.h"
#include "runtime/runtime.h"
#include "store/audit.h"
#include "store/uuid.h"
#include "tests/support/inside.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static const struct span absent;

static bool has_id(const struct trace *trace, const char *want)
{
    char text[TRACE_ID_TEXT + 1];
    trace_write_id(trace, text);
    return strcmp(text, want) == 0;
}

static struct trace begun(const char *traceparent)
{
    struct trace trace;
    memset(&trace, 0xee, sizeof(trace));
    trace_begin(&trace, traceparent ? span_text(traceparent) : absent, absent, absent);
    return trace;
}

/* Throws away what other tests recorded. */
static void drain(void)
{
    struct trace_recorded span;
    for (uint32_t i = 0; i < RUNTIME_SCHEDULERS_MAX; i++)
        while (trace_take(i, &span))
            continue;
}

/* ---- traceparent ---- */

static const char *const bad_parents[] = {
    "",
    "00",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-011",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-00",
    "00-00000000000000000000000000000000-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0G",
    "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
    "00-0af7651916cd43dd8448eb211c80319 -b7ad6b7169203331-01",
    "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
    "0-00af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "FE-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01x",
    "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.what",
    " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
};

static void test_parents_that_are_meant(void)
{
    static const struct {
        const char *text;
        uint8_t flags;
    } rows[] = {
        {PARENT, 1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", 0},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", 1},
        {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02", 0},
        {"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 1},
        {"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-", 1},
        {"fe-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-will-be", 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct trace trace;
        TEST_CASE(rows[i].text);
        TEST_ASSERT(trace_parse(span_text(rows[i].text), &trace));
        TEST_CHECK(has_id(&trace, "0af7651916cd43dd8448eb211c80319c"));
        TEST_CHECK(memcmp(trace.parent_id, "\xb7\xad\x6b\x71\x69\x20\x33\x31", 8) == 0);
        TEST_CHECK(trace.flags == rows[i].flags);
    }
}

static void test_parents_that_are_none(void)
{
    unsigned char bytes[sizeof(struct trace)];
    struct trace trace;
    memset(&trace, 0x5a, sizeof(trace));
    for (size_t i = 0; i < sizeof(bad_parents) / sizeof(*bad_parents); i++)
        TEST_CHECK_(!trace_parse(span_text(bad_parents[i]), &trace), "%s", bad_parents[i]);
    TEST_CHECK(!trace_parse(span_of(NULL, 0), &trace));
    TEST_CHECK(!trace_parse(span_of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\0", 55), &trace));
    memcpy(bytes, &trace, sizeof(trace)); /* nothing was written */
    for (size_t i = 0; i < sizeof(bytes); i++)
        TEST_CHECK(bytes[i] == 0x5a);
}

/* ---- beginning ---- */

INSIDE(test_a_trace_goes_on)
{
    char text[TRACE_PARENT_TEXT + 1];
    struct trace trace = begun(PARENT);
    trace_write_parent(&trace, text);
    TEST_CHECK(strlen(text) == TRACE_PARENT_TEXT);
    TEST_CHECK(strncmp(text, PARENT, 36) == 0 && strcmp(text + 52, "-01") == 0);
    TEST_CHECK(strncmp(text + 36, &PARENT[36], 16) != 0); /* the span is ours */
    struct trace again;
    TEST_CHECK(trace_parse(span_text(text), &again));
    TEST_CHECK(memcmp(again.parent_id, trace.span_id, 8) == 0);
}

INSIDE(test_a_bad_parent_is_as_if_there_were_none)
{
    static const uint8_t none[8];
    for (size_t i = 0; i < sizeof(bad_parents) / sizeof(*bad_parents); i++) {
        struct trace trace;
        TEST_CASE(bad_parents[i]);
        trace_begin(&trace, span_text(bad_parents[i]), span_text("a=1"), absent);
        TEST_CHECK(!has_id(&trace, "0af7651916cd43dd8448eb211c80319c"));
        TEST_CHECK(!has_id(&trace, "00000000000000000000000000000000"));
        TEST_CHECK(memcmp(trace.parent_id, none, 8) == 0 && memcmp(trace.span_id, none, 8) != 0);
        TEST_CHECK(!trace.state.bytes); /* tracestate goes with its parent */
        TEST_CHECK(trace.flags == 0);   /* nobody exports */
    }
}

INSIDE(test_ids_differ)
{
    struct trace a = begun(NULL), b = begun(NULL);
    TEST_CHECK(memcmp(a.trace_id, b.trace_id, 8) != 0); /* all of it is chance, not one half alone */
    TEST_CHECK(memcmp(a.trace_id + 8, b.trace_id + 8, 8) != 0);
    TEST_CHECK(memcmp(a.span_id, b.span_id, 8) != 0);
    TEST_CHECK(memcmp(a.request_id, b.request_id, 36) != 0);
}

static uint8_t drawn[2 * INSIDE_SEEDS][16];
static size_t drawn_count;

static void draw_once(void)
{
    struct trace trace = begun(NULL);
    memcpy(drawn[drawn_count++], trace.trace_id, 16);
}

static void test_a_seed_gives_the_same_ids_again(void)
{
    drawn_count = 0;
    trace_forget();
    TEST_CHECK(inside(draw_once)); /* under each seed; the generators go on */
    trace_forget();
    TEST_CHECK(inside(draw_once));
    TEST_CHECK(memcmp(drawn[0], drawn[INSIDE_SEEDS], sizeof(drawn) / 2) == 0);
    TEST_CHECK(memcmp(drawn[0], drawn[1], 16) != 0);
}

INSIDE(test_a_child_is_below_its_parent)
{
    struct trace parent, child;
    char text[TRACE_SPAN_TEXT + 1];
    trace_begin(&parent, span_text(PARENT), span_text("k=v"), span_text("mine"));
    trace_child(&child, &parent);
    TEST_CHECK(memcmp(child.trace_id, parent.trace_id, 16) == 0);
    TEST_CHECK(memcmp(child.parent_id, parent.span_id, 8) == 0);
    TEST_CHECK(memcmp(child.span_id, parent.span_id, 8) != 0);
    TEST_CHECK(child.flags == 1 && child.request_id_length == 4 && span_equal(child.state, span_text("k=v")));
    trace_write_span(&child, text);
    TEST_CHECK(strlen(text) == TRACE_SPAN_TEXT);
    trace_child(&parent, &parent); /* in place */
    TEST_CHECK(memcmp(parent.parent_id, child.parent_id, 8) == 0);
}

/* ---- tracestate ---- */

static struct span state_of(const char *text, size_t size)
{
    struct trace trace;
    trace_begin(&trace, span_text(PARENT), span_of(text, size), absent);
    return trace.state;
}

INSIDE(test_states_are_kept_up_to_512_bytes)
{
    char text[700];
    memset(text, 'a', sizeof(text));
    TEST_CHECK(span_equal(state_of("a=1,b=2", 7), span_text("a=1,b=2")));
    TEST_CHECK(state_of(text, 512).size == 512);
    TEST_CHECK(state_of(text, 513).size == 0); /* one member, too long */
    text[200] = text[400] = text[600] = ',';
    TEST_CHECK(state_of(text, 512).size == 512);
    TEST_CHECK(state_of(text, 513).size == 400); /* whole members only */
    text[512] = ',';
    TEST_CHECK(state_of(text, 700).size == 512);
}

INSIDE(test_states_that_cannot_be_passed_on_are_dropped)
{
    TEST_CHECK(!state_of("a=\x01", 3).bytes);
    TEST_CHECK(!state_of("a=\r\nX: y", 8).bytes);
    TEST_CHECK(!state_of("a=\0", 3).bytes);
    TEST_CHECK(!state_of("a=\x7f", 3).bytes);
    TEST_CHECK(!state_of("a=\xc3\xa4", 4).bytes);
    TEST_CHECK(!state_of("", 0).bytes);
}

/* ---- request ids ---- */

static bool request_id_is(struct span sent, struct span want)
{
    struct trace trace;
    trace_begin(&trace, absent, absent, sent);
    return span_equal(span_of(trace.request_id, trace.request_id_length), want);
}

INSIDE(test_CTL_251_request_ids_of_clients_are_kept)
{
    char longest[TRACE_REQUEST_MAX + 1];
    memset(longest, 'x', sizeof(longest));
    TEST_CHECK(request_id_is(span_text("a"), span_text("a")));
    TEST_CHECK(request_id_is(span_text("!#$[]{}~'<>"), span_text("!#$[]{}~'<>")));
    struct span most = span_of(longest, TRACE_REQUEST_MAX);
    TEST_CHECK(request_id_is(most, most));
}

static void test_CTL_251_a_text_for_a_trace_id_is_kept_beside_ours(void)
{
    static const char *const kept[] = {"t1", "1AF7651916CD43DD8448EB211C80319C",
                                       "1af7651916cd43dd8448eb211c80319c"};
    static const char *const dropped[] = {"", "a b", "a\"b", "a\x7f"};
    struct trace trace = {.trace_id = {1}};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        trace_adopt(&trace, span_of(NULL, 0), span_text(kept[i]));
        TEST_CHECK_(span_equal(span_of(trace.trace_text, trace.trace_text_length), span_text(kept[i])), "%s",
                    kept[i]);
    }
    TEST_CHECK(trace.trace_id[0] == 0x1a); /* the last one is a trace id */
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        trace.trace_text_length = 0;
        trace_adopt(&trace, span_of(NULL, 0), span_text(dropped[i]));
        TEST_CHECK_(trace.trace_text_length == 0, "%s", dropped[i]);
    }
}

static bool adopts(const char *request_id, const char *trace_id, const char *want_request,
                   const char *want_trace)
{
    struct trace trace;
    char id[TRACE_ID_TEXT + 1];
    trace_begin(&trace, span_text("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), absent,
                span_text("mine"));
    trace_adopt(&trace, request_id ? span_text(request_id) : absent, trace_id ? span_text(trace_id) : absent);
    trace_write_id(&trace, id);
    return span_equal(span_of(trace.request_id, trace.request_id_length), span_text(want_request)) &&
           strcmp(id, want_trace) == 0 && trace.flags == 1;
}

INSIDE(test_CTL_251_ids_of_a_body_are_taken_when_they_can_be_ids)
{
    static const char old[] = "0af7651916cd43dd8448eb211c80319c", new[] = "1af7651916cd43dd8448eb211c80319c";
    TEST_CHECK(adopts("theirs", new, "theirs", new));
    TEST_CHECK(adopts(NULL, NULL, "mine", old));
    TEST_CHECK(adopts("", "", "mine", old));
    TEST_CHECK(adopts("a b", "t", "mine", old));
    TEST_CHECK(adopts("theirs", "00000000000000000000000000000000", "theirs", old));
    TEST_CHECK(adopts("theirs", "1AF7651916CD43DD8448EB211C80319C", "theirs", old));
    TEST_CHECK(adopts("theirs", "1af7651916cd43dd8448eb211c80319c0", "theirs", old));
    TEST_CHECK(adopts("a\r\nb", "1af7651916cd43dd-448eb211c80319c", "mine", old));
}

INSIDE(test_CTL_251_others_are_replaced_by_a_uuid)
{
    static const char *const bad[] = {"",      " ",        "a b",    "a\"",     "a\\",
                                      "a\x7f", "\xc3\xa4", "a\r\nb", "a\x1b[0m"};
    char too_long[TRACE_REQUEST_MAX + 1];
    memset(too_long, 'x', sizeof(too_long));
    for (size_t i = 0; i <= sizeof(bad) / sizeof(*bad); i++) {
        struct trace trace;
        struct uuid id;
        bool last = i == sizeof(bad) / sizeof(*bad);
        trace_begin(&trace, absent, absent, last ? span_of(too_long, sizeof(too_long)) : span_text(bad[i]));
        TEST_CHECK_(uuid_parse(trace.request_id, trace.request_id_length, &id), "%zu", i);
        TEST_CHECK(uuid_version(&id) == 7 && uuid_time_ms(&id) == actor_wall_now() / NS_PER_MS);
    }
}

/* ---- sampling ---- */

INSIDE(test_sampling_goes_by_the_parent_or_by_the_id)
{
    static const char *const unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    trace_export(true, 1, true);
    TEST_CHECK(begun(NULL).flags == 1 && begun(PARENT).flags == 1 && begun(unsampled).flags == 0);
    trace_export(true, 0, true);
    TEST_CHECK(begun(NULL).flags == 0 && begun(PARENT).flags == 1 && begun(unsampled).flags == 0);
    trace_export(true, 1, false);
    TEST_CHECK(begun(unsampled).flags == 1);
    trace_export(true, 0, false);
    TEST_CHECK(begun(PARENT).flags == 0);
    trace_export(true, 0.5, false); /* as the SDKs: the second half of the id, without its last bit */
    TEST_CHECK(begun("00-ffffffffffffffff7fffffffffffffff-b7ad6b7169203331-00").flags == 1);
    TEST_CHECK(begun("00-00000000000000008000000000000000-b7ad6b7169203331-01").flags == 0);
    trace_export(false, 1, false);
    TEST_CHECK(begun(NULL).flags == 0 && begun(PARENT).flags == 1); /* only passed on */
}

/* ---- spans ---- */

static void record(const struct trace *trace, const char *name)
{
    trace_record(&(struct trace_span){
        .trace = trace, .kind = TRACE_SERVER, .name = name, .began_ns = 1, .ended_ns = 2});
}

static uint32_t here(void)
{
    return (uint32_t)actor_scheduler_of(actor_self());
}

INSIDE(test_spans_are_recorded_when_sampled_and_exported)
{
    struct trace trace = begun(PARENT);
    struct trace_recorded span;
    char longer[100];
    drain();
    record(&trace, "nobody exports");
    TEST_CHECK(!trace_take(here(), &span));
    trace_export(true, 1, true);
    trace.flags = 0;
    record(&trace, "not sampled");
    TEST_CHECK(!trace_take(here(), &span));
    trace.flags = 1;
    memset(longer, 'y', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = 0;
    trace_record(&(struct trace_span){.trace = &trace,
                                      .kind = TRACE_CLIENT,
                                      .status = TRACE_ERROR,
                                      .name = "one",
                                      .began_ns = 5,
                                      .ended_ns = 7,
                                      .attributes = {{"a", longer, 0}, {"b", NULL, -3}}});
    memset(longer, 'z', sizeof(longer) - 1);
    TEST_ASSERT(trace_take(here(), &span));
    TEST_CHECK(memcmp(span.trace_id, trace.trace_id, 16) == 0 && memcmp(span.span_id, trace.span_id, 8) == 0);
    TEST_CHECK(memcmp(span.parent_id, trace.parent_id, 8) == 0 && span.flags == 1);
    TEST_CHECK(span.kind == TRACE_CLIENT && span.status == TRACE_ERROR && strcmp(span.name, "one") == 0);
    TEST_CHECK(span.began_ns == 5 && span.ended_ns == 7);
    TEST_CHECK(span.attributes[0].textual && strlen(span.attributes[0].text) == TRACE_TEXT_MAX);
    TEST_CHECK(span.attributes[0].text[0] == 'y');
    TEST_CHECK(!span.attributes[1].textual && span.attributes[1].number == -3 && !span.attributes[2].key);
    TEST_CHECK(!trace_take(here(), &span));
    trace_export(false, 0, true);
}

INSIDE(test_a_full_ring_drops_the_newest_and_counts)
{
    struct trace trace = begun(PARENT);
    struct trace_recorded span;
    struct trace_counts before, after;
    drain();
    trace_export(true, 1, true);
    trace_counts(&before);
    record(&trace, "first");
    for (uint32_t i = 1; i < TRACE_RING; i++)
        record(&trace, "kept");
    record(&trace, "dropped");
    record(&trace, "dropped");
    trace_counts(&after);
    TEST_CHECK(after.recorded - before.recorded == TRACE_RING && after.dropped - before.dropped == 2);
    TEST_ASSERT(trace_take(here(), &span));
    TEST_CHECK(strcmp(span.name, "first") == 0);
    record(&trace, "again");
    uint32_t count = 0;
    while (trace_take(here(), &span))
        count++;
    TEST_CHECK(count == TRACE_RING && strcmp(span.name, "again") == 0);
    trace_export(false, 0, true);
}

INSIDE(test_a_commit_is_a_span_below_its_request)
{
    static const struct audit_append command; /* not looked at: there is no writer */
    static struct request request;
    struct request *q = &request;
    struct trace_recorded span = {0};
    drain();
    trace_export(true, 1, true);
    trace_begin(&q->trace, span_text(PARENT), absent, absent);
    TEST_CHECK(commit_submit(q, &audit_append_class, &command, NULL, 0, NULL, actor_deadline_ms(10)) ==
               ERR_UNAVAILABLE);
    TEST_ASSERT(trace_take(here(), &span));
    TEST_CHECK(strcmp(span.name, "store.commit") == 0 && span.kind == TRACE_CLIENT &&
               span.status == TRACE_ERROR);
    TEST_CHECK(memcmp(span.parent_id, q->trace.span_id, 8) == 0);
    TEST_CHECK(strcmp(span.attributes[1].text, "audit.append") == 0);
    TEST_CHECK(span.attributes[2].key && strcmp(span.attributes[2].key, "error.type") == 0 &&
               strcmp(span.attributes[2].text, "unavailable") == 0);
    trace_export(false, 0, true);
    (void)commit_submit(q, &audit_append_class, &command, NULL, 0, NULL, actor_deadline_ms(10));
    TEST_CHECK(!trace_take(here(), &span));
}

TEST_LIST
= {
    {"CTL-251 a text for a trace id is kept beside ours",
     test_CTL_251_a_text_for_a_trace_id_is_kept_beside_ours},
    {"parents that are meant", test_parents_that_are_meant},
    {"parents that are none", test_parents_that_are_none},
    {"a trace goes on", test_a_trace_goes_on},
    {"a bad parent is as if there were none", test_a_bad_parent_is_as_if_there_were_none},
    {"ids differ", test_ids_differ},
    {"a seed gives the same ids again", test_a_seed_gives_the_same_ids_again},
    {"a child is below its parent", test_a_child_is_below_its_parent},
    {"states are kept up to 512 bytes", test_states_are_kept_up_to_512_bytes},
    {"states that cannot be passed on are dropped", test_states_that_cannot_be_passed_on_are_dropped},
    {"CTL-251: request ids of clients are kept", test_CTL_251_request_ids_of_clients_are_kept},
    {"CTL-251: ids of a body are taken when they can be ids",
     test_CTL_251_ids_of_a_body_are_taken_when_they_can_be_ids},
    {"CTL-251: others are replaced by a UUID", test_CTL_251_others_are_replaced_by_a_uuid},
    {"sampling goes by the parent or by the id", test_sampling_goes_by_the_parent_or_by_the_id},
    {"spans are recorded when sampled and exported", test_spans_are_recorded_when_sampled_and_exported},
    {"a full ring drops the newest and counts", test_a_full_ring_drops_the_newest_and_counts},
    {"a commit is a span below its request", test_a_commit_is_a_span_below_its_request},
    {NULL, NULL},
};
