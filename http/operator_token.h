/* The operator's token: what the operator surface asks for where the file system doesn't decide who gets in.
 *
 * Made at the first start: "cop_op_" and 43 characters of base64url, 256 bits of chance. The file (0600, in the store's
 * directory) is how the command line of the same user shows it; it is printed once, by whoever started the server. The
 * server keeps its SHA-256 alone, and compares in constant time. To change it, remove the file and restart.
 */
#ifndef COPPICE_HTTP_OPERATOR_TOKEN_H
#define COPPICE_HTTP_OPERATOR_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/env.h"
#include "runtime/error.h"
#include "store/span.h"

struct front;

#define OPERATOR_TOKEN_FILE   "operator.token"
#define OPERATOR_TOKEN_LENGTH 50u                          /* "cop_op_" and 43 */
#define OPERATOR_TOKEN_TEXT   (OPERATOR_TOKEN_LENGTH + 1u) /* and the end */
#define OPERATOR_TOKEN_HASH   65u                          /* 64 hex digits and the end */

/* Boot. Reads the file, or makes it: ret_token is the token when it is new, else empty. Errors as http/secret_file.h;
 * ERR_FOREIGN: what is in it is no token of ours. */
enum error operator_token_open(const char *path, struct env *env, char ret_token[OPERATOR_TOKEN_TEXT],
                               char ret_hash[OPERATOR_TOKEN_HASH], char *ret_text, size_t text_size);
/* Whether there is one; makes nothing. Errors as operator_token_open, and ERR_MISSING. */
enum error operator_token_look(const char *path, char *ret_text, size_t text_size);
/* authorization: the header's value, "Bearer cop_op_...". False as well when the front has no token to compare with. */
bool operator_token_check(const struct front *f, struct span authorization);

#endif
