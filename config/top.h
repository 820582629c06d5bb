/* top: the actors of a running server on the terminal, once a second.
 *
 *     q quits      s sorts by another column     / keeps what matches      space stops the clock
 *     ? help       up, down choose an actor      Enter shows it            Esc goes back
 *
 * Nothing is changed from here. The alternate screen and the terminal's modes are restored on every way out, signals and
 * faults included, and while it is stopped (Ctrl-Z). Works from 80 columns and 24 lines on, without colours as well as with them. With --once one picture
 * of 80 columns goes to standard output, and no terminal is needed; with --json
 * the actors with the fullest mailboxes, as the server lists them.
 */
#ifndef COPPICE_CONFIG_TOP_H
#define COPPICE_CONFIG_TOP_H

#include "http/json_text.h"
#include "config/options.h"
#include "runtime/json.h"

#define TOP_ROWS_MAX     4096u /* actors that are looked at */
#define TOP_CHILDREN_MAX 200u  /* of each supervisor, or fewer where there are more than can be looked into */
#define TOP_COLUMNS_MAX  400u
#define TOP_FILTER_MAX   40u

#define TOP_ORDERS(X)       \
    X(MAILBOX, "mailbox")   \
    X(RATE, "handled/s")    \
    X(RESTARTS, "restarts") \
    X(MEMORY, "memory")     \
    X(NAME, "name")         \
    X(TREE, "place in the tree")

enum top_order {
#define X(id, name) TOP_BY_##id,
    TOP_ORDERS(X)
#undef X
        TOP_ORDER_COUNT
};

struct top_row {
    char name[64], pid[24], class_name[32], state[16], last_exit[48];
    uint64_t mailbox, handled, rate, restarts, memory;
    uint32_t place;
    bool supervisor;
};

/* What is on the screen; constant memory, so that a picture can be drawn of any answer in a test. */
struct top {
    struct top_row rows[TOP_ROWS_MAX];
    size_t count, shown, chosen, first;
    uint64_t left_out;             /* of the tree, beside the rows */
    uint32_t children;             /* of each supervisor, that are asked for; 0: TOP_CHILDREN_MAX */
    size_t order_of[TOP_ROWS_MAX]; /* positions of rows, as they are shown */
    enum top_order order;
    char filter[TOP_FILTER_MAX];
    bool paused, typing, color;
    char keep[24];  /* pid of the chosen one, until a new answer is in order */
    uint64_t at_ns; /* of the last answer; 0: none yet */
    char where[80];
    char trouble[160]; /* instead of the figures: why there are none */
};

/* Rows of an answer of /stats/tree, with rates since the one before. False: it holds no tree. */
bool top_take(struct top *top, const struct json_text *tree, uint64_t now_ns);
/* One picture of this many columns and lines, each line ended by a line feed (and, on a terminal, cleared behind). */
void top_draw(struct top *top, struct json_sink *sink, size_t columns, size_t lines, bool terminal);
/* One key: 'q', '/', ..., or one of TOP_KEY_... False: it is over. */
enum { TOP_KEY_UP = 0x100, TOP_KEY_DOWN, TOP_KEY_ESCAPE, TOP_KEY_ENTER, TOP_KEY_BACKSPACE, TOP_KEY_NONE };
enum top_view { TOP_VIEW_TABLE, TOP_VIEW_HELP, TOP_VIEW_ACTOR };
bool top_key(struct top *top, enum top_view *view, int key);

int command_top(const struct options *o);

#endif
