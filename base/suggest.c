/* suggest.c — see suggest.h. */
#include "base/suggest.h"

#include "base/text.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define SHARED_WORDS 0.9 /* largest part of a distance that common words remove */

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* Edit distance of two names, ignoring case; a swap of neighbouring letters is one edit (optimal string alignment:
 * Boytsov, "Indexing methods for approximate dictionary searching", 2011, section 2.2). */
static size_t count_edits(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][BS_SUGGEST_LENGTH + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_length; j++) last[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (x != y));
            bool swapped =
                i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) && tolower((unsigned char)a[i - 2]) == y;
            if (swapped) row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *free_row = before;
        before = last;
        last = row;
        row = free_row;
    }
    return last[b_length];
}

void bs_suggest_add_alias(bs_suggest *suggestion, const char *alias, const char *name)
{
    size_t unknown = strnlen(suggestion->unknown, BS_SUGGEST_LENGTH), length = strnlen(alias, BS_SUGGEST_LENGTH);
    bool same_initial = tolower((unsigned char)*suggestion->unknown) == tolower((unsigned char)*alias);
    size_t shorter = least(unknown, length);
    size_t max_edits = shorter >= 6 ? 2 : shorter >= 3 || (shorter == 2 && same_initial) ? 1 : 0;
    size_t distance = count_edits(suggestion->unknown, unknown, alias, length);
    const char *container = unknown < length ? alias : suggestion->unknown,
               *contained = unknown < length ? suggestion->unknown : alias;
    bool is_contained = shorter >= 3 && strcasestr(container, contained) != NULL;
    if (distance > max_edits && !is_contained) return;
    if (suggestion->found != NULL && suggestion->distance <= distance) return;
    suggestion->found = name;
    suggestion->distance = distance;
}

void bs_suggest_add(bs_suggest *suggestion, const char *name) { bs_suggest_add_alias(suggestion, name, name); }

bs_suggest_hint bs_suggest_end(const bs_suggest *suggestion)
{
    bs_suggest_hint hint = {""};
    if (suggestion->found != NULL)
        snprintf(hint.text, sizeof hint.text, " (did you mean %.*s?)", BS_SUGGEST_LENGTH, suggestion->found);
    return hint;
}

bs_suggest_hint bs_suggest_among(const char *unknown, const char *names)
{
    char name[BS_SUGGEST_LENGTH + 1], nearest[BS_SUGGEST_LENGTH + 1];
    bs_suggest suggestion = bs_suggest_begin(unknown);
    for (const char *position = names; *position != '\0'; position += strspn(position, ", ")) {
        size_t length = strcspn(position, ",");
        bool is_name = length <= BS_SUGGEST_LENGTH && memchr(position, ' ', length) == NULL;
        snprintf(name, sizeof name, "%.*s", is_name ? (int)length : 0, position);
        if (is_name) bs_suggest_add(&suggestion, name);
        if (suggestion.found == name) suggestion.found = memcpy(nearest, name, sizeof name);
        position += length;
    }
    return bs_suggest_end(&suggestion);
}

/* Whether `text` contains `word` with no letter or digit on either side. */
static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *position = strcasestr(text, word); position != NULL; position = strcasestr(position + 1, word)) {
        bool begins = position == text || !isalnum((unsigned char)position[-1]);
        if (begins && !isalnum((unsigned char)position[length])) return true;
    }
    return false;
}

/* The part of `unknown`'s letters and digits in words that `alias` has, too. */
static double shared_words(const char *unknown, const char *alias)
{
    size_t all = 0, shared = 0, length;
    for (; *unknown != '\0'; unknown += length > 0 ? length : 1) {
        char word[BS_SUGGEST_LENGTH + 1];
        for (length = 0; isalnum((unsigned char)unknown[length]);) length++;
        snprintf(word, sizeof word, "%.*s", (int)length, unknown);
        all += length;
        shared += length > 0 && has_word(alias, word) ? length : 0;
    }
    return all > 0 ? (double)shared / (double)all : 0;
}

static double distance_of(const char *unknown, const char *alias)
{
    size_t unknown_length = strnlen(unknown, BS_SUGGEST_LENGTH), length = strnlen(alias, BS_SUGGEST_LENGTH);
    size_t longer = unknown_length > length ? unknown_length : length;
    if (unknown_length == 0 || length == 0) return 1;
    bool is_contained = strcasestr(alias, unknown) != NULL || has_word(unknown, alias);
    double distance = (double)count_edits(unknown, unknown_length, alias, length) / (double)longer;
    return (is_contained ? distance / 2 : distance) * (1 - SHARED_WORDS * shared_words(unknown, alias));
}

void bs_nearest_add(bs_nearest *nearest, const char *alias, const char *name)
{
    double distance = distance_of(nearest->unknown, alias);
    size_t free_place = 0; /* the place that the name leaves, or the first free one, or that of the farthest name */
    while (free_place < nearest->count && nearest->item[free_place].name != name) free_place++;
    if (free_place == BS_NEAREST_COUNT) free_place--;
    if (free_place < nearest->count && nearest->item[free_place].distance <= distance) return;
    if (free_place == nearest->count) nearest->count++;
    for (; free_place > 0 && nearest->item[free_place - 1].distance > distance; free_place--)
        nearest->item[free_place] = nearest->item[free_place - 1];
    nearest->item[free_place].name = name;
    nearest->item[free_place].distance = distance;
}

bs_nearest_text bs_nearest_end(const bs_nearest *nearest)
{
    bs_nearest_text out;
    bs_join list;
    bs_join_begin(&list, out.text, sizeof out.text);
    for (size_t i = 0; i < nearest->count; i++) bs_join_add(&list, "%s", nearest->item[i].name);
    return out;
}
