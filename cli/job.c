/* job.c — training jobs for the subcommands: read from ONNX or from a .job file, with warnings on stderr. */
#include "cli/job.h"
#include "base/file.h"
#include "mdot/mdotjob.h"

#include <string.h>

enum { MAX_WARNINGS_SHOWN = 20 };

const char *const cli_optimizer_names[CLI_OPTIMIZER_COUNT + 1] = {
    [MDOT_OPTIMIZER_SGD] = "sgd", [MDOT_OPTIMIZER_ADAM] = "adam", [MDOT_OPTIMIZER_ADAMW] = "adamw", NULL};

typedef struct warnings {
    const char *command;
    size_t shown;
} warnings;

static void show_warning(void *user, const char *message)
{
    warnings *w = user;
    if (w->shown < MAX_WARNINGS_SHOWN) fprintf(stderr, "mdot %s: warning: %s\n", w->command, message);
    if (w->shown == MAX_WARNINGS_SHOWN) fprintf(stderr, "mdot %s: more warnings are not shown\n", w->command);
    w->shown++;
}

static bool is_job_file(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL && strcmp(dot, ".job") == 0;
}

mdot_status cli_read_job(const char *command, const char *path, const cli_dims *dims, bool quiet, bool keep_names,
                         const char *output, mdot_job **out_job, mdot_error *err)
{
    warnings shown = {.command = command};
    mdot_job_options options = {.struct_size = sizeof options,
                                .dims = dims->item,
                                .dim_count = dims->count,
                                .warning = quiet ? NULL : show_warning,
                                .user = &shown,
                                .keep_names = keep_names ? 1 : 0,
                                .output = output};
    if (!is_job_file(path)) return mdot_job_read(path, &options, out_job, err);
    if (dims->count > 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "%s: a .job file has no dimension '%s' to bind; that was done when it was made", path,
                         dims->item[0].name);
    mdot_status status = output != NULL ? bs_check_replaces(output, path, err) : MDOT_OK;
    return status == MDOT_OK ? mdot_job_load(path, out_job, err) : status;
}

int64_t cli_job_batch(const mdot_job_info *info)
{
    return info->batch > 0 ? info->batch : 1;
}
