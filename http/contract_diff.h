/* Contract diffs: what is another in a newer version of a document, and whether a client of the older one notices.
 *
 * Compatible are (spec/control.md CTL-064): a new optional member, header or parameter, a new operation or answer, a new
 * channel, a new message of it, a new alternative of an event's details, and a schema that nobody had before. Every
 * other difference is breaking: what is gone, renamed, required now or no longer required, of another type, range or
 * set of values (CTL-065). Prose, examples and x- members are no difference.
 *
 * Breaking differences are allowed when the document's major version is higher and info.x-migration-guide-ref names the
 * guide (CTL-066); the consumers' sign-offs are checked where they are kept.
 *
 * For the command line: pure, linear in the schemas that both have; a pair of them is compared once.
 */
#ifndef COPPICE_HTTP_CONTRACT_DIFF_H
#define COPPICE_HTTP_CONTRACT_DIFF_H

#include "http/json_text.h"

/* `what` is a sentence with its place, good for the call. */
typedef void contract_diff_tell(void *context, bool breaking, const char *what);

struct contract_diff {
    uint32_t breaking, compatible;
    bool major_raised, guide; /* of the newer document */
    bool allowed;             /* nothing is breaking, or it may be */
};

/* Both are OpenAPI, or both AsyncAPI documents; false: they aren't, or hold more schemas than can be compared. */
bool contract_diff(const struct json_text *old, const struct json_text *now, contract_diff_tell *tell,
                   void *context, struct contract_diff *ret);
/* Two tables of the form of control.events.tsv: a new event is compatible, everything else breaking. Only counts are
 * filled in. */
bool contract_diff_events(struct span old, struct span now, contract_diff_tell *tell, void *context,
                          struct contract_diff *ret);

#endif
