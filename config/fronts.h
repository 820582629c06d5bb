/* Fronts: what the two listeners share and what each has of its own, made at boot from the settings.
 *
 * Contracts are compiled, routes bound to them, the limiter made, certificates read: fronts_create. What lies in the store's
 * directory, the keyring's master key and the operator's token, comes with fronts_open. Whatever of it can't be had stops
 * the start with a sentence: a server is whole, or it isn't there.
 */
#ifndef COPPICE_CONFIG_FRONTS_H
#define COPPICE_CONFIG_FRONTS_H

#include "config/settings.h"
#include "config/sockets.h"
#include "http/front.h"
#include "http/otlp.h"
#include "http/surface.h"

struct fronts;

/* NULL: the sentence says why; the exit status is EXIT_CONFIG. Boot; allocates. Needs no store. */
struct fronts *fronts_create(const struct settings *settings, const struct sockets *sockets,
                             const struct living_rows *rows, char *ret_text, size_t text_size);
/* The rest, in the store's directory, which is there; a second time it does nothing. False: as above. */
bool fronts_open(struct fronts *fronts, const struct settings *settings, char *ret_text, size_t text_size);
void fronts_destroy(struct fronts *fronts);

/* A front for before the store is open (config/porch.h): the same paths and limits, and nobody who looks at credentials. */
void fronts_porch(struct fronts *fronts, enum listening listening, struct front *ret);
struct front *fronts_client(struct fronts *fronts);
struct front *fronts_operator(struct fronts *fronts);
struct keyring *fronts_keyring(struct fronts *fronts);
const struct otlp_options *fronts_otlp(const struct fronts *fronts);

/* What a reload may change: limits of both listeners and quotas. Any thread; what was before stays for FRONTS_RELOADS
 * reloads more, because somebody may be reading it. */
#define FRONTS_RELOADS 64u
void fronts_reload(struct fronts *fronts, const struct settings *settings);

#endif
