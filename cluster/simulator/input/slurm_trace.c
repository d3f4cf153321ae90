/* slurm_trace.c — jobs from Slurm's accounting (accounting/accounting.h). Submit and Elapsed are required, too.
 *
 * The account is the group; name and user are kept. The reader skips job steps, and jobs without GPUs, without a run or
 * without an outcome. */
#include "accounting/accounting.h"
#include "base/file.h"
#include "base/status.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_GPUS = 1 << 20 };

static mdot_status add_job(const mdot_store_outcome *ended, sc_workload *workload, mdot_error *err)
{
    bool is_missing = false;
    sc_job job = {.deadline_s = INFINITY,
                  .weight = 1,
                  .kind = SC_NONE,
                  .submit_s = (double)ended->submitted_at,
                  .work = (double)ended->elapsed_s,
                  .limit_s = ended->limit_s > 0 ? (double)ended->limit_s : 0,
                  .gpus = (int)ended->gpu_count,
                  .outcome = (mdot_ended)(ended->outcome - MDOT_OUTCOME_COMPLETED),
                  .id = sc_copy_text(ended->job_id, &is_missing),
                  .user = sc_copy_text(ended->user, &is_missing),
                  .group = sc_copy_text(ended->account, &is_missing),
                  .name = sc_copy_text(ended->name, &is_missing),
                  .gpu_type = sc_copy_text(ended->gpu, &is_missing)};
    _Static_assert(MDOT_ENDED_TIMED_OUT - MDOT_ENDED_COMPLETED == MDOT_OUTCOME_TIMED_OUT - MDOT_OUTCOME_COMPLETED,
                   "a history's ends are a store's outcomes, except UNFINISHED");
    BS_TRY(sc_workload_add(workload, job, err));
    return is_missing ? BS_OUT_OF_MEMORY(err, "a job") : MDOT_OK;
}

static mdot_status read_jobs(const char *path, char *text, size_t size, sc_workload *workload, mdot_error *err)
{
    ac_table table;
    mdot_store_outcome job;
    mdot_status status = MDOT_OK;
    BS_TRY(ac_table_open(path, text, size, &table, err));
    const int *at = table.column_of;
    const char *missing =
        at[AC_Submit] == AC_ABSENT                                                                      ? "Submit"
        : at[AC_Elapsed] == AC_ABSENT && at[AC_ElapsedRaw] == AC_ABSENT                                 ? "Elapsed"
        : at[AC_AllocTRES] == AC_ABSENT && at[AC_ReqTRES] == AC_ABSENT && at[AC_AllocGRES] == AC_ABSENT ? "AllocTRES"
                                                                                                        : NULL;
    if (missing != NULL) return mdot_fail(err, MDOT_MALFORMED, "%s: there is no column %s", path, missing);
    for (ac_item item; status == MDOT_OK && (item = ac_table_next(&table, &job)) != AC_END;) {
        if (item == AC_FAULT) return mdot_fail(err, MDOT_MALFORMED, "%s:%zu: %s", path, table.line, table.reason);
        if (item == AC_STEP || job.outcome == MDOT_OUTCOME_UNFINISHED || job.submitted_at == 0 || job.elapsed_s <= 0 ||
            job.gpu_count == 0)
            continue;
        if (job.gpu_count > MAX_GPUS)
            return mdot_fail(err, MDOT_MALFORMED, "%s:%zu: the job has %lld GPUs, more than %d", path, table.line,
                             (long long)job.gpu_count, MAX_GPUS);
        status = add_job(&job, workload, err);
    }
    if (status == MDOT_OK && workload->job_count == 0)
        return mdot_fail(err, MDOT_MALFORMED, "%s: no job with GPUs has ended", path);
    return status;
}

mdot_status sc_read_sacct(const char *path, bool *out_is_sacct, sc_workload *out_workload, mdot_error *err)
{
    unsigned char *bytes;
    size_t size;
    BS_TRY(bs_read_file(path, &bytes, &size, err));
    *out_is_sacct = ac_is_accounting((const char *)bytes);
    mdot_status status = *out_is_sacct ? read_jobs(path, (char *)bytes, size, out_workload, err) : MDOT_OK;
    free(bytes);
    return status;
}
