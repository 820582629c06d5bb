/* Chunked bodies, in pieces of their own memory and read into other memory: the bytes that come out are those that the
 * reference splitter finds, and both end at the same place or refuse. The first byte says how large the pieces are. */
#include <stdlib.h>
#include "http/parser.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"
#include "tests/support/splitter.h"

#define ROOM 60000u

static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
static char whole[ROOM], out[ROOM];
static struct split_request split;

/* Each piece ends where its memory ends. */
static enum parsed read_piece(struct parser *p, const char *bytes, size_t size, size_t *ret_used,
                              size_t *written)
{
    size_t wrote = 0;
    char *copy = malloc(size);
    ASSERT(copy);
    memcpy(copy, bytes, size);
    enum parsed r = parser_chunks(p, copy, size, out + *written, ret_used, &wrote);
    free(copy);
    ASSERT(wrote <= size);
    *written += wrote;
    return r;
}

static enum parsed read_pieces(const char *bytes, size_t size, size_t piece, size_t *ret_used,
                               size_t *ret_written)
{
    struct parser p;
    enum parsed r = PARSED_MORE;
    parser_reset(&p);
    *ret_used = *ret_written = 0;
    while (r == PARSED_MORE && *ret_used < size) {
        size_t n = size - *ret_used < piece ? size - *ret_used : piece, used = 0;
        r = read_piece(&p, bytes + *ret_used, n, &used, ret_written);
        ASSERT(r == PARSED_REFUSED || used <= n);
        ASSERT(r != PARSED_MORE || used == n);
        *ret_used += used;
    }
    ASSERT(r != PARSED_REFUSED || (p.status >= 400 && p.status < 600 && p.why));
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    const char *bytes;
    const size_t head_size = sizeof head - 1;
    size_t piece = 1 + take(&input), used, written, split_used;
    size = take_piece(&input, ROOM - head_size, &bytes);
    memcpy(whole, head, head_size);
    if (size)
        memcpy(whole + head_size, bytes, size);
    enum parsed r = read_pieces(bytes, size, piece, &used, &written);
    enum split s = split_request(whole, head_size + size, &split, &split_used);
    ASSERT((r == PARSED_DONE) == (s == SPLIT_DONE));
    ASSERT((r == PARSED_REFUSED) == (s == SPLIT_REFUSED) || (r == PARSED_REFUSED && s == SPLIT_MORE) ||
           (r == PARSED_MORE && s == SPLIT_REFUSED));
    if (r == PARSED_DONE)
        ASSERT(split_used == head_size + used && split.body_size == written &&
               memcmp(split.body, out, written) == 0);
    return 0;
}
