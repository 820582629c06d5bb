#include "store/aside.h"

#include <stdlib.h>

#define RUNS 16u /* run i has 2^i rows: more than ASIDE_ROWS_MAX in all */
STATIC_ASSERT(ASIDE_ROWS_MAX < 1u << RUNS, "a list of all rows can be sorted");
STATIC_ASSERT(ASIDE_VALUE_MAX + KEY_SIZE_MAX <= ASIDE_BYTES, "each row finds room when there is no other");

struct aside *aside_new(void)
{
    struct aside *aside = calloc(1, sizeof(*aside));
    if (!aside)
        return NULL;
    aside->bytes = malloc(ASIDE_BYTES);
    aside->rows = malloc(ASIDE_ROWS_MAX * sizeof(*aside->rows));
    if (aside->bytes && aside->rows)
        return aside;
    aside_delete(aside);
    return NULL;
}

void aside_delete(struct aside *aside)
{
    if (!aside)
        return;
    free(aside->rows);
    free(aside->bytes);
    free(aside);
}

static struct span keep(struct aside *aside, struct span span)
{
    uint8_t *at = aside->bytes + aside->bytes_count;
    memcpy(at, span.bytes, span.size);
    aside->bytes_count += span.size;
    return span_of(at, span.size);
}

bool aside_put(struct aside *aside, uint32_t table, struct span key, struct span value)
{
    if (value.size > ASIDE_VALUE_MAX || aside->rows_count == ASIDE_ROWS_MAX ||
        key.size + value.size > ASIDE_BYTES - aside->bytes_count)
        return false;
    struct aside_row *row = &aside->rows[aside->rows_count++];
    row->key = keep(aside, key);
    row->value = keep(aside, value);
    row->next = aside->newest[table];
    aside->newest[table] = row;
    aside->tables |= UINT64_C(1) << table;
    return true;
}

/* ---- sorting ---- */

/* As LMDB compares keys. */
static bool before(const struct aside_row *a, const struct aside_row *b)
{
    size_t size = a->key.size < b->key.size ? a->key.size : b->key.size;
    int order = memcmp(a->key.bytes, b->key.bytes, size);
    return order < 0 || (order == 0 && a->key.size < b->key.size);
}

static struct aside_row *merge(struct aside_row *a, struct aside_row *b)
{
    struct aside_row *first = NULL, **last = &first;
    while (a && b) {
        struct aside_row **least = before(a, b) ? &a : &b;
        *last = *least;
        last = &(*least)->next;
        *least = *last;
    }
    *last = a ? a : b;
    return first;
}

/* Runs of 1, 2, 4 ... rows, as the digits of a number that counts up. */
static struct aside_row *sort(struct aside_row *rows)
{
    struct aside_row *runs[RUNS] = {NULL}, *run, *next;
    for (; rows; rows = next) {
        uint32_t i = 0;
        next = rows->next;
        rows->next = NULL;
        for (run = rows; runs[i]; runs[i++] = NULL)
            run = merge(runs[i], run);
        runs[i] = run;
    }
    run = NULL;
    for (uint32_t i = 0; i < RUNS; i++)
        run = merge(runs[i], run);
    return run;
}

struct aside_row *aside_take(struct aside *aside, uint32_t table)
{
    struct aside_row *rows = aside->newest[table];
    aside->newest[table] = NULL;
    aside->tables &= ~(UINT64_C(1) << table);
    if (!aside->tables)
        aside->bytes_count = aside->rows_count = 0;
    return sort(rows);
}

void aside_clear(struct aside *aside)
{
    while (aside->tables)
        (void)aside_take(aside, (uint32_t)__builtin_ctzll(aside->tables));
}
