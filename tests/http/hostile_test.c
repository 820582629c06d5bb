/* The hostile table (tests/hostile/rows.h) at the parser: each row whole, byte by byte, and in two pieces at every point.
 * tests/hostile sends the same rows over sockets. */
#include "acutest.h"

#include <string.h>

#include "http/url.h"
#include "tests/hostile/rows.h"
#include "tests/support/feed.h"
#include "tests/support/sanitized.h"

#define PIECES_MAX 3000u /* longer rows are cut at some points only */

static char bytes[FEED_MAX];
static size_t size;

static void add(const char *text, size_t length)
{
    TEST_ASSERT(length <= sizeof(bytes) - size);
    memcpy(bytes + size, text, length);
    size += length;
}

static void make(const struct row *row)
{
    const size_t filler = strlen(ROWS_FILLER);
    size = 0;
    for (size_t i = 0; i < row->size; i++)
        if (row->fill && i + filler <= row->size && memcmp(row->bytes + i, ROWS_FILLER, filler) == 0) {
            TEST_ASSERT(row->fill <= sizeof(bytes) - size);
            memset(bytes + size, 'a', row->fill);
            size += row->fill;
            i += filler - 1;
        } else {
            add(row->bytes + i, 1);
        }
    add(ROWS_NEXT, strlen(ROWS_NEXT));
}

static bool go_on(void *context, const struct request *q, size_t end)
{
    (void)context, (void)q, (void)end;
    return true;
}

static bool refused(const struct row *row, const size_t *cuts, size_t cuts_count)
{
    struct feed f = feed_bytes(bytes, size, cuts, cuts_count, go_on, NULL);
    bool said = f.status == row->status || (row->also && f.status == row->also);
    bool is = TEST_CHECK_(f.last == PARSED_REFUSED && said && f.requests == row->before,
                          "%s: %d, not %d, behind %u requests: %s", row->name, f.status, row->status,
                          f.requests, f.why ? f.why : "it isn't refused");
    return is && TEST_CHECK_(f.in_body == (row->level == ROW_BODY), "%s: head or body", row->name);
}

static void test_H2_H3_whole(void)
{
    for (size_t i = 0; i < ROWS_COUNT; i++)
        if (rows[i].level != ROW_FRONT) {
            make(&rows[i]);
            refused(&rows[i], NULL, 0);
        }
}

static void test_H2_H3_byte_by_byte(void)
{
    static size_t cuts[FEED_MAX];
    for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++)
        cuts[i] = i + 1;
    for (size_t i = 0; i < ROWS_COUNT; i++)
        if (rows[i].level != ROW_FRONT) {
            make(&rows[i]);
            refused(&rows[i], cuts, size - 1);
        }
}

static void test_H2_H3_in_two_pieces_at_every_point(void)
{
    for (size_t i = 0; i < ROWS_COUNT; i++) {
        if (rows[i].level == ROW_FRONT)
            continue;
        make(&rows[i]);
        size_t step = 1 + size / (SANITIZED ? 200 : PIECES_MAX);
        for (size_t cut = 0; cut < size; cut += step)
            if (!refused(&rows[i], &cut, 1))
                break;
    }
}

/* ---- what only the target has ---- */

static bool means_nothing(void *context, const struct request *q, size_t end)
{
    const struct row *row = context;
    char room[PARSER_TARGET_MAX];
    struct url url;
    enum url_result r = url_path(q->target, q->method == METHOD_OPTIONS, room, sizeof(room), &url);
    bool elsewhere = r == URL_OK && url.host.bytes && !span_equal(url.host, q->known[HEADER_HOST]);
    (void)end;
    TEST_CHECK_(r != URL_OK || elsewhere, "%s is no path", row->name);
    return false;
}

static void test_H5_targets_that_no_route_may_see(void)
{
    for (size_t i = 0; i < ROWS_COUNT; i++)
        if (rows[i].level == ROW_FRONT) {
            make(&rows[i]);
            struct row row = rows[i];
            struct feed f = feed_bytes(bytes, size, NULL, 0, means_nothing, &row);
            TEST_CHECK_(f.requests == 1 || f.status == 400, "%s: %s", row.name, f.why ? f.why : "");
        }
}

static void test_there_are_enough_rows_and_each_has_its_own_name(void)
{
    TEST_CHECK_(ROWS_COUNT >= 200, "%zu rows", ROWS_COUNT);
    for (size_t i = 0; i < ROWS_COUNT; i++)
        for (size_t k = 0; k < i; k++)
            TEST_CHECK_(strcmp(rows[i].name, rows[k].name) != 0, "'%s' is there twice", rows[i].name);
}

TEST_LIST
= {
    {"there are enough rows, and each has its own name",
     test_there_are_enough_rows_and_each_has_its_own_name},
    {"H2 H3 whole", test_H2_H3_whole},
    {"H2 H3 byte by byte", test_H2_H3_byte_by_byte},
    {"H2 H3 in two pieces at every point", test_H2_H3_in_two_pieces_at_every_point},
    {"H5 targets that no route may see", test_H5_targets_that_no_route_may_see},
    {NULL, NULL},
};
