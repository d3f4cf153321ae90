/* test_op_cost.c — operator costs, and bytes saved by fusion, compared with sums made by hand. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A cost has 64 times the bytes of a sample and once those of a step. 32 FLOPs cost as much as a byte. */
static void costs_are_bytes_of_a_batch(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * MDOT_PHASE_COUNT; i++) {
        for (int part = 0; part < 3; part++) {
            network n = {0};
            mdot_job_operator *op = network_add(&n, "Relu", 0, "");
            op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){0};
            mdot_load *load = i < MDOT_PHASE_COUNT ? &op->per_sample[i] : &op->per_step[i - MDOT_PHASE_COUNT];
            if (part == 0) load->flops = 320;
            if (part == 1) load->bytes_read = 700;
            if (part == 2) load->bytes_written = 900;
            mdot_job *job = predict_make_job(n.operators, n.count);
            double bytes = part == 0 ? 10 : part == 1 ? 700 : 900;
            assert_compare(job->analysis->op_costs.cost[0], ==, bytes * (i < MDOT_PHASE_COUNT ? 64 : 1));
            mdot_job_destroy(job);
        }
    }
    network n = {0};
    mdot_job_operator *op = network_add(&n, "Relu", 0, "");
    op->per_sample[MDOT_PHASE_FORWARD] = (mdot_load){32, 20, 300};
    op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){64, 4000, 0};
    op->per_step[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){96, 50000, 600000};
    mdot_job *job = predict_make_job(n.operators, n.count);
    assert_compare(job->analysis->op_costs.cost[0], ==, 64 * (1 + 20 + 300 + 2 + 4000) + 3 + 50000 + 600000);
    mdot_job_destroy(job);
}

/* A fused operand saves the write and the only reader's read. Matmuls, look-ups, unknown operators and operands with
 * two readers are not fused. */
static void fusing_saves_a_write_and_a_read(void **state)
{
    (void)state;
    static const struct {
        const char *operand, *reader;
        bool operand_known, reader_known, has_second_reader;
        double saved;
    } cases[] = {{"Relu", "Sigmoid", true, true, false, 2000}, {"Relu", "Sigmoid", true, true, true, 0},
                 {"Linear", "Sigmoid", true, true, false, 0},  {"Relu", "Linear", true, true, false, 0},
                 {"Gather", "Sigmoid", true, true, false, 0},  {"Relu", "Gather", true, true, false, 0},
                 {"Relu", "Sigmoid", false, true, false, 0},   {"Relu", "Sigmoid", true, false, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        network n = {0};
        network_add(&n, cases[i].operand, 0, "")->known = cases[i].operand_known;
        network_add(&n, cases[i].reader, 0, "0")->known = cases[i].reader_known;
        network_add(&n, "Linear", 10, cases[i].has_second_reader ? "0,1" : "1");
        mdot_job *job = predict_make_job(n.operators, n.count);
        const rt_fusing *fusing = job->analysis->op_costs.fusing;
        if (fusing[0].saved != cases[i].saved || fusing[1].saved != 0 || fusing[2].saved != 0)
            fail_msg("case %zu: %g", i, fusing[0].saved);
        mdot_job_destroy(job);
    }
}

/* Each operand of a reader is considered. */
static void all_operands_of_a_reader_are_fused(void **state)
{
    (void)state;
    network n = {0};
    network_add(&n, "Relu", 0, "")->per_sample[MDOT_PHASE_FORWARD].bytes_written = 10;
    network_add(&n, "Linear", 10, "");
    network_add(&n, "Relu", 0, "")->per_sample[MDOT_PHASE_FORWARD].bytes_written = 30;
    network_add(&n, "Add", 0, "0,1,2");
    mdot_job *job = predict_make_job(n.operators, n.count);
    const rt_fusing *fusing = job->analysis->op_costs.fusing;
    assert_compare(fusing[0].saved, ==, 20);
    assert_compare(fusing[1].saved, ==, 0);
    assert_compare(fusing[2].saved, ==, 60);
    assert_compare(fusing[3].saved, ==, 0);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(costs_are_bytes_of_a_batch),
        cmocka_unit_test(fusing_saves_a_write_and_a_read),
        cmocka_unit_test(all_operands_of_a_reader_are_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
