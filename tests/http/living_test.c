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

static void declare(struct json *json, const void *declared)
{
    json_raw(json, declared, strlen(declared));
}

static const struct living_rows rows = {.contract = "C-1", .rows = rows_all, .count = 5, .declare = declare};

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
static const char *without = "";

static const char *text(size_t children)
{
    struct json_sink sink;
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    living_write_text(&rows, &sink, (struct living_part){children, without});
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
    living_write_json(&rows, &json, (struct living_part){children, without});
    TEST_CHECK(json_end(&json) == JSON_OK);
    page[sink.length] = 0;
    return page;
}

#define HAS(text, needle) TEST_CHECK_(strstr(text, needle) != NULL, "'%s' is in: %s", needle, page)

static const char *list(struct living_filter filter)
{
    struct json_sink sink;
    struct json json;
    const struct living_filter whole = {.name = filter.name ? filter.name : "",
                                        .class_name = filter.class_name ? filter.class_name : "",
                                        .state = filter.state ? filter.state : "",
                                        .order = filter.order,
                                        .limit = filter.limit ? filter.limit : LIVING_LIST_DEFAULT};
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    json_init(&json, &sink);
    living_write_list(&rows, &json, &whole);
    TEST_CHECK(json_end(&json) == JSON_OK);
    page[sink.length] = 0;
    return page;
}

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

INSIDE(test_leaves_out_a_class)
{
    start_top();
    start_room("room:a");
    start_room("room:b");
    without = "idle";
    document(100);
    HAS(page, "\"children\":3,\"children_left_out\":2}");
    HAS(page, "\"children\":2,\"children_left_out\":2}");
    HAS(page, "\"name\":\"rooms\"");
    TEST_CHECK(strstr(page, "room:a") == NULL && strstr(page, "\"first\"") == NULL);
    text(100);
    HAS(page, "\n└─ rooms "); /* the last that is shown */
    without = "";
    document(100);
    HAS(page, "room:a");
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

/* Who stands below a supervisor that doesn't answer wasn't looked at: that isn't all. */
INSIDE(test_a_list_without_the_silent_is_not_complete)
{
    start_top();
    start_room("room:a");
    list((struct living_filter){.class_name = "idle"});
    HAS(page, "\"matched\":3,\"visited\":5,\"complete\":true}");
    actor_suspend(rooms_pid);
    inside_settle();
    list((struct living_filter){.class_name = "idle"});
    HAS(page, "\"matched\":2,\"visited\":4,\"complete\":false}");
    list((struct living_filter){.state = "suspended"}); /* itself it is there */
    HAS(page, "\"name\":\"rooms\"");
    actor_resume(rooms_pid);
    list((struct living_filter){.class_name = "idle"});
    HAS(page, "\"matched\":3,\"visited\":5,\"complete\":true}");
}

static bool suspend_in_between(void *context, const struct living_node *n)
{
    size_t *visited = context;
    (void)n;
    if (++*visited == 3)
        actor_suspend(rooms_pid);
    return true;
}

/* Its first page came, the next one doesn't. */
INSIDE(test_a_list_that_breaks_off_is_not_complete)
{
    char name[16];
    size_t visited = 0;
    start_top();
    for (size_t i = 0; i < LIVING_CHILDREN_MAX + 1; i++) {
        snprintf(name, sizeof(name), "room:%zu", i);
        start_room(name);
    }
    TEST_CHECK(!living_visit(&rows, false, suspend_in_between, &visited));
    TEST_CHECK(visited == 4 + LIVING_CHILDREN_MAX); /* all but one room */
    actor_resume(rooms_pid);
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

static size_t count(const char *needle)
{
    size_t n = 0;
    for (const char *at = page; (at = strstr(at, needle)); at++)
        n++;
    return n;
}

/* Beyond what one answer of a supervisor holds, and whatever was asked for of them. */
INSIDE(test_lists_all_that_fit)
{
    char name[16];
    start_top();
    for (int i = 0; i < 450; i++) {
        snprintf(name, sizeof(name), "room:%d", i);
        start_room(name);
    }
    list((struct living_filter){.class_name = "idle"});
    HAS(page, "\"matched\":452,\"visited\":454,\"complete\":true}");
    TEST_CHECK(count("\"name\":") == LIVING_LIST_DEFAULT);
    list((struct living_filter){.name = "room:1", .limit = 500});
    HAS(page, "\"matched\":111,"); /* 1, 10..19, 100..199 */
    TEST_CHECK(count("\"name\":") == 111);
    list((struct living_filter){.name = "room:7", .state = "quarantined"});
    HAS(page, "{\"actors\":[],\"matched\":0,");
    list((struct living_filter){.class_name = "supervisor"});
    HAS(page, "\"matched\":2,");
    HAS(page, "\"name\":\"rooms\"");
    HAS(page, "\"restart_budget_left\":20");
}

/* The largest first, those of one size as they stand in the tree. */
INSIDE(test_lists_the_largest)
{
    start_top();
    start_room("room:a");
    start_room("room:b");
    start_room("room:c");
    actor_pid b = actor_whereis("room:b"), c = actor_whereis("room:c");
    actor_suspend(b);
    actor_suspend(c);
    for (int i = 0; i < 7; i++)
        actor_cast(b, 1, "", 0);
    for (int i = 0; i < 9; i++)
        actor_cast(c, 1, "", 0);
    actor_kill(actor_whereis("first"));
    inside_settle();
    list((struct living_filter){.order = LIVING_BY_MAILBOX, .limit = 2});
    HAS(page, "{\"actors\":[{\"name\":\"room:c\"");
    TEST_CHECK(count("\"name\":") == 2 && strstr(page, "\"name\":\"room:b\"") != NULL);
    HAS(page, "\"mailbox_depth\":9,");
    list((struct living_filter){.order = LIVING_BY_RESTARTS, .limit = 1});
    HAS(page, "{\"actors\":[{\"name\":\"first\"");
    HAS(page, "\"restarts\":1,");
    HAS(page, "\"last_exit\":\"killed\"");
    list((struct living_filter){.state = "suspended"});
    HAS(page, "\"matched\":2,");
    list((struct living_filter){.order = LIVING_BY_MEMORY, .limit = 3});
    TEST_CHECK(count("\"name\":") == 3);
    actor_resume(b);
    actor_resume(c);
}

INSIDE(test_draws_for_graphviz)
{
    struct json_sink sink;
    start_top();
    start_room("room \"x\\");
    json_sink_init(&sink, page, sizeof(page) - 1, NULL, NULL);
    living_write_dot(&rows, &sink, (struct living_part){100, ""});
    TEST_CHECK(sink.status == JSON_OK);
    page[sink.length] = 0;
    HAS(page, "digraph coppice {\n");
    HAS(page, "[label=\"top\\nrunning, mailbox 0, restarts 0\", shape=box];\n");
    HAS(page, "[label=\"room \\\"x\\\\\\nrunning, mailbox 0, restarts 0\"];\n");
    TEST_CHECK(count(" -> ") == 4);
    TEST_CHECK(strcmp(page + sink.length - 2, "}\n") == 0);
}

/* A place in the tree is the same over restarts, and nobody else's. */
struct places {
    uint64_t place[16];
    actor_pid pid[16];
    size_t count;
};

static bool note_place(void *context, const struct living_node *n)
{
    struct places *p = context;
    TEST_ASSERT(p->count < 16 && n->place != 0);
    for (size_t i = 0; i < p->count; i++)
        TEST_CHECK(p->place[i] != n->place);
    p->place[p->count] = n->place;
    p->pid[p->count++] = n->pid;
    return true;
}

INSIDE(test_places)
{
    struct places before = {.count = 0}, after = {.count = 0};
    size_t changed = 0;
    start_top();
    start_room("first/x");
    TEST_CHECK(living_visit(&rows, false, note_place, &before));
    actor_kill(actor_whereis("first"));
    inside_settle();
    TEST_CHECK(living_visit(&rows, true, note_place, &after));
    TEST_CHECK(before.count == 5 && after.count == 5);
    for (size_t i = 0; i < 5; i++) {
        TEST_CHECK(before.place[i] == after.place[i]);
        changed += before.pid[i] != after.pid[i];
    }
    TEST_CHECK(changed == 1);
}

TEST_LIST
= {
    {"rows are found by name", test_rows_are_found_by_name},
    {"the drawing shows what lives", test_draws_what_lives},
    {"the JSON shows what lives beside what was declared", test_tells_it_in_json},
    {"deaths are counted", test_counts_deaths},
    {"what is left out is said", test_says_what_is_left_out},
    {"a class can be left out", test_leaves_out_a_class},
    {"a silent supervisor stops nothing", test_goes_on_past_the_silent},
    {"a list without those below a silent one isn't complete",
     test_a_list_without_the_silent_is_not_complete},
    {"a list that breaks off isn't complete", test_a_list_that_breaks_off_is_not_complete},
    {"an absent root is told", test_an_absent_root_is_told},
    {"a list of those who fit", test_lists_all_that_fit},
    {"a list of the largest", test_lists_the_largest},
    {"a drawing for Graphviz", test_draws_for_graphviz},
    {"places stay", test_places},
    {NULL, NULL},
};
