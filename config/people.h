/* JSON for people: what a server answers, as lines and tables.
 *
 * An object becomes lines "name  value", its objects below it, further to the right; a list of objects becomes a table with
 * a column for each member that holds no list or object in any of them; a list of words stands in one line. Control
 * characters were escaped by whoever wrote the JSON, and stay so. Pure; one thread.
 */
#ifndef COPPICE_CONFIG_PEOPLE_H
#define COPPICE_CONFIG_PEOPLE_H

#include "http/json_text.h"
#include "runtime/json.h"

#define PEOPLE_COLUMNS_MAX 16u
#define PEOPLE_CELL_MAX    60u /* characters of a cell; a longer one ends in "..." */
#define PEOPLE_WIDE_MAX    500u

void people_write(struct json_sink *sink, const struct json_text *json, const struct json_node *node);
/* The same with cells of up to PEOPLE_WIDE_MAX characters. */
void people_write_wide(struct json_sink *sink, const struct json_text *json, const struct json_node *node);
/* Whether a cell of a table has room for it: a plain value, or a list of them. */
bool people_cell(const struct json_text *json, const struct json_node *node);
/* A value as one word or text, without quotes; "-" for null. At most size - 1 bytes. */
void people_text(const struct json_text *json, const struct json_node *node, char *text, size_t size);

#endif
