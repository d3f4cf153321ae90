/* python.c — bindings/python/mdot/options.py, and option_words.py beside it. */
#include "scripts/tables/tables.h"

#include "runtime/job/configuration_table.h"

#include <string.h>

/* `link` and `link_gbps` are one keyword, and so are `gpu` and `gpu_spec`. */
static bool is_keyword(const rt_option *o)
{
    return strcmp(o->field, "link_gbps") != 0 && strcmp(o->field, "gpu_spec") != 0;
}

/* True if the keyword begins at 1. Otherwise 0 is accepted and selects the default. */
static bool begins_at_one(const rt_option *o)
{
    return o->section != RT_SECTION_DEGREE && strcmp(o->default_text, "1") == 0;
}

/* True if None selects the default. */
static bool may_be_none(const rt_option *o)
{
    return o->kind == RT_KIND_VERSION || o->section == RT_SECTION_LINK || o->bare != NULL;
}

static const char *type_of(const rt_option *o)
{
    if (o->section == RT_SECTION_LINK) return "Union[str, float, None]";
    switch (o->kind) {
    case RT_KIND_WHOLE:
    case RT_KIND_COUNT: return "int";
    case RT_KIND_REAL: return "float";
    case RT_KIND_CHOICE:
    case RT_KIND_VERSION: return may_be_none(o) ? "Union[str, None]" : "str";
    case RT_KIND_FLAG: return "bool";
    case RT_KIND_GPU: return "Union[str, GPU]";
    }
    return "";
}

static void write_default(FILE *out, const rt_option *o)
{
    if (may_be_none(o))
        fputs("None", out);
    else if (o->kind == RT_KIND_CHOICE)
        tables_write_string(out, o->choices[(int)o->fallback]);
    else if (o->kind == RT_KIND_FLAG)
        fputs("False", out);
    else if (o->kind == RT_KIND_REAL)
        fputs("0.0", out);
    else
        fputs(begins_at_one(o) || strcmp(o->field, "batch") == 0 ? "1" : "0", out);
}

/* The text's first letter becomes a capital. */
static void begin_docstring(FILE *out, const char *text)
{
    char first = text[0];
    fprintf(out, "    \"\"\"%c%s", first >= 'a' && first <= 'z' ? first - 'a' + 'A' : first, text + 1);
}

/* Writes the meaning, the choices, and the default where 0 or None selects it. */
static void write_docstring(FILE *out, const rt_option *o)
{
    bool zero_is_default = o->accepts_zero && !begins_at_one(o);
    begin_docstring(out, o->meaning);
    if (o->section == RT_SECTION_LINK) fputs(", or its rate in GB/s", out);
    fputs(".", out);
    if (o->choices != NULL)
        for (size_t i = o->section == RT_SECTION_LINK; o->choices[i] != NULL; i++)
            fprintf(out, "%s%s", i > (o->section == RT_SECTION_LINK) ? ", " : "\n    Values: ", o->choices[i]);
    if (o->choices != NULL) fputs(".", out);
    if (may_be_none(o) || zero_is_default)
        fprintf(out, "\n    %s selects the default: %s.", may_be_none(o) ? "None" : "0", o->default_text);
    fputs("\"\"\"\n", out);
}

static void write_fields(FILE *out)
{
    static const char *const ctypes_names[] = {[RT_MEMBER_INT] = "c_int",
                                               [RT_MEMBER_UINT32] = "c_uint32",
                                               [RT_MEMBER_INT64] = "c_int64",
                                               [RT_MEMBER_DOUBLE] = "c_double"};
    fputs("CONFIGURATION_FIELDS: list[tuple[str, Any]] = [\n", out);
    for (size_t offset = offsetof(mdot_configuration, batch); offset < sizeof(mdot_configuration); offset++) {
        for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
            const rt_option *o = &rt_options[i];
            if (o->offset != offset) continue;
            fprintf(out, "    (\"%s\", ctypes.%s),\n", o->field,
                    o->kind == RT_KIND_CHOICE      ? "c_int"
                    : o->type != RT_MEMBER_POINTER ? ctypes_names[o->type]
                    : strcmp(o->field, "gpu") == 0 ? "c_char_p"
                                                   : "c_void_p");
        }
    }
    fputs("]\n\"\"\"The members of mdot_configuration behind struct_size. gpu_spec is a pointer to an "
          "mdot_gpu.\"\"\"\n\n",
          out);
}

/* Writes the words that are accepted, or those that are only suggested. */
static void write_words(FILE *out, const char *name, bool is_same, const char *meaning)
{
    fprintf(out, "%s: dict[str, dict[str, str]] = {\n", name);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (o->choices == NULL) continue;
        fprintf(out, "    \"%s\": {", o->python);
        const char *between = "\n";
        for (const bs_choice_word *w = o->words; w->word != NULL; w++) {
            if (w->is_same != is_same) continue;
            fprintf(out, "%s        \"%s\": \"%s\",\n", between, w->word, w->name);
            between = "";
        }
        fputs(*between == '\0' ? "    },\n" : "},\n", out);
    }
    fprintf(out, "}\n\"\"\"%s\"\"\"\n\n", meaning);
}

static void write_commands(FILE *out)
{
    fputs("COMMANDS: dict[str, str] = {\n", out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        if (i > 0 && strcmp(rt_options[i].command, rt_options[i - 1].command) == 0) continue;
        fprintf(out, "    \"%s\": \"%s\",\n", rt_option_label_of(&rt_options[i]).text + 2, rt_options[i].python);
    }
    fputs("}\n\"\"\"Keywords by the options' names on the command line, which messages of the libraries have.\"\"\"\n\n"
          "GPU_KEYS: dict[str, str] = {\n",
          out);
#define COLUMN(field, key, ...) fprintf(out, "    \"%s\": \"%s\",\n", key, #field);
#include "runtime/job/gpus.def"
    fputs("}\n\"\"\"Columns of a GPU by the keys of --gpu-spec.\"\"\"\n\n", out);
}

void tables_write_python_words(FILE *out)
{
    fputs("\"\"\"Words of other programs for options and choices. scripts/write-tables.sh writes this file from\n"
          "configuration.def in runtime/job: edit the table instead.\"\"\"\n\nfrom __future__ import annotations\n\n",
          out);
    write_words(out, "WORDS", true, "Other words for the choices.");
    write_words(out, "NEAREST", false, "The nearest choice for words that mean something else.");
    fputs("OPTION_WORDS: dict[str, str] = {\n", out);
    for (const bs_choice_word *w = rt_option_words; w->word != NULL; w++)
        for (size_t i = 0; i < RT_OPTION_COUNT; i++)
            if (strcmp(rt_option_label_of(&rt_options[i]).text + 2, w->name) == 0 && is_keyword(&rt_options[i]))
                fprintf(out, "    \"%s\": \"%s\",\n", w->word, rt_options[i].python);
    fputs("}\n\"\"\"Keywords by names of options in other programs, for suggestions.\"\"\"\n", out);
}

static void write_choices(FILE *out)
{
    fputs("CHOICES: dict[str, tuple[str, ...]] = {\n", out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (o->choices == NULL) continue;
        fprintf(out, "    \"%s\": (", o->python);
        for (size_t k = 0; o->choices[k] != NULL; k++) fprintf(out, "%s\"%s\"", k > 0 ? ", " : "", o->choices[k]);
        fputs("),\n", out);
    }
    fputs("}\n\"\"\"Names in the order of the enums in C.\"\"\"\n\n", out);
    write_commands(out);
}

static void write_rows(FILE *out)
{
    static const char *const kinds[] = {
        [RT_KIND_WHOLE] = "whole",   [RT_KIND_COUNT] = "whole", [RT_KIND_REAL] = "rate",
        [RT_KIND_CHOICE] = "choice", [RT_KIND_FLAG] = "flag",   [RT_KIND_VERSION] = "version"};
    fputs("ROWS: tuple[Row, ...] = (\n", out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (o->kind == RT_KIND_GPU || o->section == RT_SECTION_LINK) continue;
        bool from_zero = o->accepts_zero && !begins_at_one(o);
        fprintf(out, "    Row(\"%s\", \"%s\", \"%s\", %.15g, %.15g, \"%s\", ", o->python, o->field, kinds[o->kind],
                from_zero ? 0 : o->least, o->most, o->command);
        if (o->bare != NULL)
            tables_write_string(out, o->bare);
        else
            fputs("None", out);
        fprintf(out, ", %s),\n", o->section == RT_SECTION_TRAINING || o->section == RT_SECTION_JOB ? "False" : "True");
    }
    fputs(")\n\"\"\"The options, except the GPU and the link, which take several forms.\"\"\"\n\n\n", out);
}

static void write_gpu_column(FILE *out, const char *field, bool may_be_zero, const char *unit, const char *meaning)
{
    fprintf(out, "    %s: float%s\n", field, may_be_zero ? " = 0.0" : "");
    begin_docstring(out, meaning);
    fprintf(out, "%s%s.\"\"\"\n", *unit != '\0' ? ". Unit: " : "", unit);
}

static void write_gpu_columns(FILE *out)
{
    fputs("@dataclasses.dataclass(frozen=True)\nclass GPUColumns:\n"
          "    \"\"\"The columns of the GPU table.\"\"\"\n\n    name: str\n",
          out);
#define COLUMN(field, key, may_be_zero, scales, ...) write_gpu_column(out, #field, may_be_zero, __VA_ARGS__);
#include "runtime/job/gpus.def"
    fputs("\n\n", out);
}

void tables_write_python(FILE *out)
{
    fputs("\"\"\"The training options and GPU columns. scripts/write-tables.sh writes this file from configuration.def "
          "and\n"
          "gpus.def in runtime/job: edit the tables instead.\"\"\"\n\n"
          "from __future__ import annotations\n\n"
          "import ctypes\n"
          "import dataclasses\n"
          "from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Union\n\n"
          "if TYPE_CHECKING:\n    from mdot.gpus import GPU\n\n\n"
          "class Row(NamedTuple):\n"
          "    \"\"\"A keyword, its member of mdot_configuration, the range of values, the command's spelling, the "
          "value\n"
          "    where only the name is given, and whether it is for several GPUs.\"\"\"\n\n"
          "    keyword: str\n    field: str\n    kind: str\n    least: float\n    most: float\n    command: str\n"
          "    bare: Union[str, None]\n    several: bool\n\n\n",
          out);
    write_fields(out);
    write_choices(out);
    write_rows(out);
    write_gpu_columns(out);
    fputs("@dataclasses.dataclass(frozen=True)\nclass ConfigurationOptions:\n"
          "    \"\"\"The keywords of a Configuration, with their defaults.\"\"\"\n\n",
          out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *o = &rt_options[i];
        if (!is_keyword(o)) continue;
        fprintf(out, "    %s: %s", o->python, type_of(o));
        if (o->kind == RT_KIND_GPU) {
            fputs("\n    \"\"\"Name of a known GPU model, or the spec values of any GPU.\"\"\"\n", out);
            continue;
        }
        fputs(" = ", out);
        write_default(out, o);
        fputs("\n", out);
        write_docstring(out, o);
    }
    fputs("\n\nclass Options(TypedDict, total=False):\n"
          "    \"\"\"The keyword options of a Configuration: all of its fields except GPU and batch.\"\"\"\n\n",
          out);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (is_keyword(&rt_options[i]) && rt_options[i].section != RT_SECTION_JOB)
            fprintf(out, "    %s: %s\n", rt_options[i].python, type_of(&rt_options[i]));
}
