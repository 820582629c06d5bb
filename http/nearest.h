/* The known word that a mistyped one was probably meant to be. Pure; any thread. */
#ifndef COPPICE_HTTP_NEAREST_H
#define COPPICE_HTTP_NEAREST_H

#include <stddef.h>

/* Words above this length match nothing but themselves. */
#define NEAREST_LENGTH_MAX 48

/* Edits (insert, delete, replace, swap of two neighbours) that make one word the other. */
size_t nearest_distance(const char *a, const char *b);
/* Keeps the best candidate seen so far: start with {.word = what was typed}, offer each known word. */
struct nearest {
    const char *word;
    const char *best; /* NULL: nothing is near: within a third of the word's length, at least 1 */
    size_t distance;
};
void nearest_offer(struct nearest *n, const char *candidate);

#endif
