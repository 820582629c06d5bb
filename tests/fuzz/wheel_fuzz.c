/* The timer wheel against a sorted list: timers come out in the order of their deadlines, equal ones in the order of adding,
 * never early, and never late when somebody asks. */
#include "runtime/assert.h"
#include "runtime/wheel.h"
#include "tests/fuzz/bytes.h"

enum { TIMERS = 32 };

static struct wheel wheel;
static struct wheel_timer timers[TIMERS];
static struct wheel_timer *model[TIMERS]; /* in the order in which they must come out */
static size_t model_count;

static void model_add(struct wheel_timer *t)
{
    size_t at = model_count++;
    for (; at && model[at - 1]->deadline > t->deadline; at--)
        model[at] = model[at - 1];
    model[at] = t;
}

static void model_drop(const struct wheel_timer *t)
{
    size_t i = 0;
    while (model[i] != t)
        i++;
    memmove(&model[i], &model[i + 1], (--model_count - i) * sizeof *model);
}

/* Near and far, on and beside the borders of the wheel's digits. */
static uint64_t distance(struct bytes *input)
{
    uint8_t shape = take(input);
    unsigned shift = shape % 64;
    return shape & 0x80 ? take_n(input, 8) : (UINT64_C(1) << shift) + take(input) - (shape & 0x40 ? 2 : 1);
}

static void expire(uint64_t now, unsigned most)
{
    struct wheel_timer *t;
    while (most-- && (t = wheel_expire(&wheel, now))) {
        ASSERT(model_count && t == model[0] && t->deadline <= now && !wheel_pending(t));
        model_drop(t);
    }
    if (most + 1) /* it said that there is none */
        ASSERT(!model_count || (model[0]->deadline > now && !wheel_due(&wheel, now)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = {data, size};
    uint64_t now = take_n(&input, 8);
    memset(timers, 0, sizeof timers);
    model_count = 0;
    wheel_init(&wheel, now);
    while (input.left) {
        uint8_t op = take(&input);
        struct wheel_timer *t = &timers[op >> 3];
        uint64_t step;
        switch (op % 8) {
        case 0:
        case 1:
        case 2:
        case 3: /* anywhere, the past included */
            if (wheel_pending(t))
                break;
            step = distance(&input);
            wheel_add(&wheel, t, op % 8 == 3 ? step : now + step < now ? UINT64_MAX : now + step);
            ASSERT(wheel_pending(t));
            model_add(t);
            break;
        case 4:
            if (!wheel_pending(t))
                break;
            wheel_cancel(&wheel, t);
            ASSERT(!wheel_pending(t));
            model_drop(t);
            break;
        case 5:
            expire(now, 1 + (op >> 3));
            break;
        default:
            step = distance(&input);
            now = now + step < now ? UINT64_MAX : now + step;
            expire(now, op % 8 == 7 ? TIMERS + 1 : 0);
        }
        ASSERT(wheel_count(&wheel) == model_count);
        ASSERT(wheel_bound(&wheel) <= (model_count ? model[0]->deadline : UINT64_MAX));
        if (op & 8)
            ASSERT(wheel_next(&wheel) == (model_count ? model[0]->deadline : UINT64_MAX));
    }
    expire(UINT64_MAX, TIMERS + 1);
    ASSERT(model_count == 0);
    return 0;
}
