#include "store/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/checksum.h"
#include "store/directory.h"

#define MAGIC "coppice journal 1\n"

enum { MAGIC_SIZE = sizeof(MAGIC) - 1, BUFFER_SIZE = 65536 };

STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are written as they lie in memory");

struct __attribute__((packed)) journal_head {
    char magic[MAGIC_SIZE];
    uint8_t identity[16], secret[16];
    uint64_t commit, map, map_max, step, reserve;
    uint64_t checksum;
};

struct __attribute__((packed)) batch_head {
    uint8_t mark;
    uint32_t count;
    uint64_t size;
    uint64_t checksum;
};

struct __attribute__((packed)) command_head {
    uint64_t at_us;
    uint16_t code;
    uint8_t done; /* 0: refused */
    uint32_t size;
};

static uint64_t journal_head_checksum(const struct journal_head *head)
{
    return checksum(0, head, offsetof(struct journal_head, checksum));
}

static uint64_t batch_head_checksum(uint64_t seed, const struct batch_head *head)
{
    return checksum(seed, head, offsetof(struct batch_head, checksum));
}

/* ---- writing ---- */

struct journal {
    int fd;
    enum error error;
    int code;        /* of the error */
    uint64_t end;    /* of the last whole batch */
    uint64_t at;     /* where the buffer goes */
    uint64_t seed;   /* the last checksum */
    uint32_t length; /* of the buffer */
    uint8_t buffer[BUFFER_SIZE];
};

static enum error write_error(int code)
{
    return code == ENOSPC || code == EDQUOT || code == EFBIG ? ERR_NO_SPACE : ERR_IO;
}

static void flush(struct journal *j)
{
    for (uint32_t done = 0; done < j->length && !j->error;) {
        ssize_t n = pwrite(j->fd, j->buffer + done, j->length - done, (off_t)j->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            j->code = n < 0 ? errno : ENOSPC;
            j->error = write_error(j->code);
            break;
        }
        done += (uint32_t)n;
        j->at += (uint64_t)n;
    }
    j->length = 0;
}

static void put(struct journal *j, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    while (size > 0) {
        size_t part = size < BUFFER_SIZE - j->length ? size : BUFFER_SIZE - j->length;
        memcpy(j->buffer + j->length, from, part);
        j->length += (uint32_t)part;
        from += part;
        size -= part;
        if (j->length == BUFFER_SIZE)
            flush(j);
    }
}

/* What was written is a whole batch, or it is taken away again. */
static enum error settle(struct journal *j)
{
    flush(j);
    if (j->error)
        (void)!ftruncate(j->fd, (off_t)j->end); /* and if it can't be: it is a batch that was cut off */
    else
        j->end = j->at;
    return j->error;
}

/* FILE, FILE.2, FILE.3: the first that is new. */
static int open_new(const char *file)
{
    char path[DIRECTORY_PATH_MAX + 16];
    int fd = -1;
    for (unsigned n = 1; n <= JOURNAL_FILES && fd < 0; n++) {
        int length = n == 1 ? snprintf(path, sizeof(path), "%s", file)
                            : snprintf(path, sizeof(path), "%s.%u", file, n);
        if (length < 0 || (size_t)length >= sizeof(path)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            return -1;
    }
    return fd;
}

enum error journal_create(const char *file, const struct store *store, struct journal **ret_journal)
{
    const struct environment *e = &store->environment;
    MDB_envinfo info;
    if (mdb_env_info(e->mdb, &info) != 0)
        return ERR_IO;
    struct journal *j = calloc(1, sizeof(*j));
    if (!j)
        return ERR_MEMORY;
    j->fd = open_new(file);
    if (j->fd < 0) {
        char text[64];
        int code = errno;
        free(j);
        return directory_refuse(code, "", "", text, sizeof(text));
    }
    struct journal_head head = {.commit = info.me_last_txnid,
                                .map = e->map,
                                .map_max = e->options.map_max,
                                .step = e->options.step,
                                .reserve = e->options.reserve};
    memcpy(head.magic, MAGIC, MAGIC_SIZE);
    memcpy(head.identity, store->identity.bytes, sizeof(head.identity));
    memcpy(head.secret, store->secret, sizeof(head.secret));
    head.checksum = j->seed = journal_head_checksum(&head);
    put(j, &head, sizeof(head));
    enum error error = settle(j);
    if (error)
        journal_close(j);
    else
        *ret_journal = j;
    return error;
}

void journal_close(struct journal *journal)
{
    if (!journal)
        return;
    close(journal->fd);
    free(journal);
}

/* What was refused for lack of room, on the disk or in the ledger's index, would not be refused elsewhere. */
static bool recorded(const struct batch_item *item)
{
    return item->answer.error != ERR_NO_SPACE && item->answer.error != ERR_LIMIT;
}

static struct batch_head head_of(const struct batch_item *items, size_t count)
{
    struct batch_head head = {.mark = 'B'};
    for (size_t i = 0; i < count; i++)
        if (recorded(&items[i])) {
            head.count++;
            head.size += sizeof(struct command_head) + items[i].bytes.size;
        }
    return head;
}

enum error journal_write(struct journal *j, const struct batch_item *items, size_t count)
{
    struct batch_head head = head_of(items, count);
    ASSERT(count <= BATCH_MAX);
    if (j->error || head.count == 0)
        return j->error;
    head.checksum = j->seed = batch_head_checksum(j->seed, &head);
    put(j, &head, sizeof(head));
    for (size_t i = 0; i < count; i++) {
        struct span bytes = items[i].bytes;
        struct command_head command = {.at_us = items[i].at_us,
                                       .code = items[i].class->code,
                                       .done = items[i].answer.error == OK,
                                       .size = bytes.size};
        if (!recorded(&items[i]))
            continue;
        put(j, &command, sizeof(command));
        put(j, bytes.bytes, bytes.size);
        j->seed = checksum(checksum(j->seed, &command, sizeof(command)), bytes.bytes, bytes.size);
    }
    put(j, &j->seed, sizeof(j->seed));
    return settle(j);
}

int journal_code(const struct journal *journal)
{
    return journal->code;
}

/* ---- replaying ---- */

struct replay {
    const char *file;
    const uint8_t *bytes; /* the file, mapped */
    uint64_t size, at, seed;
    struct store *store;
    const struct schema *schema;
    struct replay_report report;
    char *text;
    size_t text_size;
};

__attribute__((format(printf, 3, 4))) static enum error refuse(struct replay *r, enum error e,
                                                               const char *format, ...)
{
    va_list list;
    int used = snprintf(r->text, r->text_size, "'%s' ", r->file);
    if (used < 0 || (size_t)used >= r->text_size)
        return e;
    va_start(list, format);
    vsnprintf(r->text + used, r->text_size - (size_t)used, format, list);
    va_end(list);
    return e;
}

static enum error damaged(struct replay *r, const char *what)
{
    return refuse(r, ERR_DAMAGED, "is damaged at byte %llu (%s); the %llu batches before it were applied",
                  (unsigned long long)r->at, what, (unsigned long long)r->report.batches);
}

static enum error read_head(struct replay *r, struct journal_head *ret_head)
{
    if (r->size < sizeof(*ret_head) || memcmp(r->bytes, MAGIC, MAGIC_SIZE) != 0)
        return refuse(r, ERR_INVALID, "isn't a journal of coppice");
    memcpy(ret_head, r->bytes, sizeof(*ret_head));
    if (ret_head->checksum != journal_head_checksum(ret_head))
        return refuse(r, ERR_DAMAGED, "is damaged in its head; nothing was done");
    if (ret_head->commit != 1)
        return refuse(r, ERR_INVALID,
                      "begins after commit %llu of its store; only one that begins at the making of a store, "
                      "after commit 1, can be replayed",
                      (unsigned long long)ret_head->commit);
    r->at = sizeof(*ret_head);
    r->seed = ret_head->checksum;
    return OK;
}

/* *ret_items points into the file. False with *ret_what, what is wrong with the commands. */
static bool read_commands(struct replay *r, const struct batch_head *head, struct batch_item *items,
                          bool *done, const char **ret_what)
{
    uint64_t at = r->at + sizeof(*head), end = at + head->size, seed = head->checksum, found;
    for (uint32_t i = 0; i < head->count; i++) {
        struct command_head command;
        if (end - at < sizeof(command))
            return *ret_what = "a command has no room", false;
        memcpy(&command, r->bytes + at, sizeof(command));
        at += sizeof(command);
        if (command.size > COMMAND_SIZE_MAX || command.size > end - at)
            return *ret_what = "a command is too large", false;
        items[i] = (struct batch_item){.class = schema_command(r->schema, command.code),
                                       .at_us = command.at_us,
                                       .bytes = span_of(r->bytes + at, command.size)};
        done[i] = command.done;
        if (!items[i].class)
            return *ret_what = "a command that this program doesn't know", false;
        seed = checksum(checksum(seed, &command, sizeof(command)), items[i].bytes.bytes, command.size);
        at += command.size;
    }
    memcpy(&found, r->bytes + end, sizeof(found));
    if (at != end || found != seed)
        return *ret_what = "the checksum of a batch", false;
    r->at = end + sizeof(found);
    r->seed = seed;
    return true;
}

/* OK and *ret_count, 0 at the end; ERR_DAMAGED. */
static enum error read_batch(struct replay *r, struct batch_item *items, bool *done, size_t *ret_count)
{
    struct batch_head head;
    uint64_t left = r->size - r->at;
    const char *what;
    *ret_count = 0;
    r->report.cut_off = left > 0;
    if (left < sizeof(head))
        return OK;
    memcpy(&head, r->bytes + r->at, sizeof(head));
    if (head.mark != 'B' || head.checksum != batch_head_checksum(r->seed, &head))
        return damaged(r, "the head of a batch");
    left -= sizeof(head);
    if (left < sizeof(uint64_t) || left - sizeof(uint64_t) < head.size)
        return OK;
    if (head.count == 0 || head.count > BATCH_MAX || !read_commands(r, &head, items, done, &what))
        return damaged(r, head.count == 0 || head.count > BATCH_MAX ? "the size of a batch" : what);
    r->report.cut_off = false;
    *ret_count = head.count;
    return OK;
}

/* Applying depends on the commands alone: another outcome than the recorded one is a bug, here or there. */
static enum error compare(struct replay *r, const struct batch_item *items, const bool *done, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if ((items[i].answer.error == OK) != done[i])
            return refuse(r, ERR_CONFLICT,
                          "has, in batch %llu, a command %s that was %s when it was recorded: now %s",
                          (unsigned long long)r->report.batches, items[i].class->name,
                          done[i] ? "done" : "refused", error_name(items[i].answer.error));
    return OK;
}

static enum error apply_all(struct replay *r)
{
    struct batch_item items[BATCH_MAX];
    bool done[BATCH_MAX];
    size_t count;
    for (;;) {
        enum error e = read_batch(r, items, done, &count);
        if (e || count == 0)
            return e;
        e = batch_run(r->store, items, count);
        if (e)
            return refuse(r, e, "can't be replayed beyond batch %llu: %s %s",
                          (unsigned long long)r->report.batches, error_name(e), r->store->failure);
        r->report.batches++;
        r->report.commands += count;
        for (size_t i = 0; i < count; i++)
            r->report.refused += !done[i];
        e = compare(r, items, done, count);
        if (e)
            return e;
    }
}

static enum error replay_into(struct replay *r, const char *dir, const struct journal_head *head)
{
    struct store_options options = {
        .environment = {.dir = dir,
                        .map = head->map,
                        .map_max = head->map_max,
                        .step = head->step,
                        .reserve = head->reserve},
        .schema = r->schema,
    };
    memcpy(options.environment.birth, head->identity, 16);
    memcpy(options.environment.birth + 16, head->secret, 16);
    enum error e = store_open(&options, &r->store, r->text, r->text_size);
    if (e)
        return e;
    if (memcmp(r->store->identity.bytes, head->identity, 16) != 0 ||
        memcmp(r->store->secret, head->secret, 16) != 0)
        e = refuse(r, ERR_INVALID, "is of a store that can't be made again: its identity came otherwise");
    else
        e = apply_all(r);
    MDB_envinfo info;
    if (!e && mdb_env_info(r->store->environment.mdb, &info) == 0)
        r->report.commit = info.me_last_txnid;
    store_close(r->store);
    return e;
}

static enum error map_file(struct replay *r)
{
    struct stat stat;
    int fd = open(r->file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return directory_refuse(errno, r->file, "opened", r->text, r->text_size);
    enum error e = OK;
    if (fstat(fd, &stat) < 0)
        e = directory_refuse(errno, r->file, "read", r->text, r->text_size);
    else if (!S_ISREG(stat.st_mode) || stat.st_size == 0)
        e = refuse(r, ERR_INVALID, "isn't a journal of coppice");
    else
        r->size = (uint64_t)stat.st_size;
    void *bytes = e ? NULL : mmap(NULL, r->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        e = directory_refuse(errno, r->file, "mapped", r->text, r->text_size);
    r->bytes = bytes;
    close(fd);
    return e;
}

enum error journal_replay(const char *file, const char *dir, const struct schema *schema,
                          struct replay_report *ret_report, char *ret_text, size_t text_size)
{
    struct replay r = {.file = file, .schema = schema, .text = ret_text, .text_size = text_size};
    struct journal_head head;
    bool missing;
    enum error e = directory_vacant(dir, &missing, ret_text, text_size);
    if (!e)
        e = map_file(&r);
    if (e)
        return e;
    e = read_head(&r, &head);
    if (!e)
        e = replay_into(&r, dir, &head);
    munmap((void *)(uintptr_t)r.bytes, r.size);
    if (!e)
        *ret_report = r.report;
    return e;
}
