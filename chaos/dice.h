/* Dice: chance of a harness, all of it from a seed. */
#ifndef COPPICE_CHAOS_DICE_H
#define COPPICE_CHAOS_DICE_H

#include <stdbool.h>
#include <stdint.h>

struct dice {
    uint64_t state;
};

static inline struct dice dice_of(uint64_t seed)
{
    return (struct dice){seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u};
}

/* SplitMix64. */
static inline uint64_t dice_draw(struct dice *dice)
{
    uint64_t z = dice->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0..below-1; below > 0. */
static inline uint32_t dice_below(struct dice *dice, uint32_t below)
{
    return (uint32_t)((dice_draw(dice) >> 32) * below >> 32);
}

static inline bool dice_chance(struct dice *dice, uint32_t of_thousand)
{
    return dice_below(dice, 1000) < of_thousand;
}

#endif
