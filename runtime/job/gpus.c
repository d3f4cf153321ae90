/* gpus.c — the GPUs of gpus.def, by name. */
#include "runtime/job/gpus.h"
#include "base/join.h"
#include "base/printable.h"
#include "base/suggest.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

typedef struct gpu_row {
    mdot_gpu gpu;
    const char *aliases; /* separated by '|' */
} gpu_row;

static const gpu_row rows[] = {
#define GPU(name, aliases, ...) {{sizeof(mdot_gpu), name, __VA_ARGS__}, aliases},
#include "runtime/job/gpus.def"
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

/* The columns of the table are the numbers of the input `gpu`, in their order. */
enum {
#define COLUMN(field) COLUMN_##field,
#include "runtime/job/gpus.def"
    COLUMN_COUNT
};
#define COLUMN(field) static_assert((int)COLUMN_##field == (int)RT_GPU_##field, #field);
#include "runtime/job/gpus.def"
static_assert((int)COLUMN_COUNT == (int)RT_GPU_NUMBERS, "a number for each column");

const bs_struct_version rt_gpu_type = BS_SIZED(mdot_gpu, fp16_tflops);

const char *const *mdot_gpu_names(void)
{
    static const char *const names[] = {
#define GPU(name, ...) name,
#include "runtime/job/gpus.def"
        NULL,
    };
    return names;
}

/* ---- Comparing names --------------------------------------------------------------------------------------------- */

/* The next significant character of *text in lower case, or '\0' at the end of a name. *text moves past it. */
static char next_letter(const char **text)
{
    while (**text == ' ' || **text == '-' || **text == '_') (*text)++;
    char c = **text;
    if (c == '\0' || c == '|') return '\0';
    (*text)++;
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* `known` may end at a '|'; `requested` ends at its NUL. */
static bool equal_names(const char *known, const char *requested)
{
    for (;;) {
        char x = next_letter(&known), y = next_letter(&requested);
        if (x != y) return false;
        if (x == '\0') return *requested == '\0';
    }
}

/* The rest of `name` after `word`; NULL if the name does not begin with it. */
static const char *skip_word(const char *name, const char *word)
{
    while (*word != '\0') {
        if (next_letter(&name) != *word++) return NULL;
    }
    return name;
}

static const char *skip_brand(const char *name)
{
    static const char *const brands[] = {"nvidia", "geforce", "tesla", "quadro", "amd", "instinct"};
    for (size_t i = 0; i < sizeof brands / sizeof *brands; i++) {
        const char *rest = skip_word(name, brands[i]);
        if (rest != NULL) name = rest;
    }
    return name;
}

static bool is_called(const gpu_row *row, const char *name)
{
    if (equal_names(row->gpu.name, name)) return true;
    for (const char *alias = row->aliases; *alias != '\0';) {
        if (equal_names(alias, name)) return true;
        alias += strcspn(alias, "|");
        alias += *alias == '|';
    }
    return false;
}

/* ---- Finding ----------------------------------------------------------------------------------------------------- */

/* Compares an unknown name with the name and the aliases of a row. */
static void offer(bs_suggest *near, bs_nearest *nearest, const gpu_row *row)
{
    bs_suggest_add(near, row->gpu.name);
    bs_nearest_add(nearest, row->gpu.name, row->gpu.name);
    for (const char *alias = row->aliases; *alias != '\0';) {
        size_t length = strcspn(alias, "|");
        char text[BS_SUGGEST_LENGTH + 1];
        snprintf(text, sizeof text, "%.*s", (int)length, alias);
        bs_suggest_add_alias(near, text, row->gpu.name);
        bs_nearest_add(nearest, text, row->gpu.name);
        alias += length + (alias[length] == '|');
    }
}

static mdot_status fail_unknown(const char *name, mdot_error *err)
{
    if (err == NULL) return MDOT_INVALID_ARGUMENT;
    char wrong[BS_SUGGEST_LENGTH + 1]; /* in the form of the table's names */
    const char *core = skip_brand(name);
    snprintf(wrong, sizeof wrong, "%s", core + strspn(core, " -_"));
    for (char *c = wrong; *c != '\0'; c++)
        if (*c == ' ' || *c == '_') *c = '-';
    bs_suggest near = bs_suggest_begin(wrong);
    bs_nearest nearest = bs_nearest_begin(wrong);
    for (size_t i = 0; i < ROW_COUNT; i++) offer(&near, &nearest, &rows[i]);
    char similar[BS_NEAREST_COUNT * (BS_SUGGEST_LENGTH + 2)];
    bs_join list;
    bs_join_begin(&list, similar, sizeof similar);
    for (size_t i = 0; i < nearest.count; i++) bs_join_add(&list, "%s", nearest.item[i].name);
    return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                     "unknown GPU \"%.64s\"%s; the most similar names are %s; `mdot gpus` lists all %d", name,
                     bs_suggest_end(&near).text, similar, ROW_COUNT);
}

mdot_status rt_gpu_find(const char *name, const mdot_gpu **out_gpu, mdot_error *err)
{
    if (name == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "gpu is missing: pass the name of a known GPU or its spec values as gpu_spec");
    const char *core = skip_brand(name);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        if (!is_called(&rows[i], core)) continue;
        *out_gpu = &rows[i].gpu;
        return MDOT_OK;
    }
    return fail_unknown(name, err);
}

mdot_status rt_gpu_check_name(const char *name, mdot_error *err)
{
    if (name == NULL || bs_is_printable(name)) return MDOT_OK;
    char shown[65];
    snprintf(shown, sizeof shown, "%.*s", (int)bs_cut_length(name, sizeof shown - 1), name);
    bs_make_printable(shown);
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the GPU's name \"%s\" must consist of printable UTF-8 characters",
                     shown);
}

mdot_status mdot_gpu_find(const char *name, mdot_gpu *out_gpu, mdot_error *err)
{
    const mdot_gpu *gpu;
    mdot_status status = rt_gpu_find(name, &gpu, err);
    return status == MDOT_OK ? bs_fill_struct(&rt_gpu_type, gpu, out_gpu, err) : status;
}
