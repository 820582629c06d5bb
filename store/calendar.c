#include "store/calendar.h"

static int64_t least_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void calendar_open(struct calendar *c, uint64_t elapsed, uint64_t wall, uint64_t retained)
{
    uint64_t believed = retained && retained < wall ? retained : wall;
    c->least[0] = c->least[1] = (int64_t)(believed - elapsed);
    c->began = elapsed;
    c->open = true;
}

/* In stretches of CALENDAR_TRUST_S: the least of this one and the one before has been true for that long at least. */
uint64_t calendar_time(struct calendar *c, uint64_t elapsed, uint64_t wall)
{
    int64_t ahead = (int64_t)(wall - elapsed);
    if (elapsed - c->began >= CALENDAR_TRUST_S * UINT64_C(1000000)) {
        c->least[1] = c->least[0];
        c->least[0] = ahead;
        c->began = elapsed;
    }
    c->least[0] = least_of(c->least[0], ahead);
    return elapsed + (uint64_t)least_of(c->least[0], c->least[1]);
}
