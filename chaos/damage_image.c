#include "chaos/damage_image.h"

#include <string.h>

#include "chaos/dice.h"

enum { META_END = 152, /* of a meta page: what counts in it */ FLIPS_MAX = 64 };

static void flip(struct image *image, struct dice *dice, size_t at)
{
    image->data[at] ^= (uint8_t)(1u << dice_below(dice, 8));
}

static size_t page_pick(struct dice *dice)
{
    return dice_below(dice, (uint32_t)(truth.used / TRUTH_PAGE)) * (size_t)TRUTH_PAGE;
}

static void hit_bit(struct image *image, struct dice *dice)
{
    flip(image, dice, dice_below(dice, (uint32_t)truth.used));
}

static void hit_bits(struct image *image, struct dice *dice)
{
    uint32_t count = 2 + dice_below(dice, FLIPS_MAX - 1);
    for (uint32_t i = 0; i < count; i++)
        hit_bit(image, dice);
}

static void hit_meta(struct image *image, struct dice *dice)
{
    uint32_t count = 1 + dice_below(dice, 4);
    for (uint32_t i = 0; i < count; i++)
        flip(image, dice, dice_below(dice, 2) * TRUTH_PAGE + dice_below(dice, META_END));
}

/* The number of a transaction, which says which of the two states counts. */
static void hit_number(struct image *image, struct dice *dice)
{
    flip(image, dice, dice_below(dice, 2) * TRUTH_PAGE + META_END - 8 + dice_below(dice, 2));
}

/* Where pages say what they are and where their nodes stand. */
static void hit_head(struct image *image, struct dice *dice)
{
    uint32_t count = 1 + dice_below(dice, 4);
    for (uint32_t i = 0; i < count; i++)
        flip(image, dice, page_pick(dice) + dice_below(dice, 64));
}

static void hit_length(struct image *image, struct dice *dice)
{
    image->size = dice_below(dice, (uint32_t)image->size);
}

static void hit_pages_cut(struct image *image, struct dice *dice)
{
    image->size = page_pick(dice);
}

static void hit_all(struct image *image, struct dice *dice)
{
    (void)dice;
    image->size = 0;
}

static void hit_zeros(struct image *image, struct dice *dice)
{
    memset(image->data + page_pick(dice), 0, TRUTH_PAGE);
}

static void hit_noise(struct image *image, struct dice *dice)
{
    size_t page = page_pick(dice), sectors = 1 + dice_below(dice, TRUTH_PAGE / 512);
    size_t from = dice_below(dice, (uint32_t)(TRUTH_PAGE / 512 - sectors + 1)) * 512;
    for (size_t i = 0; i < sectors * 512; i++)
        image->data[page + from + i] = (uint8_t)dice_draw(dice);
}

static void hit_swap(struct image *image, struct dice *dice)
{
    uint8_t page[TRUTH_PAGE];
    size_t one = page_pick(dice), other = page_pick(dice);
    memcpy(page, image->data + one, TRUTH_PAGE);
    memcpy(image->data + one, image->data + other, TRUTH_PAGE);
    memcpy(image->data + other, page, TRUTH_PAGE);
}

static void hit_stale(struct image *image, struct dice *dice)
{
    uint32_t count = 1 + dice_below(dice, 3);
    for (uint32_t i = 0; i < count; i++) {
        size_t page = page_pick(dice);
        /* Both meta pages would be the whole of an earlier state, perhaps. */
        if (page + TRUTH_PAGE <= truth.earlier.size && page >= (i > 0 ? 2 * TRUTH_PAGE : 0))
            memcpy(image->data + page, truth.earlier.at + page, TRUTH_PAGE);
    }
}

static void replace(struct image *image, const void *bytes, size_t size)
{
    image->size = size < TRUTH_FILE_MAX ? size : TRUTH_FILE_MAX;
    memcpy(image->data, bytes, image->size);
}

static void hit_foreign(struct image *image, struct dice *dice)
{
    static struct bytes self;
    static const char text[] = "This is not a store.\n";
    if (!self.at)
        self = truth_read("/proc/self/exe");
    switch (dice_below(dice, 4)) {
    case 0:
        replace(image, text, sizeof(text) - 1);
        break;
    case 1:
        replace(image, self.at, self.size);
        break;
    case 2:
        memset(image->data, (int)dice_below(dice, 2) * 255, image->size);
        break;
    default:
        for (size_t i = 0; i < 3 * TRUTH_PAGE; i++)
            image->data[i] = (uint8_t)dice_draw(dice);
        image->size = 3 * TRUTH_PAGE;
    }
}

static void hit_stranger(struct image *image, struct dice *dice)
{
    (void)dice;
    replace(image, truth.stranger.at, truth.stranger.size);
}

static void hit_sibling(struct image *image, struct dice *dice)
{
    (void)dice;
    replace(image, truth.sibling.at, truth.sibling.size);
}

static void hit_gone(struct image *image, struct dice *dice)
{
    (void)dice;
    image->data_gone = true;
}

static void hit_lock_gone(struct image *image, struct dice *dice)
{
    (void)dice;
    image->lock_gone = true;
}

/* ---- which ---- */

static const struct {
    const char *name;
    uint32_t share;
    void (*hit)(struct image *, struct dice *);
} kinds[KIND_COUNT] = {
#define X(name, share, hit) [KIND_##name] = {#name, share, hit},
    IMAGES_KINDS(X)
#undef X
};
#define X(name, share, hit) +(share)
STATIC_ASSERT(IMAGES_KINDS(X) == 1000, "the shares are those of all images");
#undef X

const char *image_kind_name(enum kind kind)
{
    return kinds[kind].name;
}

static enum kind kind_pick(struct dice *dice)
{
    uint32_t at = dice_below(dice, 1000), kind = 0;
    while (at >= kinds[kind].share)
        at -= kinds[kind++].share;
    return (enum kind)kind;
}

enum kind image_make(struct image *image, uint64_t seed, uint64_t number)
{
    struct dice first = dice_of(seed * UINT64_C(1000000007) + number);
    struct dice dice =
        dice_of(dice_draw(&first)); /* else the next image's draws are this one's but for the first */
    enum kind kind = kind_pick(&dice);
    memcpy(image->data, truth.data.at, truth.data.size);
    image->size = truth.data.size;
    image->data_gone = image->lock_gone = false;
    kinds[kind].hit(image, &dice);
    return kind;
}

void image_place(const struct image *image)
{
    truth_clear();
    if (!image->data_gone)
        truth_write(truth_path("data.mdb"), image->data, image->size);
    if (!image->lock_gone)
        truth_write(truth_path("coppice.lock"), truth.lock.at, truth.lock.size);
}
