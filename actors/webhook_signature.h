/* Signatures of webhooks, as Standard Webhooks 1.0.0 makes them: HMAC-SHA256 over id, time and body.
 *
 *     webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=
 *
 * A secret is shown as "whsec_" and its bytes in base64. Nothing here blocks or allocates; any thread.
 */
#ifndef COPPICE_ACTORS_WEBHOOK_SIGNATURE_H
#define COPPICE_ACTORS_WEBHOOK_SIGNATURE_H

#include "store/span.h"

#define WEBHOOK_SECRET_PREFIX    "whsec_"
#define WEBHOOK_SECRET_BYTES_MAX 256u
#define WEBHOOK_SECRET_TEXT_MAX  (6u + (WEBHOOK_SECRET_BYTES_MAX + 2) / 3 * 4 + 1)
#define WEBHOOK_SIGNATURE_SIZE   (3u + 44u + 1u) /* "v1,", the base64 of 32 bytes, and the end */

/* What is signed: the delivery's id, the second of the attempt, and the body. */
struct webhook_message {
    struct span id;
    uint64_t at_s;
    struct span body;
};
void webhook_sign(struct span secret, const struct webhook_message *message,
                  char text[WEBHOOK_SIGNATURE_SIZE]);
/* A secret as it is shown. At most WEBHOOK_SECRET_BYTES_MAX bytes. */
void webhook_secret_write(struct span secret, char text[WEBHOOK_SECRET_TEXT_MAX]);
/* The bytes of one that is given: with the prefix in base64, padded or not, and 24 to 64 of them; any other text stands for itself.
 * False: it begins like one and isn't, or it is empty or too long. */
bool webhook_secret_read(struct span text, uint8_t bytes[WEBHOOK_SECRET_BYTES_MAX], uint32_t *ret_size);

#endif
