/* Errand: one job from its submit to the last look at it, as a client sees it.
 *
 * Each function sends requests and judges their answers; what it finds stays in the errand. Of a strand; scripts
 * (chaos/script.h) put them together.
 */
#ifndef COPPICE_CHAOS_ERRAND_H
#define COPPICE_CHAOS_ERRAND_H

#include "chaos/book.h"
#include "chaos/dice.h"
#include "chaos/inbox.h"
#include "chaos/kind.h"
#include "chaos/trail.h"

enum job_type { TYPE_EXECUTE, TYPE_DEFERRED, TYPE_EMIT_EVENT };

struct errand {
    struct caller *caller, *stranger; /* whose it is; another client */
    struct inbox *subscribed;         /* the caller's registered webhook; NULL: none */
    struct dice dice;
    int asked; /* enum kind: KIND_DRAWN, too */
    enum job_type type;
    uint64_t execution_ms;  /* 0: at once */
    bool near;              /* it may be due as soon as it is accepted */
    bool brink;             /* and is so long ago that it is accepted for ERRAND_BRINK_MS alone; */
    bool late;              /* which were over before it was answered: nothing is known by its refusal */
    struct inbox *callback; /* NULL: none */
    char key[80];           /* "": none */
    bool key_in_body;
    char body[768]; /* of the submit */

    uint64_t submitted; /* monotonic ns */
    char id[UUID_TEXT_SIZE];
    struct uuid uuid;
    struct entry *entry;
    int kind; /* of the definition; -1: not known yet */
    uint64_t created_ms, updated_ms, attempt;
    int state;
    char failure[40];   /* its reason, when FAILED */
    struct trail trail; /* as it was read last */
    bool judged;        /* to its end */
};

const char *type_name(enum job_type type);

#define ERRAND_BRINK_MS 400u
/* Writes the body, and submits it. False: there is no job. */
bool errand_submit(struct errand *e);
/* Takes over the job of a 202. */
bool errand_adopt(struct errand *e, const struct letter *answer);
/* The same, and it must be refused. */
void errand_be_refused(struct errand *e);
/* The same body and key again: the same job. */
void errand_submit_again(struct errand *e);
/* The same key with another body: a conflict. */
void errand_submit_otherwise(struct errand *e);

/* One look; false: it couldn't be seen. */
bool errand_look(struct errand *e);
/* Looks until the state is final, or (`running`) RUNNING at least; false: it is stuck. */
bool errand_await(struct errand *e, bool running);
/* The state that the answer names; STATE_NONE: there was none. */
int errand_cancel(struct errand *e);
/* True: it is on its way again. */
bool errand_retry(struct errand *e);
/* The report, the events, the deliveries, and now and then what else must hold of a final job. */
void errand_judge(struct errand *e);
/* It has no report as yet, unless it has become final meanwhile. */
void errand_judge_unreported(struct errand *e);
/* Another client sees nothing of it and changes nothing. */
void errand_judge_ownership(struct errand *e);
/* Forgets what was delivered. */
void errand_end(struct errand *e);

#endif
