#include "slurm/request.h"

#include "base/training/training_options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys: the training options in configuration.def with a Slurm key, then these. */
enum { STEPS = RT_OPTION_COUNT, EPOCHS, DATASET, KEY_COUNT };
static const char *const own_keys[KEY_COUNT - RT_OPTION_COUNT] = {"steps", "epochs", "dataset"};
#define MOST_STEPS 9007199254740992.0 /* whole numbers exact in a double */
enum { MOST_OF_A_VERSION = 99 };

/* Returns "" for an option without a key. */
static const char *name_of(size_t key)
{
    return key < RT_OPTION_COUNT ? rt_options[key].slurm : own_keys[key - RT_OPTION_COUNT];
}

/* Each key's values. */
typedef struct settings {
    bool is_set[KEY_COUNT];
    double value[KEY_COUNT];
} settings;

/* Accepts an option's choice names and the other words for them. */
static mdot_status read_choice(const rt_option *option, const char *value, double *out, mdot_error *err)
{
    char known[192] = "";
    int choice = rt_option_find_choice(option, value);
    if (choice >= 0) return *out = choice, MDOT_OK;
    for (size_t i = 0; option->choices[i] != NULL; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used == 0 ? "" : ", ", option->choices[i]);
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be one of %s, not \"%.40s\"", option->slurm, known, value);
}

static mdot_status read_flag(const char *key, const char *value, double *out, mdot_error *err)
{
    bool is_yes = strcmp(value, "yes") == 0;
    if (!is_yes && strcmp(value, "no") != 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be one of no, yes, not \"%.40s\"", key, value);
    *out = is_yes;
    return MDOT_OK;
}

/* Accepts digits only, because strtod would also take "0x10", "inf" and a locale's comma. */
static mdot_status read_whole(const char *key, const char *value, double minimum, double maximum, double *out,
                              mdot_error *err)
{
    double number = 0;
    size_t digits = strspn(value, "0123456789");
    for (size_t i = 0; i < digits; i++) number = 10 * number + (value[i] - '0');
    if (digits == 0 || value[digits] != '\0' || number < minimum || number > maximum)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be an integer from %.0f to %.0f, not \"%.40s\"", key,
                         minimum, maximum, value);
    *out = number;
    return MDOT_OK;
}

/* Accepts digits, with digits behind a point. */
static mdot_status read_decimal(const char *key, const char *value, double minimum, double maximum, double *out,
                                mdot_error *err)
{
    double number = 0, unit = 1;
    size_t whole = strspn(value, "0123456789");
    size_t part = value[whole] == '.' ? strspn(value + whole + 1, "0123456789") : 0;
    size_t length = part > 0 ? whole + 1 + part : whole;
    for (size_t i = 0; i < length; i++) {
        if (i == whole) continue;
        number = 10 * number + (value[i] - '0');
        if (i > whole) unit *= 10;
    }
    number /= unit;
    if (whole == 0 || value[length] != '\0' || !(number >= minimum && number <= maximum))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "%s must be a number from %g to %g, for example 10.3, not \"%.40s\"", key, minimum, maximum,
                         value);
    *out = number;
    return MDOT_OK;
}

static mdot_status read_version(const char *key, char *value, double *out, mdot_error *err)
{
    double major = 0, minor = 0;
    char *point = strchr(value, '.');
    if (point == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be a version, for example 1.12 or 2.4, not \"%.40s\"",
                         key, value);
    *point = '\0';
    mdot_status status = read_whole(key, value, 0, MOST_OF_A_VERSION, &major, err);
    if (status == MDOT_OK) status = read_whole(key, point + 1, 0, MOST_OF_A_VERSION, &minor, err);
    if (status == MDOT_OK && major == 0)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be a version of at least 1.0", key);
    if (status == MDOT_OK) *out = 100 * major + minor;
    return status;
}

static mdot_status read_value(size_t key, char *value, double *out, mdot_error *err)
{
    if (key >= RT_OPTION_COUNT) return read_whole(name_of(key), value, 1, MOST_STEPS, out, err);
    const rt_option *option = &rt_options[key];
    switch (option->kind) {
    case RT_KIND_CHOICE: return read_choice(option, value, out, err);
    case RT_KIND_FLAG: return read_flag(option->slurm, value, out, err);
    case RT_KIND_VERSION: return read_version(option->slurm, value, out, err);
    case RT_KIND_REAL: return read_decimal(option->slurm, value, option->least, option->most, out, err);
    case RT_KIND_WHOLE:
    case RT_KIND_COUNT:
    case RT_KIND_GPU: break;
    }
    return read_whole(option->slurm, value, option->least, option->most, out, err);
}

static mdot_status read_setting(char *setting, settings *out, mdot_error *err)
{
    char *equals = strchr(setting, '=');
    if (equals == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "\"%.40s\" must have the form KEY=VALUE, for example batch=64",
                         setting);
    *equals = '\0';
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (*setting == '\0' || strcmp(setting, name_of(i)) != 0) continue;
        if (out->is_set[i]) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s is given twice", name_of(i));
        out->is_set[i] = true;
        return read_value(i, equals + 1, &out->value[i], err);
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "\"%.40s\" is not a setting of --mdot", setting);
}

static mdot_status read_settings(char *text, settings *out, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (char *cursor = text; status == MDOT_OK && *cursor != '\0';) {
        char *comma = cursor + strcspn(cursor, ","), *successor = *comma == ',' ? comma + 1 : comma;
        *comma = '\0';
        status = read_setting(cursor, out, err);
        cursor = successor;
    }
    if (status != MDOT_OK) return status;
    if (out->is_set[EPOCHS] != out->is_set[DATASET])
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "epochs and dataset require each other");
    if (out->is_set[EPOCHS] && out->is_set[STEPS])
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "steps and epochs exclude each other");
    return MDOT_OK;
}

/* Returns the length of the file name in `text`: up to the first comma, or 0 if this part is a setting. */
static size_t file_length(const char *text)
{
    size_t length = strcspn(text, ","), name = strcspn(text, "=,");
    for (size_t i = 0; i < KEY_COUNT; i++)
        if (name > 0 && strlen(name_of(i)) == name && strncmp(text, name_of(i), name) == 0 && text[name] == '=')
            return 0;
    return length;
}

const char *sl_request_settings(const char *text)
{
    const char *behind = text + file_length(text);
    return *behind == ',' ? behind + 1 : behind;
}

mdot_status sl_request_parse(const char *text, sl_request *out_request, mdot_error *err)
{
    settings parsed = {0};
    char rest[SL_REQUEST_BYTES];
    if (strnlen(text, SL_REQUEST_BYTES) == SL_REQUEST_BYTES)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "more than %d characters", SL_REQUEST_BYTES - 1);
    for (const char *c = text; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 127) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a control character");
    snprintf(rest, sizeof rest, "%s", sl_request_settings(text));
    BS_TRY(read_settings(rest, &parsed, err));
    *out_request = (sl_request){.training = {.struct_size = sizeof(mdot_configuration)},
                                .has_optimizer = parsed.is_set[RT_OPTION_optimizer],
                                .steps = parsed.value[STEPS],
                                .epochs = parsed.value[EPOCHS],
                                .dataset = parsed.value[DATASET]};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        rt_option_set(&out_request->training, &rt_options[i],
                      parsed.is_set[i] ? parsed.value[i] : rt_options[i].fallback);
    memcpy(out_request->file, text, file_length(text)); /* the rest is zero */
    return MDOT_OK;
}

double sl_request_steps(const sl_request *request, double samples_of_step)
{
    return request->steps > 0 ? request->steps : ceil(request->dataset / samples_of_step) * request->epochs;
}
