/* Paging: what lists take from their query, and where they go on (store/token.h).
 *
 * Whatever is refused here is refused in the words of the surface that the path belongs to. Lists of clients have had their query
 * looked at by its schemas before; the same is asked once more, because it costs nothing. From the connection's actor.
 */
#ifndef COPPICE_HTTP_PAGING_H
#define COPPICE_HTTP_PAGING_H

#include "http/request.h"
#include "http/response.h"
#include "store/keys.h"
#include "store/token.h"

#define PAGING_LINK_MAX 384u

/* All of them: false: answered. */

/* "limit": `usual` when it is absent; else from 1 to most. */
bool paging_take_limit(const struct request *q, struct response *r, uint32_t usual, uint32_t most,
                       uint32_t *ret_limit);
/* One of the words that word_of has for 0..count-1 (NULL: none for this number), as its number and 1; 0: it is absent. */
bool paging_take_word(const struct request *q, struct response *r, const char *name,
                      const char *(*word_of)(uint8_t number), uint8_t count, uint8_t *ret_number);
bool paging_take_id(const struct request *q, struct response *r, const char *name, struct uuid *ret_id,
                    bool *ret_there);
/* The key that the page before ended with, which has `size` bytes; size 0: it is absent. */
bool paging_take_cursor(const struct request *q, struct response *r, const char *name, uint16_t list,
                        uint64_t filter, uint8_t size, struct key *ret_key);

/* Of whatever else a list depends on: a cursor is good for the same alone. */
uint64_t paging_filter(const void *bytes, size_t size);
/* Where a list goes on, as text. size 0: that was all. */
struct paging_next {
    char text[TOKEN_TEXT_MAX];
    uint32_t size;
};
/* Before the body begins. Makes it of the key that this page ends with (of size 0: that was all), and says it in the head, too:
 * Link: <?...>; rel="next" (RFC 8288), which is the query of this request with the parameter `name` anew. A link of more than
 * PAGING_LINK_MAX bytes is left out; the body has the same. */
void paging_go_on(const struct request *q, struct response *r, const char *name, uint16_t list,
                  uint64_t filter, const struct key *key, struct paging_next *ret_next);
/* The same link for a list whose places aren't sealed. */
void paging_link(const struct request *q, struct response *r, const char *name, struct span place);
/* null at the end. */
void paging_write_next(struct json *json, const char *name, const struct paging_next *next);

#endif
