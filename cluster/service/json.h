/* json.h — bodies of requests: one JSON object each, read strictly. A fault names the member, the reason and the
 * remedy. */
#ifndef SV_JSON_H
#define SV_JSON_H

#include "mdot/mdot_base.h"

#include <json-c/json.h>

enum {
    SV_JSON_DEPTH = 8,        /* nested arrays and objects of a body */
    SV_JSON_VALUES = 1 << 18, /* values of a body */
    SV_BODY_BYTES = 4 << 20   /* of a body */
};

/* Reads the body: an object, of limited depth and number of values. The caller releases it with json_object_put. */
mdot_status sv_json_read(const void *bytes, size_t size_bytes, struct json_object **out_object, mdot_error *err);

/* A member of an object that a handler knows. */
typedef enum sv_json_kind { SV_JSON_TEXT, SV_JSON_WHOLE, SV_JSON_REAL, SV_JSON_OBJECT, SV_JSON_ARRAY } sv_json_kind;
typedef struct sv_member {
    const char *name;
    sv_json_kind kind;
    double least, most; /* of a number */
    size_t offset; /* of the place in the handler's struct: const char *, int64_t, double or struct json_object * */
} sv_member;
#define SV_NAMED(type, NAME, field, KIND, ...)                                                                         \
    {                                                                                                                  \
        NAME, SV_JSON_##KIND, __VA_ARGS__, offsetof(type, field)                                                       \
    }
#define SV_MEMBER(type, field, KIND, ...) SV_NAMED(type, #field, field, KIND, __VA_ARGS__)
#define SV_COUNT(members) (sizeof(members) / sizeof *(members))

/* Fills `place` with the members of an object; absent ones stay as they are. Texts and objects are borrowed. A member
 * that is not among `count` members goes to `other`, or is refused with a suggestion if that is NULL. */
typedef mdot_status sv_json_other(void *user, const char *name, struct json_object *value, mdot_error *err);
mdot_status sv_json_members(struct json_object *object, const sv_member *members, size_t count, void *place,
                            sv_json_other *other, void *user, mdot_error *err);

/* Reads each object of an array, which may be NULL, into `places` of `size_bytes`. Messages begin with `noun` and the
 * index. */
mdot_status sv_json_items(struct json_object *array, const char *noun, const sv_member *members, size_t count,
                          void *places, size_t size_bytes, sv_json_other *other, mdot_error *err);
size_t sv_json_length(struct json_object *array); /* 0 for NULL */

/* Reads a number: finite, from least to most. */
mdot_status sv_json_number(const char *name, struct json_object *value, bool is_whole, double least, double most,
                           double *out, mdot_error *err);
#endif
