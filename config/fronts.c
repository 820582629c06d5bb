#define _GNU_SOURCE /* environ */
#include "config/fronts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/access.h"
#include "config/certificate.h"
#include "config/clock.h"
#include "config/log.h"
#include "config/outside.h"
#include "http/api_key_auth.h"
#include "http/body.h"
#include "http/clients.h"
#include "http/operator_token.h"
#include "http/tls.h"
#include "http/vault.h"
#include "runtime/assert.h"

struct fronts {
    struct contracts *contracts;
    struct keyring *keyring;
    struct limiter *limiter;
    struct front client, operator_front;
    struct front_limits limits[FRONTS_RELOADS][LISTENING_COUNT]; /* in turn: the last one is in use */
    uint32_t generation;
    struct otlp_options otlp;
    bool local; /* the operator's listener is a unix socket */
    char token_hash[OPERATOR_TOKEN_HASH];
    char master_key[512];
};

/* ---- limits ---- */

static void limits_of(const struct options *o, struct front_limits ret[LISTENING_COUNT])
{
    const struct front_limits client = {
        .handshake_ns = o->tls_handshake_timeout,
        .head_ns = o->http_head_timeout,
        .idle_ns = o->http_idle,
        .write_ns = o->http_write_timeout,
        .request_ns = o->http_request_timeout,
        .store_ns = o->store_op_timeout,
        .body_max = (uint32_t)o->limits_max_body,
        .body_grace_ns = o->http_body_grace,
        .body_rate = (uint32_t)o->http_body_rate,
        .requests_max = (uint32_t)o->http_requests_max,
        .peer_max = (uint32_t)o->http_connections_per_address,
        .streams_max = (uint32_t)o->http_streams,
    };
    ret[LISTENING_CLIENT] = client;
    ret[LISTENING_OPERATOR] = client;
    ret[LISTENING_OPERATOR].head_ns = o->operator_idle;
    ret[LISTENING_OPERATOR].idle_ns = o->operator_idle;
    ret[LISTENING_OPERATOR].peer_max = 0;
    ret[LISTENING_OPERATOR].body_max = 0;
    ret[LISTENING_OPERATOR].requests_max = 0;
}

static void limits_use(struct fronts *f, const struct options *o)
{
    struct front_limits *next = f->limits[f->generation++ % FRONTS_RELOADS];
    limits_of(o, next);
    atomic_store_explicit(&f->client.limits, &next[LISTENING_CLIENT], memory_order_release);
    atomic_store_explicit(&f->operator_front.limits, &next[LISTENING_OPERATOR], memory_order_release);
}

void fronts_reload(struct fronts *f, const struct settings *settings)
{
    struct limiter_options limiter = {0};
    limits_use(f, &settings->options);
    settings_limiter(settings, &limiter);
    limiter_configure(f->limiter, &limiter);
}

/* ---- parts ---- */

static bool open_keyring(struct fronts *f, const struct settings *settings, char *text, size_t size)
{
    const struct options *o = &settings->options;
    snprintf(f->master_key, sizeof(f->master_key), "%s%s",
             o->auth_master_key[0] ? o->auth_master_key : o->store_dir,
             o->auth_master_key[0] ? "" : "/" VAULT_FILE);
    f->keyring = keyring_create(
        &(struct keyring_options){
            .issuer = o->auth_issuer,
            .audience = o->auth_audience,
            .environment = o->environment,
            .jwks_file = o->auth_jwks_file[0] ? o->auth_jwks_file : NULL,
            .jwks_url = o->auth_jwks_url[0] ? o->auth_jwks_url : NULL,
            .jwks_issuer = o->auth_jwks_issuer[0] ? o->auth_jwks_issuer : NULL,
            .master_key_file = f->master_key,
            .cadence_ns = o->keys_rotation_cadence,
            .overlap_ns = o->keys_overlap,
            .history_ns = o->keys_history,
            .revocation_ns = o->keys_revocation_sla,
            .templates = settings->templates,
            .templates_count = settings->templates_count,
            .jti_single_use = o->auth_jti_single_use,
            .env = clock_here(),
        },
        text, size);
    return f->keyring != NULL;
}

/* The operator's token: shown when it is made, and never again. */
static bool open_token(struct fronts *f, const struct options *o, char *text, size_t size)
{
    char path[512], token[OPERATOR_TOKEN_TEXT] = "";
    snprintf(path, sizeof(path), "%s%s", o->operator_token[0] ? o->operator_token : o->store_dir,
             o->operator_token[0] ? "" : "/" OPERATOR_TOKEN_FILE);
    if (operator_token_open(path, env_real(), token, f->token_hash, text, size) != OK)
        return false;
    if (token[0])
        LOG(LOG_WARN, "boot", "the operator's token was made; it is shown this once",
            {"shown_once", token, 0}, {"file", path, 0});
    return true;
}

static bool open_tls(const struct options *o, char *text, size_t size)
{
    struct tls_context *context;
    if (!o->tls_certificate[0])
        return true;
    context = tls_context_create(o->tls_certificate, o->tls_key,
                                 o->tls_client_ca[0] ? o->tls_client_ca : NULL, text, size);
    if (!context)
        return false;
    certificate_warn(tls_context_validity(context), o->tls_certificate);
    tls_context_install(context);
    return true;
}

static void front_for(struct fronts *f, struct front *front, const char *name, const struct options *o,
                      const struct living_rows *rows)
{
    front->name = name;
    front->version = COPPICE_VERSION;
    front->environment = o->environment;
    front->contracts = f->contracts;
    front->limiter = f->limiter;
    front->rows = rows;
    front->check_answers = o->http_check_answers;
    front->secure = strcmp(o->environment, "dev") != 0 || o->tls_certificate[0] || o->tls_terminated_by_proxy;
    front->embeddable = strcmp(o->http_frame_options, "SAMEORIGIN") == 0;
    front_allow_scripts(front, o->http_csp_script_src);
    front->security_contact = *o->security_contact ? o->security_contact : NULL;
    front->security_validity_ns = o->security_validity;
    front->log = o->http_access_log ? access_log : access_log_refused;
}

static bool make_fronts(struct fronts *f, const struct settings *settings, const struct sockets *sockets,
                        const struct living_rows *rows, char *text, size_t size)
{
    const struct options *o = &settings->options;
    f->local = sockets->operator_set.address.local_file;
    front_for(f, &f->client, "client", o, rows);
    front_for(f, &f->operator_front, "operator", o, rows);
    f->client.cors_origin = o->http_cors_origin[0] ? o->http_cors_origin : NULL;
    f->client.per_address = LIMIT_ADDRESS;
    f->client.refusals = LIMIT_FAILURES;
    f->operator_front.refusals = LIMIT_OPERATOR_FAILURES; /* nobody who has the token is ever told to wait */
    f->operator_front.loopback_only = !f->local;
    f->client.routes = surface_routes(LISTENING_CLIENT, f->contracts, text, size);
    f->operator_front.routes =
        f->client.routes ? surface_routes(LISTENING_OPERATOR, f->contracts, text, size) : NULL;
    if (!f->operator_front.routes)
        return false;
    limits_use(f, o);
    return true;
}

bool fronts_open(struct fronts *f, const struct settings *settings, char *ret_text, size_t text_size)
{
    const struct options *o = &settings->options;
    if (f->keyring)
        return true;
    if (!outside_secrets(o, ret_text, text_size) || !open_keyring(f, settings, ret_text, text_size) ||
        !open_token(f, o, ret_text, text_size))
        return false;
    f->client.keyring = f->operator_front.keyring = f->keyring;
    f->operator_front.operator_token_hash = f->local || !o->operator_auth ? NULL : f->token_hash;
    front_install(&f->client);
    front_install(&f->operator_front);
    return true;
}

struct fronts *fronts_create(const struct settings *settings, const struct sockets *sockets,
                             const struct living_rows *rows, char *ret_text, size_t text_size)
{
    const struct options *o = &settings->options;
    struct limiter_options limiter = {0};
    struct fronts *f = calloc(1, sizeof(*f));
    snprintf(ret_text, text_size, "no memory for the front");
    if (!f)
        return NULL;
    bool operators = strcmp(o->auth_bootstrap, "operator") == 0;
    clients_configure(
        &(struct client_settings){.key_lifetime_s = o->auth_key_lifetime / NS_PER_S,
                                  .bootstrap_s = operators ? 0 : o->auth_bootstrap_window / NS_PER_S,
                                  .kept_s = o->retention_revoked_keys / NS_PER_S});
    settings_limiter(settings, &limiter);
    bool whole = bodies_open() && api_keys_start() && (f->limiter = limiter_create(&limiter)) &&
                 (f->contracts = contracts_create(ret_text, text_size)) && open_tls(o, ret_text, text_size) &&
                 (!o->trace || otlp_options_parse(&f->otlp, environ, ret_text, text_size)) &&
                 make_fronts(f, settings, sockets, rows, ret_text, text_size);
    if (whole)
        return f;
    fronts_destroy(f);
    return NULL;
}

void fronts_destroy(struct fronts *f)
{
    if (!f)
        return;
    front_remove(&f->client);
    front_remove(&f->operator_front);
    routes_destroy(f->client.routes);
    routes_destroy(f->operator_front.routes);
    if (f->keyring)
        keyring_destroy(f->keyring);
    if (f->contracts)
        contracts_destroy(f->contracts);
    if (f->limiter)
        limiter_destroy(f->limiter);
    tls_context_install(NULL);
    api_keys_stop();
    bodies_close();
    free(f);
}

void fronts_porch(struct fronts *f, enum listening listening, struct front *ret)
{
    const struct front *like = listening == LISTENING_CLIENT ? &f->client : &f->operator_front;
    *ret = (struct front){.name = like->name,
                          .version = like->version,
                          .environment = like->environment,
                          .routes = like->routes,
                          .contracts = like->contracts,
                          .loopback_only = like->loopback_only,
                          .check_answers = like->check_answers,
                          .secure = like->secure,
                          .embeddable = like->embeddable,
                          .security_contact = like->security_contact,
                          .security_validity_ns = like->security_validity_ns,
                          .csp_length = like->csp_length,
                          .log = like->log,
                          .opening = true};
    memcpy(ret->csp, like->csp, sizeof(ret->csp));
    atomic_init(&ret->limits, atomic_load(&like->limits));
    atomic_init(&ret->draining, true); /* each answer closes its connection */
}

struct front *fronts_client(struct fronts *f)
{
    return &f->client;
}

struct front *fronts_operator(struct fronts *f)
{
    return &f->operator_front;
}

struct keyring *fronts_keyring(struct fronts *f)
{
    return f->keyring;
}

const struct otlp_options *fronts_otlp(const struct fronts *f)
{
    return &f->otlp;
}
