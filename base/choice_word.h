/* choice_word.h — the choices of an option by name, and other words for them, for example those of PyTorch and
 * Lightning. The header needs no library. */
#pragma once

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

/* Another word for a choice. */
typedef struct bs_choice_word {
    const char *word; /* NULL terminates a list */
    const char *name;
    bool is_same; /* false: it means something that mdot lacks, and the name is the nearest */
} bs_choice_word;

enum { BS_NO_CHOICE = -1 };

/* Compares words in any letter case; '-' and '_' are equal. */
static inline bool bs_is_same_word(const char *a, const char *b)
{
    for (; *a != '\0' || *b != '\0'; a++, b++) {
        int x = *a == '_' ? '-' : tolower((unsigned char)*a), y = *b == '_' ? '-' : tolower((unsigned char)*b);
        if (x != y) return false;
    }
    return true;
}

/* The last part of a dotted name: "AdamW" of "torch.optim.AdamW". */
static inline const char *bs_last_part(const char *text)
{
    const char *dot = strrchr(text, '.');
    return dot != NULL ? dot + 1 : text;
}

/* Finds a name in a list that NULL terminates, or in `words` (may be NULL). Returns the name's index, or
 * BS_NO_CHOICE. */
static inline int bs_find_choice(const char *text, const char *const *names, const bs_choice_word *words)
{
    text = bs_last_part(text);
    for (int i = 0; names[i] != NULL; i++)
        if (bs_is_same_word(text, names[i])) return i;
    for (; words != NULL && words->word != NULL; words++)
        if (words->is_same && bs_is_same_word(text, words->word)) return bs_find_choice(words->name, names, NULL);
    return BS_NO_CHOICE;
}
