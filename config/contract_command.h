/* The commands over the contracts: `coppice contract show` and `coppice contract check`. Neither needs a server.
 *
 * Both print into the sink and return the status to leave with; with another than 0 a sentence may be in ret_why.
 *
 * show: "openapi" (of the control surface), "asyncapi", "jobs", "work" and "ops" are the documents byte for byte as YAML, with
 * `json` as the JSON that is served; `strict` makes the event contract one that strict parsers take (x-deprecated for
 * deprecated). "errors" is the catalogue, "events" the table of events: tab-separated with a line of headings, with
 * `json` an array of objects. 64: there is no such thing.
 *
 * check: a version of paths (/v1/) that is served is declared in info.x-path-versions of the contract 'ops', and one that
 * isn't any more was deprecated two releases ago at least (info.x-release, CTL-026); every route is an operation of a contract and every operation has a route; every event is bound to details, on
 * a channel, with a registered class; the catalogue has what the contracts need. With `base`, an older version of a
 * document (JSON) or a folder of them (docs/contract of an older release): what changed since, which must be compatible
 * or come with a higher major version and a guide (http/contract_diff.h). A contract that no route serves at all yet is
 * a note, not a finding. 0: nothing was found; 1: something was, one line each; 64: the base can't be used.
 */
#ifndef COPPICE_CONFIG_CONTRACT_COMMAND_H
#define COPPICE_CONFIG_CONTRACT_COMMAND_H

#include "http/surface.h"
#include "runtime/json.h"

int contract_command_show(const char *what, bool json, bool strict, struct json_sink *sink, char *ret_why,
                          size_t why_size);
/* `listenings`: the routes of so many listeners. `base` may be NULL. */
int contract_command_check(const struct surface_tables *listenings, size_t count, const char *base, bool json,
                           struct json_sink *sink, char *ret_why, size_t why_size);

/* What check found, for tests: a finding is an error of ours. */
typedef void contract_finding(void *context, const char *text);
/* A table of the form of control.events.tsv against the channels and schemas of the event contract. */
void contract_command_check_events(struct span table, contract_finding *tell, void *context);
/* The versions of paths that a document (JSON) declares in info.x-path-versions, against these paths, which are served, and
 * against an older document (empty: none). */
void contract_command_check_versions(struct span document, struct span base, const char *const *paths,
                                     size_t count, contract_finding *tell, void *context);

#endif
