/* Fronts: what the two listeners share and what each has of its own, made at boot from the settings.
 *
 * Contracts are compiled, routes bound to them, the keyring, the limiter and the operator's token opened. Whatever of it
 * can't be had stops the start with a sentence: a server is whole, or it isn't there.
 */
#ifndef COPPICE_CONFIG_FRONTS_H
#define COPPICE_CONFIG_FRONTS_H

#include "config/settings.h"
#include "config/sockets.h"
#include "http/front.h"
#include "http/otlp.h"

struct fronts;

/* NULL: *ret_status is the exit status, and the sentence says why. Boot; allocates. The store is open. */
struct fronts *fronts_create(const struct settings *settings, const struct sockets *sockets,
                             const struct living_rows *rows, int *ret_status, char *ret_text,
                             size_t text_size);
void fronts_destroy(struct fronts *fronts);

struct front *fronts_client(struct fronts *fronts);
struct front *fronts_operator(struct fronts *fronts);
struct keyring *fronts_keyring(struct fronts *fronts);
const struct otlp_options *fronts_otlp(const struct fronts *fronts);

/* What a reload may change: limits of both listeners and quotas. Any thread; what was before stays for FRONTS_RELOADS
 * reloads more, because somebody may be reading it. */
#define FRONTS_RELOADS 64u
void fronts_reload(struct fronts *fronts, const struct settings *settings);

#endif
