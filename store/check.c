#include "store/check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/hash.h"
#include "store/counter.h"
#include "store/directory.h"
#include "store/guest.h"
#include "store/image.h"
#include "store/meta.h"
#include "store/value.h"

enum {
    FINDING_SIZE = 256,
    KEY_TEXT_SIZE = 2 * 40 + 4, /* the first 40 bytes of a key in hexadecimal */
    PLACES_FIRST = 1024,        /* of a table for counters or names; doubles while three quarters are used */
    SUMS_FIRST = 64,            /* room for counters themselves, likewise while all of it is */
};

/* ---- what a check knows ---- */

/* What one counter should be, as the rows say. */
struct sum {
    struct key key;
    int64_t value, least;
    bool bounded; /* by `least`; else it must be `value` */
    bool seen;    /* the counter has a row */
};

/* Where a name was met. */
struct named {
    uint64_t hash, place; /* 0: a free place */
};

struct check {
    struct txn *txn;
    const struct schema *schema;
    check_tell *tell;
    void *context;
    struct check_report report;
    struct sum *sums; /* in the order in which they were met */
    size_t sums_room, sums_count;
    uint32_t *places; /* a hash table of their numbers + 1: open addressing, linear probing */
    size_t places_room;
    struct named *names; /* likewise, the names themselves */
    size_t names_room, names_count;
    bool poor; /* no memory for another counter or name */
};

void check_complain(struct check *check, const char *format, ...)
{
    char finding[FINDING_SIZE];
    va_list args;
    if (check->report.findings++ >= CHECK_TOLD_MAX)
        return;
    va_start(args, format);
    vsnprintf(finding, sizeof(finding), format, args);
    va_end(args);
    for (char *c = finding; *c; c++) /* it may quote what was found, which may be anything */
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    check->tell(check->context, finding);
}

static const char *key_text(struct span key, char text[KEY_TEXT_SIZE])
{
    const uint8_t *at = key.bytes;
    uint32_t shown = key.size < 40 ? key.size : 40;
    for (uint32_t i = 0; i < shown; i++)
        snprintf(text + 2 * i, 3, "%02x", at[i]);
    snprintf(text + (size_t)2 * shown, 4, "%s", key.size > shown ? "..." : "");
    return text;
}

/* ---- names ---- */

static const struct hash_key names_key = {.k0 = 0x636865636b2e6e61, .k1 = 0x6d6573};

static struct named *named_of(struct named *names, size_t room, uint64_t hash)
{
    for (uint64_t at = hash;; at++) {
        struct named *named = &names[at & (room - 1)];
        if (named->place == 0 || named->hash == hash)
            return named;
    }
}

static bool names_grow(struct check *check)
{
    size_t room = check->names_room ? 2 * check->names_room : PLACES_FIRST;
    struct named *names = calloc(room, sizeof(*names));
    if (!names)
        return false;
    for (size_t i = 0; i < check->names_room; i++)
        if (check->names[i].place)
            *named_of(names, room, check->names[i].hash) = check->names[i];
    free(check->names);
    check->names = names;
    check->names_room = room;
    return true;
}

uint64_t check_named(struct check *check, const void *name, size_t size, uint64_t place)
{
    ASSERT(place != 0);
    if (4 * check->names_count >= 3 * check->names_room && !names_grow(check)) {
        check->poor = true;
        return 0;
    }
    struct named *named = named_of(check->names, check->names_room, hash_sip24(&names_key, name, size));
    if (named->place)
        return named->place;
    *named = (struct named){.hash = hash_sip24(&names_key, name, size), .place = place};
    check->names_count++;
    return 0;
}

/* ---- counters ---- */

/* Of that counter, or the free one that it would take. */
static uint32_t *place_of(const struct check *check, const struct key *key)
{
    static const struct hash_key open = {.k0 = 0x636865636b2e7375, .k1 = 0x6d73};
    for (uint64_t at = hash_sip24(&open, key->bytes, key->size);; at++) {
        uint32_t *place = &check->places[at & (check->places_room - 1)];
        if (*place == 0 || span_equal(key_span(&check->sums[*place - 1].key), key_span(key)))
            return place;
    }
}

static bool places_grow(struct check *check)
{
    size_t room = check->places_room ? 2 * check->places_room : PLACES_FIRST;
    uint32_t *places = calloc(room, sizeof(*places));
    if (!places)
        return false;
    free(check->places);
    check->places = places;
    check->places_room = room;
    for (size_t i = 0; i < check->sums_count; i++)
        *place_of(check, &check->sums[i].key) = (uint32_t)i + 1;
    return true;
}

static bool sums_grow(struct check *check)
{
    size_t room = check->sums_room ? 2 * check->sums_room : SUMS_FIRST;
    struct sum *sums = realloc(check->sums, room * sizeof(*sums));
    if (!sums)
        return false;
    check->sums = sums;
    check->sums_room = room;
    return true;
}

/* NULL: no memory, and the check will end with that. */
static struct sum *sum_of(struct check *check, const struct key *key)
{
    if ((4 * check->sums_count >= 3 * check->places_room && !places_grow(check)) ||
        (check->sums_count == check->sums_room && !sums_grow(check))) {
        check->poor = true;
        return NULL;
    }
    uint32_t *place = place_of(check, key);
    if (*place == 0) {
        check->sums[check->sums_count] = (struct sum){.key = *key};
        *place = (uint32_t)++check->sums_count;
    }
    return &check->sums[*place - 1];
}

/* The label may come from a damaged row and not be one. */
static struct sum *sum_of_label(struct check *check, uint16_t counter, struct span label)
{
    if (label.size > COUNTER_LABEL_MAX) {
        check_complain(check, "counters: a row would be counted under a label of %u bytes", label.size);
        return NULL;
    }
    struct key key = counter_key(counter, label);
    return sum_of(check, &key);
}

void check_count(struct check *check, uint16_t counter, struct span label, int64_t delta)
{
    struct sum *sum = sum_of_label(check, counter, label);
    if (sum && __builtin_add_overflow(sum->value, delta, &sum->value))
        check_complain(check, "counters: counter %u counts beyond any number", counter);
}

void check_count_least(struct check *check, uint16_t counter, struct span label, int64_t least)
{
    struct sum *sum = sum_of_label(check, counter, label);
    if (!sum)
        return;
    sum->least = !sum->bounded || least > sum->least ? least : sum->least;
    sum->bounded = true;
}

/* These say how far numbers were given away, or retention went, whatever became of the rows. */
static bool never_goes_back(uint16_t counter)
{
    return counter == COUNTER_OUTBOX_NEXT || counter == COUNTER_LEDGER_NEXT ||
           counter == COUNTER_LEDGER_PASSED || counter == COUNTER_RETAINED || counter == COUNTER_STEADY ||
           counter == COUNTER_JOB_SEQ || counter == COUNTER_JOB_NEWEST || counter == COUNTER_JOB_FENCE;
}

static void counter_compare(struct check *check, const struct sum *sum, int64_t value)
{
    char text[KEY_TEXT_SIZE];
    if (sum->bounded && value < sum->least)
        check_complain(check, "counters: %s is %" PRId64 ", but %" PRId64 " was given away",
                       key_text(key_span(&sum->key), text), value, sum->least);
    else if (!sum->bounded && value != sum->value)
        check_complain(check, "counters: %s is %" PRId64 ", but the rows say %" PRId64,
                       key_text(key_span(&sum->key), text), value, sum->value);
}

/* One row of the table of counters, against what was counted. */
static void counter_row(struct check *check, struct span span, const struct counter *counter)
{
    struct key key;
    key.size = 0;
    if (span.size < sizeof(uint16_t) || span.size > sizeof(uint16_t) + COUNTER_LABEL_MAX)
        return; /* its table's check function complains */
    key_add(&key, span.bytes, span.size);
    struct sum *sum = sum_of(check, &key);
    if (!sum)
        return;
    sum->seen = true;
    sum->bounded = sum->bounded || never_goes_back(key_u16(span.bytes));
    counter_compare(check, sum, counter->value);
}

/* Counters that have no row are 0. */
static void counters_without_row(struct check *check)
{
    for (size_t i = 0; i < check->sums_count; i++)
        if (!check->sums[i].seen)
            counter_compare(check, &check->sums[i], 0);
}

/* ---- rows ---- */

union row_struct {
    uint8_t bytes[COMMAND_STRUCT_MAX];
    uint64_t aligned;
};

/* Whether looking the key up gives this very row, in the same place. */
static bool found_by_key(struct check *check, uint32_t table, struct span key, struct span bytes)
{
    struct span found;
    uint8_t version;
    return txn_get(check->txn, table, key, &version, &found) == OK && found.bytes == bytes.bytes &&
           found.size == bytes.size;
}

static void check_row(struct check *check, uint32_t table, struct span key, struct span value)
{
    const struct schema_table *of = &check->schema->tables[table];
    union row_struct record;
    struct span bytes;
    char text[KEY_TEXT_SIZE];
    uint8_t version;
    check->report.rows++;
    if (key.size == 0 || key.size > KEY_SIZE_MAX) {
        check_complain(check, "%s: a key of %u bytes", of->name, key.size);
        return;
    }
    if (value_open(check->txn->store->environment.seeds[table], key, value, &version, &bytes) != OK) {
        check_complain(check, "%s: row %s is damaged: its checksum is wrong", of->name, key_text(key, text));
        return;
    }
    if (!found_by_key(check, table, key, bytes))
        check_complain(check, "%s: row %s isn't found under its key", of->name, key_text(key, text));
    ASSERT(of->record->size <= sizeof(record));
    enum error e = record_decode(of->record, version, bytes, &record);
    if (e) {
        check_complain(check, "%s: row %s can't be read: %s", of->name, key_text(key, text), error_name(e));
        return;
    }
    if (of->check)
        of->check(check, check->txn, key, &record);
    if (table == TABLE_COUNTERS)
        counter_row(check, key, (const struct counter *)(const void *)&record);
}

/* With a cursor of LMDB's: a scan would end at a damaged row, and check functions scan, too. */
static void check_table(struct check *check, uint32_t table)
{
    MDB_cursor *cursor;
    MDB_val k, v;
    const char *name = check->schema->tables[table].name;
    uint64_t rows = check->report.rows;
    int code = mdb_cursor_open(check->txn->mdb, check->txn->store->environment.tables[table], &cursor);
    if (code != 0) {
        check_complain(check, "%s: the table can't be read: %s", name, mdb_strerror(code));
        return;
    }
    while ((code = mdb_cursor_get(cursor, &k, &v, MDB_NEXT)) == 0)
        check_row(check, table, span_of(k.mv_data, k.mv_size), span_of(v.mv_data, v.mv_size));
    mdb_cursor_close(cursor);
    rows = check->report.rows - rows;
    if (code != MDB_NOTFOUND)
        check_complain(check, "%s: reading ended: %s", name, mdb_strerror(code));
    else if (rows != txn_rows(check->txn, table))
        check_complain(check, "%s: there are %" PRIu64 " rows, but it says %" PRIu64, name, rows,
                       txn_rows(check->txn, table));
}

static void check_stamp(struct check *check)
{
    struct meta_format format;
    MDB_dbi meta = check->txn->store->environment.tables[TABLE_META];
    enum error e = meta_read_format(check->txn->mdb, meta, &format);
    if (e)
        check_complain(check, "meta: what says which store this is can't be read: %s", error_name(e));
    else if (format.commit != check->report.commit)
        check_complain(check, "meta: the newest commit is %" PRIu64 ", but the store was left at %" PRIu64,
                       check->report.commit, format.commit);
}

enum error check_rows(struct txn *txn, const struct schema *schema, check_tell *tell, void *context,
                      struct check_report *ret_report)
{
    struct check check = {.txn = txn,
                          .schema = schema,
                          .tell = tell,
                          .context = context,
                          .report = {.commit = txn_number(txn)}};
    check_stamp(&check);
    for (uint32_t table = 0; table < schema->tables_count && !check.poor; table++)
        if (table != TABLE_COUNTERS)
            check_table(&check, table);
    if (!check.poor) /* when all that counts has been seen */
        check_table(&check, TABLE_COUNTERS);
    counters_without_row(&check);
    free(check.sums);
    free(check.places);
    free(check.names);
    if (check.poor)
        return ERR_MEMORY;
    *ret_report = check.report;
    return OK;
}

/* ---- a directory ---- */

/* Seen by the child that looks and by whoever started it; what it found outlives it. */
struct apart {
    struct check_report report;
    uint32_t told;
    char findings[CHECK_TOLD_MAX][FINDING_SIZE];
};

struct looking {
    const char *dir;
    const struct schema *schema;
    struct apart *apart;
};

static void keep(void *context, const char *finding)
{
    struct apart *apart = context;
    if (apart->told < CHECK_TOLD_MAX)
        snprintf(apart->findings[apart->told++], FINDING_SIZE, "%s", finding);
}

static void add_finding(struct apart *apart, const char *finding)
{
    apart->report.findings++;
    keep(apart, finding);
}

static enum error look_at_rows(struct looking *looking, struct guest *guest, uint64_t pages)
{
    struct apart *apart = looking->apart;
    struct check_report report;
    enum error e = check_rows(&guest->txn, looking->schema, keep, apart, &report);
    if (e)
        return e;
    report.findings += apart->report.findings;
    report.pages = pages;
    apart->report = report;
    return OK;
}

static enum error look_at_store(struct looking *looking, struct guest *guest, char *ret_text,
                                size_t text_size)
{
    struct image_report image = {0};
    char why[FINDING_SIZE] = "";
    enum error e = guest_look(guest, &image, why, sizeof(why));
    if (e == ERR_DAMAGED && image.damaged == 0) {
        add_finding(looking->apart, why); /* and nobody walks through that */
        return OK;
    }
    if (e && e != ERR_DAMAGED) {
        snprintf(ret_text, text_size, "'%s': %s", looking->dir, why);
        return e;
    }
    if (!e && guest->format.format < looking->schema->format) {
        snprintf(ret_text, text_size,
                 "'%s': its pages are sound; its rows are of format %" PRIu32
                 ", and are brought to format %" PRIu32 " when a server opens it: check it then",
                 looking->dir, guest->format.format, looking->schema->format);
        return ERR_UNAVAILABLE;
    }
    e = look_at_rows(looking, guest, image.pages);
    if (e)
        snprintf(ret_text, text_size, "'%s': there is no memory to check it", looking->dir);
    return e;
}

static enum error look(void *shared, char *ret_text, size_t text_size)
{
    struct looking *looking = shared;
    struct guest guest;
    enum error e = guest_open(looking->dir, looking->schema, &guest, ret_text, text_size);
    if (e)
        return e;
    e = look_at_store(looking, &guest, ret_text, text_size);
    guest_close(&guest);
    return e;
}

/* What is wrong with the pages, for a store that nobody could look into. False: nothing. */
static bool image_wrong(const char *dir, char *ret_why, size_t why_size)
{
    struct image_report image = {0};
    char path[DIRECTORY_PATH_MAX + 16];
    int length = snprintf(path, sizeof(path), "%s/data.mdb", dir);
    int fd = length > 0 && (size_t)length < sizeof(path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return false;
    bool wrong = image_check(fd, 0, &image, ret_why, why_size) == ERR_DAMAGED;
    close(fd);
    return wrong;
}

enum error check_directory(const char *dir, const struct schema *schema, check_tell *tell, void *context,
                           struct check_report *ret_report, char *ret_text, size_t text_size)
{
    char why[FINDING_SIZE] = "";
    struct apart *apart =
        mmap(NULL, sizeof(*apart), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (apart == MAP_FAILED) {
        snprintf(ret_text, text_size, "'%s': there is no memory to check it", dir);
        return ERR_MEMORY;
    }
    struct looking looking = {.dir = dir, .schema = schema, .apart = apart};
    enum error e = guest_apart(look, "the check", &looking, sizeof(looking), why, sizeof(why));
    char wrong[FINDING_SIZE] = "";
    bool damaged = (e == ERR_DAMAGED || (e == ERR_FOREIGN && environment_claimed(dir))) &&
                   image_wrong(dir, wrong, sizeof(wrong));
    if (e == ERR_DAMAGED ||
        damaged) { /* it can't be opened, or killed who looked, or doesn't look like ours any more */
        if (apart->report.findings < apart->told)
            apart->report.findings = apart->told;
        add_finding(apart, why);
        if (damaged && !strstr(why, wrong)) /* what kept it from being opened may be just that */
            add_finding(apart, wrong);
        e = OK;
    }
    if (e)
        snprintf(ret_text, text_size, "%s", why);
    else {
        for (uint32_t i = 0; i < apart->told; i++)
            tell(context, apart->findings[i]);
        *ret_report = apart->report;
    }
    munmap(apart, sizeof(*apart));
    return e;
}
