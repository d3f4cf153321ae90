/* dump_tables.c — prints the tables in C as JSON, from which scripts/tables/write_tables.py makes texts: operator
 * settings and types, GPUs, training options and predictor inputs. */
#include "mdot/mdot.h"
#include "runtime/job/configuration_table.h"

#include <string.h>

/* Prints a JSON string; NULL is null. */
static void print_text(const char *text)
{
    if (text == NULL) {
        printf("null");
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar('"');
}

static void print_member(const char *name, const char *text)
{
    printf(", \"%s\": ", name);
    print_text(text);
}

static void print_words(const char *name, const bs_choice_word *word)
{
    printf(", \"%s\": [", name);
    for (const char *comma = ""; word != NULL && word->word != NULL; word++, comma = ", ")
        printf("%s[\"%s\", \"%s\", %d]", comma, word->word, word->name, word->is_same);
    printf("]");
}

static void print_option(const rt_option *o)
{
    static const char *const sections[] = {[RT_SECTION_JOB] = "job",
                                           [RT_SECTION_TRAINING] = "training",
                                           [RT_SECTION_CLUSTER] = "cluster",
                                           [RT_SECTION_DEGREE] = "degree",
                                           [RT_SECTION_LINK] = "link"};
    static const char *const kinds[] = {
        [RT_KIND_WHOLE] = "whole", [RT_KIND_COUNT] = "count",     [RT_KIND_REAL] = "real", [RT_KIND_CHOICE] = "choice",
        [RT_KIND_FLAG] = "flag",   [RT_KIND_VERSION] = "version", [RT_KIND_GPU] = "gpu"};
    static const char *const types[] = {[RT_MEMBER_INT] = "c_int",
                                        [RT_MEMBER_UINT32] = "c_uint32",
                                        [RT_MEMBER_INT64] = "c_int64",
                                        [RT_MEMBER_DOUBLE] = "c_double",
                                        [RT_MEMBER_POINTER] = "c_void_p"};
    printf("{\"section\": \"%s\", \"kind\": \"%s\", \"ctype\": \"%s\", \"offset\": %zu", sections[o->section],
           kinds[o->kind], types[o->type], o->offset);
    printf(", \"least\": %.15g, \"most\": %.15g, \"accepts_zero\": %s, \"fallback\": %.15g", o->least, o->most,
           o->accepts_zero ? "true" : "false", o->fallback);
    print_member("field", o->field);
    print_member("default", o->default_text);
    print_member("command", o->command);
    print_member("label", rt_option_label_of(o).text + strlen("--"));
    print_member("bare", o->bare);
    print_member("value", o->value);
    print_member("json", o->json);
    print_member("slurm", o->slurm);
    print_member("python", o->python);
    print_member("meaning", o->meaning);
    printf(", \"choices\": [");
    for (size_t i = 0; o->choices != NULL && o->choices[i] != NULL; i++)
        printf("%s\"%s\"", i > 0 ? ", " : "", o->choices[i]);
    printf("]");
    print_words("words", o->words);
    printf("}");
}

int main(void)
{
    printf("{\"settings\": [");
#define NAME(id, name) printf("\"%s\", ", name);
    MDOT_SETTING_MAP(NAME)
#undef NAME
    printf("null],\n\"outside_reasons\": [");
#define NAME(number, id) printf("\"%s\", ", #id);
    MDOT_OUTSIDE_MAP(NAME)
#undef NAME
    printf("null],\n\"operators\": [");
#define OP(id, name, ...) printf("[\"%s\", \"%s\"], ", #id, name);
#include "ir/ops.def"
    printf("null],\n\"job_rows\": [");
#define JOB(id, type, number, ...) printf("[\"%s\", \"%s\", %d], ", #id, #type, number);
#include "ir/ops_job.def"
    printf("null],\n\"gpu_columns\": [");
#define COLUMN(field, key, may_be_zero, scales, unit, meaning)                                                         \
    printf("[\"%s\", \"%s\", %d, \"%s\", \"%s\"], ", #field, key, may_be_zero, unit, meaning);
#include "runtime/job/gpus.def"
    printf("null],\n\"gpus\": [");
#define GPU(name, aliases, ...)                                                                                        \
    printf("[\"%s\", \"%s\"", name, aliases);                                                                          \
    for (size_t k = 0; k < sizeof((double[]){__VA_ARGS__}) / sizeof(double); k++)                                      \
        printf(", %.15g", ((double[]){__VA_ARGS__})[k]);                                                               \
    printf("], ");
#include "runtime/job/gpus.def"
    printf("null],\n\"options\": [");
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        printf(i > 0 ? ",\n" : "\n");
        print_option(&rt_options[i]);
    }
    printf("]");
    print_words("option_words", rt_option_words);
    printf(",\n\"inputs\": [");
    for (size_t i = 0; i < RT_OPTION_INPUT_COUNT; i++)
        printf("%s[\"%s\", %d, %u]", i > 0 ? ", " : "", rt_option_inputs[i].name, rt_option_inputs[i].option,
               (unsigned)rt_option_inputs[i].ones);
    printf("]}\n");
    return 0;
}
