/* values.c — values of options: files, numbers, choices, lists and dimensions. */
#include "base/command/command.h"
#include "base/command/quantity.h"
#include "base/file.h"
#include "base/out_of_memory.h"
#include "base/suggest.h"
#include "base/text.h"

#include <string.h>
#include <strings.h>
#include <unistd.h>

FILE *cli_open_file(const char *path, mdot_error *err)
{
    int descriptor;
    uint64_t size_bytes;
    if (bs_open_file(path, &descriptor, &size_bytes, err) != MDOT_OK) return NULL;
    bool is_small = size_bytes <= CLI_MAX_FILE_BYTES;
    FILE *file = is_small ? fdopen(descriptor, "r") : NULL;
    if (file != NULL) return file;
    if (is_small)
        BS_OUT_OF_MEMORY(err, "%s", path);
    else
        mdot_fail(err, MDOT_MALFORMED, "%s: larger than %d bytes", path, CLI_MAX_FILE_BYTES);
    close(descriptor);
    return NULL;
}

bool cli_read_int(const char *text, int64_t minimum, int64_t maximum, int64_t *out)
{
    return cli_read_count(text, 0, minimum, maximum, out) == NULL;
}

bool cli_parse_int(const char *command, const char *what, const char *text, int64_t minimum, int64_t maximum,
                   int64_t *out)
{
    if (cli_read_int(text, minimum, maximum, out)) return true;
    cli_usage_error(command, "%s takes an integer from %lld to %lld, not \"%s\"", what, (long long)minimum,
                    (long long)maximum, text);
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

bool cli_split_list(const char *command, const char *what, char *text, size_t maximum, const char **out_items,
                    size_t *out_count)
{
    size_t count = 0;
    for (char *item = text, *end; item != NULL; item = end) {
        end = strchr(item, ',');
        if (end != NULL) *end++ = '\0';
        if (*item == '\0' || count == maximum) {
            cli_usage_error(command, "%s takes a comma-separated list (a,b,c) of at most %zu items", what, maximum);
            return false;
        }
        out_items[count++] = item;
    }
    *out_count = count;
    return true;
}

bool cli_parse_dim(const char *command, char *text, int64_t minimum, cli_dims *dims)
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
    return !is_number || cli_parse_int(command, "--dim", equals + 1, minimum, INT32_MAX, &dim->value);
}
