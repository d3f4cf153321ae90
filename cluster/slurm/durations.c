#include "slurm/user_records.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum { MOST_KEYS = 16384 }; /* about 5 MB */

struct sl_durations {
    pthread_mutex_t mutex;
    mdot_history *history;
};

/* Users choose job names. Random seeds keep them from choosing other users' keys. */
static mdot_history_options make_options(void)
{
    mdot_history_options options = {.struct_size = sizeof options, .most_keys = MOST_KEYS};
    if (getrandom(options.hash_seed, sizeof options.hash_seed, GRND_NONBLOCK) == sizeof options.hash_seed)
        return options;
    /* The system started a moment ago and has no random bytes yet: time and addresses are hard to guess, too. */
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    options.hash_seed[0] = (uint64_t)now.tv_sec * 1000000007 + (uint64_t)now.tv_nsec;
    options.hash_seed[1] = (uint64_t)(uintptr_t)&options ^ (uint64_t)(uintptr_t)&getrandom;
    return options;
}

sl_durations *sl_durations_create(void)
{
    mdot_history_options options = make_options();
    sl_durations *d = calloc(1, sizeof *d);
    if (d == NULL || mdot_history_create(&options, &d->history, NULL) != MDOT_OK) {
        free(d);
        return NULL;
    }
    pthread_mutex_init(&d->mutex, NULL);
    return d;
}

void sl_durations_destroy(sl_durations *d)
{
    if (d == NULL) return;
    pthread_mutex_destroy(&d->mutex);
    mdot_history_destroy(d->history);
    free(d);
}

mdot_history_job sl_durations_job(const sl_submission *submission, const sl_gpus *gpus, double submit_s,
                                  char out_user[SL_USER_BYTES])
{
    enum { MOST_GPUS = 1 << 20 };
    snprintf(out_user, SL_USER_BYTES, "%" PRIu32, submission->user);
    return (mdot_history_job){.struct_size = sizeof(mdot_history_job),
                              .user = out_user,
                              .group = submission->account,
                              .name = submission->name,
                              .gpu_type = gpus->type,
                              .gpus = gpus->gpus >= 0 && gpus->gpus <= MOST_GPUS ? (int)gpus->gpus : 0,
                              .submit_s = submit_s};
}

void sl_durations_add(sl_durations *d, const mdot_history_job *job, mdot_ended outcome, double duration_s, double end_s)
{
    pthread_mutex_lock(&d->mutex);
    mdot_history_add(d->history, job, outcome, duration_s, end_s, NULL);
    pthread_mutex_unlock(&d->mutex);
}

bool sl_durations_ask(sl_durations *d, const mdot_history_job *job, mdot_history_estimate *out_estimate)
{
    mdot_history_estimate estimate = MDOT_INIT(mdot_history_estimate);
    if (pthread_mutex_trylock(&d->mutex) != 0) return false;
    bool is_known = mdot_history_ask(d->history, job, &estimate, NULL) == MDOT_OK &&
                    estimate.key >= MDOT_HISTORY_KEY_USER && estimate.weight > 0;
    pthread_mutex_unlock(&d->mutex);
    if (is_known) *out_estimate = estimate;
    return is_known;
}

mdot_status sl_durations_load(sl_durations *d, const char *path, mdot_error *err)
{
    mdot_history_options options = {.struct_size = sizeof options, .most_keys = MOST_KEYS};
    mdot_history *read = NULL;
    mdot_status status = mdot_history_load(path, &options, &read, err);
    if (status != MDOT_OK) return status;
    pthread_mutex_lock(&d->mutex);
    mdot_history *before = d->history;
    d->history = read;
    pthread_mutex_unlock(&d->mutex);
    mdot_history_destroy(before);
    return MDOT_OK;
}

mdot_status sl_durations_save(sl_durations *d, const char *path, mdot_error *err)
{
    pthread_mutex_lock(&d->mutex);
    mdot_status status = mdot_history_save(d->history, path, err);
    pthread_mutex_unlock(&d->mutex);
    return status;
}
