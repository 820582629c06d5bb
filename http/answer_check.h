/* Answer checks: whether what we say is what the contract says we say. In test builds, and wherever http.check_answers is on.
 *
 *     2xx            the operation declares this status, with this media type; JSON is valid by its schema; a 201 says
 *                    where what it made is (Location)
 *     3xx            nothing more; a 304 has no body
 *     4xx, 5xx       the body is the error shape of the surface that owns the path, and says the status that was sent; also of
 *                    what the front refuses before any handler, and of paths that are in no contract. When the operation
 *                    declares the status, or a default, and the code is one of its contract: as with 2xx
 *
 * Looked at behind the handler and before the answer ends. Bodies up to ANSWER_CHECK_MAX are kept for it, in a slot of
 * http/body.h; of a longer one, of a stream, and when all slots are in use, only status and type are looked at.
 *
 * From the connection's actor; memory is its arena's.
 */
#ifndef COPPICE_HTTP_ANSWER_CHECK_H
#define COPPICE_HTTP_ANSWER_CHECK_H

#include "http/body.h"
#include "http/contract.h"
#include "http/response.h"

#define ANSWER_CHECK_MAX BODY_BYTES_MAX
#define ANSWER_CHECK_WHY 512u

/* Bytes of the body that leave the response; by it. */
void answer_check_keep(struct response *r, const char *bytes, size_t size);
/* False: why not. `operation` NULL: the path is in no contract; `contracts` NULL: there are none. */
bool answer_check(const struct contracts *contracts, const struct contract_operation *operation,
                  struct response *r, char why[ANSWER_CHECK_WHY]);

#endif
