#include "store/counter.h"

#include "store/checksum.h"

#define counter_FIELD(name, TYPE, limit, since) RECORD_FIELD(counter, name, TYPE, limit, since)
RECORD_CLASS(counter, COUNTER_FIELDS, 1);

/* Sums stand in txn->counters as in a hash table (open addressing, linear probing, an empty key is a free place):
 * partitions alone make more counters than one wants to search through for each row. So they are written out
 * before the last places are used. */
#define SUMS_MAX (TXN_COUNTERS_MAX / 4 * 3)
STATIC_ASSERT((TXN_COUNTERS_MAX & (TXN_COUNTERS_MAX - 1)) == 0, "a place is the low bits of a hash");
STATIC_ASSERT(2 + COUNTER_LABEL_MAX <= KEY_SIZE_MAX, "a counter's key fits");

struct key counter_key(uint16_t counter, struct span label)
{
    struct key key;
    key.size = 0;
    ASSERT(label.size <= COUNTER_LABEL_MAX);
    key_add_u16(&key, counter);
    if (label.size > 0)
        key_add(&key, label.bytes, label.size);
    return key;
}

const char *counter_name(uint16_t counter)
{
    switch (counter) {
#define X(id, number, name, help) \
    case id:                      \
        return name;
        COUNTERS(X)
#undef X
    default:
        return NULL;
    }
}

/* Of this counter and label, without making a key of them. */
static bool is_of(const struct txn_counter *sum, uint16_t counter, struct span label)
{
    const uint8_t *byte = label.bytes;
    if (label.size <= 1)
        return sum->key.size == sizeof(counter) + label.size && key_u16(sum->key.bytes) == counter &&
               (!label.size || sum->key.bytes[sizeof(counter)] == *byte);
    return key_u16(sum->key.bytes) == counter &&
           span_equal(span_of(sum->key.bytes + sizeof(counter), sum->key.size - sizeof(counter)), label);
}

/* Most counters have no label, or the byte of a state: 40 numbers for each of these. Of an id the last bytes are as good as any
 * number: it is by chance, and ours. */
static uint64_t first_place(uint16_t counter, struct span label)
{
    const uint8_t *byte = label.bytes;
    uint32_t last;
    if (label.size == sizeof(struct uuid)) {
        memcpy(&last, byte + sizeof(struct uuid) - sizeof(last), sizeof(last));
        return last + counter * 40u;
    }
    if (label.size > 1)
        return checksum(counter, label.bytes, label.size);
    return counter * 40u + (label.size ? 1u + *byte : 0u);
}

/* The place of the counter's sum, or the free one where it would stand. The hash has no secret: where sums stand is
 * the order in which they are written, and that depends on the commands alone. */
static struct txn_counter *place_of(struct txn *txn, uint16_t counter, struct span label)
{
    uint64_t at = first_place(counter, label);
    for (;; at++) {
        struct txn_counter *sum = &txn->counters[at % TXN_COUNTERS_MAX];
        if (sum->key.size == 0 || is_of(sum, counter, label))
            return sum;
    }
}

static int64_t plus(int64_t value, int64_t delta)
{
    int64_t sum;
    bool beyond = __builtin_add_overflow(value, delta, &sum);
    ASSERT(!beyond);
    return sum;
}

/* The counter's sum, begun if need be. NULL: there is no room for another one. */
static struct txn_counter *sum_of(struct txn *txn, uint16_t counter, struct span label)
{
    ASSERT(label.size <= COUNTER_LABEL_MAX);
    if (txn->counters_count == 0)
        for (uint32_t i = 0; i < TXN_COUNTERS_MAX; i++)
            txn->counters[i].key.size = 0;
    struct txn_counter *sum = place_of(txn, counter, label);
    if (sum->key.size > 0)
        return sum;
    if (txn->counters_count == SUMS_MAX)
        return NULL;
    sum->key = counter_key(counter, label);
    sum->delta = 0;
    sum->known = false;
    txn->counters_count++;
    return sum;
}

void counter_add(struct txn *txn, uint16_t counter, struct span label, int64_t delta)
{
    ASSERT(txn->writing);
    txn->writes++;
    struct txn_counter *sum = sum_of(txn, counter, label);
    if (!sum) {
        counter_write_all(txn);
        sum = sum_of(txn, counter, label);
    }
    sum->delta = plus(sum->delta, delta);
}

/* A counter without a row is 0. */
static enum error row_read(struct txn *txn, const struct key *key, int64_t *ret_value, bool *ret_present)
{
    struct counter row = {.value = 0};
    enum error e = txn_read(txn, TABLE_COUNTERS, key_span(key), &row);
    if (e && e != ERR_NOT_FOUND)
        return e;
    *ret_value = row.value;
    *ret_present = e == OK;
    return OK;
}

/* What the row said when this transaction first asked: nobody else writes it. */
static enum error sum_learn(struct txn *txn, struct txn_counter *sum)
{
    enum error e = sum->known ? OK : row_read(txn, &sum->key, &sum->base, &sum->present);
    sum->known = e == OK;
    return e;
}

enum error counter_read(struct txn *txn, uint16_t counter, struct span label, int64_t *ret_value)
{
    struct txn_counter *sum = txn->writing ? sum_of(txn, counter, label) : NULL;
    if (!sum) { /* then this counter has no sum, and reading mustn't write out the others */
        struct key key = counter_key(counter, label);
        bool present;
        return row_read(txn, &key, ret_value, &present);
    }
    enum error e = sum_learn(txn, sum);
    if (!e)
        *ret_value = plus(sum->base, sum->delta);
    return e;
}

/* A row that can't be read mustn't be written over: then the whole transaction fails. */
static void write_one(struct txn *txn, struct txn_counter *sum)
{
    enum error e = sum_learn(txn, sum);
    if (e) {
        if (!txn->error)
            txn->error = e;
        return;
    }
    struct counter row = {.value = plus(sum->base, sum->delta)};
    if (row.value != 0)
        txn_write(txn, TABLE_COUNTERS, key_span(&sum->key), &row);
    else if (sum->present)
        txn_remove(txn, TABLE_COUNTERS, key_span(&sum->key));
}

void counter_write_all(struct txn *txn)
{
    if (txn->counters_count > 0)
        for (uint32_t i = 0; i < TXN_COUNTERS_MAX; i++)
            if (txn->counters[i].key.size > 0 && txn->counters[i].delta != 0 && !txn->error)
                write_one(txn, &txn->counters[i]);
    txn->counters_count = 0;
}
