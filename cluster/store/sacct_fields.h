/* sacct_fields.h — values of sacct's fields: states, durations, times, resources. */
#ifndef ST_SACCT_FIELDS_H
#define ST_SACCT_FIELDS_H

#include "mdot/mdot_store.h"

/* Each reader returns false for a text that is malformed. An empty text is unknown. */

/* "COMPLETED", "CANCELLED by 1000", "CA" or "RUNNING+" (a state that sacct cut). */
bool st_read_slurm_state(const char *text, mdot_outcome *out);
/* "[DAYS-]HH:MM:SS", "MM:SS", with a fraction; seconds. -1: unknown. */
bool st_read_slurm_duration(const char *text, int64_t *out_seconds);
/* The same, and UNLIMITED (-1), Partition_Limit and INVALID (0). "60", a number alone, counts minutes. */
bool st_read_slurm_limit(const char *text, int64_t *out_seconds);
/* "2026-11-24T10:00:00", "2026-11-24", or seconds since 1970. 0: unknown. */
bool st_read_slurm_time(const char *text, int64_t *out_seconds);
/* GPUs in "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=32G". *out_type points to the type's name within the text. */
bool st_read_slurm_gpus(const char *text, int64_t *out_count, const char **out_type, size_t *out_type_length);
/* "12" or "12K"; 0: unknown. */
bool st_read_slurm_count(const char *text, int64_t *out_count);
/* "1:0", the exit code and the signal, which counts as 128 + signal. -1: unknown. */
bool st_read_slurm_exit(const char *text, int64_t *out_code);

#endif
