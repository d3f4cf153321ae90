/* messages.c — messages to the user, and texts in output and JSON. */
#include "base/command/command.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

static bool is_program(const char *command) { return command == NULL || strcmp(command, cli_program.name) == 0; }

/* Prints "mdot COMMAND: MESSAGE" and `end` as one printable line, because messages repeat text from files. */
static void print_line(const char *command, const char *end, const char *format, va_list args)
{
    char text[8192]; /* a path of PATH_MAX and its message */
    vsnprintf(text, sizeof text, format, args);
    text[bs_cut_length(text, sizeof text - 1)] = '\0';
    bs_make_printable(text);
    bool is_whole = is_program(command);
    fprintf(stderr, "%s%s%s: %s%s\n", cli_program.name, is_whole ? "" : " ", is_whole ? "" : command, text, end);
}

void cli_message(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print_line(command, "", format, args);
    va_end(args);
}

int cli_usage_error(const char *command, const char *format, ...)
{
    char end[64];
    va_list args;
    va_start(args, format);
    bool is_whole = is_program(command);
    snprintf(end, sizeof end, "; see `%s%s%s --help`", cli_program.name, is_whole ? "" : " ", is_whole ? "" : command);
    print_line(command, end, format, args);
    va_end(args);
    return CLI_USAGE;
}

int cli_report(const char *command, const mdot_error *err)
{
    cli_message(command, "%s", err->message);
    return CLI_FAILED;
}

int cli_finish(const char *command, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    cli_message(command, "cannot write the output: %s", strerror(errno));
    return CLI_FAILED;
}

const char *cli_printable(cli_text *buffer, const char *name)
{
    snprintf(buffer->text, sizeof buffer->text, "%s", name);
    bs_make_printable(buffer->text);
    return buffer->text;
}

void cli_print_text(FILE *stream, const char *text)
{
    while (*text != '\0') {
        int length = bs_printable_length(text), whole = bs_utf8_length(text);
        if (length > 0)
            fwrite(text, 1, (size_t)length, stream);
        else
            fputc(*text == '\n' || *text == '\t' || *text == '\r' ? ' ' : '?', stream);
        text += whole > 0 ? whole : 1;
    }
}

void cli_json_member(FILE *stream, const char *before, const char *name, const char *value)
{
    fprintf(stream, "%s\"%s\": ", before, name);
    cli_json_string(stream, value);
}

void cli_json_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    while (*text != '\0') {
        int length = bs_utf8_length(text);
        if (length == 0) {
            fputs("\xEF\xBF\xBD", stream);
            text++;
        } else if (bs_printable_length(text) == 0) { /* all of these are below U+10000 */
            fprintf(stream, "\\u%04x", (unsigned)bs_utf8_code(text));
            text += length;
        } else {
            if (*text == '"' || *text == '\\') fputc('\\', stream);
            fwrite(text, 1, (size_t)length, stream);
            text += length;
        }
    }
    fputc('"', stream);
}

const char *cli_short_number(double number, char out[16])
{
    static const char prefixes[] = " kMGTPE";
    int prefix = 0;
    for (; number >= 999.5 && prefixes[prefix + 1] != '\0'; prefix++) number /= 1000;
    if (prefix == 0)
        snprintf(out, 16, "%.0f", number);
    else
        snprintf(out, 16, "%.*f%c", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number, prefixes[prefix]);
    return out;
}
