#include "http/tls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "http/ssl.h"
#include "runtime/actor.h"

struct tls_context {
    SSL_CTX *ssl;
    struct tls_validity validity;
    _Atomic uint32_t holds;
};

struct tls {
    SSL *ssl;
    BIO *in, *out; /* the SSL's own */
    struct tls_context *context;
    const char *why; /* NULL: not failed */
};

static struct {
    pthread_mutex_t lock; /* between looking at the context and holding it nobody may release it */
    struct tls_context *context;
} installed = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- contexts ---- */

/* Why the last call failed, and a clean slate for the next one. */
static const char *reason(void)
{
    unsigned long code = crypto.ERR_peek_error();
    const char *text =
        ERR_SYSTEM_ERROR(code) ? strerror(ERR_GET_REASON(code)) : crypto.ERR_reason_error_string(code);
    crypto.ERR_clear_error();
    return text ? text : "failed";
}

/* Nobody is there to be asked for a passphrase. */
static int no_passphrase(char *room, int size, int writing, void *context)
{
    (void)room;
    (void)size;
    (void)writing;
    (void)context;
    return -1;
}

static int choose_protocol(SSL *session, const unsigned char **ret_chosen, unsigned char *ret_size,
                           const unsigned char *offered, unsigned offered_size, void *context)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;
    (void)session;
    (void)context;
    if (ssl.SSL_select_next_proto(&chosen, ret_size, ours, sizeof ours - 1, offered, offered_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *ret_chosen = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool set_rules(SSL_CTX *context)
{
    ssl.SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                         SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
    ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    ssl.SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER,
                     NULL);
    ssl.SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    ssl.SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    return ssl.SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) == 1 &&
           ssl.SSL_CTX_set_num_tickets(context, 0) == 1 &&
           ssl.SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1;
}

static bool set_client_ca(SSL_CTX *context, const char *file)
{
    STACK_OF(X509_NAME) *names = ssl.SSL_load_client_CA_file(file);
    if (!names)
        return false;
    ssl.SSL_CTX_set_client_CA_list(context, names);
    ssl.SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return ssl.SSL_CTX_load_verify_file(context, file) == 1;
}

/* What one side has written goes to the other. */
static bool carry(SSL *from, SSL *to)
{
    char bytes[2048];
    int size;
    bool any = false;
    while ((size = crypto.BIO_read(ssl.SSL_get_wbio(from), bytes, sizeof bytes)) > 0) {
        crypto.BIO_write(ssl.SSL_get_rbio(to), bytes, size);
        any = true;
    }
    return any;
}

static SSL *half(SSL_CTX *context)
{
    SSL *session = context ? ssl.SSL_new(context) : NULL;
    BIO *in = crypto.BIO_new(crypto.BIO_s_mem()), *out = crypto.BIO_new(crypto.BIO_s_mem());
    if (!session || !in || !out) {
        ssl.SSL_free(session);
        crypto.BIO_free(in);
        crypto.BIO_free(out);
        return NULL;
    }
    ssl.SSL_set_bio(session, in, out);
    return session;
}

/* A handshake with a client of our own. The client has no certificate: where one is asked for, it gets as far as that. */
static bool try_handshake(SSL_CTX *context)
{
    SSL_CTX *client_context = ssl.SSL_CTX_new(ssl.TLS_client_method());
    SSL *client = half(client_context), *server = half(context);
    bool moved = client && server, done = false;
    while (moved && !done) {
        int to_server = ssl.SSL_connect(client), to_client;
        moved = carry(client, server);
        to_client = ssl.SSL_accept(server);
        moved |= carry(server, client);
        done = to_server == 1 && (to_client == 1 || ssl.SSL_CTX_get_verify_mode(context) != SSL_VERIFY_NONE);
    }
    ssl.SSL_free(client);
    ssl.SSL_free(server);
    ssl.SSL_CTX_free(client_context);
    return done;
}

static bool load(SSL_CTX *context, const char *certificate_file, const char *key_file, const char *client_ca,
                 char *ret_text, size_t text_size)
{
    if (!set_rules(context))
        snprintf(ret_text, text_size, "TLS: %s", reason());
    else if (ssl.SSL_CTX_use_certificate_chain_file(context, certificate_file) != 1)
        snprintf(ret_text, text_size, "certificate %s: %s", certificate_file, reason());
    else if (ssl.SSL_CTX_use_PrivateKey_file(context, key_file, SSL_FILETYPE_PEM) != 1)
        snprintf(ret_text, text_size, "key %s: %s", key_file, reason());
    else if (ssl.SSL_CTX_check_private_key(context) != 1)
        snprintf(ret_text, text_size, "key %s is not the one of certificate %s: %s", key_file,
                 certificate_file, reason());
    else if (client_ca && !set_client_ca(context, client_ca))
        snprintf(ret_text, text_size, "authorities %s: %s", client_ca, reason());
    else if (!try_handshake(context))
        snprintf(ret_text, text_size, "certificate %s: a handshake fails: %s", certificate_file, reason());
    else
        return true;
    return false;
}

static int64_t seconds_of(const ASN1_TIME *time)
{
    struct tm parts;
    return time && crypto.ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

static struct tls_validity validity_of(SSL_CTX *context)
{
    const X509 *certificate = ssl.SSL_CTX_get0_certificate(context);
    return (struct tls_validity){.from_s = seconds_of(crypto.X509_get0_notBefore(certificate)),
                                 .until_s = seconds_of(crypto.X509_get0_notAfter(certificate))};
}

static struct tls_context *create(const char *certificate_file, const char *key_file, const char *client_ca,
                                  char *ret_text, size_t text_size)
{
    struct tls_context *context = calloc(1, sizeof *context);
    bool sound = false;
    crypto.ERR_clear_error();
    if (context)
        context->ssl = ssl.SSL_CTX_new(ssl.TLS_server_method());
    if (!context || !context->ssl)
        snprintf(ret_text, text_size, "TLS: %s", reason());
    else
        sound = load(context->ssl, certificate_file, key_file, client_ca, ret_text, text_size);
    if (context && !sound) {
        ssl.SSL_CTX_free(context->ssl);
        free(context);
        context = NULL;
    }
    if (context) {
        context->holds = 1;
        context->validity = validity_of(context->ssl);
    }
    crypto.ERR_clear_error();
    return context;
}

struct tls_context *tls_context_create(const char *certificate_file, const char *key_file,
                                       const char *client_ca, char *ret_text, size_t text_size)
{
    struct tls_context *context = NULL;
    char why[200];
    actor_guard_begin();
    if (ssl_load(SSL_FILE, why, sizeof why))
        context = create(certificate_file, key_file, client_ca, ret_text, text_size);
    else
        snprintf(ret_text, text_size, "TLS: %s", why);
    actor_guard_end();
    return context;
}

void tls_context_release(struct tls_context *context)
{
    if (!context || atomic_fetch_sub(&context->holds, 1) > 1)
        return;
    actor_guard_begin();
    ssl.SSL_CTX_free(context->ssl);
    free(context);
    actor_guard_end();
}

struct tls_context *tls_context_hold(struct tls_context *context)
{
    atomic_fetch_add(&context->holds, 1);
    return context;
}

/* Guarded, so that an actor that holds the lock isn't switched out. */
void tls_context_install(struct tls_context *context)
{
    struct tls_context *old;
    actor_guard_begin();
    pthread_mutex_lock(&installed.lock);
    old = installed.context;
    installed.context = context;
    pthread_mutex_unlock(&installed.lock);
    actor_guard_end();
    tls_context_release(old);
}

struct tls_context *tls_context_here(void)
{
    struct tls_context *context;
    actor_guard_begin();
    pthread_mutex_lock(&installed.lock);
    context = installed.context ? tls_context_hold(installed.context) : NULL;
    pthread_mutex_unlock(&installed.lock);
    actor_guard_end();
    return context;
}

struct tls_validity tls_context_validity(const struct tls_context *context)
{
    return context->validity;
}

bool tls_context_differs(const struct tls_context *context)
{
    struct tls_context *here = tls_context_here();
    bool same = here && crypto.X509_cmp(ssl.SSL_CTX_get0_certificate(here->ssl),
                                        ssl.SSL_CTX_get0_certificate(context->ssl)) == 0;
    tls_context_release(here);
    return !same;
}

bool tls_validity_here(struct tls_validity *ret_validity)
{
    struct tls_context *context = tls_context_here();
    if (context)
        *ret_validity = context->validity;
    tls_context_release(context);
    return context != NULL;
}

/* ---- sessions ---- */

struct tls *tls_open(struct tls_context *context)
{
    struct tls *tls;
    actor_guard_begin();
    crypto.ERR_clear_error();
    tls = calloc(1, sizeof *tls);
    if (tls && (tls->ssl = half(context->ssl))) {
        tls->in = ssl.SSL_get_rbio(tls->ssl);
        tls->out = ssl.SSL_get_wbio(tls->ssl);
        tls->context = context;
        ssl.SSL_set_accept_state(tls->ssl);
    } else {
        free(tls);
        tls = NULL;
    }
    crypto.ERR_clear_error();
    actor_guard_end();
    if (!tls)
        tls_context_release(context);
    return tls;
}

void tls_close(struct tls *tls)
{
    struct tls_context *context;
    if (!tls)
        return;
    context = tls->context;
    actor_guard_begin();
    ssl.SSL_free(tls->ssl);
    free(tls);
    actor_guard_end();
    tls_context_release(context);
}

static enum tls_result fail(struct tls *tls, const char *why)
{
    crypto.ERR_clear_error();
    if (!tls->why)
        tls->why = why;
    return TLS_FAILED;
}

/* What a call that returned `status` (not 1) has met. */
static enum tls_result result_of(struct tls *tls, int status)
{
    switch (ssl.SSL_get_error(tls->ssl, status)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return TLS_WANT;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_CLOSED;
    default:
        return fail(tls, reason());
    }
}

enum tls_result tls_receive(struct tls *tls, const char *cipher, size_t size, char *plain, size_t room,
                            size_t *ret_size)
{
    enum tls_result result = TLS_OK;
    size_t taken = 0;
    int status;
    if (tls->why)
        return TLS_FAILED;
    actor_guard_begin();
    crypto.ERR_clear_error();
    if (size && (crypto.BIO_write_ex(tls->in, cipher, size, &taken) != 1 || taken != size))
        result = fail(tls, "no memory");
    else if ((status = ssl.SSL_read_ex(tls->ssl, plain, room, ret_size)) != 1)
        result = result_of(tls, status);
    actor_guard_end();
    return result;
}

bool tls_established(const struct tls *tls)
{
    actor_guard_begin();
    bool established = ssl.SSL_is_init_finished(tls->ssl);
    actor_guard_end();
    return established;
}

enum tls_result tls_send(struct tls *tls, const char *plain, size_t size)
{
    enum tls_result result = TLS_OK;
    size_t written = 0;
    int status;
    if (tls->why)
        return TLS_FAILED;
    if (!size)
        return TLS_OK;
    actor_guard_begin();
    crypto.ERR_clear_error();
    if (!ssl.SSL_is_init_finished(tls->ssl))
        result = TLS_WANT;
    else if ((status = ssl.SSL_write_ex(tls->ssl, plain, size, &written)) != 1)
        result = result_of(tls, status);
    else
        ASSERT(written == size);
    actor_guard_end();
    return result;
}

enum tls_result tls_shutdown(struct tls *tls)
{
    enum tls_result result;
    if (tls->why)
        return TLS_FAILED;
    actor_guard_begin();
    crypto.ERR_clear_error();
    if (!ssl.SSL_is_init_finished(tls->ssl)) {
        result = fail(tls, "closed within the handshake");
    } else {
        if (!(ssl.SSL_get_shutdown(tls->ssl) & SSL_SENT_SHUTDOWN))
            ssl.SSL_shutdown(tls->ssl);
        result = ssl.SSL_get_shutdown(tls->ssl) & SSL_RECEIVED_SHUTDOWN ? TLS_OK : TLS_WANT;
    }
    crypto.ERR_clear_error();
    actor_guard_end();
    return result;
}

size_t tls_pending(struct tls *tls, char *cipher, size_t room)
{
    size_t size = 0;
    actor_guard_begin();
    if (crypto.BIO_read_ex(tls->out, cipher, room, &size) != 1)
        size = 0;
    crypto.ERR_clear_error();
    actor_guard_end();
    return size;
}

const char *tls_why(const struct tls *tls)
{
    return tls->why ? tls->why : "";
}
