/* A client's calls and their answers, for who measures: what is wrong is a status, and nothing is complained of. One thread. */
#ifndef COPPICE_CONFIG_CHAOS_CLIENT_H
#define COPPICE_CONFIG_CHAOS_CLIENT_H

#include "config/client.h"
#include "http/json_text.h"

#define CHAOS_TIMEOUT_S \
    60 /* until a request counts as unanswered: a machine may stand still for half of that */
#define CHAOS_ANSWER_NODES 512u
#define CHAOS_ANSWER_BYTES 16384u

struct chaos_answer {
    char why[512];
    char body[CHAOS_ANSWER_BYTES];
    struct json_node nodes[CHAOS_ANSWER_NODES];
    struct json_text json; /* of a 2xx that is JSON; without nodes else */
};

/* The HTTP status, 0: none. */
int chaos_client_ask(const struct client *c, const struct client_request *q, struct chaos_answer *a);
/* A member of the answer's object, as a text. False: it isn't there, or is no string. */
bool chaos_answer_text(const struct chaos_answer *a, const char *name, char *room, size_t size);

/* A member on a way of names ("process", "pid", NULL); NULL: there is none. */
const struct json_node *chaos_json_at(const struct json_text *json, const struct json_node *from,
                                      const char *first, const char *second);
bool chaos_json_text(const struct json_text *json, const struct json_node *string, char *room, size_t size);
uint64_t chaos_json_uint(const struct json_text *json, const struct json_node *number);

#endif
