#include "config/data.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/output.h"
#include "runtime/env.h"
#include "store/backup.h"
#include "store/check.h"
#include "store/export.h"
#include "store/guest.h"
#include "store/journal.h"

#define EXIT_DATA       65
#define EXIT_CANTCREATE 73

enum { LINE_SIZE = 8192 };

static int status_of(enum error e)
{
    switch (e) {
    case OK:
        return 0;
    case ERR_INVALID:
    case ERR_CONFLICT:
        return EXIT_DATA;
    case ERR_EXISTS:
        return EXIT_CANTCREATE;
    default:
        return environment_exit_status(e);
    }
}

__attribute__((format(printf, 2, 3))) static void line(struct json_sink *sink, const char *format, ...)
{
    char text[LINE_SIZE];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    json_sink_text(sink, text);
}

/* ---- check ---- */

static void tell(void *context, const char *finding)
{
    (void)context;
    fprintf(stderr, "coppice: %s\n", finding);
}

int data_check(const struct options *o, struct json_sink *sink, char *ret_why, size_t why_size)
{
    struct check_report report;
    struct json json;
    enum error e = check_directory(o->store_dir, &store_schema, tell, NULL, &report, ret_why, why_size);
    if (e)
        return status_of(e);
    if (o->json) {
        json_init(&json, sink);
        json_object_begin(&json);
        JSON_MEMBER(&json, "commit", uint, report.commit);
        JSON_MEMBER(&json, "rows", uint, report.rows);
        JSON_MEMBER(&json, "pages", uint, report.pages);
        JSON_MEMBER(&json, "findings", uint, report.findings);
        json_object_end(&json);
        json_end_line(&json);
    } else {
        line(sink, "%s: commit %llu, %llu rows in %llu pages, %llu finding%s\n", o->store_dir,
             (unsigned long long)report.commit, (unsigned long long)report.rows,
             (unsigned long long)report.pages, (unsigned long long)report.findings,
             report.findings == 1 ? "" : "s");
    }
    return report.findings ? EXIT_DATA : 0;
}

/* ---- stat ---- */

struct stat_work {
    const char *dir;
    struct environment_stats stats; /* out */
    struct meta_format format;
    uint32_t page_size;
    uint64_t rows[SCHEMA_TABLES_MAX];
};

static enum error stat_work(void *shared, char *ret_text, size_t text_size)
{
    struct stat_work *work = shared;
    struct guest guest;
    enum error e = guest_open(work->dir, &store_schema, &guest, ret_text, text_size);
    if (e)
        return e;
    for (uint32_t i = 0; i < store_schema.tables_count; i++)
        work->rows[i] = txn_rows(&guest.txn, i);
    work->format = guest.format;
    work->page_size = guest.store.environment.page_size;
    e = environment_stats(&guest.store.environment, guest.txn.mdb, &work->stats);
    if (e)
        snprintf(ret_text, text_size, "'%s' can't be measured: %s", work->dir, error_name(e));
    guest_close(&guest);
    return e;
}

/* X(member, value, unit, prose) */
#define STATS(X)                                                                                      \
    X(format, w->format.format, "", "format")                                                         \
    X(commit, w->format.commit, "", "newest commit")                                                  \
    X(map_bytes, w->stats.map, "bytes", "address space of a guest; the server's may be larger")       \
    X(file_bytes, w->stats.file, "bytes", "data.mdb, with what is allocated ahead")                   \
    X(used_bytes, w->stats.used, "bytes", "up to the last page in use")                               \
    X(free_bytes, w->stats.free, "bytes", "of pages below that which will be used again")             \
    X(page_bytes, w->page_size, "bytes", "of a page")                                                 \
    X(readers, w->stats.readers, "", "slots of views that were taken at one time, this one included") \
    X(readers_max, w->stats.readers_max, "", "views that may be open in all processes")

static void stat_json(struct json_sink *sink, const char *dir, const struct stat_work *w,
                      const char *identity)
{
    struct json json;
    json_init(&json, sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "dir", string, dir);
    JSON_MEMBER(&json, "identity", string, identity);
#define X(member, value, unit, prose) JSON_MEMBER(&json, #member, uint, value);
    STATS(X)
#undef X
    json_key(&json, "rows");
    json_object_begin(&json);
    for (uint32_t i = 0; i < store_schema.tables_count; i++)
        JSON_MEMBER(&json, store_schema.tables[i].name, uint, w->rows[i]);
    json_object_end(&json);
    json_object_end(&json);
    json_end_line(&json);
}

static void stat_text(struct json_sink *sink, const char *dir, const struct stat_work *w,
                      const char *identity)
{
    line(sink, "store %s in %s\n", identity, dir);
#define X(member, value, unit, prose) \
    line(sink, "  %14llu %-5s  %s\n", (unsigned long long)(value), unit, prose);
    STATS(X)
#undef X
    for (uint32_t i = 0; i < store_schema.tables_count; i++)
        line(sink, "  %14llu rows   %s\n", (unsigned long long)w->rows[i], store_schema.tables[i].name);
}

int data_stat(const struct options *o, struct json_sink *sink, char *ret_why, size_t why_size)
{
    struct stat_work work = {.dir = o->store_dir};
    char identity[UUID_TEXT_SIZE];
    enum error e = guest_apart(stat_work, "stat", &work, sizeof(work), ret_why, why_size);
    if (e)
        return status_of(e);
    uuid_format(&work.format.identity, identity);
    (o->json ? stat_json : stat_text)(sink, o->store_dir, &work, identity);
    return 0;
}

/* ---- backup, restore ---- */

static void print_backup(const struct options *o, struct json_sink *sink, const char *what, const char *dir,
                         const struct backup_report *report)
{
    struct json json;
    if (!o->json) {
        line(sink, "%s: %s; commit %llu, %llu rows, %llu bytes, sha256 %s\n", dir, what,
             (unsigned long long)report->commit, (unsigned long long)report->rows,
             (unsigned long long)report->bytes, report->sha256);
        return;
    }
    json_init(&json, sink);
    json_object_begin(&json);
    JSON_MEMBER(&json, "dir", string, dir);
    JSON_MEMBER(&json, "commit", uint, report->commit);
    JSON_MEMBER(&json, "rows", uint, report->rows);
    JSON_MEMBER(&json, "bytes", uint, report->bytes);
    JSON_MEMBER(&json, "sha256", string, report->sha256);
    json_object_end(&json);
    json_end_line(&json);
}

int data_backup(const struct options *o, struct json_sink *sink, char *ret_why, size_t why_size)
{
    struct backup_report report;
    struct env *env = env_real();
    enum error e = o->verify ? backup_verify(o->argument, &store_schema, &report, ret_why, why_size)
                             : backup_make(o->store_dir, o->argument, &store_schema, env->wall(env), &report,
                                           ret_why, why_size);
    if (!e)
        print_backup(o, sink, o->verify ? "verified" : "made and read back", o->argument, &report);
    return status_of(e);
}

int data_restore(const struct options *o, struct json_sink *sink, char *ret_why, size_t why_size)
{
    struct backup_report report;
    enum error e = backup_restore(o->argument, o->store_dir, &store_schema, &report, ret_why, why_size);
    if (!e)
        print_backup(o, sink, "restored", o->store_dir, &report);
    return status_of(e);
}

/* ---- export ---- */

struct export_work {
    const char *dir;
    struct json_sink *sink;
    bool gone; /* out: whoever reads standard output */
};

static enum error export_work(void *shared, char *ret_text, size_t text_size)
{
    struct export_work *work = shared;
    struct export_report report;
    struct guest guest;
    (void)signal(SIGPIPE, SIG_IGN); /* an error of the write instead */
    enum error e = guest_open(work->dir, &store_schema, &guest, ret_text, text_size);
    if (e)
        return e;
    e = export_jsonl(&guest, work->sink, &report, ret_text, text_size);
    work->gone = e && output_refusal() == EPIPE;
    if (e && output_refusal())
        snprintf(ret_text, text_size, "standard output: %s", strerror(output_refusal()));
    guest_close(&guest);
    return work->gone ? OK : e;
}

int data_export(const struct options *o, struct json_sink *sink, char *ret_why, size_t why_size)
{
    struct export_work work = {.dir = o->store_dir, .sink = sink};
    return status_of(guest_apart(export_work, "the export", &work, sizeof(work), ret_why, why_size));
}

/* ---- replay ---- */

int data_replay(const struct options *o, struct json_sink *sink, char *ret_why, size_t why_size)
{
    struct replay_report report;
    struct json json;
    enum error e = journal_replay(o->argument, o->store_dir, &store_schema, &report, ret_why, why_size);
    if (e)
        return status_of(e);
    if (o->json) {
        json_init(&json, sink);
        json_object_begin(&json);
        JSON_MEMBER(&json, "dir", string, o->store_dir);
        JSON_MEMBER(&json, "batches", uint, report.batches);
        JSON_MEMBER(&json, "commands", uint, report.commands);
        JSON_MEMBER(&json, "refused", uint, report.refused);
        JSON_MEMBER(&json, "commit", uint, report.commit);
        JSON_MEMBER(&json, "cut_off", bool, report.cut_off);
        json_object_end(&json);
        json_end_line(&json);
    } else {
        line(sink, "%s: commit %llu after %llu batches of %llu commands, of which %llu were refused%s\n",
             o->store_dir, (unsigned long long)report.commit, (unsigned long long)report.batches,
             (unsigned long long)report.commands, (unsigned long long)report.refused,
             report.cut_off ? "; the file ends within another batch, which was left out" : "");
    }
    return 0;
}
