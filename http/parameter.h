/* Parameters of the operator's queries. False: the value can't be meant, and the refusal is the answer. */
#ifndef COPPICE_HTTP_PARAMETER_H
#define COPPICE_HTTP_PARAMETER_H

#include "http/request.h"
#include "http/response.h"

/* "" when it is absent. `size` holds the longest good value and its 0. */
bool parameter_text(const struct request *q, struct response *r, const char *name, char *room, size_t size);
/* `otherwise` when it is absent; else a number from 1 to most. */
bool parameter_number(const struct request *q, struct response *r, const char *name, uint64_t otherwise,
                      uint64_t most, uint64_t *ret_number);
/* One of these words, by its position; 0 when it is absent. */
bool parameter_word(const struct request *q, struct response *r, const char *name, const char *const *words,
                    size_t count, size_t *ret_position);

#endif
