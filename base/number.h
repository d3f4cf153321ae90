/* number.h — numbers as text with "." as the decimal point, independent of the program's locale. Text for people only,
 * such as messages, may follow the locale. */
#ifndef BS_NUMBER_H
#define BS_NUMBER_H

#include <stddef.h>

enum { BS_NUMBER_BYTES = 40 }; /* buffer size for bs_number_print */

/* Like strtod, including hexadecimal numbers, "inf" and "nan". `*out_end` is `text` if there is no number. */
double bs_number_read(const char *text, const char **out_end);
/* Like bs_number_read, rounded once: to the f32 nearest to the written number. */
float bs_number_read_f32(const char *text, const char **out_end);
/* Like "%.*g", with at most 17 digits; returns `out`. */
const char *bs_number_print(double value, int digits, char out[BS_NUMBER_BYTES]);

#endif
