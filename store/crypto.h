/* libcrypto, loaded when it is first needed: it is 4 MB of a process and 2 ms of its start, and a server that nobody shows a
 * token to, that makes no key, speaks no TLS and copies nothing has no use for it (docs/decisions/0022-openssl-when-needed.md).
 *
 * Its functions are called through the table `crypto`: crypto.EVP_MD_CTX_new() is EVP_MD_CTX_new(). Types and constants are
 * those of its headers, and so are the types of the functions. Nobody may call them before crypto_load has said true, to him or
 * to whoever made what he uses; what is loaded stays until the process ends.
 */
#ifndef COPPICE_STORE_CRYPTO_H
#define COPPICE_STORE_CRYPTO_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/x509.h>
#include <stdbool.h>
#include <stddef.h>

#define CRYPTO_FILE "libcrypto.so.3"

#define CRYPTO_FUNCTIONS(X)             \
    X(ASN1_TIME_to_tm)                  \
    X(BIO_free)                         \
    X(BIO_new)                          \
    X(BIO_read)                         \
    X(BIO_read_ex)                      \
    X(BIO_s_mem)                        \
    X(BIO_write)                        \
    X(BIO_write_ex)                     \
    X(BN_bin2bn)                        \
    X(BN_bn2binpad)                     \
    X(BN_clear_free)                    \
    X(BN_free)                          \
    X(BN_is_odd)                        \
    X(BN_num_bits)                      \
    X(BN_secure_new)                    \
    X(ECDSA_SIG_free)                   \
    X(ECDSA_SIG_get0_r)                 \
    X(ECDSA_SIG_get0_s)                 \
    X(EC_GROUP_free)                    \
    X(EC_GROUP_new_by_curve_name)       \
    X(EC_POINT_free)                    \
    X(EC_POINT_mul)                     \
    X(EC_POINT_new)                     \
    X(EC_POINT_point2oct)               \
    X(ERR_clear_error)                  \
    X(ERR_peek_error)                   \
    X(ERR_reason_error_string)          \
    X(EVP_CIPHER_CTX_ctrl)              \
    X(EVP_CIPHER_CTX_free)              \
    X(EVP_CIPHER_CTX_new)               \
    X(EVP_DecryptFinal_ex)              \
    X(EVP_DecryptInit_ex)               \
    X(EVP_DecryptUpdate)                \
    X(EVP_DigestFinal_ex)               \
    X(EVP_DigestInit_ex)                \
    X(EVP_DigestSign)                   \
    X(EVP_DigestSignInit_ex)            \
    X(EVP_DigestUpdate)                 \
    X(EVP_DigestVerify)                 \
    X(EVP_DigestVerifyInit)             \
    X(EVP_EncryptFinal_ex)              \
    X(EVP_EncryptInit_ex)               \
    X(EVP_EncryptUpdate)                \
    X(EVP_MD_CTX_free)                  \
    X(EVP_MD_CTX_new)                   \
    X(EVP_MD_fetch)                     \
    X(EVP_MD_free)                      \
    X(EVP_PKEY_CTX_free)                \
    X(EVP_PKEY_CTX_new_from_name)       \
    X(EVP_PKEY_CTX_new_from_pkey)       \
    X(EVP_PKEY_free)                    \
    X(EVP_PKEY_fromdata)                \
    X(EVP_PKEY_fromdata_init)           \
    X(EVP_PKEY_get_size)                \
    X(EVP_PKEY_public_check)            \
    X(EVP_aes_256_gcm)                  \
    X(EVP_sha256)                       \
    X(OSSL_PARAM_BLD_free)              \
    X(OSSL_PARAM_BLD_new)               \
    X(OSSL_PARAM_BLD_push_BN)           \
    X(OSSL_PARAM_BLD_push_octet_string) \
    X(OSSL_PARAM_BLD_push_utf8_string)  \
    X(OSSL_PARAM_BLD_to_param)          \
    X(OSSL_PARAM_free)                  \
    X(X509_cmp)                         \
    X(X509_get0_notAfter)               \
    X(X509_get0_notBefore)              \
    X(d2i_ECDSA_SIG)

struct crypto {
#define X(name) __typeof__(name) *name;
    CRYPTO_FUNCTIONS(X)
#undef X
};
extern struct crypto crypto; /* written by crypto_load alone, once */

/* Loads it, unless that was done before; OpenSSL then initialises itself at its first use, openssl.cnf included. False: a
 * sentence for the log, and nothing has happened; it is tried anew the next time, so an installation needs no restart. `file` is
 * CRYPTO_FILE or another name for the loader. Reads files and takes a lock, once for a millisecond; any thread; in an actor
 * within a guarded section. */
bool crypto_load(const char *file, char *ret_why, size_t why_size);
/* Whether that was done. Any thread. */
bool crypto_loaded(void);

#endif
