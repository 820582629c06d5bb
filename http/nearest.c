#include "http/nearest.h"

#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: three rows of the usual table are enough to see swaps. */
size_t nearest_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_LENGTH_MAX + 1], m = strlen(a), n = strlen(b);
    if (m > NEAREST_LENGTH_MAX || n > NEAREST_LENGTH_MAX)
        return strcmp(a, b) == 0 ? 0 : m + n;
    size_t *before = rows[0], *above = rows[1], *row = rows[2];
    for (size_t j = 0; j <= n; j++)
        above[j] = before[j] = j;
    for (size_t i = 1; i <= m; i++) {
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *oldest = before;
        before = above;
        above = row;
        row = oldest;
    }
    return above[n];
}

void nearest_offer(struct nearest *n, const char *candidate)
{
    size_t near = strlen(n->word) / 3, distance = nearest_distance(n->word, candidate);
    if (distance > (near ? near : 1) || (n->best && distance >= n->distance))
        return;
    n->best = candidate;
    n->distance = distance;
}
