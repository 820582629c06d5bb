#include "http/operator_token.h"

#include <stdio.h>

#include "http/front.h"
#include "http/secret_file.h"
#include "runtime/actor.h"
#include "runtime/hex.h"
#include "store/sha256.h"

#define PREFIX "cop_op_"

enum { SECRET_SIZE = 32, PREFIX_LENGTH = sizeof(PREFIX) - 1 };

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* 256 bits as 43 characters of 6, the last of which has 4. */
static void write_token(const uint8_t secret[SECRET_SIZE], char token[OPERATOR_TOKEN_TEXT])
{
    uint32_t bits = 0, held = 0;
    size_t used = PREFIX_LENGTH;
    memcpy(token, PREFIX, PREFIX_LENGTH);
    for (size_t i = 0; i < SECRET_SIZE; i++) {
        bits = bits << 8 | secret[i];
        for (held += 8; held >= 6;) {
            held -= 6;
            token[used++] = digits[bits >> held & 63];
        }
    }
    token[used++] = digits[bits << (6 - held) & 63];
    token[used] = 0;
    ASSERT(used == OPERATOR_TOKEN_LENGTH);
}

static void hash_of(const char *token, size_t length, char hash[OPERATOR_TOKEN_HASH])
{
    uint8_t digest[SHA256_SIZE];
    sha256_of(token, length, digest);
    *hex_write(hash, digest, sizeof(digest)) = 0;
}

static bool token_sound(const char *token, size_t length)
{
    if (length != OPERATOR_TOKEN_LENGTH || memcmp(token, PREFIX, PREFIX_LENGTH) != 0)
        return false;
    for (size_t i = PREFIX_LENGTH; i < length; i++)
        if (!token[i] || !strchr(digits, token[i]))
            return false;
    return true;
}

static enum error make(const char *path, struct env *env, char token[OPERATOR_TOKEN_TEXT], char *ret_text,
                       size_t text_size)
{
    uint8_t secret[SECRET_SIZE];
    env->random(env, secret, sizeof(secret));
    write_token(secret, token);
    explicit_bzero(secret, sizeof(secret));
    char line[OPERATOR_TOKEN_TEXT];
    memcpy(line, token, OPERATOR_TOKEN_LENGTH);
    line[OPERATOR_TOKEN_LENGTH] = '\n';
    return secret_file_write(path, line, sizeof(line), ret_text, text_size);
}

static enum error read_token(const char *path, char token[OPERATOR_TOKEN_TEXT], char *ret_text,
                             size_t text_size)
{
    size_t size = 0;
    enum error e = secret_file_read(path, token, OPERATOR_TOKEN_TEXT, &size, ret_text, text_size);
    if (e)
        return e;
    size -= size > 0 && token[size - 1] == '\n';
    if (token_sound(token, size))
        return OK;
    snprintf(ret_text, text_size,
             "'%s' holds no operator's token, cop_op_ and 43 characters of base64url; one in the store's "
             "directory is made anew when it is removed",
             path);
    return ERR_FOREIGN;
}

enum error operator_token_look(const char *path, char *ret_text, size_t text_size)
{
    char token[OPERATOR_TOKEN_TEXT] = "";
    enum error e = read_token(path, token, ret_text, text_size);
    explicit_bzero(token, sizeof(token));
    return e;
}

enum error operator_token_open(const char *path, struct env *env, char ret_token[OPERATOR_TOKEN_TEXT],
                               char ret_hash[OPERATOR_TOKEN_HASH], char *ret_text, size_t text_size)
{
    char token[OPERATOR_TOKEN_TEXT] = "";
    enum error e = read_token(path, token, ret_text, text_size);
    bool made = e == ERR_MISSING;
    if (made)
        e = make(path, env, token, ret_text, text_size);
    if (e)
        return e;
    token[OPERATOR_TOKEN_LENGTH] = 0;
    hash_of(token, OPERATOR_TOKEN_LENGTH, ret_hash);
    snprintf(ret_token, OPERATOR_TOKEN_TEXT, "%s", made ? token : "");
    explicit_bzero(token, sizeof(token));
    return OK;
}

bool operator_token_check(const struct front *f, struct span authorization)
{
    static const char scheme[] = "bearer ";
    const char *at = authorization.bytes;
    char hash[OPERATOR_TOKEN_HASH];
    size_t head = sizeof(scheme) - 1;
    if (!f->operator_token_hash || authorization.size != head + OPERATOR_TOKEN_LENGTH)
        return false;
    for (size_t i = 0; i < head; i++)
        if ((at[i] | 0x20) != scheme[i])
            return false;
    hash_of(at + head, OPERATOR_TOKEN_LENGTH, hash);
    return secret_equal(hash, f->operator_token_hash, OPERATOR_TOKEN_HASH - 1);
}
