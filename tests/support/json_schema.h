/* json_schema.h — checks a JSON text against a JSON Schema. It supports the draft 2020-12 keywords in docs/. */
#pragma once

/* Fails the test with the place and the reason if the text violates the schema, if either text is not JSON, or if the
 * schema has an unsupported keyword. */
void json_assert_schema(const char *schema, const char *text);
/* The same, but returns false if the text violates the schema. */
int json_fits_schema(const char *schema, const char *text);
