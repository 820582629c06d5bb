/* The webhooks' and deliveries' part of the workload: put and removed, told of jobs' events by the relay, settled and sent again. */
#ifndef COPPICE_CHAOS_WORKLOAD_HOOKS_H
#define COPPICE_CHAOS_WORKLOAD_HOOKS_H

#include "chaos/workload.h"

#define WORKLOAD_HOOK_CLASSES 7u
extern const struct command_class *const workload_hook_classes[WORKLOAD_HOOK_CLASSES];
/* False: the code is none of these. */
bool workload_draw_hook(struct workload *w, struct txn *txn, struct batch_item *item, uint16_t code);

#endif
