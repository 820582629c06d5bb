/* The command line's way to a running server: requests over the operator's listener.
 *
 * Where: --url (http://HOST[:PORT][/PREFIX] or unix:/PATH), else --operator-listen. With which token: that of --token-file,
 * --operator-token, or operator.token in --store-dir, the first that is named; one that isn't named may be missing, and
 * a unix socket is asked without one unless it is named. One that isn't named and can't be read is told when the server asks
 * for it. Blocks; one thread.
 */
#ifndef COPPICE_CONFIG_CLIENT_H
#define COPPICE_CONFIG_CLIENT_H

#include "config/options.h"
#include "http/address.h"
#include "runtime/json.h"

#define CLIENT_TIMEOUT_S  10
#define CLIENT_TARGET_MAX 1024u
#define CLIENT_UNHEARD    "the server did not answer" /* begins the why of a connection that was taken */
#define CLIENT_FORBIDDEN  (-1)                        /* instead of a status: this user may not, and why */

struct client {
    struct address address;
    char host[280];       /* Host: */
    char prefix[256];     /* in front of every path */
    char token[512];      /* empty: none */
    char unread[256];     /* why the file of one can't be read; empty: it can, or isn't there */
    char named[512];      /* where, for people */
    enum command command; /* whose options a refusal may be about */
    int timeout_s;        /* for its next bytes, or to be heard; 0: CLIENT_TIMEOUT_S */
};

/* 0, or the exit status and a sentence that says what can't be meant or read. No connection is made. */
int client_open(struct client *ret, const struct options *o, char *ret_why, size_t why_size);

/* The same, with o->url from elsewhere than --url: `named` is what says it. */
int client_open_url(struct client *ret, const struct options *o, const char *named, char *ret_why,
                    size_t why_size);

struct client_request {
    const char *method, *target; /* the target is escaped already: client_escape */
    const char *body;            /* JSON, or NULL */
    const char *accept;          /* NULL: anything */
    bool endless;                /* an event stream: no time limit between its bytes */
};
/* The HTTP status; the body of a 2xx goes into the sink. 0: nobody listens, the answer is cut off or isn't HTTP, and why.
 * Of any other status `why` says code and detail. CLIENT_FORBIDDEN: this user may not connect, or not read the token that the
 * server asks for. A sink that takes no more ends the call with the status so far. */
int client_call(const struct client *client, const struct client_request *q, struct json_sink *sink,
                char *ret_why, size_t why_size);

/* Percent-encodes what a segment or a query value can't hold. False: no room. */
bool client_escape(const char *text, char *ret, size_t size);

#endif
