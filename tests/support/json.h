/* json.h — checks commands' --json output, and reads values from it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Whether the text is one JSON value (RFC 8259), surrounded only by white space. */
bool json_is_valid(const char *text);

/* Reads the numbers after each `"key":` in order, at most `most`, and returns their count. Fails the test if a value
 * is not a number. */
size_t json_numbers(const char *text, const char *key, double *out_values, size_t most);
