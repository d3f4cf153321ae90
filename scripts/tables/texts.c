/* texts.c — documents about the training options: the reference page, and parts of others. */
#include "scripts/tables/tables.h"

#include "runtime/job/configuration_table.h"

#include <string.h>

/* Writes "fp32, tf32, amp-fp16". */
static void write_choices(FILE *out, const rt_option *o)
{
    for (size_t i = 0; o->choices[i] != NULL; i++) fprintf(out, "%s%s", i > 0 ? ", " : "", o->choices[i]);
}

static void write_values(FILE *out, const rt_option *o)
{
    if (o->choices != NULL)
        write_choices(out, o);
    else if (o->kind == RT_KIND_FLAG)
        fputs("no, yes", out);
    else if (o->kind == RT_KIND_VERSION)
        fputs("1.0 to 99.99", out);
    else if (o->kind == RT_KIND_GPU)
        fputs(strcmp(o->field, "gpu") == 0 ? "a name of `mdot gpus`" : "spec values of `mdot gpus --json`", out);
    else
        fprintf(out, "%.10g to %.10g", o->least, o->most);
}

/* Writes the option as `--name VALUE`. A '|' would end the cell of the table. */
static void write_command(FILE *out, const rt_option *o)
{
    fputs(o->section == RT_SECTION_DEGREE ? "`--parallel " : "`--", out);
    fputs(o->command, out);
    if (o->value != NULL) fputs(o->section == RT_SECTION_DEGREE ? "=" : o->bare != NULL ? "[=" : " ", out);
    for (const char *c = o->value; c != NULL && *c != '\0'; c++) fprintf(out, *c == '|' ? "\\%c" : "%c", *c);
    fputs(o->bare != NULL ? "]`" : "`", out);
}

static void write_meanings(FILE *out)
{
    fputs("| member of `mdot_configuration` | values | default | meaning |\n| --- | --- | --- | --- |\n", out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        fprintf(out, "| `%s` | ", o->field);
        write_values(out, o);
        fprintf(out, " | %s | %s |\n", o->default_text, o->meaning);
    }
}

/* True if a name is the member's, with hyphens in place of underscores on the command line. */
static bool is_member_name(const rt_option *o, const char *text)
{
    size_t i = 0;
    while (text[i] != '\0' && (text[i] == o->field[i] || (text[i] == '-' && o->field[i] == '_'))) i++;
    return o->field[i] == '\0' && (text[i] == '\0' || text[i] == '?');
}

/* Writes "`gpus`" if the name is another one than the member's. */
static void write_other_name(FILE *out, const rt_option *o, const char *text)
{
    if (text[0] == '\0')
        fputs("none", out);
    else if (!is_member_name(o, text))
        fprintf(out, "`%.*s`", (int)strcspn(text, "?"), text);
}

static void write_spellings(FILE *out)
{
    fputs("| member | `mdot predict` | JSON | Slurm key | Python |\n| --- | --- | --- | --- | --- |\n", out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        const char *json = strcmp(o->field, "link_gbps") == 0 ? "link" : o->json;
        bool has_same_names = o->section != RT_SECTION_DEGREE && is_member_name(o, o->command) &&
                              is_member_name(o, json) && is_member_name(o, o->slurm) && is_member_name(o, o->python);
        if (has_same_names) continue;
        fprintf(out, "| `%s` | ", o->field);
        write_command(out, o);
        fputs(" | ", out);
        write_other_name(out, o, json);
        fputs(" | ", out);
        write_other_name(out, o, o->slurm);
        fputs(" | ", out);
        write_other_name(out, o, o->python);
        fputs(" |\n", out);
    }
}

/* One row per choice: all words for it. */
static void write_words_of(FILE *out, const rt_option *option)
{
    for (const bs_choice_word *first = option->words; first != NULL && first->word != NULL; first++) {
        const bs_choice_word *earlier = option->words;
        while (earlier < first && (!earlier->is_same || strcmp(earlier->name, first->name) != 0)) earlier++;
        if (!first->is_same || earlier != first) continue;
        fprintf(out, "| `%s` | %s | %s", option->field, first->name, first->word);
        for (const bs_choice_word *word = first + 1; word->word != NULL; word++)
            if (word->is_same && strcmp(word->name, first->name) == 0) fprintf(out, ", %s", word->word);
        fputs(" |\n", out);
    }
}

static void write_words(FILE *out)
{
    fputs("| member | choice | other words |\n| --- | --- | --- |\n", out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) write_words_of(out, &rt_options[i]);
}

static void write_inputs(FILE *out)
{
    for (size_t i = 0; i < RT_OPTION_INPUT_COUNT; i++) {
        const rt_option_input *input = &rt_option_inputs[i];
        const rt_option *option = &rt_options[input->option];
        fprintf(out, "%s`%s`", i == 0 ? "" : i % 3 == 0 ? ",\n" : ", ", input->name);
        const char *between = " is ";
        bool is_same = strcmp(input->name, option->field) == 0;
        if (!is_same) fprintf(out, " (`%s`", option->field);
        for (unsigned k = 0; k < 32; k++) {
            if ((input->ones >> k & 1) == 0) continue;
            fprintf(out, "%s%s", between, option->choices[k]);
            between = " or ";
        }
        if (!is_same) fputs(")", out);
    }
    fputs(".\n", out);
}

void tables_write_reference(FILE *out)
{
    fputs("<!-- scripts/write-tables.sh writes this page from runtime/job/configuration.def. Edit the table instead. "
          "-->\n"
          "# Training options\n\n"
          "A configuration describes how a job trains. C programs fill an `mdot_configuration`. The same options exist "
          "on the\n"
          "command line, in tables of measured steps (`mdot calibrate`), in Slurm (`sbatch --mdot`) and in Python. For "
          "example,\n"
          "`--parallel tp=2` and Python's `tensor_parallel=2` are one option.\n\n"
          "## Values\n\n"
          "A number of 0 in C selects the default, because a zeroed struct must be valid. Choices are the enums of "
          "`mdot.h` in this\n"
          "order, so 0 in C is the first one. Rates are in GB/s (10^9 bytes per second). A version is 100 * major + "
          "minor in C:\n"
          "for example, 2.4 is 204.\n\n",
          out);
    write_meanings(out);
    fputs("\n## Names\n\n"
          "JSON, Slurm and Python use the member's name, and the command uses it with hyphens, for example "
          "`--power-limit W`. The\n"
          "table has the exceptions, and empty cells where the rule holds. Slurm takes GPUs, nodes and links from its "
          "own options.\n"
          "A table of measured steps names a column like the option without `--`, beside `job` and `ms`; `--gpu-spec` "
          "has none.\n\n",
          out);
    write_spellings(out);
    fputs("\n## Other words\n\n"
          "The command, Slurm and Python accept these words of PyTorch, Lightning and transformers for a choice.\n\n",
          out);
    write_words(out);
    fputs("\n## Inputs of predictors\n\n"
          "A predictor reads these numbers, in this order or by name (`mdot_predict.h`, \"Inputs of predictors\"): "
          "the member's\n"
          "value, or 1 if the condition in parentheses holds. mdot estimates an option analytically if the predictor "
          "lacks the\n"
          "numbers. The batch is a micro-batch's.\n\n",
          out);
    write_inputs(out);
}

/* Members of mdot_configuration in a prediction; the GPU's name is written by hand. */
static bool is_json_member(const rt_option *o) { return o->json[0] != '\0' && o->kind != RT_KIND_GPU; }

void tables_write_json_required(FILE *out)
{
    enum { PER_LINE = 8 };
    size_t count = 0;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (!is_json_member(o) || strchr(o->json, '?') != NULL) continue;
        fprintf(out, "%s\"%s\",",
                count % PER_LINE > 0 ? " "
                : count > 0          ? "\n                   "
                                     : "                   ",
                o->json);
        count++;
    }
    fputs("\n", out);
}

static void write_json_type(FILE *out, const rt_option *o)
{
    switch (o->kind) {
    case RT_KIND_WHOLE:
        fprintf(out, "\"type\": \"integer\", \"minimum\": %.0f, \"maximum\": %.0f", o->least, o->most);
        break;
    case RT_KIND_COUNT: fprintf(out, "\"type\": \"integer\", \"minimum\": %.0f", o->least); break;
    case RT_KIND_REAL: fputs("\"type\": \"number\", \"exclusiveMinimum\": 0", out); break;
    case RT_KIND_CHOICE:
        fputs(o->section == RT_SECTION_LINK ? "\"anyOf\": [{\"enum\": [" : "\"enum\": [", out);
        for (size_t i = 0; o->choices[i] != NULL; i++) fprintf(out, "%s\"%s\"", i > 0 ? ", " : "", o->choices[i]);
        fputs(o->section == RT_SECTION_LINK ? "]}, {\"type\": \"number\", \"exclusiveMinimum\": 0}]" : "]", out);
        break;
    case RT_KIND_FLAG: fputs("\"type\": \"boolean\"", out); break;
    case RT_KIND_VERSION: fputs("\"type\": \"string\", \"pattern\": \"^[1-9][0-9]?[.][0-9]+$\"", out); break;
    case RT_KIND_GPU: break;
    }
}

void tables_write_json_members(FILE *out)
{
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (!is_json_member(o)) continue;
        fprintf(out, "        \"%.*s\": {", (int)strcspn(o->json, "?"), o->json);
        write_json_type(out, o);
        fprintf(out, ",\n          \"description\": \"%s%s%s\"},\n", o->meaning,
                o->section == RT_SECTION_LINK ? ", or its rate in GB/s" : "",
                strchr(o->json, '?') != NULL ? "; absent at the default" : "");
    }
}
