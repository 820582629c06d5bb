#include "http/vault.h"

#include <stdio.h>

#include "http/secret_file.h"
#include "runtime/actor.h"
#include "store/crypto.h"

enum { VERSION = 1, TAG_SIZE = 16 };

static enum error make(const char *path, struct env *env, struct vault *vault, char *ret_text,
                       size_t text_size)
{
    env->random(env, vault->key, sizeof(vault->key));
    return secret_file_write(path, vault->key, sizeof(vault->key), ret_text, text_size);
}

/* Wiped when it isn't one. */
static enum error read_key(const char *path, struct vault *vault, char *ret_text, size_t text_size)
{
    size_t size = 0;
    enum error e = secret_file_read(path, vault->key, sizeof(vault->key), &size, ret_text, text_size);
    if (!e && size != sizeof(vault->key)) {
        snprintf(ret_text, text_size, "'%s' has %zu bytes, and a master key has %u", path, size,
                 VAULT_KEY_SIZE);
        e = ERR_FOREIGN;
    }
    if (e)
        explicit_bzero(vault, sizeof(*vault));
    return e;
}

enum error vault_look(const char *path, char *ret_text, size_t text_size)
{
    struct vault vault;
    enum error e = read_key(path, &vault, ret_text, text_size);
    explicit_bzero(&vault, sizeof(vault));
    return e;
}

enum error vault_open(const char *path, struct env *env, struct vault *ret_vault, bool *ret_made,
                      char *ret_text, size_t text_size)
{
    struct vault vault;
    enum error e = read_key(path, &vault, ret_text, text_size);
    bool made = e == ERR_MISSING;
    if (made)
        e = make(path, env, &vault, ret_text, text_size);
    if (!e) {
        *ret_vault = vault;
        *ret_made = made;
    }
    explicit_bzero(&vault, sizeof(vault));
    return e;
}

void vault_close(struct vault *vault)
{
    explicit_bzero(vault, sizeof(*vault));
}

/* ---- AES-256-GCM ---- */

static bool seal(EVP_CIPHER_CTX *context, const struct vault *vault, struct span name, struct span plain,
                 uint8_t *sealed)
{
    uint8_t *cipher = sealed + 1 + VAULT_NONCE_SIZE;
    int length;
    return crypto.EVP_EncryptInit_ex(context, crypto.EVP_aes_256_gcm(), NULL, vault->key, sealed + 1) == 1 &&
           crypto.EVP_EncryptUpdate(context, NULL, &length, name.bytes, (int)name.size) == 1 &&
           crypto.EVP_EncryptUpdate(context, cipher, &length, plain.bytes, (int)plain.size) == 1 &&
           crypto.EVP_EncryptFinal_ex(context, cipher + length, &length) == 1 &&
           crypto.EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, cipher + plain.size) == 1;
}

void vault_seal(const struct vault *vault, const uint8_t nonce[VAULT_NONCE_SIZE], struct span name,
                struct span plain, uint8_t *ret_sealed)
{
    ret_sealed[0] = VERSION;
    memcpy(ret_sealed + 1, nonce, VAULT_NONCE_SIZE);
    char why[200];
    actor_guard_begin();
    bool loaded = crypto_load(CRYPTO_FILE, why, sizeof(why));
    ASSERT(loaded); /* whose secret would it be? keys are made with it */
    EVP_CIPHER_CTX *context = crypto.EVP_CIPHER_CTX_new();
    ASSERT(context && seal(context, vault, name, plain, ret_sealed));
    crypto.EVP_CIPHER_CTX_free(context);
    actor_guard_end();
}

static bool decrypt(EVP_CIPHER_CTX *context, const struct vault *vault, struct span name,
                    const uint8_t *sealed, uint8_t *plain, uint32_t size)
{
    const uint8_t *cipher = sealed + 1 + VAULT_NONCE_SIZE;
    uint8_t tag[TAG_SIZE];
    int length;
    memcpy(tag, cipher + size, TAG_SIZE);
    return crypto.EVP_DecryptInit_ex(context, crypto.EVP_aes_256_gcm(), NULL, vault->key, sealed + 1) == 1 &&
           crypto.EVP_DecryptUpdate(context, NULL, &length, name.bytes, (int)name.size) == 1 &&
           crypto.EVP_DecryptUpdate(context, plain, &length, cipher, (int)size) == 1 &&
           crypto.EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, tag) == 1 &&
           crypto.EVP_DecryptFinal_ex(context, plain + length, &length) == 1;
}

static bool open_sealed(const struct vault *vault, struct span name, const uint8_t *sealed, uint8_t *plain,
                        uint32_t size)
{
    EVP_CIPHER_CTX *context = crypto.EVP_CIPHER_CTX_new();
    bool good = context && decrypt(context, vault, name, sealed, plain, size);
    crypto.EVP_CIPHER_CTX_free(context);
    crypto.ERR_clear_error();
    return good;
}

bool vault_unseal(const struct vault *vault, struct span name, struct span sealed, void *ret_plain,
                  uint32_t size)
{
    char why[200];
    if (sealed.size != size + VAULT_OVERHEAD || *(const uint8_t *)sealed.bytes != VERSION)
        return false;
    actor_guard_begin();
    bool good =
        crypto_load(CRYPTO_FILE, why, sizeof(why)) && open_sealed(vault, name, sealed.bytes, ret_plain, size);
    actor_guard_end();
    if (!good)
        explicit_bzero(ret_plain, size);
    return good;
}
