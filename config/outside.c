#include "config/outside.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/plan.h"
#include "http/keyring.h"
#include "http/operator_token.h"
#include "http/otlp.h"
#include "http/vault.h"
#include "runtime/actor.h"
#include "store/directory.h"
#include "store/environment.h"

/* What is being looked at, for the refusals. */
struct look {
    const struct options *options;
    char *const *environment;
    char *text;
    size_t text_size;
};

/* A sentence about a setting, which begins with its place. */
__attribute__((format(printf, 3, 4))) static bool refuse(const struct look *l, enum option_position position,
                                                         const char *format, ...)
{
    char place[OPTION_PLACE_SIZE];
    va_list list;
    option_place(position, l->options, place);
    int used = snprintf(l->text, l->text_size, "%s", place);
    va_start(list, format);
    if (used > 0 && (size_t)used < l->text_size)
        vsnprintf(l->text + used, l->text_size - (size_t)used, format, list);
    va_end(list);
    return false;
}

/* ---- secrets ---- */

/* One that is to be in the store's directory may be missing, or not be reachable; the store says why. */
static bool good_in_store(const struct look *l, const char *name,
                          enum error (*look)(const char *path, char *text, size_t size))
{
    char path[DIRECTORY_PATH_MAX];
    if (snprintf(path, sizeof(path), "%s/%s", l->options->store_dir, name) >= (int)sizeof(path))
        return true;
    enum error e = look(path, l->text, l->text_size);
    return !e || e == ERR_MISSING || e == ERR_SYSTEM;
}

static bool good_secret(const struct look *l, enum option_position position, const char *path,
                        const char *name, enum error (*look)(const char *path, char *text, size_t size))
{
    char why[384];
    if (!*path)
        return good_in_store(l, name, look);
    return !look(path, why, sizeof(why)) || refuse(l, position, ": %s", why);
}

static bool secrets_good(const struct look *l)
{
    const struct options *o = l->options;
    return good_secret(l, OPTION_auth_master_key, o->auth_master_key, VAULT_FILE, vault_look) &&
           good_secret(l, OPTION_operator_token, o->operator_token, OPERATOR_TOKEN_FILE, operator_token_look);
}

bool outside_secrets(const struct options *options, char *ret_text, size_t text_size)
{
    const struct look look = {.options = options, .text = ret_text, .text_size = text_size};
    return secrets_good(&look);
}

/* ---- the store ---- */

bool outside_store(const struct options *options, char *ret_text, size_t text_size)
{
    const struct look look = {.options = options, .text = ret_text, .text_size = text_size};
    char at[DIRECTORY_PATH_MAX];
    struct stat stat_of;
    if (snprintf(at, sizeof(at), "%s", options->store_dir) >= (int)sizeof(at))
        return refuse(&look, OPTION_store_dir, " has more than %zu bytes", sizeof(at) - 1);
    for (size_t length = strlen(at); length > 1 && at[length - 1] == '/';)
        at[--length] = 0;
    bool there = stat(at, &stat_of) == 0;
    if (!there && errno == ENOENT) { /* it is made, but nothing above it */
        char *slash = strrchr(at, '/');
        if (!slash)
            snprintf(at, sizeof(at), ".");
        else
            slash[slash == at] = 0;
    }
    if (stat(at, &stat_of) == 0 && !S_ISDIR(stat_of.st_mode))
        errno = ENOTDIR;
    else if (access(at, R_OK | W_OK | X_OK) == 0)
        return !there || environment_suits(at, ret_text, text_size) == OK;
    return refuse(&look, OPTION_store_dir, ": no store can be kept in '%.300s': '%.300s': %s",
                  options->store_dir, at, strerror(errno));
}

/* ---- the others ---- */

static bool adapters_good(const struct look *l)
{
    const struct options *o = l->options;
    struct adapters_args args = {0};
    struct rlimit limit;
    char why[384];
    if (!plan_adapters(o->adapters, &args, why, sizeof(why)))
        return refuse(l, OPTION_adapters, " %s", why);
    for (size_t i = 0; i < ADAPTERS_MAX && args.adapters[i]; i++)
        if (strcmp(args.adapters[i]->name, "descriptors") == 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
            limit.rlim_max < o->descriptors)
            return refuse(l, OPTION_descriptors,
                          " is %llu, and this process may have %llu files open at most (ulimit -Hn, "
                          "LimitNOFILE=); raise that, or ask for fewer",
                          (unsigned long long)o->descriptors, (unsigned long long)limit.rlim_max);
    return true;
}

static bool trace_good(const struct look *l)
{
    struct otlp_options options;
    return !l->options->trace || otlp_options_parse(&options, l->environment, l->text, l->text_size);
}

static bool set_good(const struct look *l)
{
    char why[384];
    const char *file = l->options->auth_jwks_file;
    return !*file || keyring_set_look(file, why, sizeof(why)) ||
           refuse(l, OPTION_auth_jwks_file, ": '%s' can't be used: %s", file, why);
}

/* The journal is a new file; its folder may be the store's, which is made. */
static bool record_good(const struct look *l)
{
    const char *file = l->options->store_record, *slash = strrchr(file, '/');
    char folder[DIRECTORY_PATH_MAX];
    struct stat stat_of;
    if (!*file)
        return true;
    size_t length = slash ? (size_t)(slash - file) : 0;
    if (length >= sizeof(folder))
        return refuse(l, OPTION_store_record, " has more than %zu bytes", sizeof(folder) - 1);
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(length ? length : 1) : 1, slash ? file : ".");
    if (strcmp(folder, l->options->store_dir) == 0)
        return true;
    if (stat(folder, &stat_of) == 0 && !S_ISDIR(stat_of.st_mode))
        errno = ENOTDIR;
    else if (access(folder, W_OK | X_OK) == 0)
        return true;
    return refuse(l, OPTION_store_record, ": no file can be made in '%s': %s", folder, strerror(errno));
}

static bool tls_good(const struct look *l, struct tls_context **ret)
{
    const struct options *o = l->options;
    char why[384];
    if (!*o->tls_certificate)
        return true;
    *ret = tls_context_create(o->tls_certificate, o->tls_key, *o->tls_client_ca ? o->tls_client_ca : NULL,
                              why, sizeof(why));
    return *ret || refuse(l, OPTION_tls_certificate, ": %s", why);
}

bool outside_check(const struct options *options, char *const environment[], struct tls_context **ret_tls,
                   char *ret_text, size_t text_size)
{
    const struct look look = {options, environment, ret_text, text_size};
    if (ret_tls)
        *ret_tls = NULL;
    return adapters_good(&look) && trace_good(&look) && secrets_good(&look) && record_good(&look) &&
           set_good(&look) && (!ret_tls || tls_good(&look, ret_tls));
}

/* ---- sockets ---- */

bool outside_sockets(const struct options *o, const struct sockets *sockets, char *ret_text, size_t text_size)
{
    for (size_t i = 0; i < sockets->clients_count; i++) {
        const struct socket_set *set = &sockets->clients[i];
        const char *name =
            set->activated ? "the service manager's socket for clients" : "an address of http.listen";
        if (set->exposed && !options_plain_allowed(o, name, set->text, ret_text, text_size))
            return false;
    }
    return true;
}
