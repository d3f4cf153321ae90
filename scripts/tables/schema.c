/* schema.c — docs/schema.json. */
#include "scripts/tables/tables.h"

#include "runtime/job/configuration_table.h"

#include <string.h>

void tables_write_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

enum { NAMES_PER_LINE = 8 };

static void write_names(FILE *out, const char *key, const char *const *names, size_t count)
{
    fprintf(out, ",\n  \"%s\": [", key);
    for (size_t i = 0; i < count; i++) {
        fputs(i == 0 ? "" : i % NAMES_PER_LINE == 0 ? ",\n    " : ", ", out);
        tables_write_string(out, names[i]);
    }
    fputs("]", out);
}

static const char *const settings[] = {
#define NAME(id, name) name,
    MDOT_SETTING_MAP(NAME)
#undef NAME
};

static const char *const reasons[] = {
#define NAME(number, id) #id,
    MDOT_OUTSIDE_MAP(NAME)
#undef NAME
};

typedef struct operator_name {
    const char *id, *name;
} operator_name;

static const operator_name operators[] = {
#define OP(id, name, ...) {#id, name},
#include "ir/ops.def"
#undef OP
};

/* A row in the operator table for jobs: the operator, the operator under whose name jobs know it, and the type id. */
typedef struct job_row {
    const char *id, *type;
    int number;
} job_row;

static const job_row job_rows[] = {
#define JOB(id, type, number, ...) {#id, #type, number},
#include "ir/ops_job.def"
#undef JOB
};
enum { JOB_ROW_COUNT = sizeof job_rows / sizeof *job_rows };

static const char *name_of(const char *id)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].id, id) == 0) return operators[i].name;
    return "?";
}

/* Writes the names by type id; the first stands for all unknown types. */
static void write_types(FILE *out)
{
    const char *names[JOB_ROW_COUNT + 1] = {"?"};
    size_t count = 1;
    for (size_t i = 0; i < JOB_ROW_COUNT; i++) {
        const job_row *row = &job_rows[i];
        if (row->number <= 0 || row->number > JOB_ROW_COUNT || strcmp(row->id, row->type) != 0) continue;
        names[row->number] = name_of(row->id);
        if ((size_t)row->number >= count) count = (size_t)row->number + 1;
    }
    for (size_t i = 0; i < count; i++)
        if (names[i] == NULL) names[i] = "?";
    write_names(out, "operator_types", names, count);
}

static const char *const columns[] = {
#define COLUMN(field, ...) #field,
#include "runtime/job/gpus.def"
};
enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

typedef struct gpu {
    const char *name, *aliases;
    double numbers[COLUMN_COUNT];
} gpu;

static const gpu gpus[] = {
#define GPU(name, aliases, ...) {name, aliases, {__VA_ARGS__}},
#include "runtime/job/gpus.def"
};

static void write_gpus(FILE *out)
{
    fputs(",\n  \"gpus\": [", out);
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++) {
        fprintf(out, "%s\n    {\"name\": \"%s\", \"aliases\": [", i > 0 ? "," : "", gpus[i].name);
        for (const char *cursor = gpus[i].aliases; *cursor != '\0';) {
            size_t length = strcspn(cursor, "|");
            fprintf(out, "%s\"%.*s\"", cursor > gpus[i].aliases ? ", " : "", (int)length, cursor);
            cursor += length + (cursor[length] == '|');
        }
        fputs("], \"numbers\": [", out);
        for (size_t k = 0; k < COLUMN_COUNT; k++) fprintf(out, "%s%.15g", k > 0 ? ", " : "", gpus[i].numbers[k]);
        fputs("]}", out);
    }
    fputs("\n  ]", out);
}

static void write_member(FILE *out, const char *name, const char *text)
{
    if (text == NULL || *text == '\0') return;
    fprintf(out, ", \"%s\": ", name);
    tables_write_string(out, text);
}

static void write_option(FILE *out, const rt_option *o)
{
    static const char *const kinds[] = {
        [RT_KIND_WHOLE] = "whole", [RT_KIND_COUNT] = "count",     [RT_KIND_REAL] = "real", [RT_KIND_CHOICE] = "choice",
        [RT_KIND_FLAG] = "flag",   [RT_KIND_VERSION] = "version", [RT_KIND_GPU] = "gpu"};
    fprintf(out, "{\"field\": \"%s\", \"kind\": \"%s\"", o->field, kinds[o->kind]);
    if (o->kind != RT_KIND_GPU && o->choices == NULL)
        fprintf(out, ", \"least\": %.15g, \"most\": %.15g", o->least, o->most);
    if (o->choices != NULL) {
        fputs(",\n     \"choices\": [", out);
        for (size_t i = 0; o->choices[i] != NULL; i++) fprintf(out, "%s\"%s\"", i > 0 ? ", " : "", o->choices[i]);
        fputs("], \"words\": {", out);
        const char *between = "";
        for (const bs_choice_word *w = o->words; w->word != NULL; w++) {
            if (!w->is_same) continue;
            fprintf(out, "%s\"%s\": \"%s\"", between, w->word, w->name);
            between = ", ";
        }
        fputs("}", out);
    }
    write_member(out, "default", o->default_text);
    fputs(",\n     \"command\": ", out);
    if (o->section == RT_SECTION_DEGREE)
        fprintf(out, "\"--parallel %s=%s\"", o->command, o->value);
    else
        fprintf(out, "\"--%s\"", o->command);
    if (strcmp(o->field, "gpu_spec") != 0) /* a measured GPU has a name */
        fprintf(out, ", \"column\": \"%s\"", o->section == RT_SECTION_DEGREE ? "parallel" : o->command);
    char json[64];
    snprintf(json, sizeof json, "%.*s", (int)strcspn(o->json, "?"), o->json);
    write_member(out, "json", json);
    write_member(out, "slurm", o->slurm);
    write_member(out, "python", o->python);
    fputs(",\n     \"meaning\": ", out);
    tables_write_string(out, o->meaning);
    fputs("}", out);
}

static void write_inputs(FILE *out)
{
    fputs(",\n  \"inputs\": [", out);
    for (size_t i = 0; i < RT_OPTION_INPUT_COUNT; i++) {
        const rt_option *option = &rt_options[rt_option_inputs[i].option];
        fprintf(out, "%s\n    {\"name\": \"%s\", \"field\": \"%s\"", i > 0 ? "," : "", rt_option_inputs[i].name,
                option->field);
        const char *between = ", \"ones\": [";
        for (unsigned k = 0; k < 32; k++) {
            if ((rt_option_inputs[i].ones >> k & 1) == 0) continue;
            fprintf(out, "%s\"%s\"", between, option->choices[k]);
            between = ", ";
        }
        fputs(rt_option_inputs[i].ones != 0 ? "]}" : "}", out);
    }
    fputs("\n  ]", out);
}

void tables_write_schema(FILE *out)
{
    fputs("{\n  \"schema\": \"mdot-schema/1\"", out);
    write_names(out, "settings", settings, sizeof settings / sizeof *settings);
    write_types(out);
    write_names(out, "outside_reasons", reasons, sizeof reasons / sizeof *reasons);
    write_names(out, "gpu_columns", columns, COLUMN_COUNT);
    write_gpus(out);
    fputs(",\n  \"configuration\": [", out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        fputs(i > 0 ? ",\n    " : "\n    ", out);
        write_option(out, &rt_options[i]);
    }
    fputs("\n  ]", out);
    write_inputs(out);
    fputs("\n}\n", out);
}
