/* job_argument.c — reads training jobs for the subcommands, with warnings on stderr. */
#include "base/training/job_argument.h"
#include "base/text.h"
#include "mdot/mdotjob.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_WARNINGS_SHOWN = 20 };

typedef struct warnings {
    const char *command;
    size_t shown;
} warnings;

static void show_warning(void *user, const char *message)
{
    warnings *w = user;
    if (w->shown < MAX_WARNINGS_SHOWN) cli_message(w->command, "warning: %s", message);
    if (w->shown == MAX_WARNINGS_SHOWN) cli_message(w->command, "further warnings are omitted");
    w->shown++;
}

static const char job_magic[] = "MDOTJOB", stream_name[] = "standard input";

static bool begins_as_job(const unsigned char *bytes, size_t size)
{
    return size >= sizeof job_magic && memcmp(bytes, job_magic, sizeof job_magic) == 0;
}

/* Reads stdin up to a size limit: the first bytes select the limit of mdot_job_load (a .job file) or of protobuf (a
 * model). The caller frees the bytes. */
static mdot_status read_stream(unsigned char **out_bytes, size_t *out_size, mdot_error *err)
{
    static const size_t most_of_job = (size_t)1 << 28, most_of_model = (size_t)1 << 31;
    unsigned char *bytes = NULL;
    size_t size = 0, capacity = 0, limit = most_of_model;
    mdot_status status = MDOT_OK;
    for (size_t read = 1; read > 0 && status == MDOT_OK; size += read) {
        unsigned char *larger = bs_grow_bytes(bytes, size, 1, &capacity);
        if (larger == NULL) {
            status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
            break;
        }
        bytes = larger;
        read = fread(bytes + size, 1, capacity - size, stdin);
        if (begins_as_job(bytes, size + read)) limit = most_of_job;
        if (size + read > limit)
            status = mdot_fail(err, MDOT_MALFORMED, "%s: larger than %zu MiB, the maximum size of a %s", stream_name,
                               limit >> 20, limit == most_of_job ? "job file" : "ONNX file");
    }
    if (status == MDOT_OK && ferror(stdin) != 0) status = mdot_fail(err, MDOT_IO, "cannot read standard input");
    if (status != MDOT_OK) {
        free(bytes);
        return status;
    }
    *out_bytes = bytes;
    *out_size = size;
    return MDOT_OK;
}

/* Reads a job from stdin, which can be read only once. */
static mdot_status read_job_stream(const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    BS_TRY(read_stream(&bytes, &size, err));
    mdot_status status = size > 0 ? mdot_job_read_bytes(bytes, size, stream_name, options, out_job, err)
                                  : mdot_fail(err, MDOT_MALFORMED, "%s: the file is empty", stream_name);
    free(bytes);
    return status;
}

enum { MAX_LORA_TARGETS = 32 };

/* Splits "r=16,targets=q_proj,v_proj" in place. */
static mdot_status read_lora(char *text, mdot_job_adapters *adapters, const char **targets, mdot_error *err)
{
    static const char usage[] = "--lora takes r=N, for example r=16, and targets=NAME,NAME…";
    char *rest = NULL, *end = NULL;
    bool is_target = false;
    for (char *part = strtok_r(text, ",+", &rest); part != NULL; part = strtok_r(NULL, ",+", &rest)) {
        if (strncmp(part, "targets=", strlen("targets=")) == 0) {
            part += strlen("targets=");
            is_target = true;
        } else if (strncmp(part, "r=", strlen("r=")) == 0) {
            long rank = strtol(part + strlen("r="), &end, 10);
            if (*end != '\0' || rank < 1 || rank > 1 << 16)
                return BS_INVALID(err, "%s; the rank must be from 1 to 65536, not \"%.40s\"", usage,
                                  part + strlen("r="));
            adapters->rank = (uint32_t)rank;
            is_target = false;
            continue;
        }
        if (!is_target || *part == '\0' || strchr(part, '=') != NULL)
            return BS_INVALID(err, "%s, not \"%.40s\"", usage, part);
        if (adapters->target_count == MAX_LORA_TARGETS)
            return BS_INVALID(err, "--lora takes at most %d targets", MAX_LORA_TARGETS);
        targets[adapters->target_count++] = part;
    }
    if (adapters->target_count == 0) targets[adapters->target_count++] = "all-linear";
    return adapters->rank > 0 ? MDOT_OK : BS_INVALID(err, "%s; r is missing", usage);
}

mdot_status cli_read_job(const char *command, const char *path, const cli_reading *r, mdot_job **out_job,
                         mdot_error *err)
{
    const char *targets[MAX_LORA_TARGETS];
    mdot_job_adapters adapters = {.struct_size = sizeof adapters, .targets = targets};
    char *lora = r->lora != NULL ? strdup(r->lora) : NULL;
    mdot_status status = MDOT_OK;
    if (r->lora != NULL)
        status = lora != NULL ? read_lora(lora, &adapters, targets, err) : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const mdot_job_freezing freezing = {sizeof freezing, r->frozen.item, r->frozen.count, r->trained.item,
                                        r->trained.count};
    warnings shown = {.command = command};
    const mdot_job_options options = {.struct_size = sizeof options,
                                      .dims = r->dims.item,
                                      .dim_count = r->dims.count,
                                      .warning = r->quiet ? NULL : show_warning,
                                      .user = &shown,
                                      .keep_names = r->keep_names ? 1 : 0,
                                      .output = r->output,
                                      .freezing = freezing.frozen_count + freezing.trained_count > 0 ? &freezing : NULL,
                                      .adapters = lora != NULL ? &adapters : NULL};
    if (status == MDOT_OK && strcmp(path, "-") == 0)
        status = read_job_stream(&options, out_job, err);
    else if (status == MDOT_OK)
        status = mdot_job_read(path, &options, out_job, err);
    free(lora);
    return status;
}

bool cli_has_work(const mdot_job *job, const mdot_job_info *info)
{
    double bytes = 0;
    for (size_t i = 0; i < info->operator_count && !(bytes > 0); i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        const mdot_load *sample = &op.per_sample[MDOT_PHASE_FORWARD], *step = &op.per_step[MDOT_PHASE_FORWARD];
        bytes = sample->bytes_read + sample->bytes_written + step->bytes_read + step->bytes_written;
    }
    return bytes > 0;
}

double cli_tokens_per_sample(const mdot_job *job, const mdot_job_info *info)
{
    bool looks_up = false;
    int64_t queries = 0;
    for (size_t i = 0; i < info->operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        bool picks = (op.traits.traits & MDOT_TRAIT_PICKS) != 0;
        looks_up = looks_up || (picks && op.parameters + op.frozen_parameters > 0);
        if (queries == 0) queries = op.setting[MDOT_SETTING_QUERIES];
    }
    return looks_up ? (double)queries : 0;
}

int64_t cli_job_batch(const mdot_job_info *info) { return info->batch > 0 ? info->batch : 1; }
