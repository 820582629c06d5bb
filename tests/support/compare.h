/* Compares what the parser makes of a connection's bytes with what the reference splitter does: which requests there are,
 * where each ends, what is in it, and whether the rest is refused.
 */
#ifndef COPPICE_TESTS_SUPPORT_COMPARE_H
#define COPPICE_TESTS_SUPPORT_COMPARE_H

#include "tests/support/feed.h"
#include "tests/support/splitter.h"

/* Where two readers differ, a proxy and its server would. Empty: they agree. */
struct compared {
    char differs[256];
    size_t at;         /* of the request that they differ about */
    uint32_t requests; /* both took */
    bool refused;      /* by both, behind those */
};

/* The parser gets `seen`, in pieces that end at cuts; the splitter gets `bytes`. They are the same, except where a test asks
 * whether a difference would be found. */
struct compared compare_readers(const char *bytes, size_t size, const char *seen, size_t seen_size,
                                const size_t *cuts, size_t cuts_count);

#endif
