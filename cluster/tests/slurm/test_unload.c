/* test_unload.c — slurmctld unloads the plugin job_submit/mdot under write locks; the plugin's thread may wait for the
 * same locks. This program takes the place of slurmctld, and decides when requests end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <semaphore.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern slurm_conf_t slurm_conf;
extern char *default_part_name;
void slurm_info(const char *format, ...);
int slurm_error(const char *format, ...);
char *slurm_xstrdup(const char *text);
void slurm_xfree(void **memory);

slurm_conf_t slurm_conf;
char *default_part_name;
static sem_t requests, locks; /* started requests; requests allowed to end */

void slurm_info(const char *format, ...) { (void)format; }

int slurm_error(const char *format, ...)
{
    (void)format;
    return 0;
}

char *slurm_xstrdup(const char *text) { return strdup(text); }

void slurm_xfree(void **memory)
{
    free(*memory);
    *memory = NULL;
}

int slurm_load_partitions(time_t since, partition_info_msg_t **out, uint16_t flags)
{
    (void)since, (void)out, (void)flags;
    sem_post(&requests);
    sem_wait(&locks);
    return SLURM_ERROR;
}

int slurm_load_jobs(time_t since, job_info_msg_t **out, uint16_t flags)
{
    (void)since, (void)out, (void)flags;
    return SLURM_ERROR;
}

typedef struct plugin {
    void *handle;
    int (*init)(void);
    void (*fini)(void);
    int (*submit)(job_desc_msg_t *request, uint32_t user, char **out_message);
} plugin;

static plugin load(void)
{
    plugin p = {.handle = dlopen(PLUGIN, RTLD_LAZY)};
    if (p.handle == NULL) fail_msg("%s", dlerror());
    *(void **)&p.init = dlsym(p.handle, "init");
    *(void **)&p.fini = dlsym(p.handle, "fini");
    *(void **)&p.submit = dlsym(p.handle, "job_submit");
    assert_int_equal(p.init(), SLURM_SUCCESS);
    return p;
}

static void unload(plugin *p)
{
    p->fini();
    dlclose(p->handle);
}

static void unloading_waits_for_no_request(void **state)
{
    (void)state;
    char folder[] = "/tmp/mdot-unload-XXXXXX", file[64];
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/slurm.conf", folder);
    slurm_conf.slurm_conf = file;
    slurm_conf.state_save_location = folder;
    sem_init(&requests, 0, 0);
    sem_init(&locks, 0, 0);
    job_desc_msg_t job = {0};

    plugin p = load();
    sem_wait(&requests); /* the thread waits for a lock held by the caller of fini */
    unload(&p);
    p = load(); /* as `scontrol reconfigure` does */
    assert_int_equal(p.submit(&job, 1000, NULL), SLURM_SUCCESS);
    unload(&p);
    sem_post(&locks);

    p = load(); /* the thread goes on */
    sem_wait(&requests);
    unload(&p);
    rmdir(folder);
}

int main(void)
{
    alarm(240); /* a deadlock ends the program, also on a busy machine before the limit of ctest */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unloading_waits_for_no_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
