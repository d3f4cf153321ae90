/* json_schema.h — whether a JSON text is as a JSON Schema says: the keywords that docs/ uses, of draft 2020-12. */
#ifndef TEST_JSON_SCHEMA_H
#define TEST_JSON_SCHEMA_H

/* Fails the test with the place and the reason where it is not, where either is no JSON, and where the schema has a
 * keyword that is not known here. */
void json_assert_schema(const char *schema, const char *text);
/* The same without failing for the text: false where it is not as the schema says. */
int json_fits_schema(const char *schema, const char *text);

#endif
