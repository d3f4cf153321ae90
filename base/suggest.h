/* suggest.h — suggest a known name for a misspelt one, for example "--precision" for "--precison". */
#pragma once

#include <stddef.h>

/* Only this many letters of a name are compared. */
enum { BS_SUGGEST_LENGTH = 32 };

typedef struct bs_suggest {
    const char *unknown;
    const char *found; /* the nearest name so far; the first one if several are equally near; NULL if all differ too
                        * much */
    size_t distance;
} bs_suggest;

/* bs_suggest_add keeps the address of a name. A name is near if it differs only in case, if one of the two contains
 * the other, or if few edits turn one into the other. An edit adds, removes or replaces a letter, or swaps two
 * neighbours. The length of the shorter name determines the limit: two edits from six letters on, one from three on.
 * For two letters, one edit is allowed if both names begin with the same letter. Containment requires at least three
 * letters. */
static inline bs_suggest bs_suggest_begin(const char *unknown) { return (bs_suggest){.unknown = unknown}; }
void bs_suggest_add(bs_suggest *suggestion, const char *name);
/* Like bs_suggest_add, but compares `alias`, whose address is not kept; the name found is `name`. */
void bs_suggest_add_alias(bs_suggest *suggestion, const char *alias, const char *name);

/* Text that follows the unknown name in a message: " (did you mean precision?)", or empty if no name is near. */
typedef struct bs_suggest_hint {
    char text[BS_SUGGEST_LENGTH + 20];
} bs_suggest_hint;
bs_suggest_hint bs_suggest_end(const bs_suggest *suggestion);
/* Finds the nearest among the `names` "a, b, c" in a message (base/text.h). An item with a space is a remark, and is
 * skipped. */
bs_suggest_hint bs_suggest_among(const char *unknown, const char *names);

/* The names most like an unknown one, for messages about long lists. Unlike bs_suggest, no limit applies. The distance
 * between two names is the number of edits divided by the longer one's length. It is half of this if the known name
 * contains the unknown one, for example "H100" and "H10", or if the unknown one has the known one as a word, for
 * example "A10 24GB" and "A10". Common words lessen it by up to 90 %. Equally near names
 * keep the order of the calls. */
enum { BS_NEAREST_COUNT = 5 };
typedef struct bs_nearest {
    const char *unknown;
    size_t count; /* of `item`, nearest first */
    struct {
        const char *name;
        double distance;
    } item[BS_NEAREST_COUNT];
} bs_nearest;

static inline bs_nearest bs_nearest_begin(const char *unknown) { return (bs_nearest){.unknown = unknown}; }
/* Compares `alias`, whose address is not kept, and keeps the address of `name`. Calls with the same address in `name`
 * count as one name at the least distance. */
void bs_nearest_add(bs_nearest *nearest, const char *alias, const char *name);
/* The names in a message: "resnet50, resnet152". */
typedef struct bs_nearest_text {
    char text[256];
} bs_nearest_text;
bs_nearest_text bs_nearest_end(const bs_nearest *nearest);
