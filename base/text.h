/* text.h — text: numbers, characters that are safe to print, lists of names, and text in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* ---- number.c: numbers with "." as the decimal point, independent of the program's locale ------------------------ */

/* Text for people only, such as messages, may follow the locale. */
enum { BS_NUMBER_BYTES = 40 }; /* buffer size for bs_number_print */

/* Like strtod, including "inf" and "nan", but numbers are decimal: of "0x1", the 0 is read. `*out_end` is `text` if
 * there is no number. */
double bs_number_read(const char *text, const char **out_end);
/* Like bs_number_read, rounded once: to the f32 nearest to the written number. */
float bs_number_read_f32(const char *text, const char **out_end);
/* Like "%.*g", with at most 17 digits; returns `out`. */
const char *bs_number_print(double value, int digits, char out[BS_NUMBER_BYTES]);

/* ---- printable.c: text from files and from other programs, made safe for a terminal and for one line ------------- */

/* Length of the valid UTF-8 sequence at `text`; 0 if it is invalid (RFC 3629: surrogates and overlong forms are
 * invalid). */
int bs_utf8_length(const char *text);

/* Length of the printable character at `text`; 0 otherwise. Unprintable are invalid UTF-8, control characters in both
 * sets (C0, DEL, C1), line and paragraph separators, and characters that change the direction of writing (Unicode UAX
 * #9, table 4), because they can make one name look like another. */
int bs_printable_length(const char *text);

/* Returns whether all characters are printable. */
bool bs_is_printable(const char *text);

/* Length of the longest prefix of at most so many bytes that ends with a whole character. */
size_t bs_cut_length(const char *text, size_t max_bytes);

/* Edits in place: line ends and tabs become spaces, and each other unprintable character becomes a '?'. */
void bs_make_printable(char *text);

/* Code point of a valid sequence. */
uint32_t bs_utf8_code(const char *text);

static inline bool bs_starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}
static inline bool bs_ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* ---- join.c: names joined into a buffer of fixed size, with a clean cut: "a, b, c … and 12 more" ----------------- */

typedef struct bs_join {
    char *text;            /* always a complete string */
    const char *separator; /* ", "; another may be set before the first item */
    size_t size, used, count;
    size_t safe_used, safe_count; /* state at the last point where the count of omitted items still fits */
    size_t omitted;
} bs_join;

/* Starts an empty list in a buffer of at least BS_JOIN_MIN_BYTES bytes. */
enum { BS_JOIN_MIN_BYTES = 40 };
void bs_join_begin(bs_join *list, char *buffer, size_t size);

/* Appends an item, after the separator unless it is the first. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void
bs_join_add(bs_join *list, const char *format, ...);

/* Counts an item as omitted without showing it. All later items are omitted, too. */
void bs_join_omit(bs_join *list);

/* ---- memstream.c: growing memory, and text that is written into it through a FILE -------------------------------- */

/* Makes room for `more` bytes behind `used` in a heap block, whose size doubles. Returns the block, or NULL if memory
 * runs out: then `bytes` is unchanged. NULL with capacity 0 is an empty block. */
void *bs_grow_bytes(void *bytes, size_t used, size_t more, size_t *io_capacity);

/* open_memstream is similar, but if memory runs out, glibc's version drops the rest, and both ferror and fclose report
 * success. */
typedef struct bs_memstream {
    FILE *file; /* for writing, with all of stdio */
    char *bytes;
    size_t size_bytes, capacity_bytes;
} bs_memstream;

/* Returns false, with `file` NULL, if memory ran out. Keep the struct at its address until it is closed. */
bool bs_memstream_open(bs_memstream *s);

/* Closes the stream. Returns the whole text with a NUL behind it, which the caller frees; *out_size_bytes is the length
 * unless the pointer is NULL. Returns NULL if memory ran out at opening or later. */
char *bs_memstream_close(bs_memstream *s, size_t *out_size_bytes);
