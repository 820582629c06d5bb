/* Pipelines: what a connection's client may send, by chance. The same seed makes the same bytes.
 *
 * Two thirds are requests as they should be, of every kind that a connection may hear, one behind the other. The rest
 * were changed afterwards in one to four places, in ways that are known to make two readers of one connection differ.
 * Bodies often look like requests.
 */
#ifndef COPPICE_TESTS_SUPPORT_PIPELINE_H
#define COPPICE_TESTS_SUPPORT_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIPELINE_MAX 8192u

struct pipeline {
    uint64_t chance;
    uint32_t changes; /* made to it; 0: all of its requests are good ones */
    uint32_t requests;
    size_t size;
    char bytes[PIPELINE_MAX];
};

void pipeline_make(struct pipeline *p, uint64_t seed);
uint64_t pipeline_random(struct pipeline *p, uint64_t below); /* goes on in the same series */

#endif
