/* An asker: one connection to an HTTP server, one request after the other. What is not a measured crowd asks so. */
#ifndef COPPICE_TESTS_BENCH_ASKER_H
#define COPPICE_TESTS_BENCH_ASKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ASKER_ROOM (1u << 20)

struct asker {
    int fd;
    char *room;       /* the whole answer, with a 0 behind it */
    const char *body; /* within it */
    const char *more; /* lines of the head of each request, each with its \r\n; NULL: none */
};

void asker_open(struct asker *asker, uint16_t port);
void asker_close(struct asker *asker);
/* The status. key: of the API, NULL: none; body: JSON, NULL: none. What fails ends the program, but not a status. */
int asker_ask(struct asker *asker, const char *method, const char *path, const char *key, const char *body);
/* The text of the first member of this name in the last answer, without quotes; false: there is none. */
bool asker_member(const struct asker *asker, const char *name, char *ret, size_t size);

/* The size of an HTTP answer, 0 when it isn't whole; *ret_status and *ret_head, the size of its head, when it is. */
size_t asker_answer(const char *bytes, size_t size, int *ret_status, size_t *ret_head);
/* The body of a whole answer, chunks put together; its size. room may be where it stands. */
size_t asker_body(const char *answer, size_t whole, size_t head, char *room);

#endif
