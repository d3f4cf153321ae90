/* spank_mdot.c — the option --mdot=FILE.job[,KEY=VALUE…] of sbatch, salloc and srun. A line of plugstack.conf loads
 * it:
 *
 *     optional spank_mdot.so [max_bytes=N]
 *
 * It runs in the user's command, with the user's rights. It reads the file and puts the job into the request
 * (parcel.h). It reports faults to the user and to the controller's log; the submission continues.
 */
#include "slurm/request.h"

#include <slurm/spank.h>

#include <stdlib.h>
#include <string.h>

SPANK_PLUGIN(mdot, 1)

/* Text behind --mdot=. The command line is read after the lines of the script, and replaces them. NULL: the option is
 * absent. */
static char *text;

static int keep_text(int value, const char *argument, int is_remote)
{
    (void)value;
    if (is_remote != 0) return ESPANK_SUCCESS; /* on the node, where the prediction has long been made */
    free(text);
    text = strdup(argument == NULL ? "" : argument);
    return ESPANK_SUCCESS;
}

int slurm_spank_init(spank_t spank, int argument_count, char *arguments[])
{
    static char name[] = "mdot", form[] = "FILE.job[,KEY=VALUE...]",
                usage[] = "the training job whose time mdot predicts, with its configuration: batch=, precision=, "
                          "optimizer=, steps= or epochs= and dataset=, and others";
    static struct spank_option option = {name, form, usage, 1, 0, keep_text};
    (void)argument_count, (void)arguments;
    return spank_option_register(spank, &option);
}

static size_t most_bytes(int argument_count, char *arguments[])
{
    for (int i = 0; i < argument_count; i++) {
        if (strncmp(arguments[i], "max_bytes=", 10) != 0) continue;
        unsigned long bytes = strtoul(arguments[i] + 10, NULL, 10);
        if (bytes >= 1 && bytes <= SL_MAX_JOB_BYTES) return bytes;
        slurm_error("mdot: plugstack.conf: max_bytes must be between 1 and %d", SL_MAX_JOB_BYTES);
    }
    return 128 * 1024;
}

static mdot_status set(spank_t spank, const char *name, const char *value, mdot_error *err)
{
    spank_err_t code = spank_job_control_setenv(spank, name, value, 1);
    return code == ESPANK_SUCCESS ? MDOT_OK : mdot_fail(err, MDOT_IO, "%s: %s", name, spank_strerror(code));
}

static mdot_status send_job(spank_t spank, const unsigned char *job, size_t bytes, mdot_error *err)
{
    char name[SL_PIECE_NAME_BYTES], *piece;
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && sl_parcel_piece(job, bytes, i, name, &piece); i++) {
        status = piece == NULL ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : set(spank, name, piece, err);
        free(piece);
    }
    return status;
}

static mdot_status send(spank_t spank, size_t maximum, mdot_error *err)
{
    sl_request request;
    unsigned char *job = NULL;
    size_t bytes = 0;
    mdot_status status = sl_request_parse(text, &request, err);
    if (status == MDOT_OK && request.file[0] == '\0')
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "the file is missing: FILE.job must come first");
    if (status == MDOT_OK) status = sl_user_file_read(request.file, maximum, &job, &bytes, err);
    if (status == MDOT_OK) status = set(spank, SL_SETTINGS_NAME, sl_request_settings(text), err);
    if (status == MDOT_OK) status = send_job(spank, job, bytes, err);
    free(job);
    return status;
}

int slurm_spank_init_post_opt(spank_t spank, int argument_count, char *arguments[])
{
    mdot_error err = {0};
    spank_context_t where = spank_context();
    if (text == NULL || (where != S_CTX_LOCAL && where != S_CTX_ALLOCATOR)) return ESPANK_SUCCESS;
    if (send(spank, most_bytes(argument_count, arguments), &err) != MDOT_OK) {
        slurm_error("--mdot: %s; submitted without a prediction", err.message);
        spank_job_control_setenv(spank, SL_PROBLEM_NAME, err.message, 1);
    }
    return ESPANK_SUCCESS;
}

int slurm_spank_exit(spank_t spank, int argument_count, char *arguments[])
{
    (void)spank, (void)argument_count, (void)arguments;
    free(text);
    text = NULL;
    return ESPANK_SUCCESS;
}
