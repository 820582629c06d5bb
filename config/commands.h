/* Commands that ask a running server, over the operator's listener. Each returns the exit status: 0; 1 when the server
 * refused; 64 and 78 as ever; 69 when nobody answers; 77 when this user may not connect or not read the token. With --json the answer as it came, else for people. */
#ifndef COPPICE_CONFIG_COMMANDS_H
#define COPPICE_CONFIG_COMMANDS_H

#include "config/client.h"
#include "config/options.h"
#include "http/json_text.h"

int command_tree(const struct options *o);
int command_top_json(const struct options *o);
int command_stats(const struct options *o);
int command_events(const struct options *o);
int command_kill(const struct options *o);
int command_reload(const struct options *o);
int command_log_level(const struct options *o);
int command_clock_advance(const struct options *o);
int command_audit_list(const struct options *o);
int command_keys_list(const struct options *o);
int command_keys_rotate(const struct options *o);
int command_keys_revoke(const struct options *o);
int command_keys_bootstrap(const struct options *o);
int command_keys_history(const struct options *o);
int command_keys_issue(const struct options *o);
int command_token_issue(const struct options *o);
int command_token_revoke(const struct options *o);
int command_pause(const struct options *o);
int command_resume(const struct options *o);
int command_pauses(const struct options *o);
int command_outbox_dead(const struct options *o);
int command_outbox_revive(const struct options *o);
int command_principal_list(const struct options *o);
int command_principal_create(const struct options *o);
int command_principal_rotate(const struct options *o);
int command_principal_revoke(const struct options *o);

#define COMMAND_ANSWER_MAX (8u << 20) /* bytes of an answer that is looked into */

/* Once, or as --watch says. */
int command_again(const struct options *o, int (*once)(const struct options *o));
/* "/keys/KID:revoke": head, the escaped argument, tail. False: it is too long. */
bool command_target(char *target, const char *head, const char *argument, const char *tail);
/* GET, and the answer as --json or --output says. */
int command_show(const struct options *o, const char *head, const char *argument, const char *tail);

/* Complains of what came of a call that brought no answer; the exit status. */
int command_failed(const struct client *client, int status, const char *why);
/* One request, the whole answer: 0, and its JSON (which stands until the next call) in *ret_json; or the exit status,
 * with the complaint written. */
int command_ask(const struct options *o, const struct client_request *request, struct json_text *ret_json);

#endif
