/* command.h — a subcommand as a table, from which everything is made that says what it takes: the loop that reads its
 * command line (options.c), `--help` (help.c), its man page (man.c) and completion in shells (completion.c).
 * Those know no subcommand by name: commands.c has them all, and hands them what they print.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/cli.h"

/* What becomes of an option's value, at `at` bytes in the subcommand's request. */
typedef enum cli_kind {
    CLI_FLAG,   /* bool; takes no value */
    CLI_TEXT,   /* const char *: the value as it stands */
    CLI_WHOLE,  /* int64_t from `least` to `most` */
    CLI_REAL,   /* double above 0, up to `most`; 0: without end */
    CLI_CHOICE, /* int: the index in `choices` */
    CLI_DIM,    /* cli_dims, to which NAME=NUMBER, from `least` on, or NAME=OTHER is added */
    CLI_TEXTS,  /* cli_texts, to which the value is added */
    CLI_CALL,   /* what `call` makes of it */
} cli_kind;

typedef struct cli_option {
    const char *name;  /* without dashes */
    const char *value; /* what stands for the value in texts; NULL takes none */
    const char *help;  /* one paragraph; NULL: not shown anywhere */
    size_t at;
    cli_kind kind;
    char letter;  /* 0: none */
    bool repeats; /* may be given more than once, and adds. Flags may in any case */
    int64_t least, most;
    const char *const *choices; /* CLI_CHOICE's, ending with NULL, */
    const cli_word *words;      /* what else is written for them; NULL: nothing */
    const char *fallback;       /* the value where only the name is given: a value is behind '=' then. NULL: none */
    bool (*call)(const char *command, char *value, void *request); /* false after a usage error */
    const char *excludes, *needs; /* another option that must not, or must, be given with this one */
    const char *heading;          /* stands before this option and those that follow */
    /* For completion: what a value may be. Names; a list of them, with commas; files by their suffixes, "onnx|job". */
    const char *const *(*names)(void);
    bool is_list;
    const char *files;
} cli_option;

/* What is read from the environment, for man pages; ends with a NULL name. */
typedef struct cli_variable {
    const char *name, *help;
} cli_variable;

typedef struct cli_command {
    const char *name;
    const char *summary;         /* half a line, without a full stop */
    const char *const *synopsis; /* what follows `mdot NAME`, one for each form, ending with NULL */
    const char *description;     /* paragraphs between empty lines */
    const cli_option *options;   /* --help is added to them */
    size_t option_count;
    const char *notes;                 /* paragraphs behind the options; NULL: none */
    const char *exit_status;           /* "0 success, 1 failure, 2 a wrong command line" */
    const char *files;                 /* suffixes of its operands, for completion; NULL: it takes no files */
    int (*run)(int argc, char **argv); /* argv[0] is the subcommand's name; the exit status */
    bool takes_command;                /* its operand is a subcommand's name, for completion */
    /* `mdot` itself: its subcommands in the order of `mdot --help`, ending with NULL, and its environment. */
    const struct cli_command *const *commands;
    const cli_variable *environment;
} cli_command;

#define CLI_OPTIONS(table) .options = (table), .option_count = sizeof(table) / sizeof(table)[0]

/* ---- All subcommands -------------------------------------------------------------------------------------------- */

extern const cli_command cli_predict, cli_report_command, cli_calibrate, cli_compile, cli_extract, cli_inspect,
    cli_bench, cli_verify, cli_check, cli_gpus_command, cli_help;

/* In the order of `mdot --help`, ending with NULL. */
extern const cli_command *const cli_commands[];

/* `mdot` itself: what its help and its man page say, and the whole of what there is. */
extern const cli_command cli_mdot;

/* NULL after a usage error that names the nearest. */
const cli_command *cli_find_command(const char *name);

/* ---- Reading a command line ------------------------------------------------------------------------------------- */

typedef struct cli_operands {
    char **item;
    int count;
} cli_operands;

/* Reads options into `request` by the command's table and leaves what is no option in *out_operands, in order. Options
 * may stand anywhere, as `--name VALUE`, `--name=VALUE`, `-nVALUE`, `-n VALUE`, short flags together (`-qk`), and names
 * cut where that is clear; behind `--` there are only operands. False: *out_status is the exit status, after help or a
 * usage error. */
bool cli_read_line(const cli_command *command, int argc, char **argv, void *request, cli_operands *out_operands,
                   int *out_status);

/* Options of a table, hidden ones too, with --help behind them (command.c): option i, NULL from the last on. */
const cli_option *cli_option_at(const cli_command *command, size_t i);

/* ---- Texts ------------------------------------------------------------------------------------------------------ */

/* `text` in lines of at most 80 columns, each after `indent` spaces, the first of which begins at `column`. Its line
 * breaks are kept. */
void cli_print_wrapped(FILE *stream, const char *text, int indent, int column);

void cli_print_help(FILE *stream, const cli_command *command);
/* `whole` is `mdot` itself, which the page of a subcommand refers to. */
void cli_print_man(FILE *stream, const cli_command *command, const cli_command *whole);
/* For "bash" or "zsh"; false for others. */
bool cli_print_completion(FILE *stream, const char *shell, const cli_command *whole);

#endif
