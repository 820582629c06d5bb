#include "store/lifecycle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "runtime/assert.h"

static const struct lifecycle_edge *edge_of(const struct lifecycle *l, uint8_t state, uint8_t event)
{
    for (uint32_t i = 0; i < l->edges_count; i++)
        if (l->edges[i].from == state && l->edges[i].event == event)
            return &l->edges[i];
    return NULL;
}

enum error lifecycle_next(const struct lifecycle *l, uint8_t state, uint8_t event, uint8_t *ret_state)
{
    if (state >= l->states_count)
        return ERR_DAMAGED;
    const struct lifecycle_edge *edge = edge_of(l, state, event);
    if (!edge)
        return ERR_TRANSITION;
    *ret_state = edge->to;
    return OK;
}

bool lifecycle_allows(const struct lifecycle *l, uint8_t from, uint8_t to)
{
    for (uint32_t i = 0; i < l->edges_count; i++)
        if (l->edges[i].from == from && l->edges[i].to == to)
            return true;
    return false;
}

bool lifecycle_terminal(const struct lifecycle *l, uint8_t state)
{
    return state < l->states_count && (l->states[state].flags & LIFECYCLE_TERMINAL);
}

const char *lifecycle_state_name(const struct lifecycle *l, uint8_t state)
{
    return state < l->states_count ? l->states[state].name : NULL;
}

const char *lifecycle_event_name(const struct lifecycle *l, uint8_t event)
{
    return event < l->events_count ? l->events[event] : NULL;
}

/* ---- sentences ---- */

/* What doesn't fit is cut off; there is always an end. */
struct sentence {
    char *text;
    size_t size, used;
};

static struct sentence sentence_in(char *text, size_t size)
{
    ASSERT(size > 0);
    text[0] = '\0';
    return (struct sentence){.text = text, .size = size};
}

__attribute__((format(printf, 2, 3))) static void say(struct sentence *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(s->text + s->used, s->size - s->used, format, arguments);
    va_end(arguments);
    size_t left = s->size - 1 - s->used;
    ASSERT(length >= 0);
    s->used += (size_t)length < left ? (size_t)length : left;
}

/* A number that the table doesn't have is shown as it is: what comes from outside may be any. */
static void say_name(struct sentence *s, const char *name, uint8_t number)
{
    if (name)
        say(s, "'%s'", name);
    else
        say(s, "%u", number);
}

size_t lifecycle_refusal(const struct lifecycle *l, uint8_t state, uint8_t event, char *text, size_t size)
{
    struct sentence s = sentence_in(text, size);
    const char *separator = "";
    say(&s, "%s: ", l->name);
    say_name(&s, lifecycle_event_name(l, event), event);
    say(&s, " is not possible in state ");
    say_name(&s, lifecycle_state_name(l, state), state);
    say(&s, "; possible: ");
    for (uint32_t i = 0; i < l->events_count; i++) {
        if (!edge_of(l, state, (uint8_t)i))
            continue;
        say(&s, "%s'%s'", separator, l->events[i]);
        separator = ", ";
    }
    if (!*separator)
        say(&s, "nothing");
    return s.used;
}

/* ---- is the table right? Each of these says what is wrong, or returns true. ---- */

static bool name_sound(const struct lifecycle *l, const char *kind, uint32_t number, const char *name,
                       const char *const *before, struct sentence *s)
{
    if (!name || !*name) {
        say(s, "%s: %s %u has no name", l->name, kind, number);
        return false;
    }
    for (uint32_t i = 0; i < number; i++) {
        if (strcmp(before[i], name) == 0) {
            say(s, "%s: %ss %u and %u are both called '%s'", l->name, kind, i, number, name);
            return false;
        }
    }
    return true;
}

static bool names_sound(const struct lifecycle *l, struct sentence *s)
{
    const char *names[LIFECYCLE_STATES_MAX];
    for (uint32_t i = 0; i < l->states_count; i++) {
        names[i] = l->states[i].name;
        if (!name_sound(l, "state", i, names[i], names, s))
            return false;
        if (l->states[i].flags & ~LIFECYCLE_TERMINAL) {
            say(s, "%s: state '%s' has a flag that doesn't exist", l->name, names[i]);
            return false;
        }
    }
    for (uint32_t i = 0; i < l->events_count; i++)
        if (!name_sound(l, "event", i, l->events[i], l->events, s))
            return false;
    return true;
}

static bool counts_sound(const struct lifecycle *l, struct sentence *s)
{
    if (l->states_count < 1 || l->states_count > LIFECYCLE_STATES_MAX)
        say(s, "%s: %u states; 1 to %u are possible", l->name, l->states_count, LIFECYCLE_STATES_MAX);
    else if (l->events_count > LIFECYCLE_EVENTS_MAX)
        say(s, "%s: %u events; at most %u are possible", l->name, l->events_count, LIFECYCLE_EVENTS_MAX);
    else
        return true;
    return false;
}

static bool edge_sound(const struct lifecycle *l, uint32_t number, struct sentence *s)
{
    const struct lifecycle_edge *edge = &l->edges[number];
    const char *from = lifecycle_state_name(l, edge->from), *event = lifecycle_event_name(l, edge->event);
    if (!from || !event || !lifecycle_state_name(l, edge->to))
        say(s, "%s: edge %u (%u, %u, %u) names a state or an event that doesn't exist", l->name, number,
            edge->from, edge->event, edge->to);
    else if (lifecycle_terminal(l, edge->from))
        say(s, "%s: '%s' leaves the terminal state '%s'", l->name, event, from);
    else if (edge_of(l, edge->from, edge->event) != edge)
        say(s, "%s: '%s' has two edges from state '%s'", l->name, event, from);
    else
        return true;
    return false;
}

/* A bit per state that some way leads to. Each round adds at least one state, or was the last. */
static uint32_t reached(const struct lifecycle *l)
{
    uint32_t states = 1, before;
    do {
        before = states;
        for (uint32_t i = 0; i < l->edges_count; i++)
            if (states & UINT32_C(1) << l->edges[i].from)
                states |= UINT32_C(1) << l->edges[i].to;
    } while (states != before);
    return states;
}

static bool states_reached(const struct lifecycle *l, struct sentence *s)
{
    uint32_t states = reached(l);
    for (uint32_t i = 0; i < l->states_count; i++) {
        if (!(states & UINT32_C(1) << i)) {
            say(s, "%s: no way leads to state '%s'", l->name, l->states[i].name);
            return false;
        }
    }
    return true;
}

bool lifecycle_check(const struct lifecycle *l, char *text, size_t size)
{
    struct sentence s = sentence_in(text, size);
    if (!l->name || !*l->name) {
        say(&s, "a lifecycle has no name");
        return false;
    }
    if (!counts_sound(l, &s) || !names_sound(l, &s))
        return false;
    for (uint32_t i = 0; i < l->edges_count; i++)
        if (!edge_sound(l, i, &s))
            return false;
    return states_reached(l, &s);
}
