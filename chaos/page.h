/* Page: a JSON text of an answer or a delivery while it is looked at.
 *
 * There are PAGES of them, each good until the same one is read again; a strand that waits in between reads anew. What is
 * asked for by name is a member of an object; asked of NULL or of what is no object, there is none.
 */
#ifndef COPPICE_CHAOS_PAGE_H
#define COPPICE_CHAOS_PAGE_H

#include "http/json_text.h"
#include "store/uuid.h"

enum { PAGES = 2 };

struct page {
    struct json_text json;
};

/* NULL: it is no JSON. The text is borrowed. */
const struct page *page_read(int which, struct span text);

static inline const struct json_node *page_root(const struct page *page)
{
    return json_root(&page->json);
}
const struct json_node *page_member(const struct page *page, const struct json_node *object,
                                    const char *name);
static inline bool page_is(const struct json_node *node, enum json_kind kind)
{
    return node && node->kind == (uint8_t)kind;
}
uint32_t page_members(const struct json_node *object); /* 0 of what is no object */

/* False: it isn't there, is no string, or doesn't fit. */
bool page_text(const struct page *page, const struct json_node *object, const char *name, char *room,
               size_t size);
bool page_number(const struct page *page, const struct json_node *object, const char *name, uint64_t *ret);
bool page_flag(const struct page *page, const struct json_node *object, const char *name); /* it is true */
bool page_uuid(const struct page *page, const struct json_node *object, const char *name, struct uuid *ret);
/* RFC 3339 in UTC, with Z: milliseconds since 1970. */
bool page_time(const struct page *page, const struct json_node *object, const char *name, uint64_t *ret_ms);
/* Members: in the same order or another, two objects have the same print; 0 of NULL. `except`: names to leave out. */
uint64_t page_print(const struct page *page, const struct json_node *node, const char *const *except);

bool time_parse(const char *text, uint64_t *ret_ms);

#endif
