/* number.h — numbers as text whose decimal point is ".", whatever the locale of the program that a library serves. What
 * only people read, as messages, may have the locale's. */
#ifndef BS_NUMBER_H
#define BS_NUMBER_H

#include <stddef.h>

enum { BS_NUMBER_BYTES = 40 }; /* room for what bs_number_print writes */

/* As strtod: hexadecimal numbers, "inf" and "nan" as well. `*out_end` is `text` where there is no number. */
double bs_number_read(const char *text, const char **out_end);
/* The same, rounded once: to the f32 next to what is written. */
float bs_number_read_f32(const char *text, const char **out_end);
/* As "%.*g", of at most 17 digits; returns `out`. */
const char *bs_number_print(double value, int digits, char out[BS_NUMBER_BYTES]);

#endif
