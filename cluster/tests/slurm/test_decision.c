/* test_decision.c — from predictions to partitions, limits, priorities and comments, with the shipped predictor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "tests/simulator/support/numbers.h"
#include "tests/slurm/support/decision_fixture.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

static mdot_prediction predict(const char *gpu, int gpus, int64_t batch, mdot_optimizer optimizer)
{
    mdot_configuration c = {.struct_size = sizeof c,
                            .batch = batch,
                            .gpu = gpu,
                            .gpu_count = gpus,
                            .node_count = 1,
                            .optimizer = optimizer,
                            .precision = MDOT_PRECISION_PYTORCH};
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    assert_int_equal(mdot_predict(context, job, &c, &p, NULL), MDOT_OK);
    return p;
}

static const sl_submission on_a100 = ON(.partitions = "a100", .per_node = "gres:gpu:1"),
                           on_mixed = ON(.partitions = "mixed", .per_node = "gres:gpu:1");

static void quantiles_interpolate_the_interval(void **state)
{
    (void)state;
    mdot_prediction p = {.struct_size = sizeof p, .step_ms = 100, .lower_ms = 80, .upper_ms = 200};
    assert_true(fabs(sl_step_quantile_ms(&p, .5) - 100) < 1e-6);
    assert_true(fabs(sl_step_quantile_ms(&p, .95) - 200) < 1e-6);
    assert_true(fabs(sl_step_quantile_ms(&p, .05) - 80) < 1e-6);
    /* The normal distribution's 90 % quantile is 1.28155, and its 95 % quantile is 1.64485. */
    assert_true(fabs(sl_step_quantile_ms(&p, .9) - 100 * pow(2, 1.2815515655 / 1.6448536270)) < 1e-4);
    assert_true(fabs(sl_step_quantile_ms(&p, .99) - 100 * pow(2, 2.3263478740 / 1.6448536270)) < 1e-4);
}

static void the_limit_adds_margin_and_startup_to_the_quantile(void **state)
{
    (void)state;
    mdot_prediction p = predict("A100-SXM-40GB", 1, 32, MDOT_OPTIMIZER_SGD);
    sl_decision d = decides(&site, "batch=32,optimizer=sgd,steps=1000000", &on_a100);
    expect_number(d.step_ms, p.step_ms);
    expect_number(d.total_s, 1e-3 * 1e6 * p.step_ms);
    assert_int_equal(d.limit_minutes, (uint32_t)ceil((1e3 * p.upper_ms * 1.5 + 300) / 60));
    assert_false(d.is_chosen);
    sl_site partner = site;
    partner.quantile = .5;
    assert_int_equal(decides(&partner, "batch=32,optimizer=sgd,steps=1000000", &on_a100).limit_minutes,
                     (uint32_t)ceil((1e3 * p.step_ms * 1.5 + 300) / 60));
}

static void a_limit_stays_within_the_partitions_limit(void **state)
{
    (void)state;
    sl_submission submission = ON(.partitions = "mixed", .per_node = "gres:gpu:h100:1");
    assert_int_equal(decides(&site, "steps=1000000000", &submission).limit_minutes, 120);
    sl_site partner = site;
    partner.places[4].most_s = 420; /* the default limit, which Slurm would set, too */
    assert_int_equal(decides(&partner, "steps=1000000000", &submission).limit_minutes, 0);
    assert_int_equal(decides(&site, "steps=9007199254740992", &on_a100).limit_minutes, 1 << 24);
}

static void no_limit_is_set_without_steps_or_with_warnings(void **state)
{
    (void)state;
    sl_decision d = decides(&site, "batch=32", &on_a100);
    expect_number(d.limit_minutes, 0);
    expect_number(d.total_s, 0);
    assert_false(d.has_priority);
    assert_true(d.step_ms > 0);
    sl_site partner = site;
    partner.limits_doubtful = false;
    mdot_prediction p = predict("A100-SXM-40GB", 1, 1 << 20, MDOT_OPTIMIZER_ADAM);
    assert_true((p.warnings & MDOT_WARN_OUTSIDE_TRAINING) != 0);
    d = decides(&partner, "batch=1048576,steps=100", &on_a100);
    assert_int_equal(d.limit_minutes, 0);
    expect_contains(d.comment, "outside-training");
    p = predict("A100-SXM-40GB", 1, 1 << 24, MDOT_OPTIMIZER_ADAM);
    assert_false(p.fits);
    d = decides(&site, "batch=16777216,steps=100", &on_a100);
    assert_int_equal(d.limit_minutes, 0);
    expect_contains(d.comment, "fits=no");
}

static void five_warnings_make_a_prediction_doubtful(void **state)
{
    (void)state;
    const uint32_t doubtful[] = {MDOT_WARN_UNKNOWN_OPERATOR, MDOT_WARN_OUTSIDE_TRAINING, MDOT_WARN_IMPLAUSIBLE,
                                 MDOT_WARN_NO_PARAMETERS, MDOT_WARN_WAITED_FOR_DATA};
    uint32_t entries = 0;
    for (size_t i = 0; i < 5; i++) {
        assert_true(sl_is_doubtful(doubtful[i]));
        assert_true(sl_is_doubtful(doubtful[i] | MDOT_WARN_FOLDED));
        entries |= doubtful[i];
    }
    assert_false(sl_is_doubtful(~entries));
}

static void omitted_settings_come_from_the_job(void **state)
{
    (void)state;
    expect_number(decides(&site, "", &on_a100).step_ms, predict("A100-SXM-40GB", 1, 16, MDOT_OPTIMIZER_ADAM).step_ms);
    expect_number(decides(&site, "optimizer=sgd", &on_a100).step_ms,
                  predict("A100-SXM-40GB", 1, 16, MDOT_OPTIMIZER_SGD).step_ms);
}

static void gpus_are_counted_from_slurm_requests(void **state)
{
    (void)state;
    static const struct {
        sl_submission submission;
        int64_t gpus, nodes;
    } cases[] = {{{0}, 1, 1},
                 {{.per_node = "gres:gpu:4", .nodes = 2}, 8, 2},
                 {{.per_job = "gres:gpu:4", .nodes = 2}, 4, 2},
                 {{.per_task = "gres:gpu:2", .tasks = 3}, 6, 1},
                 {{.per_socket = "gres:gpu:2", .nodes = 3, .sockets = 2}, 6, 3},
                 {{.per_socket = "gres:gpu:2", .nodes = 3, .sockets = 2, .tasks = 6}, 12, 3},
                 {{.per_socket = "gres:gpu:2", .nodes = 3, .sockets = 2, .tasks = 3, .cpus_per_task = 8}, 12, 3},
                 {{.per_socket = "gres:gpu:2"}, 2, 1},
                 {{.per_job = "gres:gpu:8", .per_node = "gres:gpu:4", .nodes = 2}, 8, 2},
                 {{.per_node = "gres:gpu:0", .nodes = 4}, 1, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_gpus gpus = sl_gpus_of(&cases[i].submission);
        assert_int_equal(gpus.gpus, cases[i].gpus);
        assert_int_equal(gpus.nodes, cases[i].nodes);
    }
    sl_submission four = ON(.partitions = "a100", .per_node = "gres:gpu:4");
    expect_contains(decides(&site, "epochs=2,dataset=1000,batch=10", &four).comment, "gpus=4");
    expect_contains(decides(&site, "epochs=2,dataset=1000,batch=10", &four).comment, "steps=50 ");
    /* a group of two tensor-parallel GPUs trains one batch */
    expect_contains(decides(&site, "epochs=2,dataset=1000,batch=10,tp=2", &four).comment, "steps=100 ");
}

static void the_best_partition_is_chosen(void **state)
{
    (void)state;
    sl_site by_time = site, by_cost = site;
    by_time.choice = SL_CHOOSE_TIME;
    by_cost.choice = SL_CHOOSE_COST;
    sl_submission entries = ON(.partitions = "t4,a100,h100");
    sl_decision d = decides(&by_time, "steps=100", &entries);
    assert_true(d.is_chosen);
    assert_string_equal(d.place.partition, "h100");
    d = decides(&by_cost, "steps=100", &entries);
    assert_true(d.is_chosen);
    assert_string_equal(d.place.partition, "t4");
    d = decides(&site, "steps=100", &entries); /* the choice is left to Slurm, so the values must hold on the slowest */
    assert_false(d.is_chosen);
    assert_string_equal(d.place.partition, "t4");
    d = decides(&by_time, "steps=100", &on_mixed);
    assert_string_equal(d.place.type, "h100");
    sl_submission typed = ON(.partitions = "mixed", .per_node = "gres:gpu:v100:1");
    d = decides(&by_time, "steps=100", &typed);
    assert_string_equal(d.place.type, "v100");
    assert_false(d.is_chosen);
}

/* mdot.conf may have this many lines, and all of them may fit the request. */
static void the_slowest_of_the_most_places_decides(void **state)
{
    (void)state;
    sl_site full = site;
    full.place_count = SL_MAX_PLACES;
    for (size_t i = 0; i < SL_MAX_PLACES; i++) full.places[i] = site.places[0];
    for (size_t slow = 0; slow < SL_MAX_PLACES; slow += SL_MAX_PLACES - 1) {
        full.places[slow] = site.places[1];
        strcpy(full.places[slow].partition, "a100");
        sl_decision d = decides(&full, "steps=100", &on_a100);
        assert_string_equal(d.place.gpu, "T4");
        expect_number(d.step_ms, predict("T4", 1, 16, MDOT_OPTIMIZER_ADAM).step_ms);
        full.places[slow] = site.places[0];
    }
}

static void partitions_without_enough_memory_are_skipped(void **state)
{
    (void)state;
    sl_site by_cost = site;
    by_cost.choice = SL_CHOOSE_COST;
    sl_submission two = ON(.partitions = "t4,h100");
    int64_t batch = 1024;
    while (batch < 1 << 24 && predict("T4", 1, batch, MDOT_OPTIMIZER_ADAM).fits) batch *= 2;
    assert_true(predict("H100-SXM-80GB", 1, batch, MDOT_OPTIMIZER_ADAM).fits);
    char settings[64];
    snprintf(settings, sizeof settings, "batch=%lld", (long long)batch);
    sl_decision d = decides(&by_cost, settings, &two);
    assert_true(d.is_chosen);
    assert_string_equal(d.place.partition, "h100");
    two.partitions = "h100,t4";
    assert_string_equal(decides(&by_cost, settings, &two).place.partition, "h100");
}

static void an_omitted_partition_means_the_default(void **state)
{
    (void)state;
    sl_submission submission = {.default_partition = "h100"}, empty = {.partitions = "", .default_partition = "h100"};
    assert_string_equal(decides(&site, "", &submission).place.partition, "h100");
    assert_string_equal(decides(&site, "", &empty).place.partition, "h100");
    sl_decision d;
    mdot_error err = {0};
    sl_submission others[] = {{.partitions = "cpu"}, {.partitions = "a10,a1000"}, {0}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        assert_int_equal(decide(&site, "", &others[i], &d, &err), MDOT_NOT_FOUND);
}

static void priority_falls_with_the_logarithm_of_what_binds(void **state)
{
    (void)state;
    /* binding minutes, with a one-second prediction */
    const uint32_t minutes[] = {1, 10, 100, 10000, 1 << 24, SL_UNLIMITED, 0}, wanted[] = {1000, 750, 500, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof minutes / sizeof minutes[0]; i++)
        assert_int_equal(sl_priority(&site, 1, minutes[i], 8, 1), wanted[i]);
    assert_int_equal(sl_priority(&site, 6000, 1, 8, 1), 500); /* a prediction above the limit counts */
    assert_int_equal(sl_priority(&site, 1, 10, 8, 10), 500);  /* jobs that ran ten times as long as predicted */
    assert_int_equal(sl_priority(&site, 1, 10, 8, .1), 750);
    sl_site by_service = site, none = site;
    by_service.order = SL_ORDER_SERVICE;
    none.priority_weight = 0;
    assert_int_equal(sl_priority(&by_service, 1, 10, 10, 1), 500);
    assert_false(decides(&none, "steps=1000", &on_a100).has_priority);
}

/* Replaces the job by ResNet-50, a network like the predictor's training data. Returns the job before. */
static mdot_job *use_resnet(void)
{
    char *folder = process_make_folder(), *path = process_in_folder(folder, "resnet50.job");
    static process_result result;
    mdot_job *before = job;
    process_run((const char *const[]){MDOT_CLI, "extract", MDOT_JOBS "/resnet50.onnx", "-o", path, NULL}, &result);
    assert_int_equal(result.status, 0);
    assert_int_equal(mdot_job_load(path, &job, NULL), MDOT_OK);
    free(path);
    process_remove_folder(folder);
    return before;
}

static void use_again(mdot_job *before)
{
    mdot_job_destroy(job);
    job = before;
}

static void priority_counts_the_limit_that_ends_the_job(void **state)
{
    (void)state;
    mdot_job *before = use_resnet();
    sl_submission s = on_a100;
    sl_decision d = decides(&site, "batch=64,steps=100000", &s);
    if (!d.has_priority) fail_msg("%s", d.comment);
    assert_true(d.limit_minutes > 0);
    assert_int_equal(d.priority, sl_priority(&site, d.total_s, d.limit_minutes, 1, 1));
    sl_decision brief = decides(&site, "batch=64,steps=1", &s);
    assert_true(brief.has_priority);
    assert_true(brief.limit_minutes <= 6); /* the startup, and then the job ends */
    s.own_minutes = 3 * 1440;              /* the same claim, and three days of one's own */
    sl_decision lie = decides(&site, "batch=64,steps=1", &s);
    assert_int_equal(lie.limit_minutes, 0);
    assert_int_equal(lie.priority, sl_priority(&site, 0, 3 * 1440, 1, 1));
    assert_true(lie.priority < d.priority);
    s.own_minutes = SL_UNLIMITED;
    assert_false(decides(&site, "batch=64,steps=1", &s).has_priority);
    s = on_a100;
    s.understatement = 100;
    assert_true(decides(&site, "batch=64,steps=1", &s).priority < brief.priority);
    use_again(before);
}

static void doubtful_and_cpu_only_requests_get_no_priority(void **state)
{
    (void)state;
    assert_false(decides(&site, "batch=1048576,steps=100", &on_a100).has_priority);  /* outside of the training data */
    assert_false(decides(&site, "batch=16777216,steps=100", &on_a100).has_priority); /* exceeds the memory */
    sl_submission without_gpu = ON(.partitions = "a100");
    assert_false(decides(&site, "steps=100", &without_gpu).has_priority);
    assert_true(decides(&site, "steps=100", &without_gpu).limit_minutes > 0);
    sl_site by_service = site;
    by_service.order = SL_ORDER_SERVICE;
    sl_submission exclusive = on_a100;
    exclusive.is_exclusive = true; /* eight GPUs of a node */
    mdot_job *before = use_resnet();
    sl_decision d = decides(&by_service, "batch=64,steps=100", &exclusive);
    assert_int_equal(d.priority, sl_priority(&by_service, d.total_s, d.limit_minutes, 8, 1));
    assert_true(d.has_priority);
    exclusive.nodes = 2; /* with eight GPUs each */
    d = decides(&by_service, "batch=64,steps=100", &exclusive);
    assert_int_equal(d.priority, sl_priority(&by_service, d.total_s, d.limit_minutes, 16, 1));
    use_again(before);
}

static void places_that_may_refuse_the_job_are_not_chosen(void **state)
{
    (void)state;
    sl_site by_time = site;
    by_time.choice = SL_CHOOSE_TIME;
    sl_submission two = ON(.partitions = "a100,h100", .per_node = "gres:gpu:1");
    sl_partition *h100 = &cluster.partitions[2], before = *h100;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "h100");
    assert_true(decides(&by_time, "steps=100", &two).is_chosen);
    h100->is_up = false;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    *h100 = before;
    two.deadline_s = 1e9; /* its default limit may be longer than that of the other, and meet the deadline */
    assert_false(decides(&by_time, "steps=100", &two).is_chosen);
    two.deadline_s = 0;
    h100->reserved_s = 1e9;
    assert_false(decides(&by_time, "steps=100", &two).is_chosen);
    *h100 = before;
    two.is_constrained = true;
    assert_false(decides(&by_time, "steps=100", &two).is_chosen);
    two.is_constrained = false;
    two.cpus_per_node = 65;
    h100->least_cpus = 65;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "h100");
    two.memory_mib = 256001;
    assert_false(decides(&by_time, "steps=100", &two).is_chosen); /* nowhere */
    two.cpus_per_node = 0, two.memory_mib = 0;
    *h100 = before;
    cluster.enforces_limits = true; /* without associations: unknown */
    assert_false(decides(&by_time, "steps=100", &two).is_chosen);
    cluster.enforces_limits = false;
    h100->is_open = false; /* some users lose a partition if another is chosen, some if this one is */
    assert_false(decides(&by_time, "steps=100", &two).is_chosen);
    *h100 = before;
    two.own_minutes = 100;
    h100->most_minutes = 99;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    *h100 = before;
    two.own_minutes = 0;
    h100->most_minutes = 5; /* less than the default limit, which Slurm refuses there */
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    *h100 = before;
    two.least_minutes = 100;
    h100->most_minutes = 99;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    *h100 = before;
    two.least_minutes = 0;
    h100->gpus[0].nodes = 0;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    *h100 = before;
    two.partitions = "a100,h100,cpu"; /* without a line in mdot.conf */
    assert_false(decides(&by_time, "steps=100", &two).is_chosen);
    two.cluster = NULL;
    two.partitions = "a100,h100";
    assert_false(decides(&by_time, "steps=100", &two).is_chosen);
    assert_int_equal(decides(&by_time, "steps=100", &two).limit_minutes, 0);
}

static void a_place_is_chosen_if_nodes_minutes_and_gpus_just_suffice(void **state)
{
    (void)state;
    sl_site by_time = site;
    by_time.choice = SL_CHOOSE_TIME;
    sl_submission two = ON(.partitions = "a100,h100", .per_node = "gres:gpu:4", .nodes = 2);
    sl_partition *h100 = &cluster.partitions[2], before = *h100;
    h100->least_nodes = h100->most_nodes = 2;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "h100");
    h100->least_nodes = 3;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    *h100 = before;
    h100->most_nodes = 1;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    *h100 = before;
    two.own_minutes = two.least_minutes = 1; /* less than the default limit, which exceeds MaxTime */
    h100->most_minutes = 1;
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "h100");
    *h100 = before;
    two.own_minutes = two.least_minutes = 0;
    h100->most_minutes = 7; /* the default limit */
    h100->gpus[0] = (sl_node_gpus){"", 2, 4, 8};
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "h100");
    h100->gpus[0] = (sl_node_gpus){"", 1, 8, 8};
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    h100->gpus[0] = (sl_node_gpus){"", 2, 4, 7};
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    h100->gpus[0] = (sl_node_gpus){"", 3, 3, 9};
    assert_string_equal(decides(&by_time, "steps=100", &two).place.partition, "a100");
    *h100 = before;
}

static void a_place_needs_gpus_of_its_own_type(void **state)
{
    (void)state;
    sl_site by_time = site;
    by_time.choice = SL_CHOOSE_TIME;
    sl_node_gpus *h100 = &cluster.partitions[3].gpus[1], before = *h100;
    assert_string_equal(decides(&by_time, "steps=100", &on_mixed).place.type, "h100");
    h100->nodes = 0;
    assert_string_equal(decides(&by_time, "steps=100", &on_mixed).place.type, "v100");
    *h100 = before;
}

static void a_partition_without_a_line_in_the_site_file_stays_in_the_list(void **state)
{
    (void)state;
    sl_site by_time = site;
    by_time.choice = SL_CHOOSE_TIME;
    sl_submission three = ON(.partitions = "a100,h100,cpu", .per_node = "gres:gpu:1");
    cluster.partitions[cluster.partition_count++] = (sl_partition){OPEN("cpu")};
    assert_false(decides(&by_time, "steps=100", &three).is_chosen);
    three.partitions = "a100,h100";
    assert_true(decides(&by_time, "steps=100", &three).is_chosen);
    cluster.partition_count--;
}

static void an_exclusive_job_has_no_priority_by_service_while_its_gpus_are_unknown(void **state)
{
    (void)state;
    sl_site by_service = site;
    by_service.order = SL_ORDER_SERVICE;
    sl_submission exclusive = ON(.partitions = "a100", .per_node = "gres:gpu:2", .is_exclusive = true);
    sl_partition *a100 = &cluster.partitions[0], before = *a100;
    mdot_job *small = use_resnet();
    assert_true(decides(&by_service, "batch=64,steps=100", &exclusive).has_priority);
    a100->gpus[0].per_node = 1; /* the snapshot has fewer than the job asks for */
    sl_decision d = decides(&by_service, "batch=64,steps=100", &exclusive);
    assert_int_equal(d.priority, sl_priority(&by_service, d.total_s, d.limit_minutes, 2, 1));
    a100->type_count = 0;
    d = decides(&by_service, "batch=64,steps=100", &exclusive);
    assert_true(d.limit_minutes > 0);
    assert_false(d.has_priority);
    *a100 = before;
    use_again(small);
}

static void the_comment_has_the_times_of_all_steps_and_their_cost(void **state)
{
    (void)state;
    char text[128];
    mdot_prediction p = predict("A100-SXM-40GB", 1, 32, MDOT_OPTIMIZER_SGD);
    sl_decision d = decides(&site, "batch=32,optimizer=sgd,steps=2000", &on_a100);
    snprintf(text, sizeof text, " steps=2000 total_s=%.1f interval_s=%.1f..%.1f ", 2 * p.step_ms, 2 * p.lower_ms,
             2 * p.upper_ms);
    expect_contains(d.comment, text);
    snprintf(text, sizeof text, " cost=%.4g ", 2 * p.step_ms / 3600);
    expect_contains(d.comment, text);
    snprintf(text, sizeof text, " memory_gib=%.3g fits=yes", (double)p.peak_memory_bytes / (1 << 30));
    expect_contains(d.comment, text);
    assert_null(strstr(decides(&site, "batch=32,optimizer=sgd", &on_a100).comment, "cost="));
    sl_site free_of_charge = site;
    free_of_charge.places[0].price = 0;
    assert_null(strstr(decides(&free_of_charge, "batch=32,optimizer=sgd,steps=2000", &on_a100).comment, "cost="));
}

static void jobs_of_many_operators_are_refused_before_the_prediction(void **state)
{
    (void)state;
    sl_site small = site;
    sl_decision d;
    mdot_error err = {0};
    small.most_work = 11;
    assert_int_equal(decide(&small, "", &on_a100, &d, &err), MDOT_OUT_OF_RANGE);
    expect_contains(err.message, "MaxOperators=11");
    small.most_work = 12;
    assert_int_equal(decide(&small, "", &on_a100, &d, &err), MDOT_OK);
    assert_int_equal(decide(&small, "", &on_mixed, &d, &err), MDOT_OUT_OF_RANGE); /* two places */
    assert_int_not_equal(decide(&site, "tp=65536,pp=65536", &on_a100, &d, &err), MDOT_OK);
}

static void wrong_requests_give_a_reason(void **state)
{
    (void)state;
    sl_decision d = {.limit_minutes = 7};
    mdot_error err = {0};
    sl_submission mixed = {.partitions = "mixed", .per_node = "gres:gpu:v100:1,gres:gpu:h100:1"};
    assert_int_equal(decide(&site, "", &mixed, &d, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "several types");
    sl_submission many = {.partitions = "a100", .per_node = "gres:gpu:65537"};
    assert_int_equal(decide(&site, "", &many, &d, &err), MDOT_INVALID_ARGUMENT);
    sl_submission three = {.partitions = "a100", .per_node = "gres:gpu:3"};
    assert_int_equal(decide(&site, "tp=2", &three, &d, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(d.limit_minutes, 7);
}

static void calibration_corrects_decisions(void **state)
{
    (void)state;
    enum { ROWS = 4 };
    const mdot_job *jobs[ROWS];
    mdot_configuration configurations[ROWS];
    double measured_ms[ROWS];
    sl_decision before = decides(&site, "batch=32,optimizer=sgd,precision=fp32,steps=1000000", &on_a100);
    for (int i = 0; i < ROWS; i++) {
        jobs[i] = job;
        configurations[i] =
            (mdot_configuration){.struct_size = sizeof configurations[i], .batch = 32 << i, .gpu = "A100-SXM-40GB"};
        mdot_prediction p = MDOT_INIT(mdot_prediction);
        assert_int_equal(mdot_predict(context, job, &configurations[i], &p, NULL), MDOT_OK);
        measured_ms[i] = 2 * p.step_ms;
    }
    mdot_error err = {0};
    if (mdot_calibrate(context, jobs, configurations, measured_ms, ROWS, &calibration, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    mdot_prediction wanted = MDOT_INIT(mdot_prediction);
    mdot_configuration requested = configurations[0];
    requested.gpu_count = 1;
    requested.node_count = 1;
    assert_int_equal(mdot_predict(context, job, &requested, &wanted, NULL), MDOT_OK);
    assert_int_equal(mdot_calibration_apply_to_job(calibration, job, &requested, &wanted, NULL), MDOT_OK);
    sl_decision after = decides(&site, "batch=32,optimizer=sgd,precision=fp32,steps=1000000", &on_a100);
    mdot_calibration_destroy(calibration);
    calibration = NULL;
    expect_number(after.step_ms, wanted.step_ms);
    assert_true(after.step_ms > 1.2 * before.step_ms);
    assert_int_equal(after.limit_minutes, (uint32_t)ceil((1e3 * wanted.upper_ms * 1.5 + 300) / 60));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_interpolate_the_interval),
        cmocka_unit_test(the_limit_adds_margin_and_startup_to_the_quantile),
        cmocka_unit_test(a_limit_stays_within_the_partitions_limit),
        cmocka_unit_test(no_limit_is_set_without_steps_or_with_warnings),
        cmocka_unit_test(five_warnings_make_a_prediction_doubtful),
        cmocka_unit_test(omitted_settings_come_from_the_job),
        cmocka_unit_test(gpus_are_counted_from_slurm_requests),
        cmocka_unit_test(the_best_partition_is_chosen),
        cmocka_unit_test(the_slowest_of_the_most_places_decides),
        cmocka_unit_test(partitions_without_enough_memory_are_skipped),
        cmocka_unit_test(an_omitted_partition_means_the_default),
        cmocka_unit_test(priority_falls_with_the_logarithm_of_what_binds),
        cmocka_unit_test(priority_counts_the_limit_that_ends_the_job),
        cmocka_unit_test(doubtful_and_cpu_only_requests_get_no_priority),
        cmocka_unit_test(places_that_may_refuse_the_job_are_not_chosen),
        cmocka_unit_test(a_place_is_chosen_if_nodes_minutes_and_gpus_just_suffice),
        cmocka_unit_test(a_place_needs_gpus_of_its_own_type),
        cmocka_unit_test(a_partition_without_a_line_in_the_site_file_stays_in_the_list),
        cmocka_unit_test(an_exclusive_job_has_no_priority_by_service_while_its_gpus_are_unknown),
        cmocka_unit_test(the_comment_has_the_times_of_all_steps_and_their_cost),
        cmocka_unit_test(jobs_of_many_operators_are_refused_before_the_prediction),
        cmocka_unit_test(wrong_requests_give_a_reason),
        cmocka_unit_test(calibration_corrects_decisions),
    };
    return cmocka_run_group_tests(tests, decision_set_up, decision_tear_down);
}
