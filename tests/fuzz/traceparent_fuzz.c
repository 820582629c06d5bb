/* Trace context of clients: any bytes are none or a sound one; what is sound is written again as it came. */
#include "http/trace.h"
#include "runtime/assert.h"
#include "tests/fuzz/bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t none[16];
    struct trace trace;
    char text[TRACE_PARENT_TEXT + 1];
    memset(&trace, 0xee, sizeof(trace));
    if (!trace_parse(span_of(data, size), &trace))
        return 0;
    ASSERT(size >= TRACE_PARENT_TEXT);
    ASSERT(memcmp(trace.trace_id, none, sizeof(trace.trace_id)) != 0);
    ASSERT(memcmp(trace.parent_id, none, sizeof(trace.parent_id)) != 0);
    ASSERT(trace.flags <= 1);
    memcpy(trace.span_id, trace.parent_id, sizeof(trace.span_id));
    trace_write_parent(&trace, text);
    ASSERT(memcmp(text + 2, data + 2, TRACE_PARENT_TEXT - 4) == 0); /* but for the version and the flags */
    ASSERT(text[TRACE_PARENT_TEXT] == 0 && trace_parse(span_of(text, TRACE_PARENT_TEXT), &trace));
    return 0;
}
