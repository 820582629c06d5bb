/* Output of the command line: data on standard output, everything else on standard error.
 *
 * A reader that has gone (coppice tree | head) ends the program quietly. Colours only on a terminal, unless NO_COLOR is
 * set, TERM is dumb, or --no-color was given. One thread.
 */
#ifndef COPPICE_CONFIG_OUTPUT_H
#define COPPICE_CONFIG_OUTPUT_H

#include "config/options.h"

#define EXIT_UNAVAILABLE 69
#define EXIT_SYSTEM      71
#define EXIT_IO          74

/* SIGPIPE and SIGXFSZ are ignored from now on: what they would have said, writes say. Of standard input, output and error those that are
 * closed become /dev/null. First of all, before anything is opened. */
void output_open(void);
struct json_sink output_sink(void); /* one at a time */
/* Writes the rest. The exit status: 0 also when the reader has gone; else EXIT_IO, and standard error says why. */
int output_done(struct json_sink *sink);
/* The errno with which standard output took no more, EPIPE when its reader has gone; or 0. */
int output_refusal(void);
/* "coppice: what text" on standard error; returns the status. `what` may be empty. */
int output_complain(int status, const char *what, const char *text);
/* The same of settings that can't be used, with the code that the contract has for that (JOB-360, JOB-454). EXIT_CONFIG. */
int output_refuse_settings(const char *text);
bool output_color(const struct options *o);
bool output_drawable(void);    /* a terminal on both sides that knows the usual escapes */
bool output_interactive(void); /* somebody can be asked: standard input and error are terminals */
/* Asks, on standard error, and waits for a line: true for y or yes. */
/* Lets this much time pass. False: standard output is gone, or a signal came. */
bool output_pause(uint64_t ns);
bool output_ask(const char *question);

#endif
