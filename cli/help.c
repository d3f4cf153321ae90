/* help.c — `--help` of every subcommand, from its table, and `mdot help`. */
#include "cli/command.h"

#include <string.h>

enum { COLUMNS = 80, MOST_LABEL = 26, LABEL_BYTES = 128 };

/* Columns of a word: what begins a character counts, what continues one does not. */
static int width_of(const char *text, size_t length)
{
    int width = 0;
    for (size_t i = 0; i < length; i++) width += ((unsigned char)text[i] & 0xC0) != 0x80;
    return width;
}

static void begin_line(FILE *stream, int indent, int *column)
{
    if (*column > indent) fputc('\n', stream);
    if (*column > indent) *column = 0;
    fprintf(stream, "%*s", indent - *column, "");
    *column = indent;
}

void cli_print_wrapped(FILE *stream, const char *text, int indent, int column)
{
    begin_line(stream, indent, &column);
    bool is_first = true;
    while (*text != '\0') {
        if (strncmp(text, "\n\n", 2) == 0) {
            fputs("\n\n", stream);
            column = 0;
            begin_line(stream, indent, &column);
            is_first = true;
            text += 2;
            continue;
        }
        size_t length = strcspn(text, " \n");
        int width = width_of(text, length);
        if (length > 0 && !is_first && column + 1 + width > COLUMNS) {
            begin_line(stream, indent, &column);
            is_first = true;
        }
        if (length > 0) {
            fprintf(stream, "%s%.*s", is_first ? "" : " ", (int)length, text);
            column += width + !is_first;
            is_first = false;
        }
        text += length;
        if (*text == ' ' || (*text == '\n' && text[1] != '\n')) text++;
    }
    fputc('\n', stream);
}

/* "  -b, --batch N" */
static int label_option(char text[LABEL_BYTES], const cli_option *option)
{
    const char letter[] = {'-', option->letter, ',', ' ', '\0'};
    snprintf(text, LABEL_BYTES, "  %s--%s%s%s", option->letter != '\0' ? letter : "    ", option->name,
             option->value != NULL ? " " : "", option->value != NULL ? option->value : "");
    return width_of(text, strlen(text));
}

static void print_options(FILE *stream, const cli_command *command)
{
    const cli_option *option;
    char text[LABEL_BYTES];
    int widest = 0;
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        int width = option->help != NULL ? label_option(text, option) : 0;
        if (width > widest && width <= MOST_LABEL) widest = width;
    }
    bool has_headings = command->option_count > 0 && command->options[0].heading != NULL;
    fputs(has_headings ? "\n" : "\nOptions:\n", stream);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->help == NULL) continue;
        if (option->heading != NULL) fprintf(stream, "%s:\n", option->heading);
        int width = label_option(text, option);
        fputs(text, stream);
        cli_print_wrapped(stream, option->help, widest + 2, width);
    }
}

static void print_commands(FILE *stream)
{
    fputs("\nCommands:\n", stream);
    for (const cli_command *const *command = cli_commands; *command != NULL; command++)
        cli_print_wrapped(stream, (*command)->summary, 12, fprintf(stream, "  %s", (*command)->name));
}

void cli_print_help(FILE *stream, const cli_command *command)
{
    bool is_whole = command == &cli_mdot;
    for (const char *const *form = command->synopsis; *form != NULL; form++)
        fprintf(stream, "%s mdot%s%s %s\n", form == command->synopsis ? "Usage:" : "      ", is_whole ? "" : " ",
                is_whole ? "" : command->name, *form);
    fputc('\n', stream);
    cli_print_wrapped(stream, command->description, 0, 0);
    if (is_whole) print_commands(stream);
    print_options(stream, command);
    fputc('\n', stream);
    if (command->notes != NULL) {
        cli_print_wrapped(stream, command->notes, 0, 0);
        fputc('\n', stream);
    }
    char last[256];
    snprintf(last, sizeof last, "Exit status: %s.", command->exit_status);
    cli_print_wrapped(stream, last, 0, 0);
}

/* ---- The subcommand --------------------------------------------------------------------------------------------- */

typedef struct help_request {
    bool man;
    const char *shell;
} help_request;

static int run(int argc, char **argv)
{
    help_request request = {0};
    cli_operands operands;
    int status;
    if (!cli_read_line(&cli_help, argc, argv, &request, &operands, &status)) return status;
    if (operands.count > 1) return cli_usage_error("help", "one command at a time");
    if (request.shell != NULL)
        return cli_print_completion(stdout, request.shell)
                   ? CLI_OK
                   : cli_usage_error("help", "there is completion for bash and zsh, not \"%s\"", request.shell);
    const cli_command *command = operands.count == 0 ? &cli_mdot : cli_find_command(operands.item[0]);
    if (command == NULL) return CLI_USAGE;
    (request.man ? cli_print_man : cli_print_help)(stdout, command);
    return CLI_OK;
}

static const cli_option options[] = {
    {.name = "man", .kind = CLI_FLAG, .at = offsetof(help_request, man)},
    {.name = "completion", .value = "SHELL", .kind = CLI_TEXT, .at = offsetof(help_request, shell)},
};
static const char *const synopsis[] = {"[COMMAND]", NULL};

const cli_command cli_help = {
    .name = "help",
    .summary = "show the help of a command",
    .synopsis = synopsis,
    .description = "Shows what a command does and takes, as `mdot COMMAND --help` does; without one, all commands.",
    CLI_OPTIONS(options),
    .exit_status = "0 success, 1 failure, 2 there is no such command",
    .run = run,
};
