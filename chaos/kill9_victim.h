/* The victim: the process of an ordeal that works on the store until it is killed.
 *
 * Its lanes submit as actors to the real writer, or one thread makes their batches itself, and then it knows which attempts
 * share a commit. It tells its parent where it is (ordeal_tell). What it was answered lies in ordeal_shared; it has nothing
 * else to leave behind.
 */
#ifndef COPPICE_CHAOS_KILL9_VICTIM_H
#define COPPICE_CHAOS_KILL9_VICTIM_H

#include <stdbool.h>

/* Never returns. closing: it makes some batches, closes the store and ends with 0. Otherwise it ends by itself only with
 * another status, and a complaint where it has one. */
_Noreturn void victim_work(bool closing);

#endif
