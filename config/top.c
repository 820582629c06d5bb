#define _GNU_SOURCE
#include "config/top.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "config/commands.h"
#include "config/output.h"
#include "config/people.h"
#include "runtime/env.h"

enum { HEAD_LINES = 3, DEPTH_MAX = 20, ONCE_COLUMNS = 80, ONCE_LINES = 60 };

/* ---- rows from an answer ---- */

static uint64_t number_of(const struct json_text *json, const struct json_node *object, const char *name)
{
    const struct json_node *node = object ? json_member(json, object, name) : NULL;
    uint64_t value = 0;
    if (node && node->kind == JSON_NUMBER)
        (void)json_uint64_of(json, node, &value);
    return value;
}

static void text_of(const struct json_text *json, const struct json_node *object, const char *name,
                    char *text, size_t size)
{
    const struct json_node *node = json_member(json, object, name);
    text[0] = 0;
    if (node && node->kind == JSON_STRING)
        people_text(json, node, text, size);
}

static void take_node(struct top *t, const struct json_text *json, const struct json_node *node, size_t depth)
{
    if (node->kind != JSON_OBJECT)
        return;
    if (t->count == TOP_ROWS_MAX || depth > DEPTH_MAX) {
        t->left_out++;
        return;
    }
    struct top_row *row = &t->rows[t->count];
    const struct json_node *mailbox = json_member(json, node, "mailbox"),
                           *children = json_member(json, node, "children"),
                           *supervisor = json_member(json, node, "supervisor");
    *row = (struct top_row){.place = (uint32_t)t->count};
    text_of(json, node, "name", row->name, sizeof(row->name));
    text_of(json, node, "pid", row->pid, sizeof(row->pid));
    text_of(json, node, "class", row->class_name, sizeof(row->class_name));
    text_of(json, node, "state", row->state, sizeof(row->state));
    text_of(json, node, "last_exit", row->last_exit, sizeof(row->last_exit));
    row->mailbox = mailbox && mailbox->kind == JSON_OBJECT ? number_of(json, mailbox, "depth") : 0;
    row->handled = number_of(json, node, "handled");
    row->restarts = number_of(json, node, "restarts");
    row->memory = number_of(json, node, "arena_bytes");
    row->supervisor = children != NULL;
    if (supervisor && supervisor->kind == JSON_OBJECT)
        t->left_out += number_of(json, supervisor, "children_left_out");
    t->count++;
    if (!children || children->kind != JSON_ARRAY)
        return;
    for (const struct json_node *c = json_first(json, children); c; c = json_after(json, children, c))
        take_node(t, json, c, depth + 1);
}

static int by_pid(const void *a, const void *b)
{
    const struct top_row *x = a, *y = b;
    return strcmp(x->pid, y->pid);
}

bool top_take(struct top *t, const struct json_text *tree, uint64_t now_ns)
{
    static struct top_row before[TOP_ROWS_MAX];
    const struct json_node *root = json_root(tree);
    const struct json_node *node = root->kind == JSON_OBJECT ? json_member(tree, root, "tree") : NULL;
    size_t count = t->count;
    if (!node)
        return false;
    if (t->chosen < t->shown)
        memcpy(t->keep, t->rows[t->order_of[t->chosen]].pid, sizeof(t->keep));
    memcpy(before, t->rows, count * sizeof(*before));
    qsort(before, count, sizeof(*before), by_pid);
    t->count = 0;
    t->left_out = 0;
    take_node(t, tree, node, 0);
    uint64_t took_ms = t->at_ns && now_ns > t->at_ns ? (now_ns - t->at_ns) / NS_PER_MS : 0;
    for (size_t i = 0; i < t->count && took_ms; i++) {
        const struct top_row *was = bsearch(&t->rows[i], before, count, sizeof(*before), by_pid);
        if (was && t->rows[i].pid[0] && was->handled <= t->rows[i].handled)
            t->rows[i].rate = (t->rows[i].handled - was->handled) * 1000 / took_ms;
    }
    t->at_ns = now_ns;
    t->trouble[0] = 0;
    t->shown = 0; /* the order is made when it is drawn */
    return true;
}

/* ---- which are shown, and in which order ---- */

static const struct top *sorted; /* qsort takes no context */

static uint64_t weight(const struct top *t, const struct top_row *row)
{
    switch (t->order) {
    case TOP_BY_MAILBOX:
        return row->mailbox;
    case TOP_BY_RATE:
        return row->rate;
    case TOP_BY_RESTARTS:
        return row->restarts;
    case TOP_BY_MEMORY:
        return row->memory;
    case TOP_BY_NAME:
    case TOP_BY_TREE:
    case TOP_ORDER_COUNT:
        break;
    }
    return 0;
}

static int by_order(const void *a, const void *b)
{
    const struct top_row *x = &sorted->rows[*(const size_t *)a], *y = &sorted->rows[*(const size_t *)b];
    uint64_t v = weight(sorted, x), w = weight(sorted, y);
    if (v != w)
        return v > w ? -1 : 1;
    int names = sorted->order == TOP_BY_NAME ? strcmp(x->name, y->name) : 0;
    return names ? names : x->place < y->place ? -1 : x->place > y->place;
}

static bool matches(const struct top *t, const struct top_row *row)
{
    return !t->filter[0] || strcasestr(row->name, t->filter) || strcasestr(row->class_name, t->filter) ||
           strcasestr(row->state, t->filter);
}

static void arrange(struct top *t)
{
    t->shown = 0;
    for (size_t i = 0; i < t->count; i++)
        if (matches(t, &t->rows[i]))
            t->order_of[t->shown++] = i;
    sorted = t;
    qsort(t->order_of, t->shown, sizeof(t->order_of[0]), by_order);
    for (size_t i = 0; i < t->shown && t->keep[0]; i++)
        if (strcmp(t->rows[t->order_of[i]].pid, t->keep) == 0)
            t->chosen = i;
    t->keep[0] = 0;
    if (t->chosen >= t->shown)
        t->chosen = t->shown ? t->shown - 1 : 0;
}

/* ---- drawing ---- */

struct paper {
    struct json_sink *sink;
    size_t columns;
    bool terminal, color;
};

/* Exactly as many characters as there are columns, or fewer: never more. */
static void paper_line(struct paper *p, const char *text, const char *style)
{
    size_t count = 0, bytes = 0;
    for (; text[bytes]; bytes++) {
        if (((unsigned char)text[bytes] & 0xc0) == 0x80)
            continue;
        if (count++ == p->columns)
            break;
    }
    if (p->terminal && p->color && style)
        json_sink_text(p->sink, style);
    json_sink_bytes(p->sink, text, bytes);
    if (p->terminal && p->color && style)
        json_sink_text(p->sink, "\033[0m");
    json_sink_text(p->sink, p->terminal ? "\033[K\r\n" : "\n");
}

static const char *order_name(enum top_order order)
{
    static const char *const names[] = {
#define X(id, name) [TOP_BY_##id] = name,
        TOP_ORDERS(X)
#undef X
    };
    return names[order];
}

static void bytes_text(uint64_t bytes, char text[16])
{
    if (bytes < 10000)
        snprintf(text, 16, "%llu", (unsigned long long)bytes);
    else if (bytes < 10000ull << 10)
        snprintf(text, 16, "%lluK", (unsigned long long)bytes >> 10);
    else
        snprintf(text, 16, "%lluM", (unsigned long long)bytes >> 20);
}

static void draw_head(struct top *t, struct paper *p)
{
    char line[TOP_COLUMNS_MAX], left_out[48] = "";
    uint64_t waiting = 0, rate = 0, restarts = 0;
    for (size_t i = 0; i < t->count; i++) {
        waiting += t->rows[i].mailbox;
        rate += t->rows[i].rate;
        restarts += t->rows[i].restarts;
    }
    if (t->left_out)
        snprintf(left_out, sizeof(left_out), " of %zu", (size_t)(t->count + t->left_out));
    snprintf(line, sizeof(line),
             "coppice %s: %zu%s actors, %llu messages waiting, %llu/s handled, %llu restarts", t->where,
             t->count, left_out, (unsigned long long)waiting, (unsigned long long)rate,
             (unsigned long long)restarts);
    paper_line(p, t->trouble[0] ? t->trouble : line, t->trouble[0] ? "\033[31m" : "\033[1m");
    snprintf(line, sizeof(line), "by %s%s%s%s%s", order_name(t->order),
             t->filter[0] || t->typing ? ", only " : "", t->filter, t->typing ? "_" : "",
             t->paused ? ", stopped: space goes on" : "   (? for help)");
    paper_line(p, line, NULL);
    snprintf(line, sizeof(line), "  %-20s %-17s %-8s %6s %7s %8s %6s  %s", "NAME", "PID", "STATE", "QUEUE",
             "HANDLED", "RESTARTS", "MEMORY", "LAST EXIT");
    paper_line(p, line, "\033[7m");
}

static void draw_row(const struct top *t, struct paper *p, size_t position)
{
    const struct top_row *row = &t->rows[t->order_of[position]];
    char line[TOP_COLUMNS_MAX], memory[16];
    bool chosen = p->terminal && position == t->chosen;
    bytes_text(row->memory, memory);
    snprintf(line, sizeof(line), "%c %-20.20s %-17s %-8.8s %6llu %5llu/s %8llu %6s  %s", chosen ? '>' : ' ',
             row->name, row->pid[0] ? row->pid : "-", row->state, (unsigned long long)row->mailbox,
             (unsigned long long)row->rate, (unsigned long long)row->restarts, memory, row->last_exit);
    size_t length = strlen(line);
    while (length > 0 && line[length - 1] == ' ')
        line[--length] = 0;
    paper_line(p, line,
               chosen                                                                         ? "\033[1m"
               : row->mailbox >= 100 || (row->state[0] && strcmp(row->state, "running") != 0) ? "\033[33m"
                                                                                              : NULL);
}

void top_draw(struct top *t, struct json_sink *sink, size_t columns, size_t lines, bool terminal)
{
    struct paper paper = {.sink = sink,
                          .columns = columns < TOP_COLUMNS_MAX ? columns : TOP_COLUMNS_MAX - 1,
                          .terminal = terminal,
                          .color = t->color};
    size_t room = lines > HEAD_LINES ? lines - HEAD_LINES : 0;
    arrange(t);
    if (t->chosen < t->first)
        t->first = t->chosen;
    if (room && t->chosen >= t->first + room)
        t->first = t->chosen - room + 1;
    if (t->first + room > t->shown)
        t->first = t->shown > room ? t->shown - room : 0;
    draw_head(t, &paper);
    for (size_t i = 0; i < room && t->first + i < t->shown; i++)
        draw_row(t, &paper, t->first + i);
    if (terminal)
        json_sink_text(sink, "\033[J");
}

/* ---- keys ---- */

static bool key_of_filter(struct top *t, int key)
{
    size_t length = strlen(t->filter);
    if (key == TOP_KEY_ENTER || key == TOP_KEY_ESCAPE)
        t->typing = false;
    if (key == TOP_KEY_ESCAPE)
        t->filter[0] = 0;
    else if (key == TOP_KEY_BACKSPACE && length)
        t->filter[length - 1] = 0;
    else if (key >= ' ' && key < 0x7f && length + 1 < sizeof(t->filter))
        memcpy(t->filter + length, (char[]){(char)key, 0}, 2);
    return true;
}

bool top_key(struct top *t, enum top_view *view, int key)
{
    if (t->typing)
        return key_of_filter(t, key);
    if (*view != TOP_VIEW_TABLE) {
        if (key == 'q' || key == '?' || key == TOP_KEY_ESCAPE || key == TOP_KEY_ENTER)
            *view = TOP_VIEW_TABLE;
        return true;
    }
    switch (key) {
    case 'q':
        return false;
    case '?':
        *view = TOP_VIEW_HELP;
        break;
    case '/':
        t->typing = true;
        t->filter[0] = 0;
        break;
    case 's':
        t->order = (t->order + 1) % TOP_ORDER_COUNT;
        break;
    case ' ':
        t->paused = !t->paused;
        break;
    case 'k':
    case TOP_KEY_UP:
        t->chosen -= t->chosen > 0;
        break;
    case 'j':
    case TOP_KEY_DOWN:
        t->chosen += t->chosen + 1 < t->shown;
        break;
    case TOP_KEY_ENTER:
        *view = t->shown ? TOP_VIEW_ACTOR : TOP_VIEW_TABLE;
        break;
    case TOP_KEY_ESCAPE:
        t->filter[0] = 0;
        break;
    default:
        break;
    }
    return true;
}

/* ---- the terminal ---- */

static struct termios before, mode;
static volatile sig_atomic_t raw, over;

/* These are async-signal-safe. */
static void restore(void)
{
    static const char back[] = "\033[?25h\033[?1049l";
    if (!raw)
        return;
    raw = 0;
    if (write(STDOUT_FILENO, back, sizeof(back) - 1) < 0)
        return;
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/* For good: nobody takes it again behind it. */
static void give_back(void)
{
    over = 1;
    restore();
}

static bool take(void)
{
    static const char screen[] = "\033[?1049h\033[?25l";
    raw = 1;
    return tcsetattr(STDIN_FILENO, TCSANOW, &mode) == 0 &&
           write(STDOUT_FILENO, screen, sizeof(screen) - 1) == (ssize_t)sizeof(screen) - 1;
}

static void ended(int number)
{
    give_back();
    signal(number, SIG_DFL);
    raise(number);
}

static void on_signal(int number, void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler}; /* without SA_RESTART: the picture is drawn anew */
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

/* Ctrl-Z: stopped with the terminal given back, inside this handler until it is continued. */
static void stopped(int number)
{
    int kept = errno;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, number);
    restore();
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    on_signal(number, stopped);
    if (!raw && !over) /* nobody could stop it: there is no shell that would continue it */
        (void)take();
    errno = kept;
}

/* Also behind a SIGSTOP, of which nobody is told: the shell has set the terminal to its own modes. */
static void continued(int number)
{
    int kept = errno;
    (void)number;
    if (!over)
        (void)take();
    errno = kept;
}

static bool take_terminal(void)
{
    static const int endings[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    mode = before;
    mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    mode.c_cc[VMIN] = 0;
    mode.c_cc[VTIME] = 10; /* a read ends after a second: the clock of the picture */
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        on_signal(endings[i], ended);
    on_signal(SIGTSTP, stopped);
    on_signal(SIGCONT, continued);
    atexit(give_back);
    return take();
}

/* The next key, 0 after a second without one, -1 at the end of input. Keys may come faster than they are asked for. */
static int next_key(void)
{
    static unsigned char bytes[64];
    static size_t at, count;
    if (at == count) {
        ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));
        if (n == 0 || (n < 0 && errno == EINTR))
            return 0;
        if (n < 0)
            return -1;
        at = 0;
        count = (size_t)n;
    }
    unsigned char key = bytes[at++];
    if (key == 0x1b && count - at >= 2 && bytes[at] == '[') {
        unsigned char which = bytes[at + 1];
        at += 2;
        return which == 'A' ? TOP_KEY_UP : which == 'B' ? TOP_KEY_DOWN : TOP_KEY_NONE;
    }
    return key == 0x1b                  ? TOP_KEY_ESCAPE
           : key == '\r' || key == '\n' ? TOP_KEY_ENTER
           : key == 0x7f || key == 8    ? TOP_KEY_BACKSPACE
           : key                        ? key
                                        : TOP_KEY_NONE;
}

static bool put_all(void *context, const char *bytes, size_t length)
{
    (void)context;
    while (length > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

static const char help_page[] =
    "coppice top\r\n\r\n"
    "  q       quit\r\n"
    "  s       sort by another column\r\n"
    "  /       show only what holds the letters that follow; Enter keeps, Esc clears\r\n"
    "  space   stop the clock, go on\r\n"
    "  up, k   choose the actor above\r\n"
    "  down, j choose the one below\r\n"
    "  Enter   show the chosen actor\r\n"
    "  Esc     go back\r\n\r\n"
    "QUEUE is what waits in the mailbox, HANDLED messages a second since the last picture,\r\n"
    "RESTARTS how often it was started again, MEMORY the actor's own.\r\n"
    "Nothing can be changed from here; 'coppice kill' ends an actor.\r\n";

/* Without a word on standard error: what goes wrong stands in the picture. 200, or as client_call; NO_ANSWER: it
 * makes no sense; TOO_MUCH: it is more than can be looked into. */
enum { NO_ANSWER = 1, TOO_MUCH = 2 };
static int ask(const struct client *client, const char *target, struct json_text *json, char *why,
               size_t why_size)
{
    static char body[COMMAND_ANSWER_MAX];
    static struct json_node nodes[JSON_TEXT_NODES_MAX];
    struct json_sink sink;
    struct json_error error;
    json_sink_init(&sink, body, sizeof(body), NULL, NULL);
    int status = client_call(client, &(struct client_request){.method = "GET", .target = target}, &sink, why,
                             why_size);
    if (status != 200)
        return status;
    *json = (struct json_text){.nodes = nodes, .nodes_max = JSON_TEXT_NODES_MAX};
    if (sink.status == JSON_OK && json_text_read(json, span_of(body, sink.length), NULL, &error))
        return status;
    if (sink.status != JSON_OK || error.limit) {
        snprintf(why, why_size, "the answer is larger than what can be looked into");
        return TOO_MUCH;
    }
    snprintf(why, why_size, "the answer is not JSON: %s", error.what);
    return NO_ANSWER;
}

/* Of each supervisor as many as can be looked into; more again when there is plenty of room for them. */
static int ask_tree(struct top *t, const struct client *client, struct json_text *json, char *why,
                    size_t why_size)
{
    char target[64];
    uint32_t children = t->children ? t->children : TOP_CHILDREN_MAX;
    int status;
    for (;; children /= 2) {
        snprintf(target, sizeof(target), "/stats/tree?children=%u", children);
        status = ask(client, target, json, why, why_size);
        if (status != TOO_MUCH || children == 1)
            break;
    }
    bool room = status == 200 && children <= TOP_CHILDREN_MAX / 2 && json->count < JSON_TEXT_NODES_MAX / 3;
    t->children = room ? 2 * children : children;
    return status;
}

static int refresh(struct top *t, const struct client *client)
{
    struct env *env = env_real();
    struct json_text json;
    char why[sizeof(t->trouble)];
    int status = ask_tree(t, client, &json, why, sizeof(why));
    if (status != 200) {
        snprintf(t->trouble, sizeof(t->trouble), "%s", why);
    } else if (!top_take(t, &json, env->now(env))) {
        snprintf(t->trouble, sizeof(t->trouble), "the answer holds no tree");
        status = NO_ANSWER;
    }
    return status;
}

/* Each line feed of what is for people becomes the two bytes that a raw terminal needs. */
static void draw_actor(const struct top *t, const struct client *client, struct json_sink *sink)
{
    static char page[32768];
    struct json_sink text;
    struct json_text json;
    char why[200], target[256] = "/stats/actors/";
    json_sink_init(&text, page, sizeof(page) - 1, NULL, NULL);
    snprintf(target + strlen(target), sizeof(target) - strlen(target), "%s",
             t->chosen < t->shown ? t->rows[t->order_of[t->chosen]].pid : "");
    if (ask(client, target, &json, why, sizeof(why)) == 200)
        people_write(&text, &json, json_root(&json));
    else
        json_sink_text(&text, why);
    page[text.length] = 0;
    for (char *line = page, *end; *line; line = end) {
        end = line + strcspn(line, "\n");
        json_sink_bytes(sink, line, (size_t)(end - line));
        json_sink_text(sink, "\033[K\r\n");
        end += *end == '\n';
    }
    json_sink_text(sink, "\033[J");
}

static void draw(struct top *t, const struct client *client, enum top_view view)
{
    static char bytes[65536];
    struct winsize size = {.ws_col = 80, .ws_row = 24};
    struct json_sink sink;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
        size = (struct winsize){.ws_col = 80, .ws_row = 24};
    json_sink_init(&sink, bytes, sizeof(bytes), put_all, NULL);
    json_sink_text(&sink, "\033[H");
    if (view == TOP_VIEW_HELP) {
        json_sink_text(&sink, "\033[J");
        json_sink_text(&sink, help_page);
    } else if (view == TOP_VIEW_ACTOR) {
        draw_actor(t, client, &sink);
    } else {
        top_draw(t, &sink, size.ws_col, size.ws_row - 1u, true);
    }
    json_sink_flush(&sink);
}

static int once(struct top *t, const struct client *client)
{
    struct json_sink out = output_sink();
    int status = refresh(t, client);
    if (status != 200)
        return command_failed(client, status, t->trouble);
    top_draw(t, &out, ONCE_COLUMNS, ONCE_LINES, false);
    return output_done(&out);
}

int command_top(const struct options *o)
{
    static struct top top;
    struct client client;
    char why[512];
    enum top_view view = TOP_VIEW_TABLE;
    if (o->json)
        return command_top_json(o);
    int status = client_open(&client, o, why, sizeof(why));
    if (status)
        return output_complain(status, "", why);
    snprintf(top.where, sizeof(top.where), "%.79s", client.named);
    top.color = output_color(o);
    if (o->once)
        return once(&top, &client);
    if (!output_drawable())
        return output_complain(EXIT_USAGE, "top",
                               "needs a terminal, and not a dumb one; --once prints one picture without");
    if (!take_terminal()) {
        give_back();
        return output_complain(EXIT_FAILURE, "top", "can't have the terminal");
    }
    for (int key = 0; key >= 0;) {
        if (key == 0 && !top.paused && !top.typing)
            (void)refresh(&top, &client);
        else if (key && !top_key(&top, &view, key))
            break;
        draw(&top, &client, view);
        key = next_key();
    }
    give_back();
    return EXIT_SUCCESS;
}
