/* libssl, loaded when TLS is configured; libcrypto comes with it (store/crypto.h, which says how such a table is used).
 *
 * ssl.SSL_new() is SSL_new(). What its headers make of macros is said with SSL_CTX_ctrl.
 */
#ifndef COPPICE_HTTP_SSL_H
#define COPPICE_HTTP_SSL_H

#include <openssl/ssl.h>

#include "store/crypto.h"

#define SSL_FILE "libssl.so.3"

#define SSL_FUNCTIONS(X)                  \
    X(SSL_CTX_check_private_key)          \
    X(SSL_CTX_ctrl)                       \
    X(SSL_CTX_free)                       \
    X(SSL_CTX_get0_certificate)           \
    X(SSL_CTX_get_verify_mode)            \
    X(SSL_CTX_load_verify_file)           \
    X(SSL_CTX_new)                        \
    X(SSL_CTX_set_alpn_select_cb)         \
    X(SSL_CTX_set_cipher_list)            \
    X(SSL_CTX_set_client_CA_list)         \
    X(SSL_CTX_set_default_passwd_cb)      \
    X(SSL_CTX_set_num_tickets)            \
    X(SSL_CTX_set_options)                \
    X(SSL_CTX_set_verify)                 \
    X(SSL_CTX_use_PrivateKey_file)        \
    X(SSL_CTX_use_certificate_chain_file) \
    X(SSL_accept)                         \
    X(SSL_connect)                        \
    X(SSL_free)                           \
    X(SSL_get_error)                      \
    X(SSL_get_rbio)                       \
    X(SSL_get_shutdown)                   \
    X(SSL_get_wbio)                       \
    X(SSL_is_init_finished)               \
    X(SSL_load_client_CA_file)            \
    X(SSL_new)                            \
    X(SSL_read_ex)                        \
    X(SSL_select_next_proto)              \
    X(SSL_set_accept_state)               \
    X(SSL_set_bio)                        \
    X(SSL_shutdown)                       \
    X(SSL_write_ex)                       \
    X(TLS_client_method)                  \
    X(TLS_server_method)

struct ssl {
#define X(name) __typeof__(name) *name;
    SSL_FUNCTIONS(X)
#undef X
};
extern struct ssl ssl; /* written by ssl_load alone, once */

/* As crypto_load, and libcrypto is loaded as well. */
bool ssl_load(const char *file, char *ret_why, size_t why_size);

#endif
