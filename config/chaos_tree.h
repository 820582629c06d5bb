/* The living tree as an operator sees it, before and after: who died, who stands in their places, who was untouched. Connections
 * come and go with their clients, so they aren't among them. One thread; blocks. */
#ifndef COPPICE_CONFIG_CHAOS_TREE_H
#define COPPICE_CONFIG_CHAOS_TREE_H

#include "config/client.h"

enum {
    CHAOS_PLACES_MAX =
        2048, /* LIVING_LIST_MAX of a class, 512 other partitions (config/plan.c), and the rest */
    CHAOS_PLACE_NAME = 64,
    CHAOS_PATH_MAX = 192
};

struct chaos_place {
    char name[CHAOS_PLACE_NAME], path[CHAOS_PATH_MAX], pid[24], class[CHAOS_PLACE_NAME];
    bool supervises;
    uint32_t hidden;                    /* of its children, not seen */
    uint32_t used, restarts, period_ms; /* of its budget, when it does */
    bool expected;                      /* of a tree before: to be another one afterwards */
};
struct chaos_tree {
    struct chaos_place places[CHAOS_PLACES_MAX];
    uint32_t count;
    /* Somebody below whom not all were seen, because he didn't answer or there are too many; "": all were. `crowded`: too many, which
     * another look doesn't change. */
    char unseen[CHAOS_PLACE_NAME];
    bool crowded;
    uint32_t empty; /* declared ones in which nobody lives */
    /* and the process */
    uint64_t pid, open_fds, resident_bytes, restarts;
    char started[40];
};

/* False: it can't be had, and why. */
bool chaos_tree_look(struct chaos_tree *ret, const struct client *operator, char * ret_why, size_t why_size);
/* NULL: there is no such place. */
const struct chaos_place *chaos_tree_find(const struct chaos_tree *tree, const char *path);
/* This one, and with `below` all under it, by its name or its path. How many those are. */
uint32_t chaos_tree_expect(struct chaos_tree *before, const char *who, bool below);

#endif
