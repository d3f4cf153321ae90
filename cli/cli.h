/* cli.h — helpers that the subcommands of `mdot` share. Each subcommand has a file cmd_NAME.c, which uses only the
 * public headers and base/. A table defines its options (command.h).
 *
 * Results go to stdout, messages to stderr. Exit status: 0 success, 1 failure (a file, a machine, a failed check), 2
 * the command line is wrong.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "mdot/mdot.h"

#include <stdio.h>

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

#define CLI_GIB ((double)(1 << 30)) /* bytes */

/* Prints "mdot compile: <message>" to stderr, or "mdot: <message>" if the command is NULL. All messages take this way,
 * which makes them one printable line, because they repeat text from files and arguments. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void
cli_message(const char *command, const char *format, ...);
/* Prints "mdot compile: unknown option …" and a reference to the help; returns CLI_USAGE. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int
cli_usage_error(const char *command, const char *format, ...);
/* Prints "mdot compile: <message>" to stderr; returns CLI_FAILED. */
int cli_report(const char *command, const mdot_error *err);
/* Flushes stdout. Returns CLI_FAILED with a message if that fails (a full disk, a closed pipe), otherwise `status`. */
int cli_finish(const char *command, int status);

/* Opens a regular file that an option names, for reading. NULL with a message in *err for any other kind of file,
 * without waiting for it, and for a file that is larger than people write by hand. */
enum { CLI_MAX_FILE_BYTES = 1 << 20 };
FILE *cli_open_file(const char *path, mdot_error *err);

/* Reads a whole number from least to most, for example 1000, 1_000 or 1e3; false for any other text. */
bool cli_read_int(const char *text, int64_t least, int64_t most, int64_t *out);
/* Like cli_read_int, with a message to stderr. The first string after the command names the option. */
bool cli_parse_int(const char *command, const char *what, const char *text, int64_t least, int64_t most, int64_t *out);

/* A synonym of a name in a list of choices. */
typedef struct cli_word {
    const char *word; /* NULL terminates a list */
    const char *name;
    bool is_same; /* true: the word is accepted as the name. false: it means something that mdot lacks, and the name
                   * is the nearest */
} cli_word;

/* Finds a name in a list that NULL terminates, or in `words` (may be NULL), ignoring case. Returns the name's index,
 * or CLI_NO_CHOICE if it is unknown. */
enum { CLI_NO_CHOICE = -1 };
int cli_find_choice(const char *text, const char *const *names, const cli_word *words);
/* Prints a usage error that suggests the nearest name and lists all names, followed by `besides` (may be NULL).
 * Returns false. */
bool cli_refuse_choice(const char *command, const char *what, const char *text, const char *const *names,
                       const cli_word *words, const char *besides);
/* Combines cli_find_choice and cli_refuse_choice. */
bool cli_parse_choice(const char *command, const char *what, const char *text, const char *const *names,
                      const cli_word *words, int *out);

/* Splits "a,b,c" in place into at most `most` items; false after a usage error if an item is empty or there are too
 * many. */
bool cli_split_list(const char *command, const char *what, char *text, size_t most, const char **out_items,
                    size_t *out_count);

/* Splits the NAME=NUMBER (from `least` on) or NAME=OTHER of --dim in place and adds it; false after a usage error. */
enum { CLI_MAX_DIMS = 64 };
typedef struct cli_dims {
    mdot_dim_binding item[CLI_MAX_DIMS];
    size_t count;
} cli_dims;
bool cli_parse_dim(const char *command, char *text, int64_t least, cli_dims *dims);

/* Values of a repeatable option. */
enum { CLI_MAX_TEXTS = 64 };
typedef struct cli_texts {
    const char *item[CLI_MAX_TEXTS];
    size_t count;
} cli_texts;

/* Values of --level and --device, for completion; terminated by NULL. */
const char *const *cli_isa_names(void);
const char *const *cli_device_names(void);

/* Makes a name from a file safe for a terminal, so that it cannot move the cursor (base/printable.h). Cuts it to the
 * buffer, which is returned. */
typedef struct cli_text {
    char text[256];
} cli_text;
const char *cli_printable(cli_text *buffer, const char *name);
/* Prints a text of any length in the same form. */
void cli_print_text(FILE *stream, const char *text);

/* Prints a JSON string with its quotes. All characters are escaped that JSON or a safe terminal require; invalid
 * UTF-8 becomes U+FFFD. */
void cli_json_string(FILE *stream, const char *text);

/* Formats a number as "1.23M": three digits and a decimal prefix. */
const char *cli_short_number(double number, char out[16]);

#endif
