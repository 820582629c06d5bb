#define _GNU_SOURCE
#include "chaos/life.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "chaos/auditor.h"
#include "chaos/disk.h"
#include "chaos/ground.h"
#include "chaos/platter.h"
#include "config/log.h"
#include "runtime/runtime.h"
#include "store/view.h"

enum {
    ARG_SIZE = 64,
    OUTSIDE_TURNS = 6, /* of so many steps of the world, one is the outside's */
    LIFE_STEPS_MAX = 500000,
    HEAL_LIMIT_S = 2 * 3600, /* of virtual time: beyond that something is stuck */
    REST_LOOK_STEPS = 400,
    ROOM_BYTES = 16 << 20,
    RING_BYTES = 8 << 20,
    WAITING_TIMERS = 2, /* of some 95, of those who wait for a time just then */
    WARM_DAYS = 20,
    DAY_S = 86400 - 300,
    STILL_STEPS_MAX = 100000, /* without any time going by: somebody runs and runs */
    BREATH_STEPS = 512,
    CUT_BEHIND_STEPS = 400,
    BREATH_SECONDS = 10, /* of the processor for so many steps: within one of them somebody runs and runs */
    NEVER_BROKEN = -1,
};

static struct {
    struct world *world;
    char left[WORLD_PATH_MAX], disk[WORLD_PATH_MAX], store[WORLD_PATH_MAX], next[WORLD_PATH_MAX];
    char last_words[WORLD_PATH_MAX];
    char args[WORLD_ARGS_MAX][ARG_SIZE];
    const char *pointers[WORLD_ARGS_MAX];
    uint32_t args_count;
    uint64_t failed_syncs, failed_rooms, grown, safety_began;
    uint64_t grew_at;                      /* the step */
    uint32_t escalations, doubts, endings; /* of the warden's, that were counted */
    bool once;                             /* the next sync that fails would succeed when tried again */
    uint64_t still_since, still_steps;     /* the virtual time, and steps since it has changed */
    int64_t broken;                        /* commits when a sync failed for good; NEVER_BROKEN */
    bool tight, recorded;
    struct platter platter; /* what is on the disk for certain, and what may be */
    uint32_t followed;      /* entries of the disk's log that it knows */
} life = {.broken = NEVER_BROKEN};

struct world *life_world(void)
{
    return life.world;
}

void life_note_answer(void)
{
    saga->answered = true;
}

static int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *ftw)
{
    (void)stat;
    (void)kind;
    (void)ftw;
    return remove(path);
}

void life_clean(const char *dir)
{
    (void)nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- what an earlier one has left, onto the disk that is recorded ---- */

static void name_places(void)
{
    const char *dir = saga->options.dir;
    snprintf(life.left, sizeof(life.left), "%s/left", dir);
    snprintf(life.disk, sizeof(life.disk), "%s/disk", dir);
    snprintf(life.store, sizeof(life.store), "%s/disk/store", dir);
    snprintf(life.next, sizeof(life.next), "%s/next", dir);
    snprintf(life.last_words, sizeof(life.last_words), "%s/" LIFE_LAST_WORDS, dir);
}

static bool record(void)
{
    uint32_t count;
    life.recorded = true;
    if (!disk_record(life.disk, saga->options.seed * 1000 + saga->life) ||
        !platter_create(&life.platter, disk_log(&count)))
        return false;
    if (saga->options.control == CONTROL_NO_SYNC)
        life.platter.kind = PLATTER_NO_DATA_SYNC;
    return true;
}

/* Step by step: so the log holds no more than what is pending, in memory that was used before. */
static void follow_disk(void)
{
    uint32_t count;
    (void)disk_log(&count);
    if (!life.recorded || life.followed == count)
        return;
    while (life.followed < count)
        platter_step(&life.platter, life.followed++);
    if (!platter_holds_all(&life.platter))
        return;
    disk_forget();
    life.followed = 0;
}

/* For the control that goes back: what was left stays, beside the disk that it became. */
static bool leave_it(void)
{
    static struct platter_choice nothing;
    struct dice dice = dice_of(0);
    return mkdir(life.left, 0700) == 0 && platter_build_tree(&life.platter, &nothing, &dice, life.left);
}

static bool begin_disk(void)
{
    life_clean(life.disk);
    if (access(life.left, F_OK) == 0 ? rename(life.left, life.disk) < 0 : mkdir(life.disk, 0700) < 0)
        return false;
    if (saga->options.days) /* many days aren't recorded */
        return true;
    bool good = record() && disk_adopt(life.disk);
    follow_disk();
    return good && (saga->options.control != CONTROL_ROLLBACK || leave_it());
}

/* ---- the end ---- */

static void keep_log(void)
{
    uint32_t count = 0;
    while (life.world && world_log(life.world, count))
        count++;
    for (uint32_t i = 0; i < 24; i++) {
        const char *line = life.world && count + i >= 24 ? world_log(life.world, count - 24 + i) : NULL;
        snprintf(saga->last_log[i], sizeof(saga->last_log[i]), "%s", line ? line : "");
    }
}

static void note_world(void)
{
    if (!life.world)
        return;
    uint64_t hash = sim_trace_hash(world_sim(life.world));
    saga_mix(&hash, sizeof(hash));
    saga->now = world_now(life.world);
    saga->figures.commits += atomic_load(&world_store(life.world)->commits);
}

static _Noreturn void end(enum ending ending)
{
    note_world();
    if (!saga->answered)
        SOMETIMES(IDLE_LIFE);
    if (saga_violated()) {
        keep_log();
        ending = ENDING_VIOLATED;
    }
    _exit((int)ending);
}

static uint32_t torn_of(const struct platter *p, const struct platter_choice *choice)
{
    uint32_t torn = 0;
    for (uint32_t i = 0; i < p->pending_count; i++)
        torn += choice->sectors[i] != 0 && choice->sectors[i] != 0xff && p->pending[i].bytes;
    return torn;
}

static void choose(struct platter *p, struct platter_choice *choice)
{
    struct dice *d = &saga->crash_dice;
    switch (dice_below(d, 4)) {
    case 0:
        platter_prefix(p, dice_below(d, p->pending_count + 1), choice);
        break;
    case 1:
        platter_subset(p, d, choice);
        break;
    case 2:
        platter_torn(p, d, choice);
        break;
    default:
        platter_prefix(p, 0, choice);
    }
    if (p->pending_count)
        SOMETIMES(CUT_PENDING);
    if (torn_of(p, choice))
        SOMETIMES(CUT_TORN);
}

static bool build_left(void)
{
    static struct platter_choice choice;
    follow_disk();
    disk_stop();
    if (disk_full())
        return false;
    choose(&life.platter, &choice);
    life_clean(life.next);
    return !life.platter.overflow && mkdir(life.next, 0700) == 0 &&
           platter_build_tree(&life.platter, &choice, &saga->crash_dice, life.next);
}

static _Noreturn void end_by_power(void)
{
    SOMETIMES(CUT);
    if (life.grew_at && saga->steps < life.grew_at + CUT_BEHIND_STEPS)
        SOMETIMES(CUT_AFTER_GROWTH);
    if (!build_left()) {
        saga_violate("the harness: what the power left can't be built");
        end(ENDING_VIOLATED);
    }
    if (saga->options.control != CONTROL_ROLLBACK || saga->life % 2 == 1) {
        life_clean(life.left);
        if (rename(life.next, life.left) < 0)
            saga_violate("the harness: what the power left can't be kept");
    }
    end(ENDING_CUT);
}

static _Noreturn void end_killed(void)
{
    disk_stop();
    life_clean(life.left);
    if (rename(life.disk, life.left) < 0)
        saga_violate("the harness: what is left can't be kept");
    end(ENDING_KILLED);
}

static _Noreturn void end_somehow(void)
{
    if (!saga->options.days && dice_below(&saga->crash_dice, 2)) /* many days aren't recorded */
        end_by_power();
    end_killed();
}

bool life_salvage(void)
{
    life_clean(life.left);
    return rename(life.disk, life.left) == 0;
}

/* ---- the start ---- */

__attribute__((format(printf, 1, 2))) static void arg(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(life.args[life.args_count], ARG_SIZE, format, list);
    va_end(list);
    life.pointers[life.args_count] = life.args[life.args_count];
    life.args_count++;
}

static void make_args(void)
{
    const struct knobs *k = &saga->knobs;
    arg("--workers-count=%u", k->workers);
    arg("--workers-poll-interval=%ums", k->poll_ms);
    arg("--workers-lease-timeout=%ums", k->lease_ms);
    arg("--workers-heartbeat-interval=%ums", k->heartbeat_ms);
    arg("--jobs-simulation-speed=%u", k->speed);
    arg("--jobs-client-concurrency=%u", k->client_max);
    arg("--retry-max=%u", k->retry_max);
    arg("--retry-auto=%s", k->retry_auto ? "true" : "false");
    arg("--retry-backoff-base=%ums", k->backoff_ms);
    arg("--retry-backoff-max=%ums", k->backoff_max_ms);
    arg("--limits-max-queue-size=%u", k->queue_max);
    arg("--limits-requests-per-minute=1000000");
    arg("--limits-anonymous-requests-per-minute=1000000");
    arg("--limits-subject=1000000");
    arg("--limits-client-quota-requests=1000000000");
    arg("--http-request-timeout=%ums", k->request_ms);
    arg("--webhooks-timeout=%ums", k->webhook_timeout_ms);
    arg("--webhooks-max-retries=%u", k->webhook_retries);
    arg("--webhooks-disable-after=0s");
    arg("--webhooks-backoff-base=%ums", k->backoff_ms / 2);
    arg("--webhooks-backoff-max=%ums", k->backoff_ms * 4);
    if (saga->options.days) {
        arg("--retention-jobs=5d");
        arg("--retention-deliveries=5d");
    }
    arg("--outbound-allow-private");
    arg("--http-check-answers");
}

static struct disk_faults faults_of_opening(void)
{
    struct disk_faults faults = {0};
    struct dice *d = &saga->crash_dice;
    uint32_t face = dice_below(d, 10);
    if (saga_on(FAULT_MIDWAY) && face < 2)
        faults.dies_after = 1 + dice_below(d, 12);
    else if (saga_on(FAULT_SYNCS) && face == 2)
        faults.sync_fails = 500;
    else if (saga_on(FAULT_THROUGHS) && face == 3)
        faults.through_fails = 500;
    return faults;
}

static struct world_options options_of_world(void)
{
    const struct knobs *k = &saga->knobs;
    struct world_options options = {.dir = saga->options.dir,
                                    .store_dir = life.store,
                                    .seed = saga->options.seed * 0x9e3779b97f4a7c15u + saga->life,
                                    .start_ns = saga->now,
                                    .wall_ns = saga->wall_ns,
                                    .schedulers = k->schedulers,
                                    .order = k->order,
                                    .store = k->store,
                                    .loud = saga->options.loud};
    memcpy(options.args, life.pointers, life.args_count * sizeof(*life.pointers));
    return options;
}

bool life_prepare(void)
{
    char why[400] = "";
    life.args_count = 0;
    name_places();
    make_args();
    const struct world_options options = options_of_world();
    if (world_configure(&options, why, sizeof(why)))
        return true;
    saga_violate("the harness: what a server is told can't be: %s", why);
    return false;
}

static void open_world(void)
{
    char why[400] = "";
    const struct world_options options = options_of_world();
    disk_fail(faults_of_opening());
    life.world = world_open(&options, why, sizeof(why));
    bool died = disk_dead(), failed = disk_failed_syncs() > 0;
    disk_fail((struct disk_faults){0});
    life.failed_syncs = disk_failed_syncs();
    if (died || (!life.world && failed)) {
        SOMETIMES(OPEN_REFUSED);
        if (died)
            SOMETIMES(CUT_IN_OPENING);
        life.world = NULL;
        end_somehow();
    }
    if (!life.world) {
        saga_violate("a start on what is left was refused: %s (S2, S6)", why);
        end(ENDING_VIOLATED);
    }
}

/* ---- faults ---- */

static void note_killed(void)
{
    static const struct {
        const char *class;
        enum sometimes what;
    } names[] = {{"store.writer", SOMETIMES_KILLED_WRITER},   {"store.keeper", SOMETIMES_KILLED_KEEPER},
                 {"worker", SOMETIMES_KILLED_WORKER},         {"shard", SOMETIMES_KILLED_SHARD},
                 {"supervisor", SOMETIMES_KILLED_SUPERVISOR}, {"connection", SOMETIMES_KILLED_CONNECTION},
                 {"listener", SOMETIMES_KILLED_LISTENER},     {"relay", SOMETIMES_KILLED_RELAY},
                 {"outbound", SOMETIMES_KILLED_OUTBOUND}};
    struct world_strike strike;
    if (!world_struck(life.world, &strike))
        return;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(strike.class, names[i].class) == 0)
            saga->seen[names[i].what]++;
    if (strike.newborn)
        SOMETIMES(KILLED_NEWBORN);
    if (strike.together)
        SOMETIMES(KILLED_TOGETHER);
    if (strike.busy && strcmp(strike.class, "store.writer") == 0)
        SOMETIMES(KILLED_BUSY);
}

static void move_wall(int64_t by)
{
    saga->wall_ns += by;
    if (saga->wall_ns > saga->wall_most_ns)
        saga->wall_most_ns = saga->wall_ns;
    saga->leaps++;
    sim_clock_jump(world_sim(life.world), by);
}

/* Up to a day, mostly less, to either side. */
static void leap(void)
{
    static const uint32_t most_s[] = {2, 90, 3600, 86400};
    int64_t by =
        (int64_t)(1 + dice_below(&saga->dice, most_s[dice_below(&saga->dice, saga->options.days ? 2 : 4)])) *
        (int64_t)NS_PER_S;
    if (dice_below(&saga->dice, 2)) {
        by = -by;
        SOMETIMES(LEAP_BACK);
    } else {
        SOMETIMES(LEAP_FORWARD);
    }
    move_wall(by);
}

static void stall(void)
{
    uint64_t ms =
        dice_below(&saga->dice, 4) ? 1 + dice_below(&saga->dice, 300) : 1 + dice_below(&saga->dice, 40000);
    SOMETIMES(STALL);
    for (uint32_t i = 0; i < saga->orders_count; i++) {
        const struct lease *l = &saga->orders[i].lease;
        if (l->attempt && !l->ended && l->life == saga->life && l->at_least > saga->now &&
            l->at_most < saga->now + ms * NS_PER_MS)
            SOMETIMES(STALL_OVER_LEASE);
    }
    sim_clock_advance(world_sim(life.world), ms * NS_PER_MS);
}

static void strike(enum fault_kind kind)
{
    switch (kind) {
    case FAULT_KILLS:
        world_kill_one(life.world, dice_draw(&saga->dice));
        break;
    case FAULT_CUTS:
        end_by_power();
    case FAULT_DEATHS:
        SOMETIMES(DEATH);
        end_killed();
    case FAULT_MIDWAY:
        disk_fail((struct disk_faults){.dies_after = 1 + dice_below(&saga->dice, 14)});
        break;
    case FAULT_SYNCS: /* once, or as often as it is tried */
        life.once = dice_below(&saga->dice, 2);
        disk_fail((struct disk_faults){.sync_fails = 1000, .times = life.once});
        break;
    case FAULT_THROUGHS:
        life.once = dice_below(&saga->dice, 2);
        disk_fail((struct disk_faults){.through_fails = 1000, .times = life.once});
        break;
    case FAULT_FULL:
        disk_fail((struct disk_faults){.sync_fails = 1000, .code = ENOSPC});
        break;
    case FAULT_CLOCKS:
        leap();
        break;
    case FAULT_STALLS:
        stall();
        break;
    case FAULT_FLOODS:
        world_flood_one(life.world, dice_draw(&saga->dice));
        break;
    case FAULT_ALLOCS:
        world_faults.memory_after = 1 + dice_below(&saga->dice, 12);
        break;
    case FAULT_ROOM:
        disk_fail((struct disk_faults){.room_fails = 1000, .times = 1 + dice_below(&saga->dice, 4)});
        break;
    default:
        break;
    }
}

static void plan_next(enum fault_kind kind)
{
    saga->next[kind] = saga->steps + 1 + dice_below(&saga->dice, 2 * saga->knobs.strikes[kind] + 1);
}

static void let_faults_happen(void)
{
    for (uint32_t left = saga->faults & FAULTS_PLANNED; left && saga->phase == PHASE_SAFETY;
         left &= left - 1) {
        enum fault_kind kind = (enum fault_kind)__builtin_ctz(left);
        if (saga->next[kind] == 0)
            plan_next(kind);
        if (saga->steps < saga->next[kind])
            continue;
        plan_next(kind);
        saga->strikes++;
        strike(kind);
    }
}

static void set_world_faults(void)
{
    uint32_t rate = saga->knobs.strikes[FAULT_HALVES];
    world_faults.send_halves = saga_on(FAULT_HALVES) ? rate : 0;
    world_faults.send_waits = saga_on(FAULT_HALVES) ? rate / 2 : 0;
    world_faults.accept_fails = saga_on(FAULT_ACCEPTS) ? saga->knobs.strikes[FAULT_ACCEPTS] : 0;
    world_faults.memory_after = 0;
}

/* ---- what a step has brought ---- */

static void note_disk(void)
{
    if (disk_dead()) {
        SOMETIMES(MIDWAY);
        end_somehow();
    }
    if (disk_failed_syncs() > life.failed_syncs) {
        life.failed_syncs = disk_failed_syncs();
        SOMETIMES(SYNC_FAILED);
        if (life.once)
            SOMETIMES(SYNC_FAILED_ONCE);
        disk_fail((struct disk_faults){0});
    }
    if (disk_failed_rooms() > life.failed_rooms) {
        life.failed_rooms = disk_failed_rooms();
        SOMETIMES(NO_ROOM);
    }
}

/* A sync that failed has dropped what it was for; a second one that succeeds lies. */
static void note_failure(int code)
{
    if (life.world && code != ENOSPC && life.broken == NEVER_BROKEN)
        life.broken = (int64_t)atomic_load(&world_store(life.world)->commits);
}

static void judge_broken(void)
{
    int64_t commits =
        life.broken == NEVER_BROKEN ? 0 : (int64_t)atomic_load(&world_store(life.world)->commits);
    if (life.broken != NEVER_BROKEN && commits > life.broken)
        saga_violate("a sync failed after %lld commits, and there are %lld (S3)", (long long)life.broken,
                     (long long)commits);
}

static void judge_tree(void)
{
    const struct warden *w = world_warden(life.world);
    const char *finding = world_finding(life.world);
    if (*finding)
        saga_violate("the tree: %s", finding);
    saga->seen[SOMETIMES_ESCALATED] += w->escalations - life.escalations;
    saga->seen[SOMETIMES_ORPHANED] += w->doubts - life.doubts;
    saga->seen[SOMETIMES_ENDED_IN_ORDER] += w->endings - life.endings;
    life.escalations = w->escalations;
    life.doubts = w->doubts;
    life.endings = w->endings;
}

/* Somebody runs and runs: that is seen by steps, so each seed says it at the same place. */
static void judge_standstill(void)
{
    if (saga->now != life.still_since) {
        life.still_since = saga->now;
        life.still_steps = 0;
    }
    if (++life.still_steps > STILL_STEPS_MAX)
        saga_violate("the process hangs: %u steps, and no time goes by", STILL_STEPS_MAX);
}

/* And within a step by its time on the processor: then the process ends by SIGVTALRM (chaos/sim.c). */
static void breathe(void)
{
    const struct itimerval limit = {.it_value = {.tv_sec = BREATH_SECONDS}};
    (void)setitimer(ITIMER_VIRTUAL, &limit, NULL);
}

static void note_end(void)
{
    int status = world_exit_status(life.world);
    if (status < 0)
        return;
    if (!saga_explains(status)) {
        saga_violate("the server ended by itself with status %d", status);
        end(ENDING_VIOLATED);
    }
    if (status == RUNTIME_EXIT_EXHAUSTED)
        SOMETIMES(EXHAUSTED);
    else
        SOMETIMES(ABANDONED);
    end_somehow();
}

static void note_store(void)
{
    struct store *store = world_store(life.world);
    if (atomic_load(&store->grown) > life.grown) {
        life.grown = atomic_load(&store->grown);
        life.grew_at = saga->steps;
        SOMETIMES(GROWN);
    }
    if (world_faults.accepts_failed > 0) {
        world_faults.accepts_failed = 0;
        SOMETIMES(TURNED_AWAY);
    }
    if (world_faults.memory_failed > 0) {
        world_faults.memory_failed = 0;
        SOMETIMES(NO_MEMORY);
    }
    if (world_flooded(life.world))
        SOMETIMES(FLOODED);
    if (views_count(store))
        saga_violate("a view of the store is open while nobody runs (A4, S4)");
    bool tight = store_state(store) == STORE_TIGHT;
    if (tight && !life.tight)
        SOMETIMES(TIGHT);
    if (!tight && life.tight && store_state(store) == STORE_OPEN)
        SOMETIMES(ROOM_AGAIN);
    life.tight = tight;
}

/* ---- phases ---- */

/* A store that may not grow stays full: it is started again with a setting that lets it. */
static void give_room(void)
{
    if (saga->knobs.store.map_max >= ROOM_BYTES)
        return;
    saga->knobs.store.map_max = ROOM_BYTES;
    end_killed();
}

static void enter(enum phase phase)
{
    saga->phase = phase;
    set_world_faults();
    if (phase == PHASE_HEAL) {
        disk_fail((struct disk_faults){0});
        saga->heal_began = saga->now;
        if (saga->wall_ns != saga->wall_most_ns) /* what was put off by the calendar isn't waited for a day */
            move_wall(saga->wall_most_ns - saga->wall_ns);
        saga->deadline = saga->now + HEAL_LIMIT_S * NS_PER_S;
        for (uint32_t i = 0; i < saga->patrons_count; i++)
            saga->patrons[i].hang_at = 0;
        give_room();
    }
}

static void tell_stuck(void)
{
    char text[300];
    patrons_tell(text, sizeof(text));
    saga_violate("not at rest after %llu s without faults; the store is %s; %u deliveries are on their "
                 "way;%s (J6, O2)",
                 (unsigned long long)((saga->now - saga->heal_began) / NS_PER_S),
                 store_state_name(store_state(world_store(life.world))),
                 auditor_pending(world_store(life.world)), text);
}

/* ---- days ---- */

/* Its own: pages of the store's file that are mapped are the file's, which is compared, too. */
static uint64_t resident(void)
{
    unsigned long pages = 0, all = 0, shared = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    bool good = f && fscanf(f, "%lu %lu %lu", &all, &pages, &shared) == 3;
    if (f)
        (void)fclose(f);
    return good ? (pages - shared) * DISK_PAGE : 0;
}

/* Rings of telemetry and the like take their whole memory in weeks, and then no more. Over days all of it is there from the beginning, so
 * what comes to it is growth. Pools of many megabytes are left as they are: most of them is never used. */
static void settle_memory(void)
{
    uintptr_t from, to;
    char mode[8], line[400];
    unsigned long inode;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s %*s %*s %lu", &from, &to, mode, &inode) == 4 &&
            strcmp(mode, "rw-p") == 0 && inode == 0 && to - from <= RING_BYTES)
            (void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
    if (f)
        (void)fclose(f);
}

static uint64_t descriptors(void)
{
    uint64_t count = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (dir && readdir(dir))
        count++;
    if (dir)
        (void)closedir(dir);
    for (uint32_t i = 0; i < saga->patrons_count; i++)
        count -= saga->patrons[i].fd >= 0 ? 2 : 0; /* both ends of a connection that a client keeps */
    return count;
}

static struct weight weigh(void)
{
    struct runtime_stats stats;
    struct stat file = {.st_size = 0};
    char path[WORLD_PATH_MAX * 2];
    snprintf(path, sizeof(path), "%s/data.mdb", life.store);
    (void)stat(path, &file);
    runtime_stats(sim_runtime(world_sim(life.world)), &stats);
    return (struct weight){.file = (uint64_t)file.st_size,
                           .memory = resident(),
                           .descriptors = descriptors(),
                           .timers = stats.timers,
                           .records = stats.records,
                           .actors = stats.actors};
}

/* Within 1 % and `more` of the most that it was in the first days. */
static void compare(const char *what, uint64_t then, uint64_t now, uint64_t more)
{
    if (now > then + then / 100 + more)
        saga_violate("%s: %llu at the end, and %llu at most in the first %u days (G19)", what,
                     (unsigned long long)now, (unsigned long long)then, (unsigned)WARM_DAYS);
}

static void raise_to(uint64_t *most, uint64_t now)
{
    *most = now > *most ? now : *most;
}

static void note_weight(struct weight *most, const struct weight *now)
{
    raise_to(&most->file, now->file);
    raise_to(&most->memory, now->memory);
    raise_to(&most->descriptors, now->descriptors);
    raise_to(&most->timers, now->timers);
    raise_to(&most->records, now->records);
    raise_to(&most->actors, now->actors);
}

/* The file of a store of a megabyte grows by whole steps, each of which is more than 1 %: two of them are let pass. */
static void compare_weights(const struct weight *then, const struct weight *now)
{
    compare("file size", then->file, now->file, 2 * saga->knobs.store.step);
    compare("memory", then->memory, now->memory, 0);
    compare("descriptors", then->descriptors, now->descriptors, 0);
    compare("timers", then->timers, now->timers, WAITING_TIMERS);
    compare("records", then->records, now->records, 0);
    compare("actors", then->actors, now->actors, 0);
}

/* True: another day follows. From day to day there is less that was never used before. */
static bool next_day(void)
{
    saga->day++;
    saga->weight_now = weigh();
    if (saga->options.loud)
        fprintf(stderr,
                "day %u: file %llu, memory %llu, descriptors %llu, timers %llu, records %llu, actors %llu\n",
                saga->day, (unsigned long long)saga->weight_now.file,
                (unsigned long long)saga->weight_now.memory, (unsigned long long)saga->weight_now.descriptors,
                (unsigned long long)saga->weight_now.timers, (unsigned long long)saga->weight_now.records,
                (unsigned long long)saga->weight_now.actors);
    if (saga->day <= WARM_DAYS)
        note_weight(&saga->weight_then, &saga->weight_now);
    if (saga->day < saga->options.days) {
        patrons_forget();
        sim_clock_advance(world_sim(life.world), DAY_S * NS_PER_S);
        saga->safety = 0;
        memset(saga->next, 0, sizeof(saga->next));
        enter(PHASE_SAFETY);
        return true;
    }
    compare_weights(&saga->weight_then, &saga->weight_now);
    return false;
}

static void go_on(void)
{
    struct store *store = world_store(life.world);
    if (saga->phase == PHASE_SETUP && patrons_ready())
        enter(PHASE_SAFETY);
    if (saga->phase == PHASE_SAFETY && saga->safety >= saga->knobs.safety_steps)
        enter(PHASE_HEAL);
    if (saga->phase == PHASE_HEAL && saga->now > saga->deadline)
        tell_stuck();
    if (saga->phase != PHASE_HEAL || saga->steps % REST_LOOK_STEPS || !patrons_rest() ||
        auditor_pending(store) || warden_waits(world_warden(life.world), saga->now))
        return;
    auditor_rows(store, "at rest");
    auditor_orders(store, saga->numbers == 0);
    world_rest(life.world);
    judge_tree();
    if (saga->faults)
        SOMETIMES(HEALED);
    if (saga->options.days && next_day())
        return;
    saga->phase = saga->options.days ? PHASE_DONE : PHASE_CHECK;
    if (saga->options.days)
        end(ENDING_DONE);
    end_by_power();
}

/* ---- the loop ---- */

static bool outside_step(void)
{
    struct saga *s = saga;
    bool any = receiver_step(&s->receiver, life.world);
    return patron_step(&s->patrons[dice_below(&s->dice, s->patrons_count)]) || any;
}

static bool everybody_outside(void)
{
    bool any = receiver_step(&saga->receiver, life.world);
    for (uint32_t i = 0; i < saga->patrons_count; i++)
        any |= patron_step(&saga->patrons[i]);
    return any;
}

/* Nobody can do anything now. */
static void wait(void)
{
    uint64_t until = receiver_next(&saga->receiver);
    for (uint32_t i = 0; i < saga->patrons_count; i++) {
        uint64_t next = patron_next(&saga->patrons[i]);
        until = next < until ? next : until;
    }
    if (until > saga->now + 3600 * NS_PER_S)
        until = saga->now + 3600 * NS_PER_S;
    world_wait(life.world, until > saga->now ? until : saga->now + 1);
}

static void step(void)
{
    saga->now = world_now(life.world);
    saga->steps++;
    saga->safety += saga->phase == PHASE_SAFETY;
    if (saga->phase == PHASE_SAFETY)
        let_faults_happen();
    saga->now = world_now(life.world);
    if (dice_below(&saga->dice, OUTSIDE_TURNS) == 0)
        (void)outside_step();
    else if (!world_step(life.world) && !everybody_outside())
        wait();
    judge_tree();
    judge_broken();
    judge_standstill();
    note_disk();
    note_end();
    follow_disk();
    if (saga->steps % BREATH_STEPS == 0)
        breathe();
    if (saga->steps % 16 == 0) {
        note_store();
        note_killed();
    }
}

static void look_now_and_then(uint64_t *commits)
{
    struct store *store = world_store(life.world);
    uint64_t now = atomic_load(&store->commits);
    if (now == *commits || store_state(store) == STORE_FAILED)
        return;
    *commits = now;
    if (dice_below(&saga->dice, 40) == 0) {
        auditor_rows(store, "after a commit");
        auditor_orders(store, false);
    }
}

/* Standard error is a file: as boot has it, whoever logs needn't ask whether somebody reads. */
static void begin_words(void)
{
    int fd = saga->options.loud ? -1 : open(life.last_words, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0) {
        (void)dup2(fd, STDERR_FILENO);
        close(fd);
    }
    log_open(LOG_INFO);
}

_Noreturn void life_run(void)
{
    uint64_t commits = 0;
    breathe();
    saga->life++;
    saga->answered = false;
    saga->began = saga->now;
    saga->figures.lives++;
    begin_words();
    if (saga->options.days) /* memory is looked at by its mappings */
        ground_leave();
    if (!begin_disk()) {
        saga_violate("the harness: what was left can't be brought back: %s", strerror(errno));
        end(ENDING_VIOLATED);
    }
    world_on_fetch(receiver_take);
    disk_on_failure(note_failure);
    world_faults.dice = dice_of(saga->options.seed ^ (uint64_t)saga->life << 32);
    set_world_faults();
    open_world();
    auditor_rows(world_store(life.world), "at the start");
    auditor_orders(world_store(life.world), saga->phase == PHASE_CHECK);
    if (saga->options.days)
        settle_memory();
    if (saga->phase == PHASE_CHECK) {
        char data[WORLD_PATH_MAX * 2];
        snprintf(data, sizeof(data), "%s/data.mdb", life.store);
        auditor_damage(world_store(life.world), data, &saga->dice);
        saga->phase = PHASE_DONE;
        end(ENDING_DONE);
    }
    for (uint64_t steps = 0; !saga_violated(); steps++) {
        step();
        look_now_and_then(&commits);
        go_on();
        if (steps > LIFE_STEPS_MAX * (1ull + saga->options.days))
            tell_stuck();
    }
    end(ENDING_VIOLATED);
}
