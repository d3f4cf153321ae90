/* options.c — the loop that reads command lines according to the table of a subcommand (command.h). */
#include "base/command/command.h"
#include "base/command/quantity.h"
#include "base/file.h"
#include "base/suggest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPTIONS = 64, MAX_VALUES = 256 };

typedef struct line {
    const cli_command *command;
    void *request;
    int argc, at; /* index of the next argument */
    char **argv;
    bool is_set[MAX_OPTIONS];
    const char *values[MAX_VALUES]; /* values of options other than --output, for example file names */
    size_t value_count;
    const char *output; /* value of --output; NULL if it is absent */
    bool helped;
} line;

/* "--name", as it appears in a usage error. */
typedef struct label {
    char text[64];
} label;

static const char *label_of(label *out, const cli_option *option)
{
    snprintf(out->text, sizeof out->text, "--%s", option->name);
    return out->text;
}

static bool read_real(const char *command, const char *what, const char *text, int64_t maximum, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end != text && *end == '\0' && value > 0 && isfinite(value) && (maximum == 0 || value <= (double)maximum)) {
        *out = value;
        return true;
    }
    if (maximum == 0)
        cli_usage_error(command, "%s takes a positive number, not \"%s\"", what, text);
    else
        cli_usage_error(command, "%s takes a number above 0, up to %lld, not \"%s\"", what, (long long)maximum, text);
    return false;
}

static bool read_count(const char *command, const char *what, const char *text, const cli_option *option, int64_t *out)
{
    const char *reason = cli_read_count(text, 1, option->least, option->most, out);
    if (reason == NULL) return true;
    cli_usage_error(command, "%s takes an integer from %lld to %lld, for example 100000, 1e5 or 100k, not \"%s\"", what,
                    (long long)option->least, (long long)option->most, text);
    return false;
}

static bool read_rate(const char *command, const char *what, const char *text, int64_t maximum, double *out)
{
    double gbps = 0;
    const char *reason = cli_read_rate(text, &gbps);
    if (reason == NULL && gbps <= (double)maximum) {
        *out = gbps;
        return true;
    }
    if (reason == NULL)
        cli_usage_error(command, "%s takes a rate of at most %lld GB/s, not \"%s\"", what, (long long)maximum, text);
    else
        cli_usage_error(command, "%s takes a rate, not \"%s\": %s", what, text, reason);
    return false;
}

static bool add_text(const char *command, const char *what, const char *text, cli_texts *texts)
{
    if (texts->count == CLI_MAX_TEXTS) {
        cli_usage_error(command, "at most %d values of %s", CLI_MAX_TEXTS, what);
        return false;
    }
    texts->item[texts->count++] = text;
    return true;
}

static bool set(const line *l, const cli_option *option, char *value)
{
    const char *command = l->command->name;
    void *place = (char *)l->request + option->at;
    label what;
    label_of(&what, option);
    switch (option->kind) {
    case CLI_FLAG: *(bool *)place = true; return true;
    case CLI_TEXT: *(const char **)place = value; return true;
    case CLI_WHOLE: return cli_parse_int(command, what.text, value, option->least, option->most, place);
    case CLI_COUNT: return read_count(command, what.text, value, option, place);
    case CLI_RATE: return read_rate(command, what.text, value, option->most, place);
    case CLI_REAL: return read_real(command, what.text, value, option->most, place);
    case CLI_CHOICE: return cli_parse_choice(command, what.text, value, option->choices, option->words, place);
    case CLI_DIM: return cli_parse_dim(command, value, option->least, place);
    case CLI_TEXTS: return add_text(command, what.text, value, place);
    case CLI_CALL: return option->call(command, value, place);
    }
    return false;
}

/* Finds an option by the first `length` letters; an abbreviation must fit exactly one option. */
static const cli_option *find_name(const line *l, const char *name, size_t length, bool *out_ambiguous)
{
    const cli_option *found = NULL, *option;
    size_t count = 0;
    for (size_t i = 0; (option = cli_option_at(l->command, i)) != NULL; i++) {
        if (length == 0 || strncmp(option->name, name, length) != 0) continue;
        if (option->name[length] == '\0') return option;
        found = option;
        count++;
    }
    *out_ambiguous = count > 1;
    return count == 1 ? found : NULL;
}

static const cli_option *find_letter(const line *l, char letter)
{
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(l->command, i)) != NULL; i++)
        if (option->letter == letter && letter != '\0') return option;
    return NULL;
}

static bool refuse_name(const line *l, const char *name, size_t length, bool ambiguous)
{
    const cli_option *option;
    char wrong[BS_SUGGEST_LENGTH + 1];
    snprintf(wrong, sizeof wrong, "%.*s", (int)length, name);
    bs_suggest suggestion = bs_suggest_begin(wrong);
    for (size_t i = 0; !ambiguous && (option = cli_option_at(l->command, i)) != NULL; i++)
        if (option->help != NULL) bs_suggest_add(&suggestion, option->name);
    if (suggestion.found != NULL)
        cli_usage_error(l->command->name, "unknown option --%.*s (did you mean --%s?)", (int)length, name,
                        suggestion.found);
    else
        cli_usage_error(l->command->name, "%s option --%.*s", ambiguous ? "ambiguous" : "unknown", (int)length, name);
    return false;
}

/* Keeps the value for check_output. Behind "NAME=", the name of a file may follow. */
static bool keep_value(line *l, const cli_option *option, const char *value)
{
    if (value == NULL) return true;
    if (strcmp(option->name, "output") == 0) {
        l->output = value;
        return true;
    }
    if (l->value_count + 2 > MAX_VALUES) {
        cli_usage_error(l->command->name, "at most %d options", MAX_VALUES / 2);
        return false;
    }
    const char *equals = strchr(value, '=');
    l->values[l->value_count++] = value;
    if (equals != NULL) l->values[l->value_count++] = equals + 1;
    return true;
}

static bool apply(line *l, const cli_option *option, const char *spelling, char *value)
{
    size_t index = 0;
    while (cli_option_at(l->command, index) != option) index++;
    if (index >= l->command->option_count) { /* --help; --version is read where it is the only argument */
        l->helped = true;
        return true;
    }
    if (l->is_set[index] && !option->repeats && option->kind != CLI_FLAG) {
        cli_usage_error(l->command->name, "option %s is given twice", spelling);
        return false;
    }
    l->is_set[index] = true;
    if (option->fallback != NULL && value == NULL) {
        char fallback[64]; /* a copy, because values may be changed in place */
        snprintf(fallback, sizeof fallback, "%s", option->fallback);
        return set(l, option, fallback);
    }
    if (option->value != NULL && value == NULL) {
        if (l->at == l->argc) {
            cli_usage_error(l->command->name, "option %s needs a value", spelling);
            return false;
        }
        value = l->argv[l->at++];
    }
    return keep_value(l, option, value) && set(l, option, value);
}

/* Reads "--name" or "--name=VALUE". */
static bool read_long(line *l, char *argument)
{
    char *name = argument + 2, *value = strchr(name, '=');
    size_t length = value != NULL ? (size_t)(value - name) : strlen(name);
    bool ambiguous = false;
    const cli_option *option = find_name(l, name, length, &ambiguous);
    if (option == NULL) return refuse_name(l, name, length, ambiguous);
    label spelling;
    label_of(&spelling, option);
    if (value != NULL && option->value == NULL) {
        cli_usage_error(l->command->name, "option %s takes no value", spelling.text);
        return false;
    }
    return apply(l, option, spelling.text, value != NULL ? value + 1 : NULL);
}

/* Reads "-q", "-qk" or "-bVALUE". */
static bool read_letters(line *l, char *argument)
{
    for (char *letter = argument + 1; *letter != '\0' && !l->helped; letter++) {
        const cli_option *option = find_letter(l, *letter);
        if (option == NULL) {
            cli_usage_error(l->command->name, "unknown option -%c", *letter);
            return false;
        }
        const char spelling[] = {'-', *letter, '\0'};
        bool has_value = option->value != NULL && letter[1] != '\0';
        if (!apply(l, option, spelling, has_value ? letter + 1 : NULL)) return false;
        if (option->value != NULL) break;
    }
    return true;
}

static bool is_given(const line *l, const char *name)
{
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(l->command, i)) != NULL; i++)
        if (strcmp(option->name, name) == 0) return l->is_set[i];
    return false;
}

/* Checks rules that involve several options. */
static bool check_together(const line *l)
{
    for (size_t i = 0; i < l->command->option_count; i++) {
        const cli_option *option = &l->command->options[i];
        if (!l->is_set[i]) continue;
        if (option->excludes != NULL && is_given(l, option->excludes)) {
            cli_usage_error(l->command->name, "--%s and --%s exclude each other", option->name, option->excludes);
            return false;
        }
        if (option->needs != NULL && !is_given(l, option->needs)) {
            cli_usage_error(l->command->name, "--%s and --%s go together", option->name, option->needs);
            return false;
        }
    }
    return true;
}

/* Refuses an output path that the command line also names as an operand or option value. Commands check other inputs,
 * for example the jobs in a table. */
static bool check_output(const line *l, const cli_operands *operands)
{
    const char *input = NULL;
    if (l->output == NULL) return true;
    for (int i = 0; i < operands->count; i++)
        if (bs_is_same_file(l->output, operands->item[i])) input = operands->item[i];
    for (size_t i = 0; i < l->value_count; i++)
        if (bs_is_same_file(l->output, l->values[i])) input = l->values[i];
    if (input == NULL) return true;
    cli_usage_error(l->command->name, "%s: the output would replace its own input %s", l->output, input);
    return false;
}

static bool read_arguments(line *l, cli_operands *operands)
{
    bool is_options_end = false;
    while (l->at < l->argc && !l->helped) {
        char *argument = l->argv[l->at++];
        bool read = true;
        if (is_options_end || argument[0] != '-' || argument[1] == '\0')
            operands->item[operands->count++] = argument; /* safe in place: operands never overtake the arguments that
                                                           * are still unread */
        else if (argument[1] != '-')
            read = read_letters(l, argument);
        else if (argument[2] != '\0')
            read = read_long(l, argument);
        else
            is_options_end = true;
        if (!read) return false;
    }
    return l->helped || (check_together(l) && check_output(l, operands));
}

bool cli_read_line(const cli_command *command, int argc, char **argv, void *request, cli_operands *out_operands,
                   int *out_status)
{
    line l = {.command = command, .request = request, .argc = argc, .at = 1, .argv = argv};
    cli_operands operands = {.item = argv};
    bool read = command->option_count + 1 < MAX_OPTIONS && read_arguments(&l, &operands);
    if (read && !l.helped) {
        *out_operands = operands;
        return true;
    }
    if (read) cli_print_help(stdout, command);
    *out_status = read ? CLI_OK : CLI_USAGE;
    return false;
}
