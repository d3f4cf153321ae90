/* cli.h — what the subcommands of `mdot` share. One file a subcommand, over the public headers only.
 *
 * Results go to stdout, messages to stderr. Exit status: 0 it worked, 1 it failed (a file, a machine, a failed check),
 * 2 the command line is wrong.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "mdot/mdot.h"

#include <getopt.h>
#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

/* argv[0] is the subcommand's name. */
typedef struct cli_command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} cli_command;

int cli_compile(int argc, char **argv);
int cli_check(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_predict(int argc, char **argv);
int cli_tokens(int argc, char **argv);
int cli_inspect(int argc, char **argv);
int cli_bench(int argc, char **argv);

/* "mdot compile: unknown option …" and where to find help; returns CLI_USAGE. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int
cli_usage_error(const char *command, const char *format, ...);
/* "mdot compile: <message>" to stderr; returns CLI_FAILED. */
int cli_report(const char *command, const mdot_error *err);
/* Flushes stdout; CLI_FAILED with a message when that fails (a full disk, a closed pipe), else `status`. */
int cli_finish(const char *command, int status);

/* getopt_long with our messages: the next option, -1 at the end, '?' after a reported usage error. `short_options`
 * begins with ':'. */
int cli_next_option(int argc, char **argv, const char *short_options, const struct option *options);

/* A whole number from least to most; a message to stderr and false otherwise. `what` names the option. */
bool cli_parse_int(const char *command, const char *what, const char *text, int64_t least, int64_t most, int64_t *out);

/* One of a list of names, as its index; a message that lists them and false otherwise. */
enum { CLI_NO_CHOICE = -1 };
bool cli_parse_choice(const char *command, const char *what, const char *text, const char *const *names, int count,
                      int *out);

/* Splits "a,b,c" in place into at most `most` items; false after a usage error where one is empty or there are more. */
bool cli_split_list(const char *command, const char *what, char *text, size_t most, const char **out_items,
                    size_t *out_count);

/* NAME=NUMBER or NAME=OTHER of --dim, taken apart in place and added; false after a usage error. */
enum { CLI_MAX_DIMS = 64 };
typedef struct cli_dims {
    mdot_dim_binding item[CLI_MAX_DIMS];
    size_t count;
} cli_dims;
bool cli_parse_dim(const char *command, char *text, cli_dims *dims);

/* A name from a file, for a terminal: control characters become '?', so that it cannot move the cursor. Cut to the
 * buffer, which is returned. */
typedef struct cli_text {
    char text[256];
} cli_text;
const char *cli_printable(cli_text *buffer, const char *name);

/* A JSON string with its quotes, everything escaped that must be; invalid UTF-8 becomes U+FFFD. */
void cli_json_string(FILE *stream, const char *text);

#endif
