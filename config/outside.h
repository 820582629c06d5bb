/* Outside: whether what the settings rely on is there, and as they say. Certificates and keys, the variables of telemetry, files
 * of secrets, key sets, where the journal goes, how many files may be open.
 *
 * Looked at before anything is opened or made, so that a server that can't be whole leaves nothing behind: by a start, by 'config
 * check', and by a reload. What is found may have changed a moment later; whoever uses it looks again.
 *
 * Blocks for the disk. Sentences name the setting with its place, and the file or the variable.
 */
#ifndef COPPICE_CONFIG_OUTSIDE_H
#define COPPICE_CONFIG_OUTSIDE_H

#include "config/settings.h"
#include "config/sockets.h"
#include "http/tls.h"

/* `environment` is NULL-terminated, as environ. *ret_tls: of the certificate, the caller's; NULL without TLS. A NULL instead of
 * ret_tls: certificates aren't looked at, because the first one takes more stack than an actor has. False: a sentence. */
bool outside_check(const struct options *options, char *const environment[], struct tls_context **ret_tls,
                   char *ret_text, size_t text_size);

/* Of that, the files of secrets. One that a setting names must be there; those in the store's directory are made. */
bool outside_secrets(const struct options *options, char *ret_text, size_t text_size);

/* Whether a store can be in store.dir: it, or the directory that it is to be made in, can be written to, and nobody else's things are
 * there. A start says so itself. */
bool outside_store(const struct options *options, char *ret_text, size_t text_size);

/* Sockets that are open already, the service manager's or the guardian's, against the environment (CTL-068). False: a sentence. */
bool outside_sockets(const struct options *options, const struct sockets *sockets, char *ret_text,
                     size_t text_size);

#endif
