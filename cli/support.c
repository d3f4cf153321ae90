/* support.c — option parsing, messages and JSON for all subcommands. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int cli_usage_error(const char *command, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "mdot %s: ", command);
    vfprintf(stderr, format, args);
    fprintf(stderr, "; see `mdot %s --help`\n", command);
    va_end(args);
    return CLI_USAGE;
}

int cli_report(const char *command, const mdot_error *err)
{
    fprintf(stderr, "mdot %s: %s\n", command, err->message);
    return CLI_FAILED;
}

int cli_finish(const char *command, int status)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    fprintf(stderr, "mdot %s: cannot write the output: %s\n", command, strerror(errno));
    return CLI_FAILED;
}

int cli_next_option(int argc, char **argv, const char *short_options, const struct option *options)
{
    opterr = 0;
    int option = getopt_long(argc, argv, short_options, options, NULL);
    if (option == ':') {
        cli_usage_error(argv[0], "option %s needs a value", argv[optind - 1]);
        return '?';
    }
    if (option == '?') {
        if (optopt > 0 && optopt < 256 && strchr(short_options, optopt) == NULL)
            cli_usage_error(argv[0], "unknown option -%c", optopt);
        else
            cli_usage_error(argv[0], "unknown option %s", argv[optind - 1]);
    }
    return option;
}

bool cli_parse_int(const char *command, const char *what, const char *text, int64_t least, int64_t most, int64_t *out)
{
    errno = 0;
    char *end;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < least || value > most) {
        cli_usage_error(command, "%s takes a whole number from %lld to %lld, not \"%s\"", what, (long long)least,
                        (long long)most, text);
        return false;
    }
    *out = value;
    return true;
}

bool cli_parse_choice(const char *command, const char *what, const char *text, const char *const *names, int count,
                      int *out)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = i;
        return true;
    }
    char known[256] = "";
    for (int i = 0; i < count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i == 0 ? "" : ", ", names[i]);
    }
    cli_usage_error(command, "%s does not know \"%s\"; known are %s", what, text, known);
    return false;
}

bool cli_split_list(const char *command, const char *what, char *text, size_t most, const char **out_items,
                    size_t *out_count)
{
    size_t count = 0;
    for (char *item = text, *next; item != NULL; item = next) {
        next = strchr(item, ',');
        if (next != NULL) *next++ = '\0';
        if (*item == '\0' || count == most) {
            cli_usage_error(command, "%s takes a list like a,b,c of at most %zu items", what, most);
            return false;
        }
        out_items[count++] = item;
    }
    *out_count = count;
    return true;
}

bool cli_parse_dim(const char *command, char *text, cli_dims *dims)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0') {
        cli_usage_error(command, "--dim takes NAME=NUMBER or NAME=OTHER, not \"%s\"", text);
        return false;
    }
    if (dims->count == CLI_MAX_DIMS) {
        cli_usage_error(command, "at most %d --dim", CLI_MAX_DIMS);
        return false;
    }
    *equals = '\0';
    mdot_dim_binding *dim = &dims->item[dims->count++];
    *dim = (mdot_dim_binding){.name = text};
    bool is_number = strchr("+-0123456789", equals[1]) != NULL;
    if (!is_number) dim->same_as = equals + 1;
    return !is_number || cli_parse_int(command, "--dim", equals + 1, 1, INT32_MAX, &dim->value);
}

const char *cli_printable(cli_text *buffer, const char *name)
{
    snprintf(buffer->text, sizeof buffer->text, "%s", name);
    for (unsigned char *p = (unsigned char *)buffer->text; *p != '\0'; p++)
        if (*p < 0x20 || *p == 0x7F) *p = '?';
    return buffer->text;
}

/* Length of the valid UTF-8 sequence at p, 0 where there is none (RFC 3629: no surrogates, nothing overlong). */
static int utf8_length(const unsigned char *p)
{
    static const struct {
        unsigned char first, last, low, high;
        int length;
    } rows[] = {{0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (p[0] < rows[i].first || p[0] > rows[i].last) continue;
        if (rows[i].length == 1) return 1;
        if (p[1] < rows[i].low || p[1] > rows[i].high) return 0;
        for (int k = 2; k < rows[i].length; k++)
            if ((p[k] & 0xC0) != 0x80) return 0;
        return rows[i].length;
    }
    return 0;
}

void cli_json_string(FILE *stream, const char *text)
{
    fputc('"', stream);
    for (const unsigned char *p = (const unsigned char *)text; *p != '\0';) {
        int length = utf8_length(p);
        if (length == 0) {
            fputs("\xEF\xBF\xBD", stream);
            p++;
        } else if (*p == '"' || *p == '\\') {
            fprintf(stream, "\\%c", *p++);
        } else if (*p < 0x20) {
            fprintf(stream, "\\u%04x", *p++);
        } else {
            fwrite(p, 1, (size_t)length, stream);
            p += length;
        }
    }
    fputc('"', stream);
}
