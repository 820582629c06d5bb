/* A connection's bytes: the parser takes and refuses what the reference splitter (tests/support/splitter.h) does, however the
 * bytes are cut into pieces. The first byte says how they are. */
#include <stdio.h>
#include <stdlib.h>
#include "tests/fuzz/bytes.h"
#include "tests/support/compare.h"

#define SIZE_MAX_READ 60000u /* no body is longer than the splitter's room */
#define CUTS_MAX      256u

static size_t cut(size_t *cuts, size_t size, uint8_t piece)
{
    size_t count = 0;
    for (size_t at = piece; piece && at < size && count < CUTS_MAX; at += piece)
        cuts[count++] = at;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    size_t cuts[CUTS_MAX];
    const char *bytes;
    uint8_t piece = take(&input);
    size = take_piece(&input, SIZE_MAX_READ, &bytes);
    struct compared c = compare_readers(bytes, size, bytes, size, cuts, cut(cuts, size, piece));
    if (*c.differs) {
        fprintf(stderr, "the request at %zu: %s\n", c.at, c.differs);
        abort();
    }
    return 0;
}
