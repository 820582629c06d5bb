/* Groups: named sets of pids, as OTP's pg has them.
 *
 * A group exists while it has a member. A pid may join a group several times: it is then in it several times,
 * appears in the members as often, and has to leave as often. The members stand in the order in which they
 * joined; what was counted or copied under one call is one consistent state. Groups know nothing of actors:
 * whether a pid is alive is the caller's business, and so is groups_leave_all for one that dies.
 *
 * To broadcast, copy the members and send to the copy. Who joined after the copy gets nothing, who left may
 * still get the message, as with pg.
 *
 * Who may call: any thread. Every call takes one mutex and waits for nothing else. It is held for some
 * hundred nanoseconds; for copies, 2 ns per member looked at (measured: 100,000 members, joined one after the
 * other, in 0.18 ms); for leaving a group, in proportion to the memberships of that one pid. groups_leave_all
 * releases it after every 64.
 *
 * Limits: chosen at creation, when address space for all is reserved; it is touched when first needed and
 * reused ever after. 128 bytes per group (name 96, list 16, chain 16), 40 per membership (24 and chain 16).
 */
#ifndef COPPICE_RUNTIME_GROUPS_H
#define COPPICE_RUNTIME_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GROUP_BYTES_MAX       96
#define GROUPS_COUNT_MAX      (1u << 20)
#define GROUPS_MEMBERSHIP_MAX (1u << 26)

struct groups;

/* NULL when a limit is 0 or above its bound, or when the memory cannot be reserved. */
struct groups *groups_create(size_t group_count_max, size_t membership_count_max);

/* Nobody may be using them any more. NULL is accepted. */
void groups_destroy(struct groups *groups);

/* Puts pid at the end of the group, once more if it is in it already.
 *   0        done
 *   -EINVAL  the name is empty, longer than GROUP_BYTES_MAX or has a NUL in it, or pid is 0
 *   -ENOSPC  a limit is reached; nothing has changed */
int groups_join(struct groups *groups, const char *name, size_t length, uint64_t pid);

/* Takes out the membership that pid got last. -ENOENT when it is not in the group. */
int groups_leave(struct groups *groups, const char *name, size_t length, uint64_t pid);

/* Ends all memberships of pid, in time proportional to their number, and returns that number. Another thread
 * must not let this pid join meanwhile. */
size_t groups_leave_all(struct groups *groups, uint64_t pid);

/* Copies the members, in the order of joining, up to capacity, and returns how many there are: more than
 * capacity means that the rest was left out. pids may be NULL when capacity is 0. */
size_t groups_members(struct groups *groups, const char *name, size_t length, uint64_t *pids,
                      size_t capacity);

/* The same for the members that live on one scheduler (the top 8 bits of a pid). */
size_t groups_local_members(struct groups *groups, const char *name, size_t length, uint8_t scheduler,
                            uint64_t *pids, size_t capacity);

/* How many groups have members, and how many memberships there are in all. */
size_t groups_count(struct groups *groups);
size_t groups_membership_count(struct groups *groups);

/* Calls visit for each group, outside the lock, until it returns false. A group that has members all the
 * while is shown exactly once. The name is a copy, NUL-terminated, good during the call; visit may call
 * anything. The order depends on the history of calls alone. */
typedef bool groups_visit(void *context, const char *name, size_t length, size_t member_count);
void groups_each(struct groups *groups, groups_visit *visit, void *context);

#endif
