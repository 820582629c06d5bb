#include "acutest.h"

#include <string.h>

#include "store/lifecycle.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { HELD, SENT, DELIVERED, LOST, STATE_COUNT };
enum { SEND, DELIVER, LOSE, EVENT_COUNT };

static const struct lifecycle_state states[STATE_COUNT] = {
    [HELD] = {"held", 0},
    [SENT] = {"sent", 0},
    [DELIVERED] = {"delivered", LIFECYCLE_TERMINAL},
    [LOST] = {"lost", LIFECYCLE_TERMINAL},
};
static const char *const events[EVENT_COUNT] = {[SEND] = "send", [DELIVER] = "deliver", [LOSE] = "lose"};
static const struct lifecycle_edge edges[] = {
    {HELD, SEND, SENT},
    {HELD, LOSE, LOST},
    {SENT, DELIVER, DELIVERED},
    {SENT, LOSE, LOST},
};
static const struct lifecycle parcel = {.name = "parcel",
                                        .states = states,
                                        .events = events,
                                        .edges = edges,
                                        .states_count = STATE_COUNT,
                                        .events_count = EVENT_COUNT,
                                        .edges_count = COUNT(edges)};

/* ---- what may happen ---- */

static uint8_t expected(uint8_t state, uint8_t event)
{
    for (size_t i = 0; i < COUNT(edges); i++)
        if (edges[i].from == state && edges[i].event == event)
            return edges[i].to;
    return 255;
}

static void test_edges_and_nothing_else(void)
{
    for (unsigned state = 0; state < 256; state++) {
        for (unsigned event = 0; event < 256; event++) {
            uint8_t next = 99, to = expected((uint8_t)state, (uint8_t)event);
            enum error e = lifecycle_next(&parcel, (uint8_t)state, (uint8_t)event, &next);
            TEST_CHECK(e == (state >= STATE_COUNT ? ERR_DAMAGED : to == 255 ? ERR_TRANSITION : OK));
            TEST_CHECK(next == (to == 255 ? 99 : to));
        }
    }
}

static void test_allows_and_terminal(void)
{
    for (unsigned from = 0; from < 256; from++) {
        for (unsigned to = 0; to < 256; to++) {
            bool allowed = (from == HELD && (to == SENT || to == LOST)) ||
                           (from == SENT && (to == DELIVERED || to == LOST));
            TEST_CHECK(lifecycle_allows(&parcel, (uint8_t)from, (uint8_t)to) == allowed);
        }
        TEST_CHECK(lifecycle_terminal(&parcel, (uint8_t)from) == (from == DELIVERED || from == LOST));
    }
}

static void test_names(void)
{
    TEST_CHECK(strcmp(lifecycle_state_name(&parcel, LOST), "lost") == 0);
    TEST_CHECK(strcmp(lifecycle_event_name(&parcel, DELIVER), "deliver") == 0);
    TEST_CHECK(!lifecycle_state_name(&parcel, STATE_COUNT) && !lifecycle_state_name(&parcel, 255));
    TEST_CHECK(!lifecycle_event_name(&parcel, EVENT_COUNT) && !lifecycle_event_name(&parcel, 255));
}

/* ---- the refusal ---- */

static void test_refusal(void)
{
    static const struct {
        uint8_t state, event;
        const char *text;
    } rows[] = {
        {LOST, SEND, "parcel: 'send' is not possible in state 'lost'; possible: nothing"},
        {HELD, DELIVER, "parcel: 'deliver' is not possible in state 'held'; possible: 'send', 'lose'"},
        {SENT, SEND, "parcel: 'send' is not possible in state 'sent'; possible: 'deliver', 'lose'"},
        {HELD, 200, "parcel: 200 is not possible in state 'held'; possible: 'send', 'lose'"},
        {77, LOSE, "parcel: 'lose' is not possible in state 77; possible: nothing"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        char text[128];
        size_t length = lifecycle_refusal(&parcel, rows[i].state, rows[i].event, text, sizeof(text));
        TEST_CHECK_(strcmp(text, rows[i].text) == 0, "%s", text);
        TEST_CHECK(length == strlen(rows[i].text));
    }
}

/* Every size: a beginning of the whole sentence, ended, and not a byte beyond. */
static void test_refusal_cut_off(void)
{
    char whole[128];
    size_t length = lifecycle_refusal(&parcel, HELD, DELIVER, whole, sizeof(whole));
    for (size_t size = 1; size <= length + 2; size++) {
        char text[130];
        memset(text, '#', sizeof(text));
        size_t got = lifecycle_refusal(&parcel, HELD, DELIVER, text, size);
        TEST_CHECK(got == (size - 1 < length ? size - 1 : length));
        TEST_CHECK(strlen(text) == got && memcmp(text, whole, got) == 0);
        TEST_CHECK(text[size] == '#');
    }
}

/* ---- the check ---- */

static void refused(const struct lifecycle *l, const char *sentence)
{
    char text[160];
    TEST_CHECK(!lifecycle_check(l, text, sizeof(text)));
    TEST_CHECK_(strcmp(text, sentence) == 0, "'%s' should be '%s'", text, sentence);
}

static void test_check_accepts(void)
{
    static const struct lifecycle_state one[] = {{"there", 0}};
    static const struct lifecycle smallest = {.name = "stone", .states = one, .states_count = 1};
    char text[160];
    TEST_CHECK_(lifecycle_check(&parcel, text, sizeof(text)), "%s", text);
    TEST_CHECK(text[0] == '\0');
    TEST_CHECK_(lifecycle_check(&smallest, text, sizeof(text)), "%s", text);
}

static void test_check_names(void)
{
    struct lifecycle l = parcel;
    struct lifecycle_state bad[STATE_COUNT];
    const char *bad_events[EVENT_COUNT] = {"send", "deliver", "send"};

    l.name = "";
    refused(&l, "a lifecycle has no name");
    l.name = NULL;
    refused(&l, "a lifecycle has no name");
    l = parcel;
    l.states = bad;
    memcpy(bad, states, sizeof(bad));
    bad[SENT].name = NULL;
    refused(&l, "parcel: state 1 has no name");
    bad[SENT].name = "";
    refused(&l, "parcel: state 1 has no name");
    bad[SENT].name = "sent";
    bad[LOST].name = "held";
    refused(&l, "parcel: states 0 and 3 are both called 'held'");
    bad[LOST] = (struct lifecycle_state){"lost", 4};
    refused(&l, "parcel: state 'lost' has a flag that doesn't exist");
    l = parcel;
    l.events = bad_events;
    refused(&l, "parcel: events 0 and 2 are both called 'send'");
    bad_events[2] = NULL;
    refused(&l, "parcel: event 2 has no name");
    bad_events[0] = "";
    refused(&l, "parcel: event 0 has no name");
}

static void test_check_counts(void)
{
    struct lifecycle l = parcel;
    l.states_count = 0;
    refused(&l, "parcel: 0 states; 1 to 32 are possible");
    l.states_count = LIFECYCLE_STATES_MAX + 1;
    refused(&l, "parcel: 33 states; 1 to 32 are possible");
    l = parcel;
    l.events_count = LIFECYCLE_EVENTS_MAX + 1;
    refused(&l, "parcel: 33 events; at most 32 are possible");
}

/* The parcel's edges and one more. */
static void refused_with_edge(struct lifecycle_edge edge, const char *sentence)
{
    struct lifecycle_edge more[COUNT(edges) + 1];
    struct lifecycle l = parcel;
    memcpy(more, edges, sizeof(edges));
    more[COUNT(edges)] = edge;
    l.edges = more;
    l.edges_count++;
    refused(&l, sentence);
}

static void test_check_edges(void)
{
    refused_with_edge((struct lifecycle_edge){LOST, SEND, SENT},
                      "parcel: 'send' leaves the terminal state 'lost'");
    refused_with_edge((struct lifecycle_edge){HELD, SEND, LOST},
                      "parcel: 'send' has two edges from state 'held'");
    refused_with_edge((struct lifecycle_edge){HELD, SEND, SENT},
                      "parcel: 'send' has two edges from state 'held'");
    refused_with_edge((struct lifecycle_edge){STATE_COUNT, SEND, SENT},
                      "parcel: edge 4 (4, 0, 1) names a state or an event that doesn't exist");
    refused_with_edge((struct lifecycle_edge){HELD, EVENT_COUNT, SENT},
                      "parcel: edge 4 (0, 3, 1) names a state or an event that doesn't exist");
    refused_with_edge((struct lifecycle_edge){HELD, DELIVER, 255},
                      "parcel: edge 4 (0, 1, 255) names a state or an event that doesn't exist");
}

/* Two states that lead to each other are not reached by that. */
static void test_check_reached(void)
{
    static const struct lifecycle_edge island[] = {
        {HELD, SEND, DELIVERED}, {SENT, SEND, LOST}, {HELD, LOSE, HELD}};
    static const struct lifecycle_state circle[] = {{"a", 0}, {"b", 0}, {"c", 0}};
    static const struct lifecycle_edge round[] = {{1, SEND, 2}, {2, SEND, 1}};
    static const struct lifecycle_edge backwards[] = {{2, SEND, 1}, {1, SEND, 0}, {0, SEND, 2}};
    struct lifecycle l = parcel;
    char text[160];
    l.edges = island;
    l.edges_count = COUNT(island);
    refused(&l, "parcel: no way leads to state 'sent'");
    l.states = circle;
    l.states_count = COUNT(circle);
    l.edges = round;
    l.edges_count = COUNT(round);
    refused(&l, "parcel: no way leads to state 'b'");
    l.edges = backwards;
    l.edges_count = COUNT(backwards);
    TEST_CHECK_(lifecycle_check(&l, text, sizeof(text)), "%s", text);
}

TEST_LIST
= {{"edges and nothing else", test_edges_and_nothing_else},
   {"allows and terminal", test_allows_and_terminal},
   {"names", test_names},
   {"refusal", test_refusal},
   {"refusal: cut off", test_refusal_cut_off},
   {"check: accepts", test_check_accepts},
   {"check: names", test_check_names},
   {"check: counts", test_check_counts},
   {"check: edges", test_check_edges},
   {"check: reached", test_check_reached},
   {NULL, NULL}};
