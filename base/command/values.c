/* values.c — values of options: files, numbers, choices, lists and dimensions. */
#include "base/command/command.h"
#include "base/command/quantity.h"
#include "base/file.h"
#include "base/suggest.h"
#include "base/text.h"

#include <math.h>
#include <string.h>
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
    return cli_refuse(command, "%s takes an integer from %lld to %lld, not \"%s\"", what, (long long)minimum,
                      (long long)maximum, text);
}

bool cli_refuse_choice(const char *command, const char *what, const char *text, const char *const *names,
                       const bs_choice_word *words, const char *besides)
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
    return cli_refuse(command, "%s: unknown value \"%s\"%s; known are %s", what, text, bs_suggest_end(&suggestion).text,
                      known);
}

bool cli_parse_choice(const char *command, const char *what, const char *text, const char *const *names,
                      const bs_choice_word *words, int *out)
{
    int found = bs_find_choice(text, names, words);
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
        if (*item == '\0' || count == maximum)
            return cli_refuse(command, "%s takes a comma-separated list (a,b,c) of at most %zu items", what, maximum);
        out_items[count++] = item;
    }
    *out_count = count;
    return true;
}

static bool refuse_values(const char *command, const char *what, const char *text, int64_t maximum)
{
    return cli_refuse(command, "%s takes integers from 1 to %lld, for example 32, 16,32 or 16..64, not \"%s\"", what,
                      (long long)maximum, text);
}

bool cli_add_values(const char *command, const char *what, char *text, int64_t maximum, bool doubles, size_t capacity,
                    int64_t *values, size_t *value_count)
{
    char *dots = strstr(text, "..");
    const char *items[CLI_MAX_ADDED];
    size_t count = *value_count;
    if (dots != NULL) {
        int64_t first, end;
        *dots = '\0';
        bool read = cli_read_int(text, 1, maximum, &first) && cli_read_int(dots + 2, 1, maximum, &end);
        *dots = '.';
        if (!read) return refuse_values(command, what, text, maximum);
        if (first > end)
            return cli_refuse(command, "%s must ascend, but %lld precedes %lld", what, (long long)first,
                              (long long)end);
        for (int64_t value = first, next = 1; value <= end && count < capacity;) {
            values[count++] = value;
            while (next <= value) next *= 2;
            if (doubles) next = 2 * value;
            value = value < end && next > end ? end : next;
        }
    } else {
        size_t more = 0;
        if (!cli_split_list(command, what, text, capacity - count, items, &more)) return false;
        for (size_t i = 0; i < more; i++)
            if (!cli_read_int(items[i], 1, maximum, &values[count++]))
                return refuse_values(command, what, items[i], maximum);
    }
    *value_count = count;
    return true;
}

static mdot_dim_binding *add_dim(const char *command, const char *name, cli_dims *dims)
{
    if (dims->count == CLI_MAX_DIMS) {
        cli_usage_error(command, "at most %d --dim", CLI_MAX_DIMS);
        return NULL;
    }
    mdot_dim_binding *dim = &dims->item[dims->count++];
    *dim = (mdot_dim_binding){.name = name};
    return dim;
}

bool cli_parse_length(const char *command, char *text, void *dims)
{
    mdot_dim_binding *dim = add_dim(command, "length", dims);
    return dim != NULL && cli_parse_int(command, "--length", text, 1, INT32_MAX, &dim->value);
}

static bool parse_dim(const char *command, char *text, int64_t minimum, cli_dims *dims)
{
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
        return cli_refuse(command, "--dim takes NAME=NUMBER or NAME=OTHER, not \"%s\"", text);
    *equals = '\0';
    mdot_dim_binding *dim = add_dim(command, text, dims);
    if (dim == NULL) return false;
    bool is_number = strchr("+-0123456789", equals[1]) != NULL;
    if (!is_number) dim->same_as = equals + 1;
    return !is_number || cli_parse_int(command, "--dim", equals + 1, minimum, INT32_MAX, &dim->value);
}

/* The option's least number, whose unit is a millionth. */
static double least_real(const cli_option *option) { return (double)option->least / 1e6; }

static bool read_real(const char *command, const char *what, const char *text, const cli_option *option, double *out)
{
    const double least = least_real(option);
    const int64_t maximum = option->most;
    const char *end;
    double value = bs_number_read(text, &end);
    if (end != text && *end == '\0' && value > 0 && value >= least && isfinite(value) &&
        (maximum == 0 || value <= (double)maximum)) {
        *out = value;
        return true;
    }
    if (maximum == 0) return cli_refuse(command, "%s takes a positive number, not \"%s\"", what, text);
    if (least > 0)
        return cli_refuse(command, "%s takes a number from %g to %lld, not \"%s\"", what, least, (long long)maximum,
                          text);
    return cli_refuse(command, "%s takes a number above 0, up to %lld, not \"%s\"", what, (long long)maximum, text);
}

static bool read_count(const char *command, const char *what, const char *text, const cli_option *option, int64_t *out)
{
    const char *reason = cli_read_count(text, 1, option->least, option->most, out);
    if (reason == NULL) return true;
    return cli_refuse(command, "%s takes an integer from %lld to %lld, for example 100000, 1e5 or 100k, not \"%s\"",
                      what, (long long)option->least, (long long)option->most, text);
}

static bool read_rate(const char *command, const char *what, const char *text, const cli_option *option, double *out)
{
    double gbps = 0;
    const char *reason = cli_read_rate(text, &gbps);
    if (reason == NULL && gbps >= least_real(option) && gbps <= (double)option->most) {
        *out = gbps;
        return true;
    }
    if (reason == NULL)
        return cli_refuse(command, "%s takes a rate from %g to %lld GB/s, not \"%s\"", what, least_real(option),
                          (long long)option->most, text);
    return cli_refuse(command, "%s takes a rate, not \"%s\": %s", what, text, reason);
}

static bool read_duration(const char *command, const char *what, const char *text, double *out_hours)
{
    const char *reason = cli_read_duration(text, out_hours);
    return reason == NULL || cli_refuse(command, "%s \"%s\": %s", what, text, reason);
}

static bool add_text(const char *command, const char *what, const char *text, cli_texts *texts)
{
    if (texts->count == CLI_MAX_TEXTS) return cli_refuse(command, "at most %d values of %s", CLI_MAX_TEXTS, what);
    texts->item[texts->count++] = text;
    return true;
}

bool cli_set_value(const char *command, const cli_option *option, char *value, void *request)
{
    void *place = (char *)request + option->at;
    char what[64];
    snprintf(what, sizeof what, "--%s", option->name);
    switch (option->kind) {
    case CLI_FLAG: *(bool *)place = true; return true;
    case CLI_TEXT: *(const char **)place = value; return true;
    case CLI_WHOLE: return cli_parse_int(command, what, value, option->least, option->most, place);
    case CLI_COUNT: return read_count(command, what, value, option, place);
    case CLI_DURATION: return read_duration(command, what, value, place);
    case CLI_RATE: return read_rate(command, what, value, option, place);
    case CLI_REAL: return read_real(command, what, value, option, place);
    case CLI_CHOICE: return cli_parse_choice(command, what, value, option->choices, option->words, place);
    case CLI_DIM: return parse_dim(command, value, option->least, place);
    case CLI_TEXTS: return add_text(command, what, value, place);
    case CLI_CALL: return option->call(command, value, place);
    }
    return false;
}
