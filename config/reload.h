/* Reload: the settings read again while the server runs, all or nothing.
 *
 * File and environment are read and checked as a start would, certificates are loaded, and only when all of that has
 * succeeded anything changes: the log's level and format, limits and time-outs of the fronts, quotas, the certificate that
 * new connections are shown. Of settings that a reload can't apply, those that differ from what the server was started with
 * are named. When anything is wrong, everything stays as it was, and the report says why.
 *
 * reload_install is for boot; reload_now for one actor (row "signals"), which may be asked by others with a call of type
 * SIGNALS_RELOAD (config/signals.h). It blocks its scheduler for as long as the files take to read.
 */
#ifndef COPPICE_CONFIG_RELOAD_H
#define COPPICE_CONFIG_RELOAD_H

#include "config/settings.h"

struct reload_report {
    bool done;        /* false: `why` says what is wrong, and nothing has changed */
    uint32_t applied; /* settings that have changed */
    uint32_t restart; /* settings that will, at the next start */
    char why[512];
    /* "log.level, http.idle, tls.certificate (until 2027-01-01T00:00:00.000Z)", the last one when it is another certificate,
     * whatever its file is called; what doesn't fit is left out */
    char applied_keys[512];
    char restart_keys[512];
};

/* All borrowed for the process's life. `settings` is what the server starts with; a new start forgets the last one's. */
void reload_install(const struct settings *settings, int argc, char *const argv[], char *const environment[]);
/* What is in force: what was loaded last, but for what needs a restart, which is as the server was started with; the file alone is
 * whole. NULL before reload_install. Any thread; good until the next reload but one. */
const struct settings *reload_settings(void);
/* What the server was started with. */
const struct settings *reload_started(void);

/* Who applies what of the settings concerns the fronts: limits and quotas (fronts_reload of config/fronts.h). Boot. */
void reload_on_apply(void (*apply)(void *context, const struct settings *settings), void *context);

void reload_now(struct reload_report *ret_report);
/* As a line of the log. */
void reload_tell(const struct reload_report *report);
void reload_write_json(const struct reload_report *report, struct json *json);

#endif
