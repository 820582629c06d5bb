#include "chaos/kind.h"

#include <stddef.h>
#include <string.h>

#include "chaos/brief.h"

enum { POOL_N, POOL_S, POOL_F };

static const struct kind_row rows[KIND_SORTS] = {
#define X(name_, duration, fails_, kb, pool_, outputs_, retryable_, progress_, script) \
    [KIND_##name_] = {.name = #name_,                                                  \
                      .duration_ms = duration,                                         \
                      .payload = (kb)*1024,                                            \
                      .outputs = outputs_,                                             \
                      .progress = progress_,                                           \
                      .fails = fails_,                                                 \
                      .pool = POOL_##pool_,                                            \
                      .retryable = retryable_},
    KINDS(X)
#undef X
        [KIND_DRAWN] = {.name = "(drawn)"},
};

const struct kind_row *kind_row(int kind)
{
    return &rows[kind];
}

const char *kind_name(int kind)
{
    return rows[kind].name;
}

int kind_of(const char *name)
{
    for (int i = 0; i < KIND_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return i;
    return -1;
}

uint32_t kind_duration_ms(int kind)
{
    return kind == KIND_RUNS_OVER_TIMEOUT ? (uint32_t)brief.runtime_ms + 1000 : rows[kind].duration_ms;
}

static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

int kind_drawn_at(uint64_t created_ms)
{
    uint64_t state = created_ms;
    uint8_t pool = draw(&state) % 1000000 < brief.fail_ppm ? POOL_F : POOL_S;
    int left[KIND_COUNT] = {0};
    size_t count = 0;
    for (int i = 0; i < KIND_COUNT; i++)
        if (rows[i].pool == pool && rows[i].payload <= brief.payload_max)
            left[count++] = i;
    return count ? left[draw(&state) % count] : -1;
}
