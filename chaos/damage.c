/* damage: data files that are not what was written, and what a server makes of them.
 *
 *     damage [--images N] [--seed S] [--from I] [--dir D]
 *
 * A store is made with every mechanic in it, closed, and kept in memory as bytes, together with every row that it
 * holds. Then, image by image: one kind of damage is done to the bytes, they are put in the directory, and a child
 * process opens it as the server does and reads every row by its key and every table from end to end. Every other image
 * is opened as a large file is, whose leaves are looked at when they are read (store/leaves.h). What is allowed:
 *
 *     refused    the store doesn't open, says why, and nothing in the directory has changed
 *     served     every row is right, nothing is missing and nothing is there that wasn't; then the store takes
 *                another command and `coppice check` finds nothing wrong
 *     told       a row that isn't right is ERR_DAMAGED, the others are right or ERR_DAMAGED; a command is refused, and
 *                the file is as it was
 *     held       every row is right, but the command is refused as ERR_DAMAGED, and the file is as it was
 *     older      rows of a page that was put back to what it held earlier are as they were then: nothing in the
 *                file says when a page was written, so a sound older page in its own place is believed
 *
 * Anything else is a violation: a wrong value, a row that is "not found", an empty store, a refusal that has touched
 * a file, a process that dies, more than HANG_MS without an end. Each is printed with what makes it again; the program
 * then ends with status 1. Image I of a seed is always the same, alone or among others (--from I --images 1).
 *
 * The control: CONTROL images are read by LMDB without a look at them before, and judged alike. A campaign in which that
 * shows nothing wrong judges nothing, and fails; so does one of REACH_MIN images or more in which one of the outcomes
 * above never came about, of whole or of large files where it can.
 *
 * What nobody can see is not tried: the whole of an earlier file, and a newest meta page that is the one of two
 * commits before, which is what a power cut may leave.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/dice.h"
#include "runtime/env.h"
#include "store/audit.h"
#include "store/check.h"
#include "store/image.h"
#include "store/outbox.h"
#include "store/view.h"
#include "tests/support/parcel.h"

enum {
    IMAGES = 100000,
    ROUNDS = 60, /* of parcels, before the earlier copy and again after it */
    ROWS_MAX = 4096,
    FILE_MAX = 8 << 20,
    PAGE = 4096,
    META_END = 152, /* of a meta page: what counts in it */
    FLIPS_MAX = 64,
    CONTROL = 1000, /* images read without being looked at */
    REACH_MIN = 20000,
    SIDES = 2,           /* halves of a long campaign, at the same time */
    CHILD_IMAGES = 4000, /* of one child */
    BEAT = 16,           /* images between two signs of life */
    HANG_MS = 20000,     /* for those */
    SAID_MAX = 10,       /* violations in words */
};
#define NOW UINT64_C(1800000000000000)

/* ---- what there was ---- */

struct bytes {
    uint8_t *at;
    size_t size;
};

struct row {
    uint32_t table;
    struct span key, bytes; /* allocated */
};

struct rows {
    struct row at[ROWS_MAX]; /* by table and key */
    uint32_t count;
};

static struct {
    struct bytes data, earlier, lock, stranger, sibling; /* of LMDB but not ours; ours but not this one */
    size_t used;                                         /* bytes up to the last page in use */
    struct rows now, then;                               /* of data and of earlier */
} truth;

static char dir[256];

_Noreturn __attribute__((format(printf, 1, 2))) static void give_up(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "damage: ");
    vfprintf(stderr, format, args);
    fprintf(stderr, "\n");
    va_end(args);
    exit(2);
}

static const char *path_of(const char *name)
{
    static char path[sizeof(dir) + 32];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static struct bytes file_read(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        give_up("%s can't be read: %s", path, strerror(errno));
    struct bytes bytes = {.at = malloc((size_t)status.st_size + 1), .size = (size_t)status.st_size};
    if (!bytes.at || pread(fd, bytes.at, bytes.size, 0) != (ssize_t)bytes.size)
        give_up("%s can't be read: %s", path, strerror(errno));
    close(fd);
    return bytes;
}

static void file_write(const char *path, const void *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
        give_up("%s can't be written: %s", path, strerror(errno));
    close(fd);
}

static void dir_clear(void)
{
    static const char *const names[] = {"data.mdb", "coppice.lock", "lock.mdb", "new"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)unlink(path_of(names[i]));
}

/* ---- making it ---- */

/* `birth` makes the identity and the secret when there is no store yet: the same images in each run. */
static enum error store_open_here(uint8_t birth, bool large, struct store **ret_store, char *text,
                                  size_t text_size)
{
    const struct store_options options = {
        .environment = {.dir = dir,
                        .birth = {birth},
                        .map = 1 << 25,
                        .step = 1 << 16,
                        .reserve = 4096,
                        .views_max = 64,
                        .whole_max = large},
        .schema = &parcel_store_schema,
        .ledger_max = ROWS_MAX,
    };
    return store_open(&options, ret_store, text, text_size);
}

static struct store *store_make(uint8_t birth)
{
    char text[512];
    struct store *store;
    if (store_open_here(birth, false, &store, text, sizeof(text)) != OK)
        give_up("%s", text);
    return store;
}

static struct uuid id_of(uint32_t number)
{
    struct uuid id = {.bytes = {[0] = 1, [6] = 0x70, [8] = 0x80}};
    memcpy(id.bytes + 12, &(uint32_t){__builtin_bswap32(number)}, sizeof(number));
    return id;
}

static void command(struct store *store, const struct command_class *class, const void *bytes)
{
    uint8_t room[ANSWER_SIZE_MAX];
    struct answer answer = {.bytes = room};
    enum error e = batch_one(store, class, NOW, bytes, &answer);
    if (e)
        give_up("%s: %s", class->name, error_name(e));
}

static struct parcel_send send_of(uint32_t number, char key[32])
{
    static uint8_t body[PARCEL_BODY_MAX];
    struct dice dice = dice_of(number);
    uint32_t size = number % 12 == 0 ? 3000 + dice_below(&dice, 9000) : dice_below(&dice, 400);
    for (uint32_t i = 0; i < size; i++)
        body[i] = (uint8_t)dice_draw(&dice);
    snprintf(key, 32, "request %u", number);
    return (struct parcel_send){.id = id_of(number),
                                .scope = span_text("damage"),
                                .key = span_text(number % 2 ? key : ""),
                                .due_us = number % 3 ? NOW + number : 0,
                                .body = span_of(body, size)};
}

/* One parcel and what becomes of it. */
static void one_round(struct store *store, uint32_t number)
{
    char key[32];
    struct parcel_send send = send_of(number, key);
    command(store, &parcel_send_class, &send);
    for (uint32_t i = 0; i < number % 3; i++)
        command(store, &parcel_move_class,
                &(struct parcel_move){.id = send.id, .event = i == 0 ? PARCEL_SEND : PARCEL_DELIVER});
    if (number % 6 == 5)
        command(store, &parcel_drop_class, &(struct parcel_drop){.id = send.id});
    if (number % 5 == 0)
        command(store, &audit_append_class,
                &(struct audit_append){.id = id_of(100000 + number),
                                       .key = span_text(""),
                                       .who = span_text("damage"),
                                       .verb = span_text("parcel.send"),
                                       .target = span_text(key),
                                       .details = span_text("{}")});
    if (number % 7 == 0)
        command(store, &outbox_claim_class,
                &(struct outbox_claim_command){.partition = (uint16_t)(number / 7 % 4), .holder = number});
}

static struct span kept(struct span span)
{
    uint8_t *bytes = malloc(span.size + 1);
    if (!bytes)
        give_up("no memory");
    memcpy(bytes, span.bytes, span.size);
    return span_of(bytes, span.size);
}

static void keep_rows(struct store *store, struct rows *rows)
{
    struct view *view = view_open_outside(store, 0);
    for (uint32_t table = 0; table < parcel_store_schema.tables_count; table++) {
        struct scan scan = txn_scan(&view->txn, table, span_text(""), 0, SCAN_UP);
        while (scan_next(&scan)) {
            if (rows->count == ROWS_MAX)
                give_up("more than %d rows", ROWS_MAX);
            rows->at[rows->count++] =
                (struct row){.table = table, .key = kept(scan.key), .bytes = kept(scan.bytes)};
        }
        if (scan_end(&scan) != OK)
            give_up("the store that was made can't be read");
    }
    view_close(view);
}

static void make_stranger(void)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi dbi;
    MDB_val k = {.mv_size = 4, .mv_data = (char[]){"word"}}, v = k;
    if (mdb_env_create(&env) || mdb_env_set_maxdbs(env, 2) || mdb_env_open(env, dir, 0, 0600) ||
        mdb_txn_begin(env, NULL, 0, &txn) || mdb_dbi_open(txn, "words", MDB_CREATE, &dbi) ||
        mdb_put(txn, dbi, &k, &v, 0) || mdb_txn_commit(txn))
        give_up("LMDB makes no file in %s", dir);
    mdb_env_close(env);
    truth.stranger = file_read(path_of("data.mdb"));
    dir_clear();
}

static void make_sibling(void)
{
    struct store *store = store_make(2);
    for (uint32_t i = 0; i < ROUNDS / 4; i++)
        one_round(store, 5000 + i);
    store_close(store);
    truth.sibling = file_read(path_of("data.mdb"));
    dir_clear();
}

static uint64_t commit_of(struct store *store)
{
    struct view *view = view_open_outside(store, 0);
    uint64_t commit = txn_number(&view->txn);
    view_close(view);
    return commit;
}

static void make_truth(void)
{
    struct image_report report;
    char text[256];
    parcel_install();
    make_stranger();
    make_sibling();
    struct store *store = store_make(1);
    for (uint32_t i = 0; i < ROUNDS; i++)
        one_round(store, i);
    keep_rows(store, &truth.then);
    store_close(store);
    truth.earlier = file_read(path_of("data.mdb"));
    store = store_make(1);
    for (uint32_t i = 0; i < ROUNDS; i++)
        one_round(store, ROUNDS + i);
    /* The hardest: one bit less and the newest commit seems to be the one before last. */
    while (!(commit_of(store) & 2))
        command(store, &outbox_claim_class, &(struct outbox_claim_command){.partition = 1, .holder = 1});
    keep_rows(store, &truth.now);
    store_close(store);
    truth.data = file_read(path_of("data.mdb"));
    truth.lock = file_read(path_of("coppice.lock"));
    int fd = open(path_of("data.mdb"), O_RDONLY | O_CLOEXEC);
    if (fd < 0 || image_check(fd, 0, &report, text, sizeof(text)) != OK || report.page_size != PAGE ||
        truth.data.size > FILE_MAX || truth.earlier.size > truth.data.size)
        give_up("the store that was made isn't sound: %s", text);
    close(fd);
    truth.used = report.pages * PAGE;
}

/* ---- damage ---- */

struct image {
    uint8_t data[FILE_MAX];
    size_t size;
    bool data_gone, lock_gone;
    struct bytes lock;
};

static void flip(struct image *image, struct dice *dice, size_t at)
{
    image->data[at] ^= (uint8_t)(1u << dice_below(dice, 8));
}

static size_t page_pick(struct dice *dice)
{
    return dice_below(dice, (uint32_t)(truth.used / PAGE)) * (size_t)PAGE;
}

static void hit_bit(struct image *image, struct dice *dice)
{
    flip(image, dice, dice_below(dice, (uint32_t)truth.used));
}

static void hit_bits(struct image *image, struct dice *dice)
{
    uint32_t count = 2 + dice_below(dice, FLIPS_MAX - 1);
    for (uint32_t i = 0; i < count; i++)
        hit_bit(image, dice);
}

static void hit_meta(struct image *image, struct dice *dice)
{
    uint32_t count = 1 + dice_below(dice, 4);
    for (uint32_t i = 0; i < count; i++)
        flip(image, dice, dice_below(dice, 2) * PAGE + dice_below(dice, META_END));
}

/* The number of a transaction, which says which of the two states counts. */
static void hit_number(struct image *image, struct dice *dice)
{
    flip(image, dice, dice_below(dice, 2) * PAGE + META_END - 8 + dice_below(dice, 2));
}

/* Where pages say what they are and where their nodes stand. */
static void hit_head(struct image *image, struct dice *dice)
{
    uint32_t count = 1 + dice_below(dice, 4);
    for (uint32_t i = 0; i < count; i++)
        flip(image, dice, page_pick(dice) + dice_below(dice, 64));
}

static void hit_length(struct image *image, struct dice *dice)
{
    image->size = dice_below(dice, (uint32_t)image->size);
}

static void hit_pages_cut(struct image *image, struct dice *dice)
{
    image->size = page_pick(dice);
}

static void hit_all(struct image *image, struct dice *dice)
{
    (void)dice;
    image->size = 0;
}

static void hit_zeros(struct image *image, struct dice *dice)
{
    memset(image->data + page_pick(dice), 0, PAGE);
}

static void hit_noise(struct image *image, struct dice *dice)
{
    size_t page = page_pick(dice), sectors = 1 + dice_below(dice, PAGE / 512);
    size_t from = dice_below(dice, (uint32_t)(PAGE / 512 - sectors + 1)) * 512;
    for (size_t i = 0; i < sectors * 512; i++)
        image->data[page + from + i] = (uint8_t)dice_draw(dice);
}

static void hit_swap(struct image *image, struct dice *dice)
{
    uint8_t page[PAGE];
    size_t one = page_pick(dice), other = page_pick(dice);
    memcpy(page, image->data + one, PAGE);
    memcpy(image->data + one, image->data + other, PAGE);
    memcpy(image->data + other, page, PAGE);
}

static void hit_stale(struct image *image, struct dice *dice)
{
    uint32_t count = 1 + dice_below(dice, 3);
    for (uint32_t i = 0; i < count; i++) {
        size_t page = page_pick(dice);
        /* Both meta pages would be the whole of an earlier state, perhaps. */
        if (page + PAGE <= truth.earlier.size && page >= (i > 0 ? 2 * PAGE : 0))
            memcpy(image->data + page, truth.earlier.at + page, PAGE);
    }
}

static void replace(struct image *image, const void *bytes, size_t size)
{
    image->size = size < FILE_MAX ? size : FILE_MAX;
    memcpy(image->data, bytes, image->size);
}

static void hit_foreign(struct image *image, struct dice *dice)
{
    static struct bytes self;
    static const char text[] = "This is not a store.\n";
    if (!self.at)
        self = file_read("/proc/self/exe");
    switch (dice_below(dice, 4)) {
    case 0:
        replace(image, text, sizeof(text) - 1);
        break;
    case 1:
        replace(image, self.at, self.size);
        break;
    case 2:
        memset(image->data, (int)dice_below(dice, 2) * 255, image->size);
        break;
    default:
        for (size_t i = 0; i < 3 * PAGE; i++)
            image->data[i] = (uint8_t)dice_draw(dice);
        image->size = 3 * PAGE;
    }
}

static void hit_stranger(struct image *image, struct dice *dice)
{
    (void)dice;
    replace(image, truth.stranger.at, truth.stranger.size);
}

static void hit_sibling(struct image *image, struct dice *dice)
{
    (void)dice;
    replace(image, truth.sibling.at, truth.sibling.size);
}

static void hit_gone(struct image *image, struct dice *dice)
{
    (void)dice;
    image->data_gone = true;
}

static void hit_lock_gone(struct image *image, struct dice *dice)
{
    (void)dice;
    image->lock_gone = true;
}

/* X(name, images of a thousand, what is done) */
#define KINDS(X)                    \
    X(bit, 250, hit_bit)            \
    X(bits, 200, hit_bits)          \
    X(meta, 80, hit_meta)           \
    X(number, 20, hit_number)       \
    X(head, 100, hit_head)          \
    X(length, 40, hit_length)       \
    X(pages_cut, 40, hit_pages_cut) \
    X(empty, 5, hit_all)            \
    X(zeros, 50, hit_zeros)         \
    X(noise, 50, hit_noise)         \
    X(swap, 50, hit_swap)           \
    X(stale, 75, hit_stale)         \
    X(foreign, 10, hit_foreign)     \
    X(stranger, 10, hit_stranger)   \
    X(sibling, 10, hit_sibling)     \
    X(gone, 5, hit_gone)            \
    X(lock_gone, 5, hit_lock_gone)

enum kind {
#define X(name, share, hit) KIND_##name,
    KINDS(X)
#undef X
        KIND_COUNT
};
static const struct {
    const char *name;
    uint32_t share;
    void (*hit)(struct image *, struct dice *);
} kinds[KIND_COUNT] = {
#define X(name, share, hit) [KIND_##name] = {#name, share, hit},
    KINDS(X)
#undef X
};
#define X(name, share, hit) +(share)
STATIC_ASSERT(KINDS(X) == 1000, "the shares are those of all images");
#undef X

static enum kind kind_pick(struct dice *dice)
{
    uint32_t at = dice_below(dice, 1000), kind = 0;
    while (at >= kinds[kind].share)
        at -= kinds[kind++].share;
    return (enum kind)kind;
}

static enum kind image_make(struct image *image, uint64_t seed, uint64_t number)
{
    struct dice first = dice_of(seed * UINT64_C(1000000007) + number);
    struct dice dice =
        dice_of(dice_draw(&first)); /* else the next image's draws are this one's but for the first */
    enum kind kind = kind_pick(&dice);
    memcpy(image->data, truth.data.at, truth.data.size);
    image->size = truth.data.size;
    image->data_gone = image->lock_gone = false;
    kinds[kind].hit(image, &dice);
    return kind;
}

static void image_place(const struct image *image)
{
    dir_clear();
    if (!image->data_gone)
        file_write(path_of("data.mdb"), image->data, image->size);
    if (!image->lock_gone)
        file_write(path_of("coppice.lock"), truth.lock.at, truth.lock.size);
}

/* ---- looking ---- */

/* X(ID, name, with whole files, with large ones): what a long campaign comes to */
#define OUTCOMES(X)             \
    X(REFUSED, "refused", 1, 1) \
    X(SERVED, "served", 1, 1)   \
    X(TOLD, "told", 0, 1)       \
    X(HELD, "held", 0, 1)       \
    X(OLDER, "older", 1, 1)     \
    X(DIED, "died", 0, 0)

enum outcome {
#define X(id, name, whole, large) id,
    OUTCOMES(X)
#undef X
        OUTCOME_COUNT
};
static const struct {
    const char *name;
    bool reached[2]; /* by whole and by large ones */
} outcomes[OUTCOME_COUNT] = {
#define X(id, name, whole, large) [id] = {name, {whole, large}},
    OUTCOMES(X)
#undef X
};

/* Seen by the parent and its children. */
struct campaign {
    uint64_t seed, end, current; /* images */
    enum kind kind;              /* of the current one */
    bool wrong, older;           /* in the current one */
    bool control;                /* nobody looks before */
    uint64_t counts[2][KIND_COUNT][OUTCOME_COUNT];
    uint64_t violations; /* images with one */
    uint64_t caught;     /* images of the control with one */
};
static struct campaign *sides;    /* SIDES */
static struct campaign *campaign; /* this process's; in the end the sum */

static bool is_large(void)
{
    return campaign->current % 2 == 1;
}

__attribute__((format(printf, 1, 2))) static void violation(const char *format, ...)
{
    char text[512];
    va_list args;
    bool first = !campaign->wrong; /* of this image: the others follow from it */
    campaign->wrong = true;
    campaign->caught += first && campaign->control;
    campaign->violations += first && !campaign->control;
    if (!first || campaign->control || campaign->violations > SAID_MAX)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "damage: %s image: %s (again: --seed %" PRIu64 " --from %" PRIu64 " --images 1)\n",
            kinds[campaign->kind].name, text, campaign->seed, campaign->current);
}

static bool same_file(const char *name, const void *bytes, size_t size)
{
    static uint8_t buffer[FILE_MAX + 1];
    int fd = open(path_of(name), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = pread(fd, buffer, sizeof(buffer), 0);
    close(fd);
    return n == (ssize_t)size && memcmp(buffer, bytes, size) == 0;
}

static uint32_t names_in_dir(void)
{
    uint32_t count = 0;
    DIR *listing = opendir(dir);
    if (!listing)
        return 0;
    for (struct dirent *entry; (entry = readdir(listing));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(listing);
    return count;
}

static void judge_refusal(const struct image *image, enum error e, const char *text)
{
    if (!text[0] || !strstr(text, dir))
        violation("refused (%s) without a sentence that names the directory: '%s'", error_name(e), text);
    if (e != ERR_DAMAGED && e != ERR_FOREIGN && e != ERR_NEWER)
        violation("refused for another reason: %s: %s", error_name(e), text);
    if (!image->data_gone && !same_file("data.mdb", image->data, image->size))
        violation("a refusal changed the data file: %s", text);
    if (!image->lock_gone && !same_file("coppice.lock", truth.lock.at, truth.lock.size))
        violation("a refusal changed the lock file: %s", text);
    if (names_in_dir() != (uint32_t)!image->data_gone + !image->lock_gone)
        violation("a refusal left something behind: %s", text);
}

static int rows_order(const void *one, const void *other)
{
    const struct row *a = one, *b = other;
    uint32_t least = a->key.size < b->key.size ? a->key.size : b->key.size;
    if (a->table != b->table)
        return a->table < b->table ? -1 : 1;
    int order = memcmp(a->key.bytes, b->key.bytes, least);
    return order != 0 ? order : (a->key.size > b->key.size) - (a->key.size < b->key.size);
}

/* What the row held in this state; NULL: there was none. */
static const struct span *held(const struct rows *rows, uint32_t table, struct span key)
{
    const struct row wanted = {.table = table, .key = key};
    const struct row *row = bsearch(&wanted, rows->at, rows->count, sizeof(wanted), rows_order);
    return row ? &row->bytes : NULL;
}

static bool holds(const struct rows *rows, uint32_t table, struct span key, const struct span *bytes)
{
    const struct span *was = held(rows, table, key);
    return bytes && was ? span_equal(*bytes, *was) : !bytes && !was;
}

/* NULL: it isn't there. */
static void judge_row(uint32_t table, struct span key, const struct span *bytes)
{
    /* An empty table that lost its name is made again when the store opens: that is a commit of its own. */
    bool stamp = table == TABLE_META && bytes && span_equal(key, span_text("commit"));
    if (holds(&truth.now, table, key, bytes) || stamp) /* go_on compares it with the commit's number */
        return;
    if (campaign->kind == KIND_stale && holds(&truth.then, table, key, bytes))
        campaign->older = true;
    else
        violation("a row of %s is %s", parcel_store_schema.tables[table].name, bytes ? "wrong" : "not found");
}

static bool read_row(struct txn *txn, const struct row *row)
{
    struct span bytes;
    uint8_t version;
    enum error e = txn_get(txn, row->table, row->key, &version, &bytes);
    if (e == OK && span_equal(bytes, row->bytes))
        return true;
    if (e == OK || e == ERR_NOT_FOUND)
        judge_row(row->table, row->key, e == OK ? &bytes : NULL);
    else if (e != ERR_DAMAGED)
        violation("a row of %s: %s", parcel_store_schema.tables[row->table].name, error_name(e));
    return e != ERR_DAMAGED;
}

/* Of the table, or of a later one. */
static uint32_t first_row(uint32_t table)
{
    uint32_t i = 0;
    while (i < truth.now.count && truth.now.at[i].table < table)
        i++;
    return i;
}

/* From end to end: nothing besides, nothing missing. */
static void read_table(struct txn *txn, uint32_t table)
{
    uint32_t first = first_row(table), rows = first_row(table + 1) - first, count = 0;
    struct scan scan = txn_scan(txn, table, span_text(""), 0, SCAN_UP);
    for (; scan_next(&scan); count++) {
        const struct row *row = count < rows ? &truth.now.at[first + count] : NULL;
        if (!row || !span_equal(scan.key, row->key) || !span_equal(scan.bytes, row->bytes))
            judge_row(table, scan.key, &scan.bytes);
    }
    enum error e = scan_end(&scan);
    if (e != OK && e != ERR_DAMAGED)
        violation("a scan of %s: %s", parcel_store_schema.tables[table].name, error_name(e));
    else if (e == OK && count != rows && !campaign->older)
        violation("a scan of %s shows %u rows", parcel_store_schema.tables[table].name, count);
}

static void complain(void *context, const char *finding)
{
    (void)context;
    violation("after another command: %s", finding);
}

static enum error one_more(struct store *store)
{
    char key[32];
    struct parcel_send send = send_of(9001, key);
    return batch_one(store, &parcel_send_class, NOW, &send, NULL);
}

/* What looked sound must be so for whoever writes to it, too. */
static void go_on(struct store *store)
{
    char text[256];
    struct check_report report;
    struct image_report image;
    struct view *view = view_open_outside(store, 0);
    enum error e = check_rows(&view->txn, &parcel_store_schema, complain, NULL, &report);
    view_close(view);
    if (e)
        violation("it can't be checked: %s", error_name(e));
    e = image_check(store->environment.data_fd, 0, &image, text, sizeof(text));
    if (e)
        violation("after another command the file isn't sound: %s", text);
}

static uint32_t read_all(struct txn *txn)
{
    uint32_t readable = 0;
    for (uint32_t i = 0; i < truth.now.count; i++)
        readable += read_row(txn, &truth.now.at[i]);
    for (uint32_t table = 0; table < parcel_store_schema.tables_count; table++)
        read_table(txn, table);
    return readable;
}

static uint32_t view_all(struct store *store)
{
    struct view *view = view_open_outside(store, 0);
    uint32_t readable = read_all(&view->txn);
    view_close(view);
    return readable;
}

/* Refused, and neither the file nor what it shows is another now. */
static void judge_refused_command(const struct image *image, struct store *store, enum error e,
                                  uint32_t readable)
{
    if (e != ERR_DAMAGED)
        violation("with %u of %u rows it %s", readable, truth.now.count,
                  e ? error_name(e) : "takes a command");
    else if (!same_file("data.mdb", image->data, image->size))
        violation("a refused command changed the data file");
    else if (view_all(store) != readable)
        violation("after a refused command it shows something else");
}

static enum outcome judge_served(const struct image *image, struct store *store)
{
    uint32_t readable = view_all(store);
    if (campaign->wrong)
        return SERVED;
    enum error e = campaign->older ? ERR_DAMAGED : one_more(store);
    if (campaign->older)
        return OLDER;
    if (readable == truth.now.count && e == OK) {
        go_on(store);
        return SERVED;
    }
    judge_refused_command(image, store, e, readable);
    return readable < truth.now.count ? TOLD : HELD;
}

static enum outcome look(const struct image *image)
{
    char text[512] = "";
    struct store *store = NULL;
    enum error e = store_open_here(3, is_large(), &store, text, sizeof(text));
    if (e) {
        judge_refusal(image, e, text);
        return REFUSED;
    }
    enum outcome outcome = judge_served(image, store);
    store_close(store);
    return outcome;
}

/* As a program would read it that has nothing but LMDB and the checksums of values. */
static enum outcome look_blindly(void)
{
    struct store store = {.schema = &parcel_store_schema};
    struct txn txn = {.mdb = NULL};
    MDB_env *env = NULL;
    MDB_txn *mdb = NULL;
    int code = mdb_env_create(&env);
    if (!code)
        code = mdb_env_set_maxdbs(env, SCHEMA_TABLES_MAX);
    if (!code)
        code = mdb_env_open(env, dir, MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK, 0600);
    if (!code)
        code = mdb_txn_begin(env, NULL, MDB_RDONLY, &mdb);
    for (uint32_t i = 0; !code && i < parcel_store_schema.tables_count; i++) {
        code = mdb_dbi_open(mdb, parcel_store_schema.tables[i].name, 0, &store.environment.tables[i]);
        store.environment.seeds[i] = value_seed(parcel_store_schema.tables[i].name);
    }
    if (!code) {
        txn_open(&txn, &store, mdb);
        (void)read_all(&txn);
        txn_release(&txn);
    }
    if (mdb)
        mdb_txn_abort(mdb);
    if (env)
        mdb_env_close(env);
    return code ? REFUSED : SERVED;
}

/* ---- children ---- */

/* LMDB has much to say about what nobody has looked at. */
static void be_quiet(void)
{
    if (!freopen("/dev/null", "w", stderr))
        _exit(3);
}

static void child(int beat)
{
    static struct image image;
    if (campaign->control)
        be_quiet();
    for (uint64_t done = 0; campaign->current < campaign->end && done < CHILD_IMAGES; done++) {
        if (done % BEAT == 0 && write(beat, "", 1) != 1)
            _exit(3);
        campaign->wrong = campaign->older = false;
        campaign->kind = image_make(&image, campaign->seed, campaign->current);
        image_place(&image);
        if (campaign->control)
            (void)look_blindly();
        else
            campaign->counts[is_large()][campaign->kind][look(&image)]++;
        campaign->current++;
    }
    _exit(0);
}

/* Until the child has ended, or shows no life: then it is killed, and false. */
static bool child_watch(pid_t pid, int beat, int *ret_status)
{
    char bytes[64];
    struct pollfd wait = {.fd = beat, .events = POLLIN};
    bool alive = true;
    for (;;) {
        int n = poll(&wait, 1, HANG_MS);
        if (n < 0 && errno == EINTR)
            continue;
        alive = n > 0;
        if (!alive || read(beat, bytes, sizeof(bytes)) <= 0)
            break;
    }
    if (!alive)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    return alive;
}

static void child_judge(bool alive, int status)
{
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (alive && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (!alive)
        violation("no end within %d ms", HANG_MS);
    else
        violation("the process ended with %s %d", signal ? "signal" : "status",
                  signal ? signal : WEXITSTATUS(status));
    campaign->counts[is_large()][campaign->kind][DIED] += !campaign->control;
    campaign->current++;
}

static void campaign_run(uint64_t first, uint64_t images, bool control)
{
    campaign->control = control;
    campaign->current = first;
    campaign->end = first + images;
    while (campaign->current < campaign->end) {
        int beat[2], status = 0;
        if (pipe2(beat, O_CLOEXEC) != 0)
            give_up("no pipe: %s", strerror(errno));
        pid_t pid = fork();
        if (pid < 0)
            give_up("no child: %s", strerror(errno));
        if (pid == 0) {
            close(beat[0]);
            child(beat[1]);
        }
        close(beat[1]);
        bool alive = child_watch(pid, beat[0], &status);
        child_judge(alive, status);
        close(beat[0]);
    }
}

/* A process with a directory and a part of the images of its own. */
static pid_t side_start(uint32_t number, uint64_t first, uint64_t images)
{
    pid_t pid = fork();
    if (pid < 0)
        give_up("no child: %s", strerror(errno));
    if (pid > 0)
        return pid;
    campaign = &sides[number];
    size_t length = strlen(dir);
    snprintf(dir + length, sizeof(dir) - length, "/%u", number);
    if (mkdir(dir, 0700) != 0)
        give_up("%s can't be made: %s", dir, strerror(errno));
    campaign_run(first, images, false);
    dir_clear();
    _exit(rmdir(dir) != 0);
}

static void side_add(const struct campaign *side)
{
    for (int large = 0; large < 2; large++)
        for (size_t kind = 0; kind < KIND_COUNT; kind++)
            for (size_t i = 0; i < OUTCOME_COUNT; i++)
                campaign->counts[large][kind][i] += side->counts[large][kind][i];
    campaign->violations += side->violations;
}

static void sides_run(uint64_t first, uint64_t images)
{
    pid_t pids[SIDES];
    uint64_t half = images / SIDES;
    for (uint32_t i = 0; i < SIDES; i++)
        pids[i] = side_start(i, first + i * half, i + 1 < SIDES ? half : images - i * half);
    for (uint32_t i = 0; i < SIDES; i++) {
        int status = 1;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        if (status != 0)
            give_up("half of the campaign ended with status %d", status);
        if (i > 0)
            side_add(&sides[i]);
    }
}

static uint64_t outcome_sum(bool large, enum outcome outcome)
{
    uint64_t sum = 0;
    for (size_t kind = 0; kind < KIND_COUNT; kind++)
        sum += campaign->counts[large][kind][outcome];
    return sum;
}

static void report(uint64_t images, uint64_t ns)
{
    printf("damage: seed %" PRIu64 ", %" PRIu64 " images of a store of %u rows in %zu pages;", campaign->seed,
           images, truth.now.count, truth.used / PAGE);
    for (size_t kind = 0; kind < KIND_COUNT; kind++) {
        printf(" %s", kinds[kind].name);
        for (size_t i = 0; i < OUTCOME_COUNT; i++) {
            uint64_t count = campaign->counts[0][kind][i] + campaign->counts[1][kind][i];
            if (count > 0)
                printf(" %s %" PRIu64, outcomes[i].name, count);
        }
        printf(";");
    }
    for (int large = 0; large < 2; large++) {
        printf(large ? "; large" : " whole");
        for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
            printf(" %s %" PRIu64, outcomes[i].name, outcome_sum(large, i));
    }
    printf("; control %" PRIu64 " of %d; violations %" PRIu64 "; %" PRIu64 " s\n", campaign->caught, CONTROL,
           campaign->violations, (uint64_t)(ns / NS_PER_S));
}

/* Whether the campaign could have found anything. */
static bool reached(uint64_t images)
{
    bool all = true;
    if (images < REACH_MIN)
        return true;
    if (campaign->caught == 0) {
        fprintf(stderr, "damage: the control found nothing wrong\n");
        all = false;
    }
    for (int large = 0; large < 2; large++)
        for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
            if (outcomes[i].reached[large] && outcome_sum(large, i) == 0) {
                fprintf(stderr, "damage: no image of a %s file was %s\n", large ? "large" : "whole",
                        outcomes[i].name);
                all = false;
            }
    return all;
}

static uint64_t number_of(const char *name, const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;
    if (!text || errno || *end || end == text)
        give_up("%s needs a number", name);
    return value;
}

static uint64_t options_read(int argc, char **argv, uint64_t *ret_first)
{
    uint64_t images = IMAGES;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    campaign->seed = 1;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--images") == 0)
            images = number_of(argv[i], argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            campaign->seed = number_of(argv[i], argv[i + 1]);
        else if (strcmp(argv[i], "--from") == 0)
            *ret_first = number_of(argv[i], argv[i + 1]);
        else if (strcmp(argv[i], "--dir") == 0 && argv[i + 1])
            base = argv[i + 1];
        else
            give_up("usage: damage [--images N] [--seed S] [--from I] [--dir D]");
    }
    snprintf(dir, sizeof(dir), "%s/coppice-damage-XXXXXX", base);
    if (!mkdtemp(dir))
        give_up("%s can't be made: %s", dir, strerror(errno));
    return images;
}

int main(int argc, char **argv)
{
    struct env *env = env_real();
    sides = mmap(NULL, SIDES * sizeof(*sides), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sides == MAP_FAILED)
        give_up("no memory");
    campaign = &sides[0];
    uint64_t first = 0, images = options_read(argc, argv, &first);
    uint64_t began = env->now(env);
    for (uint32_t i = 1; i < SIDES; i++)
        sides[i].seed = campaign->seed;
    make_truth();
    if (images < REACH_MIN) {
        campaign_run(first, images, false);
    } else {
        campaign_run(0, CONTROL, true);
        dir_clear();
        sides_run(first, images);
    }
    report(images, env->now(env) - began);
    dir_clear();
    (void)rmdir(dir);
    return campaign->violations > 0 || !reached(images);
}
