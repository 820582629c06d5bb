/* Manual pages, generated from the tables: roff for man(1).
 *
 *     coppice.1           the program, and one coppice-COMMAND.1 for each command
 *     coppice.json.5      the file of settings
 *     coppice-api.7       the routes of the server and its errors
 *     settings.md         the settings as a table, for docs/; not among those that are installed
 *     coppice.8           running the server: signals, sockets, logs, exit statuses
 *
 * `coppice manual list` prints the names of all of them; `make install` asks for each.
 */
#ifndef COPPICE_CONFIG_MANUAL_H
#define COPPICE_CONFIG_MANUAL_H

#include "config/options.h"

/* False: there is no such page. */
bool manual_write(struct json_sink *sink, const char *page);
void manual_list(struct json_sink *sink);
int command_manual(const struct options *o);

#endif
