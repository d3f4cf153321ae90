/* man.c — man pages in roff, section 1: mdot(1) and one for each subcommand, made from the same tables as `--help`. */
#include "base/printable.h"
#include "cli/command.h"

#include <ctype.h>
#include <string.h>

/* Prints text between markup. A dash becomes one that can be copied, non-ASCII characters become their codes, and the
 * start of a line is protected from being read as a request (groff_char(7), man-pages(7)). */
static void put_text(FILE *stream, const char *text, size_t length)
{
    for (const char *end = text + length; text < end;) {
        int bytes = bs_utf8_length(text);
        if (bytes > 1) {
            fprintf(stream, "\\[u%04X]", (unsigned)bs_utf8_code(text));
            text += bytes;
            continue;
        }
        switch (*text) {
        case '\\':
            fputs("\\e", stream);
            break;
        case '-':
            fputs("\\-", stream);
            break;
        case '\'':
            fputs("\\(aq", stream);
            break;
        case '`':
            fputs("\\(ga", stream);
            break;
        default:
            fputc(*text, stream);
        }
        text++;
    }
}

static void put(FILE *stream, const char *text)
{
    put_text(stream, text, strlen(text));
}

/* Prints one macro per paragraph; `commands in backquotes` become bold. */
static void put_paragraphs(FILE *stream, const char *text)
{
    while (*text != '\0') {
        size_t length = strcspn(text, "`\n");
        if (length == 0 && strncmp(text, "\n\n", 2) == 0) {
            fputs("\n.PP\n", stream);
            text += 2;
        } else if (length == 0 && *text == '\n') {
            fputs("\n.br\n", stream);
            text++;
        } else if (length == 0) {
            const char *end = strchr(text + 1, '`');
            fputs("\\fB", stream);
            put_text(stream, text + 1, end != NULL ? (size_t)(end - text - 1) : strlen(text + 1));
            fputs("\\fR", stream);
            text = end != NULL ? end + 1 : text + strlen(text);
        } else {
            fputs(*text == '.' ? "\\&" : "", stream);
            put_text(stream, text, length);
            text += length;
        }
    }
    fputc('\n', stream);
}

static void put_option(FILE *stream, const cli_option *option)
{
    fputs(".TP\n", stream);
    if (option->letter != '\0') fprintf(stream, "\\fB\\-%c\\fR, ", option->letter);
    fputs("\\fB\\-\\-", stream);
    put(stream, option->name);
    fputs("\\fR", stream);
    if (option->value != NULL) {
        fputs(option->fallback != NULL ? "[=\\fI" : " \\fI", stream);
        put(stream, option->value);
        fputs(option->fallback != NULL ? "\\fR]" : "\\fR", stream);
    }
    fputc('\n', stream);
    put_paragraphs(stream, option->help);
}

/* ---- Sections --------------------------------------------------------------------------------------------------- */

static void put_title(FILE *stream, const cli_command *command, bool is_whole)
{
    fprintf(stream, ".\\\" Made by `mdot help --man`\n.TH MDOT%s", is_whole ? "" : "\\-");
    for (const char *c = is_whole ? "" : command->name; *c != '\0'; c++) fputc(toupper((unsigned char)*c), stream);
    fprintf(stream, " 1 \"\" \"mdot %s\" \"User Commands\"\n", mdot_version());
    fprintf(stream, ".SH NAME\nmdot%s%s \\- ", is_whole ? "" : "\\-", is_whole ? "" : command->name);
    put(stream, command->summary);
    fputc('\n', stream);
}

static void put_synopsis(FILE *stream, const cli_command *command, bool is_whole)
{
    fputs(".SH SYNOPSIS\n", stream);
    for (const char *const *form = command->synopsis; *form != NULL; form++) {
        fprintf(stream, "%s\\fBmdot%s%s\\fR ", form == command->synopsis ? "" : ".br\n", is_whole ? "" : " ",
                is_whole ? "" : command->name);
        put(stream, *form);
        fputc('\n', stream);
    }
}

static void put_options(FILE *stream, const cli_command *command)
{
    const cli_option *option;
    fputs(".SH OPTIONS\n", stream);
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++) {
        if (option->help == NULL) continue;
        if (option->heading != NULL) {
            fputs(".SS ", stream);
            put(stream, option->heading);
            fputc('\n', stream);
        }
        put_option(stream, option);
    }
}

static void put_commands(FILE *stream, const cli_command *whole)
{
    fputs(".SH COMMANDS\n", stream);
    for (const cli_command *const *command = whole->commands; *command != NULL; command++) {
        fprintf(stream, ".TP\n\\fBmdot\\-%s\\fR(1)\n", (*command)->name);
        put_paragraphs(stream, (*command)->summary);
    }
}

static void put_environment(FILE *stream, const cli_command *whole)
{
    fputs(".SH ENVIRONMENT\n", stream);
    for (const cli_variable *variable = whole->environment; variable->name != NULL; variable++) {
        fprintf(stream, ".TP\n\\fB%s\\fR\n", variable->name);
        put_paragraphs(stream, variable->help);
    }
}

/* The page of `mdot` lists its subcommands under COMMANDS. */
static void put_see_also(FILE *stream, const cli_command *own, const cli_command *whole)
{
    fputs(".SH SEE ALSO\n\\fBmdot\\fR(1)", stream);
    for (const cli_command *const *command = whole->commands; *command != NULL; command++)
        if (*command != own) fprintf(stream, ",\n\\fBmdot\\-%s\\fR(1)", (*command)->name);
    fputc('\n', stream);
}

void cli_print_man(FILE *stream, const cli_command *command, const cli_command *whole)
{
    bool is_whole = command == whole;
    put_title(stream, command, is_whole);
    put_synopsis(stream, command, is_whole);
    fputs(".SH DESCRIPTION\n", stream);
    put_paragraphs(stream, command->description);
    if (is_whole) put_commands(stream, whole);
    put_options(stream, command);
    if (command->notes != NULL) {
        fputs(".SH NOTES\n", stream);
        put_paragraphs(stream, command->notes);
    }
    fputs(".SH EXIT STATUS\n", stream);
    put_paragraphs(stream, command->exit_status);
    put_environment(stream, whole);
    if (!is_whole) put_see_also(stream, command, whole);
}
