/* job_submit_mdot.c — the plugin in slurmctld: job_submit/mdot. JobSubmitPlugins=mdot in slurm.conf loads it.
 *
 * It removes the job from a request (parcel.h) and writes the decision (decision.h) into the request: the partition and
 * the GPU type if several are possible, a time limit if none is given, a priority factor, and a comment. The plugin
 * accepts every request and never reads a user's file. Faults go to slurmctld's log.
 *
 * A thread watches everything slow: the site's files and, through Slurm's own requests, partitions, nodes and jobs.
 * job_submit runs under slurmctld's locks and only looks at the thread's results. The thread also corrects the priority
 * of a job after a later change to its request, and remembers how long jobs ran (user_records.h).
 *
 * The thread starts with the plugin, so the cluster is known before the first submission. It looks at jobs from the
 * first submission or modification on, because a backup controller loads the plugin, too, and has the same state
 * folder.
 *
 * The thread and its records live as long as slurmctld, also while the plugin is unloaded, because `scontrol
 * reconfigure` unloads a plugin under slurmctld's write locks (read_slurm_conf in Slurm 22.05). A thread request waits
 * for these locks, for up to MessageTimeout each. Therefore fini() may not wait for the thread. CMakeLists.txt links
 * the plugin with -z nodelete, which keeps the code in memory.
 *
 * Slurm's headers belong to one version, and slurmctld only loads plugins built with its own headers. */
#include "slurm/controller.h"
#include "slurm/request.h"

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>

#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Symbols in slurmctld and its library, absent from Debian's headers. */
extern slurm_conf_t slurm_conf;
extern char *default_part_name;
extern void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern int slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **memory);

/* Symbols called and read by slurmctld. */
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
/* StateSaveLocation at init(). It is a copy, because `scontrol reconfigure` frees slurm_conf and reads it again. */
static char *state_folder;

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

/* ---- The watching thread: the cluster ---------------------------------------------------------------------------- */

static double monotonic_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool is_everybody(const char *list) { return list == NULL || list[0] == '\0' || strcasecmp(list, "ALL") == 0; }

static void describe(const partition_info_t *source, const node_info_msg_t *nodes, sl_partition *target)
{
    const uint16_t closed = PART_FLAG_ROOT_ONLY | PART_FLAG_REQ_RESV | PART_FLAG_NO_ROOT | PART_FLAG_EXCLUSIVE_USER;
    snprintf(target->name, sizeof target->name, "%s", source->name);
    target->most_minutes = source->max_time == INFINITE || source->max_time == NO_VAL ? SL_UNLIMITED : source->max_time;
    bool has_default = source->default_time != NO_VAL && source->default_time != INFINITE;
    target->default_minutes = has_default ? source->default_time : target->most_minutes;
    target->least_nodes = source->min_nodes;
    target->most_nodes = source->max_nodes == NO_VAL ? UINT32_MAX : source->max_nodes;
    target->is_up = source->state_up == PARTITION_UP;
    target->is_open = is_everybody(source->allow_groups) && is_everybody(source->allow_accounts) &&
                      is_everybody(source->allow_qos) && is_everybody(source->deny_accounts) &&
                      is_everybody(source->deny_qos) && is_everybody(source->allow_alloc_nodes) &&
                      is_everybody(source->qos_char) && (source->flags & closed) == 0;
    for (const int32_t *range = source->node_inx; range != NULL && range[0] >= 0; range += 2)
        for (int32_t i = range[0]; i <= range[1] && (uint32_t)i < nodes->record_count; i++) {
            const node_info_t *node = &nodes->node_array[i];
            uint32_t base = node->node_state & NODE_STATE_BASE;
            bool is_usable = (base == NODE_STATE_IDLE || base == NODE_STATE_ALLOCATED || base == NODE_STATE_MIXED) &&
                             (node->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_NO_RESPOND)) == 0;
            if (is_usable) sl_partition_add_node(target, node->gres);
        }
}

/* Partitions that do not fit the snapshot are left out; requests for them stay unchanged. */
static void watch_cluster(void)
{
    enum { ENFORCES = 0x0002 | 0x0008 | 0x0010 }; /* limits, QOS, safe: missing from the public headers */
    partition_info_msg_t *partitions = NULL;
    node_info_msg_t *nodes = NULL;
    double begun_s = monotonic_s();
    if (slurm_load_partitions(0, &partitions, SHOW_ALL) != SLURM_SUCCESS) return;
    sl_cluster *cluster = NULL;
    if (slurm_load_node(0, &nodes, SHOW_ALL) == SLURM_SUCCESS) cluster = calloc(1, sizeof *cluster);
    if (cluster != NULL) {
        cluster->read_s = begun_s;
        cluster->enforces_limits = (slurm_conf.accounting_storage_enforce & ENFORCES) != 0;
        for (uint32_t i = 0; i < partitions->record_count; i++) {
            const partition_info_t *p = &partitions->partition_array[i];
            if (cluster->partition_count == SL_MAX_PARTITIONS || strlen(p->name) >= SL_PARTITION_BYTES) continue;
            describe(p, nodes, &cluster->partitions[cluster->partition_count++]);
        }
        sl_controller_set_cluster(controller, cluster);
    }
    if (nodes != NULL) slurm_free_node_info_msg(nodes);
    slurm_free_partition_info_msg(partitions);
}

/* ---- The watching thread: jobs ----------------------------------------------------------------------------------- */

/* Reads the number behind " KEY=" in the plugin's comment. */
static bool read_comment(const char *comment, const char *key, double *out)
{
    char pattern[32], *end;
    snprintf(pattern, sizeof pattern, " %s=", key);
    const char *cursor = comment != NULL && strncmp(comment, "mdot: ", 6) == 0 ? strstr(comment, pattern) : NULL;
    if (cursor == NULL) return false;
    *out = strtod(cursor + strlen(pattern), &end);
    return end != cursor + strlen(pattern) && isfinite(*out);
}

/* A job as it is requested now. */
static sl_submission submission_of(const slurm_job_info_t *job)
{
    return (sl_submission){.per_job = job->tres_per_job,
                           .per_node = job->tres_per_node,
                           .per_socket = job->tres_per_socket,
                           .per_task = job->tres_per_task,
                           .nodes = job->num_nodes == NO_VAL ? 0 : job->num_nodes,
                           .sockets = job->sockets_per_node == NO_VAL16 ? 0 : job->sockets_per_node,
                           .tasks = job->num_tasks == NO_VAL ? 0 : job->num_tasks,
                           .user = job->user_id,
                           .account = job->account,
                           .name = job->name};
}

static int64_t requested_gpus(const slurm_job_info_t *job)
{
    sl_submission s = submission_of(job);
    return sl_gpus_of(&s).gpus;
}

/* A waiting job keeps the priority only while it asks for no more GPUs and time than the priority was given for. */
static void correct_priority(const slurm_job_info_t *job)
{
    double gpus, binding, priority;
    if ((job->job_state & JOB_STATE_BASE) != JOB_PENDING || job->site_factor == NICE_OFFSET ||
        !read_comment(job->admin_comment, "priority", &priority) || !read_comment(job->admin_comment, "gpus", &gpus) ||
        !read_comment(job->admin_comment, "binding_min", &binding))
        return;
    if (requested_gpus(job) <= (int64_t)gpus && job->time_limit != INFINITE && job->time_limit <= binding) return;
    job_desc_msg_t update;
    slurm_init_job_desc_msg(&update);
    update.job_id = job->job_id;
    update.site_factor = NICE_OFFSET;
    int result = slurm_update_job(&update);
    slurm_info("%s: job %u asks for more than at its submission: its priority is %s", plugin_type, job->job_id,
               result == SLURM_SUCCESS ? "removed" : "unchanged, because the update failed");
}

/* Adds a job that ended from `from` on and before `until`. Slurm keeps jobs in memory for minutes after the end. A job
 * with a running epilog (JOB_COMPLETING) has the final state and time. */
static bool remember_outcome(const slurm_job_info_t *job, time_t start, time_t until)
{
    double total_s, gpus;
    uint32_t state = job->job_state & JOB_STATE_BASE;
    bool has_run = state > JOB_SUSPENDED && job->start_time != 0 && job->end_time > job->start_time;
    if (!has_run || job->end_time < start || job->end_time >= until ||
        !read_comment(job->admin_comment, "total_s", &total_s) || !read_comment(job->admin_comment, "gpus", &gpus))
        return false;
    double ran_s = difftime(job->end_time, job->start_time);
    if (state == JOB_TIMEOUT) ran_s *= 2; /* it was cut off, so the whole time is at least this much longer */
    sl_outcomes_add(sl_controller_outcomes(controller), job->user_id, total_s, ran_s, gpus, state == JOB_COMPLETE,
                    (double)job->end_time);
    return true;
}

/* Every base state behind JOB_SUSPENDED is in the table. */
static mdot_ended ended_by(uint32_t state)
{
    static const struct {
        uint32_t state;
        mdot_ended ended;
    } rows[] = {
#define ENDED(name, code, outcome, constant) {constant, MDOT_ENDED_##outcome},
#include "accounting/slurm_states.def"
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].state == state) return rows[i].ended;
    return MDOT_ENDED_CANCELLED;
}

/* Adds the duration of a job ended in the same period, with or without --mdot. */
static bool remember_duration(const slurm_job_info_t *job, time_t start, time_t until)
{
    uint32_t state = job->job_state & JOB_STATE_BASE;
    bool has_run = state > JOB_SUSPENDED && job->start_time != 0 && job->end_time > job->start_time;
    if (!has_run || job->end_time < start || job->end_time >= until) return false;
    sl_submission s = submission_of(job);
    sl_gpus gpus = sl_gpus_of(&s);
    if (!gpus.is_requested || gpus.is_mixed) return false;
    char user[SL_USER_BYTES];
    mdot_history_job ended = sl_durations_job(&s, &gpus, (double)job->submit_time, user);
    sl_durations_add(sl_controller_durations(controller), &ended, ended_by(state),
                     difftime(job->end_time, job->start_time), (double)job->end_time);
    return true;
}

/* A plugin file: mdot.conf's, or one in Slurm's state folder. */
static void get_path(void (*configured)(sl_controller *, char *), const char *name, char out_path[SL_PATH_BYTES])
{
    configured(controller, out_path);
    if (out_path[0] == '\0') snprintf(out_path, SL_PATH_BYTES, "%s/%s", state_folder, name);
}

static void get_outcomes_path(char out_path[SL_PATH_BYTES])
{
    get_path(sl_controller_outcomes_path, "mdot_outcomes", out_path);
}

static void get_history_path(char out_path[SL_PATH_BYTES])
{
    get_path(sl_controller_history_path, "mdot_history", out_path);
}

/* Writing the history takes some tenths of a second, and the history answers no submission meanwhile. Therefore it is
 * written once in five minutes, and when the plugin is unloaded. Ordinary slurmctld builds end without unloading
 * plugins, and lose the last minutes. */
static void save_history(bool is_new, bool is_unloaded)
{
    enum { PERIOD_S = 300 };
    static bool is_unsaved;
    static double saved_s;
    char path[SL_PATH_BYTES];
    mdot_error err = {0};
    is_unsaved |= is_new;
    if (!is_unsaved || (!is_unloaded && monotonic_s() - saved_s < PERIOD_S)) return;
    get_history_path(path);
    if (sl_durations_save(sl_controller_durations(controller), path, &err) != MDOT_OK)
        slurm_error("%s: %s", plugin_type, err.message);
    is_unsaved = false;
    saved_s = monotonic_s();
}

static void load_history(void)
{
    char path[SL_PATH_BYTES];
    mdot_error err = {0};
    get_history_path(path);
    mdot_status status = sl_durations_load(sl_controller_durations(controller), path, &err);
    if (status != MDOT_OK && status != MDOT_NOT_FOUND) slurm_error("%s: %s", plugin_type, err.message);
}

static void save_outcomes(void)
{
    char path[SL_PATH_BYTES];
    mdot_error err = {0};
    get_outcomes_path(path);
    if (sl_outcomes_save(sl_controller_outcomes(controller), path, &err) != MDOT_OK)
        slurm_error("%s: %s", plugin_type, err.message);
}

static void load_outcomes(void)
{
    char path[SL_PATH_BYTES];
    mdot_error err = {0};
    get_outcomes_path(path);
    mdot_status status = sl_outcomes_load(sl_controller_outcomes(controller), path, &err);
    if (status != MDOT_OK && status != MDOT_NOT_FOUND) slurm_error("%s: %s", plugin_type, err.message);
}

/* Each job counts once: in the round whose period contains the job's end. A period ends before the request to
 * slurmctld, so later jobs in the same second belong to the next one. */
static void watch_jobs(void)
{
    static time_t counted_until; /* 0 at first: earlier jobs were counted before slurmctld started */
    job_info_msg_t *jobs = NULL;
    bool is_new = false, has_durations = false;
    time_t until = time(NULL), start = counted_until != 0 ? counted_until : until;
    if (slurm_load_jobs(0, &jobs, SHOW_ALL | SHOW_DETAIL) != SLURM_SUCCESS) return;
    for (uint32_t i = 0; i < jobs->record_count; i++) {
        correct_priority(&jobs->job_array[i]);
        is_new |= remember_outcome(&jobs->job_array[i], start, until);
        has_durations |= remember_duration(&jobs->job_array[i], start, until);
    }
    counted_until = until;
    slurm_free_job_info_msg(jobs);
    if (is_new) save_outcomes();
    save_history(has_durations, false);
}

/* ---- The watching thread ----------------------------------------------------------------------------------------- */

typedef struct request_news {
    bool has_any;          /* this slurmctld is in use, and is no waiting backup controller */
    bool has_modification; /* since the thread looked last; the first request counts as one */
} request_news;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_started, is_paused;
    request_news requests;
} watcher = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* Waits for seconds, or less if a job was modified. Returns true at once if the plugin is unloaded. */
static bool wait_seconds(int seconds, request_news *out_requests)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    pthread_mutex_lock(&watcher.mutex);
    int late = 0;
    while (!watcher.is_paused && !watcher.requests.has_modification && late == 0)
        late = pthread_cond_timedwait(&watcher.changed, &watcher.mutex, &until);
    *out_requests = watcher.requests;
    watcher.requests.has_modification = false;
    bool is_paused = watcher.is_paused;
    pthread_mutex_unlock(&watcher.mutex);
    return is_paused;
}

static void wait_until_loaded(void)
{
    pthread_mutex_lock(&watcher.mutex);
    while (watcher.is_paused) pthread_cond_wait(&watcher.changed, &watcher.mutex);
    pthread_mutex_unlock(&watcher.mutex);
}

static void load_records(void)
{
    load_outcomes();
    load_history();
}

static void *watch_all(void *unused)
{
    enum { CLUSTER_S = 2, JOB_ROUNDS = 5 };
    (void)unused;
    request_news requests = {.has_any = false};
    bool was_in_use = false;
    load_records();
    for (int round = 0;; round++) {
        refresh();
        watch_cluster();
        if (requests.has_any && !was_in_use) load_records(); /* another controller may have written them meanwhile */
        was_in_use = requests.has_any;
        if (was_in_use && (requests.has_modification || round % JOB_ROUNDS == 0)) watch_jobs();
        if (wait_seconds(CLUSTER_S, &requests)) {
            save_history(false, true);
            wait_until_loaded();
        }
    }
    return NULL;
}

/* slurmctld loads plugins after forking into the background, which would end the thread. */
static void start_watcher(void)
{
    sigset_t entries, before;
    pthread_t thread;
    pthread_mutex_lock(&watcher.mutex);
    if (!watcher.is_started) {
        sigfillset(&entries); /* signals belong to slurmctld's own threads */
        pthread_sigmask(SIG_SETMASK, &entries, &before);
        watcher.is_started = pthread_create(&thread, NULL, watch_all, NULL) == 0;
        if (watcher.is_started) pthread_detach(thread);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_mutex_unlock(&watcher.mutex);
}

/* The thread looks at the jobs after a modification, without slurmctld's locks. */
static void note_request(bool is_modification)
{
    start_watcher(); /* again if it failed before */
    pthread_mutex_lock(&watcher.mutex);
    if (is_modification || !watcher.requests.has_any) {
        watcher.requests = (request_news){.has_any = true, .has_modification = true};
        pthread_cond_signal(&watcher.changed);
    }
    pthread_mutex_unlock(&watcher.mutex);
}

static void set_paused(bool is_paused)
{
    pthread_mutex_lock(&watcher.mutex);
    watcher.is_paused = is_paused;
    pthread_cond_signal(&watcher.changed);
    pthread_mutex_unlock(&watcher.mutex);
}

int init(void)
{
    set_paused(false);
    if (controller != NULL) return SLURM_SUCCESS; /* the plugin was unloaded before */
    char path[SL_PATH_BYTES];
    const char *conf = slurm_conf.slurm_conf == NULL ? "" : slurm_conf.slurm_conf, *slash = strrchr(conf, '/');
    int folder = slash == NULL ? 0 : (int)(slash - conf) + 1;
    snprintf(path, sizeof path, "%.*smdot.conf", folder, conf);
    state_folder = strdup(slurm_conf.state_save_location);
    controller = state_folder == NULL ? NULL : sl_controller_create(path);
    if (controller == NULL) {
        slurm_error("%s: memory ran out, or the path of slurm.conf is too long", plugin_type);
    } else {
        refresh();
        start_watcher();
    }
    return SLURM_SUCCESS;
}

/* The caller holds slurmctld's locks; the thread may wait for them. */
void fini(void)
{
    set_paused(true);
    if (watcher.is_started) return; /* Slurm calls no other function of the plugin during fini */
    sl_controller_destroy(controller);
    free(state_folder);
    controller = NULL;
    state_folder = NULL;
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
            set_type(&request->tres_per_socket, d->place.type);
            set_type(&request->tres_per_task, d->place.type);
        }
    }
    if (d->limit_minutes > 0 && request->time_limit == NO_VAL) request->time_limit = d->limit_minutes;
    if (d->has_priority && (request->site_factor == NO_VAL || request->site_factor == NICE_OFFSET))
        request->site_factor = NICE_OFFSET + d->priority;
    if (request->admin_comment == NULL) request->admin_comment = slurm_xstrdup(d->comment);
}

static uint32_t count_of(uint32_t number) { return number == NO_VAL || number == INFINITE ? 0 : number; }

/* Comments in the plugin's form come from nobody else, because the watching thread believes them. */
static void remove_forged_comment(job_desc_msg_t *request)
{
    if (request->admin_comment != NULL && strncmp(request->admin_comment, "mdot:", 5) == 0)
        slurm_xfree((void **)&request->admin_comment);
}

int job_submit(job_desc_msg_t *request, uint32_t user, char **out_message)
{
    (void)out_message;
    const char *const *environment = (const char *const *)request->spank_job_env;
    remove_forged_comment(request);
    if (controller == NULL) return SLURM_SUCCESS;
    note_request(false);
    if (!sl_parcel_is_in(environment, request->spank_job_env_size)) return SLURM_SUCCESS;
    double begun_s = monotonic_s();
    sl_submission submission = {.partitions = request->partition,
                                .default_partition = default_part_name,
                                .per_job = request->tres_per_job,
                                .per_node = request->tres_per_node,
                                .per_socket = request->tres_per_socket,
                                .per_task = request->tres_per_task,
                                .nodes = count_of(request->min_nodes),
                                .sockets = request->sockets_per_node == NO_VAL16 ? 0 : request->sockets_per_node,
                                .tasks = count_of(request->num_tasks),
                                .own_minutes = request->time_limit == NO_VAL ? 0
                                               : request->time_limit == 0 || request->time_limit == INFINITE
                                                   ? SL_UNLIMITED
                                                   : request->time_limit,
                                .least_minutes = count_of(request->time_min),
                                .has_deadline = request->deadline != 0 && request->deadline != (time_t)NO_VAL,
                                .has_reservation = request->reservation != NULL && request->reservation[0] != '\0',
                                .is_exclusive = request->shared == JOB_SHARED_NONE,
                                .user = user,
                                .account = request->account,
                                .name = request->name};
    sl_decision decision;
    mdot_error err = {0};
    if (sl_controller_decide(controller, environment, request->spank_job_env_size, &submission, &decision, &err) ==
        MDOT_OK) {
        write_decision(&decision, request);
        slurm_info("%s: user %u in %.0f us: partition=%s %s", plugin_type, user, 1e6 * (monotonic_s() - begun_s),
                   decision.place.partition, decision.comment);
    } else {
        slurm_info("%s: user %u in %.0f us: no prediction: %s", plugin_type, user, 1e6 * (monotonic_s() - begun_s),
                   err.message);
    }
    take_parcel_out(request);
    return SLURM_SUCCESS;
}

int job_modify(job_desc_msg_t *request, void *job, uint32_t user, char **out_message)
{
    (void)job, (void)user, (void)out_message;
    remove_forged_comment(request);
    if (controller == NULL) return SLURM_SUCCESS;
    note_request(true);
    return SLURM_SUCCESS;
}
