#include "store/steady.h"

#include "store/counter.h"

static const struct span no_label = {NULL, 0};

enum error steady_noted(struct txn *txn, uint64_t *ret_us)
{
    int64_t noted = 0;
    enum error e = counter_read(txn, COUNTER_STEADY, no_label, &noted);
    if (!e)
        *ret_us = noted > 0 ? (uint64_t)noted : 0;
    return e;
}

void steady_note(struct txn *txn, uint64_t steady_us)
{
    uint64_t noted = 0;
    if (steady_us <= INT64_MAX && steady_noted(txn, &noted) == OK && steady_us > noted &&
        steady_us - noted >= STEADY_NOTE_US)
        counter_add(txn, COUNTER_STEADY, no_label, (int64_t)(steady_us - noted));
}
