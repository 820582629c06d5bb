/* Audit entries: who did what to the server, page by page, and the entry that each change by an operator leaves.
 *
 * Called by the connection's actor. What is read is copied into the actor's arena while the view is open, and sent
 * after it was closed, because sending may wait.
 */
#ifndef COPPICE_HTTP_AUDITS_H
#define COPPICE_HTTP_AUDITS_H

#include "http/route.h"

#define AUDITS_REASON_MAX 512u /* bytes of a reason (store/audit.h) */

struct audits_entry {
    const char *verb;   /* "actor.kill" */
    const char *target; /* cut to what an entry holds */
    struct span reason;
    const char *outcome;
    struct span details; /* a JSON value, or nothing */
};
/* One entry by whoever sent the request, committed before it returns. False: it could not be written, or nobody knows
 * whether it was; a line of the log says which entry and why. */
bool audits_note(const struct request *q, const struct audits_entry *entry);

/* The same by somebody who has sent no request, such as a signal, or in the name of one who has. Until the deadline. */
struct audits_by {
    struct span who, request_id; /* request_id: or nothing */
};
bool audits_note_by(const struct audits_by *by, const struct audits_entry *entry, uint64_t deadline);
/* The same for who can't wait as long as a store may hang: behind the deadline, which may be over already, the entry is
 * the store's, which writes it when it goes on. Nobody hears of that then; the line of the log is there all the same. */
bool audits_hand_by(const struct audits_by *by, const struct audits_entry *entry, uint64_t deadline);
/* Whoever sent the request; borrowed from it. */
struct audits_by audits_by(const struct request *q);

/* As much of a text as fits, cut between two characters: contracts count these, and the store counts bytes. */
struct span audits_cut(struct span text, size_t most);
/* The member "reason" of a request's body, as an entry holds it; empty: none. */
struct span audits_reason(const struct request *q);

/* GET /stats/audits?after=TOKEN&limit=N: {"audits": [...], "next": token or null}, newest first. */
void audits_serve(const struct request *q, struct response *r);

#endif
