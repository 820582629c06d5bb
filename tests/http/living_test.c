#include "acutest.h"

#include <stdio.h>
#include <string.h>

#include "http/living.h"
#include "tests/support/inside.h"

static const struct living_row rows_all[] = {
    {.name = "top", .owner = "top supervisor", .declared = "{\"name\":\"top\"}"},
    {.name = "rooms", .owner = "room supervisor", .declared = "{\"name\":\"rooms\"}"},
    {.name = "room:<room_id>",
     .owner = "room supervisor",
     .per_key = true,
     .declared = "{\"name\":\"room\"}"},
    {.name = "room:<room_id>/server",
     .owner = "room supervisor",
     .per_key = true,
     .declared = "{\"name\":\"server\"}"},
    {.name = "absent", .declared = "{\"name\":\"absent\"}"},
};
static const struct living_rows rows = {.contract = "C-1", .rows = rows_all, .count = 5};

static enum actor_step idle_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class idle_class = {.name = "idle", .handle = idle_handle};

/* top: one worker "first", the dynamic supervisor "rooms", one worker "last" that is temporary. */
static unsigned char rooms_args[SUPERVISOR_ARGS_MAX];
static actor_pid rooms_pid;

static void start_top(void)
{
    static struct child_spec children[3];
    const struct supervisor_spec rooms = {
        .name = "rooms", .register_name = true, .strategy = DYNAMIC, .intensity = 20, .period_ms = 60000};
    struct start_result r;
    children[0] = (struct child_spec){.id = "first", .class = &idle_class, .name = "first"};
    children[1] = (struct child_spec){.id = "rooms",
                                      .class = &supervisor_class,
                                      .type = CHILD_SUPERVISOR,
                                      .args = rooms_args,
                                      .args_size = supervisor_args(&rooms, rooms_args)};
    children[2] = (struct child_spec){.id = "last", .class = &idle_class};
    const struct supervisor_spec top = {.name = "top",
                                        .register_name = true,
                                        .intensity = 3,
                                        .period_ms = 10000,
                                        .children = children,
                                        .children_count = 3};
    TEST_ASSERT(supervisor_start(&top, SPAWN_HERE, &r, DEADLINE_NONE) == OK);
    rooms_pid = actor_whereis("rooms");
    TEST_ASSERT(rooms_pid != 0);
}

static void start_room(const char *name)
{
    struct child_result r;
    const struct child_spec spec = {.id = name, .class = &idle_class, .name = name};
    TEST_ASSERT(supervisor_start_child(rooms_pid, &spec, &r, DEADLINE_NONE) == OK);
}

static char page[65536];

static const char *text(size_t children)
{
    struct json_sink sink;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    living_write_text(&rows, &sink, children);
    TEST_CHECK(sink.status == JSON_OK);
    page[sink.length] = 0;
    return page;
}

static const char *document(size_t children)
{
    struct json_sink sink;
    struct json json;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    json_init(&json, &sink);
    living_write_json(&rows, &json, children);
    TEST_CHECK(json_end(&json) == JSON_OK);
    page[sink.length] = 0;
    return page;
}

#define HAS(text, needle) TEST_CHECK_(strstr(text, needle) != NULL, "'%s' is in: %s", needle, page)

static void test_rows_are_found_by_name(void)
{
    static const struct {
        const char *name;
        int row; /* -1: none */
    } cases[] = {
        {"top", 0},           {"rooms", 1},   {"absent", 4},   {"room:7", 2},
        {"room:7/server", 3}, {"room:", -1},  {"", -1},        {"room:7/poller", -1},
        {"room:/server", -1}, {"roomsy", -1}, {"room:a:b", 2},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        TEST_CHECK_(living_row_of(&rows, cases[i].name) ==
                        (cases[i].row < 0 ? NULL : &rows_all[cases[i].row]),
                    "%s", cases[i].name);
}

INSIDE(test_draws_what_lives)
{
    start_top();
    start_room("room:a");
    start_room("room:b");
    text(100);
    HAS(page, "NAME ");
    HAS(page, "\ntop ");
    HAS(page, "\n├─ first ");
    HAS(page, "\n├─ rooms ");
    HAS(page, "\n│  ├─ room:b "); /* the newest first */
    HAS(page, "\n│  └─ room:a ");
    HAS(page, "\n└─ last ");
    HAS(page, " 0 of 20/60s 2\n");
    HAS(page, "\nmissing: absent\n");
    TEST_CHECK(strstr(page, "missing: room") == NULL);
    TEST_CHECK(living_missing(&rows) == 1);
}

INSIDE(test_tells_it_in_json)
{
    start_top();
    start_room("room:a");
    document(100);
    HAS(page, "{\"contract\":\"C-1\",\"declared\":[{\"name\":\"top\"},{\"name\":\"rooms\"},");
    HAS(page, "\"missing\":[\"absent\"],\"tree\":{\"name\":\"top\",\"pid\":\"0x");
    HAS(page, "\"budget\":{\"restarts\":20,\"period_ms\":60000,\"used\":0,\"left\":20}");
    HAS(page, "\"strategy\":\"one_for_one\",\"dynamic\":true");
    HAS(page, "\"name\":\"room:a\"");
    HAS(page, "\"row\":\"room:<room_id>\",\"owner\":\"room supervisor\"");
    HAS(page, "\"name\":\"first\"");
    HAS(page, "\"mailbox\":{\"depth\":0,\"capacity\":1024}");
}

INSIDE(test_counts_deaths)
{
    start_top();
    actor_kill(actor_whereis("first"));
    inside_settle();
    document(100);
    HAS(page, "\"restarts\":1,\"last_exit\":\"killed\"");
    HAS(page, "\"budget\":{\"restarts\":3,\"period_ms\":10000,\"used\":1,\"left\":2}");
    text(100);
    HAS(page, "killed\n");
    HAS(page, " 1 of 3/10s ");
}

INSIDE(test_says_what_is_left_out)
{
    char name[16];
    start_top();
    for (int i = 0; i < 12; i++) {
        snprintf(name, sizeof(name), "room:%d", i);
        start_room(name);
    }
    text(5);
    HAS(page, "12, 7 not shown\n");
    HAS(page, "room:11 ");
    TEST_CHECK(strstr(page, "room:6 ") == NULL);
    document(5);
    HAS(page, "\"children\":12,\"children_left_out\":7");
    text(LIVING_CHILDREN_MAX);
    HAS(page, "room:0 ");
}

/* A supervisor that doesn't answer is shown so, and the others are shown all the same. */
INSIDE(test_goes_on_past_the_silent)
{
    start_top();
    start_room("room:a");
    actor_suspend(rooms_pid);
    inside_settle();
    text(100);
    HAS(page, " silent ");
    HAS(page, "\n└─ last ");
    TEST_CHECK(strstr(page, "room:a") == NULL);
    document(100);
    HAS(page, "\"state\":\"silent\"");
    HAS(page, "\"children\":[]");
    actor_resume(rooms_pid);
    text(100);
    HAS(page, "room:a");
}

/* Nothing of the name that the first row has. */
INSIDE(test_an_absent_root_is_told)
{
    text(100);
    HAS(page, "stopped");
    HAS(page, "missing: top\n");
    document(100);
    HAS(page, "\"tree\":{\"name\":\"top\",\"pid\":null");
}

TEST_LIST
= {
    {"rows are found by name", test_rows_are_found_by_name},
    {"the drawing shows what lives", test_draws_what_lives},
    {"the JSON shows what lives beside what was declared", test_tells_it_in_json},
    {"deaths are counted", test_counts_deaths},
    {"what is left out is said", test_says_what_is_left_out},
    {"a silent supervisor stops nothing", test_goes_on_past_the_silent},
    {"an absent root is told", test_an_absent_root_is_told},
    {NULL, NULL},
};
