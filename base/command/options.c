/* options.c — the loop that reads command lines according to the table of a subcommand (command.h). */
#include "base/command/command.h"
#include "base/file.h"
#include "base/suggest.h"

#include <string.h>

enum { MAX_OPTIONS = 96, MAX_VALUES = 256 };

typedef struct line {
    const cli_command *command;
    void *request;
    int argc, at; /* index of the next argument */
    char **argv;
    bool is_set[MAX_OPTIONS];
    const char *values[MAX_VALUES]; /* values of options other than --output, for example file names */
    size_t value_count;
    const char *output;      /* value of --output; NULL if it is absent */
    const cli_option *shown; /* --help or --version; NULL: none is given yet */
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

/* A value of another option, for example nf4 of --frozen-weights given to --precision. */
typedef struct elsewhere {
    const cli_option *option; /* NULL: none, or several */
    const char *name;
    size_t length;
} elsewhere;

static void compare_word(elsewhere *found, const cli_option *option, const char *word, const char *name,
                         const char *value)
{
    size_t length = strlen(word);
    if (length < 3 || length < found->length || strcasestr(value, word) == NULL) return;
    bool is_tie = length == found->length && found->option != option;
    *found = (elsewhere){is_tie ? NULL : option, name, length};
}

/* Whether one other option takes the word; then a message names it. */
static bool is_elsewhere(const line *l, const cli_option *option, const char *value)
{
    elsewhere found = {0};
    const cli_option *other;
    if (option->kind != CLI_CHOICE || bs_find_choice(value, option->choices, option->words) != BS_NO_CHOICE)
        return false;
    for (const char *const *name = option->choices; *name != NULL; name++)
        if (strncasecmp(*name, value, strlen(value)) == 0) return false; /* a choice begins with it */
    for (size_t i = 0; (other = cli_option_at(l->command, i)) != NULL; i++) {
        if (other->kind != CLI_CHOICE) continue;
        for (const char *const *name = other->choices; *name != NULL; name++)
            compare_word(&found, other, *name, *name, value);
        for (const bs_choice_word *w = other->words; w != NULL && w->word != NULL; w++)
            compare_word(&found, other, w->word, w->name, value);
    }
    if (found.option == NULL || found.option == option) return false;
    cli_usage_error(l->command->name, "--%s: unknown value \"%s\" (did you mean --%s %s?)", option->name, value,
                    found.option->name, found.name);
    return true;
}

static bool set(const line *l, const cli_option *option, char *value)
{
    if (is_elsewhere(l, option, value)) return false;
    if (!option->takes_list || l->command->lists == 0)
        return cli_set_value(l->command->name, option, value, l->request);
    cli_lists *lists = (cli_lists *)((char *)l->request + l->command->lists);
    return cli_set_values(l->command->name, option, value, lists, l->request);
}

/* Finds an option by the first `length` letters, or by another program's name for it; an abbreviation must fit exactly
 * one option. */
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
    for (const bs_choice_word *word = l->command->option_words; count == 0 && word != NULL && word->word != NULL;
         word++)
        if (word->is_same && strlen(word->word) == length && strncmp(word->word, name, length) == 0)
            return find_name(l, word->name, strlen(word->name), out_ambiguous);
    return count == 1 ? found : NULL;
}

static const cli_option *find_letter(const line *l, char letter)
{
    const cli_option *option;
    for (size_t i = 0; (option = cli_option_at(l->command, i)) != NULL; i++)
        if (option->letter == letter && letter != '\0') return option;
    return NULL;
}

/* The suggestion if the command has its option, for example "parallel" of "parallel dp"; otherwise the nearest option,
 * or NULL. */
static const char *own_option(const cli_command *command, const char *suggested)
{
    const cli_option *option;
    size_t length = strcspn(suggested, " ");
    for (size_t i = 0; (option = cli_option_at(command, i)) != NULL; i++)
        if (strncmp(option->name, suggested, length) == 0 && option->name[length] == '\0') return suggested;
    for (const bs_choice_word *word = command->nearest; word != NULL && word->word != NULL; word++)
        if (strcmp(word->word, suggested) == 0) return word->name;
    return NULL;
}

/* The command's option of this name, or for another program's name of it; otherwise NULL. */
static const char *known_option(const cli_command *command, const char *name)
{
    const bs_choice_word *word = command->option_words;
    while (word != NULL && word->word != NULL && strcmp(word->word, name) != 0) word++;
    return own_option(command, word != NULL && word->word != NULL ? word->name : name);
}

static bool refuse_name(const line *l, const char *name, size_t length, bool ambiguous)
{
    const cli_option *option;
    char wrong[BS_SUGGEST_LENGTH + 1];
    snprintf(wrong, sizeof wrong, "%.*s", (int)length, name);
    const cli_command *wider = known_option(l->command, wrong) == NULL ? l->command->wider : NULL;
    for (; wider != NULL; wider = wider->wider) {
        const char *known = known_option(wider, wrong);
        if (known == NULL) continue;
        return cli_refuse(l->command->name, "unknown option --%s (`mdot %s` has --%s)", wrong, wider->name, known);
    }
    bs_suggest suggestion = bs_suggest_begin(wrong);
    for (size_t i = 0; !ambiguous && (option = cli_option_at(l->command, i)) != NULL; i++)
        if (option->help != NULL) bs_suggest_add(&suggestion, option->name);
    const bs_choice_word *word = l->command->option_words;
    for (; word != NULL && word->word != NULL; word++) {
        const char *own = ambiguous && strcmp(word->word, wrong) != 0 ? NULL : own_option(l->command, word->name);
        if (own != NULL) bs_suggest_add_alias(&suggestion, word->word, own);
        if (own != NULL && own != word->name) bs_suggest_add_alias(&suggestion, word->name, own);
    }
    if (suggestion.found != NULL)
        return cli_refuse(l->command->name, "unknown option --%.*s (did you mean --%s?)", (int)length, name,
                          suggestion.found);
    return cli_refuse(l->command->name, "%s option --%.*s", ambiguous ? "ambiguous" : "unknown", (int)length, name);
}

/* Keeps the value for check_output. Behind "NAME=", the name of a file may follow. */
static bool keep_value(line *l, const cli_option *option, const char *value)
{
    if (value == NULL) return true;
    if (strcmp(option->name, "output") == 0) {
        l->output = value;
        return true;
    }
    if (l->value_count + 2 > MAX_VALUES) return cli_refuse(l->command->name, "at most %d options", MAX_VALUES / 2);
    const char *equals = strchr(value, '=');
    l->values[l->value_count++] = value;
    if (equals != NULL) l->values[l->value_count++] = equals + 1;
    return true;
}

/* Returns the next argument if it is a choice of the option, as in "--checkpoint blocks"; otherwise NULL. */
static char *next_choice(line *l, const cli_option *option)
{
    const char *const *choice = l->at < l->argc ? option->choices : NULL;
    while (choice != NULL && *choice != NULL && strcmp(*choice, l->argv[l->at]) != 0) choice++;
    return choice != NULL && *choice != NULL ? l->argv[l->at++] : NULL;
}

static bool apply(line *l, const cli_option *option, const char *spelling, char *value)
{
    size_t index = 0;
    while (cli_option_at(l->command, index) != option) index++;
    if (index >= l->command->option_count) {
        l->shown = option;
        return true;
    }
    bool repeats = option->repeats || option->kind == CLI_FLAG ||
                   (option->takes_list && option->kind == CLI_CALL && l->command->lists != 0);
    if (l->is_set[index] && !repeats) return cli_refuse(l->command->name, "option %s is given twice", spelling);
    l->is_set[index] = true;
    if (option->fallback != NULL && value == NULL) value = next_choice(l, option);
    if (option->fallback != NULL && value == NULL) {
        char fallback[64]; /* a copy, because values may be changed in place */
        snprintf(fallback, sizeof fallback, "%s", option->fallback);
        return set(l, option, fallback);
    }
    if (option->value != NULL && value == NULL) {
        if (l->at == l->argc) return cli_refuse(l->command->name, "option %s needs a value", spelling);
        value = l->argv[l->at++];
    }
    return keep_value(l, option, value) && set(l, option, value);
}

static bool read_long(line *l, char *argument)
{
    char *name = argument + 2, *value = strchr(name, '=');
    size_t length = value != NULL ? (size_t)(value - name) : strlen(name);
    bool ambiguous = false;
    const cli_option *option = find_name(l, name, length, &ambiguous);
    if (option == NULL) return refuse_name(l, name, length, ambiguous);
    label spelling;
    label_of(&spelling, option);
    if (value != NULL && option->value == NULL)
        return cli_refuse(l->command->name, "option %s takes no value", spelling.text);
    return apply(l, option, spelling.text, value != NULL ? value + 1 : NULL);
}

/* Reads "-q", "-qk" or "-bVALUE". */
static bool read_letters(line *l, char *argument)
{
    for (char *letter = argument + 1; *letter != '\0' && l->shown == NULL; letter++) {
        const cli_option *option = find_letter(l, *letter);
        if (option == NULL) return cli_refuse(l->command->name, "unknown option -%c", *letter);
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
        if (option->excludes != NULL && is_given(l, option->excludes))
            return cli_refuse(l->command->name, "--%s and --%s exclude each other", option->name, option->excludes);
        if (option->needs != NULL && !is_given(l, option->needs))
            return cli_refuse(l->command->name, "--%s and --%s go together", option->name, option->needs);
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
    return cli_refuse(l->command->name, "%s: the output would replace its own input %s", l->output, input);
}

static bool read_arguments(line *l, cli_operands *operands)
{
    bool is_options_end = false;
    while (l->at < l->argc && l->shown == NULL) {
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
    return l->shown != NULL || (check_together(l) && check_output(l, operands));
}

bool cli_read_line(const cli_command *command, int argc, char **argv, void *request, cli_operands *out_operands,
                   int *out_status)
{
    line l = {.command = command, .request = request, .argc = argc, .at = 1, .argv = argv};
    cli_operands operands = {.item = argv};
    bool has_space = command->option_count + 1 < MAX_OPTIONS;
    if (!has_space)
        cli_usage_error(command->name, "a table of %zu options exceeds %d", command->option_count, MAX_OPTIONS - 2);
    bool read = has_space && read_arguments(&l, &operands);
    if (read && l.shown == NULL) {
        *out_operands = operands;
        return true;
    }
    if (read && strcmp(l.shown->name, "version") == 0)
        printf("%s %s\n", command->name, MDOT_VERSION_STRING);
    else if (read)
        cli_print_help(stdout, command);
    *out_status = read ? CLI_OK : CLI_USAGE;
    return false;
}
