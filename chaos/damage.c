/* damage: data files that are not what was written, and what a server makes of them.
 *
 *     damage [--images N] [--seed S] [--from I] [--dir D]
 *
 * A store is made with every mechanic in it, closed, and kept in memory as bytes, together with every row that it
 * holds. Then, image by image: one kind of damage is done to the bytes, they are put in the directory, and a child
 * process opens it as the server does and reads every row by its key and every table from end to end. Every other image
 * is opened as a large file is, whose leaves are looked at when they are read (store/leaves.h). What is allowed:
 *
 *     refused    the store doesn't open, says why, and nothing in the directory has changed
 *     served     every row is right, nothing is missing and nothing is there that wasn't; then the store takes
 *                another command and `coppice check` finds nothing wrong
 *     told       a row that isn't right is ERR_DAMAGED, the others are right or ERR_DAMAGED; a command is refused, and
 *                the file is as it was
 *     held       every row is right, but the command is refused as ERR_DAMAGED, and the file is as it was
 *     older      rows of a page that was put back to what it held earlier are as they were then: nothing in the
 *                file says when a page was written, so a sound older page in its own place is believed
 *
 * Anything else is a violation: a wrong value, a row that is "not found", an empty store, a refusal that has touched
 * a file, a process that dies, more than HANG_MS without an end. Each is printed with what makes it again; the program
 * then ends with status 1. Image I of a seed is always the same, alone or among others (--from I --images 1).
 *
 * The control: CONTROL images are read by LMDB without a look at them before, and judged alike. A campaign in which that
 * shows nothing wrong judges nothing, and fails; so does one of REACH_MIN images or more in which one of the outcomes
 * above never came about, of whole or of large files where it can.
 *
 * What nobody can see is not tried: the whole of an earlier file, and a newest meta page that is the one of two
 * commits before, which is what a power cut may leave.
 *
 * What it is made of: chaos/damage_truth.h (what there was), chaos/damage_image.h (what is done to it), chaos/damage_look.h
 * (what is made of that) and chaos/damage_campaign.h (what came of it); here are the processes.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chaos/damage_look.h"
#include "runtime/env.h"

enum {
    IMAGES = 100000,
    CONTROL = 1000, /* images read without being looked at */
    REACH_MIN = 20000,
    SIDES = 2,           /* halves of a long campaign, at the same time */
    CHILD_IMAGES = 4000, /* of one child */
    BEAT = 16,           /* images between two signs of life */
    HANG_MS = 120000,    /* for those */
};

static const struct {
    const char *name;
    bool reached[2]; /* by whole and by large ones */
} outcomes[OUTCOME_COUNT] = {
#define X(id, name, whole, large) [id] = {name, {whole, large}},
    OUTCOMES(X)
#undef X
};

static struct campaign *sides; /* SIDES */

/* ---- children ---- */

/* LMDB has much to say about what nobody has looked at. */
static void be_quiet(void)
{
    if (!freopen("/dev/null", "w", stderr))
        _exit(3);
}

static void child(int beat)
{
    static struct image image;
    if (campaign->control)
        be_quiet();
    for (uint64_t done = 0; campaign->current < campaign->end && done < CHILD_IMAGES; done++) {
        if (done % BEAT == 0 && write(beat, "", 1) != 1)
            _exit(3);
        campaign->wrong = campaign->older = false;
        campaign->kind = image_make(&image, campaign->seed, campaign->current);
        image_place(&image);
        if (campaign->control)
            (void)look_blindly();
        else
            campaign->counts[campaign_large()][campaign->kind][look_served(&image)]++;
        campaign->current++;
    }
    _exit(0);
}

/* Until the child has ended, or shows no life: then it is killed, and false. */
static bool child_watch(pid_t pid, int beat, int *ret_status)
{
    char bytes[64];
    struct pollfd wait = {.fd = beat, .events = POLLIN};
    bool alive = true;
    for (;;) {
        int n = poll(&wait, 1, HANG_MS);
        if (n < 0 && errno == EINTR)
            continue;
        alive = n > 0;
        if (!alive || read(beat, bytes, sizeof(bytes)) <= 0)
            break;
    }
    if (!alive)
        (void)kill(pid, SIGKILL);
    while (waitpid(pid, ret_status, 0) < 0 && errno == EINTR)
        ;
    return alive;
}

static void child_judge(bool alive, int status)
{
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (alive && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (!alive)
        campaign_violation("no end within %d ms", HANG_MS);
    else
        campaign_violation("the process ended with %s %d", signal ? "signal" : "status",
                           signal ? signal : WEXITSTATUS(status));
    campaign->counts[campaign_large()][campaign->kind][DIED] += !campaign->control;
    campaign->current++;
}

static void campaign_run(uint64_t first, uint64_t images, bool control)
{
    campaign->control = control;
    campaign->current = first;
    campaign->end = first + images;
    while (campaign->current < campaign->end) {
        int beat[2], status = 0;
        if (pipe2(beat, O_CLOEXEC) != 0)
            truth_give_up("no pipe: %s", strerror(errno));
        pid_t pid = fork();
        if (pid < 0)
            truth_give_up("no child: %s", strerror(errno));
        if (pid == 0) {
            close(beat[0]);
            child(beat[1]);
        }
        close(beat[1]);
        bool alive = child_watch(pid, beat[0], &status);
        child_judge(alive, status);
        close(beat[0]);
    }
}

/* A process with a directory and a part of the images of its own. */
static pid_t side_start(uint32_t number, uint64_t first, uint64_t images)
{
    pid_t pid = fork();
    if (pid < 0)
        truth_give_up("no child: %s", strerror(errno));
    if (pid > 0)
        return pid;
    campaign = &sides[number];
    size_t length = strlen(truth_dir);
    snprintf(truth_dir + length, sizeof(truth_dir) - length, "/%u", number);
    if (mkdir(truth_dir, 0700) != 0)
        truth_give_up("%s can't be made: %s", truth_dir, strerror(errno));
    campaign_run(first, images, false);
    truth_clear();
    _exit(rmdir(truth_dir) != 0);
}

static void side_add(const struct campaign *side)
{
    for (int large = 0; large < 2; large++)
        for (size_t kind = 0; kind < KIND_COUNT; kind++)
            for (size_t i = 0; i < OUTCOME_COUNT; i++)
                campaign->counts[large][kind][i] += side->counts[large][kind][i];
    campaign->violations += side->violations;
}

static void sides_run(uint64_t first, uint64_t images)
{
    pid_t pids[SIDES];
    uint64_t half = images / SIDES;
    for (uint32_t i = 0; i < SIDES; i++)
        pids[i] = side_start(i, first + i * half, i + 1 < SIDES ? half : images - i * half);
    for (uint32_t i = 0; i < SIDES; i++) {
        int status = 1;
        while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
            ;
        if (status != 0)
            truth_give_up("half of the campaign ended with status %d", status);
        if (i > 0)
            side_add(&sides[i]);
    }
}

static uint64_t outcome_sum(bool large, enum outcome outcome)
{
    uint64_t sum = 0;
    for (size_t kind = 0; kind < KIND_COUNT; kind++)
        sum += campaign->counts[large][kind][outcome];
    return sum;
}

static void report(uint64_t images, uint64_t ns)
{
    printf("damage: seed %" PRIu64 ", %" PRIu64 " images of a store of %u rows in %zu pages;", campaign->seed,
           images, truth.now.count, truth.used / TRUTH_PAGE);
    for (size_t kind = 0; kind < KIND_COUNT; kind++) {
        printf(" %s", image_kind_name(kind));
        for (size_t i = 0; i < OUTCOME_COUNT; i++) {
            uint64_t count = campaign->counts[0][kind][i] + campaign->counts[1][kind][i];
            if (count > 0)
                printf(" %s %" PRIu64, outcomes[i].name, count);
        }
        printf(";");
    }
    for (int large = 0; large < 2; large++) {
        printf(large ? "; large" : " whole");
        for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
            printf(" %s %" PRIu64, outcomes[i].name, outcome_sum(large, i));
    }
    printf("; control %" PRIu64 " of %d; violations %" PRIu64 "; %" PRIu64 " s\n", campaign->caught, CONTROL,
           campaign->violations, (uint64_t)(ns / NS_PER_S));
}

/* Whether the campaign could have found anything. */
static bool reached(uint64_t images)
{
    bool all = true;
    if (images < REACH_MIN)
        return true;
    if (campaign->caught == 0) {
        fprintf(stderr, "damage: the control found nothing wrong\n");
        all = false;
    }
    for (int large = 0; large < 2; large++)
        for (enum outcome i = 0; i < OUTCOME_COUNT; i++)
            if (outcomes[i].reached[large] && outcome_sum(large, i) == 0) {
                fprintf(stderr, "damage: no image of a %s file was %s\n", large ? "large" : "whole",
                        outcomes[i].name);
                all = false;
            }
    return all;
}

static uint64_t number_of(const char *name, const char *text)
{
    char *end;
    errno = 0;
    uint64_t value = text ? strtoull(text, &end, 10) : 0;
    if (!text || errno || *end || end == text)
        truth_give_up("%s needs a number", name);
    return value;
}

static uint64_t options_read(int argc, char **argv, uint64_t *ret_first)
{
    uint64_t images = IMAGES;
    const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    campaign->seed = 1;
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--images") == 0)
            images = number_of(argv[i], argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            campaign->seed = number_of(argv[i], argv[i + 1]);
        else if (strcmp(argv[i], "--from") == 0)
            *ret_first = number_of(argv[i], argv[i + 1]);
        else if (strcmp(argv[i], "--dir") == 0 && argv[i + 1])
            base = argv[i + 1];
        else
            truth_give_up("usage: damage [--images N] [--seed S] [--from I] [--dir D]");
    }
    snprintf(truth_dir, sizeof(truth_dir), "%s/coppice-damage-XXXXXX", base);
    if (!mkdtemp(truth_dir))
        truth_give_up("%s can't be made: %s", truth_dir, strerror(errno));
    return images;
}

int main(int argc, char **argv)
{
    struct env *env = env_real();
    sides = mmap(NULL, SIDES * sizeof(*sides), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (sides == MAP_FAILED)
        truth_give_up("no memory");
    campaign = &sides[0];
    uint64_t first = 0, images = options_read(argc, argv, &first);
    uint64_t began = env->now(env);
    for (uint32_t i = 1; i < SIDES; i++)
        sides[i].seed = campaign->seed;
    truth_make();
    if (images < REACH_MIN) {
        campaign_run(first, images, false);
    } else {
        campaign_run(0, CONTROL, true);
        truth_clear();
        sides_run(first, images);
    }
    report(images, env->now(env) - began);
    truth_clear();
    (void)rmdir(truth_dir);
    return campaign->violations > 0 || !reached(images);
}
