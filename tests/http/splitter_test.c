/* Two readers of the same bytes: the parser and the reference splitter agree on 1,000,000 random pipelines.
 *
 * COPPICE_PIPELINES in the environment sets another number; COPPICE_PIPELINE=SEED looks at one and prints it.
 */
#include "acutest.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/compare.h"
#include "tests/support/pipeline.h"
#include "tests/support/sanitized.h"

#define PIPELINES (SANITIZED ? 50000u : 1000000u)
#define CUTS      4u

static struct pipeline pipeline;

/* ---- the splitter itself, by hand ---- */

static struct split_request split;
static size_t used;

static enum split reads(const char *text)
{
    return split_request(text, strlen(text), &split, &used);
}

static void test_the_splitter_reads_what_the_grammar_says(void)
{
    const char *one = "GET /x HTTP/1.1\r\nHost: a\r\nX:  y z \r\n\r\nGET";
    TEST_CHECK(reads(one) == SPLIT_DONE && used == strlen(one) - 3);
    TEST_CHECK(span_equal(split.method, span_text("GET")) && span_equal(split.target, span_text("/x")));
    TEST_CHECK(split.fields_count == 2 && span_equal(split.fields[1].value, span_text("y z")));
    TEST_CHECK(split.keep_alive && !split.has_length && split.minor == 1);
    TEST_CHECK(reads("GET /x HTTP/1.0\r\n\r\n") == SPLIT_DONE && !split.keep_alive);
    TEST_CHECK(reads("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET") == SPLIT_DONE);
    TEST_CHECK(split.body_size == 3 && memcmp(split.body, "abc", 3) == 0 && split.has_length);
    TEST_CHECK(reads("POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "3;x=y\r\nabc\r\n00a\r\n0123456789\r\n0\r\nT: v\r\n\r\n") == SPLIT_DONE);
    TEST_CHECK(split.body_size == 13 && memcmp(split.body, "abc0123456789", 13) == 0);
}

static void test_the_splitter_waits_for_what_is_missing(void)
{
    const char *whole =
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    for (size_t n = 0; n < strlen(whole); n++)
        TEST_CHECK_(split_request(whole, n, &split, &used) == SPLIT_MORE, "%zu bytes", n);
    TEST_CHECK(reads(whole) == SPLIT_DONE && used == strlen(whole));
}

/* ---- the comparison ---- */

static uint64_t from_environment(const char *name, uint64_t or_else)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : or_else;
}

static size_t make_cuts(size_t *cuts)
{
    size_t count = pipeline_random(&pipeline, CUTS + 1), last = 0;
    for (size_t i = 0; i < count && last < pipeline.size; i++)
        last = cuts[i] = last + pipeline_random(&pipeline, pipeline.size - last);
    return last < pipeline.size ? count : 0;
}

static struct compared compare_seed(uint64_t seed)
{
    size_t cuts[CUTS];
    pipeline_make(&pipeline, seed);
    size_t count = make_cuts(cuts);
    return compare_readers(pipeline.bytes, pipeline.size, pipeline.bytes, pipeline.size, cuts, count);
}

static void test_H2_H3_random_pipelines_are_read_alike(void)
{
    uint64_t only = from_environment("COPPICE_PIPELINE", 0);
    uint64_t count = from_environment("COPPICE_PIPELINES", PIPELINES), requests = 0, refused = 0, desyncs = 0;
    for (uint64_t seed = only ? only : 1; seed <= (only ? only : count) && desyncs < 5; seed++) {
        struct compared c = compare_seed(seed);
        requests += c.requests;
        refused += c.refused;
        desyncs += *c.differs != 0;
        TEST_CHECK_(!*c.differs, "pipeline %llu, the request at %zu: %s", (unsigned long long)seed, c.at,
                    c.differs);
        if (*c.differs || only)
            TEST_DUMP("the pipeline", pipeline.bytes, pipeline.size);
    }
    if (only || desyncs)
        return;
    /* Both kinds were met, often. */
    TEST_CHECK_(requests > count, "%llu requests", (unsigned long long)requests);
    TEST_CHECK_(refused > count / 8, "%llu refusals", (unsigned long long)refused);
}

/* ---- that it can fail: parsers that forgive, or misread, made by changing what ours gets to see ---- */

static char seen[PIPELINE_MAX * 2];

static size_t replace(const char *what, const char *with)
{
    size_t size = 0, length = strlen(what);
    for (size_t i = 0; i < pipeline.size;) {
        bool here = i + length <= pipeline.size && memcmp(pipeline.bytes + i, what, length) == 0;
        size_t n = here ? strlen(with) : 1;
        memcpy(seen + size, here ? with : pipeline.bytes + i, n);
        size += n;
        i += here ? length : 1;
    }
    return size;
}

static const struct mistake {
    const char *name, *what, *with;
} mistakes[] = {
    {"a space before the colon is forgiven", "Content-Length : ", "Content-Length: "},
    {"a bare LF ends a line", "y\nContent", "y\r\nContent"},
    {"a bare CR ends a line", "y\rContent", "y\r\nContent"},
    {"a folded line is joined", "\r\n\tx\r\n", " x\r\n"},
    {"a sign is taken for a number", "Length: +5", "Length: 5"},
    {"hexadecimal is taken for a number", "Length: 0x5", "Length: 0"},
    {"a list of lengths is one", ":5, 5", ":5"},
    {"no length is none", "Content-Length:\r\n", "Content-Length: 0\r\n"},
    {"identity is nothing", "Transfer-Encoding: identity\r\n", ""},
    {"an unknown coding is passed over", "Transfer-Encoding: xchunked\r\n", "X: xchunked\r\n"},
    {"an empty coding is passed over", ": ,chunked", ": chunked"},
    {"a vertical tab is white space",
     (":\x0b"
      "chunked"),
     ": chunked"},
    {"the length beats the coding", "Transfer-Encoding: chunked\r\n", "X: chunked\r\n"},
    {"a second Host is passed over", "Host: b\r\n", "X: b\r\n"},
    {"a Host may hold a path", "Host: a/b\r\n", "Host: a\r\n"},
    {"a name may be empty", "\r\n: empty\r\n", "\r\n"},
    {"a line without a colon is passed over", "no colon\r\n", ""},
    {"0x begins a chunk's size", "\r\n0x5\r\n", "\r\n5\r\n"},
    {"a plus begins a chunk's size", "\r\n+5\r\n", "\r\n5\r\n"},
    {"white space begins a chunk's size", "\r\n 5\r\n", "\r\n5\r\n"},
    {"white space ends a chunk's size", "\r\n5 \r\n", "\r\n5\r\n"},
    {"a chunk's size may overflow", "\r\n10000000000000005\r\n", "\r\n5\r\n"},
    {"a CR in an extension is passed over", "5;a\rb", "5;ab"},
    {"an LF in an extension is passed over", "5;a\nb", "5;ab"},
    {"a value is longer than it is", "X-Colons: a:b:c", "X-Colons: a:b:cd"},
    {"a name is another one", "Accept: text", "accept: text"},
    {"a target is decoded", "a%20b", "a b"},
    {"a body's byte is another one", "smuggled", "Smuggled"},
};

static bool is_found(const struct mistake *m)
{
    for (uint64_t seed = 1; seed <= 400000; seed++) {
        pipeline_make(&pipeline, seed);
        size_t size = replace(m->what, m->with);
        if (size == pipeline.size && memcmp(seen, pipeline.bytes, size) == 0)
            continue;
        if (*compare_readers(pipeline.bytes, pipeline.size, seen, size, NULL, 0).differs)
            return true;
    }
    return false;
}

static void test_a_parser_with_a_mistake_is_found_out(void)
{
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(*mistakes); i++)
        TEST_CHECK_(is_found(&mistakes[i]), "%s", mistakes[i].name);
}

TEST_LIST
= {
    {"the splitter reads what the grammar says", test_the_splitter_reads_what_the_grammar_says},
    {"the splitter waits for what is missing", test_the_splitter_waits_for_what_is_missing},
    {"H2 H3 random pipelines are read alike", test_H2_H3_random_pipelines_are_read_alike},
    {"a parser with a mistake is found out", test_a_parser_with_a_mistake_is_found_out},
    {NULL, NULL},
};
