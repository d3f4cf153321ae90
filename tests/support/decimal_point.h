/* decimal_point.h — a locale with another decimal point, compiled at run time, so installed locales are unnecessary. */
#pragma once

/* Sets the locale for the numbers of this process. `point` is in localedef's notation: for example, "<U002C>" is a
 * comma. Skips the running test with a message if localedef is missing. */
void decimal_point_begin(const char *point);
void decimal_point_end(void);
