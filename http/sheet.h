/* Sheets: one page of an operator's list, made while a view is open and sent when it is closed.
 *
 *     if (!sheet_take(q, r, &list, &sheet)) return;
 *     ... view_open, a scan from sheet_from(); as long as !sheet.more and there are rows:
 *             if (sheet_passed(&sheet, key)) continue;
 *             write it into sheet_row(&sheet), unless that is NULL; sheet_keep(&sheet, key); ... view_close ...
 *     sheet_answer(q, r, &list, &sheet);
 *
 * GET PATH?after=TOKEN&limit=N: {"name": [...], "next": token or null}, and the same as a Link. A sheet ends with its limit or with
 * SHEET_BYTES, whichever comes first; one of the largest rows always fits. Its bytes are the arena's. Belongs to one actor;
 * nothing here waits but sheet_answer and sheet_write.
 */
#ifndef COPPICE_HTTP_SHEET_H
#define COPPICE_HTTP_SHEET_H

#include "http/request.h"
#include "http/response.h"
#include "store/keys.h"

#define SHEET_BYTES 60000u
#define SHEET_USUAL 20u /* rows, without a limit */
#define SHEET_MAX   100u

struct sheet_list {
    const char *name; /* of the member that holds the rows */
    uint16_t number;  /* of the list in its tokens (store/token.h) */
};

struct sheet {
    uint64_t limit;
    struct key from; /* where the page before ended; of size 0: there was none */
    size_t size, count;
    struct key last;
    bool more; /* it is full, and there is another row */
    struct json_sink sink;
    struct json json; /* of the row that is being made */
    char *bytes;      /* "{...},{...}" */
};

/* Empty, without a page before it. */
void sheet_init(struct sheet *s, uint64_t limit);
/* The same as the query asks for. False: answered. */
bool sheet_take(const struct request *q, struct response *r, const struct sheet_list *list, struct sheet *s);

/* The page before ended with this one. */
bool sheet_passed(const struct sheet *s, struct span key);
/* NULL: there is no place for another. */
struct json *sheet_row(struct sheet *s);
/* If it didn't fit it is as if it had never been begun. */
void sheet_keep(struct sheet *s, struct span key);

/* The rows, as a member of the object that is open. */
void sheet_write(const struct sheet *s, const char *name, struct json *json);
void sheet_answer(const struct request *q, struct response *r, const struct sheet_list *list,
                  const struct sheet *s);
/* A whole list: `read` writes its rows, and if it can't, `refuse` says why. */
void sheet_serve(const struct request *q, struct response *r, const struct sheet_list *list,
                 enum error (*read)(struct sheet *s), void (*refuse)(struct response *r, enum error e));

#endif
