/* gpus.c — the GPUs of gpus.def and their slices, by name. */
#include "runtime/job/gpus.h"
#include "base/suggest.h"
#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct gpu_row {
    mdot_gpu gpu;
    const char *aliases; /* separated by '|' */
} gpu_row;

static const gpu_row rows[] = {
#define GPU(name, aliases, ...) {{sizeof(mdot_gpu), name, __VA_ARGS__}, aliases},
#include "runtime/job/gpus.def"
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

/* The initialisers above need a member for each column, in the same order. */
#define FIRST_NUMBER offsetof(mdot_gpu, compute_capability)
#define COLUMN(field, ...)                                                                                             \
    static_assert(offsetof(mdot_gpu, field) == FIRST_NUMBER + RT_GPU_##field * sizeof(double), #field);
#include "runtime/job/gpus.def"
static_assert(sizeof(mdot_gpu) >= FIRST_NUMBER + RT_GPU_NUMBERS * sizeof(double), "a member for each column");

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

/* The next significant character of *text in lower case, or '\0' at the end of a name. *text moves past it. */
static char next_letter(const char **text)
{
    while (**text == ' ' || **text == '-' || **text == '_') (*text)++;
    char c = **text;
    if (c == '\0' || c == '|') return '\0';
    (*text)++;
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* `known` may end at a '|'; `requested` ends at its NUL. "80G" is 80GB. */
static bool equal_names(const char *known, const char *requested)
{
    for (char last = '\0';;) {
        char x = next_letter(&known), y = next_letter(&requested);
        if (x == 'b' && y == '\0' && last == 'g') x = next_letter(&known);
        last = x;
        if (x != y) return false;
        if (x == '\0') return *requested == '\0';
    }
}

/* The rest of `name` after `word`; NULL if the name does not begin with it. */
static const char *skip_word(const char *name, const char *word)
{
    while (*word != '\0')
        if (next_letter(&name) != *word++) return NULL;
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

typedef struct alias_text {
    char text[BS_SUGGEST_LENGTH + 1];
} alias_text;

/* Copies the alias at *rest and moves past it. Returns false after the last one. */
static bool next_alias(const char **rest, alias_text *out)
{
    if (**rest == '\0') return false;
    size_t length = strcspn(*rest, "|");
    snprintf(out->text, sizeof out->text, "%.*s", (int)length, *rest);
    *rest += length + ((*rest)[length] == '|');
    return true;
}

/* The most similar names first. Aliases count as well. */
static bs_nearest find_similar(const char *wrong)
{
    bs_nearest nearest = bs_nearest_begin(wrong);
    alias_text alias;
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const char *name = rows[i].gpu.name, *rest = rows[i].aliases;
        bs_nearest_add(&nearest, name, name);
        while (next_alias(&rest, &alias)) bs_nearest_add(&nearest, alias.text, name);
    }
    return nearest;
}

/* Suggests the first similar name if the name or one of its aliases is near enough. */
static bs_suggest_hint suggest_first(const char *wrong, const bs_nearest *similar)
{
    bs_suggest near = bs_suggest_begin(wrong);
    const gpu_row *row = rows;
    while (row->gpu.name != similar->item[0].name) row++;
    const char *rest = row->aliases;
    alias_text alias;
    bs_suggest_add(&near, row->gpu.name);
    while (next_alias(&rest, &alias)) bs_suggest_add_alias(&near, alias.text, row->gpu.name);
    return bs_suggest_end(&near);
}

static const mdot_gpu *find_row(const char *name)
{
    const char *core = skip_brand(name);
    for (size_t i = 0; i < ROW_COUNT; i++)
        if (is_called(&rows[i], core)) return &rows[i].gpu;
    return NULL;
}

/* The model in "8xH100", "8*H100", "H100x8" or "H100:8", and the number from 1 to 2^16; NULL for other names. */
static const mdot_gpu *find_several(const char *name, int *out_number)
{
    enum { DIGITS = 5, MOST_GPUS = 1 << 16 };
    char model[BS_SUGGEST_LENGTH + 1];
    snprintf(model, sizeof model, "%s", name);
    const char *number = model, *row = NULL;
    size_t digits = strspn(name, "0123456789"), sign = digits + strspn(name + digits, " ");
    if (digits > 0 && name[sign] != '\0' && strchr("xX*", name[sign]) != NULL) row = name + sign + 1;
    for (size_t i = strlen(model); row == NULL && i-- > 1 && strchr("0123456789 ", model[i]) != NULL;) {
        if (strchr("xX*:", model[i - 1]) == NULL) continue;
        model[i - 1] = '\0';
        number = model + i;
        row = model;
    }
    number += strspn(number, " ");
    *out_number = strspn(number, "0123456789") <= DIGITS ? atoi(number) : 0;
    return row != NULL && *out_number > 0 && *out_number <= MOST_GPUS ? find_row(row) : NULL;
}

static mdot_status fail_unknown(const char *name, mdot_error *err)
{
    if (err == NULL) return MDOT_INVALID_ARGUMENT;
    int number;
    const mdot_gpu *several = find_several(name, &number);
    if (several != NULL)
        return BS_INVALID(err, "\"%.64s\" is a model and a number: set --gpu to %s and --gpus to %d", name,
                          several->name, number);
    char wrong[BS_SUGGEST_LENGTH + 1]; /* in the form of the table's names */
    const char *core = skip_brand(name);
    snprintf(wrong, sizeof wrong, "%s", core + strspn(core, " -_"));
    for (char *c = wrong; *c != '\0'; c++)
        if (*c == ' ' || *c == '_') *c = '-';
    bs_nearest similar = find_similar(wrong);
    return BS_INVALID(err, "unknown GPU \"%.64s\"%s; the most similar names are %s; `mdot gpus` lists all %d", name,
                      suggest_first(wrong, &similar).text, bs_nearest_end(&similar).text, ROW_COUNT);
}

enum { SLICES = 6, EIGHTHS = 8 };

static const struct sliced_gpu {
    const char *names[SLICES]; /* GPU:SLICE */
    double sm_count[SLICES];
} sliced[] = {
#define MIG(gpu, a, a_sms, b, b_sms, c, c_sms, d, d_sms, e, e_sms, f, f_sms)                                           \
    {{gpu ":" a, gpu ":" b, gpu ":" c, gpu ":" d, gpu ":" e, gpu ":" f}, {a_sms, b_sms, c_sms, d_sms, e_sms, f_sms}},
#include "runtime/job/gpus.def"
};
enum { SLICE_COUNT = SLICES * sizeof sliced / sizeof *sliced };

static mdot_gpu slices[SLICE_COUNT];
static pthread_once_t slices_once = PTHREAD_ONCE_INIT;

/* Rates and power limit follow the SMs. Memory, bandwidth and cache come in eighths. No slice has NVLink. */
static void make_slices(void)
{
    for (size_t i = 0; i < SLICE_COUNT; i++) {
        const char *name = sliced[i / SLICES].names[i % SLICES];
        size_t length = strcspn(name, ":");
        char whole[BS_SUGGEST_LENGTH + 1];
        snprintf(whole, sizeof whole, "%.*s", (int)length, name);
        mdot_gpu gpu = *find_row(whole);
        double compute = sliced[i / SLICES].sm_count[i % SLICES] / gpu.sm_count;
        double memory = round(EIGHTHS * atof(strchr(name + length, '.') + 1) / gpu.memory_gib) / EIGHTHS;
        double *const by_compute[] = {&gpu.sm_count,    &gpu.fp32_tflops, &gpu.tf32_tflops,
                                      &gpu.fp16_tflops, &gpu.fp8_tflops,  &gpu.watts};
        for (size_t k = 0; k < sizeof by_compute / sizeof *by_compute; k++) *by_compute[k] *= compute;
        gpu.memory_gib *= memory;
        gpu.memory_gbps *= memory;
        gpu.l2_mib *= memory;
        gpu.nvlink_gbps = 0;
        gpu.name = name;
        slices[i] = gpu;
    }
}

/* The slice in GPU:SLICE, "GPU SLICE" or "GPU MIG SLICE", as NVIDIA's tools write it; NULL for other names. Writes the
 * GPU's name. */
static const char *split_slice(const char *name, char whole[static BS_SUGGEST_LENGTH + 1])
{
    const char *slice = strchr(name, ':');
    size_t length = strlen(name), number = 0;
    if (slice == NULL) {
        while (length > 0 && strchr(" -_", name[length - 1]) == NULL) length--;
        number = strspn(name + length, "0123456789");
        if (length == 0 || number == 0 || strncmp(name + length + number, "g.", 2) != 0) return NULL;
        slice = name + length - 1;
    }
    snprintf(whole, BS_SUGGEST_LENGTH + 1, "%.*s", (int)(slice - name), name);
    length = strlen(whole);
    if (length > 4 && strcasecmp(whole + length - 3, "MIG") == 0) whole[length - 4] = '\0';
    return slice + 1;
}

static mdot_status find_slice(const char *whole, const char *slice, const mdot_gpu **out_gpu, mdot_error *err)
{
    char known[SLICES * 10] = "";
    const mdot_gpu *gpu = find_row(whole);
    if (gpu == NULL) return fail_unknown(whole, err);
    pthread_once(&slices_once, make_slices);
    size_t length = strlen(gpu->name), family = strcspn(gpu->name, "-");
    const char *related = NULL; /* a slice of this name, of another model of the family */
    for (size_t i = 0; i < SLICE_COUNT; i++) {
        const char *own = strchr(slices[i].name, ':') + 1;
        if (strncmp(slices[i].name, gpu->name, family + 1) == 0 && equal_names(own, slice)) related = slices[i].name;
        if (strncmp(slices[i].name, gpu->name, length) != 0 || slices[i].name[length] != ':') continue;
        *out_gpu = &slices[i];
        if (equal_names(own, slice)) return MDOT_OK;
        size_t end = strlen(known);
        if (strstr(known, own) == NULL) snprintf(known + end, sizeof known - end, "%s%s", end > 0 ? ", " : "", own);
    }
    if (known[0] == '\0')
        return BS_INVALID(err, "mdot knows no slices of %s; those of A100, A30, H100 and H200 are known", gpu->name);
    return BS_INVALID(err, "%s has no slice \"%.64s\"; its slices are %s%s%s", gpu->name, slice, known,
                      related != NULL ? "; another model has it: " : "", related != NULL ? related : "");
}

mdot_status rt_gpu_find(const char *name, const mdot_gpu **out_gpu, mdot_error *err)
{
    if (name == NULL)
        return BS_INVALID(err, "--gpu is missing: pass the name of a known GPU, or its spec values as --gpu-spec");
    char whole[BS_SUGGEST_LENGTH + 1];
    const char *slice = find_several(name, &(int){0}) == NULL ? split_slice(name, whole) : NULL;
    if (slice != NULL) return find_slice(whole, slice, out_gpu, err);
    const mdot_gpu *row = find_row(name);
    if (row == NULL) return fail_unknown(name, err);
    *out_gpu = row;
    return MDOT_OK;
}

mdot_status rt_gpu_check_name(const char *name, mdot_error *err)
{
    if (name == NULL || bs_is_printable(name)) return MDOT_OK;
    char shown[65];
    snprintf(shown, sizeof shown, "%.*s", (int)bs_cut_length(name, sizeof shown - 1), name);
    bs_make_printable(shown);
    return BS_INVALID(err, "the GPU's name \"%s\" must consist of printable UTF-8 characters", shown);
}

mdot_status mdot_gpu_find(const char *name, mdot_gpu *out_gpu, mdot_error *err)
{
    const mdot_gpu *gpu;
    mdot_status status = rt_gpu_find(name, &gpu, err);
    return status == MDOT_OK ? bs_fill_struct(&rt_gpu_type, gpu, out_gpu, err) : status;
}

bool rt_gpu_is_from_amd(const mdot_gpu *gpu)
{
    const char *name = gpu->name != NULL ? gpu->name : "";
    return name[0] == 'M' && name[1] == 'I' && name[2] >= '0' && name[2] <= '9';
}
