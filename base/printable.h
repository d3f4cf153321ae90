/* printable.h — text from files and from other programs, fit for a terminal and for one line. */
#ifndef BS_PRINTABLE_H
#define BS_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid UTF-8 sequence at `text`, 0 where there is none (RFC 3629: no surrogates, nothing overlong). */
int bs_utf8_length(const char *text);

/* Length of the printable character at `text`, 0 where there is none: invalid UTF-8, control characters of both sets
 * (C0, DEL, C1), what ends a line or a paragraph, and what changes the direction of writing (Unicode UAX #9, table 4),
 * by which one name can look like another. */
int bs_printable_length(const char *text);

/* Whether all of it is printable. */
bool bs_is_printable(const char *text);

/* Length of the longest beginning that has at most so many bytes and ends with a whole character. */
size_t bs_cut_length(const char *text, size_t most_bytes);

/* In place: line ends and tabs become spaces, other unprintable characters one '?' each. */
void bs_make_printable(char *text);

/* The code point of a valid sequence. */
uint32_t bs_utf8_code(const char *text);

#endif
