/* gpu_spec.c — see gpu_argument.h. */
#include "base/suggest.h"
#include "base/text.h"
#include "cli/gpu/gpu_argument.h"

#include <math.h>
#include <string.h>
#include <strings.h>

void cli_copy_gpu_name(const char *name, char out[CLI_GPU_NAME_BYTES])
{
    snprintf(out, CLI_GPU_NAME_BYTES, "%.*s", (int)bs_cut_length(name, CLI_GPU_NAME_BYTES - 1), name);
}

static bool add_name(const char *command, const char *name, cli_gpus *gpus)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    mdot_error err = {0};
    if (gpus->count == CLI_MAX_GPUS) return cli_refuse(command, "at most %d GPUs", CLI_MAX_GPUS);
    if (mdot_gpu_find(name, &gpu, &err) != MDOT_OK)
        return cli_refuse(command, "%s; --gpu-spec describes other GPUs", err.message);
    gpus->item[gpus->count++] = gpu;
    return true;
}

bool cli_add_gpus(const char *command, char *text, void *gpus)
{
    const char *items[CLI_MAX_GPUS];
    size_t count = 0;
    if (strcmp(text, "all") == 0) {
        for (const char *const *name = mdot_gpu_names(); *name != NULL && count < CLI_MAX_GPUS; name++)
            items[count++] = *name;
    } else if (!cli_split_list(command, "--gpu", text, CLI_MAX_GPUS, items, &count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++)
        if (!add_name(command, items[i], gpus)) return false;
    return true;
}

static const struct column {
    const char *name, *key;
    size_t offset;
    bool scales;
} columns[] = {
#define COLUMN(field, key, may_be_zero, scales, ...) {#field, key, offsetof(mdot_gpu, field), scales},
#include "runtime/job/gpus.def"
};
enum {
#define COLUMN(field, ...) COLUMN_##field,
#include "runtime/job/gpus.def"
    COLUMN_COUNT,
    NAME = COLUMN_COUNT,
    LIKE,
    KEY_COUNT
};

typedef struct spec {
    const char *command, *text; /* the whole argument */
    const char *like;           /* name of a GPU in the table */
    char name[CLI_GPU_NAME_BYTES];
    double value[COLUMN_COUNT];
    bool is_set[KEY_COUNT];
} spec;

static void add_column(bs_suggest *suggestion, int column)
{
    bs_suggest_add(suggestion, columns[column].name);
    bs_suggest_add(suggestion, columns[column].key);
}

static bool refuse_key(const spec *s, const char *key)
{
    bs_suggest suggestion = bs_suggest_begin(key);
    bs_suggest_add(&suggestion, "name");
    bs_suggest_add(&suggestion, "like");
    bs_suggest_add_alias(&suggestion, "vram", "memory");
    bs_suggest_add_alias(&suggestion, "bw", "bandwidth");
    bs_suggest_add_alias(&suggestion, "tdp", "watts");
    bs_suggest_add_alias(&suggestion, "tgp", "watts");
    /* the first of equally near names counts, so rates come first, half precision before the others */
    for (int i = COLUMN_fp16_tflops; i >= COLUMN_fp32_tflops; i--) add_column(&suggestion, i);
    for (int i = 0; i < COLUMN_COUNT; i++) add_column(&suggestion, i);
    return cli_refuse(s->command,
                      "--gpu-spec: unknown key %s%s; known are name, like, tflops, memory, bandwidth and the keys of "
                      "`mdot gpus --json`",
                      key, bs_suggest_end(&suggestion).text);
}

/* Returns the index of a spec value, or NAME or LIKE; KEY_COUNT if the key is unknown. */
static int find_key(const char *key)
{
    if (strcasecmp(key, "name") == 0) return NAME;
    if (strcasecmp(key, "like") == 0) return LIKE;
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (strcasecmp(key, columns[i].name) == 0 || strcasecmp(key, columns[i].key) == 0) return i;
    return KEY_COUNT;
}

static bool read_number(spec *s, int column, const char *key, const char *value)
{
    const char *end;
    s->value[column] = bs_number_read(value, &end);
    if (end != value && *end == '\0' && isfinite(s->value[column]) && s->value[column] > 0) return true;
    return cli_refuse(s->command, "--gpu-spec: %s must be a positive number, not \"%s\"", key, value);
}

/* The text without blanks at both ends, which are cut off in place. */
static char *trim(char *text)
{
    text += strspn(text, " \t");
    for (size_t end = strlen(text); end > 0 && strchr(" \t", text[end - 1]) != NULL; end--) text[end - 1] = '\0';
    return text;
}

/* Splits "key=value" in place. Blanks may surround both. */
static bool read_setting(spec *s, char *text)
{
    text = trim(text);
    char *equals = strchr(text, '=');
    if (equals == NULL || equals == text)
        return cli_refuse(s->command, "--gpu-spec takes KEY=VALUE,… or a file of such lines, not \"%s\"", text);
    *equals = '\0';
    const char *value = trim(equals + 1);
    text = trim(text);
    int key = find_key(text);
    if (key == KEY_COUNT) return refuse_key(s, text);
    if (*value == '\0' || s->is_set[key])
        return cli_refuse(s->command, "--gpu-spec: %s %s", text, s->is_set[key] ? "is given twice" : "has no value");
    s->is_set[key] = true;
    if (key == NAME && !bs_is_printable(value))
        return cli_refuse(s->command, "--gpu-spec: the name contains control characters");
    if (key == NAME)
        cli_copy_gpu_name(value, s->name);
    else if (key == LIKE)
        s->like = value;
    else
        return read_number(s, key, text, value);
    return true;
}

/* Finds the GPU that missing spec values are taken from. */
static bool find_base(const spec *s, mdot_gpu *out_gpu)
{
    mdot_error err = {0};
    if (s->like != NULL) {
        if (mdot_gpu_find(s->like, out_gpu, &err) == MDOT_OK) return true;
        return cli_refuse(s->command, "--gpu-spec: %s", err.message);
    }
    double nearest = INFINITY;
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++) {
        mdot_gpu gpu = MDOT_INIT(mdot_gpu);
        mdot_gpu_find(*name, &gpu, NULL);
        double distance = fabs(log(gpu.fp16_tflops / s->value[COLUMN_fp16_tflops]));
        if (distance >= nearest) continue;
        nearest = distance;
        *out_gpu = gpu;
    }
    return true;
}

static bool add_spec(const spec *s, cli_gpus *gpus)
{
    mdot_gpu gpu = MDOT_INIT(mdot_gpu);
    if (s->like == NULL && !s->is_set[COLUMN_fp16_tflops])
        return cli_refuse(s->command, "--gpu-spec requires tflops (half precision, dense) or like=NAME");
    if (gpus->count == CLI_MAX_GPUS) return cli_refuse(s->command, "at most %d GPUs", CLI_MAX_GPUS);
    if (!find_base(s, &gpu)) return false;
    double scale = s->is_set[COLUMN_fp16_tflops] ? s->value[COLUMN_fp16_tflops] / gpu.fp16_tflops : 1;
    for (int i = 0; i < COLUMN_COUNT; i++) {
        double *value = (double *)(void *)((char *)&gpu + columns[i].offset);
        *value = s->is_set[i] ? s->value[i] : columns[i].scales ? *value * scale : *value;
    }
    char *name = gpus->names[gpus->count];
    if (s->name[0] != '\0')
        memcpy(name, s->name, CLI_GPU_NAME_BYTES);
    else
        snprintf(name, CLI_GPU_NAME_BYTES, "like %s", gpu.name);
    gpu.name = name;
    gpus->spec[gpus->count] = s->text;
    gpus->item[gpus->count++] = gpu;
    return true;
}

/* Reads settings from the lines of a file, except blank lines and comments behind '#'. */
static bool read_file(spec *s, const char *path, char *text, size_t size)
{
    mdot_error err;
    FILE *file = cli_open_file(path, &err);
    if (file == NULL)
        return cli_refuse(s->command, "--gpu-spec takes KEY=VALUE,… or a file of such lines; cannot read %s",
                          err.message);
    size_t length = fread(text, 1, size - 1, file);
    bool whole = feof(file) != 0 && ferror(file) == 0;
    fclose(file);
    text[length] = '\0';
    if (!whole || strlen(text) != length)
        return cli_refuse(s->command, "--gpu-spec: %s must be a text file of KEY=VALUE lines of at most %zu bytes",
                          path, size - 1);
    for (char *line = text, *line_end; line != NULL; line = line_end) {
        line_end = strchr(line, '\n');
        if (line_end != NULL) *line_end++ = '\0';
        line[strcspn(line, "#\r")] = '\0';
        if (line[strspn(line, " \t")] != '\0' && !read_setting(s, line)) return false;
    }
    return true;
}

bool cli_add_gpu_spec(const char *command, char *text, void *gpus)
{
    spec s = {.command = command, .text = text};
    char content[4096]; /* storage of the strings in the spec */
    if (strchr(text, '=') == NULL) return read_file(&s, text, content, sizeof content) && add_spec(&s, gpus);
    const char *items[COLUMN_COUNT + 2];
    size_t count;
    if (strlen(text) >= sizeof content)
        return cli_refuse(command, "--gpu-spec takes at most %zu bytes", sizeof content - 1);
    if (!cli_split_list(command, "--gpu-spec", strcpy(content, text), COLUMN_COUNT + 2, items, &count)) return false;
    for (size_t i = 0; i < count; i++)
        if (!read_setting(&s, (char *)(uintptr_t)items[i])) return false;
    return add_spec(&s, gpus);
}
