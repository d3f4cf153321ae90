/* command.h — a program or a subcommand as a table. Four users share the table: the loop that reads command lines
 * (options.c), `--help` (help.c), the man page (man.c) and completion in shells (completion.c). They are independent
 * of the programs: each program defines `cli_program`.
 *
 * Results go to stdout, messages to stderr. Exit status: 0 success, 1 failure (a file, a machine, a failed check), 2
 * the command line is wrong.
 */
#pragma once

#include "base/choice_word.h"
#include "base/status.h"
#include "mdot/mdot_base.h"

#include <stdio.h>

/* Type of an option's value. Its place is `at` bytes into the subcommand's request. */
typedef enum cli_kind {
    CLI_FLAG,     /* bool; takes no value */
    CLI_TEXT,     /* const char *: the value verbatim */
    CLI_WHOLE,    /* int64_t from `least` to `most` */
    CLI_COUNT,    /* like CLI_WHOLE, also with suffixes: 100k, 1.5M */
    CLI_RATE,     /* double: GB/s, from `least` millionths to `most`; also with units: 100Gb/s, 12.5GB/s */
    CLI_DURATION, /* double: hours; takes units: 7d, 36h, 90min */
    CLI_REAL,     /* double above 0, from `least` millionths to `most`; 0: unlimited */
    CLI_CHOICE,   /* int: index in `choices` */
    CLI_DIM,      /* cli_dims: adds NAME=NUMBER, from `least` on, or NAME=OTHER */
    CLI_TEXTS,    /* cli_texts: adds the value */
    CLI_CALL,     /* passes the value and the place to `call` */
} cli_kind;

typedef struct cli_option {
    const char *name;  /* less the dashes */
    const char *value; /* placeholder of the value in texts; NULL: the option takes no value */
    const char *help;  /* one paragraph; NULL: hidden */
    size_t at;
    cli_kind kind;
    char letter;  /* 0: absent */
    bool repeats; /* may be given more than once, and accumulates. Flags may always be repeated */
    int64_t least, most;
    const char *const *choices;  /* names for CLI_CHOICE, terminated by NULL */
    const bs_choice_word *words; /* other words for the choices; may be NULL */
    const char *fallback;        /* value if only the name is given; other values than choices must then follow '='.
                                 * NULL: the value is required */
    bool (*call)(const char *command, char *value, void *place); /* returns false after a usage error */
    const char *excludes, *needs; /* another option that must be absent, or present, together with this one */
    const char *heading;          /* heading before this option and those that follow */
    /* Possible values, for completion: names; a list of them with commas; or files by their suffixes, "onnx|job". */
    const char *const *(*names)(void);
    bool is_list;
    const char *files;
    bool takes_list; /* several values, in subcommands with `lists` */
} cli_option;

/* Environment variables, for man pages; terminated by a NULL name. */
typedef struct cli_variable {
    const char *name, *help;
} cli_variable;

#define CLI_USUAL_EXIT_STATUS "0 success, 1 failure, 2 usage error"

typedef struct cli_command {
    const char *name;
    const char *summary;       /* half a line, less the full stop */
    const char *synopsis;      /* text behind `mdot NAME`, a line for each form */
    const char *description;   /* paragraphs separated by empty lines */
    const cli_option *options; /* --help is added to them */
    size_t option_count;
    size_t lists;                       /* place of a cli_lists in the request; 0: each option has one value */
    const bs_choice_word *option_words; /* names of options in other programs, for suggestions; may be NULL */
    const bs_choice_word *nearest;      /* own options by names that those stand for and it lacks; may be NULL */
    const struct cli_command *wider;    /* has further options for the same operand, for suggestions; may be NULL */
    const char *notes;                  /* paragraphs behind the options; may be NULL */
    const char *exit_status;            /* NULL: CLI_USUAL_EXIT_STATUS */
    const char *files;                  /* suffixes of its operands, for completion; NULL: it takes no files */
    int (*run)(int argc, char **argv);  /* argv[0] is the subcommand's name; returns the exit status */
    bool takes_command;                 /* its operand is a subcommand's name; for completion */
    const char *const *actions;         /* names for its first operand, for completion; may be NULL */
    /* For a program: its subcommands in the order of `--help`, terminated by NULL, and its environment. NULL: none. */
    const struct cli_command *const *commands;
    const cli_variable *environment;
} cli_command;

/* Rows of option tables: a flag, a text, a value of another kind, a whole number, and an
 * option that a function reads. The member `field` of the
 * struct `request` receives the value. The help is the last argument; initialisers of further members may follow it. */
#define CLI_FLAG_ROW(NAME, request, field, ...)                                                                        \
    {                                                                                                                  \
        .name = NAME, .kind = CLI_FLAG, .at = offsetof(request, field), .help = __VA_ARGS__                            \
    }
#define CLI_TEXT_ROW(NAME, VALUE, request, field, ...)                                                                 \
    {                                                                                                                  \
        .name = NAME, .value = VALUE, .kind = CLI_TEXT, .at = offsetof(request, field), .help = __VA_ARGS__            \
    }
#define CLI_VALUE_ROW(KIND, NAME, VALUE, request, field, ...)                                                          \
    {                                                                                                                  \
        .name = NAME, .value = VALUE, .kind = KIND, .at = offsetof(request, field), .help = __VA_ARGS__                \
    }
#define CLI_WHOLE_ROW(NAME, VALUE, request, field, LEAST, MOST, ...)                                                   \
    {                                                                                                                  \
        .name = NAME, .value = VALUE, .kind = CLI_WHOLE, .at = offsetof(request, field), .least = LEAST, .most = MOST, \
        .help = __VA_ARGS__                                                                                            \
    }
#define CLI_CALL_ROW(NAME, VALUE, CALL, ...)                                                                           \
    {                                                                                                                  \
        .name = NAME, .value = VALUE, .kind = CLI_CALL, .call = CALL, .help = __VA_ARGS__                              \
    }

/* Rows of option tables that several subcommands have. `path`, `dims`, `json` and `quiet` are members of `request`. */
#define CLI_DIM_OPTION(request, dims, LEAST, HELP)                                                                     \
    {                                                                                                                  \
        .name = "dim", .letter = 'd', .value = "NAME=N", .help = HELP, .kind = CLI_DIM, .at = offsetof(request, dims), \
        .least = LEAST, .repeats = true                                                                                \
    }
#define CLI_SAMPLE_LENGTH_OPTION(request, dims)                                                                        \
    {                                                                                                                  \
        .name = "length", .value = "N", .help = "length of a sample, for example in tokens: --dim length=N",           \
        .kind = CLI_CALL, .call = cli_parse_length, .at = offsetof(request, dims)                                      \
    }
#define CLI_OUTPUT_OPTION(request, path, VALUE, HELP, SUFFIX)                                                          \
    {                                                                                                                  \
        .name = "output", .letter = 'o', .value = VALUE, .help = HELP, .kind = CLI_TEXT,                               \
        .at = offsetof(request, path), .files = SUFFIX                                                                 \
    }
#define CLI_JSON_OPTION(request, json, HELP)                                                                           \
    {                                                                                                                  \
        .name = "json", .help = HELP, .kind = CLI_FLAG, .at = offsetof(request, json)                                  \
    }
#define CLI_QUIET_OPTION(request, quiet, HELP)                                                                         \
    {                                                                                                                  \
        .name = "quiet", .letter = 'q', .help = HELP, .kind = CLI_FLAG, .at = offsetof(request, quiet)                 \
    }

#define CLI_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof(table)[0]

/* ---- The program ------------------------------------------------------------------------------------------------ */

/* The contents of the program's own help and man page. It has subcommands (`mdot`), or a function that runs it. Each
 * program defines this table. */
extern const cli_command cli_program;

/* Runs a program without subcommands, and returns its exit status. Besides the command's options it takes --version,
 * and for the build --markdown, --completion=bash and --completion=zsh as the only argument. */
int cli_run_program(int argc, char **argv);

/* ---- Reading a command line ------------------------------------------------------------------------------------- */

typedef struct cli_operands {
    char **item;
    int count;
} cli_operands;

/* Reads options into `request` according to the command's table, and stores the operands in *out_operands, in order.
 * Options may stand anywhere, as `--name VALUE`, `--name=VALUE`, `-nVALUE` or `-n VALUE`. Short flags may be combined
 * (`-qk`) and names may be abbreviated while they are unambiguous. Arguments behind `--` are operands. Returns false
 * after help, the version or a usage error; *out_status is the exit status then. */
bool cli_read_line(const cli_command *command, int argc, char **argv, void *request, cli_operands *out_operands,
                   int *out_status);

/* Returns option i of a table, hidden ones included; then --help, and --version of a program without subcommands; NULL
 * from the end on. */
const cli_option *cli_option_at(const cli_command *command, size_t i);

/* ---- Lists of values --------------------------------------------------------------------------------------------- */

/* The values of options that a command line gives several: "1,2,4"; "1..8", which is 1, 8 and the powers of two between
 * them; or for keys, "dp=2,tp=1,4". An option whose value consists of keys may also be repeated. */
enum { CLI_MAX_VALUES = 64, CLI_MAX_LISTS = 8, CLI_LIST_BYTES = 8192 };
typedef struct cli_list {
    const cli_option *option;
    const char *value[CLI_MAX_VALUES];
    size_t count;
} cli_list;
typedef struct cli_lists {
    cli_list item[CLI_MAX_LISTS];
    size_t count, used;
    char text[CLI_LIST_BYTES];
} cli_lists;

/* Returns the number of combinations; 1 without a list. The last list varies fastest. */
size_t cli_combination_count(const cli_lists *lists);
/* Returns the value that a list has in a combination. */
const char *cli_value_in(const cli_lists *lists, size_t list, size_t combination);
void cli_set_combination(const char *command, const cli_lists *lists, size_t combination, void *request);

/* Reads a value into the request, or a list of values, of which the first is stored; false after a usage error. */
bool cli_set_value(const char *command, const cli_option *option, char *value, void *request);
bool cli_set_values(const char *command, const cli_option *option, const char *text, cli_lists *lists, void *request);

/* Adds the dimension "length" to a cli_dims. */
bool cli_parse_length(const char *command, char *text, void *dims);

/* ---- Texts ------------------------------------------------------------------------------------------------------ */

/* Prints `text` in lines of at most 80 columns, each after `indent` spaces; the first begins at `column`. Line breaks
 * of the text are kept. */
void cli_print_wrapped(FILE *stream, const char *text, int indent, int column);

void cli_print_help(FILE *stream, const cli_command *command);
/* A line for each form, with text in front of the first line and of the others. */
void cli_print_synopsis(FILE *stream, const cli_command *command, const char *first, const char *other);
/* The same page in Markdown, for the manual (docs/reference/commands) and for man pages (cmake/man.awk). */
void cli_print_markdown(FILE *stream, const cli_command *command);
/* Prints the script for "bash" or "zsh"; false for other shells. */
bool cli_print_completion(FILE *stream, const char *shell);

/* bash_head.bash and bash_tail.bash, the fixed parts of a completion script. bash splits words at '=' and ':' and
 * expects only the text behind the last of them. */
extern const char cli_bash_head[], cli_bash_tail[];

/* ---- Messages and values ---------------------------------------------------------------------------------------- */

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

#define CLI_GIB ((double)(1 << 30)) /* bytes */

/* Prints "mdot compile: <message>" to stderr, or "mdot: <message>" if the command is NULL or the program. All messages
 * take this way, which makes them one printable line, because they repeat text from files and arguments. */
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
/* Does the same for a reader of values; false. */
#define cli_refuse(...) (cli_usage_error(__VA_ARGS__) == CLI_OK)
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

enum { CLI_NO_CHOICE = BS_NO_CHOICE };
/* Prints a usage error that suggests the nearest name and lists all names, followed by `besides` (may be NULL).
 * Returns false. */
bool cli_refuse_choice(const char *command, const char *what, const char *text, const char *const *names,
                       const bs_choice_word *words, const char *besides);
/* Combines bs_find_choice and cli_refuse_choice. */
bool cli_parse_choice(const char *command, const char *what, const char *text, const char *const *names,
                      const bs_choice_word *words, int *out);

/* Splits "a,b,c" in place into at most `most` items; false after a usage error if an item is empty or there are too
 * many. */
bool cli_split_list(const char *command, const char *what, char *text, size_t most, const char **out_items,
                    size_t *out_count);

/* Adds "16,32,48" or "16..512" to the values, up to `capacity` of them, which is at most CLI_MAX_ADDED. The range has
 * its ends and the powers of two between them; with `doubles`, 24..100 is 24, 48, 96, 100. */
enum { CLI_MAX_ADDED = 64 };
bool cli_add_values(const char *command, const char *what, char *text, int64_t maximum, bool doubles, size_t capacity,
                    int64_t *values, size_t *value_count);

/* Bindings of --dim: NAME=NUMBER or NAME=OTHER. */
enum { CLI_MAX_DIMS = 64 };
typedef struct cli_dims {
    mdot_dim_binding item[CLI_MAX_DIMS];
    size_t count;
} cli_dims;

/* Values of a repeatable option. */
enum { CLI_MAX_TEXTS = 64 };
typedef struct cli_texts {
    const char *item[CLI_MAX_TEXTS];
    size_t count;
} cli_texts;

/* Makes a name from a file safe for a terminal, so that it cannot move the cursor (base/text.h). Cuts it to the
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
/* Prints `before`, and a member whose value is a string. */
void cli_json_member(FILE *stream, const char *before, const char *name, const char *value);

/* Formats a number as "1.23M": three digits and a decimal prefix. */
const char *cli_short_number(double number, char out[16]);
