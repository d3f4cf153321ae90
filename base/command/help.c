/* help.c — `--help` of programs and of their subcommands, printed from their tables. */
#include "base/command/command.h"

#include <string.h>

enum { COLUMNS = 80, MOST_LABEL = 26, LABEL_BYTES = 128 };

/* Number of columns of a UTF-8 word: the first byte of each character counts, continuation bytes do not. */
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
        if (*text == '\n') {
            fputc('\n', stream);
            column = 0;
            if (*++text != '\n') begin_line(stream, indent, &column);
            is_first = true;
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
        if (*text == ' ') text++;
    }
    fputc('\n', stream);
}

/* Writes " -b, --batch N". */
static int label_option(char text[LABEL_BYTES], const cli_option *option)
{
    const char letter[] = {'-', option->letter, ',', ' ', '\0'};
    const char *before = option->value == NULL ? "" : option->fallback != NULL ? "[=" : " ";
    snprintf(text, LABEL_BYTES, "  %s--%s%s%s%s", option->letter != '\0' ? letter : "    ", option->name, before,
             option->value != NULL ? option->value : "", option->fallback != NULL ? "]" : "");
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
        if (width > widest) fputc('\n', stream); /* a label that is too long has a line of its own */
        cli_print_wrapped(stream, option->help, widest + 2, width > widest ? 0 : width);
    }
}

static void print_commands(FILE *stream, const cli_command *const *commands)
{
    fputs("\nCommands:\n", stream);
    for (const cli_command *const *command = commands; *command != NULL; command++)
        cli_print_wrapped(stream, (*command)->summary, 12, fprintf(stream, "  %s", (*command)->name));
}

void cli_print_synopsis(FILE *stream, const cli_command *command, const char *first, const char *other)
{
    bool is_whole = command == &cli_program;
    for (const char *form = command->synopsis, *prefix = first; *form != '\0'; prefix = other) {
        int length = (int)strcspn(form, "\n");
        fprintf(stream, "%s%s%s%s %.*s\n", prefix, cli_program.name, is_whole ? "" : " ", is_whole ? "" : command->name,
                length, form);
        form += length + (form[length] == '\n');
    }
}

void cli_print_help(FILE *stream, const cli_command *command)
{
    cli_print_synopsis(stream, command, "Usage: ", "       ");
    fputc('\n', stream);
    cli_print_wrapped(stream, command->description, 0, 0);
    if (command->commands != NULL) print_commands(stream, command->commands);
    print_options(stream, command);
    fputc('\n', stream);
    if (command->notes != NULL) {
        cli_print_wrapped(stream, command->notes, 0, 0);
        fputc('\n', stream);
    }
    char status_line[256];
    snprintf(status_line, sizeof status_line, "Exit status: %s.",
             command->exit_status != NULL ? command->exit_status : CLI_USUAL_EXIT_STATUS);
    cli_print_wrapped(stream, status_line, 0, 0);
}
