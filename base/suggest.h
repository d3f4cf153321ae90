/* suggest.h — the name that a wrong one was meant to be: "--precison" was meant to be "--precision". */
#ifndef BS_SUGGEST_H
#define BS_SUGGEST_H

#include <stddef.h>

/* Longer names are compared as far as this. */
enum { BS_NEAR_LENGTH = 32 };

typedef struct bs_suggest {
    const char *wrong;
    const char *found; /* the nearest so far, the first of several; NULL: none is near */
    size_t distance;
} bs_suggest;

/* Offered names are kept by address. Near is what differs in case alone, is a part of the other (of at least three
 * letters), or is one edit away (a letter more, less, another, or two swapped), two from six letters on; of two
 * letters, what begins alike. */
static inline bs_suggest bs_suggest_begin(const char *wrong)
{
    return (bs_suggest){.wrong = wrong};
}
void bs_suggest_offer(bs_suggest *near, const char *name);
/* The same by `alias`, which is not kept: what is found is `name`. */
void bs_suggest_offer_alias(bs_suggest *near, const char *alias, const char *name);

/* For a message behind the wrong name: " (did you mean precision?)", or nothing where none is near. */
typedef struct bs_suggest_hint {
    char text[BS_NEAR_LENGTH + 20];
} bs_suggest_hint;
bs_suggest_hint bs_suggest_end(const bs_suggest *near);
/* The same of the `names` "a, b, c" that a message lists (base/join.h); what has a space is a remark and no name. */
bs_suggest_hint bs_suggest_among(const char *wrong, const char *names);

#endif
