/* json.c — see json.h. */
#include "service/json.h"

#include "base/suggest.h"

#include <math.h>
#include <string.h>

/* Properties of a text that json-c leaves unreported. */
typedef struct marks {
    size_t values, names;
    size_t wrong; /* the first byte that RFC 8259 forbids and json-c accepts, or the size */
    bool has_nul;
} marks;

static bool is_digit(const char *text, size_t i, size_t size) { return i < size && text[i] >= '0' && text[i] <= '9'; }

/* Whether the byte is wrong: a control character in a string; outside of one ', NaN, Infinity, "1.", "-.1" or "01". */
static bool is_wrong(const char *text, size_t i, size_t size, bool is_inside)
{
    if (is_inside) return (unsigned char)text[i] < ' ';
    size_t begin = i > 0 && text[i - 1] == '-' ? i - 1 : i; /* of a number */
    if (text[i] == '0')
        return is_digit(text, i + 1, size) && begin > 0 && strchr(" \t\r\n[:,", text[begin - 1]) != NULL;
    if (text[i] == '.') return !is_digit(text, i - 1, size) || !is_digit(text, i + 1, size);
    return text[i] == '\'' || text[i] == 'N' || text[i] == 'I';
}

static marks read_marks(const char *text, size_t size)
{
    marks m = {.wrong = size};
    bool is_inside = false; /* a string */
    for (size_t i = 0; i < size; i++) {
        is_inside ^= text[i] == '"';
        if (m.wrong == size && is_wrong(text, i, size, is_inside)) m.wrong = i;
        m.values += !is_inside && (text[i] == ',' || text[i] == '[' || text[i] == '{');
        m.names += !is_inside && text[i] == ':';
        if (!is_inside || text[i] != '\\') continue;
        m.has_nul |= size - i > 5 && memcmp(text + i + 1, "u0000", 5) == 0;
        i++;
    }
    return m;
}

/* The members of all objects in a value. */
static size_t count_members(struct json_object *value)
{
    size_t count = 0;
    if (json_object_is_type(value, json_type_array))
        for (size_t i = 0; i < json_object_array_length(value); i++)
            count += count_members(json_object_array_get_idx(value, i));
    if (!json_object_is_type(value, json_type_object)) return count;
    json_object_object_foreach(value, name, member) count += (name != NULL) + count_members(member);
    return count;
}

mdot_status sv_json_read(const void *bytes, size_t size, struct json_object **out_object, mdot_error *err)
{
    if (size == 0) return mdot_fail(err, MDOT_MALFORMED, "the body is empty: send a JSON object");
    marks m = read_marks(bytes, size);
    if (m.values > SV_JSON_VALUES) /* of about 100 bytes each in the parser */
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
    bool is_right = fault == json_tokener_success && end == size && json_object_is_type(object, json_type_object);
    bool is_unique = is_right && count_members(object) == m.names; /* of equal names, json-c keeps the last */
    if (is_unique && !m.has_nul && m.wrong == size) {
        *out_object = object;
        return MDOT_OK;
    }
    json_object_put(object);
    if (is_right && m.wrong < size)
        return mdot_fail(err, MDOT_MALFORMED,
                         "the body is no JSON, because RFC 8259 has no NaN, Infinity, -.1, 1., 01, single quotes and "
                         "control characters in strings: see byte %zu",
                         m.wrong);
    if (is_right)
        return mdot_fail(err, MDOT_MALFORMED,
                         m.has_nul ? "a text of the body has a NUL (\\u0000)"
                                   : "an object of the body has a member twice");
    if (fault == json_tokener_error_depth)
        return mdot_fail(err, MDOT_MALFORMED, "the body is nested deeper than %d levels", SV_JSON_DEPTH);
    if (fault == json_tokener_success)
        return mdot_fail(err, MDOT_MALFORMED, "the body must be one JSON object%s",
                         end < size ? ", with nothing behind it" : "");
    return mdot_fail(err, MDOT_MALFORMED, "the body is no JSON: %s at byte %zu",
                     fault == json_tokener_continue ? "it ends early" : json_tokener_error_desc(fault), end);
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
    if (m->kind == SV_JSON_REAL) return sv_json_number(m->name, value, false, m->least, m->most, (double *)target, err);
    if (m->kind == SV_JSON_WHOLE) {
        double number = 0;
        mdot_status status = sv_json_number(m->name, value, true, m->least, m->most, &number, err);
        if (status == MDOT_OK) *(int64_t *)target = (int64_t)number;
        return status;
    }
    if (!json_object_is_type(value, types[m->kind]))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s must be %s", m->name, names[m->kind]);
    const char *text = m->kind == SV_JSON_TEXT ? json_object_get_string(value) : NULL;
    if (text == NULL) return *(struct json_object **)target = value, MDOT_OK;
    return *(const char **)target = text, MDOT_OK;
}

mdot_status sv_json_members(struct json_object *object, const sv_member *members, size_t count, void *place,
                            sv_json_other *other, void *user, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    json_object_object_foreach(object, name, value)
    {
        size_t k = 0;
        while (k < count && strcmp(members[k].name, name) != 0) k++;
        if (k < count) {
            status = read_member(&members[k], value, place, err);
        } else if (other != NULL) {
            status = other(user, name, value, err);
        } else {
            bs_suggest near = bs_suggest_begin(name);
            for (k = 0; k < count; k++) bs_suggest_add(&near, members[k].name);
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no member \"%.64s\"%s", name,
                               bs_suggest_end(&near).text);
        }
        if (status != MDOT_OK) break;
    }
    return status;
}

size_t sv_json_length(struct json_object *array) { return array != NULL ? json_object_array_length(array) : 0; }

mdot_status sv_json_items(struct json_object *array, const char *noun, const sv_member *members, size_t count,
                          void *places, size_t size, sv_json_other *other, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < sv_json_length(array); i++) {
        mdot_error reason = {0};
        void *place = (char *)places + i * size;
        struct json_object *item = json_object_array_get_idx(array, i);
        status = json_object_is_type(item, json_type_object)
                     ? sv_json_members(item, members, count, place, other, place, &reason)
                     : mdot_fail(&reason, MDOT_INVALID_ARGUMENT, "it must be an object");
        if (status != MDOT_OK) mdot_fail(err, status, "%s %zu: %s", noun, i, reason.message);
    }
    return status;
}
