#include "chaos/stage.h"

#include <stdlib.h>
#include <string.h>

#include "chaos/book.h"
#include "chaos/brief.h"
#include "chaos/errand.h"
#include "chaos/play.h"
#include "chaos/refusal.h"
#include "chaos/verdict.h"

/* Another client, which takes its only key back. */
static void revoke(struct stage *stage)
{
    struct caller third;
    char path[128], body[80];
    if (!caller_enter(&third))
        return;
    snprintf(path, sizeof(path), "/v1/clients/%s/keys/revoke", third.id);
    snprintf(body, sizeof(body), "{\"key_id\":\"%s\"}", third.key_id);
    const struct call call = {
        .operation = TIME_REVOKE_KEY, .method = "POST", .path = path, .body = span_text(body)};
    struct letter answer;
    int status = caller_call(&third, &call, &answer);
    VERDICT_CASE("JOB-092 JOB-128 revoke", status == 200 && strcmp(answer.body, "{\"revoked\":true}") == 0,
                 "%d %.200s", status, answer.body ? answer.body : "");
    letter_free(&answer);
    memcpy(stage->revoked, third.bearer, sizeof(stage->revoked));
    caller_leave(&third);
}

static struct errand *far_job(struct stage *stage, struct dice *dice)
{
    struct errand *e = play_errand(stage, KIND_SCHEDULED_FAR_FUTURE, dice);
    play_schedule(e, UINT64_C(86400) * 1000);
    if (errand_submit(e))
        memcpy(stage->job, e->id, sizeof(stage->job));
    return e;
}

/* It is as it was, whatever was asked of it; then it goes. */
static void end_job(struct errand *e)
{
    if (!e->entry || !errand_look(e))
        return;
    VERDICT(ENDS, e->state == STATE_CREATED && e->attempt == 1, "%s is %s after all that was refused", e->id,
            state_name(e->state));
    if (errand_cancel(e) == STATE_CANCELED && errand_look(e))
        errand_judge(e);
    errand_end(e);
}

void stage_round(uint64_t seed)
{
    struct stage *stage = calloc(1, sizeof(*stage));
    struct dice dice = dice_of(seed);
    if (!stage)
        exit(2);
    if (caller_enter(&stage->client) && caller_enter(&stage->other)) {
        struct errand *far = far_job(stage, &dice);
        revoke(stage);
        refusal_all(stage);
        play_all(stage, &dice);
        end_job(far);
        free(far);
        book_judge_list(&stage->client);
        book_judge_list(&stage->other);
    }
    caller_leave(&stage->client);
    caller_leave(&stage->other);
    free(stage);
}
