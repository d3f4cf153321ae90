/* cli.h — what the subcommands of `mdot` share. One file a subcommand, over the public headers and base/ only; what it
 * takes stands in a table (command.h).
 *
 * Results go to stdout, messages to stderr. Exit status: 0 it worked, 1 it failed (a file, a machine, a failed check),
 * 2 the command line is wrong.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "mdot/mdot.h"

#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

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

/* A regular file of an option, for reading; NULL with a message in *err for what is none, which is never waited for,
 * or for one that is larger than what people write. */
enum { CLI_MAX_FILE_BYTES = 1 << 20 };
FILE *cli_open_file(const char *path, mdot_error *err);

/* A whole number from least to most; false for any other text. */
bool cli_read_int(const char *text, int64_t least, int64_t most, int64_t *out);
/* The same with a message to stderr, in which `what` names the option. */
bool cli_parse_int(const char *command, const char *what, const char *text, int64_t least, int64_t most, int64_t *out);

/* What people write where a name of a list stands. */
typedef struct cli_word {
    const char *word; /* NULL ends a list */
    const char *name;
    bool is_same; /* taken for the name; else it means something that mdot does not know, and the name is the nearest */
} cli_word;

/* One of a list of names that ends with NULL, or of `words` (or NULL), in any case, as the name's index; CLI_NO_CHOICE
 * where it is none. */
enum { CLI_NO_CHOICE = -1 };
int cli_find_choice(const char *text, const char *const *names, const cli_word *words);
/* A usage error that names the nearest and lists what there is, `besides` (or NULL) behind the names; returns false. */
bool cli_refuse_choice(const char *command, const char *what, const char *text, const char *const *names,
                       const cli_word *words, const char *besides);
/* Both in one. */
bool cli_parse_choice(const char *command, const char *what, const char *text, const char *const *names,
                      const cli_word *words, int *out);

/* Splits "a,b,c" in place into at most `most` items; false after a usage error where one is empty or there are more. */
bool cli_split_list(const char *command, const char *what, char *text, size_t most, const char **out_items,
                    size_t *out_count);

/* NAME=NUMBER, from `least` on, or NAME=OTHER of --dim, taken apart in place and added; false after a usage error. */
enum { CLI_MAX_DIMS = 64 };
typedef struct cli_dims {
    mdot_dim_binding item[CLI_MAX_DIMS];
    size_t count;
} cli_dims;
bool cli_parse_dim(const char *command, char *text, int64_t least, cli_dims *dims);

/* The values of an option that repeats. */
enum { CLI_MAX_TEXTS = 64 };
typedef struct cli_texts {
    const char *item[CLI_MAX_TEXTS];
    size_t count;
} cli_texts;

/* What --level and --device take, for completion; they end with NULL. */
const char *const *cli_isa_names(void);
const char *const *cli_device_names(void);

/* A name from a file, for a terminal, where it cannot move the cursor (base/printable.h). Cut to the buffer, which is
 * returned. */
typedef struct cli_text {
    char text[256];
} cli_text;
const char *cli_printable(cli_text *buffer, const char *name);

/* A JSON string with its quotes, everything escaped that must be or that no terminal should see; invalid UTF-8 becomes
 * U+FFFD. */
void cli_json_string(FILE *stream, const char *text);

/* "1.23M": three digits and a decimal prefix. */
const char *cli_short_number(double number, char out[16]);

#endif
