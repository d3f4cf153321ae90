/* gpu_table.h — GPUs: mdot's table, and the site's own. */
#ifndef SV_GPU_TABLE_H
#define SV_GPU_TABLE_H

#include "mdot/mdot.h"

#include <json-c/json.h>

enum { SV_GPU_NUMBERS = 13, SV_GPU_NAME_BYTES = 128 };

/* A number of mdot_gpu with its name in JSON. */
typedef struct sv_gpu_number {
    const char *name;
    size_t offset;
} sv_gpu_number;
extern const sv_gpu_number sv_gpu_numbers[SV_GPU_NUMBERS];

typedef struct sv_gpu_table {
    mdot_gpu *item; /* the site's first, then mdot's */
    size_t count, site_count;
    char **site_names;
} sv_gpu_table;

/* Loads the site's GPUs from a file in the form of `mdot gpus --json`; NULL: there is none. */
mdot_status sv_gpu_table_load(sv_gpu_table *table, const char *path, mdot_error *err);
void sv_gpu_table_free(sv_gpu_table *table);

/* Finds a GPU of the site or of mdot's table, in any spelling that mdot_gpu_find reads. */
mdot_status sv_gpu_table_find(const sv_gpu_table *table, const char *name, mdot_gpu *out_gpu, mdot_error *err);
/* The same for an exact name; NULL for any other. The result lives as long as the table. */
const mdot_gpu *sv_gpu_table_known(const sv_gpu_table *table, const char *name);

/* Reads a GPU: a name, or an object with the members of GET /v1/gpus and "like". */
mdot_status sv_read_gpu(struct json_object *value, const sv_gpu_table *table, mdot_gpu *out_gpu, mdot_error *err);

#endif
