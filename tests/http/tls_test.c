/* TLS over buffers: an OpenSSL client in the same process is the peer. Certificates are made here, by OpenSSL, for each run. */
#include "acutest.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>
#include "http/tls.h"
#include "tests/support/inside.h"

static char folder[] = "/tmp/coppice-tls-XXXXXX", why[512];

/* ---- certificates ---- */

struct identity {
    char certificate[64], key[64];
};

static struct identity first, second, client_identity;

static X509 *make_certificate(EVP_PKEY *key, long serial)
{
    X509 *x = X509_new();
    X509_NAME *name = X509_get_subject_name(x);
    X509_EXTENSION *authority = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");
    X509_set_version(x, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_set_pubkey(x, key);
    X509_add_ext(x, authority, -1);
    X509_EXTENSION_free(authority);
    TEST_ASSERT(X509_sign(x, key, EVP_sha256()) > 0);
    return x;
}

static void write_identity(struct identity *identity, const char *name, long serial, const char *passphrase)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = make_certificate(key, serial);
    FILE *f;
    snprintf(identity->certificate, sizeof identity->certificate, "%s/%s.pem", folder, name);
    snprintf(identity->key, sizeof identity->key, "%s/%s.key", folder, name);
    f = fopen(identity->certificate, "w");
    TEST_ASSERT(f && PEM_write_X509(f, x));
    fclose(f);
    f = fopen(identity->key, "w");
    TEST_ASSERT(f && PEM_write_PrivateKey(f, key, passphrase ? EVP_aes_128_cbc() : NULL,
                                          (const unsigned char *)passphrase,
                                          passphrase ? (int)strlen(passphrase) : 0, NULL, NULL));
    fclose(f);
    X509_free(x);
    EVP_PKEY_free(key);
}

static void remove_identity(const struct identity *identity)
{
    unlink(identity->certificate);
    unlink(identity->key);
}

static void begin(void)
{
    TEST_ASSERT(mkdtemp(folder) != NULL);
    write_identity(&first, "first", 1, NULL);
    write_identity(&second, "second", 2, NULL);
    write_identity(&client_identity, "client", 3, NULL);
}

static void end(void)
{
    remove_identity(&first);
    remove_identity(&second);
    remove_identity(&client_identity);
    rmdir(folder);
    strcpy(folder, "/tmp/coppice-tls-XXXXXX");
}

static struct tls_context *context_of(const struct identity *identity, const char *client_ca)
{
    struct tls_context *context =
        tls_context_create(identity->certificate, identity->key, client_ca, why, sizeof why);
    TEST_ASSERT_(context != NULL, "%s", why);
    return context;
}

/* ---- a client and a session, joined ---- */

struct client_options {
    int version_max;           /* 0: any */
    const char *ciphers;       /* of TLS 1.2 and below */
    const unsigned char *alpn; /* as it is sent */
    unsigned alpn_size;
    const struct identity *identity;
};

struct pair {
    SSL_CTX *context;
    SSL *client;
    struct tls *server;
    size_t piece; /* bytes carried at a time */
    char plain[65536];
    size_t plain_size;
    enum tls_result last; /* of tls_receive */
};

static void pair_open(struct pair *p, struct tls_context *server, const struct client_options *o)
{
    static const struct client_options none;
    o = o ? o : &none;
    *p = (struct pair){.context = SSL_CTX_new(TLS_client_method()), .piece = 16384};
    if (o->version_max)
        SSL_CTX_set_max_proto_version(p->context, o->version_max);
    if (o->version_max && o->version_max < TLS1_2_VERSION)
        SSL_CTX_set_min_proto_version(p->context, 0);
    if (o->ciphers)
        TEST_ASSERT(SSL_CTX_set_cipher_list(p->context, o->ciphers));
    if (o->alpn)
        SSL_CTX_set_alpn_protos(p->context, o->alpn, o->alpn_size);
    if (o->identity)
        TEST_ASSERT(SSL_CTX_use_certificate_file(p->context, o->identity->certificate, SSL_FILETYPE_PEM) ==
                        1 &&
                    SSL_CTX_use_PrivateKey_file(p->context, o->identity->key, SSL_FILETYPE_PEM) == 1);
    p->client = SSL_new(p->context);
    SSL_set_bio(p->client, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(p->client);
    p->server = tls_open(server);
    TEST_ASSERT(p->server != NULL);
}

static void pair_close(struct pair *p)
{
    SSL_free(p->client);
    SSL_CTX_free(p->context);
    tls_close(p->server);
    ERR_clear_error();
}

/* Into the session, and what comes out of it as plaintext kept. */
static void give(struct pair *p, const char *bytes, size_t size)
{
    size_t got = 0;
    p->last =
        tls_receive(p->server, bytes, size, p->plain + p->plain_size, sizeof p->plain - p->plain_size, &got);
    while (p->last == TLS_OK) {
        TEST_CHECK(got > 0);
        p->plain_size = (p->plain_size + got) % sizeof p->plain;
        p->last =
            tls_receive(p->server, NULL, 0, p->plain + p->plain_size, sizeof p->plain - p->plain_size, &got);
    }
}

/* All that either side has to send; whether there was anything. */
static bool carry(struct pair *p)
{
    char bytes[16384];
    bool any = false;
    int size;
    size_t out;
    while ((size = BIO_read(SSL_get_wbio(p->client), bytes, (int)p->piece)) > 0) {
        give(p, bytes, (size_t)size);
        any = true;
    }
    while ((out = tls_pending(p->server, bytes, p->piece))) {
        TEST_CHECK(out <= p->piece);
        BIO_write(SSL_get_rbio(p->client), bytes, (int)out);
        any = true;
    }
    return any;
}

/* True: both sides are through. */
static bool shake(struct pair *p)
{
    int status;
    do
        status = SSL_do_handshake(p->client);
    while (carry(p));
    return status == 1 && p->last == TLS_WANT;
}

static bool client_reads(struct pair *p, const char *wanted)
{
    char got[256];
    int size = SSL_read(p->client, got, sizeof got);
    return size == (int)strlen(wanted) && memcmp(got, wanted, (size_t)size) == 0;
}

/* A word each way. */
static void talk(struct pair *p)
{
    p->plain_size = 0;
    TEST_CHECK(SSL_write(p->client, "GET /", 5) == 5);
    carry(p);
    TEST_CHECK(p->plain_size == 5 && memcmp(p->plain, "GET /", 5) == 0);
    TEST_CHECK(tls_send(p->server, "HTTP/1.1 200 OK", 15) == TLS_OK);
    carry(p);
    TEST_CHECK(client_reads(p, "HTTP/1.1 200 OK"));
}

/* ---- sessions ---- */

static struct pair p;

static void both_versions(void)
{
    static const unsigned char alpn[] = "\x02h2\x08http/1.1";
    static const int versions[] = {TLS1_3_VERSION, TLS1_2_VERSION};
    struct tls_context *context;
    begin();
    context = context_of(&first, NULL);
    for (size_t i = 0; i < 2; i++) {
        struct client_options o = {.version_max = versions[i], .alpn = alpn, .alpn_size = sizeof alpn - 1};
        const unsigned char *chosen;
        unsigned chosen_size;
        pair_open(&p, tls_context_hold(context), &o);
        TEST_CHECK(tls_send(p.server, "early", 5) == TLS_WANT);
        TEST_CHECK(shake(&p));
        TEST_CHECK(SSL_version(p.client) == versions[i]);
        SSL_get0_alpn_selected(p.client, &chosen, &chosen_size);
        TEST_CHECK(chosen_size == 8 && memcmp(chosen, "http/1.1", 8) == 0);
        TEST_CHECK(SSL_get_current_compression(p.client) == NULL);
        TEST_CHECK(!SSL_session_reused(p.client) && !SSL_SESSION_has_ticket(SSL_get0_session(p.client)));
        TEST_CHECK(tls_send(p.server, NULL, 0) == TLS_OK && !carry(&p));
        talk(&p);
        talk(&p);
        TEST_CHECK(strcmp(tls_why(p.server), "") == 0);
        pair_close(&p);
    }
    tls_context_release(context);
    end();
}

static void one_byte_at_a_time(void)
{
    begin();
    pair_open(&p, context_of(&first, NULL), NULL);
    p.piece = 1;
    TEST_CHECK(shake(&p));
    talk(&p);
    pair_close(&p);
    end();
}

/* More than a record, a buffer, or a window holds, each way; read in rooms of odd sizes. */
static void large_data(void)
{
    enum { SIZE = 3 << 20 };
    static char sent[SIZE], got[SIZE + 1], cipher[16384];
    size_t total = 0, size;
    int count;
    begin();
    pair_open(&p, context_of(&first, NULL), NULL);
    TEST_CHECK(shake(&p));
    for (size_t i = 0; i < SIZE; i++)
        sent[i] = (char)(i * 31 + i / 251);
    for (size_t at = 0; at < SIZE; at += 65536) {
        TEST_CHECK(tls_send(p.server, sent + at, 65536) == TLS_OK);
        carry(&p);
    }
    while ((count = SSL_read(p.client, got + total, (int)(sizeof got - total))) > 0)
        total += (size_t)count;
    TEST_CHECK(total == SIZE && memcmp(sent, got, SIZE) == 0);
    TEST_CHECK(SSL_write(p.client, sent, SIZE) == SIZE);
    total = 0;
    while ((count = BIO_read(SSL_get_wbio(p.client), cipher, sizeof cipher)) > 0) {
        const char *piece = cipher;
        size_t piece_size = (size_t)count, room = 1 + total % 4999;
        room = room < SIZE - total ? room : SIZE - total + 1;
        while (tls_receive(p.server, piece, piece_size, got + total, room, &size) == TLS_OK) {
            TEST_CHECK(size && size <= room);
            total += size;
            piece_size = 0;
        }
    }
    TEST_CHECK(total == SIZE && memcmp(sent, got, SIZE) == 0);
    pair_close(&p);
    end();
}

static void closing(void)
{
    struct tls_context *context;
    begin();
    context = context_of(&first, NULL);
    /* The client first. */
    pair_open(&p, tls_context_hold(context), NULL);
    TEST_CHECK(shake(&p));
    SSL_write(p.client, "bye", 3);
    SSL_shutdown(p.client);
    carry(&p);
    TEST_CHECK(p.last == TLS_CLOSED && p.plain_size == 3);
    TEST_CHECK(tls_send(p.server, "answer", 6) == TLS_OK); /* our side is still open */
    TEST_CHECK(tls_shutdown(p.server) == TLS_OK && tls_shutdown(p.server) == TLS_OK);
    carry(&p);
    TEST_CHECK(client_reads(&p, "answer"));
    TEST_CHECK(SSL_shutdown(p.client) == 1);
    TEST_CHECK(tls_send(p.server, "more", 4) == TLS_FAILED);
    pair_close(&p);
    /* The server first. */
    pair_open(&p, tls_context_hold(context), NULL);
    TEST_CHECK(shake(&p));
    TEST_CHECK(tls_shutdown(p.server) == TLS_WANT);
    carry(&p);
    TEST_CHECK(SSL_read(p.client, p.plain, 1) == 0 && SSL_get_shutdown(p.client) == SSL_RECEIVED_SHUTDOWN);
    SSL_shutdown(p.client);
    carry(&p);
    TEST_CHECK(p.last == TLS_CLOSED && tls_shutdown(p.server) == TLS_OK);
    pair_close(&p);
    /* Before there is a session. */
    pair_open(&p, context, NULL);
    TEST_CHECK(tls_shutdown(p.server) == TLS_FAILED &&
               strcmp(tls_why(p.server), "closed within the handshake") == 0);
    pair_close(&p);
    tls_close(NULL);
    end();
}

/* ---- what is refused ---- */

static void bad_bytes(void)
{
    static const struct {
        const char *bytes;
        size_t size;
    } garbage[] = {
        {"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27},
        {"\x16\x03\x01\xff\xff\xff\xff\xff\xff\xff\xff", 11},
        {"\x80\x0c\x01\x00\x02\x00\x03\x00\x00\x00\x00\x00\x00\x00", 14}, /* a hello of SSL 2 */
        {"\x15\x03\x01\x00\x02\x02\x28", 7},
        {"\x17\x03\x03\x00\x05hello", 10},
        {"                 ", 17},
    };
    struct tls_context *context;
    char cipher[512], plain[64];
    size_t got;
    int size;
    begin();
    context = context_of(&first, NULL);
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        pair_open(&p, tls_context_hold(context), NULL);
        give(&p, garbage[i].bytes, garbage[i].size);
        TEST_CHECK_(p.last == TLS_FAILED && tls_why(p.server)[0], "%zu: %u", i, p.last);
        TEST_CHECK(tls_receive(p.server, "x", 1, plain, sizeof plain, &got) == TLS_FAILED);
        TEST_CHECK(tls_send(p.server, "x", 1) == TLS_FAILED && tls_shutdown(p.server) == TLS_FAILED);
        pair_close(&p);
    }
    /* Each byte of a record that is damaged on the way. */
    for (int at = 0;; at++) {
        pair_open(&p, tls_context_hold(context), NULL);
        TEST_CHECK(shake(&p));
        SSL_write(p.client, "secret", 6);
        size = BIO_read(SSL_get_wbio(p.client), cipher, sizeof cipher);
        if (at < size) {
            cipher[at] ^= 1;
            give(&p, cipher, (size_t)size);
            /* A length that is one more or 256 more waits for what never comes. */
            TEST_CHECK_((p.last == TLS_FAILED || (p.last == TLS_WANT && (at == 3 || at == 4))) &&
                            !p.plain_size,
                        "byte %d: %u", at, p.last);
            TEST_CHECK(p.last != TLS_FAILED ||
                       tls_pending(p.server, cipher, sizeof cipher) > 0); /* the alert */
        }
        pair_close(&p);
        if (at >= size)
            break;
    }
    tls_context_release(context);
    end();
}

static void check_refused(struct tls_context *context, const struct client_options *o)
{
    pair_open(&p, tls_context_hold(context), o);
    TEST_CHECK(!shake(&p) && p.last == TLS_FAILED);
    TEST_CHECK_(tls_why(p.server)[0], "a reason");
    pair_close(&p);
}

static void old_or_foreign_clients(void)
{
    static const unsigned char only_h2[] = "\x02h2";
    struct tls_context *context;
    begin();
    context = context_of(&first, NULL);
    check_refused(context,
                  &(struct client_options){.version_max = TLS1_1_VERSION, .ciphers = "ALL:@SECLEVEL=0"});
    check_refused(context,
                  &(struct client_options){.version_max = TLS1_VERSION, .ciphers = "ALL:@SECLEVEL=0"});
    check_refused(context, &(struct client_options){.alpn = only_h2, .alpn_size = 3});
    check_refused(context, &(struct client_options){.version_max = TLS1_2_VERSION,
                                                    .ciphers = "ECDHE-ECDSA-AES128-SHA256"});
    tls_context_release(context);
    end();
}

static void no_renegotiation(void)
{
    begin();
    pair_open(&p, context_of(&first, NULL), &(struct client_options){.version_max = TLS1_2_VERSION});
    TEST_CHECK(shake(&p));
    TEST_CHECK(SSL_renegotiate(p.client) == 1);
    SSL_do_handshake(p.client);
    carry(&p);
    TEST_CHECK(SSL_do_handshake(p.client) != 1 && ERR_GET_REASON(ERR_peek_error()) == SSL_R_NO_RENEGOTIATION);
    pair_close(&p);
    end();
}

static void client_certificates(void)
{
    struct tls_context *context;
    begin();
    context = context_of(&first, client_identity.certificate);
    pair_open(&p, tls_context_hold(context), &(struct client_options){.identity = &client_identity});
    TEST_CHECK_(shake(&p), "%s", tls_why(p.server));
    talk(&p);
    pair_close(&p);
    check_refused(context, NULL);
    check_refused(context, &(struct client_options){.identity = &second});
    check_refused(context, &(struct client_options){.version_max = TLS1_2_VERSION});
    tls_context_release(context);
    end();
}

/* ---- contexts ---- */

static void check_no_context(const char *certificate, const char *key, const char *ca, const char *says)
{
    why[0] = 0;
    TEST_CHECK(!tls_context_create(certificate, key, ca, why, sizeof why));
    TEST_CHECK_(strncmp(why, says, strlen(says)) == 0 && strlen(why) > strlen(says), "%s", why);
}

static void contexts_that_are_refused(void)
{
    struct identity locked;
    char missing[64], garbage[64], says[256];
    FILE *f;
    begin();
    write_identity(&locked, "locked", 4, "passphrase");
    snprintf(missing, sizeof missing, "%s/missing", folder);
    snprintf(garbage, sizeof garbage, "%s/garbage", folder);
    f = fopen(garbage, "w");
    TEST_ASSERT(f && fputs("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", f) >= 0);
    fclose(f);
    snprintf(says, sizeof says, "certificate %s: No such file", missing);
    check_no_context(missing, first.key, NULL, says);
    snprintf(says, sizeof says, "key %s: No such file", missing);
    check_no_context(first.certificate, missing, NULL, says);
    snprintf(says, sizeof says, "certificate %s: ", garbage);
    check_no_context(garbage, first.key, NULL, says);
    snprintf(says, sizeof says, "certificate %s: ", first.key);
    check_no_context(first.key, first.key, NULL, says);
    snprintf(says, sizeof says, "key %s: ", first.certificate);
    check_no_context(first.certificate, first.certificate, NULL, says);
    snprintf(says, sizeof says, "key %s: ", second.key);
    check_no_context(first.certificate, second.key, NULL, says);
    snprintf(says, sizeof says, "key %s: ", locked.key);
    check_no_context(locked.certificate, locked.key, NULL, says);
    snprintf(says, sizeof says, "authorities %s: ", garbage);
    check_no_context(first.certificate, first.key, garbage, says);
    snprintf(says, sizeof says, "authorities %s: No such file", missing);
    check_no_context(first.certificate, first.key, missing, says);
    TEST_CHECK(ERR_peek_error() == 0);
    unlink(garbage);
    remove_identity(&locked);
    end();
}

static long serial_seen(struct pair *at)
{
    X509 *x = SSL_get1_peer_certificate(at->client);
    long serial = x ? ASN1_INTEGER_get(X509_get_serialNumber(x)) : 0;
    X509_free(x);
    return serial;
}

/* A reload: sessions go on with the context they began with, new ones have the new. */
static void replacement(void)
{
    static struct pair old, new;
    begin();
    TEST_CHECK(tls_context_here() == NULL);
    tls_context_install(context_of(&first, NULL));
    pair_open(&old, tls_context_here(), NULL);
    tls_context_install(context_of(&second, NULL));
    TEST_CHECK(shake(&old) && serial_seen(&old) == 1);
    pair_open(&new, tls_context_here(), NULL);
    TEST_CHECK(shake(&new) && serial_seen(&new) == 2);
    talk(&old);
    talk(&new);
    tls_context_install(NULL);
    TEST_CHECK(tls_context_here() == NULL);
    talk(&new);
    pair_close(&old);
    pair_close(&new);
    end();
}

enum { THREADS = 3, ROUNDS = 300 };
static struct tls_context *contexts[2];
static atomic_uint opened;

static void *open_and_close(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct tls *tls = tls_open(tls_context_here());
        opened += tls != NULL;
        tls_close(tls);
    }
    return NULL;
}

static void install_while_others_open(void)
{
    pthread_t threads[THREADS];
    begin();
    contexts[0] = context_of(&first, NULL);
    contexts[1] = context_of(&second, NULL);
    opened = 0;
    tls_context_install(tls_context_hold(contexts[0]));
    for (int i = 0; i < THREADS; i++)
        TEST_ASSERT(pthread_create(&threads[i], NULL, open_and_close, NULL) == 0);
    for (int i = 0; i < ROUNDS; i++)
        tls_context_install(tls_context_hold(contexts[i % 2]));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    TEST_CHECK(opened == THREADS * ROUNDS);
    tls_context_install(NULL);
    tls_context_release(contexts[0]);
    tls_context_release(contexts[1]);
    end();
}

/* On an actor's stack, handshakes of both versions with all they need. */
INSIDE(an_actor_has_stack_enough)
{
    static const int versions[] = {TLS1_3_VERSION, TLS1_2_VERSION};
    for (size_t i = 0; i < 2; i++) {
        struct tls_context *context = tls_context_here();
        TEST_ASSERT(context != NULL);
        pair_open(&p, context, &(struct client_options){.version_max = versions[i]});
        TEST_CHECK(shake(&p));
        talk(&p);
        TEST_CHECK(tls_shutdown(p.server) == TLS_WANT);
        pair_close(&p);
    }
}

static void inside_an_actor(void)
{
    begin();
    tls_context_install(context_of(&first, NULL));
    an_actor_has_stack_enough();
    tls_context_install(NULL);
    end();
}

TEST_LIST
= {
    {"TLS 1.3 and 1.2, ALPN http/1.1, no compression, no tickets (CTL-068)", both_versions},
    {"one byte at a time", one_byte_at_a_time},
    {"large data each way", large_data},
    {"closing, either side first", closing},
    {"bad bytes", bad_bytes},
    {"old versions, other protocols, weak ciphers are refused (CTL-068)", old_or_foreign_clients},
    {"no renegotiation", no_renegotiation},
    {"clients' certificates (CTL-131)", client_certificates},
    {"contexts that are refused", contexts_that_are_refused},
    {"a context is replaced while a session lives", replacement},
    {"contexts are installed while others open sessions", install_while_others_open},
    {"inside an actor", inside_an_actor},
    {NULL, NULL},
};
