/* Named ids: the id of a thing that is known by texts, such as a token by its issuer and jti.
 *
 * A keyed hash of the parts in their order, each with its length, by the store's secret: so nobody outside can find two
 * names with one id, and a table keyed by it needs no texts in its keys. Of another kind, or in another store, the same
 * parts have another id. Marked as version 8 of RFC 9562. Pure; any thread.
 */
#ifndef COPPICE_STORE_NAMED_ID_H
#define COPPICE_STORE_NAMED_ID_H

#include "store/span.h"
#include "store/uuid.h"

struct store;

struct uuid named_id(const struct store *store, const char *kind, const struct span *parts, size_t count);

#endif
