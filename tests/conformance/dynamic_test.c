/* Sections K and M: dynamic supervisors, many children, and all of them dying at once. */
#include "acutest.h"
#include "harness.h"

static actor_pid dynamic(enum restart_type restart, int32_t intensity, uint32_t max_children)
{
    struct child_spec child = WORKER(A, .restart = restart);
    return start_dynamic(&(struct supervisor_spec){.intensity = intensity,
                                                   .period_ms = 3600 * 1000,
                                                   .max_children = max_children},
                         &child);
}

static enum error try_one_more(actor_pid sup, uint32_t number, actor_pid *ret_pid)
{
    struct plan plan = {.number = number};
    struct child_result result = {0};
    enum error e = supervisor_start_dynamic(sup, &plan, sizeof plan, NULL, &result, PATIENCE);
    *ret_pid = result.pid;
    if (e == ERR_INIT)
        reason_drop(&result.why);
    return e;
}

static actor_pid one_more(actor_pid sup, uint32_t number)
{
    actor_pid pid;
    EXPECT_OK(try_one_more(sup, number, &pid));
    EXPECT(actor_alive(pid));
    EXPECT(pid == world->members[number].pid);
    return pid;
}

static void dyn_01(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 5, 0);
    actor_pid b = one_more(sup, B), c = one_more(sup, C);
    EXPECT(b != c);
    EXPECT_EQ(world->members[A].begun, 0);
    struct child_info infos[3];
    EXPECT_EQ(children_of(sup, infos, 3), 2);
    EXPECT(infos[0].id[0] == 0 && infos[1].id[0] == 0);
    EXPECT((infos[0].pid == b && infos[1].pid == c) || (infos[0].pid == c && infos[1].pid == b));
    EXPECT_COUNTS(sup, "1,2,0,2");
}

static void dyn_02(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 5, 0);
    actor_pid b = one_more(sup, B);
    struct child_result result;
    EXPECT_ERROR(supervisor_terminate_child(sup, "a", PATIENCE), ERR_DYNAMIC);
    EXPECT_ERROR(supervisor_restart_child(sup, "a", &result, PATIENCE), ERR_DYNAMIC);
    EXPECT_ERROR(supervisor_delete_child(sup, "a", PATIENCE), ERR_DYNAMIC);
    EXPECT(actor_alive(b));
    EXPECT_EQ(world->members[B].begun, 1);
    EXPECT_COUNTS(sup, "1,1,0,1");
}

static void dyn_03(void)
{
    actor_pid sup = dynamic((enum restart_type)draw(3), 5, 0);
    actor_pid b = one_more(sup, B), c = one_more(sup, C);
    EXPECT_OK(supervisor_terminate_pid(sup, b, PATIENCE));
    EXPECT(!actor_alive(b) && actor_alive(c));
    EXPECT_COUNTS(sup, "1,1,0,1");
    settle();
    EXPECT_EQ(world->members[B].begun, 1);
}

static void dyn_05(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 5, 0), other = dynamic(RESTART_PERMANENT, 5, 0);
    actor_pid stranger = one_more(other, B);
    EXPECT_ERROR(supervisor_terminate_pid(sup, stranger, PATIENCE), ERR_NOT_FOUND);
    EXPECT_ERROR(supervisor_terminate_pid(sup, sup, PATIENCE), ERR_NOT_FOUND);
    settle();
    EXPECT(actor_alive(stranger) && world->members[B].begun == 1);
}

static void dyn_06(void)
{
    actor_pid sup = dynamic(RESTART_TEMPORARY, 5, 3), pid;
    actor_pid a = one_more(sup, A);
    one_more(sup, B);
    one_more(sup, C);
    EXPECT_ERROR(try_one_more(sup, D, &pid), ERR_MAX_CHILDREN);
    EXPECT_EQ(world->members[D].begun, 0);
    EXPECT_COUNTS(sup, "1,3,0,3");
    hit(a);
    settle();
    one_more(sup, D); /* room again */
    EXPECT_ERROR(try_one_more(sup, E, &pid), ERR_MAX_CHILDREN);
    struct child_result result = {0};
    sup =
        start_dynamic(&(struct supervisor_spec){.intensity = 1, .period_ms = 5000, .max_children = 2}, NULL);
    add_child(sup, &WORKER(F));
    add_child(sup, &WORKER(F));
    EXPECT_ERROR(supervisor_start_child(sup, &WORKER(E), &result, PATIENCE), ERR_MAX_CHILDREN);
    EXPECT_EQ(world->members[E].begun, 0);
}

static void dyn_07(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 1000, 1), pid;
    struct plan plan = {.number = A, .init_ms = 1};
    struct child_result result;
    EXPECT_OK(supervisor_start_dynamic(sup, &plan, sizeof plan, NULL, &result, PATIENCE));
    world->members[A].fail = UINT32_MAX;
    world->members[A].failure = FAIL_EXIT;
    hit(result.pid);
    pass_ms(3);
    EXPECT_ERROR(try_one_more(sup, B, &pid), ERR_MAX_CHILDREN);
    EXPECT_EQ(world->members[B].begun, 0);
    EXPECT_COUNTS(sup, "1,0,0,1");
    world->members[A].fail = 0;
    pass_ms(3);
    EXPECT_COUNTS(sup, "1,1,0,1");
}

static void dyn_08(void)
{
    actor_pid sup = dynamic((enum restart_type)draw(3), 5, 2), pid;
    one_more(sup, B);
    world->members[C].fail = 1;
    world->members[C].failure = FAIL_IGNORE;
    EXPECT_OK(try_one_more(sup, C, &pid));
    EXPECT_EQ(pid, 0);
    EXPECT_COUNTS(sup, "1,1,0,1");
    struct child_info infos[2];
    EXPECT_EQ(children_of(sup, infos, 2), 1);
    one_more(sup, D);
}

static void dyn_10(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 5, 0);
    hit(one_more(sup, B));
    settle();
    EXPECT_EQ(world->members[B].ready, 2);
    EXPECT_EQ(world->members[A].begun, 0);
    EXPECT(actor_alive(world->members[B].pid));
    struct child_info info;
    EXPECT_EQ(children_of(sup, &info, 1), 1);
    EXPECT(info.pid == world->members[B].pid);
}

static void dyn_11(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 2, 0);
    uint64_t s = watch(sup);
    for (uint32_t i = A; i <= D; i++)
        one_more(sup, i);
    for (uint32_t i = A; i <= C; i++) {
        EXPECT(actor_alive(sup));
        hit(world->members[i].pid);
        settle();
    }
    EXPECT_REASON(wait_down(s), SHUTDOWN);
    for (uint32_t i = A; i <= D; i++)
        EXPECT_EQ(world->members[i].gone, world->members[i].begun);
    EXPECT_EQ(world->members[C].begun, 1);
    EXPECT_EQ(world->members[D].begun, 1);
}

static enum actor_step small_handle(void *state, struct message *m)
{
    (void)state;
    (void)m;
    return ACTOR_CONTINUE;
}

static const struct actor_class small_class = {.name = "small", .handle = small_handle};

/* Start this many static children and end them all with their supervisor: per child so many ns of this one thread's, in which all of a
 * simulated node runs; a machine that lets others run, or nobody, takes none of them. */
static uint64_t cost_of(uint32_t count)
{
    actor_pid sup = start_empty(ONE_FOR_ONE);
    char id[16];
    struct child_spec spec = {.id = id, .class = &small_class, .scheduler = anywhere()};
    uint64_t began = env_thread_computed();
    for (uint32_t i = 0; i < count; i++) {
        snprintf(id, sizeof id, "%u", i);
        struct child_result result;
        EXPECT_OK(supervisor_start_child(sup, &spec, &result, PATIENCE));
    }
    struct child_counts counts;
    EXPECT_OK(supervisor_count_children(sup, &counts, PATIENCE));
    EXPECT_EQ(counts.active, count);
    EXPECT_REASON(end_of(sup, SHUTDOWN), SHUTDOWN);
    return (env_thread_computed() - began) / count;
}

static void dyn_14(void)
{
    uint32_t small = world->full ? 1000 : 5;
    uint64_t warm = cost_of(small), first = cost_of(small), large = cost_of(small * (world->full ? 100 : 3));
    uint64_t reference = first > warm ? first : warm;
    if (world->full && large > 10 * reference)
        world_fail(__FILE__, __LINE__, "%llu ns a child, %llu ns when there are few",
                   (unsigned long long)large, (unsigned long long)reference);
}

static void dyn_15(void)
{
    actor_pid sup = start_dynamic(&(struct supervisor_spec){.intensity = 5, .period_ms = 5000}, NULL);
    struct child_spec spec = WORKER(A);
    actor_pid one = add_child(sup, &spec), two = add_child(sup, &spec);
    EXPECT(one != two && actor_alive(one) && actor_alive(two));
    struct child_counts counts;
    EXPECT_OK(supervisor_count_children(sup, &counts, PATIENCE));
    EXPECT_EQ(counts.active, 2);
    EXPECT_EQ(counts.workers, 2);
    EXPECT_OK(supervisor_terminate_pid(sup, one, PATIENCE));
    EXPECT(!actor_alive(one) && actor_alive(two));
}

static void storm_01(void)
{
    static actor_pid pids[2000];
    static uint64_t refs[2000];
    uint32_t count = world->full ? 2000 : 15;
    actor_pid sup = dynamic(RESTART_TEMPORARY, 0, 0);
    for (uint32_t i = 0; i < count; i++) {
        pids[i] = one_more(sup, A);
        refs[i] = watch(pids[i]);
    }
    for (uint32_t i = 0; i < count; i++)
        actor_kill(pids[i]);
    for (uint32_t i = 0; i < count; i++)
        EXPECT_EQ(wait_down(refs[count - 1 - i]).kind, REASON_KILLED);
    settle();
    EXPECT_EQ(world->members[A].gone, count);
    EXPECT_COUNTS(sup, "1,0,0,0");
    EXPECT(actor_alive(sup));
    EXPECT(!mail());
}

/* ---- beyond the table ---- */

/* The dead can be terminated, as in OTP: whether it was the caller or the end itself that came first is no
 * error. */
static void dyn_04(void)
{
    actor_pid sup = dynamic(RESTART_TEMPORARY, 5, 0);
    actor_pid b = one_more(sup, B);
    hit(b);
    if (draw(2))
        settle();
    EXPECT_OK(supervisor_terminate_pid(sup, b, PATIENCE));
    EXPECT_OK(supervisor_terminate_pid(sup, b, PATIENCE));
    EXPECT_ERROR(supervisor_terminate_pid(sup, 0, PATIENCE), ERR_NOT_FOUND);
    EXPECT_COUNTS(sup, "1,0,0,0");
}

/* A transient child that ends well is forgotten; one that crashes is restarted. */
static void dyn_09(void)
{
    actor_pid sup = dynamic(RESTART_TRANSIENT, 5, 0);
    actor_pid b = one_more(sup, B), c = one_more(sup, C);
    order_exit(b, draw(2) ? NORMAL : shutdown_with(8));
    hit(c);
    settle();
    EXPECT_COUNTS(sup, "1,1,0,1");
    EXPECT_EQ(world->members[B].begun, 1);
    EXPECT_EQ(world->members[C].ready, 2);
}

/* After a restart it is the new pid that terminate knows; the old one is nobody's. */
static void dyn_12(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 5, 0);
    actor_pid old = one_more(sup, B);
    hit(old);
    settle();
    EXPECT_OK(supervisor_terminate_pid(sup, old, PATIENCE)); /* dead, and no longer anybody's */
    EXPECT_COUNTS(sup, "1,1,0,1");
    EXPECT_OK(supervisor_terminate_pid(sup, world->members[B].pid, PATIENCE));
    EXPECT_COUNTS(sup, "1,0,0,0");
    settle();
    EXPECT_EQ(world->members[B].gone, 2);
}

/* With a template there is no place for a spec; without one there is none for arguments alone. */
static void dyn_13(void)
{
    actor_pid with = dynamic(RESTART_PERMANENT, 5, 0);
    actor_pid without = start_dynamic(&(struct supervisor_spec){.intensity = 1, .period_ms = 5000}, NULL),
              pid;
    struct child_result result = {0};
    EXPECT_ERROR(supervisor_start_child(with, &WORKER(B), &result, PATIENCE), ERR_DYNAMIC);
    EXPECT_ERROR(try_one_more(without, B, &pid), ERR_INVALID);
    EXPECT_EQ(world->members[B].begun, 0);
    EXPECT(actor_alive(with) && actor_alive(without));
}

/* A start that fails leaves nothing, and is no restart. */
static void dyn_16(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 0, 0), pid;
    for (int how = FAIL_REFUSE; how <= FAIL_JUNK; how++) {
        world->members[B].fail = 1;
        world->members[B].failure = (enum failure)how;
        EXPECT_ERROR(try_one_more(sup, B, &pid), ERR_INIT);
        EXPECT_COUNTS(sup, "1,0,0,0");
    }
    settle();
    EXPECT(actor_alive(sup));
    one_more(sup, B);
}

/* Children with names: taken from the caller, free again after the end. */
static void dyn_17(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 5, 0);
    struct plan plan = {.number = B};
    struct child_result result = {0};
    EXPECT_OK(supervisor_start_dynamic(sup, &plan, sizeof plan, "room:1", &result, PATIENCE));
    EXPECT(actor_whereis("room:1") == result.pid);
    actor_pid first = result.pid;
    plan.number = C;
    EXPECT_ERROR(supervisor_start_dynamic(sup, &plan, sizeof plan, "room:1", &result, PATIENCE),
                 ERR_ALREADY_REGISTERED);
    EXPECT_EQ(world->members[C].begun, 0);
    hit(first);
    settle();
    EXPECT(actor_whereis("room:1") == world->members[B].pid && world->members[B].pid != first);
    EXPECT_OK(supervisor_terminate_pid(sup, world->members[B].pid, PATIENCE));
    EXPECT(!actor_whereis("room:1"));
}

/* A restart that fails is tried again, with the same arguments, as for static children. */
static void dyn_18(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 10, 0);
    actor_pid b = one_more(sup, B), c = one_more(sup, C);
    world->members[B].fail = 1 + draw(4);
    world->members[B].failure = (enum failure)draw(FAIL_JUNK + 1);
    hit(b);
    settle();
    EXPECT_COUNTS(sup, "1,2,0,2");
    EXPECT_EQ(world->members[B].ready, 2);
    EXPECT(actor_alive(c) && world->members[C].begun == 1);
}

/* A restart in which init says ignore: the child is forgotten. */
static void dyn_19(void)
{
    actor_pid sup = dynamic(RESTART_PERMANENT, 10, 0);
    actor_pid b = one_more(sup, B);
    world->members[B].fail = 1;
    world->members[B].failure = FAIL_IGNORE;
    hit(b);
    settle();
    EXPECT_COUNTS(sup, "1,0,0,0");
    EXPECT_EQ(world->members[B].begun, 2);
}

/* Half of a crowd of permanent children is hit at once, within the budget: all are back, each once. */
static void storm_02(void)
{
    uint32_t count = world->full ? 500 : 12;
    static actor_pid pids[500];
    actor_pid sup = dynamic(RESTART_PERMANENT, (int32_t)count, 0);
    for (uint32_t i = 0; i < count; i++)
        pids[i] = one_more(sup, A);
    for (uint32_t i = 0; i < count; i += 2)
        hit(pids[i]);
    settle();
    char wanted[64];
    snprintf(wanted, sizeof wanted, "1,%u,0,%u", count, count);
    EXPECT_COUNTS(sup, wanted);
    EXPECT_EQ(world->members[A].ready, count + count / 2);
    EXPECT_EQ(world->members[A].gone, count / 2);
    for (uint32_t i = 0; i < count; i++)
        EXPECT(actor_alive(pids[i]) == (i % 2 == 1));
}

/* Starts and kills mixed: what is counted is what lives. */
static void storm_03(void)
{
    actor_pid sup = dynamic(RESTART_TEMPORARY, 0, 0), pids[40] = {0};
    uint32_t alive = 0, begun = 0;
    for (uint32_t i = 0; i < (world->full ? 2000u : 60u); i++) {
        uint32_t k = draw(40);
        if (pids[k]) {
            if (draw(2))
                actor_kill(pids[k]);
            else
                EXPECT_OK(supervisor_terminate_pid(sup, pids[k], PATIENCE));
            pids[k] = 0;
            alive--;
        } else {
            pids[k] = one_more(sup, A);
            alive++;
            begun++;
        }
    }
    settle();
    struct child_counts counts;
    EXPECT_OK(supervisor_count_children(sup, &counts, PATIENCE));
    EXPECT_EQ(counts.active, alive);
    EXPECT_EQ(counts.workers, alive);
    EXPECT_EQ(world->members[A].begun, begun);
    EXPECT_EQ(world->members[A].gone, begun - alive);
}

#define ROWS(X)                       \
    X("DYN-01", dyn_01, 0)            \
    X("DYN-02", dyn_02, 0)            \
    X("DYN-03", dyn_03, 0)            \
    X("DYN-05", dyn_05, 0)            \
    X("DYN-06", dyn_06, 0)            \
    X("DYN-07", dyn_07, 0)            \
    X("DYN-08", dyn_08, 0)            \
    X("DYN-10", dyn_10, 0)            \
    X("DYN-11", dyn_11, 0)            \
    X("DYN-14", dyn_14, ROW_ONCE)     \
    X("DYN-15", dyn_15, 0)            \
    X("STORM-01", storm_01, ROW_ONCE) \
    X("DYN-04", dyn_04, 0)            \
    X("DYN-09", dyn_09, 0)            \
    X("DYN-12", dyn_12, 0)            \
    X("DYN-13", dyn_13, 0)            \
    X("DYN-16", dyn_16, 0)            \
    X("DYN-17", dyn_17, 0)            \
    X("DYN-18", dyn_18, 0)            \
    X("DYN-19", dyn_19, 0)            \
    X("STORM-02", storm_02, ROW_ONCE) \
    X("STORM-03", storm_03, ROW_ONCE)

ROWS_TEST_LIST;
