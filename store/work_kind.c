#include "store/work_kind.h"

#include <inttypes.h>
#include <stdio.h>

#include "runtime/assert.h"

#define KB 1024u

/* By number; the first is none. */
static const struct work_kind_row rows[] = {
#define X(number, name_, duration, failing, payload, outcome_, note_, group_, outputs_, retryable_, \
          progress)                                                                                 \
    [number] = {.name = #name_,                                                                     \
                .outcome = outcome_,                                                                \
                .note = note_,                                                                      \
                .duration_ms = duration,                                                            \
                .payload_bytes = (payload)*KB,                                                      \
                .outputs = outputs_,                                                                \
                .kind = number,                                                                     \
                .failing_attempts = failing,                                                        \
                .group = WORK_GROUP_##group_,                                                       \
                .progress_percent = progress,                                                       \
                .retryable = retryable_},
    WORK_KINDS(X)
#undef X
};
STATIC_ASSERT(sizeof(rows) / sizeof(*rows) == WORK_KINDS_COUNT + 1, "every number up to the last has a row");

const struct work_kind_row *work_kind_row(uint8_t kind)
{
    return kind != WORK_KIND_NONE && kind <= WORK_KINDS_COUNT ? &rows[kind] : NULL;
}

const struct work_kind_row *work_kind_each(size_t position)
{
    return position < WORK_KINDS_COUNT ? &rows[position + 1] : NULL;
}

uint8_t work_kind_of(struct span name)
{
    uint8_t kind = WORK_KINDS_COUNT;
    while (kind != WORK_KIND_NONE && !span_equal(name, span_text(rows[kind].name)))
        kind--;
    return kind;
}

static bool user_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool work_kind_user(struct span name)
{
    const uint32_t prefix = sizeof(WORK_KIND_USER_PREFIX) - 1;
    const char *at = name.bytes;
    if (name.size <= prefix || name.size > WORK_KIND_NAME_MAX ||
        memcmp(at, WORK_KIND_USER_PREFIX, prefix) != 0)
        return false;
    for (uint32_t i = prefix; i < name.size; i++)
        if (!user_character(at[i]))
            return false;
    return true;
}

const char *work_group_name(uint8_t group)
{
    static const char *const names[] = {
#define X(id, name) name,
        WORK_GROUPS(X)
#undef X
    };
    return group < WORK_GROUP_COUNT ? names[group] : NULL;
}

bool work_kind_fails(uint8_t kind, uint32_t attempt)
{
    const struct work_kind_row *row = work_kind_row(kind);
    ASSERT(attempt > 0);
    return row && (row->failing_attempts == WORK_ALWAYS || attempt <= row->failing_attempts);
}

void work_kind_duration_text(const struct work_kind_row *row, char text[WORK_DURATION_TEXT_SIZE])
{
    if (row->duration_ms == WORK_OVER_RUNTIME)
        snprintf(text, WORK_DURATION_TEXT_SIZE, "max_runtime+%u", WORK_OVER_RUNTIME_MS);
    else
        snprintf(text, WORK_DURATION_TEXT_SIZE, "%" PRIu32, row->duration_ms);
}

/* ---- definitions ---- */

bool work_definition_of_kind(uint8_t kind, uint32_t max_runtime_ms, struct work_definition *ret)
{
    const struct work_kind_row *row = work_kind_row(kind);
    ASSERT(max_runtime_ms <= UINT32_MAX - WORK_OVER_RUNTIME_MS);
    if (!row || row->payload_bytes == 0)
        return false;
    *ret = (struct work_definition){.kind = kind,
                                    .should_fail = row->failing_attempts > 0,
                                    .duration_ms = row->duration_ms == WORK_OVER_RUNTIME
                                                       ? max_runtime_ms + WORK_OVER_RUNTIME_MS
                                                       : row->duration_ms,
                                    .payload_bytes = row->payload_bytes};
    return true;
}

/* SplitMix64. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool in_pool(const struct work_kind_row *row, bool failure, uint32_t payload_max_bytes)
{
    bool group = failure ? row->group == WORK_GROUP_FAILURE
                         : row->group == WORK_GROUP_SUCCESS || row->group == WORK_GROUP_SLOW;
    return group && row->payload_bytes <= payload_max_bytes;
}

bool work_definition_draw(uint64_t seed_ms, uint32_t should_fail_ppm, uint32_t payload_max_bytes,
                          uint32_t max_runtime_ms, struct work_definition *ret)
{
    uint8_t pool[WORK_KINDS_COUNT];
    uint32_t count = 0;
    uint64_t state = seed_ms;
    bool failure = draw(&state) % 1000000 < should_fail_ppm;
    for (uint8_t kind = 1; kind <= WORK_KINDS_COUNT; kind++)
        if (in_pool(&rows[kind], failure, payload_max_bytes))
            pool[count++] = kind;
    return count > 0 && work_definition_of_kind(pool[draw(&state) % count], max_runtime_ms, ret);
}
