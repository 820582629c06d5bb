#include "chaos/book.h"

#include <stdlib.h>
#include <string.h>

#include "chaos/brief.h"
#include "chaos/kind.h"
#include "chaos/page.h"
#include "chaos/trail.h"
#include "chaos/verdict.h"
#include "runtime/hash.h"

enum { BLOCK = 4096, BLOCKS_MAX = 1 << 15 };

static struct {
    struct entry *blocks[BLOCKS_MAX];
    uint64_t count;
    uint32_t *slots; /* positions + 1; open addressing */
    uint64_t slots_count;
} book;

static struct entry *at(uint64_t position)
{
    return &book.blocks[position / BLOCK][position % BLOCK];
}

static uint64_t slot_of(const struct uuid *id)
{
    static const struct hash_key key = {3, 4};
    uint64_t slot = hash_sip24(&key, id->bytes, sizeof(id->bytes)) & (book.slots_count - 1);
    while (book.slots[slot] && !uuid_equal(&at(book.slots[slot] - 1)->id, id))
        slot = (slot + 1) & (book.slots_count - 1);
    return slot;
}

static void grow(void)
{
    free(book.slots);
    book.slots_count = book.slots_count ? book.slots_count * 2 : 1 << 14;
    book.slots = calloc(book.slots_count, sizeof(*book.slots));
    if (!book.slots)
        exit(2);
    for (uint64_t i = 0; i < book.count; i++)
        book.slots[slot_of(&at(i)->id)] = (uint32_t)i + 1;
}

struct entry *book_find(const struct uuid *id)
{
    uint64_t slot = book.slots_count ? slot_of(id) : 0;
    return book.slots_count && book.slots[slot] ? at(book.slots[slot] - 1) : NULL;
}

struct entry *book_add(const struct uuid *id, struct entry **ret_there)
{
    if (book.count * 2 >= book.slots_count)
        grow();
    uint64_t slot = slot_of(id), block = book.count / BLOCK;
    if (book.slots[slot]) {
        *ret_there = at(book.slots[slot] - 1);
        return NULL;
    }
    if (block == BLOCKS_MAX ||
        (!book.blocks[block] && !(book.blocks[block] = calloc(BLOCK, sizeof(struct entry)))))
        exit(2);
    struct entry *entry = at(book.count++);
    entry->id = *id;
    book.slots[slot] = (uint32_t)book.count;
    return entry;
}

uint64_t book_count(void)
{
    return book.count;
}

uint64_t book_count_of(int asked, int state)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < book.count; i++)
        count += at(i)->asked == asked && (state < 0 || at(i)->state == state);
    return count;
}

/* ---- the list ---- */

static void judge_item(const struct caller *caller, const struct page *page, const struct json_node *item,
                       uint64_t *newest_ms)
{
    struct uuid id = {0};
    char text[UUID_TEXT_SIZE], state[16];
    uint64_t created = 0;
    (void)page_uuid(page, item, "job_id", &id);
    (void)page_time(page, item, "created_at", &created);
    (void)page_text(page, item, "state", state, sizeof(state));
    uuid_format(&id, text);
    struct entry *entry = book_find(&id);
    if (!VERDICT(LISTED, entry && entry->caller == caller->number, "%s is listed, %s", text,
                 entry ? "and is another client's" : "and was never accepted"))
        return;
    VERDICT(LISTED, !entry->listed, "%s is listed twice", text);
    VERDICT(LISTED, entry->given_up || state_of(state) == entry->state, "%s is listed as %s, and was %s",
            text, state, state_name(entry->state));
    VERDICT(LIST_ORDER, created == entry->created_ms && created <= *newest_ms,
            "%s of %llu comes after one of %llu", text, (unsigned long long)created,
            (unsigned long long)*newest_ms);
    entry->listed = true;
    *newest_ms = created;
}

/* One page; false: it was the last one. */
static bool list_page(struct caller *caller, char cursor[520], uint64_t *newest_ms)
{
    struct letter answer;
    char path[640];
    snprintf(path, sizeof(path), "/v1/jobs?limit=100%s%s", cursor[0] ? "&cursor=" : "", cursor);
    const struct call call = {.operation = TIME_LIST, .method = "GET", .path = path};
    int status = caller_call(caller, &call, &answer);
    const struct page *page = status == 200 ? page_read(0, answer_body(&answer)) : NULL;
    const struct json_node *root = page ? page_root(page) : NULL, *items = page_member(page, root, "items");
    cursor[0] = 0;
    bool listed = VERDICT(LISTED, page_is(items, JSON_ARRAY) && items->count <= 100, "GET %s: %d %.200s",
                          path, status, answer.body ? answer.body : "");
    if (page && listed) {
        for (const struct json_node *n = json_first(&page->json, items); n;
             n = json_after(&page->json, items, n))
            judge_item(caller, page, n, newest_ms);
        (void)page_text(page, root, "next_cursor", cursor, 512);
    }
    letter_free(&answer);
    return cursor[0] != 0;
}

/* What a filter lists fits it. */
static void judge_filter(struct caller *caller, const char *name, const char *value)
{
    struct letter answer;
    char path[128], found[32];
    snprintf(path, sizeof(path), "/v1/jobs?limit=100&%s=%s", name, value);
    const struct call call = {.operation = TIME_LIST, .method = "GET", .path = path};
    int status = caller_call(caller, &call, &answer);
    const struct page *page = status == 200 ? page_read(0, answer_body(&answer)) : NULL;
    const struct json_node *items = page ? page_member(page, page_root(page), "items") : NULL;
    bool good = page && page_is(items, JSON_ARRAY);
    for (const struct json_node *n = good ? json_first(&page->json, items) : NULL; n;
         n = json_after(&page->json, items, n))
        good = good && page_text(page, n, name, found, sizeof(found)) && strcmp(found, value) == 0;
    VERDICT(LIST_ORDER, good, "GET %s: %d, or what doesn't fit", path, status);
    letter_free(&answer);
}

void book_judge_list(struct caller *caller)
{
    char cursor[520] = "";
    uint64_t newest_ms = UINT64_MAX;
    while (list_page(caller, cursor, &newest_ms))
        ;
    for (uint64_t i = 0; i < book.count; i++) {
        char id[UUID_TEXT_SIZE];
        if (at(i)->caller != caller->number)
            continue;
        uuid_format(&at(i)->id, id);
        VERDICT(LISTED, at(i)->listed, "%s was accepted, and is not listed", id);
    }
    judge_filter(caller, "state", "SUCCEEDED");
    judge_filter(caller, "outcome", "FAILED");
    judge_filter(caller, "type", "DEFERRED");
}

/* ---- all together ---- */

static int by_creation(const void *a, const void *b)
{
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
    return x->created_ms < y->created_ms ? -1 : x->created_ms > y->created_ms;
}

/* Two submits at one instant without a kind have one definition; of the others the definition was recomputed. */
static void judge_drawn(struct entry *const *sorted, uint64_t count)
{
    const struct entry *before = NULL;
    for (uint64_t i = 0; i < count; i++) {
        if (sorted[i]->asked != KIND_DRAWN || !sorted[i]->drawn_known)
            continue;
        if (before && before->created_ms == sorted[i]->created_ms)
            VERDICT(DRAWN, before->kind == sorted[i]->kind, "%s and %s were drawn at the same instant",
                    kind_name(before->kind), kind_name(sorted[i]->kind));
        before = sorted[i];
    }
}

/* Claims come in commits, and events of one instant are raised apart: who is ahead by less than the lateness allowed is
 * not known to have gone first. */
static void judge_assigned(struct entry *const *sorted, uint64_t count)
{
    uint64_t latest_ms = 0, latest_created_ms = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct entry *entry = sorted[i];
        if (!entry->at_once || !entry->assigned_ms)
            continue;
        VERDICT(FIFO, latest_ms <= entry->assigned_ms + brief.late_ms,
                "a job of %llu was assigned %llu ms before one of %llu",
                (unsigned long long)entry->created_ms, (unsigned long long)(latest_ms - entry->assigned_ms),
                (unsigned long long)latest_created_ms);
        if (entry->assigned_ms > latest_ms)
            latest_ms = entry->assigned_ms, latest_created_ms = entry->created_ms;
    }
}

void book_judge_order(void)
{
    struct entry **sorted = calloc(book.count + 1, sizeof(struct entry *));
    if (!sorted)
        exit(2);
    for (uint64_t i = 0; i < book.count; i++)
        sorted[i] = at(i);
    qsort(sorted, book.count, sizeof(struct entry *), by_creation);
    judge_drawn(sorted, book.count);
    judge_assigned(sorted, book.count);
    free(sorted);
}
