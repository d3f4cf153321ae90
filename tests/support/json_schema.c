/* json_schema.c — see json_schema.h. Both texts become trees. The schema and the value are walked together. */
#include "tests/support/json_schema.h"
#include "tests/support/assertions.h"
#include "tests/support/json.h"

#include <math.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct node {
    enum { OBJECT, ARRAY, STRING, NUMBER, BOOLEAN, NOTHING } kind;
    char *name; /* the name of an object member */
    char *text; /* content of a string, with escapes as they are */
    double number;
    struct node *first, *next; /* first child; next child of the same parent */
} node;

static const char *skip_blanks(const char *p) { return p + strspn(p, " \t\r\n"); }

static char *take_string(const char **p)
{
    const char *start = ++*p;
    while (**p != '"') *p += **p == '\\' ? 2 : 1;
    size_t length = (size_t)(*p - start);
    char *text = calloc(1, length + 1);
    assert_non_null(text);
    memcpy(text, start, length);
    ++*p;
    return text;
}

static node *take_value(const char **p);

static void take_children(const char **p, node *parent, char close)
{
    node **last = &parent->first;
    for (*p = skip_blanks(*p + 1); **p != close;) {
        char *name = parent->kind == OBJECT ? take_string(p) : NULL;
        *p = skip_blanks(*p);
        if (name != NULL) *p = skip_blanks(*p + 1); /* skips the colon */
        *last = take_value(p);
        (*last)->name = name;
        last = &(*last)->next;
        *p = skip_blanks(*p);
        if (**p == ',') *p = skip_blanks(*p + 1);
    }
    ++*p;
}

/* The text must be valid JSON. */
static node *take_value(const char **p)
{
    node *n = calloc(1, sizeof *n);
    assert_non_null(n);
    *p = skip_blanks(*p);
    if (**p == '{' || **p == '[') {
        n->kind = **p == '{' ? OBJECT : ARRAY;
        take_children(p, n, **p == '{' ? '}' : ']');
    } else if (**p == '"') {
        n->kind = STRING;
        n->text = take_string(p);
    } else if (**p == 't' || **p == 'f') {
        n->kind = BOOLEAN;
        n->number = **p == 't';
        *p += **p == 't' ? 4 : 5;
    } else if (**p == 'n') {
        n->kind = NOTHING;
        *p += 4;
    } else {
        char *end;
        n->kind = NUMBER;
        n->number = strtod(*p, &end);
        *p = end;
    }
    return n;
}

static node *make_tree(const char *text)
{
    if (!json_is_valid(text)) fail_msg("no JSON: %.200s", text);
    return take_value(&text);
}

static void free_tree(node *n)
{
    while (n != NULL) {
        node *next = n->next;
        free_tree(n->first);
        free(n->name);
        free(n->text);
        free(n);
        n = next;
    }
}

static const node *find(const node *object, const char *name)
{
    for (const node *n = object != NULL ? object->first : NULL; n != NULL; n = n->next)
        if (n->name != NULL && strcmp(n->name, name) == 0) return n;
    return NULL;
}

static bool equal(const node *a, const node *b)
{
    if (a->kind != b->kind) return false;
    if (a->kind == STRING) return strcmp(a->text, b->text) == 0;
    assert_compare(a->kind, !=, OBJECT);
    assert_compare(a->kind, !=, ARRAY);
    return a->number == b->number;
}

typedef struct check {
    const node *root;
    char why[512];
} check;

static bool refuse(check *c, const char *place, const char *rule)
{
    snprintf(c->why, sizeof c->why, "%s: %s", place, rule);
    return false;
}

static bool has_type(const node *value, const char *type)
{
    static const char *const names[] = {"object", "array", "string", "number", "boolean", "null"};
    if (strcmp(type, "integer") == 0) return value->kind == NUMBER && value->number == floor(value->number);
    return strcmp(type, names[value->kind]) == 0;
}

static bool fits(check *c, const node *schema, const node *value, const char *place);

static size_t count_children(const node *n)
{
    size_t count = 0;
    for (n = n->first; n != NULL; n = n->next) count++;
    return count;
}

static bool members_fit(check *c, const node *schema, const node *value, const char *place)
{
    const node *others = find(schema, "additionalProperties"), *properties = find(schema, "properties");
    for (const node *n = value->first; value->kind == OBJECT && n != NULL; n = n->next) {
        char at[256];
        snprintf(at, sizeof at, "%s.%s", place, n->name);
        const node *own = find(properties, n->name);
        if (own == NULL && others == NULL) continue;
        if (own == NULL && others->kind == BOOLEAN) {
            if (others->number == 0) return refuse(c, at, "is no member that the schema has");
            continue;
        }
        if (!fits(c, own != NULL ? own : others, n, at)) return false;
    }
    return true;
}

/* Holds for values other than strings. The patterns of our schemas mean the same in POSIX and in JavaScript. */
static bool matches(const node *pattern, const node *value)
{
    regex_t compiled;
    if (value->kind != STRING) return true;
    if (regcomp(&compiled, pattern->text, REG_EXTENDED | REG_NOSUB) != 0)
        fail_msg("the schema's pattern %s is malformed", pattern->text);
    bool is_match = regexec(&compiled, value->text, 0, NULL, 0) == 0;
    regfree(&compiled);
    return is_match;
}

static bool rule_holds(check *c, const node *schema, const node *rule, const node *value, const char *place)
{
    const char *name = rule->name;
    bool is_number = value->kind == NUMBER, is_array = value->kind == ARRAY, any = false;
    if (strcmp(name, "type") == 0) return has_type(value, rule->text) || refuse(c, place, rule->text);
    if (strcmp(name, "const") == 0) return equal(rule, value) || refuse(c, place, "is not the constant");
    if (strcmp(name, "pattern") == 0) return matches(rule, value) || refuse(c, place, name);
    if (strcmp(name, "minimum") == 0) return !is_number || value->number >= rule->number || refuse(c, place, name);
    if (strcmp(name, "maximum") == 0) return !is_number || value->number <= rule->number || refuse(c, place, name);
    if (strcmp(name, "exclusiveMinimum") == 0)
        return !is_number || value->number > rule->number || refuse(c, place, name);
    if (strcmp(name, "minItems") == 0)
        return !is_array || (double)count_children(value) >= rule->number || refuse(c, place, name);
    if (strcmp(name, "required") == 0) {
        for (const node *n = rule->first; n != NULL; n = n->next)
            if (value->kind == OBJECT && find(value, n->text) == NULL) return refuse(c, place, n->text);
        return true;
    }
    if (strcmp(name, "enum") == 0) {
        for (const node *n = rule->first; n != NULL; n = n->next) any = any || equal(n, value);
        return any || refuse(c, place, "is none of the words");
    }
    if (strcmp(name, "anyOf") == 0) {
        for (const node *n = rule->first; n != NULL; n = n->next) any = any || fits(c, n, value, place);
        return any;
    }
    if (strcmp(name, "items") == 0) {
        size_t index = 0;
        for (const node *n = value->first; is_array && n != NULL; n = n->next) {
            char at[256];
            snprintf(at, sizeof at, "%s[%zu]", place, index++);
            if (!fits(c, rule, n, at)) return false;
        }
        return true;
    }
    if (strcmp(name, "$ref") == 0) {
        static const char start[] = "#/$defs/";
        assert_memory_equal(rule->text, start, strlen(start));
        const node *meant = find(find(c->root, "$defs"), rule->text + strlen(start));
        if (meant == NULL) fail_msg("the schema lacks %s", rule->text);
        return fits(c, meant, value, place);
    }
    if (strcmp(name, "properties") == 0) return members_fit(c, schema, value, place);
    if (strcmp(name, "additionalProperties") == 0)
        return find(schema, "properties") != NULL || members_fit(c, schema, value, place);
    static const char *const silent[] = {"$schema", "$defs", "title", "description"};
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (strcmp(name, silent[i]) == 0) return true;
    fail_msg("a schema's keyword %s is not known here", name);
    return false;
}

static bool fits(check *c, const node *schema, const node *value, const char *place)
{
    for (const node *rule = schema->first; rule != NULL; rule = rule->next)
        if (!rule_holds(c, schema, rule, value, place)) return false;
    return true;
}

static bool check_texts(const char *schema, const char *text, check *c)
{
    node *rules = make_tree(schema), *value = make_tree(text);
    c->root = rules;
    bool is_fit = fits(c, rules, value, "");
    free_tree(rules);
    free_tree(value);
    return is_fit;
}

void json_assert_schema(const char *schema, const char *text)
{
    check c = {0};
    if (!check_texts(schema, text, &c)) fail_msg("not as the schema says: %s", c.why);
}

int json_fits_schema(const char *schema, const char *text)
{
    check c = {0};
    return check_texts(schema, text, &c);
}
