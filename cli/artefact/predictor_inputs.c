/* predictor_inputs.c — see inspect.h. */
#include "cli/artefact/inspect.h"
#include "cli/cli.h"
#include "runtime/job/configuration_table.h"

#include <stdio.h>
#include <string.h>

enum { NUMBER_COUNT = RT_OPTION_INPUT_COUNT };

/* Returns the name of the option behind a predictor input. */
static const char *command_of(int number)
{
    const rt_option *option = &rt_options[rt_option_inputs[number].option];
    return option->section == RT_SECTION_DEGREE ? "parallel" : option->command;
}

typedef struct reads {
    bool any; /* the artefact is a job predictor */
    bool number[NUMBER_COUNT];
    uint32_t torch; /* default PyTorch version, 100 * major + minor; 0: not stated */
} reads;

/* Reads the names of the columns; if they are absent, the columns are the first numbers. */
static void read_columns(const mdot_tensor_info *info, reads *out)
{
    out->any = true;
    if (info->columns[0] == '\0') {
        for (int i = 0; i < NUMBER_COUNT && i < info->dim[0].offset; i++) out->number[i] = true;
        return;
    }
    static const char between[] = ",";
    for (const char *cursor = info->columns; *cursor != '\0';) {
        size_t length = strcspn(cursor, between);
        for (int i = 0; i < NUMBER_COUNT; i++)
            if (strlen(rt_option_inputs[i].name) == length && memcmp(rt_option_inputs[i].name, cursor, length) == 0)
                out->number[i] = true;
        cursor += length;
        cursor += strspn(cursor, between);
    }
}

static reads find_reads(const mdot_predictor *predictor)
{
    reads found = {0};
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    found.torch = info.assumed_torch;
    for (size_t e = 0; e < info.entry_count; e++) {
        mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
        mdot_predictor_get_entry(predictor, e, &entry);
        if (strcmp(entry.name, "predict") != 0 && strcmp(entry.name, "evaluate") != 0) continue;
        for (size_t i = 0; i < entry.input_count; i++) {
            mdot_tensor_info tensor = MDOT_INIT(mdot_tensor_info);
            mdot_predictor_get_input(predictor, e, i, &tensor);
            if (strcmp(tensor.name, "configuration") == 0) read_columns(&tensor, &found);
        }
    }
    return found;
}

static bool is_first(int number)
{
    for (int i = 0; i < number; i++)
        if (strcmp(command_of(i), command_of(number)) == 0) return false;
    return true;
}

/* Counts an option's predictor inputs that are read, or ignored. */
static int count(const reads *r, const char *option, bool read)
{
    int found = 0;
    for (int i = 0; i < NUMBER_COUNT; i++) found += strcmp(command_of(i), option) == 0 && r->number[i] == read;
    return found;
}

/* Prints the options whose inputs are all read, all ignored, or partly read. */
static void print_options(const reads *r, const char *title, bool some_read, bool some_not)
{
    char line[512];
    int used = 0;
    for (int i = 0; i < NUMBER_COUNT; i++) {
        bool reads_some = count(r, command_of(i), true) > 0, lacks_some = count(r, command_of(i), false) > 0;
        if (!is_first(i) || reads_some != some_read || lacks_some != some_not) continue;
        used += snprintf(line + used, sizeof line - (size_t)used, "%s--%s", used > 0 ? ", " : "", command_of(i));
    }
    if (used == 0) return;
    int column = printf("%-11s", title);
    cli_print_wrapped(stdout, line, column, column);
}

void cli_print_reads(const mdot_predictor *predictor)
{
    reads r = find_reads(predictor);
    if (!r.any) return;
    if (r.torch > 0) printf("assumes    PyTorch " RT_VERSION_FORMAT "\n", RT_VERSION_PARTS(r.torch));
    print_options(&r, "reads", true, false);
    print_options(&r, "in part", true, true);
    print_options(&r, "estimated", false, true);
}

static void json_numbers(const reads *r, const char *key, bool read)
{
    printf("\"%s\": [", key);
    const char *between = "";
    for (int i = 0; i < NUMBER_COUNT; i++) {
        if (r->number[i] != read) continue;
        printf("%s\"%s\"", between, rt_option_inputs[i].name);
        between = ", ";
    }
    printf("]");
}

void cli_json_reads(const mdot_predictor *predictor)
{
    reads r = find_reads(predictor);
    if (!r.any) return;
    printf(",\n  \"configuration\": {");
    json_numbers(&r, "reads", true);
    printf(", ");
    json_numbers(&r, "estimated", false);
    if (r.torch > 0) printf(", \"torch\": \"" RT_VERSION_FORMAT "\"", RT_VERSION_PARTS(r.torch));
    printf("}");
}
