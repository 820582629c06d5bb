/* Outbound: each of these actors makes the attempts of the deliveries in one partition's lanes (store/delivery.h).
 *
 *     due index --> a request, signed --> fetch --> result --> delivery.settle
 *
 * Nothing here waits for a receiver: requests are begun (actors/fetch.h), and their ends are messages. Results are settled while
 * others are under way, all that came meanwhile in one command; until its settlement is committed nobody sends a delivery again, nor
 * the next one of its job and receiver.
 *
 * Receivers are kept apart by lanes, which are hosts. One that hasn't answered so far, or didn't the last time that it was asked, is
 * unproven and has one request in hand at a time; behind its first answer it has OUTBOUND_LANE_FIRST, one more for each quick answer, up to
 * OUTBOUND_LANE_MAX, and the first again when answers get slow. All the unproven ones together have OUTBOUND_UNPROVEN_MAX, in turns, and
 * suspects, which have failed already, OUTBOUND_SUSPECTS_MAX of these; those of one client have one place less of either. So receivers that
 * hang leave room for the others, however many they are, and known or not, and whose they are.
 *
 *     in hand   OUTBOUND_HAND_MAX x DELIVERY_PARTITIONS (16) = 1,024, which is less than fetch takes (64 + 1,024)
 *     unproven  OUTBOUND_UNPROVEN_MAX x 16 = 48 of the 64 connections that fetch has at a time, of which it gives us 60
 *     a client  OUTBOUND_CLIENT_UNPROVEN_MAX x 16 = 32 of these 48
 *
 * A host that answers 429, 502, 503 or 504 asks for less: nothing at all goes to it for as long as its Retry-After says, or a time that
 * doubles like that of an attempt, up to OUTBOUND_REST_MAX_S; and then one at a time, and one more for each quick answer.
 *
 * What came of an attempt: 2xx, delivered. Anything else is a failure, redirects included, and is tried again after a time that
 * doubles (webhooks.backoff_*), not before Retry-After (up to OUTBOUND_RETRY_AFTER_MAX_S), and 1 + webhooks.max_retries times at most.
 * 410 ends it at once and disables the webhook. Trouble of our own, such as a full queue, is no attempt. webhooks.timeout runs from
 * when a request's turn has come; as long it waits for that at most, and one that has waited in vain was no attempt.
 *
 * What is made to be sent may wait for its turn; whether its webhook is still there is asked once more when that comes. So nothing begins
 * once the removal of a webhook was answered (JOB-193).
 *
 * An attempt may arrive more than once, with the same id and the same bytes: after an end of the server, of this actor or of fetch between
 * sending and settling, and when the receiver closes a kept connection without an answer (actors/fetch.h). The id tells its receiver.
 *
 * A delivery that can't be read is told of once (store.damaged, deliveries), put off, and passed by those behind it in its chain and its
 * lane: actors/strays.h.
 *
 * It keeps nothing: one that dies is started again and finds in the store what there is to do. What was in its hands is sent again,
 * with the same id and, but for its signature's time, the same bytes.
 */
#ifndef COPPICE_ACTORS_OUTBOUND_H
#define COPPICE_ACTORS_OUTBOUND_H

#include "actors/fetch.h"
#include "store/delivery.h"

#define OUTBOUND_HAND_MAX   64u  /* requests of a partition that fetch has */
#define OUTBOUND_FLIGHTS    192u /* and results that are being settled */
#define OUTBOUND_LANE_FIRST 2u
#define OUTBOUND_LANE_MAX \
    FETCH_HOST_MAX /* more would wait there, signed already, for what may change meanwhile */
#define OUTBOUND_UNPROVEN_MAX        3u
#define OUTBOUND_SUSPECTS_MAX        2u /* among them */
#define OUTBOUND_CLIENT_UNPROVEN_MAX 2u
#define OUTBOUND_CLIENT_SUSPECTS_MAX 1u
#define OUTBOUND_SKIP_MAX \
    16u /* of a lane that can't be begun just now, as their rows can't be read: those behind them are (actors/strays.h) */
#define OUTBOUND_LANES_KEPT        256u   /* of which something is remembered: more than there are flights */
#define OUTBOUND_ANSWER_MAX        16000u /* bytes of an answer's body; more is a failure */
#define OUTBOUND_RETRY_AFTER_MAX_S 86400u
#define OUTBOUND_REST_MAX_S        600u /* that a whole host is left alone, as it has asked */
#define OUTBOUND_QUICK_PART \
    8u /* of the time that an answer may take: quicker is quick, slower than twice that is slow */
#define OUTBOUND_LOOK_MS        2000u
#define OUTBOUND_SETTLE_LOOK_MS 20u /* for an answer of the store that nobody has told of */
#define OUTBOUND_TROUBLE_MS     1000u
#define OUTBOUND_GRACE_MS       5000u /* beyond its time: then fetch's message is taken for lost */
#define OUTBOUND_FAR_US         (UINT64_C(2) * 86400 * 1000000) /* nothing waits that long: a clock was wrong */
STATIC_ASSERT(OUTBOUND_HAND_MAX *DELIVERY_PARTITIONS <= FETCH_MAX + FETCH_QUEUE_MAX - 64u,
              "what is in hand doesn't fill fetch's queue");
STATIC_ASSERT(OUTBOUND_UNPROVEN_MAX *DELIVERY_PARTITIONS + 16 <= FETCH_MAX,
              "a quarter of the connections is for the others");
STATIC_ASSERT(OUTBOUND_UNPROVEN_MAX *DELIVERY_PARTITIONS < FETCH_TIMED_MAX, "and some for proven receivers");
STATIC_ASSERT(OUTBOUND_SUSPECTS_MAX < OUTBOUND_UNPROVEN_MAX, "a new one doesn't wait for suspects");
STATIC_ASSERT(OUTBOUND_CLIENT_UNPROVEN_MAX < OUTBOUND_UNPROVEN_MAX &&
                  OUTBOUND_CLIENT_SUSPECTS_MAX < OUTBOUND_SUSPECTS_MAX &&
                  OUTBOUND_CLIENT_SUSPECTS_MAX < OUTBOUND_CLIENT_UNPROVEN_MAX,
              "nor for those of one client");
STATIC_ASSERT(OUTBOUND_LANES_KEPT > OUTBOUND_FLIGHTS, "one that nobody needs can be forgotten");
STATIC_ASSERT(OUTBOUND_FLIGHTS - OUTBOUND_HAND_MAX >= DELIVERY_RESULTS_MAX,
              "a whole command of results beside them");

struct outbound_args {
    uint32_t partition;
    /* How requests are begun; NULL: fetch_begin. It must be followed by FETCH_DONE, as there. */
    enum error (*begin)(const struct fetch_request *request, uint64_t *ret_ref, uint64_t deadline);
};

/* args: its partition, u32; or a struct outbound_args. */
extern const struct actor_class outbound_class;

#endif
