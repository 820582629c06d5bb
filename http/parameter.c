#include "http/parameter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool parameter_text(const struct request *q, struct response *r, const char *name, char *room, size_t size)
{
    bool bad;
    if (request_query(q, name, room, size, &bad))
        return true;
    room[0] = 0;
    if (bad)
        response_error_about(r, ERROR_OPS_400_INVALID, name,
                             "is longer than %zu bytes, there twice, or holds an escape that can't be meant",
                             size - 1);
    return !bad;
}

bool parameter_number(const struct request *q, struct response *r, const char *name, uint64_t otherwise,
                      uint64_t most, uint64_t *ret_number)
{
    char text[16], *end;
    if (!parameter_text(q, r, name, text, sizeof(text)))
        return false;
    if (!text[0]) {
        *ret_number = otherwise;
        return true;
    }
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || value < 1 || value > most) {
        response_error_about(r, ERROR_OPS_400_INVALID, name, "is '%s'; it must be a number from 1 to %llu",
                             text, (unsigned long long)most);
        return false;
    }
    *ret_number = value;
    return true;
}

bool parameter_word(const struct request *q, struct response *r, const char *name, const char *const *words,
                    size_t count, size_t *ret_position)
{
    char text[32], list[256];
    if (!parameter_text(q, r, name, text, sizeof(text)))
        return false;
    *ret_position = 0;
    if (!text[0])
        return true;
    for (size_t i = 0; i < count; i++)
        if (strcmp(words[i], text) == 0) {
            *ret_position = i;
            return true;
        }
    size_t length = 0;
    for (size_t i = 0; i < count && length < sizeof(list); i++)
        length += (size_t)snprintf(list + length, sizeof(list) - length, "%s%s", i ? ", " : "", words[i]);
    response_error_about(r, ERROR_OPS_400_INVALID, name, "is '%s'; it must be one of: %s", text, list);
    return false;
}
