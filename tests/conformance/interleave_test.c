/* Invariant A6: what a supervisor does is a function of what reaches it, in the order in which it does.
 *
 * The function is written down here once more, as OTP's documentation has it and without any of the
 * machinery: it takes deaths and calls in the order of the supervisor's mailbox, and says who runs, who was
 * started in which order, what was answered, and how much of the budget is gone. On one scheduler that order
 * is known: a death or a call is in the mailbox the moment it happens. Three children; the real supervisor is
 * compared after each quiescent point.
 */
#include "acutest.h"
#include "harness.h"
#include <stdlib.h>

#define CHILDREN 3

/* ---- what is done to it ---- */

#define DEEDS(X) X(CRASH) X(KILL) X(END) X(TERMINATE) X(RESTART) X(DELETE) X(ADD)

enum deed {
#define X(name) name,
    DEEDS(X)
#undef X
        DEED_COUNT
};

struct step {
    uint8_t deed, child;
};

#define STEPS_MAX 8

/* In the log: this call is in the mailbox. Its pid is its place among the steps. */
#define CALLED(deed) ((enum event_kind)(ROWS_OWN + (deed)))

/* What is tried now. */
static struct {
    enum strategy strategy;
    int32_t intensity;
    enum restart_type types[CHILDREN];
    struct step steps[STEPS_MAX];
    unsigned count;
    unsigned
        agents; /* the steps are dealt out to so many actors, who do theirs at the same time; 0: one by one */
} trial;

static enum error answers[STEPS_MAX];

/* ---- the reference ---- */

static struct reference {
    struct {
        bool present, running;
        uint32_t life;
    } child[CHILDREN];
    unsigned order[CHILDREN], count; /* of those present, in start order */
    uint32_t granted;
    bool ended;
    char started[512]; /* since the last comparison */
    size_t started_count;
} ref;

static void ref_start(unsigned k)
{
    ref.child[k].running = true;
    ref.child[k].life++;
    ref.started[ref.started_count++] = (char)('a' + k);
}

static unsigned ref_place(unsigned k)
{
    unsigned i = 0;
    while (ref.order[i] != k)
        i++;
    return i;
}

static void ref_remove(unsigned k)
{
    for (unsigned i = ref_place(k); i + 1 < ref.count; i++)
        ref.order[i] = ref.order[i + 1];
    ref.count--;
    ref.child[k].present = false;
}

static void ref_add(unsigned k)
{
    ref.child[k].present = true;
    ref.order[ref.count++] = k;
    ref_start(k);
}

static void ref_stop(unsigned k)
{
    ref.child[k].running = false;
    if (trial.types[k] == RESTART_TEMPORARY)
        ref_remove(k);
}

static void ref_restart(unsigned k)
{
    if ((int32_t)ref.granted == trial.intensity) {
        ref.ended = true;
        for (unsigned i = 0; i < CHILDREN; i++)
            ref.child[i].running = false;
        return;
    }
    ref.granted++;
    if (trial.strategy == ONE_FOR_ONE) {
        ref_start(k);
        return;
    }
    unsigned first = trial.strategy == ONE_FOR_ALL ? 0 : ref_place(k);
    for (unsigned i = ref.count; i-- > first;)
        ref_stop(ref.order[i]);
    for (unsigned i = first; i < ref.count; i++)
        ref_start(ref.order[i]);
}

static void ref_death(unsigned k, uint32_t life, bool normal)
{
    if (ref.ended || !ref.child[k].running || ref.child[k].life != life)
        return; /* of a life that is over */
    ref.child[k].running = false;
    if (trial.types[k] == RESTART_PERMANENT || (trial.types[k] == RESTART_TRANSIENT && !normal))
        ref_restart(k);
    else
        ref_stop(k);
}

static enum error ref_call(enum deed deed, unsigned k)
{
    if (ref.ended)
        return ERR_NOPROC;
    if (deed == ADD && ref.child[k].present)
        return ref.child[k].running ? ERR_ALREADY_STARTED : ERR_ALREADY_PRESENT;
    if (deed == ADD)
        ref_add(k);
    else if (!ref.child[k].present)
        return ERR_NOT_FOUND;
    else if (deed == TERMINATE)
        ref_stop(k);
    else if (ref.child[k].running)
        return ERR_RUNNING;
    else if (deed == RESTART)
        ref_start(k);
    else
        ref_remove(k);
    return OK;
}

/* ---- the real one ---- */

static struct child_spec spec_of(uint32_t k)
{
    return (struct child_spec){.id = id_of(k),
                               .class = &worker_class,
                               .args = PLAN(.number = k),
                               .args_size = sizeof(struct plan),
                               .restart = trial.types[k]};
}

static enum error perform(unsigned i, actor_pid sup)
{
    struct step step = trial.steps[i];
    actor_pid child = world->members[step.child].pid;
    const char *id = id_of(step.child);
    struct child_spec spec = spec_of(step.child);
    struct child_result result = {0};
    if (step.deed >= TERMINATE)
        event_add(CALLED(step.deed), step.child, i);
    switch ((enum deed)step.deed) {
    case CRASH:
        order_exit(child, reason_error(1));
        break;
    case END:
        order_exit(child, NORMAL);
        break;
    case KILL:
        actor_kill(child);
        break;
    case TERMINATE:
        return supervisor_terminate_child(sup, id, PATIENCE);
    case RESTART:
        return supervisor_restart_child(sup, id, &result, PATIENCE);
    case DELETE:
        return supervisor_delete_child(sup, id, PATIENCE);
    case ADD:
        return supervisor_start_child(sup, &spec, &result, PATIENCE);
    case DEED_COUNT:
        break;
    }
    return OK;
}

struct agent {
    actor_pid sup;
    unsigned number;
};

static enum actor_step agent_handle(void *state, struct message *m)
{
    (void)state;
    const struct agent *a = message_body(m, sizeof *a);
    for (unsigned i = a->number; i < trial.count; i += trial.agents) {
        answers[i] = perform(i, a->sup);
        if (i + trial.agents < trial.count)
            actor_yield();
    }
    return ACTOR_STOP;
}

static const struct actor_class agent_class = {.name = "agent", .handle = agent_handle};

static actor_pid trial_begin(void)
{
    struct child_spec children[CHILDREN];
    ref = (struct reference){0};
    for (unsigned k = 0; k < CHILDREN; k++) {
        children[k] = spec_of(k);
        ref_add(k);
    }
    return start_supervisor(&(struct supervisor_spec){.strategy = trial.strategy,
                                                      .intensity = trial.intensity,
                                                      .period_ms = 3600 * 1000,
                                                      .children = children,
                                                      .children_count = CHILDREN});
}

/* ---- comparing ---- */

/* Which life of k this was: lives that began since the last comparison are in the log. */
static uint32_t life_of(size_t until, unsigned k, actor_pid pid)
{
    uint32_t since = 0, at = 0;
    for (size_t i = 0; i < world->events_count; i++) {
        since += world->events[i].kind == BEGAN && world->events[i].number == k;
        if (i < until && world->events[i].kind == BEGAN && world->events[i].pid == pid)
            at = since;
    }
    uint32_t before = world->members[k].begun - since;
    return before + at; /* not in the log: the last one before */
}

static void replay(void)
{
    for (size_t i = 0; i < world->events_count; i++) {
        const struct event *e = &world->events[i];
        if (e->kind == GONE)
            ref_death(e->number, life_of(i, e->number, e->pid), e->normal);
        if (e->kind < ROWS_OWN)
            continue;
        enum error wanted = ref_call((enum deed)(e->kind - ROWS_OWN), e->number), got = answers[e->pid];
        if (got != wanted && !(wanted == ERR_NOPROC && got == ERR_DOWN))
            world_fail(__FILE__, __LINE__, "step %u is answered with %s instead of %s", (unsigned)e->pid,
                       error_name(got), error_name(wanted));
    }
}

static void compare_children(actor_pid sup)
{
    struct child_info infos[CHILDREN];
    EXPECT_EQ(children_of(sup, infos, CHILDREN), ref.count);
    for (unsigned i = 0; i < ref.count; i++) {
        unsigned k = ref.order[i];
        const struct child_info *info = &infos[ref.count - 1 - i];
        EXPECT(!strcmp(info->id, id_of(k)));
        EXPECT_EQ(info->state, ref.child[k].running ? CHILD_RUNNING : CHILD_STOPPED);
        EXPECT(info->pid == (ref.child[k].running ? world->members[k].pid : 0));
    }
}

/* What has happened since the last comparison goes through the reference; then the two must agree. */
static void compare(actor_pid sup)
{
    replay();
    EXPECT_ORDER(BEGAN, ref.started);
    EXPECT(actor_alive(sup) == !ref.ended);
    for (unsigned k = 0; k < CHILDREN; k++) {
        EXPECT_EQ(world->members[k].begun, ref.child[k].life);
        EXPECT_EQ(world->members[k].begun - world->members[k].gone, ref.child[k].running);
        EXPECT(actor_alive(world->members[k].pid) == ref.child[k].running);
    }
    if (!ref.ended) {
        struct supervisor_info about;
        EXPECT_OK(supervisor_inspect(sup, &about, PATIENCE));
        EXPECT_EQ(about.budget_used, ref.granted);
        EXPECT_EQ(about.restarts, ref.granted);
        compare_children(sup);
    }
    memset(ref.started, 0, sizeof ref.started);
    ref.started_count = 0;
    events_clear();
}

static void run_agents(actor_pid sup)
{
    for (unsigned i = 0; i < trial.agents; i++) {
        const struct agent a = {.sup = sup, .number = i};
        actor_pid agent;
        EXPECT_OK(actor_spawn(&(struct spawn_options){.class = &agent_class}, &agent));
        actor_cast(agent, 1, &a, sizeof a);
    }
    settle();
}

/* The children's first starts are in the reference and in the log. */
static void run_steps(actor_pid sup)
{
    memset(answers, 0, sizeof answers);
    for (unsigned i = 0; !trial.agents && i < trial.count; i++) {
        answers[i] = perform(i, sup);
        settle();
        compare(sup);
    }
    run_agents(sup);
    compare(sup);
}

static void run_trial(void)
{
    run_steps(trial_begin());
}

static void describe_failure(uint64_t run)
{
    static const char *const deeds[] = {
#define X(name) #name,
        DEEDS(X)
#undef X
    };
    char *text = world->failure;
    size_t room = sizeof world->failure, n = strlen(text);
    n += (size_t)snprintf(text + n, room - n, "\n%s, intensity %d, types %d %d %d, %u agents, run %llu:",
                          strategy_name(trial.strategy), (int)trial.intensity, (int)trial.types[0],
                          (int)trial.types[1], (int)trial.types[2], trial.agents, (unsigned long long)run);
    for (unsigned i = 0; i < trial.count && n < room; i++)
        n += (size_t)snprintf(text + n, room - n, " %s %c", deeds[trial.steps[i].deed],
                              'a' + trial.steps[i].child);
}

static struct script script;
static uint64_t runs;

/* What a sanitizer can find, it finds in a few, and it is slow. */
#define RUNS_MAX (SANITIZED ? 300 : UINT64_MAX)

/* Inside: as many schedules of the trial as one simulation holds, each with a supervisor of its own. */
static void some_schedules(void)
{
    while (!script.done && runs < RUNS_MAX && script_room()) {
        memset(world->members, 0, sizeof world->members);
        world->kept = world->lives_count = 0;
        events_clear();
        actor_pid sup = trial_begin();
        settle();
        script_begin(&script);
        run_agents(sup);
        script_end(&script);
        compare(sup);
        runs++;
        if (!ref.ended)
            EXPECT_OK(supervisor_stop(sup, SHUTDOWN, PATIENCE));
        mail();
    }
}

/* Every schedule of the trial. */
static void all_schedules(void)
{
    script.count = 0;
    script.done = false;
    runs = 0;
    do
        script_drive(some_schedules);
    while (!script.done && runs < RUNS_MAX && !world->failure[0]);
    if (world->failure[0])
        describe_failure(runs);
    if (getenv("CONFORMANCE_COUNT"))
        fprintf(stderr, "%llu schedules\n", (unsigned long long)runs);
}

/* ---- rows ---- */

/* Number n of `of`, taken out of *rest. */
static uint32_t digit(uint64_t *rest, uint32_t of)
{
    uint32_t d = (uint32_t)(*rest % of);
    *rest /= of;
    return d;
}

#define PAIRS (3 * 18 * 18)

/* Two deeds at the same time, every interleaving: with a thousand seeds, every pair of 3 children x 6 deeds
 * under each strategy. The types and the budget go along. */
static void every_pair(void)
{
    uint64_t rest = (world->seed - 1) * 389 % PAIRS; /* few seeds: a sample from everywhere */
    uint64_t mix = world->seed * 0x9e3779b97f4a7c15ull >> 20;
    memset(&trial, 0, sizeof trial);
    trial.strategy = (enum strategy)digit(&rest, 3);
    trial.agents = trial.count = 2;
    for (unsigned i = 0; i < 2; i++) {
        trial.steps[i].child = (uint8_t)digit(&rest, 3);
        trial.steps[i].deed = (uint8_t)digit(&rest, 6);
    }
    trial.intensity = (int32_t)digit(&mix, 4) ? 5 : 1;
    for (unsigned k = 0; k < CHILDREN; k++)
        trial.types[k] = digit(&mix, 2) ? RESTART_PERMANENT : (enum restart_type)digit(&mix, 3);
    all_schedules();
}

/* Done one after the other by one actor, while the supervisor is at work on the former. */
static const struct step sequences[][4] = {
    {{CRASH, 0}, {KILL, 1}, {CRASH, 2}, {KILL, 0}}, {{CRASH, 1}, {CRASH, 1}, {CRASH, 1}, {CRASH, 1}},
    {{KILL, 2}, {CRASH, 0}, {END, 1}, {CRASH, 2}},  {{CRASH, 0}, {TERMINATE, 1}, {RESTART, 1}, {KILL, 1}},
    {{END, 0}, {DELETE, 0}, {ADD, 0}, {CRASH, 0}},  {{KILL, 1}, {TERMINATE, 1}, {CRASH, 0}, {RESTART, 1}},
};

#define SEQUENCES (3 * (uint32_t)(sizeof sequences / sizeof sequences[0]))

/* Every interleaving of three deeds with what the supervisor does about them; with many seeds, of four where
 * there are not too many. */
static void every_sequence(void)
{
    uint64_t rest = world->seed - 1;
    if (rest >= 2 * SEQUENCES)
        return;
    memset(&trial, 0, sizeof trial);
    trial.strategy = (enum strategy)digit(&rest, 3);
    const struct step *steps = sequences[digit(&rest, SEQUENCES / 3)];
    trial.agents = 1;
    trial.count = 3;
    trial.intensity = 5;
    trial.types[1] = RESTART_TRANSIENT;
    memcpy(trial.steps, steps, 4 * sizeof *steps);
    all_schedules();
    if (rest && runs < 3000 && !world->failure[0]) { /* a fourth multiplies them by up to a hundred */
        trial.count = 4;
        all_schedules();
    }
}

/* Six deeds in all their 720 orders, one after the other, compared after each: the orders go over the seeds.
 */
static void every_order(void)
{
    for (uint64_t number = world->seed - 1; number < 720; number += 25) {
        struct step left[6];
        uint64_t rest = number, mix = number * 7919 + world->seed;
        for (unsigned i = 0; i < 6; i++)
            left[i] = (struct step){.deed = (uint8_t)i, .child = (uint8_t)((i + mix) % 3)};
        memset(&trial, 0, sizeof trial);
        memset(world->members, 0, sizeof world->members);
        trial.strategy = (enum strategy)(mix / 3 % 3);
        trial.intensity = mix % 5 ? 20 : 1;
        trial.count = 6;
        for (unsigned k = 0; k < CHILDREN; k++)
            trial.types[k] = (enum restart_type)((mix >> (2 * k)) % 3);
        for (unsigned i = 0; i < 6; i++) {
            uint32_t at = digit(&rest, 6 - i);
            trial.steps[i] = left[at];
            for (unsigned k = at; k < 5; k++)
                left[k] = left[k + 1];
        }
        world->kept = 0;
        events_clear();
        run_trial();
        if (world->seed > 25)
            return; /* with many seeds each one takes one order, and those from 26 on repeat some with other
                       types */
    }
}

/* ---- every transition ---- */

#define STATES    (27 * 6)
#define EVENTS    (DEED_COUNT * CHILDREN)
#define NOT_TRIED UINT8_MAX

/* Where each deed leads from each state, as far as it has been tried. */
static uint8_t leads_to[STATES][EVENTS];

/* Each child absent, stopped or running, and the order of those who are there. */
static unsigned state_now(void)
{
    unsigned state = 0, order = 0;
    for (unsigned k = 0; k < CHILDREN; k++)
        state = state * 3 + (ref.child[k].running ? 2 : ref.child[k].present);
    if (ref.count == 3)
        order = ref.order[0] * 2 + (ref.order[1] > ref.order[2]);
    else if (ref.count == 2)
        order = ref.order[0] > ref.order[1];
    return state * 6 + order;
}

/* The deed to do next: one that hasn't been tried here, else the first of the shortest way to a state with one. EVENTS: all
 * has been tried wherever one can get. */
static unsigned next_event(unsigned from)
{
    unsigned queue[STATES], first[STATES], count = 1;
    bool seen[STATES] = {false};
    queue[0] = from;
    first[from] = EVENTS;
    seen[from] = true;
    for (unsigned i = 0; i < count; i++)
        for (unsigned event = 0; event < EVENTS; event++) {
            unsigned to = leads_to[queue[i]][event],
                     way = first[queue[i]] == EVENTS ? event : first[queue[i]];
            if (to == NOT_TRIED)
                return way;
            if (seen[to])
                continue;
            seen[to] = true;
            first[to] = way;
            queue[count++] = to;
        }
    return EVENTS;
}

#define CONFIGURATIONS (3 * 27) /* strategies, types of the three */

/* From every state that three children can be in, every deed, each compared when all has come to rest. */
static void every_transition(void)
{
    if (world->seed > CONFIGURATIONS)
        return;
    uint64_t rest = (world->seed - 1) * 32 % CONFIGURATIONS; /* few seeds: a sample from everywhere */
    bool temporary = false;
    memset(leads_to, NOT_TRIED, sizeof leads_to);
    memset(&trial, 0, sizeof trial);
    trial.strategy = (enum strategy)digit(&rest, 3);
    for (unsigned k = 0; k < CHILDREN; k++) {
        trial.types[k] = (enum restart_type)digit(&rest, 3);
        temporary |= trial.types[k] == RESTART_TEMPORARY;
    }
    trial.intensity = 1000000;
    trial.count = 1;
    actor_pid sup = trial_begin();
    unsigned visited = 0;
    for (unsigned event; (event = next_event(state_now())) < EVENTS;) {
        unsigned from = state_now();
        size_t kept = world->kept;
        visited += leads_to[from][0] == NOT_TRIED;
        trial.steps[0] =
            (struct step){.deed = (uint8_t)(event / CHILDREN), .child = (uint8_t)(event % CHILDREN)};
        run_steps(sup);
        leads_to[from][event] = (uint8_t)state_now();
        world->kept = kept;
    }
    /* Some of the three in some order, each stopped or running: 1 + 3 * 2 + 6 * 4 + 6 * 8. Temporary ones never stop. */
    EXPECT(temporary ? visited >= 16 && visited < 79 : visited == 79);
}

/* ---- six at once ---- */

/* Six deeds by three actors at the same time, under the seed's schedule, again and again. */
static void every_storm(void)
{
    for (unsigned round = 0; round < 8; round++) {
        memset(&trial, 0, sizeof trial);
        memset(world->members, 0, sizeof world->members);
        trial.strategy = (enum strategy)draw(3);
        trial.intensity = (int32_t)(1 + draw(8));
        trial.agents = 1 + draw(6);
        trial.count = 6;
        for (unsigned k = 0; k < CHILDREN; k++)
            trial.types[k] = draw(2) ? RESTART_PERMANENT : (enum restart_type)draw(3);
        for (unsigned i = 0; i < trial.count; i++)
            trial.steps[i] =
                (struct step){.deed = (uint8_t)draw(DEED_COUNT), .child = (uint8_t)draw(CHILDREN)};
        world->kept = 0;
        events_clear();
        run_trial();
    }
}

#define ROWS(X)                                              \
    X("A6-every-transition", every_transition, ROW_ALONE)    \
    X("A6-every-order-of-6", every_order, ROW_ALONE)         \
    X("A6-six-at-once", every_storm, ROW_ALONE)              \
    X("A6-every-interleaving-of-2", every_pair, ROW_OUTSIDE) \
    X("A6-every-interleaving-of-4", every_sequence, ROW_OUTSIDE)

ROWS_TEST_LIST;
