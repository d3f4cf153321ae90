#include "tests/slurm/support/controller_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include "slurm/request.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

char *folder;
char site_path[512];
char job_text[1 << 16];

int controller_set_up(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t count;
    char file[512];
    umask(022); /* files that the group may write are trusted only if the group is */
    folder = process_make_folder();
    snprintf(site_path, sizeof site_path, "%s/mdot.conf", folder);
    snprintf(file, sizeof file, "%s/small.job", folder);
    small_job_save(8, file, &bytes, &count);
    strcpy(job_text, "MDOT_JOB_1=");
    sl_base64_write(bytes, count, job_text + strlen(job_text));
    free(bytes);
    return 0;
}

int controller_tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    return 0;
}

void write_site(const char *predictor, const char *more)
{
    char text[2048], new_path[520];
    snprintf(text, sizeof text,
             "Predictor=%s\nMaxMilliseconds=1000\nLimitDoubtful=yes\n%s\nPartition=a Gpu=T4 MaxTime=60\n", predictor,
             more);
    snprintf(new_path, sizeof new_path, "%s.new", site_path);
    small_job_write_file(new_path, text, strlen(text));
    assert_int_equal(rename(new_path, site_path), 0);
}

double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

sl_cluster *make_cluster(double read_s)
{
    sl_cluster *cluster = calloc(1, sizeof *cluster);
    assert_non_null(cluster);
    cluster->read_s = read_s;
    cluster->partition_count = 1;
    cluster->partitions[0] = (sl_partition){.name = "a",
                                            .most_minutes = 1000,
                                            .default_minutes = 5,
                                            .most_nodes = 1,
                                            .is_up = true,
                                            .is_open = true,
                                            .reserved_s = INFINITY};
    return cluster;
}

sl_controller *make_controller(const char *more)
{
    bool is_new;
    mdot_error err = {0};
    write_site(MDOT_SHIPPED_PREDICTOR, more);
    sl_controller *c = sl_controller_create(site_path);
    assert_non_null(c);
    if (sl_controller_refresh(c, &is_new, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(is_new);
    return c;
}

atomic_bool is_patient = true;

int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec later = *until;
    if (atomic_load(&is_patient)) later.tv_sec += 3600;
    return __real_pthread_cond_timedwait(condition, mutex, &later);
}

mdot_status submit_job(sl_controller *c, const char *settings, sl_decision *out, mdot_error *err)
{
    static atomic_uint users = 1000;
    const char *environment[] = {settings, job_text};
    sl_submission submission = {.partitions = "a", .user = atomic_fetch_add(&users, 1)};
    return sl_controller_decide(c, environment, 2, &submission, out, err);
}
