/* configurations.h — training configurations of a request. The members of an object are the names that
 * `mdot predict --json` prints: the column `json` of configuration.def, and "gpu". */
#ifndef SV_CONFIGURATIONS_H
#define SV_CONFIGURATIONS_H

#include "base/training/training_options.h"
#include "service/gpu_table.h"
#include "service/json.h"

typedef struct sv_configurations {
    mdot_configuration *item; /* gpu_spec points into `gpus`, or into the model */
    size_t count, capacity;
    mdot_gpu **gpus; /* described in the request; each has its name behind it */
    size_t gpu_count;
} sv_configurations;

/* Adds the configurations of one object. A value that is an array stands for each of its elements: the object then
 * gives all combinations, in which the last array varies fastest. Missing members are the job's, or the default. */
mdot_status sv_configurations_add(sv_configurations *io, struct json_object *object, const mdot_job_info *job,
                                  const sv_gpu_table *table, mdot_error *err);
void sv_configurations_free(sv_configurations *configurations);

/* Reads a value of an option, for rt_option_set. INVALID_ARGUMENT for an unknown name, with the nearest known one. */
mdot_status sv_read_option(const char *name, struct json_object *value, const rt_option **out_option,
                           double *out_number, mdot_error *err);

#endif
