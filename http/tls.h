/* TLS for connections: OpenSSL over memory BIOs, so that the same actors do the reading, writing and waiting.
 *
 * A context holds certificate and key; loading a new one replaces it for connections made from then on. TLS 1.2 (ECDHE with
 * AES-GCM or ChaCha20 only) and 1.3; ALPN http/1.1, and who offers only others is refused; no compression, no renegotiation,
 * no resumption (each connection has keys of its own, and nothing kept would open an old one), the server's order of ciphers.
 *
 * Every call into OpenSSL is a guarded section: OpenSSL allocates, so a fault in it ends the process. Nothing here blocks or
 * waits, but for the first context: it loads libssl. A handshake takes up to TLS_STACK bytes of stack, and 0.2 ms of computing with a P-256 key, 0.5 with RSA of 2048 bits,
 * 4.4 with 4096; a session some 30 KiB of OpenSSL's heap (measured 2026-11-18). A session is used by one actor at a time; its
 * owner closes it, by tls_close as the release of an actor_own at the latest.
 */
#ifndef COPPICE_HTTP_TLS_H
#define COPPICE_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tls_context; /* counted: a session holds on to the one it began with */
struct tls;         /* one connection's session */

#define TLS_STACK 32768u /* 19 KiB were measured, with RSA of 2048 bits */

/* Reads the files and makes a handshake with itself: a pair of certificate and key that no client could use is refused, and
 * what OpenSSL loads at first use is loaded, which takes more stack than an actor has, so the first one is made at boot. A key
 * with a passphrase is refused. NULL and a sentence. client_ca: a file of authorities that clients' certificates must come
 * from, or NULL. Any thread. */
struct tls_context *tls_context_create(const char *certificate_file, const char *key_file,
                                       const char *client_ca, char *ret_text, size_t text_size);
void tls_context_release(struct tls_context *context);
struct tls_context *tls_context_hold(struct tls_context *context);

/* When the certificate is good, as it says itself, in seconds since 1970. One that isn't good at this time can be used: whether
 * clients take it is for them to say. */
struct tls_validity {
    int64_t from_s, until_s;
};
struct tls_validity tls_context_validity(const struct tls_context *context);
/* Whether it is another certificate than the one in use; true as well when none is. Any thread. */
bool tls_context_differs(const struct tls_context *context);
/* Of the one in use; false: none is. Any thread. */
bool tls_validity_here(struct tls_validity *ret_validity);

/* The one that new sessions of this process use: replaced at reload; the old one goes with its last session. Takes over the
 * hold; NULL: none any more. Any thread, as tls_context_here. */
void tls_context_install(struct tls_context *context);
struct tls_context *tls_context_here(void); /* held for the caller; NULL: no TLS */

struct tls *tls_open(struct tls_context *context); /* takes over the hold; NULL: no memory */
void tls_close(struct tls *tls);

enum tls_result { TLS_OK, TLS_WANT, TLS_CLOSED, TLS_FAILED };
/* Ciphertext from the peer in (all of it is taken), plaintext out. TLS_OK: *ret_size bytes (at least 1) are in `plain`, and
 * there may be more: call again with size 0 until TLS_WANT, before the peer's next bytes, so that what is held here stays
 * below what one call brought and a record. TLS_WANT: nothing more yet. TLS_CLOSED: the peer has closed its side properly. An
 * end of the connection without that is cut off: what came may not be whole. Whatever the result, what is to be sent
 * (handshake, alerts) is in tls_pending. room is at least 1. */
enum tls_result tls_receive(struct tls *tls, const char *cipher, size_t size, char *plain, size_t room,
                            size_t *ret_size);
/* The handshake is over. */
bool tls_established(const struct tls *tls);
/* Plaintext in, all of it or nothing; the ciphertext is to be taken by tls_pending, and until then takes memory: the caller
 * bounds `size`, and takes what is there before it sends more. TLS_WANT: the handshake isn't over, nothing was taken. */
enum tls_result tls_send(struct tls *tls, const char *plain, size_t size);
/* Close our side, once. TLS_OK: the peer has closed its side as well. TLS_WANT: not that we know; tls_receive says when.
 * TLS_FAILED: the handshake isn't over. */
enum tls_result tls_shutdown(struct tls *tls);
/* Up to `room` bytes of ciphertext to send; 0: none. */
size_t tls_pending(struct tls *tls, char *cipher, size_t room);
/* Of TLS_FAILED, which is for good; static. */
const char *tls_why(const struct tls *tls);

#endif
