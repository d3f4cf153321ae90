/* lists.c — options with several values, whose combinations a subcommand evaluates in turn (command.h, cli_lists). */
#include "base/command/command.h"

#include <string.h>

enum { MAX_VALUE_BYTES = 256 };

static cli_list *list_of(cli_lists *lists, const cli_option *option)
{
    for (size_t i = 0; i < lists->count; i++)
        if (lists->item[i].option == option) return &lists->item[i];
    if (lists->count == CLI_MAX_LISTS) return NULL;
    lists->item[lists->count] = (cli_list){.option = option};
    return &lists->item[lists->count++];
}

/* Adds a value to the list of its option. False if there is no space. */
static bool add_value(cli_lists *lists, cli_list *list, const char *value, size_t length)
{
    if (list->count == CLI_MAX_VALUES || length >= MAX_VALUE_BYTES || lists->used + length >= sizeof lists->text)
        return false;
    char *copy = lists->text + lists->used;
    memcpy(copy, value, length);
    copy[length] = '\0';
    lists->used += length + 1;
    list->value[list->count++] = copy;
    return true;
}

/* Adds A, B and the powers of two between them. */
static bool add_range(cli_lists *lists, cli_list *list, int64_t first, int64_t last)
{
    for (int64_t value = first, power = 1; value <= last;) {
        char text[24];
        int length = snprintf(text, sizeof text, "%lld", (long long)value);
        if (!add_value(lists, list, text, (size_t)length)) return false;
        while (power <= value) power *= 2;
        value = value < last && power > last ? last : power;
    }
    return true;
}

/* Adds the combinations of "KEY=X,Y,KEY=Z": an item without '=' is another value of the key before it. `chosen` has the
 * combination of the keys before `text`. */
static bool add_keys(cli_lists *lists, cli_list *list, const char *text, const char *chosen)
{
    if (*text == '\0') return add_value(lists, list, chosen, strlen(chosen));
    int key = (int)strcspn(text, "=,");
    const char *value = text[key] == '=' ? text + key + 1 : text + key;
    const char *end = value + strcspn(value, ","); /* of the first value; then of all values of the key */
    while (*end == ',' && end[1 + strcspn(end + 1, "=,")] != '=') end += 1 + strcspn(end + 1, ",");
    const char *rest = *end == ',' ? end + 1 : end;
    if (text[key] != '=' || value == end) { /* no key: the option's own reader explains the fault */
        char whole[MAX_VALUE_BYTES];
        snprintf(whole, sizeof whole, "%s%s%s", chosen, *chosen != '\0' ? "," : "", text);
        return add_value(lists, list, whole, strlen(whole));
    }
    bool is_added = true;
    while (is_added && value < end) {
        int length = (int)strcspn(value, ",");
        char more[MAX_VALUE_BYTES];
        snprintf(more, sizeof more, "%s%s%.*s=%.*s", chosen, *chosen != '\0' ? "," : "", key, text, length, value);
        is_added = add_keys(lists, list, rest, more);
        value += length + 1;
    }
    return is_added;
}

/* Splits the text of an option into values. */
static bool add_values(cli_lists *lists, cli_list *list, const char *text)
{
    const char *dots = strstr(text, "..");
    bool is_whole = list->option->kind == CLI_WHOLE || list->option->kind == CLI_COUNT;
    if (list->option->kind == CLI_CALL && strchr(text, '=') != NULL) return add_keys(lists, list, text, "");
    if (dots != NULL && is_whole) {
        char first_text[24];
        int64_t first, last;
        snprintf(first_text, sizeof first_text, "%.*s", (int)(dots - text), text);
        bool is_read = cli_read_int(first_text, list->option->least, list->option->most, &first) &&
                       cli_read_int(dots + 2, list->option->least, list->option->most, &last);
        if (is_read && first > 0 && first <= last) return add_range(lists, list, first, last);
    }
    bool is_added = true;
    for (const char *value = text; is_added; value += strcspn(value, ",") + 1) {
        is_added = add_value(lists, list, value, strcspn(value, ","));
        if (value[strcspn(value, ",")] == '\0') break;
    }
    return is_added;
}

static bool set_copy(const char *command, const cli_option *option, const char *value, void *request)
{
    char copy[MAX_VALUE_BYTES]; /* because readers change values in place */
    snprintf(copy, sizeof copy, "%s", value);
    return cli_set_value(command, option, copy, request);
}

bool cli_set_values(const char *command, const cli_option *option, const char *text, cli_lists *lists, void *request)
{
    cli_list *list = list_of(lists, option);
    size_t first = list != NULL ? list->count : 0;
    if (list == NULL || !add_values(lists, list, text))
        return cli_refuse(command, "too many values: at most %d of an option, and lists of %d options", CLI_MAX_VALUES,
                          CLI_MAX_LISTS);
    for (size_t i = first; i < list->count; i++)
        if (!set_copy(command, option, list->value[i], request)) return false;
    if (list->count == 1 && option->kind != CLI_CALL) { /* keys may be repeated; otherwise, this is no list */
        lists->count--;
        return true;
    }
    return set_copy(command, option, list->value[0], request);
}

size_t cli_combination_count(const cli_lists *lists)
{
    size_t count = 1;
    for (size_t i = 0; i < lists->count; i++) count *= lists->item[i].count; /* at most 2^48 */
    return count;
}

const char *cli_value_in(const cli_lists *lists, size_t list, size_t combination)
{
    for (size_t i = lists->count - 1; i > list; i--) combination /= lists->item[i].count;
    return lists->item[list].value[combination % lists->item[list].count];
}

void cli_set_combination(const char *command, const cli_lists *lists, size_t combination, void *request)
{
    for (size_t i = 0; i < lists->count; i++)
        set_copy(command, lists->item[i].option, cli_value_in(lists, i, combination), request);
}
