#include "config/certificate.h"

#include <stdio.h>

#include "config/log.h"
#include "http/timestamp.h"
#include "runtime/env.h"

static uint64_t wall_s(void)
{
    struct env *env = env_real(); /* not one that is ahead: it is other machines that look at the dates */
    return env->wall(env) / NS_PER_S;
}

static bool good_at(struct tls_validity validity, int64_t now_s)
{
    return now_s >= validity.from_s && now_s <= validity.until_s;
}

bool certificate_in_time(struct tls_validity validity, const char *file, char *ret_text, size_t text_size)
{
    int64_t now_s = (int64_t)wall_s();
    if (good_at(validity, now_s))
        return true;
    bool expired = now_s > validity.until_s;
    int64_t when_s = expired ? validity.until_s : validity.from_s;
    char when[TIMESTAMP_SIZE];
    timestamp_format(when_s > 0 ? (uint64_t)when_s * NS_PER_S : 0, when);
    snprintf(ret_text, text_size, "certificate %s %s %s; most clients refuse it", file,
             expired ? "expired on" : "isn't valid before", when);
    return false;
}

bool certificate_may_follow(struct tls_validity validity, const char *file, char *ret_text, size_t text_size)
{
    struct tls_validity before;
    return certificate_in_time(validity, file, ret_text, text_size) || !tls_validity_here(&before) ||
           !good_at(before, (int64_t)wall_s());
}

void certificate_warn(struct tls_validity validity, const char *file)
{
    char text[640];
    if (!certificate_in_time(validity, file, text, sizeof(text)))
        LOG(LOG_WARN, "tls", text, {"file", file, 0}, {"until_s", NULL, validity.until_s});
}
