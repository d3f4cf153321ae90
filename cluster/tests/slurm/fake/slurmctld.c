/* slurmctld.c — see slurmctld.h. The program is linked with --wrap for the clocks and for waits with a limit. */
#include "tests/slurm/fake/slurmctld.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

slurm_conf_t slurm_conf;
char *default_part_name;
fake_slurmctld fake;
fake_calls calls;

static _Thread_local bool is_watcher, has_round;
static _Thread_local time_t read_s;                       /* the wall clock, as the thread read it last */
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of the next two; never held while another mutex is taken */
static pthread_mutex_t *waiting_mutex;
static pthread_cond_t *waiting_condition;
static bool is_late; /* the thread's time to wait is over */
static sem_t finished_rounds;

__attribute__((constructor)) static void set_up(void) { sem_init(&finished_rounds, 0, 0); }

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    if (clock != CLOCK_MONOTONIC) {
        int result = __real_clock_gettime(clock, out);
        if (clock == CLOCK_REALTIME) read_s = out->tv_sec;
        return result;
    }
    *out = (struct timespec){(time_t)fake.monotonic_s, 0};
    return 0;
}

time_t __wrap_time(time_t *out);
time_t __wrap_time(time_t *out)
{
    if (out != NULL) *out = fake.now_s;
    return fake.now_s;
}

/* The plugin's thread waits until the test continues; other threads wait until their answer is there. */
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    if (!is_watcher) return pthread_cond_wait(condition, mutex);
    pthread_mutex_lock(&guard);
    waiting_mutex = mutex;
    waiting_condition = condition;
    pthread_mutex_unlock(&guard);
    if (has_round) {
        calls.waited_s = (double)(until->tv_sec - read_s);
        has_round = false;
        sem_post(&finished_rounds);
    }
    if (!is_late) pthread_cond_wait(condition, mutex);
    bool was_late = is_late;
    is_late = false;
    return was_late ? ETIMEDOUT : 0;
}

void fake_wait_for_round(void)
{
    while (sem_wait(&finished_rounds) != 0) {
    }
}

void fake_modify(void)
{
    job_desc_msg_t request;
    slurm_init_job_desc_msg(&request);
    job_modify(&request, NULL, 0, NULL);
    fake_wait_for_round();
}

void fake_pass_time(void)
{
    pthread_mutex_lock(&guard);
    pthread_mutex_t *mutex = waiting_mutex;
    pthread_cond_t *condition = waiting_condition;
    pthread_mutex_unlock(&guard);
    pthread_mutex_lock(mutex);
    is_late = true;
    pthread_cond_signal(condition);
    pthread_mutex_unlock(mutex);
    fake_wait_for_round();
}

void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
int slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *slurm_xstrdup(const char *text);
void slurm_xfree(void **memory);

__attribute__((format(printf, 1, 0))) static void write_log(const char *format, va_list arguments)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    size_t used = strlen(calls.log);
    vsnprintf(calls.log + used, sizeof calls.log - used, format, arguments);
    used = strlen(calls.log);
    snprintf(calls.log + used, sizeof calls.log - used, "\n");
    pthread_mutex_unlock(&mutex);
}

void slurm_info(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_log(format, arguments);
    va_end(arguments);
}

int slurm_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_log(format, arguments);
    va_end(arguments);
    return 0;
}

char *slurm_xstrdup(const char *text) { return strdup(text); }

void slurm_xfree(void **memory)
{
    free(*memory);
    *memory = NULL;
}

void slurm_init_job_desc_msg(job_desc_msg_t *request)
{
    memset(request, 0, sizeof *request);
    request->site_factor = request->job_id = request->time_limit = request->time_min = NO_VAL;
}

int slurm_update_job(job_desc_msg_t *request)
{
    calls.updates++;
    calls.update = *request;
    return fake.update_result;
}

/* Messages are allocated, so that a leak and a use after the end are seen. Arrays end with their last record. */
static void *copy(const void *records, size_t bytes)
{
    void *entries = malloc(bytes + 1);
    if (entries == NULL) abort();
    memcpy(entries, records, bytes);
    calls.unfreed++;
    return entries;
}

int slurm_load_partitions(time_t since, partition_info_msg_t **out, uint16_t flags)
{
    sigset_t blocked;
    is_watcher = has_round = true;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    calls.blocks_signals = sigismember(&blocked, SIGTERM) == 1 && sigismember(&blocked, SIGHUP) == 1;
    if (fake.has_no_partitions || since != 0 || (flags & SHOW_ALL) == 0) return SLURM_ERROR;
    partition_info_msg_t message = {.record_count = fake.partition_count};
    message.partition_array = copy(fake.partitions, fake.partition_count * sizeof fake.partitions[0]);
    *out = copy(&message, sizeof message);
    calls.partitions++;
    return SLURM_SUCCESS;
}

int slurm_load_node(time_t since, node_info_msg_t **out, uint16_t flags)
{
    if (fake.has_no_nodes || since != 0 || (flags & SHOW_ALL) == 0) return SLURM_ERROR;
    node_info_msg_t message = {.record_count = fake.node_count};
    message.node_array = copy(fake.nodes, fake.node_count * sizeof fake.nodes[0]);
    *out = copy(&message, sizeof message);
    calls.nodes++;
    return SLURM_SUCCESS;
}

int slurm_load_jobs(time_t since, job_info_msg_t **out, uint16_t flags)
{
    if (fake.has_no_jobs || since != 0 || (flags & SHOW_ALL) == 0) return SLURM_ERROR;
    job_info_msg_t message = {.record_count = fake.job_count};
    message.job_array = copy(fake.jobs, fake.job_count * sizeof fake.jobs[0]);
    *out = copy(&message, sizeof message);
    calls.jobs++;
    return SLURM_SUCCESS;
}

int slurm_load_reservations(time_t since, reserve_info_msg_t **out)
{
    if (fake.has_no_reservations || since != 0) return SLURM_ERROR;
    reserve_info_msg_t message = {.record_count = fake.reservation_count};
    message.reservation_array = copy(fake.reservations, fake.reservation_count * sizeof fake.reservations[0]);
    *out = copy(&message, sizeof message);
    return SLURM_SUCCESS;
}

/* Slurm's lists, of records in an array. */
struct xlist {
    char *records;
    size_t count, size;
};
struct listIterator {
    struct xlist *list;
    size_t next;
};

int slurm_list_count(struct xlist *list) { return (int)list->count; }

struct listIterator *slurm_list_iterator_create(struct xlist *list)
{
    struct listIterator *iterator = malloc(sizeof *iterator);
    if (iterator == NULL) abort();
    *iterator = (struct listIterator){list, 0};
    return iterator;
}

void *slurm_list_next(struct listIterator *i)
{
    return i->next == i->list->count ? NULL : i->list->records + i->next++ * i->list->size;
}

void slurm_list_iterator_destroy(struct listIterator *iterator) { free(iterator); }

static struct xlist *list_of(const void *records, size_t count, size_t size)
{
    struct xlist list = {copy(records, count * size), count, size};
    return copy(&list, sizeof list);
}

int slurm_load_assoc_mgr_info(assoc_mgr_info_request_msg_t *request, assoc_mgr_info_msg_t **out)
{
    if (fake.has_no_accounting || request->flags != (ASSOC_MGR_INFO_FLAG_ASSOC | ASSOC_MGR_INFO_FLAG_QOS))
        return SLURM_ERROR;
    assoc_mgr_info_msg_t message = {.assoc_list =
                                        list_of(fake.associations, fake.association_count, sizeof fake.associations[0]),
                                    .qos_list = list_of(fake.qos, fake.qos_count, sizeof fake.qos[0])};
    *out = copy(&message, sizeof message);
    return SLURM_SUCCESS;
}

static void release(void *array, void *message)
{
    free(array);
    free(message);
    calls.unfreed -= 2;
}

void slurm_free_partition_info_msg(partition_info_msg_t *message) { release(message->partition_array, message); }

void slurm_free_node_info_msg(node_info_msg_t *message) { release(message->node_array, message); }

void slurm_free_job_info_msg(job_info_msg_t *message) { release(message->job_array, message); }

void slurm_free_reservation_info_msg(reserve_info_msg_t *message) { release(message->reservation_array, message); }

void slurm_free_assoc_mgr_info_msg(assoc_mgr_info_msg_t *message)
{
    release(message->assoc_list->records, message->assoc_list);
    release(message->qos_list->records, message->qos_list);
    free(message);
    calls.unfreed--;
}
