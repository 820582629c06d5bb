/* Rendered values: JSON made while a view is open, and written when it is closed.
 *
 * Writing an answer may wait for its client, which nobody may who holds a view. So what a view shows is written into a room
 * first, value by value, as many as fit; the next ones are for the next view.
 *
 *     rendered_clear(&some);
 *     ... view_open, and for each value: write it into rendered_begin(&some); if (!rendered_end(&some)) full; ... view_close ...
 *     rendered_write(&some, &json);
 *
 * The room is the arena's. Belongs to one actor; nothing here waits but rendered_write.
 */
#ifndef COPPICE_HTTP_RENDERED_H
#define COPPICE_HTTP_RENDERED_H

#include "runtime/json.h"

#define RENDERED_ROOM \
    32768u /* of a chunk of the arena that the runtime has in stock, with what it needs itself */
#define RENDERED_MAX 128u /* values */

struct rendered {
    uint32_t count;
    uint32_t ends[RENDERED_MAX]; /* in the room */
    struct json_sink sink;
    struct json json; /* of the value that is being made */
    char room[RENDERED_ROOM - 2048];
};

struct rendered *rendered_new(void); /* from the arena, empty */
void rendered_clear(struct rendered *r);
struct json *rendered_begin(struct rendered *r);
/* False: it didn't fit, and is as if it had never been begun. */
bool rendered_end(struct rendered *r);
/* As elements of the array that is open. */
void rendered_write(const struct rendered *r, struct json *json);

#endif
