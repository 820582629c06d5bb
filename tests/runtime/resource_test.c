#define _GNU_SOURCE
#include "acutest.h"
#include "tests/runtime/node.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "runtime/scheduler.h"

/* ---- released once, newest first, before anybody knows ---- */

static int order[16];
static unsigned released, early;
static actor_pid owner;

static void release(void *arg)
{
    if (released < 16)
        order[released] = (int)(intptr_t)arg;
    released++;
    early += actor_pid_of(&scheduler_current->actors[pid_slot(owner)]) != owner;
    for (const struct message *m = scheduler_current->outbox_newest; m; m = m->next)
        early += m->kind == MESSAGE_REPLY || m->type == SIGNAL_DOWN || m->type == SIGNAL_EXIT;
}

static int pipe_fds[2];
static void own_things(void *arg)
{
    (void)arg;
    owner = actor_self();
    uint64_t refs[8];
    for (intptr_t i = 0; i < 8; i++) {
        refs[i] = actor_own(release, (void *)i);
        if (i == 3)
            TEST_CHECK(actor_register("owner", actor_self(), NULL) == OK && actor_join("owners") == OK);
    }
    actor_release(refs[2]);
    actor_release(refs[2]);
    TEST_CHECK(released == 1 && order[0] == 2);
    actor_disown(refs[5]);
    actor_disown(refs[5]);
    actor_release(refs[5]);
    actor_release(0);
    actor_release(UINT64_MAX);
    TEST_CHECK(released == 1);
    TEST_CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
    actor_own_fd(pipe_fds[0]);
    actor_release(actor_own_fd(pipe_fds[1]));
    TEST_CHECK(fcntl(pipe_fds[1], F_GETFD) == -1 && fcntl(pipe_fds[0], F_GETFD) >= 0);
}

static void crash(void *arg)
{
    (void)arg;
    actor_fail(1, NULL);
}
static void foreign_ref(void *arg)
{
    actor_release(*(uint64_t *)arg);
    actor_disown(*(uint64_t *)arg);
    actor_unwatch(*(uint64_t *)arg);
}

static void released_in_order(void)
{
    for (int kill = 0; kill < 3; kill++) {
        released = early = 0;
        actor_pid d = doll(anywhere()), watchers[2] = {doll(anywhere()), doll(anywhere())};
        tell(d, own_things, NULL);
        settle();
        actor_pid member;
        TEST_CHECK(actor_whereis("owner") == d && actor_members("owners", &member, 1) == 1 && member == d);
        uint64_t ref = actor_monitor(d, 0);
        if (kill == 0)
            actor_kill(d);
        else if (kill == 1)
            tell(d, crash, NULL);
        else
            TEST_CHECK(actor_stop(d, reason_of(REASON_SHUTDOWN), NULL, DEADLINE_NONE) == OK);
        down(ref);
        const int wanted[] = {2, 7, 6, 4, 3, 1, 0};
        TEST_CHECK_(released == 7 && memcmp(order, wanted, sizeof wanted) == 0, "%u", released);
        TEST_CHECK(early == 0 && actor_whereis("owner") == 0 && actor_members("owners", &member, 1) == 0);
        TEST_CHECK(fcntl(pipe_fds[0], F_GETFD) == -1 && errno == EBADF);
        actor_kill(watchers[0]);
        actor_kill(watchers[1]);
        settle();
    }
    /* What belongs to another isn't released by knowing its number. */
    released = 0;
    owner = actor_self();
    uint64_t ref = actor_own(release, NULL);
    actor_pid d = doll(SPAWN_HERE), elsewhere = doll(anywhere());
    tell(d, foreign_ref, &ref);
    tell(elsewhere, foreign_ref, &ref);
    settle();
    TEST_CHECK(released == 0);
    actor_release(ref);
    TEST_CHECK(released == 1);
    actor_kill(d);
    actor_kill(elsewhere);
    settle();
}

static void test_released(void)
{
    node_sim(released_in_order);
}

static void own_one(void *arg)
{
    (void)arg;
    TEST_CHECK(actor_own(release, NULL) != 0);
}

static void left_to_the_end(void)
{
    released = 0;
    owner = actor_self();
    own_one(NULL);
    for (int i = 0; i < 2; i++)
        tell(doll(SPAWN_ON(i)), own_one, NULL);
    settle();
}

/* Whoever lives when the root ends is released, too. */
static void test_left_to_the_end(void)
{
    node_sim_with(left_to_the_end, &(struct sim_options){.seed = 5, .schedulers = 2});
    TEST_CHECK(released == 3);
}

static void no_descriptors(void)
{
    TEST_CHECK(actor_watch(0, WATCH_READ) == 0 && errno == ENOSYS);
    TEST_CHECK(actor_wait_fd(0, WATCH_READ, DEADLINE_NONE) == ERR_SYSTEM);
}
static void test_no_descriptors(void)
{
    node_sim(no_descriptors);
}

/* ---- descriptors, for real ---- */

static int pair[2];
static void write_later(void *arg)
{
    for (int i = 0; i < (int)(intptr_t)arg; i++)
        EXPECT(write(pair[1], "x", 1) == 1);
}
static void close_later(void *arg)
{
    (void)arg;
    close(pair[1]);
}

static void wait_on_pipes(void)
{
    char c[16];
    actor_pid d = doll(SPAWN_ON(runtime_schedulers() - 1));
    TEST_CHECK(pipe2(pair, O_CLOEXEC | O_NONBLOCK) == 0);
    TEST_CHECK(actor_wait_fd(pair[0], WATCH_READ, actor_now() + NS_PER_MS) == ERR_TIMEOUT);
    TEST_CHECK(actor_wait_fd(pair[1], WATCH_WRITE, DEADLINE_NONE) == OK);
    for (int i = 0; i < 100; i++) {
        tell(d, write_later, (void *)1);
        TEST_CHECK(actor_wait_fd(pair[0], WATCH_READ, DEADLINE_NONE) == OK);
        TEST_CHECK(read(pair[0], c, sizeof c) == 1);
    }
    tell(d, close_later, NULL);
    TEST_CHECK(actor_wait_fd(pair[0], WATCH_READ, DEADLINE_NONE) == OK && read(pair[0], c, 1) == 0);
    close(pair[0]);
    TEST_CHECK(actor_wait_fd(pair[0], WATCH_READ, DEADLINE_NONE) == ERR_SYSTEM && errno == EBADF);
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    TEST_CHECK(actor_wait_fd(file, WATCH_READ, DEADLINE_NONE) == ERR_SYSTEM &&
               errno == EPERM); /* always ready: no epoll */
    TEST_CHECK(actor_watch(file, WATCH_READ) == 0 && actor_watch(-1, WATCH_READ) == 0);
    close(file);
    TEST_CHECK(scheduler_current->watches == 0);
}

static void watch_sockets(void)
{
    char c[16];
    TEST_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    uint64_t ref = actor_watch(pair[0], WATCH_READ);
    TEST_CHECK(ref != 0 && scheduler_current->watches == 1);
    for (int i = 0; i < 50; i++) { /* edge-triggered: read to the end each time */
        TEST_CHECK(write(pair[1], "hello", 5) == 5);
        struct message_ready *r = expect(MESSAGE_READY);
        TEST_CHECK(r->ref == ref && r->fd == pair[0] && (r->events & WATCH_READ));
        TEST_CHECK(read(pair[0], c, sizeof c) == 5 && read(pair[0], c, 1) == -1 && errno == EAGAIN);
    }
    close(pair[1]);
    struct message_ready *r = expect(MESSAGE_READY);
    TEST_CHECK((r->events & WATCH_HANGUP) && (r->events & WATCH_READ));
    actor_unwatch(ref);
    actor_unwatch(ref);
    TEST_CHECK(scheduler_current->watches == 0);
    close(pair[0]);
}

/* Who waits to write, to another side that takes nothing and has said all that it has to say, waits for his time: a half that is
 * closed makes no room. */
static void write_to_a_closed_half(void)
{
    static const char bytes[4096];
    TEST_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    while (write(pair[0], bytes, sizeof bytes) > 0) {
    }
    TEST_CHECK(errno == EAGAIN && shutdown(pair[1], SHUT_WR) == 0);
    TEST_CHECK(actor_wait_fd(pair[0], WATCH_READ, DEADLINE_NONE) == OK);
    TEST_CHECK(actor_wait_fd(pair[0], WATCH_WRITE, actor_deadline_ms(50)) == ERR_TIMEOUT);
    close(pair[1]); /* but one that has gone altogether is news to him */
    TEST_CHECK(actor_wait_fd(pair[0], WATCH_WRITE, DEADLINE_NONE) == OK);
    close(pair[0]);
}

/* Two actors that never rest, on two schedulers, while a third waits for its descriptor: it must get its turn. */
static actor_pid partner[2];
static atomic_bool over;
static void bounce(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg;
    if (!atomic_load(&over))
        tell(partner[1 - me], bounce, (void *)(uintptr_t)(1 - me));
}
static void descriptors_under_traffic(void)
{
    char c;
    TEST_CHECK(pipe2(pair, O_CLOEXEC | O_NONBLOCK) == 0);
    partner[0] = doll(SPAWN_ON(0));
    partner[1] = doll(SPAWN_ON(1));
    atomic_store(&over, false);
    tell(partner[0], bounce, (void *)0);
    tell(partner[1], bounce, (void *)1);
    actor_pid d = doll(SPAWN_ON(1));
    for (int i = 0; i < 20; i++) {
        tell(d, write_later, (void *)1);
        TEST_CHECK(actor_wait_fd(pair[0], WATCH_READ, DEADLINE_NONE) == OK);
        TEST_CHECK(read(pair[0], &c, 1) == 1);
    }
    atomic_store(&over, true);
    close(pair[0]);
    close(pair[1]);
}

/* Its watches go with an actor, and the descriptor can be watched by the next one. */
static void watch_and_crash(void *arg)
{
    (void)arg;
    TEST_CHECK(actor_watch(pair[0], WATCH_READ) != 0);
    TEST_CHECK(scheduler_current->watches == 1);
    actor_fail(1, NULL);
}
static void wait_for_ever(void *arg)
{
    (void)arg;
    actor_wait_fd(pair[0], WATCH_READ, DEADLINE_NONE);
    TEST_CHECK(false);
}
static void watches_go(void)
{
    char c;
    TEST_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
    for (int i = 0; i < 100; i++) {
        actor_pid d = doll(SPAWN_HERE);
        uint64_t ref = actor_monitor(d, 0);
        if (i % 2) {
            tell(d, watch_and_crash, NULL);
        } else {
            tell(d, wait_for_ever, NULL);
            actor_yield();
            actor_yield();
            actor_kill(d);
        }
        down(ref);
        TEST_CHECK(scheduler_current->watches == 0);
    }
    TEST_CHECK(write(pair[1], "x", 1) == 1);
    TEST_CHECK(actor_wait_fd(pair[0], WATCH_READ, DEADLINE_NONE) == OK && read(pair[0], &c, 1) == 1);
    close(pair[0]);
    close(pair[1]);
}

static void test_descriptors(void)
{
    TEST_CHECK(node_real(1, wait_on_pipes) == 0);
    TEST_CHECK(node_real(2, wait_on_pipes) == 0);
    TEST_CHECK(node_real(1, watch_sockets) == 0);
    TEST_CHECK(node_real(1, write_to_a_closed_half) == 0);
    TEST_CHECK(node_real(1, watches_go) == 0);
    TEST_CHECK(node_real(2, watches_go) == 0);
}

static void test_descriptors_under_traffic(void)
{
    TEST_CHECK(node_real(2, descriptors_under_traffic) == 0);
}

TEST_LIST
= {
    {"released once, newest first, before DOWN", test_released},
    {"released when the node ends", test_left_to_the_end},
    {"no descriptors in simulation", test_no_descriptors},
    {"waiting for pipes, watching sockets, gone with the actor", test_descriptors},
    {"descriptors get their turn under traffic", test_descriptors_under_traffic},
    {NULL, NULL},
};
