/* The front: what every request goes through, from its head to the last byte of its answer.
 *
 *     head arrives ── path decoded once ── route ── how large a body, does it go on? ── body arrives
 *       ── credentials ── role ── rate ── media type ── JSON ── schema ── handler ── answer ── log, metrics, span
 *
 * The order is spec/control.md AMB-08. A refusal at any step is a row of the catalogue in the shape of the surface that
 * owns the path. One struct front serves one listener for the process's life; it is constant except for what a reload
 * replaces atomically and for `draining`.
 */
#ifndef COPPICE_HTTP_FRONT_H
#define COPPICE_HTTP_FRONT_H

#include "http/contract.h"
#include "http/keyring.h"
#include "http/limiter.h"
#include "http/living.h"
#include "http/route.h"

#define FRONT_BODY_MAX   (1u << 20) /* of a route that says nothing tighter (CTL-056) */
#define FRONT_TARGET_MAX 8192u      /* request line */
#define FRONT_HEAD_MAX   32768u     /* all of the head */
#define FRONT_SCRIPT_SRC_MAX \
    256u /* bytes of script-src; with the rest of the policy that fits FRONT_CSP_MAX */
#define FRONT_CSP_MAX      448u
#define FRONT_PIPELINE_MAX 16u /* requests answered in one turn before others get theirs */

/* Settings of a listener; a reload replaces the whole. */
struct front_limits {
    uint64_t handshake_ns;  /* from accept to the end of TLS's handshake: 10 s */
    uint64_t head_ns;       /* from the first byte to the end of the head: 10 s */
    uint64_t idle_ns;       /* between requests: 60 s */
    uint64_t write_ns;      /* for the client to take an answer's next bytes: 10 s */
    uint64_t request_ns;    /* from when a request had come to its commit: 10 s */
    uint64_t store_ns;      /* for one command of it; 0: as long as the request has: 5 s */
    uint64_t body_grace_ns; /* before body_rate counts: 5 s */
    uint32_t body_rate;     /* bytes/s a body must come with: 512 */
    uint32_t body_max;      /* of any request; 0: what its route takes */
    uint32_t requests_max;  /* of one connection, 0: any */
    uint32_t peer_max;      /* connections of one address, 0: any */
    uint32_t streams_max;   /* event streams at a time: 256 */
};

struct front {
    const char *name; /* "client", "operator" */
    const char *version;
    const char *environment; /* "dev", "stage", "prod" */
    struct routes *routes;
    struct contracts *contracts;
    struct keyring *keyring; /* NULL: no tokens */
    struct limiter *limiter;
    enum limit per_address; /* that any request counts for, before anything is done for it */
    enum limit refusals;    /* that refused credentials count for; who has good ones never waits for them */
    const char *operator_token_hash; /* hex SHA-256; NULL: this listener asks for none */
    const char *cors_origin;         /* NULL: CORS is off */
    const char *security_contact;    /* of security.txt; NULL: there is none */
    uint64_t security_validity_ns;   /* how long it is good for */
    const struct living_rows *rows;
    bool loopback_only; /* Host must name this machine */
    bool secure;        /* TLS here or at the proxy in front: HSTS */
    bool embeddable;    /* by pages of the same origin, approved (CTL-151); else by none */
    uint32_t csp_length;
    char csp[FRONT_CSP_MAX]; /* the line of Content-Security-Policy; empty: the strictest */
    bool check_answers;      /* against the contract; a wrong one is an assertion */
    bool opening; /* no store yet: routes that are `early` are served, others are told that they will be */
    /* Called after each answer, in the connection's actor; NULL: nobody wants to know. */
    void (*log)(const struct request *q, const struct response *r, uint64_t took_ns);
    struct front_limits *_Atomic limits;
    _Atomic bool draining;
    _Atomic uint32_t connections, streams;
    _Atomic uint64_t requests;
    _Atomic uint64_t quiet_until; /* for the listeners: when it may be said again that there is no room */
    _Atomic uint32_t crowded;     /* turned away since it was said last */
};

/* Boot, with `embeddable` as it will be. Where scripts of our pages may come from: 'self' and origins, with spaces or commas
 * between them, at most FRONT_SCRIPT_SRC_MAX bytes, checked by the caller (CTL-149). */
void front_allow_scripts(struct front *front, const char *sources);

/* What a request's head says about what follows it. */
struct front_plan {
    struct route_match match;
    uint32_t body_max;
    bool refused; /* the answer is known; the body isn't wanted */
    enum error_kind kind;
    enum error_code code; /* ERROR_NONE: by kind */
    const char *detail;   /* static */
    bool asterisk;        /* OPTIONS of the server, not of a path */
    struct body *room;    /* of the nodes of a large body's JSON, or NULL; dropped behind the answer */
};
/* After the head, before the body. `whole`: the body is here already, so nothing is decided early. What it allocates is in
 * the actor's arena. */
void front_plan(struct front *front, struct request *q, bool whole, struct front_plan *ret_plan);
/* The whole of a request: fills in the rest of it, runs the handler, ends the answer. False: close. */
bool front_serve(struct front *front, struct request *q, struct front_plan *plan, struct response *r);

/* Of bytes that are no request: what parser_glimpse has found in them, and whose path it may be. */
void front_glimpse(struct front *front, struct request *q, struct front_plan *ret_plan);
/* The whole answer to a request that can't go on, planned or glimpsed. */
void front_refuse(struct front *front, struct request *q, const struct front_plan *plan, struct response *r,
                  enum error_kind kind, const char *why);

/* The handler of this request has crashed, or was ended, and its connection with it: counted and logged as the 500 that it is,
 * whatever the client has heard of it. By the connection, from what is released when its actor has ended. */
void front_crashed(struct front *front, struct request *q, struct response *r);

/* The answer to a connection that there is no room for, of which nothing is read: its bytes, and their size; logged. From an actor.
 * `address`: as of a request; `own`: there is no room for more of this address, and may be for others. */
size_t front_turn_away(struct front *front, struct span address, bool own, char text[RESPONSE_LAST_MAX]);

/* By a handler whose route takes credentials in its body: the refusal counts against the address, as those do that the
 * front finds. */
void front_refuse_credentials(const struct request *q, struct response *r, enum error_code code,
                              const char *why);

/* The process's fronts, for handlers and commands: by name, or NULL. */
struct front *front_find(const char *name);
void front_install(struct front *front);      /* boot */
void front_remove(const struct front *front); /* when nobody runs any more; one that isn't there is fine */

#endif
