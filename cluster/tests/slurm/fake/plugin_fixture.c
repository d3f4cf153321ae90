#include "tests/slurm/fake/plugin_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <time.h>

#include "slurm/request.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

static char *folder;
static char conf_path[512];
char outcomes_path[512], history_path[512];
static char job_text[1 << 17]; /* SPANK_MDOT_JOB_1=… */

/* "a" has two nodes with two T4, "b" two with two A100, which are faster, and "m" one with two types. */
void plugin_reset_cluster(void)
{
    static int32_t nodes_a[] = {0, 1, -1}, nodes_b[] = {2, 3, -1}, nodes_m[] = {4, 4, -1};
    static char a[] = "a", b[] = "b", m[] = "m", t4[] = "gpu:2", a100[] = "gpu:2", two[] = "gpu:v100:2,gpu:h100:2";
    int32_t *const nodes[] = {nodes_a, nodes_b, nodes_m};
    char *const names[] = {a, b, m}, *const gpus[] = {t4, t4, a100, a100, two};
    time_t now_s = fake.now_s;
    double monotonic_s = fake.monotonic_s;
    memset(&fake, 0, sizeof fake);
    fake.now_s = now_s;
    fake.monotonic_s = monotonic_s;
    fake.partition_count = 3;
    for (int i = 0; i < 3; i++)
        fake.partitions[i] = (partition_info_t){.name = names[i],
                                                .max_time = 10000,
                                                .default_time = 30,
                                                .min_nodes = 1,
                                                .max_nodes = INFINITE,
                                                .state_up = PARTITION_UP,
                                                .node_inx = nodes[i]};
    fake.node_count = 5;
    for (int i = 0; i < 5; i++)
        fake.nodes[i] =
            (node_info_t){.node_state = NODE_STATE_IDLE, .gres = gpus[i], .cpus_efctv = 16, .real_memory = 64000};
    slurm_conf.accounting_storage_enforce = 0;
}

void plugin_write_site(const char *predictor)
{
    char text[2048];
    snprintf(text, sizeof text,
             "Predictor=%s\nMaxMilliseconds=1000\nUserMilliseconds=0\nLimitDoubtful=yes\nChoose=time\n"
             "PriorityWeight=10000\nPriorityOrder=service\nPartition=a Gpu=T4\nPartition=b Gpu=A100-SXM-40GB\n"
             "Partition=m Gpu=V100-SXM2-16GB Type=v100\nPartition=m Gpu=H100-SXM-80GB Type=h100\n",
             predictor);
    small_job_write_file(conf_path, text, strlen(text));
}

int plugin_set_up(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t count;
    char file[512];
    static process_result result;
    umask(022); /* files that the group may write are trusted only if the group is */
    folder = process_make_folder();
    snprintf(conf_path, sizeof conf_path, "%s/mdot.conf", folder);
    snprintf(outcomes_path, sizeof outcomes_path, "%s/mdot_outcomes", folder);
    snprintf(history_path, sizeof history_path, "%s/mdot_history", folder);
    snprintf(file, sizeof file, "%s/resnet50.job", folder);
    process_run((const char *const[]){MDOT_CLI, "extract", MDOT_JOBS "/resnet50.onnx", "-o", file, NULL}, &result);
    assert_int_equal(result.status, 0);
    small_job_read_file(file, &bytes, &count);
    assert_true(count <= SL_PIECE_BYTES);
    strcpy(job_text, "SPANK_MDOT_JOB_1=");
    sl_base64_write(bytes, count, job_text + strlen(job_text));
    free(bytes);
    static char slurm_path[512];
    snprintf(slurm_path, sizeof slurm_path, "%s/slurm.conf", folder);
    slurm_conf.slurm_conf = slurm_path;
    slurm_conf.state_save_location = folder;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now); /* as the controller, whose clock it is */
    fake.now_s = now.tv_sec;
    fake.monotonic_s = 1000;
    plugin_reset_cluster();
    return 0;
}

int plugin_tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    return 0;
}

/* Each test begins with the whole cluster, and without jobs. */
int plugin_reset(void **state)
{
    (void)state;
    plugin_reset_cluster();
    default_part_name = NULL;
    calls.log[0] = '\0';
    calls.updates = 0;
    return 0;
}

/* A request as slurm_init_job_desc_msg makes it, for one GPU in "a" or "b". */
job_desc_msg_t plugin_make_request(void)
{
    return (job_desc_msg_t){.partition = strdup("a,b"),
                            .tres_per_node = strdup("gres:gpu:1"),
                            .time_limit = NO_VAL,
                            .time_min = NO_VAL,
                            .site_factor = NO_VAL,
                            .min_nodes = NO_VAL,
                            .num_tasks = NO_VAL,
                            .sockets_per_node = NO_VAL16,
                            .ntasks_per_tres = NO_VAL16,
                            .het_job_offset = NO_VAL,
                            .min_cpus = NO_VAL,
                            .pn_min_memory = NO_VAL64,
                            .pn_min_tmp_disk = NO_VAL,
                            .shared = NO_VAL16};
}

static void set_environment(job_desc_msg_t *request, const char *settings)
{
    request->spank_job_env = calloc(6, sizeof(char *));
    request->spank_job_env[0] = strdup("SPANK_FIRST=1");
    request->spank_job_env[1] = strdup(job_text);
    request->spank_job_env[3] = malloc(256);
    snprintf(request->spank_job_env[3], 256, "SPANK_MDOT_SETTINGS=%s", settings);
    request->spank_job_env[4] = strdup("LAST=2");
    request->spank_job_env_size = 5; /* one is NULL */
}

void plugin_free_request(job_desc_msg_t *r)
{
    char *texts[] = {r->partition,       r->tres_per_job,  r->tres_per_node,
                     r->tres_per_socket, r->tres_per_task, r->admin_comment,
                     r->reservation,     r->account,       r->name};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free(texts[i]);
    for (uint32_t i = 0; i < r->spank_job_env_size; i++) free(r->spank_job_env[i]);
    free(r->spank_job_env);
}

void plugin_submit_as(uint32_t user, const char *settings, job_desc_msg_t *request)
{
    char *message = NULL;
    set_environment(request, settings);
    assert_int_equal(job_submit(request, user, &message), SLURM_SUCCESS);
    assert_null(message);
}

void plugin_submit(const char *settings, job_desc_msg_t *request) { plugin_submit_as(USER, settings, request); }

/* The number behind KEY= in a request's comment; frees the request. */
double plugin_number_of(job_desc_msg_t *request, const char *key)
{
    assert_non_null(request->admin_comment);
    const char *cursor = strstr(request->admin_comment, key);
    if (cursor == NULL) fail_msg("no %s in \"%s\"", key, request->admin_comment);
    double number = strtod(cursor + strlen(key), NULL);
    plugin_free_request(request);
    return number;
}
