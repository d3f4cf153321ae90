/* pai.c — traces of Alibaba's PAI, 2020, in both public forms (github.com/alibaba/clusterdata,
 * cluster-trace-gpu-v2020).
 *
 * pai_task_table.csv has one line per task (role) of a job. It usually lacks the header, a separate file. A job holds
 * the GPUs of all tasks at once: inst_num · plan_gpu / 100 each, summed and rounded up. It runs from the first task
 * start to the last task end. As in studies of the trace, jobs are skipped if they use no GPU, or if a task has another
 * status than Terminated or lacks times.
 *
 * Two other tables of the trace are read if they are in the same folder. pai_job_table.csv has each job's user and
 * submission time; without it, the start counts as submission. pai_group_tag_table.csv has a tag shared by jobs with
 * similar scripts, arguments and data. The tag is the job's name, because names in the trace are random.
 *
 * PAI's simulator table, job_id,…,num_gpu,…,submit_time,num_inst,…,duration,…, has one line per job: num_gpu (a
 * fraction is allowed) for each of num_inst instances. `user` is both user and group, and the optional column `group`
 * is the name. */
#include "base/text.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_INSTANCES = 1 << 20, MAX_GPUS = 1 << 20 };
#define MAX_SECONDS 1e12
static const char task_header[] =
    "job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type";

typedef struct task {
    const char *job, *gpu_type; /* borrowed from the table */
    size_t line;                /* position in the file, the order of jobs with equal start */
    double start_s, end_s, gpus;
    bool is_valid; /* status Terminated, with both times */
} task;

typedef struct tasks {
    task *items;
    size_t count;
} tasks;

static int by_job(const void *a, const void *b)
{
    const task *x = a, *y = b;
    int order = strcmp(x->job, y->job);
    return order != 0 ? order : (x->line > y->line) - (x->line < y->line);
}

static int by_line(const void *a, const void *b)
{
    const task *x = a, *y = b;
    return (x->line > y->line) - (x->line < y->line);
}

static mdot_status read_task(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    tasks *out = context;
    const char *const *field = (const char *const *)csv->field;
    task read = {
        .job = field[0], .gpu_type = field[9], .line = csv->line, .is_valid = strcmp(field[3], "Terminated") == 0};
    double instances = 1, percent = 0;
    if (field[0][0] == '\0') return bs_csv_fail(csv, err, MDOT_MALFORMED, "job_name is empty");
    BS_TRY(sc_csv_optional(csv, 2, 0, MAX_INSTANCES, &instances, err));
    BS_TRY(sc_csv_optional(csv, 8, 0, 1e6, &percent, err));
    BS_TRY(sc_csv_optional(csv, 4, 0, MAX_SECONDS, &read.start_s, err));
    BS_TRY(sc_csv_optional(csv, 5, 0, MAX_SECONDS, &read.end_s, err));
    read.gpus = instances * percent / 100;
    read.is_valid &= sc_csv_has(csv, 4) && sc_csv_has(csv, 5);
    if (read.is_valid && read.end_s < read.start_s)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "end_time is before start_time");
    if (!sc_grow(&out->items, out->count, sizeof read)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    out->items[out->count++] = read;
    return MDOT_OK;
}

/* Merges each job's adjacent tasks, and removes jobs that are invalid or use no GPU. */
static void join_tasks(tasks *entries)
{
    size_t kept = 0;
    for (size_t i = 0; i < entries->count;) {
        task job = entries->items[i];
        for (i++; i < entries->count && strcmp(entries->items[i].job, job.job) == 0; i++) {
            const task *successor = &entries->items[i];
            if (job.gpus == 0) job.gpu_type = successor->gpu_type;
            job.gpus += successor->gpus;
            job.start_s = fmin(job.start_s, successor->start_s);
            job.end_s = fmax(job.end_s, successor->end_s);
            job.is_valid &= successor->is_valid;
        }
        if (job.is_valid && job.gpus > 0) entries->items[kept++] = job;
    }
    entries->count = kept;
}

/* An optional table, with rows sorted by the first field. */
typedef struct side_table {
    bs_csv csv;
    char *path;
    char *(*rows)[6]; /* first fields of each row */
    size_t count;
} side_table;

static void close_side(side_table *table)
{
    free(table->rows);
    free(table->path);
    bs_csv_close(&table->csv);
}

static int by_first_field(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static mdot_status read_side_row(const bs_csv *csv, const int *at, void *context, mdot_error *err)
{
    side_table *table = context;
    if (!sc_grow(&table->rows, table->count, sizeof *table->rows)) return BS_OUT_OF_MEMORY(err, "%s", table->path);
    for (int i = 0; i < 6 && i < csv->field_count; i++) table->rows[table->count][i] = csv->field[i];
    table->count++;
    return MDOT_OK;
}

/* Opens the table with this name beside the file `beside`. An absent table has no rows. */
static mdot_status open_side(const char *beside, const char *name, const char *header, side_table *out_table,
                             mdot_error *err)
{
    const char *slash = strrchr(beside, '/');
    side_table table = {0};
    if (asprintf(&table.path, "%.*s%s", slash != NULL ? (int)(slash - beside) + 1 : 0, beside, name) < 0)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = bs_csv_open(table.path, UINT64_MAX, header, &table.csv, err);
    if (status == MDOT_OK) status = sc_read_open_rows(&table.csv, "", read_side_row, &table, err);
    if (table.count > 0) qsort(table.rows, table.count, sizeof *table.rows, by_first_field);
    if (status == MDOT_NOT_FOUND) status = MDOT_OK;
    if (status == MDOT_OK)
        *out_table = table;
    else
        close_side(&table);
    return status;
}

/* Returns the row with this first field, or NULL. */
static char *const *find_side(const side_table *table, const char *first)
{
    return table->count > 0 ? bsearch(&first, table->rows, table->count, sizeof *table->rows, by_first_field) : NULL;
}

/* Adds a job's data from the tables beside the task table. */
static mdot_status add_side_facts(const side_table *jobs, const side_table *tags, const task *source, sc_job *job,
                                  mdot_error *err)
{
    enum { JOB_INSTANCE = 1, JOB_USER = 2, JOB_START = 4, TAG_GROUP = 3 };
    bool is_missing = false;
    char *const *row = find_side(jobs, source->job), *const *tag =
                                                         row != NULL ? find_side(tags, row[JOB_INSTANCE]) : NULL;
    job->gpu_type = sc_copy_text(source->gpu_type, &is_missing);
    if (row != NULL) {
        const char *end;
        double submit_s = bs_number_read(row[JOB_START], &end);
        job->user = sc_copy_text(row[JOB_USER], &is_missing);
        job->group = sc_copy_text(row[JOB_USER], &is_missing);
        if (end != row[JOB_START] && submit_s >= 0 && submit_s <= source->start_s) job->submit_s = submit_s;
    }
    if (tag != NULL) job->name = sc_copy_text(tag[TAG_GROUP], &is_missing);
    return is_missing ? BS_OUT_OF_MEMORY(err, "job %s", source->job) : MDOT_OK;
}

static mdot_status add_task_job(const bs_csv *csv, const side_table *jobs, const side_table *tags, const task *start,
                                sc_workload *workload, mdot_error *err)
{
    if (start->gpus > MAX_GPUS)
        return mdot_fail(err, MDOT_MALFORMED, "%s:%zu: job %s has %g GPUs, more than %d", csv->path, start->line,
                         start->job, start->gpus, MAX_GPUS);
    sc_job job = {.id = strdup(start->job),
                  .submit_s = start->start_s,
                  .deadline_s = INFINITY,
                  .weight = 1,
                  .work = start->end_s - start->start_s,
                  .gpus = (int)ceil(start->gpus),
                  .fraction = start->gpus != floor(start->gpus) ? start->gpus : 0,
                  .kind = SC_NONE};
    mdot_status status = add_side_facts(jobs, tags, start, &job, err);
    if (status == MDOT_OK) return sc_workload_add(workload, job, err);
    sc_job_free(&job);
    return status;
}

static mdot_status read_task_table(bs_csv *csv, sc_workload *workload, mdot_error *err)
{
    tasks entries = {0};
    side_table jobs = {0}, tags = {0};
    mdot_status status =
        open_side(csv->path, "pai_job_table.csv", "job_name,inst_id,user,status,start_time,end_time", &jobs, err);
    if (status == MDOT_OK)
        status =
            open_side(csv->path, "pai_group_tag_table.csv", "inst_id,user,gpu_type_spec,group,workload", &tags, err);
    if (status == MDOT_OK) status = sc_read_open_rows(csv, "", read_task, &entries, err);
    if (status == MDOT_OK && entries.count > 0) {
        qsort(entries.items, entries.count, sizeof *entries.items, by_job);
        join_tasks(&entries);
        qsort(entries.items, entries.count, sizeof *entries.items, by_line);
    }
    for (size_t i = 0; status == MDOT_OK && i < entries.count; i++)
        status = add_task_job(csv, &jobs, &tags, &entries.items[i], workload, err);
    free(entries.items);
    close_side(&tags);
    close_side(&jobs);
    return status;
}

static mdot_status read_table_job(const bs_csv *csv, const int *at, void *workload, mdot_error *err)
{
    enum { ID, SUBMIT, DURATION, GPUS, INSTANCES, USER, GROUP, GPU_TYPE };
    double item = 0, count = 1;
    sc_job job = {.deadline_s = INFINITY, .weight = 1, .kind = SC_NONE};
    if (csv->field[at[ID]][0] == '\0') return bs_csv_fail(csv, err, MDOT_MALFORMED, "job_id is empty");
    BS_TRY(sc_csv_optional(csv, at[GPUS], 0, MAX_INSTANCES, &item, err));
    BS_TRY(sc_csv_optional(csv, at[INSTANCES], 0, 1024, &count, err));
    BS_TRY(bs_csv_number(csv, at[SUBMIT], 0, MAX_SECONDS, &job.submit_s, err));
    BS_TRY(bs_csv_number(csv, at[DURATION], 0, MAX_SECONDS, &job.work, err));
    if (item * count > MAX_GPUS)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "num_gpu times num_inst is %g, more than %d", item * count,
                           MAX_GPUS);
    if (item * count <= 0) return MDOT_OK;
    job.gpus = (int)ceil(item * count - 1e-9);
    if (job.gpus - item * count > 1e-9) job.fraction = item * count;
    const int texts[] = {at[ID], at[USER], at[USER], at[GROUP], at[GPU_TYPE]};
    return sc_workload_add_row(workload, job, csv, texts, err);
}

mdot_status sc_read_pai(const char *path, bool *out_is_pai, sc_workload *out_workload, mdot_error *err)
{
    bs_csv csv;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    bool is_job_table = bs_csv_find(&csv, "job_id") != BS_CSV_ABSENT && bs_csv_find(&csv, "num_gpu") != BS_CSV_ABSENT;
    /* without a header: ten columns, the fourth is a status */
    static const char *const statuses[] = {"Terminated", "Failed", "Running", "Waiting", "Interrupted"};
    bool is_task_table = bs_csv_find(&csv, "job_name") == 0 && bs_csv_find(&csv, "plan_gpu") == 8;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0] && csv.header_count == 10; i++)
        is_task_table |= strcmp(csv.header[3], statuses[i]) == 0;
    *out_is_pai = is_job_table || is_task_table;
    if (is_task_table) {
        bs_csv_close(&csv);
        status = bs_csv_open(path, UINT64_MAX, task_header, &csv, err);
        if (status != MDOT_OK) return status;
    }
    if (is_task_table)
        status = read_task_table(&csv, out_workload, err);
    else if (is_job_table)
        status = sc_read_open_rows(&csv, "job_id,submit_time,duration,num_gpu,num_inst?,user?,group?,gpu_type?",
                                   read_table_job, out_workload, err);
    bs_csv_close(&csv);
    return status;
}
