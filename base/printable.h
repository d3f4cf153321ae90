/* printable.h — text from files and from other programs, made safe for a terminal and for one line. */
#ifndef BS_PRINTABLE_H
#define BS_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
