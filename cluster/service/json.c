/* json.c — see json.h. */
#include "service/json.h"

#include "base/suggest.h"

#include <math.h>
#include <string.h>

/* Bounds the memory of the parser, which keeps about 100 bytes for each value. */
static bool has_few_values(const char *text, size_t size)
{
    size_t count = 0;
    for (size_t i = 0; i < size && count <= SV_JSON_VALUES; i++)
        count += text[i] == ',' || text[i] == '[' || text[i] == '{';
    return count <= SV_JSON_VALUES;
}

mdot_status sv_json_read(const void *bytes, size_t size, struct json_object **out_object, mdot_error *err)
{
    if (size == 0) return mdot_fail(err, MDOT_MALFORMED, "the body is empty: send a JSON object");
    if (!has_few_values(bytes, size))
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "the body has more than %d values", SV_JSON_VALUES);
    struct json_tokener *tokener = json_tokener_new_ex(SV_JSON_DEPTH);
    if (tokener == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *object = json_tokener_parse_ex(tokener, bytes, (int)size);
    enum json_tokener_error fault = json_tokener_get_error(tokener);
    size_t end = json_tokener_get_parse_end(tokener);
    json_tokener_free(tokener);
    const char *text = bytes;
    while (end < size && strchr(" \t\r\n", text[end]) != NULL && text[end] != '\0') end++;
    if (fault == json_tokener_success && end == size && json_object_is_type(object, json_type_object)) {
        *out_object = object;
        return MDOT_OK;
    }
    json_object_put(object);
    if (fault == json_tokener_error_depth)
        return mdot_fail(err, MDOT_MALFORMED, "the body is nested deeper than %d levels", SV_JSON_DEPTH);
    if (fault == json_tokener_success)
        return mdot_fail(err, MDOT_MALFORMED, "the body must be one JSON object%s",
                         end < size ? ", with nothing behind it" : "");
    return mdot_fail(err, MDOT_MALFORMED, "the body is no JSON: %s at byte %zu",
                     fault == json_tokener_continue ? "it ends early" : json_tokener_error_desc(fault), end);
}

mdot_status sv_json_refuse(const char *name, const sv_member *members, size_t count, mdot_error *err)
{
    bs_suggest near = bs_suggest_begin(name);
    for (size_t i = 0; i < count; i++) bs_suggest_add(&near, members[i].name);
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no member \"%.64s\"%s", name, bs_suggest_end(&near).text);
}

mdot_status sv_json_number(const char *name, struct json_object *value, bool is_whole, double least, double most,
                           double *out, mdot_error *err)
{
    bool is_int = json_object_is_type(value, json_type_int), is_real = json_object_is_type(value, json_type_double);
    double number = is_int ? (double)json_object_get_int64(value) : is_real ? json_object_get_double(value) : NAN;
    if ((is_int || is_real) && number >= least && number <= most && (!is_whole || number == floor(number))) {
        *out = number;
        return MDOT_OK;
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be %s from %.15g to %.15g", name,
                     is_whole ? "an integer" : "a number", least, most);
}

static mdot_status read_member(const sv_member *m, struct json_object *value, void *place, mdot_error *err)
{
    static const char *const names[] = {
        [SV_JSON_TEXT] = "a string", [SV_JSON_OBJECT] = "an object", [SV_JSON_ARRAY] = "an array"};
    static const enum json_type types[] = {
        [SV_JSON_TEXT] = json_type_string, [SV_JSON_OBJECT] = json_type_object, [SV_JSON_ARRAY] = json_type_array};
    char *target = (char *)place + m->offset;
    if (m->kind == SV_JSON_WHOLE || m->kind == SV_JSON_REAL) {
        double number = 0;
        mdot_status status = sv_json_number(m->name, value, m->kind == SV_JSON_WHOLE, m->least, m->most, &number, err);
        if (status != MDOT_OK) return status;
        if (m->kind == SV_JSON_WHOLE)
            *(int64_t *)target = (int64_t)number;
        else
            *(double *)target = number;
        return MDOT_OK;
    }
    if (!json_object_is_type(value, types[m->kind]))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be %s", m->name, names[m->kind]);
    if (m->kind != SV_JSON_TEXT) {
        *(struct json_object **)target = value;
        return MDOT_OK;
    }
    const char *text = json_object_get_string(value);
    if (strlen(text) != (size_t)json_object_get_string_len(value))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s has a NUL", m->name);
    *(const char **)target = text;
    return MDOT_OK;
}

mdot_status sv_json_members(struct json_object *object, const sv_member *members, size_t count, void *place,
                            sv_json_other *other, void *user, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    struct json_object_iterator end = json_object_iter_end(object);
    for (struct json_object_iterator i = json_object_iter_begin(object);
         status == MDOT_OK && !json_object_iter_equal(&i, &end); json_object_iter_next(&i)) {
        const char *name = json_object_iter_peek_name(&i);
        struct json_object *value = json_object_iter_peek_value(&i);
        size_t k = 0;
        while (k < count && strcmp(members[k].name, name) != 0) k++;
        if (k < count)
            status = read_member(&members[k], value, place, err);
        else if (other != NULL)
            status = other(user, name, value, err);
        else
            status = sv_json_refuse(name, members, count, err);
    }
    return status;
}
