/* decimal_point.h — a locale whose decimal point is another, made on the spot, so that none need be installed. */
#ifndef DECIMAL_POINT_H
#define DECIMAL_POINT_H

/* Sets it for this process' numbers, `point` in localedef's spelling: "<U002C>" is a comma. Skips the running test,
 * aloud, where localedef is missing. */
void decimal_point_begin(const char *point);
void decimal_point_end(void);

#endif
