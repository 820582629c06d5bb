#define _GNU_SOURCE
#include "chaos/kill9_ordeal.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define DISK_SHARE 10u /* one of so many lies on the disk */
#define TWIN_SHARE 5u  /* one of so many has a twin */
#define CYCLES_MAX 60u

struct ordeal ordeal;
struct ordeal_shared *ordeal_shared;
struct ordeal_totals *ordeal_totals;

void *ordeal_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("kill9: mmap");
        exit(71);
    }
    return memory;
}

void ordeal_install(void)
{
    ordeal_shared = ordeal_memory(sizeof(*ordeal_shared));
    parcel_install();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

void ordeal_end(void)
{
    (void)nftw(ordeal.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    (void)nftw(ordeal.twin_dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static uint64_t wall_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

void ordeal_begin(const struct ordeal_place *place, enum control control, struct dice *dice)
{
    static const uint64_t maps[] = {4 << 20, 5 << 20, 8 << 20, 64 << 20};
    static const uint64_t steps[] = {64 << 10, 256 << 10, 1 << 20, 4 << 20};
    static uint64_t number;
    memset(&ordeal, 0, sizeof(ordeal));
    ordeal.number = ++number;
    ordeal.seed = dice_draw(dice);
    struct dice own = {.state = ordeal.seed};
    names_begin(ordeal.number);
    ordeal.on_disk = dice_below(&own, DISK_SHARE) == 0;
    ordeal.control = control;
    ordeal.twin = control ? control >= CONTROL_TWIN_EARLY : dice_below(&own, TWIN_SHARE) == 0;
    ordeal.actors = !control && !ordeal.twin && dice_below(&own, 2);
    ordeal.lanes_busy = control ? LANES - 1 : 1 + dice_below(&own, LANES - 1);
    ordeal.cycles = 1 + dice_below(&own, CYCLES_MAX);
    snprintf(ordeal.dir, sizeof(ordeal.dir), "%s/%u-%" PRIu64, ordeal.on_disk ? place->disk : place->memory,
             place->parent, ordeal.number);
    snprintf(ordeal.twin_dir, sizeof(ordeal.twin_dir), "%s/%u-%" PRIu64 "-twin", place->memory, place->parent,
             ordeal.number);
    ordeal.options = (struct store_options){
        .environment = {.dir = ordeal.dir,
                        .map = maps[dice_below(&own, 4)],
                        .map_max = 1 << 30,
                        .step = steps[dice_below(&own, 4)],
                        .reserve = 64 << 10},
        .schema = &parcel_store_schema,
        .ledger_max = 1 << 14,
    };
    memcpy(ordeal.options.environment.birth, &ordeal.seed,
           sizeof(ordeal.seed)); /* a twin has the same secret */
    ordeal.clock_us = wall_us();
    ordeal_end();
    ordeal_totals->twins += ordeal.twin;
    ordeal_totals->stores++;
}

void ordeal_cycle(struct dice *dice)
{
    ordeal.cycle++;
    for (uint32_t n = 0; n < LANES; n++)
        ordeal.lane[n].dice.state = dice_draw(dice);
    memset(ordeal_shared->count, 0, sizeof(ordeal_shared->count));
    ordeal_shared->batches.begun = ordeal_shared->batches.answered = 0;
    ordeal_shared->complaint[0] = 0;
    if (ordeal.actors)
        ordeal.clock_us = wall_us();
    ordeal.options.environment.must_exist = ordeal.committed;
}

struct attempt *ordeal_open(uint32_t lane)
{
    uint32_t count = ordeal_shared->count[lane];
    struct attempt *a = count ? &ordeal_shared->attempts[lane][count - 1] : NULL;
    return a && attempt_open(a) ? a : NULL;
}

bool ordeal_complain(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(ordeal_shared->complaint, sizeof(ordeal_shared->complaint), format, args);
    va_end(args);
    return false;
}

static int told_to;

void ordeal_tell_to(int fd)
{
    told_to = fd;
}

void ordeal_tell(enum ordeal_moment moment)
{
    char what = (char)moment;
    if (write(told_to, &what, 1) != 1)
        _exit(3); /* the parent has gone */
}
