/* Tables of keys: made by the keyring's actor, opened by whoever reads one first, freed when nobody reads it. */
#include "http/keyring_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/json.h"

enum { JWK_NODES = 64 }; /* of a key of ours: it has 8 members */

/* ---- key sets ---- */

static struct keyring_entry *add_entry(struct key_table *table, const char *issuer, struct jwt_key *key,
                                       uint64_t until_s, bool own)
{
    struct keyring_entry *entry = &table->entries[table->count];
    *entry = (struct keyring_entry){.issuer = issuer, .key = key, .until_s = until_s, .issued_s = UINT64_MAX};
    for (uint32_t i = 0; i < table->count && !own; i++) {
        struct keyring_entry *other = &table->entries[i];
        if (strcmp(other->issuer, issuer) == 0 && strcmp(jwt_key_kid(other->key), jwt_key_kid(key)) == 0)
            entry->twice = other->twice = true;
    }
    table->count++;
    return entry;
}

bool key_table_add_set(struct key_table *table, const char *issuer, struct span text, struct json_node *nodes,
                       uint32_t *ret_good, char *ret_why, size_t why_size)
{
    struct json_text json = {.nodes = nodes, .nodes_max = KEYRING_SET_NODES};
    struct json_error error;
    *ret_good = 0;
    snprintf(ret_why, why_size, "it has no keys");
    if (!json_text_read(&json, text, NULL, &error)) {
        snprintf(ret_why, why_size, "it is no JSON: %s, at byte %u", error.what, error.at);
        return false;
    }
    const struct json_node *root = json_root(&json);
    const struct json_node *keys = root->kind == JSON_OBJECT ? json_member(&json, root, "keys") : NULL;
    if (!keys || keys->kind != JSON_ARRAY)
        return false;
    for (const struct json_node *jwk = json_first(&json, keys); jwk; jwk = json_after(&json, keys, jwk)) {
        struct jwt_key *key =
            table->count < KEYRING_KEYS_MAX ? jwt_key_from_jwk(&json, jwk, ret_why, why_size) : NULL;
        if (!key)
            continue;
        (void)add_entry(table, issuer, key, UINT64_MAX, false);
        (*ret_good)++;
    }
    return true;
}

bool key_set_read(const char *path, char *text, size_t *ret_size, struct timespec *ret_modified)
{
    struct stat stat;
    ssize_t size = -1;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    if (fstat(fd, &stat) == 0) {
        errno = S_ISDIR(stat.st_mode) ? EISDIR : !S_ISREG(stat.st_mode) ? EINVAL : EFBIG;
        if (S_ISREG(stat.st_mode) && stat.st_size <= (off_t)KEYRING_SET_BYTES_MAX)
            size = read(fd, text, KEYRING_SET_BYTES_MAX);
    }
    int error = errno;
    close(fd);
    errno = error;
    if (size < 0)
        return false;
    *ret_size = (size_t)size;
    *ret_modified = stat.st_mtim;
    return true;
}

struct set_trial {
    struct key_table table;
    struct json_node nodes[KEYRING_SET_NODES];
    char text[KEYRING_SET_BYTES_MAX];
};

static bool set_try(struct set_trial *trial, const char *file, char *why, size_t why_size)
{
    struct timespec modified;
    uint32_t good;
    size_t size;
    if (!key_set_read(file, trial->text, &size, &modified)) {
        snprintf(why, why_size, "%s", strerror(errno));
        return false;
    }
    return key_table_add_set(&trial->table, "", span_of(trial->text, size), trial->nodes, &good, why,
                             why_size) &&
           good > 0;
}

bool keyring_set_look(const char *file, char *ret_why, size_t why_size)
{
    actor_guard_begin();
    struct set_trial *trial = calloc(1, sizeof(*trial));
    bool good = trial && set_try(trial, file, ret_why, why_size);
    for (uint32_t i = 0; trial && i < trial->table.count; i++)
        jwt_key_free(trial->table.entries[i].key);
    free(trial);
    actor_guard_end();
    if (!trial)
        snprintf(ret_why, why_size, "no memory to look at it");
    return good;
}

/* ---- our own keys ---- */

static const char jwks_head[] = "{\"keys\":[";
enum { JWKS_HEAD = sizeof(jwks_head) - 1 };

struct span keyring_sealed_name(char name[128], const struct keyring *k, const char *kid)
{
    int length = snprintf(name, 128, "coppice signing key %s of %s", kid, k->options.environment);
    return span_of(name, (size_t)length);
}

static struct jwt_signer *signer_of(const struct keyring *k, const struct own_row *key)
{
    uint8_t secret[JWT_SECRET_SIZE];
    char name[128];
    if (!vault_unseal(&k->vault, keyring_sealed_name(name, k, key->kid),
                      span_of(key->sealed, key->sealed_size), secret, sizeof(secret)))
        return NULL;
    struct jwt_signer *signer = jwt_signer_create(key->kid, secret);
    explicit_bzero(secret, sizeof(secret));
    return signer;
}

static void add_own(struct keyring *k, struct key_table *table, const struct own_row *row)
{
    struct json_node nodes[JWK_NODES];
    struct json_text json = {.nodes = nodes, .nodes_max = JWK_NODES};
    struct json_error error;
    char why[200];
    bool active = row->own.state == SIGNING_KEY_ACTIVE;
    uint64_t until_s = active ? UINT64_MAX : row->own.expires_us / 1000000;
    if (table->count == KEYRING_KEYS_MAX ||
        !json_text_read(&json, span_of(row->jwk, row->jwk_size), NULL, &error))
        return;
    struct jwt_key *public = jwt_key_from_jwk(&json, json_root(&json), why, sizeof(why));
    if (!public || strcmp(jwt_key_kid(public), row->kid) != 0) { /* a row's key is the row's alone */
        jwt_key_free(public);
        return;
    }
    add_entry(table, k->options.issuer, public, until_s, true)->issued_s = row->own.issued_s;
    if (table->jwks_size > JWKS_HEAD)
        table->jwks[table->jwks_size++] = ',';
    memcpy(table->jwks + table->jwks_size, row->jwk, row->jwk_size);
    table->jwks_size += row->jwk_size;
    if (!active)
        return;
    table->signer = signer_of(k, row);
    table->created_us = row->own.created_us;
    atomic_store(&k->signless, !table->signer);
}

static void open_rows(struct keyring *k, struct key_table *table)
{
    memcpy(table->jwks, jwks_head, JWKS_HEAD);
    table->jwks_size = JWKS_HEAD;
    for (uint32_t i = 0; i < table->rows_count; i++)
        add_own(k, table, &table->rows[i]);
    memcpy(table->jwks + table->jwks_size, "]}", 2);
    table->jwks_size += 2;
    free(table->rows);
    table->rows = NULL;
    table->rows_count = 0;
    atomic_store_explicit(&table->opened, true, memory_order_release);
}

void key_table_open(struct keyring *k, struct key_table *table)
{
    char why[200];
    if (atomic_load_explicit(&table->opened, memory_order_acquire) || !keyring_prepare(k, why, sizeof(why)))
        return;
    pthread_mutex_lock(&k->lock);
    if (!atomic_load(&table->opened))
        open_rows(k, table);
    pthread_mutex_unlock(&k->lock);
}

/* ---- its life ---- */

static struct key_table *table_create(const struct own_row *rows, uint32_t count)
{
    struct key_table *table = calloc(1, sizeof(*table));
    if (!table)
        return NULL;
    table->jwks = malloc(16 + count * (SIGNING_KEY_JWK_MAX + 1));
    table->rows = count ? malloc(count * sizeof(*rows)) : NULL;
    if (!table->jwks || (count && !table->rows)) {
        key_table_free(table);
        return NULL;
    }
    if (count)
        memcpy(table->rows, rows, count * sizeof(*rows));
    table->rows_count = count;
    return table;
}

bool key_table_make(struct keyring *k, const struct own_row *rows, uint32_t count, struct json_node *nodes)
{
    char why[200];
    struct key_table *table = table_create(rows, count);
    uint32_t good;
    bool sets = false;
    if (!table)
        return false;
    for (int i = 0; i < SET_COUNT; i++)
        sets |= k->sets[i].text != NULL;
    atomic_store(&k->signless, false);
    if (!count)
        open_rows(k, table);
    else if (sets || k->vault_made || crypto_loaded())
        key_table_open(k, table);
    for (int i = 0; i < SET_COUNT; i++)
        if (k->sets[i].text)
            (void)key_table_add_set(table, k->options.jwks_issuer, span_of(k->sets[i].text, k->sets[i].size),
                                    nodes, &good, why, sizeof(why));
    keyring_publish(k, table);
    return true;
}

void key_table_free(struct key_table *table)
{
    if (!table)
        return;
    for (uint32_t i = 0; i < table->count; i++)
        jwt_key_free(table->entries[i].key);
    jwt_signer_free(table->signer);
    free(table->rows);
    free(table->jwks);
    free(table);
}
