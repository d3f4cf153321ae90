/* job_submit_mdot.c — the plugin in slurmctld: job_submit/mdot. JobSubmitPlugins=mdot in slurm.conf loads it.
 *
 * It removes the job that came with a request (parcel.h) and writes the decision (decision.h) into the request. That
 * is the partition and the type of GPU if several are possible, a time limit if none is given, a priority factor, and
 * a comment. The plugin accepts every request and never reads a user's file. Faults go to slurmctld's log.
 *
 * Slurm's headers belong to one version, and slurmctld only loads plugins that were built with its own headers.
 */
#include "integrations/slurm/controller.h"
#include "integrations/slurm/parcel.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Symbols of slurmctld and its library that are missing from the headers that Debian installs. */
extern slurm_conf_t slurm_conf;
extern char *default_part_name;
extern void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern int slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **memory);

/* Symbols that slurmctld calls and reads. */
extern const char plugin_name[], plugin_type[];
extern const uint32_t plugin_version;
int init(void);
void fini(void);
int job_submit(job_desc_msg_t *request, uint32_t user, char **out_message);
int job_modify(job_desc_msg_t *request, void *job, uint32_t user, char **out_message);

const char plugin_name[] = "mdot: time limits, priorities and places by predicted training times";
const char plugin_type[] = "job_submit/mdot";
const uint32_t plugin_version = SLURM_VERSION_NUMBER;

static sl_controller *controller;

/* Reads mdot.conf and the predictor if they have changed. After a fault the controller keeps running, and submissions
 * go on without predictions. */
static void refresh(void)
{
    mdot_error err = {0};
    bool is_new;
    if (sl_controller_refresh(controller, &is_new, &err) != MDOT_OK)
        slurm_error("%s: %s", plugin_type, err.message);
    else if (is_new)
        slurm_info("%s: mdot.conf and its predictor are read", plugin_type);
}

int init(void)
{
    char path[SL_PATH_BYTES];
    const char *slash = slurm_conf.slurm_conf == NULL ? NULL : strrchr(slurm_conf.slurm_conf, '/');
    int folder = slash == NULL ? 0 : (int)(slash - slurm_conf.slurm_conf) + 1;
    snprintf(path, sizeof path, "%.*smdot.conf", folder, slash == NULL ? "" : slurm_conf.slurm_conf);
    controller = sl_controller_create(path);
    if (controller == NULL)
        slurm_error("%s: no memory, or the path of slurm.conf is too long", plugin_type);
    else
        refresh();
    return SLURM_SUCCESS;
}

void fini(void)
{
    sl_controller_destroy(controller);
    controller = NULL;
}

static void replace(char **text, const char *by)
{
    slurm_xfree((void **)text);
    *text = slurm_xstrdup(by);
}

/* Slurm keeps this environment as long as the job, and passes it to prolog and epilog, so the parcel is removed. */
static void take_parcel_out(job_desc_msg_t *request)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < request->spank_job_env_size; i++) {
        char *variable = request->spank_job_env[i];
        if (variable != NULL && sl_parcel_owns(variable))
            slurm_xfree((void **)&request->spank_job_env[i]);
        else
            request->spank_job_env[kept++] = variable;
    }
    request->spank_job_env_size = kept;
}

/* If a partition has several types, adds the chosen type's name to the requests for GPUs. */
static void set_type(char **resources, const char *type)
{
    char *text = *resources == NULL ? NULL : sl_gres_with_type(*resources, type);
    if (text != NULL) replace(resources, text);
    free(text);
}

static void write_decision(const sl_decision *d, job_desc_msg_t *request)
{
    if (d->is_chosen) {
        replace(&request->partition, d->place.partition);
        if (d->place.type[0] != '\0') {
            set_type(&request->tres_per_job, d->place.type);
            set_type(&request->tres_per_node, d->place.type);
            set_type(&request->tres_per_task, d->place.type);
        }
    }
    if (d->limit_minutes > 0 && request->time_limit == NO_VAL) request->time_limit = d->limit_minutes;
    if (d->has_priority && (request->site_factor == NO_VAL || request->site_factor == NICE_OFFSET))
        request->site_factor = NICE_OFFSET + d->priority;
    if (request->admin_comment == NULL) request->admin_comment = slurm_xstrdup(d->comment);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

int job_submit(job_desc_msg_t *request, uint32_t user, char **out_message)
{
    (void)out_message;
    const char *const *environment = (const char *const *)request->spank_job_env;
    if (controller == NULL || !sl_parcel_is_in(environment, request->spank_job_env_size)) return SLURM_SUCCESS;
    refresh();
    double begun_us = now_us();
    sl_submission submission = {.partitions = request->partition,
                                .default_partition = default_part_name,
                                .per_job = request->tres_per_job,
                                .per_node = request->tres_per_node,
                                .per_task = request->tres_per_task,
                                .nodes = request->min_nodes == NO_VAL ? 0 : request->min_nodes,
                                .tasks = request->num_tasks == NO_VAL ? 0 : request->num_tasks};
    sl_decision decision;
    mdot_error err = {0};
    if (sl_controller_decide(controller, environment, request->spank_job_env_size, &submission, &decision, &err) ==
        MDOT_OK) {
        write_decision(&decision, request);
        slurm_info("%s: user %u in %.0f us: partition=%s %s", plugin_type, user, now_us() - begun_us,
                   decision.place.partition, decision.comment);
    } else {
        slurm_info("%s: user %u in %.0f us: no prediction: %s", plugin_type, user, now_us() - begun_us, err.message);
    }
    take_parcel_out(request);
    return SLURM_SUCCESS;
}

int job_modify(job_desc_msg_t *request, void *job, uint32_t user, char **out_message)
{
    (void)request, (void)job, (void)user, (void)out_message;
    return SLURM_SUCCESS;
}
