/* config.h — jobs from a model's config.json, and ready jobs by name. Private to frontend/config.
 *
 * A description of a family (weights/jobs/FAMILY.json.gz, made by lab/mdot_lab/ready_jobs/families.py) has a table of
 * formulas in the family's sizes. The operators and the moments of recorded memory refer to it. So a config.json, which
 * has values of these sizes, gives a job without PyTorch. */
#ifndef FE_CONFIG_CONFIG_H
#define FE_CONFIG_CONFIG_H

#include "mdot/mdotjob.h"

#include <json-c/json.h>

/* json.c: parses JSON, at most 32 levels deep, whose root is an object. The caller puts the object. `name` is for
 * messages. */
mdot_status fe_parse_json(const void *bytes, size_t size_bytes, const char *name, json_object **out_root,
                          mdot_error *err);
/* Reads a file, which gzip may have compressed. The caller frees the bytes. */
mdot_status fe_read_file(const char *path, unsigned char **bytes, size_t *size_bytes, mdot_error *err);
/* Reads and parses a file. */
mdot_status fe_read_json(const char *path, json_object **out_root, mdot_error *err);
/* The member of an object; NULL if it is absent or null, or if `object` is no object. */
json_object *fe_member(json_object *object, const char *key);
/* The text of a member; NULL if it is absent or no text. */
const char *fe_text(json_object *object, const char *key);

enum { FE_MAX_SIZES = 40 };

typedef struct fe_sizes {
    size_t count;
    struct {
        const char *name; /* borrowed */
        double value;
    } item[FE_MAX_SIZES];
} fe_sizes;

bool fe_add_size(fe_sizes *sizes, const char *name, double value); /* false: too many */
/* Computes a formula, for example "2*L*d+4*m0-d/h". False for an unknown size or another syntax. */
bool fe_compute(const char *formula, const fe_sizes *sizes, double *out_value);

/* family.c: the description of a family, and a configuration's sizes. */
typedef struct fe_family {
    const char *path;         /* of the config.json, for messages */
    json_object *description; /* owned */
    json_object *variant;     /* in the description */
    fe_sizes sizes;
    bool is_half;   /* 16-bit parameters */
    double longest; /* tokens that the configuration allows; 0: unknown */
} fe_family;

/* Finds the family of a configuration, the variant and the sizes. The caller puts the description, also after a
 * failure. UNSUPPORTED names the field, and what to do instead; MALFORMED names a field with an impossible value. */
mdot_status fe_find_family(const char *folder, const char *path, json_object *config, const mdot_job_options *options,
                           fe_family *out_family, mdot_error *err);

/* Warns of a length beyond the network's table of positions. */
void fe_warn_of_positions(const fe_family *family, const mdot_job *job, const mdot_job_options *options);

/* adapters.c: low-rank adapters (LoRA). */
enum { FE_MODULE_BYTES = 160, FE_MAX_TARGETS = 32, FE_MAX_RANK = 1 << 16 };

/* Names of modules: whole paths, or the ends of paths. */
typedef struct fe_targets {
    const char *const *names;
    size_t count;
} fe_targets;

/* The frozen network with its adapters. Other names are the operators' own. */
typedef struct fe_adapted {
    mdot_job_operator *operators;
    uint32_t *inputs;
    char (*names)[FE_MODULE_BYTES];
    size_t count, input_count, name_count;
} fe_adapted;

/* Marks the linear layers with one of the names. False if there is none. */
bool fe_mark_adapted(const mdot_job_operator *operators, size_t count, const fe_targets *targets, bool *out_marks);
/* Puts an adapter behind each marked operator, and freezes the others. Adapters of a network in 16 bits run in fp32, as
 * peft's do. The caller frees the result, also after a failure. */
mdot_status fe_adapt(const mdot_job_operator *operators, size_t count, const bool *marks, uint32_t rank, bool is_half,
                     fe_adapted *out, mdot_error *err);
void fe_free_adapted(fe_adapted *adapted);

/* build_job.c: a family's job. */
mdot_status fe_build_job(const fe_family *family, const mdot_job_options *options, mdot_job **out_job, mdot_error *err);

/* library.c: the folder with the descriptions and ready jobs, malloc'ed: $MDOT_JOBS, or share/mdot/jobs beside a folder
 * above this library or program. NULL if there is none. */
char *fe_library_folder(void);
/* Reads a ready job: a configuration, or the path of a `.job` file, which the caller frees. `out_length` is the default
 * length. NOT_FOUND lists the nearest names. */
mdot_status fe_find_ready_job(const char *folder, const char *name, json_object **out_config, char **out_path,
                              int64_t *out_length, mdot_error *err);

#endif
