/* request.c — see request.h. */
#include "integrations/slurm/request.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct word {
    const char *name;
    int value;
} word;

static const word precisions[] = {{"fp32", MDOT_PRECISION_FP32},         {"tf32", MDOT_PRECISION_TF32},
                                  {"amp", MDOT_PRECISION_AMP},           {"amp-fp16", MDOT_PRECISION_AMP},
                                  {"amp-bf16", MDOT_PRECISION_AMP_BF16}, {"bf16", MDOT_PRECISION_BF16},
                                  {"pytorch", MDOT_PRECISION_PYTORCH},   {0}};
static const word layouts[] = {{"nchw", MDOT_LAYOUT_NCHW}, {"nhwc", MDOT_LAYOUT_NHWC}, {0}};
static const word optimizers[] = {
    {"sgd", MDOT_OPTIMIZER_SGD}, {"adam", MDOT_OPTIMIZER_ADAM}, {"adamw", MDOT_OPTIMIZER_ADAMW}, {0}};
static const word attentions[] = {{"flash", MDOT_ATTENTION_FLASH}, {"eager", MDOT_ATTENTION_EAGER}, {0}};
static const word recomputations[] = {{"nothing", MDOT_RECOMPUTE_NOTHING},
                                      {"blocks", MDOT_RECOMPUTE_BLOCKS},
                                      {"selective", MDOT_RECOMPUTE_SELECTIVE},
                                      {0}};
static const word no_yes[] = {{"no", 0}, {"yes", 1}, {0}};

/* A key with `words` takes one of them. A version consists of two numbers with a point between, and is stored as 100
 * * major + minor. Any other key takes a whole number. */
typedef struct key {
    const char *name;
    const word *words;
    double least, most;
    bool is_version;
} key;

enum {
    BATCH,
    PRECISION,
    LAYOUT,
    OPTIMIZER,
    ATTENTION,
    CHECKPOINT,
    COMPILE,
    ACCUMULATE,
    DP,
    TP,
    PP,
    MICRO,
    ZERO,
    TORCH,
    STEPS,
    EPOCHS,
    DATASET,
    KEY_COUNT
};

/* Limits are those of mdot_configuration; the limit of steps is the largest integer that a double counts exactly. */
#define MOST_STEPS 9007199254740992.0
static const key keys[KEY_COUNT] = {[BATCH] = {.name = "batch", .least = 1, .most = 1 << 24},
                                    [PRECISION] = {.name = "precision", .words = precisions},
                                    [LAYOUT] = {.name = "layout", .words = layouts},
                                    [OPTIMIZER] = {.name = "optimizer", .words = optimizers},
                                    [ATTENTION] = {.name = "attention", .words = attentions},
                                    [CHECKPOINT] = {.name = "checkpoint", .words = recomputations},
                                    [COMPILE] = {.name = "compile", .words = no_yes},
                                    [ACCUMULATE] = {.name = "accumulate", .least = 1, .most = 1 << 16},
                                    [DP] = {.name = "dp", .least = 1, .most = 1 << 16},
                                    [TP] = {.name = "tp", .least = 1, .most = 1 << 16},
                                    [PP] = {.name = "pp", .least = 1, .most = 1 << 16},
                                    [MICRO] = {.name = "micro", .least = 1, .most = 1 << 16},
                                    [ZERO] = {.name = "zero", .most = 3},
                                    [TORCH] = {.name = "torch", .most = 99, .is_version = true},
                                    [STEPS] = {.name = "steps", .least = 1, .most = MOST_STEPS},
                                    [EPOCHS] = {.name = "epochs", .least = 1, .most = MOST_STEPS},
                                    [DATASET] = {.name = "dataset", .least = 1, .most = MOST_STEPS}};

/* Value of each key in the text. */
typedef struct settings {
    bool given[KEY_COUNT];
    double value[KEY_COUNT];
} settings;

static mdot_status read_word(const key *k, const char *value, double *out, mdot_error *err)
{
    char known[128] = "";
    for (const word *w = k->words; w->name != NULL; w++) {
        if (strcmp(value, w->name) == 0) return *out = w->value, MDOT_OK;
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used == 0 ? "" : ", ", w->name);
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be one of %s, not \"%.40s\"", k->name, known, value);
}

/* Accepts digits only, because strtod would also take "0x10", "inf" and a locale's comma. */
static mdot_status read_whole(const key *k, const char *value, double *out, mdot_error *err)
{
    double number = 0;
    size_t digits = strspn(value, "0123456789");
    for (size_t i = 0; i < digits; i++) number = 10 * number + (value[i] - '0');
    if (digits == 0 || value[digits] != '\0' || number < k->least || number > k->most)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be an integer from %.0f to %.0f, not \"%.40s\"", k->name,
                         k->least, k->most, value);
    *out = number;
    return MDOT_OK;
}

static mdot_status read_version(const key *k, char *value, double *out, mdot_error *err)
{
    double major = 0, minor = 0;
    char *point = strchr(value, '.');
    if (point == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be a version, for example 1.12 or 2.4, not \"%.40s\"",
                         k->name, value);
    *point = '\0';
    mdot_status status = read_whole(k, value, &major, err);
    if (status == MDOT_OK) status = read_whole(k, point + 1, &minor, err);
    if (status == MDOT_OK && major == 0)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be a version of at least 1.0", k->name);
    if (status == MDOT_OK) *out = 100 * major + minor;
    return status;
}

static mdot_status read_value(const key *k, char *value, double *out, mdot_error *err)
{
    if (k->is_version) return read_version(k, value, out, err);
    return k->words != NULL ? read_word(k, value, out, err) : read_whole(k, value, out, err);
}

static mdot_status read_setting(char *setting, settings *out, mdot_error *err)
{
    char *equals = strchr(setting, '=');
    if (equals == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "\"%.40s\" must have the form KEY=VALUE, for example batch=64",
                         setting);
    *equals = '\0';
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(setting, keys[i].name) != 0) continue;
        if (out->given[i]) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s is given twice", keys[i].name);
        out->given[i] = true;
        return read_value(&keys[i], equals + 1, &out->value[i], err);
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "\"%.40s\" is not a setting of --mdot", setting);
}

static mdot_status read_settings(char *text, settings *out, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (char *at = text; status == MDOT_OK && *at != '\0';) {
        char *comma = at + strcspn(at, ","), *next = *comma == ',' ? comma + 1 : comma;
        *comma = '\0';
        status = read_setting(at, out, err);
        at = next;
    }
    if (status != MDOT_OK) return status;
    if (out->given[EPOCHS] != out->given[DATASET])
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "epochs and dataset require each other");
    if (out->given[EPOCHS] && out->given[STEPS])
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "steps and epochs exclude each other");
    return MDOT_OK;
}

/* Returns the length of the file name in `text`: up to the first comma, or 0 if that part is a setting. */
static size_t file_length(const char *text)
{
    size_t length = strcspn(text, ","), name = strcspn(text, "=,");
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (strlen(keys[i].name) == name && strncmp(text, keys[i].name, name) == 0 && text[name] == '=') return 0;
    return length;
}

const char *sl_request_settings(const char *text)
{
    const char *behind = text + file_length(text);
    return *behind == ',' ? behind + 1 : behind;
}

mdot_status sl_request_parse(const char *text, sl_request *out_request, mdot_error *err)
{
    settings said = {.value = {[PRECISION] = MDOT_PRECISION_PYTORCH}};
    char rest[SL_REQUEST_BYTES];
    if (strnlen(text, SL_REQUEST_BYTES) == SL_REQUEST_BYTES)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "more than %d characters", SL_REQUEST_BYTES - 1);
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a control character");
    snprintf(rest, sizeof rest, "%s", sl_request_settings(text));
    mdot_status status = read_settings(rest, &said, err);
    if (status != MDOT_OK) return status;
    const double *value = said.value;
    *out_request = (sl_request){.training = {.struct_size = sizeof(mdot_configuration),
                                             .batch = (int64_t)value[BATCH],
                                             .precision = (mdot_precision)value[PRECISION],
                                             .layout = (mdot_layout)value[LAYOUT],
                                             .optimizer = (mdot_optimizer)value[OPTIMIZER],
                                             .attention = (mdot_attention)value[ATTENTION],
                                             .recompute = (mdot_recompute)value[CHECKPOINT],
                                             .compiled = (uint32_t)value[COMPILE],
                                             .accumulate = (uint32_t)value[ACCUMULATE],
                                             .data_parallel = (uint32_t)value[DP],
                                             .tensor_parallel = (uint32_t)value[TP],
                                             .pipeline_parallel = (uint32_t)value[PP],
                                             .micro_batches = (uint32_t)value[MICRO],
                                             .zero_stage = (uint32_t)value[ZERO],
                                             .torch = (uint32_t)value[TORCH]},
                                .has_optimizer = said.given[OPTIMIZER],
                                .steps = value[STEPS],
                                .epochs = value[EPOCHS],
                                .dataset = value[DATASET]};
    memcpy(out_request->file, text, file_length(text)); /* the rest is zero */
    return MDOT_OK;
}

double sl_request_steps(const sl_request *request, double samples_of_step)
{
    return request->steps > 0 ? request->steps : ceil(request->dataset / samples_of_step) * request->epochs;
}
