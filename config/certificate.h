/* Certificates out of their time. Such a one can be used, and which clients take it is for them to say. A server starts with it,
 * and warns: one that restarts by itself in the night must not stay away because of a date. An operator's commands are stricter.
 */
#ifndef COPPICE_CONFIG_CERTIFICATE_H
#define COPPICE_CONFIG_CERTIFICATE_H

#include <stdbool.h>
#include <stddef.h>

#include "http/tls.h"

/* False, and a sentence: it has expired, or isn't good yet, by this machine's clock. */
bool certificate_in_time(struct tls_validity validity, const char *file, char *ret_text, size_t text_size);
/* A reload: true unless it would put one that is out of its time in the place of one that isn't. */
bool certificate_may_follow(struct tls_validity validity, const char *file, char *ret_text, size_t text_size);
/* To the log, if there is something to say. */
void certificate_warn(struct tls_validity validity, const char *file);

#endif
