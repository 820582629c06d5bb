/* libcurl wants to be told by whoever polls: on_socket and on_timer say what it waits for, act tells it what has happened.
 * It expects level-triggered readiness and the runtime's is edge-triggered, so a descriptor that was ready is watched
 * anew after each time: watching begins with what is ready already.
 *
 * All calls of libcurl stand in guarded sections, and its callbacks run inside them. What it holds goes when the actor ends,
 * however it ends: release_all is owned. It is loaded, and the tables are made, when the first one asks (get_ready); a handle
 * is made for the first fetch that needs one more.
 */
#include "actors/fetch.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "actors/curl.h"
#include "actors/reach.h"

#define SOCKETS_MAX 256u /* of one fetch at a time: two that connect and a resolver's */
STATIC_ASSERT(SOCKETS_MAX >= FETCH_MAX * 3, "every fetch has its sockets");
#define JOBS_MAX   (FETCH_MAX + FETCH_QUEUE_MAX)
#define IDLE_MAX   256L /* connections kept for the next fetch of the same host, those in use among them */
#define METHOD_MAX 16u
#define CALL_GRACE_NS \
    (1 * NS_PER_S) /* the answer comes at the deadline; who waits for it waits a little longer */
#define NO_JOB          UINT32_MAX
#define LIBRARY_MAX     64u
#define QUICK_EXIT_FROM 0x075700 /* the first release in which a resolver's thread can be left alone */

enum {
    ASK = 1, /* struct ask, then url, headers (each with its end) and body */
    TICK,    /* libcurl's time; value: which of them */
    LATE,    /* a job's deadline, or that of its turn; value: job | serial << 32 */
};

struct ask {
    uint64_t ref, deadline, time_ns;
    uint32_t url_size, headers_size, body_size; /* the texts with their ends */
    uint32_t answer_max;
    bool any_address;
    bool (*wanted)(const void *about);
    uint8_t about[FETCH_ABOUT_SIZE];
    char method[METHOD_MAX];
};
STATIC_ASSERT(sizeof(struct ask) + FETCH_REQUEST_MAX <= MESSAGE_PAYLOAD_MAX,
              "a request travels in one message");
STATIC_ASSERT(sizeof(struct fetch_answer) + FETCH_BODY_MAX <= MESSAGE_PAYLOAD_MAX, "so does an answer");

/* One that waits or runs. */
struct job {
    struct message *ask; /* kept; NULL: the job is free */
    uint64_t host;       /* hash of scheme, host and port */
    uint64_t timer;
    uint64_t turn;   /* when it began; 0: it waits */
    uint32_t serial; /* another one for each timer, so that a LATE that was cancelled too late is known */
    uint32_t next;   /* of those that wait, or of the free ones */
    struct slot *slot;
};

/* An easy handle and what it works on. */
struct slot {
    CURL *easy;      /* NULL: not needed so far */
    struct job *job; /* NULL: idle */
    struct curl_slist *headers;
    struct message *answer; /* kept: the body is written into it as it comes */
    uint32_t body_size, answer_max, headers_size;
    bool any_address, connected;
    enum error refused; /* by one of our callbacks, and why; else OK */
    const char *why;
    char error[CURL_ERROR_SIZE];
};

struct watched {
    bool used;
    curl_socket_t fd;
    uint32_t events; /* 0: libcurl wants to know nothing just now */
    uint64_t ref;
};

struct fetcher {
    char library[LIBRARY_MAX];
    CURLM *multi;            /* NULL: nobody has fetched so far */
    struct slot *slots;      /* FETCH_MAX; NULL like the next two */
    struct job *jobs;        /* JOBS_MAX */
    struct watched *sockets; /* SOCKETS_MAX */
    uint32_t free, first, last;
    uint32_t waiting, running;
    uint32_t timed;             /* of those that run */
    uint64_t tick, tick_serial; /* the timer for libcurl */
    uint64_t due;               /* when it wants to be called; DEADLINE_NONE: not by itself */
    bool due_changed;
};

/* ---- asking ---- */

static bool sound_method(const char *method)
{
    size_t length = strlen(method);
    for (size_t i = 0; i < length; i++)
        if (method[i] < 'A' || method[i] > 'Z')
            return false;
    return length > 0 && length < METHOD_MAX;
}

static bool sound_url(const char *url)
{
    size_t length = strlen(url);
    for (size_t i = 0; i < length; i++)
        if (url[i] <= 0x20 || url[i] >= 0x7f)
            return false;
    return length > 0 && length < FETCH_URL_MAX;
}

/* Lines of a name, a colon and a value, without anything that could become another line. */
static bool sound_headers(const char *headers)
{
    while (*headers) {
        const char *end = strchr(headers, '\n');
        const char *colon = strchr(headers, ':');
        if (!end || !colon || colon > end || colon == headers)
            return false;
        for (const char *at = headers; at < end; at++)
            if ((unsigned char)*at < 0x20 || *at == 0x7f || (at < colon && *at == ' '))
                return false;
        headers = end + 1;
    }
    return true;
}

static enum error make_ask(const struct fetch_request *request, uint64_t ref, uint64_t deadline,
                           struct message **ret)
{
    const char *headers = request->headers ? request->headers : "";
    size_t headers_size = strlen(headers) + 1;
    if (!sound_method(request->method) || !sound_url(request->url) || !sound_headers(headers))
        return ERR_INVALID;
    size_t url_size = strlen(request->url) + 1;
    if (headers_size > FETCH_HEADERS_MAX || request->body_size > FETCH_REQUEST_MAX ||
        url_size + headers_size + request->body_size > FETCH_REQUEST_MAX ||
        request->answer_max > FETCH_BODY_MAX)
        return ERR_INVALID;
    struct ask ask = {.ref = ref,
                      .deadline = deadline,
                      .time_ns = request->time_ns,
                      .url_size = (uint32_t)url_size,
                      .headers_size = (uint32_t)headers_size,
                      .body_size = (uint32_t)request->body_size,
                      .answer_max = request->answer_max,
                      .any_address = request->any_address,
                      .wanted = request->wanted};
    memcpy(ask.about, request->about, sizeof(ask.about));
    memcpy(ask.method, request->method, strlen(request->method) + 1);
    struct message *m = message_new(ASK, sizeof(ask) + url_size + headers_size + request->body_size);
    if (!m)
        return ERR_MEMORY;
    unsigned char *at = m->payload;
    memcpy(at, &ask, sizeof(ask));
    memcpy(at += sizeof(ask), request->url, url_size);
    memcpy(at += url_size, headers, headers_size);
    if (request->body_size)
        memcpy(at + headers_size, request->body, request->body_size);
    *ret = m;
    return OK;
}

static enum error failed(struct fetch_answer *ret_answer, enum error e)
{
    *ret_answer = (struct fetch_answer){.error = e};
    snprintf(ret_answer->why, sizeof(ret_answer->why), "%s", error_name(e));
    return e;
}

enum error fetch(const struct fetch_request *request, struct fetch_answer *ret_answer, void *room,
                 size_t size, uint64_t deadline)
{
    struct fetch_request fitting = *request;
    struct message *m, *reply = NULL;
    ASSERT(request->time_ns == 0);
    if (fitting.answer_max > size)
        fitting.answer_max = (uint32_t)size;
    enum error e = make_ask(&fitting, 0, deadline, &m);
    if (e)
        return failed(ret_answer, e);
    uint64_t patience = deadline > DEADLINE_NONE - CALL_GRACE_NS ? DEADLINE_NONE : deadline + CALL_GRACE_NS;
    e = actor_call_name(FETCH_NAME, m, &reply, patience);
    if (e) {
        if (reply)
            message_free(reply);
        return failed(ret_answer, e);
    }
    ASSERT(reply->size >= sizeof(*ret_answer));
    memcpy(ret_answer, reply->payload, sizeof(*ret_answer));
    ASSERT(ret_answer->size <= size && reply->size == sizeof(*ret_answer) + ret_answer->size);
    if (ret_answer->size)
        memcpy(room, reply->payload + sizeof(*ret_answer), ret_answer->size);
    message_free(reply);
    return ret_answer->error;
}

enum error fetch_begin(const struct fetch_request *request, uint64_t *ret_ref, uint64_t deadline)
{
    static _Atomic uint64_t refs;
    struct message *m;
    actor_pid to = actor_whereis(FETCH_NAME);
    if (!to)
        return ERR_NOPROC;
    uint64_t ref = atomic_fetch_add_explicit(&refs, 1, memory_order_relaxed) + 1;
    enum error e = make_ask(request, ref, deadline, &m);
    if (!e)
        e = actor_send(to, m);
    if (!e)
        *ret_ref = ref;
    return e;
}

/* ---- answering ---- */

static struct ask *ask_of(const struct message *m)
{
    return (struct ask *)(void *)(uintptr_t)m->payload;
}

static void answer(struct message *ask, struct message *reply)
{
    if (ask->kind == MESSAGE_CALL)
        actor_reply(ask, reply);
    else
        (void)actor_send(ask->from, reply); /* one who doesn't take it does without */
}

static void answer_error(struct message *ask, uint64_t turn, enum error e, const char *why)
{
    struct fetch_answer a = {.ref = ask_of(ask)->ref, .turn = turn, .error = e};
    snprintf(a.why, sizeof(a.why), "%s", why);
    struct message *m = message_of(FETCH_DONE, &a, sizeof(a));
    if (m)
        answer(ask, m);
}

/* ---- libcurl's callbacks: inside guarded sections ---- */

static const char closed_address[] = "an address that may not be reached";

static void refuse(struct slot *s, enum error e, const char *why)
{
    s->refused = e;
    s->why = why;
}

static size_t on_body(char *bytes, size_t one, size_t size, void *context)
{
    struct slot *s = context;
    (void)one;
    if (size > s->answer_max - s->body_size) {
        refuse(s, ERR_LIMIT, "an answer longer than asked for");
        return 0;
    }
    memcpy(s->answer->payload + sizeof(struct fetch_answer) + s->body_size, bytes, size);
    s->body_size += (uint32_t)size;
    return size;
}

static size_t on_header(char *bytes, size_t one, size_t size, void *context)
{
    struct slot *s = context;
    (void)bytes;
    (void)one;
    if (size > FETCH_ANSWER_HEADERS_MAX - s->headers_size) {
        refuse(s, ERR_LIMIT, "too many headers");
        return 0;
    }
    s->headers_size += (uint32_t)size;
    return size;
}

static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct slot *s = context;
    if (purpose != CURLSOCKTYPE_IPCXN || (!s->any_address && !reach_public(&address->addr))) {
        refuse(s, ERR_FORBIDDEN, closed_address);
        return CURL_SOCKET_BAD;
    }
    return socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->protocol);
}

/* A connection that is there may have been made by a fetch that was allowed more. */
static int on_request(void *context, char *peer, char *self, int peer_port, int self_port)
{
    struct slot *s = context;
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    (void)self;
    (void)peer_port;
    (void)self_port;
    bool allowed = s->any_address;
    s->connected = true;
    if (!allowed && inet_pton(AF_INET, peer, &four.sin_addr) == 1)
        allowed = reach_public((const struct sockaddr *)(const void *)&four);
    else if (!allowed && inet_pton(AF_INET6, peer, &six.sin6_addr) == 1)
        allowed = reach_public((const struct sockaddr *)(const void *)&six);
    refuse(s, allowed ? OK : ERR_FORBIDDEN, closed_address); /* of its addresses one will do */
    return allowed ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* OpenSSL would read on by itself, past every deadline, for as long as nothing but its own records comes, such as new keys, of which
 * the other side may send as many as it likes. So it comes back behind each, with none of them read ahead: what is left is news. */
static CURLcode on_tls(CURL *easy, void *tls, void *context)
{
    (void)easy;
    (void)context;
    curl.ssl_ctx_ctrl(tls, SSL_CTRL_CLEAR_MODE, SSL_MODE_AUTO_RETRY, NULL);
    curl.ssl_ctx_ctrl(tls, SSL_CTRL_SET_READ_AHEAD, 0, NULL);
    return CURLE_OK;
}

static struct watched *free_place(struct fetcher *f)
{
    for (uint32_t i = 0; i < SOCKETS_MAX; i++)
        if (!f->sockets[i].used)
            return &f->sockets[i];
    return NULL;
}

static void unwatch(struct watched *w)
{
    if (w->ref)
        actor_unwatch(w->ref);
    w->ref = 0;
}

/* What libcurl wants to know about a socket from now on; `place` is ours, by curl_multi_assign, until it is removed. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *place)
{
    struct fetcher *f = context;
    struct watched *w = place ? place : free_place(f);
    (void)easy;
    if (!w || (!place && curl.multi_assign(f->multi, fd, w) != CURLM_OK))
        return what == CURL_POLL_REMOVE ? 0 : -1;
    unwatch(w);
    *w = (struct watched){.used = what != CURL_POLL_REMOVE, .fd = fd};
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        w->events |= (uint32_t)WATCH_READ;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        w->events |= (uint32_t)WATCH_WRITE;
    w->ref = w->events ? actor_watch(fd, w->events) : 0;
    return w->events && !w->ref ? -1 : 0;
}

static int on_timer(CURLM *multi, long ms, void *context)
{
    struct fetcher *f = context;
    (void)multi;
    f->due = ms < 0 ? DEADLINE_NONE : actor_deadline_ms((uint64_t)ms);
    f->due_changed = true;
    return 0;
}

/* ---- one fetch ---- */

/* Whether all of them were taken; those of a release that this was not built for may not be. */
static bool set_always(struct slot *s)
{
    CURL *e = s->easy;
    CURLcode bad = CURLE_OK;
#define SET(option, value) bad = bad ? bad : curl.easy_setopt(e, option, value)
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_NOSIGNAL, 1L);
#if LIBCURL_VERSION_NUM >= QUICK_EXIT_FROM
    if (curl.version_num >= QUICK_EXIT_FROM)
        SET(CURLOPT_QUICK_EXIT, 1L); /* else the end of a fetch waits for its resolver's thread */
#endif
    SET(CURLOPT_USERAGENT, "coppice/" COPPICE_VERSION);
    SET(CURLOPT_ERRORBUFFER, s->error);
    SET(CURLOPT_PRIVATE, s);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, s);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, s);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
    SET(CURLOPT_OPENSOCKETDATA, s);
    SET(CURLOPT_PREREQFUNCTION, on_request);
    SET(CURLOPT_PREREQDATA, s);
    if (curl.ssl_ctx_ctrl)
        SET(CURLOPT_SSL_CTX_FUNCTION, on_tls);
    return !bad;
}

static bool add_header(struct slot *s, const char *line)
{
    struct curl_slist *longer = curl.slist_append(s->headers, line);
    if (longer)
        s->headers = longer;
    return longer != NULL;
}

static bool set_headers(struct slot *s, const char *headers)
{
    char line[FETCH_HEADERS_MAX];
    bool good = add_header(s, "Expect:"); /* a body goes out at once */
    while (good && *headers) {
        size_t length = (size_t)(strchr(headers, '\n') - headers);
        memcpy(line, headers, length);
        line[length] = 0;
        good = add_header(s, line);
        headers += length + 1;
    }
    return good && !curl.easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->headers);
}

static bool set_request(struct slot *s, const struct ask *ask)
{
    const char *url = (const char *)(ask + 1), *headers = url + ask->url_size,
               *body = headers + ask->headers_size;
    CURL *e = s->easy;
    CURLcode bad = CURLE_OK;
    SET(CURLOPT_URL, url);
    SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)ask->answer_max);
    if (strcmp(ask->method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else if (ask->body_size > 0 || strcmp(ask->method, "POST") == 0) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE, (long)ask->body_size);
        SET(CURLOPT_POSTFIELDS, body); /* borrowed: the message is kept as long as the fetch runs */
    }
    SET(CURLOPT_CUSTOMREQUEST, ask->method);
    return !bad && set_headers(s, headers);
#undef SET
}

static bool slot_begin(struct fetcher *f, struct slot *s)
{
    const struct ask *ask = ask_of(s->job->ask);
    s->body_size = s->headers_size = 0;
    s->answer_max = ask->answer_max;
    s->any_address = ask->any_address;
    s->refused = OK;
    s->connected = false;
    s->error[0] = 0;
    actor_guard_begin();
    if (!s->easy)
        s->easy = curl.easy_init();
    bool good = s->easy && set_always(s) && set_request(s, ask) &&
                curl.multi_add_handle(f->multi, s->easy) == CURLM_OK;
    actor_guard_end();
    return good;
}

/* Takes what libcurl has of it away; also when it isn't done. */
static void slot_end(struct fetcher *f, struct slot *s)
{
    actor_guard_begin();
    if (s->easy) {
        curl.multi_remove_handle(f->multi, s->easy);
        curl.easy_reset(s->easy);
    }
    curl.slist_free_all(s->headers);
    actor_guard_end();
    s->headers = NULL;
    s->job = NULL;
}

static enum error error_of(const struct slot *s, CURLcode code)
{
    if (s->refused)
        return s->refused;
    switch (code) {
    case CURLE_FILESIZE_EXCEEDED:
        return ERR_LIMIT;
    case CURLE_UNSUPPORTED_PROTOCOL: /* the URL's; or of an answer that isn't HTTP/1 */
        return s->connected ? ERR_SYSTEM : ERR_INVALID;
    case CURLE_URL_MALFORMAT:
    case CURLE_LOGIN_DENIED: /* a user in the URL */
        return ERR_INVALID;
    case CURLE_OUT_OF_MEMORY:
        return ERR_MEMORY;
    default:
        return ERR_SYSTEM;
    }
}

static const char *why_of(const struct slot *s, CURLcode code)
{
    if (s->refused)
        return s->why;
    return s->error[0] ? s->error : curl.easy_strerror(code);
}

/* ---- jobs ---- */

static uint64_t hash_host(const char *url)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    unsigned slashes = 0;
    for (; *url && *url != '?' && *url != '#'; url++) {
        if (*url == '/' && ++slashes == 3)
            break;
        hash = (hash ^ (uint64_t)(unsigned char)tolower((unsigned char)*url)) * UINT64_C(1099511628211);
    }
    return hash;
}

static uint32_t job_number(const struct fetcher *f, const struct job *job)
{
    return (uint32_t)(job - f->jobs);
}

static void job_free(struct fetcher *f, struct job *job)
{
    if (job->timer)
        (void)actor_timer_cancel(job->timer, NULL);
    message_free(job->ask);
    *job = (struct job){.serial = job->serial + 1, .next = f->free};
    f->free = job_number(f, job);
}

static void job_fail(struct fetcher *f, struct job *job, enum error e, const char *why)
{
    answer_error(job->ask, job->turn, e, why);
    job_free(f, job);
}

/* Out of those that wait, from behind `before` (NO_JOB: the first). */
static void unqueue(struct fetcher *f, uint32_t before, struct job *job)
{
    if (before == NO_JOB)
        f->first = job->next;
    else
        f->jobs[before].next = job->next;
    if (f->last == job_number(f, job))
        f->last = before;
    f->waiting--;
}

static void queue(struct fetcher *f, struct job *job)
{
    uint32_t number = job_number(f, job);
    job->next = NO_JOB;
    if (f->last == NO_JOB)
        f->first = number;
    else
        f->jobs[f->last].next = number;
    f->last = number;
    f->waiting++;
}

static uint32_t running_of(const struct fetcher *f, uint64_t host)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FETCH_MAX; i++)
        count += f->slots[i].job && f->slots[i].job->host == host;
    return count;
}

static struct slot *idle_slot(struct fetcher *f)
{
    for (uint32_t i = 0; i < FETCH_MAX; i++)
        if (!f->slots[i].job)
            return &f->slots[i];
    return NULL;
}

static uint64_t late_value(const struct fetcher *f, const struct job *job)
{
    return job_number(f, job) | (uint64_t)job->serial << 32;
}

static bool is_timed(const struct job *job)
{
    return ask_of(job->ask)->time_ns != 0;
}

static bool may_start(const struct fetcher *f, const struct job *job)
{
    return (!is_timed(job) || f->timed < FETCH_TIMED_MAX) && running_of(f, job->host) < FETCH_HOST_MAX;
}

static void count_running(struct fetcher *f, const struct job *job)
{
    f->running++;
    f->timed += is_timed(job);
}

static void count_ended(struct fetcher *f, const struct job *job)
{
    f->running--;
    f->timed -= is_timed(job);
}

/* Its time runs from now on. */
static bool job_turn(struct fetcher *f, struct job *job)
{
    const struct ask *ask = ask_of(job->ask);
    job->turn = actor_now();
    if (!ask->time_ns)
        return true;
    if (job->timer)
        (void)actor_timer_cancel(job->timer, NULL);
    job->serial++;
    job->timer = actor_timer(job->turn + ask->time_ns, LATE, late_value(f, job));
    return job->timer != 0;
}

static void job_start(struct fetcher *f, struct job *job)
{
    struct slot *s = idle_slot(f);
    const struct ask *ask = ask_of(job->ask);
    ASSERT(s != NULL);
    if (ask->wanted && !ask->wanted(ask->about)) {
        job_fail(f, job, ERR_IGNORED, "it is not wanted any more");
        return;
    }
    if (!job_turn(f, job)) {
        job_fail(f, job, ERR_MEMORY, "no records");
        return;
    }
    s->answer = message_new(FETCH_DONE, sizeof(struct fetch_answer) + ask->answer_max);
    if (!s->answer || !message_keep(s->answer)) {
        job_fail(f, job, ERR_MEMORY, "no memory for the answer");
        return;
    }
    s->job = job;
    job->slot = s;
    count_running(f, job);
    if (slot_begin(f, s))
        return;
    slot_end(f, s);
    message_free(s->answer);
    count_ended(f, job);
    job_fail(f, job, ERR_SYSTEM, "libcurl did not take the request");
}

/* Those that wait and may begin, in order; a host that has its share doesn't stop the others, nor do all the timed ones. */
static void start_waiting(struct fetcher *f)
{
    uint32_t before = NO_JOB, at = f->first;
    while (at != NO_JOB && f->running < FETCH_MAX) {
        struct job *job = &f->jobs[at];
        uint32_t next = job->next;
        if (may_start(f, job)) {
            unqueue(f, before, job);
            job_start(f, job);
        } else {
            before = at;
        }
        at = next;
    }
}

/* It ended by itself. */
static void job_done(struct fetcher *f, struct slot *s, CURLcode code)
{
    struct job *job = s->job;
    struct fetch_answer a = {.ref = ask_of(job->ask)->ref, .turn = job->turn};
    long status = 0;
    curl_off_t retry = 0;
    actor_guard_begin();
    if (code != CURLE_OK) {
        a.error = error_of(s, code);
        snprintf(a.why, sizeof(a.why), "%.*s", (int)sizeof(a.why) - 1, why_of(s, code));
    }
    if (a.error == OK || a.error == ERR_LIMIT) {
        curl.easy_getinfo(s->easy, CURLINFO_RESPONSE_CODE, &status);
        curl.easy_getinfo(s->easy, CURLINFO_RETRY_AFTER, &retry);
    }
    actor_guard_end();
    a.status = (int)status;
    a.retry_after_s = retry < 0 ? 0 : retry > UINT32_MAX ? UINT32_MAX : (uint32_t)retry;
    a.size = a.error ? 0 : s->body_size;
    struct message *m = s->answer;
    slot_end(f, s);
    memcpy(m->payload, &a, sizeof(a));
    m->size = (uint32_t)(sizeof(a) + a.size) & 0xffffffu;
    count_ended(f, job);
    answer(job->ask, m);
    job_free(f, job);
}

static void job_late(struct fetcher *f, struct job *job)
{
    struct slot *s = job->slot;
    job->timer = 0;
    if (s) {
        slot_end(f, s);
        message_free(s->answer);
        count_ended(f, job);
    } else {
        uint32_t before = NO_JOB;
        for (uint32_t at = f->first; &f->jobs[at] != job; at = f->jobs[at].next)
            before = at;
        unqueue(f, before, job);
    }
    job_fail(f, job, s ? ERR_TIMEOUT : ERR_SHED,
             s ? "no whole answer by the deadline" : "its turn did not come by the deadline");
}

/* ---- getting ready, when the first one asks ---- */

static bool make_multi(struct fetcher *f)
{
    CURLM *multi = curl.multi_init();
    if (!multi)
        return false;
    CURLMcode bad = curl.multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    bad = bad ? bad : curl.multi_setopt(multi, CURLMOPT_SOCKETDATA, f);
    bad = bad ? bad : curl.multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    bad = bad ? bad : curl.multi_setopt(multi, CURLMOPT_TIMERDATA, f);
    bad = bad ? bad : curl.multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING);
    bad = bad ? bad : curl.multi_setopt(multi, CURLMOPT_MAXCONNECTS, IDLE_MAX);
    if (bad)
        curl.multi_cleanup(multi);
    else
        f->multi = multi;
    return !bad;
}

static void make_tables(struct fetcher *f)
{
    f->jobs = actor_alloc(JOBS_MAX * sizeof(*f->jobs));
    f->sockets = actor_alloc(SOCKETS_MAX * sizeof(*f->sockets));
    f->slots = actor_alloc(FETCH_MAX * sizeof(*f->slots));
    memset(f->slots, 0, FETCH_MAX * sizeof(*f->slots));
    memset(f->jobs, 0, JOBS_MAX * sizeof(*f->jobs));
    memset(f->sockets, 0, SOCKETS_MAX * sizeof(*f->sockets));
    for (uint32_t i = 0; i < JOBS_MAX; i++)
        f->jobs[i].next = i + 1 < JOBS_MAX ? i + 1 : NO_JOB;
    f->first = f->last = NO_JOB;
}

static bool get_ready(struct fetcher *f, char *ret_why, size_t why_size)
{
    if (f->multi)
        return true;
    if (!f->slots)
        make_tables(f);
    actor_guard_begin();
    bool made = curl_load(f->library, ret_why, why_size);
    if (made && !make_multi(f)) {
        made = false;
        snprintf(ret_why, why_size, "libcurl gave no multi handle");
    }
    actor_guard_end();
    return made;
}

/* ---- turns ---- */

static void collect(struct fetcher *f)
{
    for (;;) {
        int left;
        CURLMsg *done;
        char *private = NULL;
        CURLcode code = CURLE_OK;
        actor_guard_begin();
        do
            done = curl.multi_info_read(f->multi, &left);
        while (done && done->msg != CURLMSG_DONE);
        if (done) {
            code = done->data.result;
            curl.easy_getinfo(done->easy_handle, CURLINFO_PRIVATE, &private);
        }
        actor_guard_end();
        if (!done)
            return;
        job_done(f, (struct slot *)(void *)private, code);
    }
}

static void arm(struct fetcher *f)
{
    if (!f->due_changed)
        return;
    if (f->tick)
        (void)actor_timer_cancel(f->tick, NULL);
    f->due_changed = false;
    f->tick = f->due == DEADLINE_NONE ? 0 : actor_timer(f->due, TICK, ++f->tick_serial);
    if (!f->tick && f->due != DEADLINE_NONE)
        actor_exit(reason_of(REASON_QUOTA)); /* without its time libcurl stands still */
}

/* After whatever happened. */
static void settle(struct fetcher *f)
{
    collect(f);
    start_waiting(f);
    arm(f);
}

static void act(struct fetcher *f, curl_socket_t fd, int mask)
{
    int running;
    actor_guard_begin();
    curl.multi_socket_action(f->multi, fd, mask, &running);
    actor_guard_end();
    settle(f);
}

static struct watched *watched_by(struct fetcher *f, uint64_t ref)
{
    for (uint32_t i = 0; i < SOCKETS_MAX; i++)
        if (f->sockets[i].used && f->sockets[i].ref == ref)
            return &f->sockets[i];
    return NULL;
}

static void on_ready(struct fetcher *f, const struct message_ready *ready)
{
    struct watched *w = watched_by(f, ready->ref);
    if (!w)
        return; /* from before it was watched anew */
    int mask = (ready->events & WATCH_READ ? CURL_CSELECT_IN : 0) |
               (ready->events & WATCH_WRITE ? CURL_CSELECT_OUT : 0);
    /* A peer that has hung up is told once; watched anew it would be told for ever. */
    bool again = ready->events & w->events;
    if (again)
        unwatch(w);
    act(f, ready->fd, mask);
    if (!again || !w->used || !w->events || w->ref)
        return; /* libcurl is through with it, or has changed its mind: on_socket has seen to it */
    w->ref = actor_watch(w->fd, w->events);
    if (!w->ref)
        actor_fail(ERR_SYSTEM, "a socket can't be watched any more");
}

static void take(struct fetcher *f, struct message *m)
{
    const struct ask *ask = ask_of(m);
    if (m->size < sizeof(*ask) ||
        m->size != sizeof(*ask) + ask->url_size + ask->headers_size + ask->body_size) {
        actor_unknown(m);
        return;
    }
    char why[sizeof(((struct fetch_answer *)0)->why)] = "";
    if (!get_ready(f, why, sizeof(why))) {
        answer_error(m, 0, ERR_UNAVAILABLE, why);
        return;
    }
    if (f->waiting == FETCH_QUEUE_MAX) {
        answer_error(m, 0, ERR_SHED, "too many are waiting");
        return;
    }
    ASSERT(f->free != NO_JOB);
    struct job *job = &f->jobs[f->free];
    uint64_t timer =
        ask->deadline == DEADLINE_NONE ? 0 : actor_timer(ask->deadline, LATE, late_value(f, job));
    if ((!timer && ask->deadline != DEADLINE_NONE) || !message_keep(m)) {
        if (timer)
            (void)actor_timer_cancel(timer, NULL);
        answer_error(m, 0, ERR_MEMORY, "no records");
        return;
    }
    f->free = job->next;
    *job = (struct job){
        .ask = m, .host = hash_host((const char *)(ask + 1)), .timer = timer, .serial = job->serial};
    queue(f, job);
    settle(f);
}

static void on_tick(struct fetcher *f, uint64_t serial)
{
    if (!f->tick || serial != f->tick_serial)
        return;
    f->tick = 0;
    act(f, CURL_SOCKET_TIMEOUT, 0);
}

static void on_late(struct fetcher *f, uint64_t value)
{
    uint32_t number = (uint32_t)value;
    struct job *job = number < JOBS_MAX ? &f->jobs[number] : NULL;
    if (!job || !job->ask || job->serial != value >> 32)
        return;
    job_late(f, job);
    settle(f);
}

static enum actor_step fetch_handle(void *state, struct message *m)
{
    struct fetcher *f = state;
    uint64_t value = 0;
    if (m->size == sizeof(value))
        memcpy(&value, m->payload, sizeof(value));
    switch (m->type) {
    case ASK:
        take(f, m);
        break;
    case TICK:
        on_tick(f, value);
        break;
    case LATE:
        on_late(f, value);
        break;
    case MESSAGE_READY:
        on_ready(f, (const struct message_ready *)(const void *)m->payload);
        break;
    default:
        actor_unknown(m);
    }
    return ACTOR_CONTINUE;
}

/* ---- life ---- */

/* Inside the runtime, when the actor has ended: watches and messages are gone already, so nothing may ask for them. */
static void release_all(void *arg)
{
    struct fetcher *f = arg;
    if (!f->multi)
        return;
    actor_guard_begin();
    curl.multi_setopt(f->multi, CURLMOPT_SOCKETFUNCTION, NULL);
    curl.multi_setopt(f->multi, CURLMOPT_TIMERFUNCTION, NULL);
    for (uint32_t i = 0; i < FETCH_MAX; i++) {
        struct slot *s = &f->slots[i];
        if (!s->easy)
            continue;
        if (s->job)
            curl.multi_remove_handle(f->multi, s->easy);
        curl.slist_free_all(s->headers);
        curl.easy_cleanup(s->easy);
    }
    curl.multi_cleanup(f->multi);
    actor_guard_end();
}

static enum actor_step fetch_init(void *state, const void *args, size_t args_size)
{
    struct fetcher *f = state;
    const char *library = args_size ? args : CURL_FILE;
    snprintf(f->library, sizeof(f->library), "%s", library);
    if (!actor_own(release_all, f))
        actor_fail(ERR_MEMORY, "no record to own libcurl's handles by");
    return ACTOR_CONTINUE;
}

const struct actor_class fetch_class = {
    .name = "fetch",
    .state_size = sizeof(struct fetcher),
    .init = fetch_init,
    .handle = fetch_handle,
    .mailbox_capacity = 2 * FETCH_QUEUE_MAX,
    .stack_size = 256u << 10, /* TLS handshakes */
};
