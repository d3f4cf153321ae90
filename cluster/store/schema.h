/* schema.h — the tables of the store and their versions. */
#ifndef ST_SCHEMA_H
#define ST_SCHEMA_H

#include "store/database.h"

/* SQL that turns version i into version i + 1. The first step makes the tables of an empty file. */
typedef struct st_steps {
    const char *const *sql;
    int count; /* the newest version */
} st_steps;
extern const st_steps st_schema;

enum { ST_APPLICATION_ID = 0x6d646f74 }; /* "mdot", in the header of the file */

/* Reads the version of the file; 0 for an empty one. MALFORMED for a database of another program, INCOMPATIBLE for a
 * version that `steps` lacks. */
mdot_status st_schema_version(const mdot_store *store, const st_steps *steps, int *out_version, mdot_error *err);
/* Brings the file to the newest version of `steps` in one transaction. *out_from gets the version before. */
mdot_status st_migrate(const mdot_store *store, const st_steps *steps, int *out_from, mdot_error *err);

#endif
