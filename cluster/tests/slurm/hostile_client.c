/* hostile_client.c — submits a job with a SPANK environment that mdot's plugin never makes. Any user may write such a
 * client:
 *
 *     hostile_client KIND PARTITION [FILE.job]
 *
 * It prints the job's number. cluster.sh runs it against slurmctld with the plugin, which must accept every such job.
 */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MANY = 16 << 20 };

/* Returns NAME followed by `count` times `c`. */
static char *repeat(const char *name, char c, size_t count)
{
    size_t length = strlen(name);
    char *text = malloc(length + count + 1);
    if (text == NULL) exit(1);
    memcpy(text, name, length);
    memset(text + length, c, count);
    text[length + count] = '\0';
    return text;
}

/* Makes the variables of a kind. Returns 0 for an unknown kind. */
static uint32_t make(const char *kind, char *out[4])
{
    char settings[] = "MDOT_SETTINGS=batch=8";
    out[0] = strdup(settings);
    if (strcmp(kind, "noise") == 0) return out[1] = strdup("MDOT_JOB_1=this is %s%n no base64"), 2;
    if (strcmp(kind, "large") == 0) return out[1] = repeat("MDOT_JOB_1=", 'A', MANY), 2;
    if (strcmp(kind, "endless") == 0) return out[1] = repeat("MDOT_SETTINGS=", ',', MANY), 2;
    if (strcmp(kind, "gap") == 0)
        return out[1] = strdup("MDOT_JOB_1=QUJD"), out[2] = strdup("SPANK_MDOT_JOB_2=QUJD"), 3;
    if (strcmp(kind, "bytes") == 0) return out[1] = repeat("MDOT_JOB_1=", 'A', 4096), 2;
    if (strcmp(kind, "nothing") == 0) return out[1] = strdup("MDOT_JOB_1="), 2;
    if (strcmp(kind, "blank") == 0) return out[1] = strdup(""), out[2] = strdup("MDOT_"), 3;
    if (strcmp(kind, "long") == 0)
        return free(out[0]), out[0] = repeat("MDOT_SETTINGS=batch=", '9', MANY), out[1] = strdup("MDOT_JOB_1=QUJD"), 2;
    if (strcmp(kind, "forged") == 0) return 1;
    if (strcmp(kind, "problem") == 0) return out[1] = strdup("MDOT_PROBLEM=x\nerror: \033[2J%s%n"), 2;
    return 0;
}

int main(int argc, char **argv)
{
    static char script[] = "#!/bin/sh\nsleep 1\n", folder[] = "/tmp", name[] = "hostile", empty[] = "PATH=/bin",
                gpus[] = "gres:gpu:1", output[] = "/dev/null";
    char *variables[4] = {NULL}, *environment[] = {empty};
    job_desc_msg_t request;
    submit_response_msg_t *response = NULL;
    if (argc != 3) return 2;
    slurm_init(NULL);
    slurm_init_job_desc_msg(&request);
    request.spank_job_env_size = make(argv[1], variables);
    if (request.spank_job_env_size == 0) return 2;
    request.spank_job_env = variables;
    request.environment = environment;
    request.env_size = 1;
    request.script = script;
    request.work_dir = folder;
    request.name = name;
    request.std_out = output;
    request.std_err = output;
    request.tres_per_node = gpus;
    request.partition = argv[2];
    request.user_id = getuid();
    request.group_id = getgid();
    request.priority = 0; /* the job is held */
    static char comment[] = "mdot: gpu=T4 gpus=1 total_s=1e9 priority=1 binding_min=1";
    if (strcmp(argv[1], "forged") == 0) request.admin_comment = comment;
    request.min_nodes = 1;
    if (slurm_submit_batch_job(&request, &response) != SLURM_SUCCESS) {
        slurm_perror("hostile_client");
        return 1;
    }
    printf("%u\n", response->job_id);
    return 0;
}
