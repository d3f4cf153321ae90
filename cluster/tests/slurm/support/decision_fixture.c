#include "tests/slurm/support/decision_fixture.h"
#include "tests/slurm/support/small_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

static mdot_predictor *predictor;
mdot_context *context;
mdot_job *job;
mdot_calibration *calibration;

int decision_set_up(void **state)
{
    (void)state;
    mdot_open_options options = {.struct_size = sizeof options, .device = "cpu"};
    assert_int_equal(mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, &options, &predictor, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    job = small_job_make(12);
    return 0;
}

int decision_tear_down(void **state)
{
    (void)state;
    mdot_job_destroy(job);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return 0;
}

sl_cluster cluster = {.partition_count = 4,
                      .partitions = {{OPEN("a100"), NODES("a100")},
                                     {OPEN("t4"), NODES("t4")},
                                     {OPEN("h100"), NODES("")},
                                     {OPEN("mixed"), .gpus = {{"v100", 4, 8, 32}, {"h100", 4, 8, 32}}, .type_count = 2,
                                      .usable_nodes = 4}}};
const sl_site site = {.quantile = .95,
                      .most_work = 10000,
                      .margin = 1.5,
                      .startup_s = 300,
                      .limits_doubtful = true,
                      .priority_weight = 1000,
                      .order = SL_ORDER_TIME,
                      .shortest_s = 60,
                      .longest_s = 60e4,
                      .places = {{"a100", "", "A100-SXM-40GB", 1, INFINITY},
                                 {"t4", "", "T4", .02, INFINITY},
                                 {"h100", "", "H100-SXM-80GB", 9, INFINITY},
                                 {"mixed", "v100", "V100-SXM2-16GB", 1, INFINITY},
                                 {"mixed", "h100", "H100-SXM-80GB", 2, 7200}},
                      .place_count = 5};

mdot_status decide(const sl_site *s, const char *settings, const sl_submission *submission, sl_decision *out,
                   mdot_error *err)
{
    sl_request request;
    mdot_status status = sl_request_parse(settings, &request, err);
    return status == MDOT_OK ? sl_decide(s, &(sl_oracle){context, calibration, 0}, job, &request, submission, out, err)
                             : status;
}

sl_decision decides(const sl_site *s, const char *settings, const sl_submission *submission)
{
    sl_decision decision;
    mdot_error err = {0};
    if (decide(s, settings, submission, &decision, &err) != MDOT_OK) fail_msg("%s", err.message);
    return decision;
}
