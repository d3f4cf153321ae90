/* json.h — reading what commands print with --json: is it JSON at all, and what does it hold. */
#ifndef TEST_JSON_H
#define TEST_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* One JSON value (RFC 8259) with nothing but white space around it. */
bool json_is_valid(const char *text);

/* The numbers behind each `"key":`, in order, at most `most`; returns how many there are. Fails the test where one is
 * no number. */
size_t json_numbers(const char *text, const char *key, double *out_values, size_t most);

#endif
