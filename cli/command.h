/* command.h — a subcommand as a table. Four users share the table: the loop that reads command lines (options.c),
 * `--help` (help.c), the man page (man.c) and completion in shells (completion.c). They are independent of the
 * subcommands: commands.c lists all subcommands and passes them the tables to print. */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/cli.h"

/* Type of an option's value. Its place is `at` bytes into the subcommand's request. */
typedef enum cli_kind {
    CLI_FLAG,   /* bool; takes no value */
    CLI_TEXT,   /* const char *: the value verbatim */
    CLI_WHOLE,  /* int64_t from `least` to `most` */
    CLI_COUNT,  /* like CLI_WHOLE, also with suffixes: 100k, 1.5M */
    CLI_RATE,   /* double: GB/s, up to `most`; also with units: 100Gb/s, 12.5GB/s */
    CLI_REAL,   /* double above 0, up to `most`; 0: unlimited */
    CLI_CHOICE, /* int: index in `choices` */
    CLI_DIM,    /* cli_dims: adds NAME=NUMBER, from `least` on, or NAME=OTHER */
    CLI_TEXTS,  /* cli_texts: adds the value */
    CLI_CALL,   /* passes the value and the place to `call` */
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
    const char *const *choices; /* names for CLI_CHOICE, terminated by NULL */
    const cli_word *words;      /* other words for the choices; may be NULL */
    const char *fallback;       /* value if only the name is given; a value must then follow '='. NULL: the value is
                                 * required */
    bool (*call)(const char *command, char *value, void *place); /* returns false after a usage error */
    const char *excludes, *needs; /* another option that must be absent, or present, together with this one */
    const char *heading;          /* heading before this option and those that follow */
    /* Possible values, for completion: names; a list of them with commas; or files by their suffixes, "onnx|job". */
    const char *const *(*names)(void);
    bool is_list;
    const char *files;
} cli_option;

/* Environment variables, for man pages; terminated by a NULL name. */
typedef struct cli_variable {
    const char *name, *help;
} cli_variable;

typedef struct cli_command {
    const char *name;
    const char *summary;         /* half a line, less the full stop */
    const char *const *synopsis; /* text behind `mdot NAME`, one for each form, terminated by NULL */
    const char *description;     /* paragraphs separated by empty lines */
    const cli_option *options;   /* --help is added to them */
    size_t option_count;
    const char *notes;                 /* paragraphs behind the options; may be NULL */
    const char *exit_status;           /* "0 success, 1 failure, 2 a wrong command line" */
    const char *files;                 /* suffixes of its operands, for completion; NULL: it takes no files */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name; returns the exit status */
    bool takes_command;                /* its operand is a subcommand's name; for completion */
    /* For `mdot` itself: its subcommands in the order of `mdot --help`, terminated by NULL, and its environment. */
    const struct cli_command *const *commands;
    const cli_variable *environment;
} cli_command;

/* Rows of option tables that several subcommands have. `path`, `dims`, `json` and `quiet` are members of `request`. */
#define CLI_DIM_OPTION(request, dims, LEAST, HELP)                                                                     \
    {                                                                                                                  \
        .name = "dim", .letter = 'd', .value = "NAME=N", .help = HELP, .kind = CLI_DIM, .at = offsetof(request, dims), \
        .least = LEAST, .repeats = true                                                                                \
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

/* ---- All subcommands -------------------------------------------------------------------------------------------- */

extern const cli_command cli_predict, cli_report_command, cli_calibrate, cli_compile, cli_extract, cli_inspect,
    cli_bench, cli_verify, cli_check, cli_gpus_command, cli_store, cli_help;

/* All subcommands in the order of `mdot --help`, terminated by NULL. */
extern const cli_command *const cli_commands[];

/* `mdot` itself: the contents of its help and man page, and the list of all subcommands. */
extern const cli_command cli_mdot;

/* Finds a subcommand; NULL after a usage error that suggests the nearest. */
const cli_command *cli_find_command(const char *name);

/* ---- Reading a command line ------------------------------------------------------------------------------------- */

typedef struct cli_operands {
    char **item;
    int count;
} cli_operands;

/* Reads options into `request` according to the command's table, and stores the operands in *out_operands, in order.
 * Options may stand anywhere, as `--name VALUE`, `--name=VALUE`, `-nVALUE` or `-n VALUE`. Short flags may be combined
 * (`-qk`) and names may be abbreviated while they are unambiguous. Arguments behind `--` are operands. Returns false
 * after help or a usage error; *out_status is the exit status then. */
bool cli_read_line(const cli_command *command, int argc, char **argv, void *request, cli_operands *out_operands,
                   int *out_status);

/* Returns option i of a table, hidden ones included and --help last (command.c); NULL from the end on. */
const cli_option *cli_option_at(const cli_command *command, size_t i);

/* ---- Texts ------------------------------------------------------------------------------------------------------ */

/* Prints `text` in lines of at most 80 columns, each after `indent` spaces; the first begins at `column`. Line breaks
 * of the text are kept. */
void cli_print_wrapped(FILE *stream, const char *text, int indent, int column);

void cli_print_help(FILE *stream, const cli_command *command);
/* `whole` is `mdot` itself; the page of a subcommand refers to it. */
void cli_print_man(FILE *stream, const cli_command *command, const cli_command *whole);
/* The same page in Markdown, for the manual (docs/reference/commands). */
void cli_print_markdown(FILE *stream, const cli_command *command, const cli_command *whole);
/* Prints the script for "bash" or "zsh"; false for other shells. */
bool cli_print_completion(FILE *stream, const char *shell, const cli_command *whole);

#endif
