/* settings.h — the settings of a measured row: lines "name=value", sorted by name. */
#ifndef ST_SETTINGS_H
#define ST_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct st_setting {
    const char *name, *value; /* not terminated */
    size_t name_length, value_length;
} st_setting;

/* Reads the setting at *io_at and moves on to the next; false at the end, and for a line that has no "=". */
bool st_next_setting(const char **io_at, st_setting *out);

/* Returns the settings sorted, without empty values; the caller frees them. `settings` may be NULL. On failure it
 * returns NULL, and *out_fault is the reason; NULL if memory ran out. */
char *st_sort_settings(const char *settings, const char **out_fault);

/* Returns a copy without the settings for reading job files; the caller frees it. NULL if memory ran out. */
char *st_strip_reading(const char *settings);

/* Whether a setting describes how to read a job file ("dim", "frozen", "trained"). A `.job` file contains the
 * effect. */
bool st_is_reading_setting(const char *name, size_t length);
/* Whether a table column is a row field rather than a setting. */
bool st_is_field(const char *name, size_t length);

#endif
