/* support.c — option values, messages and JSON for all subcommands. */
#include "base/file.h"
#include "base/join.h"
#include "base/printable.h"
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/quantity.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Prints "mdot COMMAND: MESSAGE" and `end` as one printable line, because messages repeat text from files. */
static void print_line(const char *command, const char *end, const char *format, va_list args)
{
    char text[8192]; /* a path of PATH_MAX and its message */
    vsnprintf(text, sizeof text, format, args);
    text[bs_cut_length(text, sizeof text - 1)] = '\0';
    bs_make_printable(text);
    if (command != NULL)
        fprintf(stderr, "mdot %s: %s%s\n", command, text, end);
    else
        fprintf(stderr, "mdot: %s%s\n", text, end);
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
    snprintf(end, sizeof end, "; see `mdot %s --help`", command);
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

FILE *cli_open_file(const char *path, mdot_error *err)
{
    int descriptor;
    uint64_t size_bytes;
    if (bs_open_file(path, &descriptor, &size_bytes, err) != MDOT_OK) return NULL;
    bool is_small = size_bytes <= CLI_MAX_FILE_BYTES;
    FILE *file = is_small ? fdopen(descriptor, "r") : NULL;
    if (file != NULL) return file;
    if (is_small)
        mdot_fail(err, MDOT_OUT_OF_MEMORY, "%s: no memory to read it", path);
    else
        mdot_fail(err, MDOT_MALFORMED, "%s: larger than %d bytes", path, CLI_MAX_FILE_BYTES);
    close(descriptor);
    return NULL;
}

bool cli_read_int(const char *text, int64_t least, int64_t most, int64_t *out)
{
    return cli_read_count(text, 0, least, most, out) == NULL;
}

bool cli_parse_int(const char *command, const char *what, const char *text, int64_t least, int64_t most, int64_t *out)
{
    if (cli_read_int(text, least, most, out)) return true;
    cli_usage_error(command, "%s takes an integer from %lld to %lld, not \"%s\"", what, (long long)least,
                    (long long)most, text);
    return false;
}

int cli_find_choice(const char *text, const char *const *names, const cli_word *words)
{
    for (; words != NULL && words->word != NULL; words++)
        if (words->is_same && strcasecmp(text, words->word) == 0) return cli_find_choice(words->name, names, NULL);
    for (int i = 0; names[i] != NULL; i++)
        if (strcasecmp(text, names[i]) == 0) return i;
    return CLI_NO_CHOICE;
}

bool cli_refuse_choice(const char *command, const char *what, const char *text, const char *const *names,
                       const cli_word *words, const char *besides)
{
    char known[256];
    bs_join list;
    bs_join_begin(&list, known, sizeof known);
    bs_suggest suggestion = bs_suggest_begin(text);
    for (; *names != NULL; names++) {
        bs_join_add(&list, "%s", *names);
        bs_suggest_add(&suggestion, *names);
    }
    for (; words != NULL && words->word != NULL; words++) bs_suggest_add_alias(&suggestion, words->word, words->name);
    if (besides != NULL) bs_join_add(&list, "%s", besides);
    cli_usage_error(command, "%s: unknown value \"%s\"%s; known are %s", what, text, bs_suggest_end(&suggestion).text,
                    known);
    return false;
}

bool cli_parse_choice(const char *command, const char *what, const char *text, const char *const *names,
                      const cli_word *words, int *out)
{
    int found = cli_find_choice(text, names, words);
    if (found == CLI_NO_CHOICE) return cli_refuse_choice(command, what, text, names, words, NULL);
    *out = found;
    return true;
}

bool cli_split_list(const char *command, const char *what, char *text, size_t most, const char **out_items,
                    size_t *out_count)
{
    size_t count = 0;
    for (char *item = text, *next; item != NULL; item = next) {
        next = strchr(item, ',');
        if (next != NULL) *next++ = '\0';
        if (*item == '\0' || count == most) {
            cli_usage_error(command, "%s takes a comma-separated list (a,b,c) of at most %zu items", what, most);
            return false;
        }
        out_items[count++] = item;
    }
    *out_count = count;
    return true;
}

bool cli_parse_dim(const char *command, char *text, int64_t least, cli_dims *dims)
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
    return !is_number || cli_parse_int(command, "--dim", equals + 1, least, INT32_MAX, &dim->value);
}

const char *const *cli_isa_names(void)
{
    static const char *const names[] = {"x86-64-v3",    "x86-64-v4",    "x86-64-bf16", "x86-64-amx",
                                        "aarch64-neon", "aarch64-bf16", NULL};
    return names;
}

const char *const *cli_device_names(void)
{
    static const char *const names[] = {"auto", "cpu", "cuda", NULL};
    return names;
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
    if (prefix == 0) {
        snprintf(out, 16, "%.0f", number);
    } else {
        snprintf(out, 16, "%.*f%c", number < 9.995 ? 2 : number < 99.95 ? 1 : 0, number, prefixes[prefix]);
    }
    return out;
}
