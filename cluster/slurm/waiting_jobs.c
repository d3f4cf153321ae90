#include "base/text.h"
#include "slurm/plugin.h"

#include <slurm/slurm_errno.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool sl_plugin_read_comment(const char *comment, const char *key, double *out)
{
    char pattern[32];
    const char *end;
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *cursor = comment != NULL && strncmp(comment, "mdot: ", 6) == 0 ? strstr(comment, pattern) : NULL;
    if (cursor == NULL) return false;
    *out = bs_number_read(cursor + strlen(pattern), &end);
    return end != cursor + strlen(pattern) && isfinite(*out);
}

sl_submission sl_plugin_submission(const slurm_job_info_t *job)
{
    return (sl_submission){.per_job = job->tres_per_job,
                           .per_node = job->tres_per_node,
                           .per_socket = job->tres_per_socket,
                           .per_task = job->tres_per_task,
                           .nodes = job->num_nodes == NO_VAL ? 0 : job->num_nodes,
                           .sockets = job->sockets_per_node == NO_VAL16 ? 0 : job->sockets_per_node,
                           .tasks = job->num_tasks == NO_VAL ? 0 : job->num_tasks,
                           .cpus_per_task = job->cpus_per_task == NO_VAL16 ? 0 : job->cpus_per_task,
                           .partitions = job->partition,
                           .own_minutes = job->time_limit == INFINITE ? SL_UNLIMITED
                                          : job->time_limit == NO_VAL ? 0
                                                                      : job->time_limit,
                           .least_minutes = job->time_min == NO_VAL ? 0 : job->time_min,
                           .now_s = (double)time(NULL),
                           .deadline_s = (double)job->deadline,
                           .has_reservation = job->resv_name != NULL && job->resv_name[0] != '\0',
                           .user = job->user_id,
                           .account = job->account,
                           .qos = job->qos,
                           .name = job->name};
}

/* Updates a waiting job as SlurmUser. */
static void update_job(job_desc_msg_t *update, const char *reason)
{
    int result = slurm_update_job(update);
    slurm_info("%s: job %u %s%s", plugin_type, update->job_id, reason,
               result == SLURM_SUCCESS ? "" : ", but the update failed");
}

/* A waiting job keeps the priority only while it asks for no more GPUs and time than the priority was given for. */
static void correct_priority(const slurm_job_info_t *job, const sl_submission *s)
{
    double gpus, binding, priority;
    if (job->site_factor == NICE_OFFSET || !sl_plugin_read_comment(job->admin_comment, "priority", &priority) ||
        !sl_plugin_read_comment(job->admin_comment, "gpus", &gpus) ||
        !sl_plugin_read_comment(job->admin_comment, "binding_min", &binding))
        return;
    uint32_t minutes = sl_controller_binding(sl_plugin_controller, s);
    if (sl_gpus_of(s).gpus <= (int64_t)gpus && minutes != SL_UNLIMITED && minutes <= binding) return;
    job_desc_msg_t update;
    slurm_init_job_desc_msg(&update);
    update.job_id = job->job_id;
    update.site_factor = NICE_OFFSET;
    update_job(&update, "asks for more than at its submission: its priority is removed");
}

/* A waiting job with the plugin's limit. Such a limit must not stand in the way of a change that Slurm would accept
 * without it, and a reservation made later must not make the job wait. */
typedef struct limited_job {
    uint32_t id, array_id, minutes, least_minutes, user;
    double deadline_s;
    bool has_reservation;
    char partitions[1024], account[SL_ACCOUNT_BYTES], qos[SL_ACCOUNT_BYTES];
} limited_job;

static struct {
    pthread_mutex_t mutex;
    limited_job *jobs;
    size_t count, capacity;
} limited = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static const char *text_of(const char *text) { return text == NULL ? "" : text; }

/* Adds the job to `jobs` if it has the plugin's limit. */
static void note_limit(const slurm_job_info_t *job, const sl_submission *s)
{
    double set_minutes;
    if (!sl_plugin_read_comment(job->admin_comment, "limit_min", &set_minutes) || job->time_limit > set_minutes ||
        job->partition == NULL || strlen(job->partition) >= sizeof limited.jobs->partitions)
        return;
    if (limited.count == limited.capacity) {
        size_t capacity = limited.capacity == 0 ? 64 : 2 * limited.capacity;
        limited_job *more = realloc(limited.jobs, capacity * sizeof *more);
        if (more == NULL) return;
        limited.jobs = more;
        limited.capacity = capacity;
    }
    limited_job *target = &limited.jobs[limited.count++];
    *target = (limited_job){job->job_id,
                            job->array_job_id,
                            job->time_limit,
                            s->least_minutes,
                            s->user,
                            s->deadline_s,
                            s->has_reservation,
                            "",
                            "",
                            ""};
    strcpy(target->partitions, job->partition);
    snprintf(target->account, sizeof target->account, "%s", text_of(job->account));
    snprintf(target->qos, sizeof target->qos, "%s", text_of(job->qos));
}

static void correct_limit(const slurm_job_info_t *job, const sl_submission *s)
{
    double set_minutes;
    if (!sl_plugin_read_comment(job->admin_comment, "limit_min", &set_minutes) || job->time_limit > set_minutes) return;
    uint32_t kept = sl_controller_limit_kept(sl_plugin_controller, s, job->time_limit);
    if (kept >= job->time_limit) return;
    job_desc_msg_t update;
    slurm_init_job_desc_msg(&update);
    update.job_id = job->job_id;
    update.time_limit = kept;
    if (kept < s->least_minutes) update.time_min = kept;
    update_job(&update, "would wait or be refused for its limit, which is shortened");
}

void sl_plugin_watch_waiting(const job_info_msg_t *jobs)
{
    pthread_mutex_lock(&limited.mutex);
    limited.count = 0;
    for (uint32_t i = 0; i < jobs->record_count; i++) {
        const slurm_job_info_t *job = &jobs->job_array[i];
        if ((job->job_state & JOB_STATE_BASE) != JOB_PENDING) continue;
        sl_submission s = sl_plugin_submission(job);
        note_limit(job, &s);
    }
    pthread_mutex_unlock(&limited.mutex);
    for (uint32_t i = 0; i < jobs->record_count; i++) {
        const slurm_job_info_t *job = &jobs->job_array[i];
        if ((job->job_state & JOB_STATE_BASE) != JOB_PENDING) continue;
        sl_submission s = sl_plugin_submission(job);
        correct_priority(job, &s);
        correct_limit(job, &s);
    }
}

void sl_plugin_keep_limit_acceptable(job_desc_msg_t *request)
{
    bool has_change = request->partition != NULL || request->account != NULL || request->qos != NULL ||
                      request->reservation != NULL || (request->deadline != 0 && request->deadline != (time_t)NO_VAL);
    if (!has_change || request->time_limit != NO_VAL) return;
    uint32_t id = request->job_id;
    if (id == NO_VAL && request->job_id_str != NULL) id = (uint32_t)strtoul(request->job_id_str, NULL, 10);
    pthread_mutex_lock(&limited.mutex);
    for (size_t i = 0; i < limited.count; i++) {
        const limited_job *job = &limited.jobs[i];
        if (job->id != id && (job->array_id == 0 || job->array_id != id)) continue;
        bool has_deadline = request->deadline != 0 && request->deadline != (time_t)NO_VAL;
        sl_submission s = {.partitions = request->partition != NULL ? request->partition : job->partitions,
                           .least_minutes = request->time_min != NO_VAL ? request->time_min : job->least_minutes,
                           .now_s = (double)time(NULL),
                           .deadline_s = has_deadline ? (double)request->deadline : job->deadline_s,
                           .has_reservation = job->has_reservation || request->reservation != NULL,
                           .user = job->user,
                           .account = request->account != NULL ? request->account : job->account,
                           .qos = request->qos != NULL ? request->qos : job->qos};
        uint32_t kept = sl_controller_limit_kept(sl_plugin_controller, &s, job->minutes);
        if (kept < job->minutes) request->time_limit = kept;
        if (kept < job->minutes && kept < s.least_minutes) request->time_min = kept;
        break;
    }
    pthread_mutex_unlock(&limited.mutex);
}
