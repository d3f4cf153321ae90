/* tables.h — texts from the tables in C: one function per text writes it to `out`. */
#ifndef TABLES_H
#define TABLES_H

#include <stdio.h>

/* docs/schema.json: operator attributes, operator types, GPUs, training options and predictor inputs, for Python and
 * other programs. */
void tables_write_schema(FILE *out);
/* docs/reference/configuration.md: the reference page of the training options. */
void tables_write_reference(FILE *out);
/* Prediction members in docs/predict.schema.json that are training options, and names of the required ones. */
void tables_write_json_members(FILE *out);
void tables_write_json_required(FILE *out);
/* bindings/python/mdot/options.py: the options and GPU columns as Python reads them. */
void tables_write_python(FILE *out);
/* bindings/python/mdot/option_words.py: words of other programs for options and choices. */
void tables_write_python_words(FILE *out);

/* Returns the page `old` with today's figures from weights/results/ in the marks; NULL, with a message, if one is
 * missing. The caller frees it. */
char *tables_replace_figures(const char *tree, const char *page, const char *old);

/* Returns the content of the file; NULL if it cannot be read. The caller frees it. */
char *tables_read_text(const char *path);

/* Writes a JSON string, which is also a Python string, with its quotes. */
void tables_write_string(FILE *out, const char *text);

#endif
