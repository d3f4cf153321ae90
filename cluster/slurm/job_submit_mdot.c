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
#include "slurm/plugin.h"
#include "slurm/request.h"

#include <slurm/slurm_errno.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* Symbols called and read by slurmctld. */
int init(void);
void fini(void);
int job_submit(job_desc_msg_t *request, uint32_t user, char **out_message);
int job_modify(job_desc_msg_t *request, void *job, uint32_t user, char **out_message);

/* StateSaveLocation at init(). It is a copy, because `scontrol reconfigure` frees slurm_conf and reads it again. */
static char *state_folder;

/* Reads mdot.conf and the predictor if they have changed. After a fault the controller keeps running, and submissions
 * go on without predictions. */
static void refresh(void)
{
    mdot_error err = {0};
    bool is_new;
    if (sl_controller_refresh(sl_plugin_controller, &is_new, &err) != MDOT_OK)
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

static void watch_cluster(void)
{
    sl_cluster *cluster = sl_plugin_read_cluster(monotonic_s());
    if (cluster != NULL) sl_controller_set_cluster(sl_plugin_controller, cluster);
}

/* ---- The watching thread: jobs ----------------------------------------------------------------------------------- */

/* Adds a job that ended from `from` on and before `until`. Slurm keeps jobs in memory for minutes after the end. A job
 * with a running epilog (JOB_COMPLETING) has the final state and time. */
static bool remember_outcome(const slurm_job_info_t *job, time_t start, time_t until)
{
    double total_s, gpus;
    uint32_t state = job->job_state & JOB_STATE_BASE;
    bool has_run = state > JOB_SUSPENDED && job->start_time != 0 && job->end_time > job->start_time;
    if (!has_run || job->end_time < start || job->end_time >= until ||
        !sl_plugin_read_comment(job->admin_comment, "total_s", &total_s) ||
        !sl_plugin_read_comment(job->admin_comment, "gpus", &gpus))
        return false;
    double ran_s = difftime(job->end_time, job->start_time);
    if (state == JOB_TIMEOUT) ran_s *= 2; /* it was cut off, so the whole time is at least this much longer */
    sl_outcomes_add(sl_controller_outcomes(sl_plugin_controller), job->user_id, total_s, ran_s, gpus,
                    state == JOB_COMPLETE, (double)job->end_time);
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
    sl_submission s = sl_plugin_submission(job);
    sl_gpus gpus = sl_gpus_of(&s);
    if (!gpus.is_requested || gpus.is_mixed) return false;
    char user[SL_USER_BYTES];
    mdot_history_job ended = sl_durations_job(&s, &gpus, (double)job->submit_time, user);
    sl_durations_add(sl_controller_durations(sl_plugin_controller), &ended, ended_by(state),
                     difftime(job->end_time, job->start_time), (double)job->end_time);
    return true;
}

/* A plugin file: mdot.conf's, or one in Slurm's state folder. */
static void get_path(void (*configured)(sl_controller *, char *), const char *name, char out_path[SL_PATH_BYTES])
{
    configured(sl_plugin_controller, out_path);
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
    if (sl_durations_save(sl_controller_durations(sl_plugin_controller), path, &err) != MDOT_OK)
        slurm_error("%s: %s", plugin_type, err.message);
    is_unsaved = false;
    saved_s = monotonic_s();
}

static void load_history(void)
{
    char path[SL_PATH_BYTES];
    mdot_error err = {0};
    get_history_path(path);
    mdot_status status = sl_durations_load(sl_controller_durations(sl_plugin_controller), path, &err);
    if (status != MDOT_OK && status != MDOT_NOT_FOUND) slurm_error("%s: %s", plugin_type, err.message);
}

static void save_outcomes(void)
{
    char path[SL_PATH_BYTES];
    mdot_error err = {0};
    get_outcomes_path(path);
    if (sl_outcomes_save(sl_controller_outcomes(sl_plugin_controller), path, &err) != MDOT_OK)
        slurm_error("%s: %s", plugin_type, err.message);
}

static void load_outcomes(void)
{
    char path[SL_PATH_BYTES];
    mdot_error err = {0};
    get_outcomes_path(path);
    mdot_status status = sl_outcomes_load(sl_controller_outcomes(sl_plugin_controller), path, &err);
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
    sl_plugin_watch_waiting(jobs);
    for (uint32_t i = 0; i < jobs->record_count; i++) {
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
    bool has_prediction;   /* a job got one since the thread looked last */
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
    watcher.requests.has_modification = watcher.requests.has_prediction = false;
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
        if (was_in_use && (requests.has_modification || requests.has_prediction || round % JOB_ROUNDS == 0))
            watch_jobs();
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

static void note_prediction(void)
{
    pthread_mutex_lock(&watcher.mutex);
    watcher.requests.has_prediction = true;
    pthread_mutex_unlock(&watcher.mutex);
}

/* The thread looks at the jobs after a modification, without slurmctld's locks. */
static void note_request(bool is_modification)
{
    start_watcher(); /* again if it failed before */
    pthread_mutex_lock(&watcher.mutex);
    if (is_modification || !watcher.requests.has_any) {
        watcher.requests.has_any = watcher.requests.has_modification = true;
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
    if (sl_plugin_controller != NULL) return SLURM_SUCCESS; /* the plugin was unloaded before */
    char path[SL_PATH_BYTES];
    const char *conf = slurm_conf.slurm_conf == NULL ? "" : slurm_conf.slurm_conf, *slash = strrchr(conf, '/');
    int folder = slash == NULL ? 0 : (int)(slash - conf) + 1;
    snprintf(path, sizeof path, "%.*smdot.conf", folder, conf);
    state_folder = strdup(slurm_conf.state_save_location);
    sl_plugin_controller = state_folder == NULL ? NULL : sl_controller_create(path);
    if (sl_plugin_controller == NULL) {
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
    sl_controller_destroy(sl_plugin_controller);
    free(state_folder);
    sl_plugin_controller = NULL;
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

static bool is_text(const char *text) { return text != NULL && text[0] != '\0'; }

/* What a node must have for the request. */
static void add_node_needs(const job_desc_msg_t *request, sl_submission *s)
{
    uint32_t nodes = s->nodes > 0 ? s->nodes : 1, cpus = count_of(request->min_cpus);
    s->cpus_per_node = (cpus + nodes - 1) / nodes;
    if (request->pn_min_memory != NO_VAL64)
        s->memory_mib = (request->pn_min_memory & MEM_PER_CPU) != 0
                            ? (request->pn_min_memory & ~MEM_PER_CPU) * (s->cpus_per_node > 0 ? s->cpus_per_node : 1)
                            : request->pn_min_memory;
    s->is_constrained = is_text(request->features) || is_text(request->req_nodes) || is_text(request->exc_nodes) ||
                        is_text(request->licenses) || is_text(request->mem_per_tres) ||
                        (request->pn_min_tmp_disk != NO_VAL && request->pn_min_tmp_disk > 0);
}

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
    if (sl_plugin_controller == NULL) return SLURM_SUCCESS;
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
                                .cpus_per_task = request->cpus_per_task == NO_VAL16 ? 0 : request->cpus_per_task,
                                .tasks_per_gpu = request->ntasks_per_tres == NO_VAL16 ? 0 : request->ntasks_per_tres,
                                .is_heterogeneous = request->het_job_offset != NO_VAL,
                                .own_minutes = request->time_limit == NO_VAL ? 0
                                               : request->time_limit == 0 || request->time_limit == INFINITE
                                                   ? SL_UNLIMITED
                                                   : request->time_limit,
                                .least_minutes = count_of(request->time_min),
                                .now_s = (double)time(NULL),
                                .deadline_s = request->deadline == (time_t)NO_VAL ? 0 : (double)request->deadline,
                                .has_reservation = request->reservation != NULL && request->reservation[0] != '\0',
                                .is_exclusive = request->shared == JOB_SHARED_NONE,
                                .user = user,
                                .account = request->account,
                                .qos = request->qos,
                                .name = request->name};
    add_node_needs(request, &submission);
    sl_decision decision;
    mdot_error err = {0};
    if (sl_controller_decide(sl_plugin_controller, environment, request->spank_job_env_size, &submission, &decision,
                             &err) == MDOT_OK) {
        write_decision(&decision, request);
        note_prediction();
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
    if (sl_plugin_controller == NULL) return SLURM_SUCCESS;
    sl_plugin_keep_limit_acceptable(request);
    note_request(true);
    return SLURM_SUCCESS;
}
