/* Supervisors when something is used up: in the copies of their objects that this is linked with, what may say that there is no more comes
 * by here (Makefile: FAILING_RUNTIME), and the n-th of these calls fails, or the n-th and the one behind it, for every n. Whatever is
 * refused then, no child may be forgotten, none be told of that isn't there, and nothing be left behind. */
#include "acutest.h"
#include "tests/runtime/node.h"

#include <stdlib.h>
#include <string.h>
#include "runtime/scheduler.h"
#include "runtime/supervisor_children.h"

/* ---- the n-th call ---- */

static struct {
    uint32_t left, burst;
    bool failed;
} failing;

static bool fails(void)
{
    if (failing.left == 0 || --failing.left >= failing.burst)
        return false;
    failing.failed = true;
    return true;
}

#define FAILING(type, failure, name, parameters, arguments) \
    type failing_##name parameters;                         \
    type failing_##name parameters                          \
    {                                                       \
        return fails() ? (failure) : name arguments;        \
    }
FAILING(struct message *, NULL, message_new, (uint32_t type, size_t size), (type, size))
FAILING(void *, NULL, actor_try_alloc, (size_t size), (size))
FAILING(uint64_t, 0, actor_timer, (uint64_t deadline, uint32_t type, uint64_t value), (deadline, type, value))
FAILING(uint64_t, 0, actor_monitor, (actor_pid to, uint64_t tag), (to, tag))
FAILING(uint64_t, 0, actor_own, (void (*release)(void *arg), void *arg), (release, arg))
FAILING(void *, NULL, malloc, (size_t size), (size))
FAILING(void *, NULL, calloc, (size_t count, size_t size), (count, size))
FAILING(enum error, ERR_TIMEOUT, actor_inspect, (actor_pid pid, struct actor_info *ret, uint64_t deadline),
        (pid, ret, deadline))

enum error failing_actor_start(const struct spawn_options *o, struct start_result *ret, uint64_t deadline);
enum error failing_actor_start(const struct spawn_options *o, struct start_result *ret, uint64_t deadline)
{
    if (!fails())
        return actor_start(o, ret, deadline);
    *ret = (struct start_result){0};
    return ERR_MEMORY;
}

/* ---- children ---- */

#define MANY 4096u
static struct {
    actor_pid pids[MANY]; /* of all that began, in this life of theirs and before */
    uint32_t count;
    uint32_t refusals; /* this many inits fail from now on */
} begun;

struct child_args {
    uint32_t number;
    unsigned char more[200];
};

enum { FAIL = 10 };

static enum actor_step child_init(void *state, const void *args, size_t size)
{
    (void)state;
    EXPECT(size == sizeof(struct child_args) && ((const struct child_args *)args)->number == 7);
    if (begun.refusals) {
        begun.refusals--;
        actor_fail(3, "not today");
    }
    ASSERT(begun.count < MANY);
    begun.pids[begun.count++] = actor_self();
    return ACTOR_CONTINUE;
}

static enum actor_step child_handle(void *state, struct message *m)
{
    (void)state;
    if (m->type == FAIL)
        actor_fail(12, "out of cheese");
    return ACTOR_CONTINUE;
}

static const struct actor_class child_class = {.name = "child", .init = child_init, .handle = child_handle};
static const struct child_args seven = {.number = 7};
#define CHILD(id_, ...)   \
    ((struct child_spec){ \
        .id = (id_), .class = &child_class, .args = &seven, .args_size = sizeof seven, __VA_ARGS__})

static uint32_t living(void)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < begun.count; i++)
        n += actor_alive(begun.pids[i]);
    return n;
}

/* A look that nothing fails. */
static enum error look_at(actor_pid sup, const char *id, struct child_info *ret)
{
    uint32_t left = failing.left;
    failing.left = 0;
    enum error e = supervisor_which_child(sup, id, ret, DEADLINE_NONE);
    failing.left = left;
    return e;
}

static actor_pid pid_of(actor_pid sup, const char *id)
{
    struct child_info info;
    return look_at(sup, id, &info) ? 0 : info.pid;
}

static bool listed(actor_pid sup, const char *id)
{
    struct child_info info;
    return look_at(sup, id, &info) == OK;
}

static void hit(actor_pid child)
{
    if (child)
        actor_cast(child, FAIL, NULL, 0);
    actor_sleep(actor_deadline_ms(1));
}

/* Who lives is somebody's running child, and the other way round; and when the supervisor ends they all do. */
static void expect_whole(actor_pid sup)
{
    enum { ROOM = 64 };
    static struct child_info infos[ROOM];
    size_t stored = 0, total = 0;
    uint32_t running = 0;
    failing.left = 0;
    settle();
    if (actor_alive(sup)) {
        EXPECT(!supervisor_which_children(sup, 0, infos, ROOM, &stored, &total, DEADLINE_NONE) &&
               stored == total);
        for (size_t i = 0; i < stored; i++) {
            EXPECT((infos[i].state == CHILD_RUNNING) == (infos[i].pid != 0));
            EXPECT(infos[i].pid == 0 || actor_alive(infos[i].pid));
            running += infos[i].state == CHILD_RUNNING;
        }
        struct child_counts counts;
        EXPECT(!supervisor_count_children(sup, &counts, DEADLINE_NONE) && counts.active == running &&
               counts.workers == total);
    }
    EXPECT(living() == running);
    enum error e = supervisor_stop(sup, reason_of(REASON_SHUTDOWN), DEADLINE_NONE);
    EXPECT(e == OK || e == ERR_NOPROC);
    settle();
    EXPECT(living() == 0);
}

/* ---- lives ---- */

/* Starts it; when that is refused nobody is left over. 0: refused. */
static actor_pid started(const struct supervisor_spec *spec)
{
    struct start_result r = {0};
    enum error e = supervisor_start(spec, anywhere(), &r, DEADLINE_NONE);
    EXPECT(e == OK || failing.failed);
    EXPECT(e == OK || e == ERR_MEMORY || e == ERR_INIT);
    reason_drop(&r.why);
    settle();
    EXPECT(e == OK || living() == 0);
    return e ? 0 : r.pid;
}

static void live_as_list(void)
{
    static char ids[12][4];
    actor_pid sup = started(&(struct supervisor_spec){
        .name = "list",
        .intensity = 20000, /* a ring of its own, too large for an arena */
        .period_ms = 1000,
        .children =
            (struct child_spec[]){CHILD("a", .backoff = {.first_ms = 20}, .quarantine = {.failures = 2}),
                                  CHILD("b", .name = "bee"), CHILD("c", .restart = RESTART_TEMPORARY)},
        .children_count = 3});
    if (!sup)
        return;
    for (unsigned i = 0; i < 12; i++) {
        snprintf(ids[i], sizeof ids[i], "%u", i);
        struct child_result r = {0};
        enum error e = supervisor_start_child(sup, &CHILD(ids[i]), &r, DEADLINE_NONE);
        EXPECT(e == OK ? actor_alive(r.pid) : failing.failed);
        reason_drop(&r.why);
        EXPECT(!failing.failed || (e == OK) == listed(sup, ids[i]));
    }
    hit(pid_of(sup, "a"));
    hit(pid_of(sup, "b"));
    actor_sleep(actor_deadline_ms(100));
    begun.refusals = 3;
    hit(pid_of(sup, "b")); /* tries it four times */
    begun.refusals = 2;
    hit(pid_of(sup, "a")); /* ends in quarantine */
    actor_sleep(actor_deadline_ms(100));
    begun.refusals = 0;
    enum error e = supervisor_resume_child(sup, "a", DEADLINE_NONE);
    EXPECT(e == OK || failing.failed);
    e = supervisor_terminate_child(sup, "0", DEADLINE_NONE);
    EXPECT(e == OK ? pid_of(sup, "0") == 0 : failing.failed);
    struct child_result r = {0};
    begun.refusals = 1;
    e = supervisor_restart_child(sup, "0", &r, DEADLINE_NONE);
    EXPECT(e != OK);
    reason_drop(&r.why);
    begun.refusals = 0;
    e = supervisor_restart_child(sup, "0", &r, DEADLINE_NONE);
    EXPECT(e == OK ? pid_of(sup, "0") == r.pid : failing.failed);
    reason_drop(&r.why);
    e = supervisor_delete_child(sup, "0", DEADLINE_NONE);
    EXPECT(e != OK || failing.failed); /* it runs */
    expect_whole(sup);
}

/* More children than a page has room for, and somebody who looks at them. */
static void live_as_crowd(void)
{
    enum { CROWD = 34 };
    static char ids[CROWD][4];
    static struct child_info infos[CROWD];
    actor_pid sup = started(&(struct supervisor_spec){.name = "crowd"});
    if (!sup)
        return;
    uint32_t running = 0;
    for (unsigned i = 0; i < CROWD; i++) {
        snprintf(ids[i], sizeof ids[i], "%u", i);
        struct child_result r = {0};
        enum error e = supervisor_start_child(sup, &CHILD(ids[i]), &r, DEADLINE_NONE);
        EXPECT(e == OK || failing.failed);
        reason_drop(&r.why);
        running += e == OK;
        EXPECT((e == OK) == listed(sup, ids[i]));
    }
    size_t stored = 0, total = 0;
    enum error e = supervisor_which_child(sup, "7", &infos[0], DEADLINE_NONE);
    EXPECT(e == OK ? infos[0].pid == pid_of(sup, "7") : failing.failed);
    e = supervisor_which_children(sup, 0, infos, CROWD, &stored, &total, DEADLINE_NONE);
    EXPECT(e == OK ? stored == running && total == running : failing.failed);
    for (unsigned i = 0; i < CROWD; i++)
        EXPECT(failing.failed || listed(sup, ids[i]));
    expect_whole(sup);
}

static void live_as_group(void)
{
    actor_pid sup = started(&(struct supervisor_spec){
        .name = "group",
        .strategy = ONE_FOR_ALL,
        .intensity = 100,
        .period_ms = 1000,
        .children = (struct child_spec[]){CHILD("a"), CHILD("b", .backoff = {.first_ms = 20}),
                                          CHILD("c", .restart = RESTART_TEMPORARY)},
        .children_count = 3});
    if (!sup)
        return;
    hit(pid_of(sup, "b"));
    actor_sleep(actor_deadline_ms(100));
    begun.refusals = 2;
    hit(pid_of(sup, "a"));
    actor_sleep(actor_deadline_ms(100));
    begun.refusals = 0;
    expect_whole(sup);
}

static void live_as_dynamic(void)
{
    actor_pid sup = started(&(struct supervisor_spec){.name = "dynamic",
                                                      .strategy = DYNAMIC,
                                                      .intensity = 100,
                                                      .period_ms = 1000,
                                                      .template = &CHILD(NULL)});
    if (!sup)
        return;
    actor_pid last = 0;
    for (unsigned i = 0; i < 12; i++) {
        struct child_result r = {0};
        enum error e = supervisor_start_dynamic(sup, &seven, i % 2 ? sizeof seven : 0,
                                                i == 3 ? "three" : NULL, &r, DEADLINE_NONE);
        EXPECT(e == OK ? actor_alive(r.pid) : failing.failed);
        EXPECT(e != OK || i != 3 || actor_whereis("three") == r.pid);
        reason_drop(&r.why);
        last = e ? last : r.pid;
    }
    hit(actor_whereis("three"));
    hit(last);
    enum error e = supervisor_terminate_pid(sup, last, DEADLINE_NONE);
    EXPECT(e == OK || failing.failed);
    expect_whole(sup);
}

/* The table alone, beyond the pages that are few: whoever has come is found, whatever there was no room for. */
static void fill_table(void *arg)
{
    (void)arg;
    enum { ROOM = 600 };
    static const struct child_plan plan = {.class = &child_class};
    static struct children t;
    static struct child *children[ROOM];
    uint32_t count = 0;
    if (!children_init(&t)) {
        EXPECT(failing.failed);
        return;
    }
    for (uint32_t i = 0; i < ROOM; i++) {
        children[i] = child_new(&t, &plan, false);
        EXPECT(children[i] || failing.failed);
        if (!children[i])
            continue;
        count++;
        children[i]->pid = i + 1;
        child_hash_pid(&t, children[i]);
    }
    EXPECT(t.count == count && count >= ROOM - 2);
    for (uint32_t i = 0; i < ROOM; i++)
        EXPECT(child_of_pid(&t, i + 1) == children[i]);
}

static void live_as_table(void)
{
    actor_pid filler = doll(SPAWN_HERE);
    tell(filler, fill_table, NULL);
    settle();
    actor_kill(filler);
    settle();
}

static enum actor_step lasting_handle(void *state, struct message *m)
{
    return m->type == MESSAGE_EXIT ? ACTOR_STOP : child_handle(state, m);
}

static void slow_terminate(void *state, const struct reason *why)
{
    (void)state, (void)why;
    actor_sleep(actor_deadline_ms(1000));
}

static const struct actor_class lasting_class = {.name = "lasting",
                                                 .init = child_init,
                                                 .handle = lasting_handle,
                                                 .terminate = slow_terminate,
                                                 .trap_exits = true};

/* Of several killed supervisors the names are still held when their successors come. */
static void live_as_orphans(void)
{
    static struct supervisor_spec inner = {.name = "inner", .register_name = true, .children_count = 1};
    static struct child_spec named;
    static unsigned char args[SUPERVISOR_ARGS_MAX];
    named = CHILD("named", .name = "named", .scheduler = anywhere());
    named.class = &lasting_class;
    inner.children = &named;
    actor_pid sup = started(
        &(struct supervisor_spec){.name = "outer",
                                  .intensity = 10,
                                  .period_ms = 60000,
                                  .children = &(struct child_spec){.id = "inner",
                                                                   .class = &supervisor_class,
                                                                   .args = args,
                                                                   .args_size = supervisor_args(&inner, args),
                                                                   .scheduler = anywhere(),
                                                                   .type = CHILD_SUPERVISOR},
                                  .children_count = 1});
    if (!sup)
        return;
    actor_kill(actor_whereis("inner"));
    actor_sleep(actor_deadline_ms(20000));
    EXPECT(actor_alive(sup) ? actor_whereis("inner") && actor_alive(actor_whereis("named")) : failing.failed);
    enum error e = supervisor_stop(sup, reason_of(REASON_SHUTDOWN), DEADLINE_NONE);
    EXPECT(e == OK || failing.failed);
    settle();
    EXPECT(living() == 0);
}

static void check_long_list(void)
{
    enum { LONG = 600 };
    static struct child_spec specs[LONG];
    static char ids[LONG][8];
    for (unsigned i = 0; i < LONG; i++) {
        snprintf(ids[i], sizeof ids[i], "%u", i);
        specs[i] = CHILD(ids[i]);
    }
    char text[200] = "";
    enum error e = supervisor_check_children(specs, LONG, AUTO_SHUTDOWN_NEVER, text, sizeof text);
    EXPECT(e == (failing.failed ? ERR_MEMORY : OK));
    EXPECT(e == OK || strstr(text, "no memory"));
}

/* ---- killed while it waits ---- */

static enum actor_step slow_init(void *state, const void *args, size_t size)
{
    (void)state, (void)args, (void)size;
    begun.pids[begun.count++] = actor_self();
    return ACTOR_CONTINUE;
}

static const struct actor_class slow_class = {.name = "slow",
                                              .init = slow_init,
                                              .handle = child_handle,
                                              .terminate = slow_terminate,
                                              .trap_exits = true};

/* A start that fails has a reason with a detail, and others have to be stopped for it, which takes a while. Whoever is killed meanwhile
 * leaves no detail behind: the books are looked at. */
static void killed_in_the_middle(void)
{
    struct child_spec two[] = {{.id = "slow", .class = &slow_class}, CHILD("b", .backoff = {.first_ms = 20})};
    struct supervisor_spec spec = {
        .strategy = ONE_FOR_ALL, .intensity = 10, .period_ms = 1000, .children = two, .children_count = 2};
    struct start_result r;
    memset(&begun, 0, sizeof begun);
    EXPECT(supervisor_start(&spec, anywhere(), &r, DEADLINE_NONE) == OK);
    begun.refusals = 1;
    actor_kill(pid_of(r.pid, "slow")); /* it starts again, and has to stop because of b */
    actor_sleep(actor_deadline_ms(500));
    EXPECT(begun.refusals == 0 && begun.count == 3 && actor_alive(begun.pids[2]));
    actor_kill(r.pid);
    begun.refusals = 1;
    EXPECT(supervisor_start(&spec, anywhere(), &r, actor_deadline_ms(500)) == ERR_TIMEOUT);
    EXPECT(begun.refusals == 0 && begun.count == 4 && actor_alive(begun.pids[3]));
    actor_sleep(actor_deadline_ms(2000));
    EXPECT(living() == 0);
}

static void test_killed(void)
{
    node_sim(killed_in_the_middle);
}

/* ---- nothing left elsewhere ---- */

static void take_records(void *arg)
{
    (void)arg;
    while (actor_timer(DEADLINE_NONE - 1, FAIL, 0))
        ;
}

static void end_child_of_the_poor(void)
{
    const struct child_spec slow = {.id = "slow", .class = &slow_class, .scheduler = SPAWN_ON(1)};
    struct start_result r;
    memset(&begun, 0, sizeof begun);
    EXPECT(supervisor_start(&(struct supervisor_spec){.children = &slow, .children_count = 1}, SPAWN_HERE, &r,
                            DEADLINE_NONE) == OK);
    actor_pid child = begun.pids[0];
    actor_pid hog = spawn(&doll_class, SPAWN_ON(1));
    tell(hog, take_records, NULL);
    settle();
    uint64_t began = actor_now();
    EXPECT(supervisor_terminate_child(r.pid, "slow", DEADLINE_NONE) == OK);
    EXPECT(!actor_alive(child) && actor_now() - began >= NS_PER_S);
    actor_kill(hog);
    EXPECT(supervisor_stop(r.pid, reason_of(REASON_NORMAL), DEADLINE_NONE) == OK);
}

/* Where the child is no record is left for a monitor, of which a DOWN tells as of an end: it lives, and is waited for. */
static void test_poor(void)
{
    node_sim_with(end_child_of_the_poor,
                  &(struct sim_options){.seed = 1, .schedulers = 2, .runtime.actors_max = 80});
}

/* ---- each n ---- */

static void (*live)(void);

static void each_call(void)
{
    for (uint32_t burst = 1; burst <= 2; burst++) {
        uint32_t n = 0;
        do {
            memset(&begun, 0, sizeof begun);
            failing.failed = false;
            failing.burst = burst;
            failing.left = ++n + burst - 1;
            live();
            failing.left = 0;
            mail();
        } while (failing.failed);
        EXPECT(n > 1);
    }
}

static void every(void (*life)(void))
{
    live = life;
    node_sim(each_call);
}

static void test_list(void)
{
    every(live_as_list);
}

static void test_group(void)
{
    every(live_as_group);
}

static void test_dynamic(void)
{
    every(live_as_dynamic);
}

static void test_crowd(void)
{
    every(live_as_crowd);
}

static void test_table(void)
{
    every(live_as_table);
}

static void test_orphans(void)
{
    every(live_as_orphans);
}

static void test_check(void)
{
    every(check_long_list);
}

TEST_LIST
= {{"a list", test_list},
   {"a group", test_group},
   {"a dynamic one", test_dynamic},
   {"a list of more than a page", test_crowd},
   {"the table of 600 children", test_table},
   {"one that was killed, and its orphans", test_orphans},
   {"the check of a long list", test_check},
   {"one that is killed while it stops a group", test_killed},
   {"one whose child is where no records are left", test_poor},
   {NULL, NULL}};
