/* Camps: gone when their campaign has ended, however it did; and there when something is to be seen in them. */
#include "acutest.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chaos/camp.h"

enum { TRIES = 1000, REST_NS = 10000000 };

static bool is_there(const char *dir)
{
    return access(dir, F_OK) == 0;
}

/* Its keeper needs a moment when nobody waits for it. */
static bool goes(const char *dir)
{
    for (int i = 0; i < TRIES && is_there(dir); i++)
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
    return !is_there(dir);
}

/* A folder in it, and a file in that. */
static void furnish(const struct camp *camp)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/store", camp->dir);
    TEST_ASSERT(mkdir(path, 0700) == 0);
    snprintf(path, sizeof(path), "%s/store/data", camp->dir);
    FILE *file = fopen(path, "w");
    TEST_ASSERT(file && fclose(file) == 0);
}

static const char *parent(void)
{
    return access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

static void begin(struct camp *camp)
{
    TEST_ASSERT(camp_begin(camp, parent(), "camp-test"));
    furnish(camp);
}

static void test_an_ended_camp_is_gone(void)
{
    struct camp camp;
    begin(&camp);
    TEST_CHECK(is_there(camp.dir));
    camp_end(&camp);
    TEST_CHECK(!is_there(camp.dir));
}

static void test_a_kept_camp_stays(void)
{
    struct camp camp;
    char command[400];
    begin(&camp);
    camp_keep(&camp);
    camp_end(&camp);
    TEST_CHECK(is_there(camp.dir));
    snprintf(command, sizeof(command), "rm -r '%s'", camp.dir);
    TEST_CHECK(system(command) == 0);
}

static void test_a_camp_that_cant_be_is_refused(void)
{
    struct camp camp;
    TEST_CHECK(!camp_begin(&camp, "/dev/null", "camp-test"));
}

static void test_nobody_waits_for_a_keeper(void)
{
    struct camp camp;
    begin(&camp);
    TEST_CHECK(waitpid(-1, NULL, WNOHANG) == -1); /* there is no child */
    camp_end(&camp);
}

/* A campaign of its own, with a fork, both of which wait for ever; their process group is *ret_campaign. */
static void begin_elsewhere(struct camp *camp, pid_t *ret_campaign)
{
    int fds[2];
    TEST_ASSERT(pipe(fds) == 0);
    *ret_campaign = fork();
    TEST_ASSERT(*ret_campaign >= 0);
    if (*ret_campaign == 0) {
        setpgid(0, 0);
        begin(camp);
        (void)fork();
        if (write(fds[1], camp, sizeof(*camp)) != (ssize_t)sizeof(*camp))
            _exit(1);
        for (;;)
            pause();
    }
    for (int i = 0; i < 2; i++)
        TEST_ASSERT(read(fds[0], camp, sizeof(*camp)) == (ssize_t)sizeof(*camp));
    close(fds[0]);
    close(fds[1]);
}

static void test_a_campaign_that_is_killed_leaves_nothing(void)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGKILL};
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
        struct camp camp;
        pid_t campaign;
        begin_elsewhere(&camp, &campaign);
        TEST_CHECK(is_there(camp.dir));
        kill(-campaign, signals[i]);
        TEST_CHECK(waitpid(campaign, NULL, 0) == campaign);
        TEST_CHECK(goes(camp.dir));
        TEST_MSG("signal %d, %s", signals[i], camp.dir);
    }
}

static void test_it_stays_while_anybody_has_it(void)
{
    struct camp camp;
    pid_t campaign;
    begin_elsewhere(&camp, &campaign);
    kill(campaign, SIGKILL); /* and not its fork */
    TEST_CHECK(waitpid(campaign, NULL, 0) == campaign);
    nanosleep(&(struct timespec){.tv_nsec = 5 * REST_NS}, NULL);
    TEST_CHECK(is_there(camp.dir));
    kill(-campaign, SIGKILL);
    TEST_CHECK(goes(camp.dir));
}

TEST_LIST
= {
    {"an ended camp is gone", test_an_ended_camp_is_gone},
    {"a kept camp stays", test_a_kept_camp_stays},
    {"a camp that can't be is refused", test_a_camp_that_cant_be_is_refused},
    {"nobody waits for a keeper", test_nobody_waits_for_a_keeper},
    {"a campaign that is killed leaves nothing", test_a_campaign_that_is_killed_leaves_nothing},
    {"it stays while anybody has it", test_it_stays_while_anybody_has_it},
    {NULL, NULL},
};
