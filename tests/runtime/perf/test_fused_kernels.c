/* test_fused_kernels.c — the traffic of fused kernels, compared with tensors counted by hand. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "tests/support/assertions.h"
#include "tests/support/network_fixture.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { TENSOR = 1000 };

/* Tensors moved forward and backward by all operators outside matmuls. */
static void assert_tensors(network *n, double forward, double backward)
{
    mdot_job *job = predict_make_job(n->operators, n->count);
    double sums[2] = {0};
    for (size_t i = 0; i < n->count; i++) {
        if (job->operators[i].traits.autocast == MDOT_AUTOCAST_HALF) continue;
        sums[0] += job->analysis->op_costs.fusing[i].forward;
        sums[1] += job->analysis->op_costs.fusing[i].backward;
    }
    mdot_job_destroy(job);
    assert_compare(sums[0], ==, forward * TENSOR);
    assert_compare(sums[1], ==, backward * TENSOR);
}

/* A chain between two matmuls reads one tensor and writes one, whatever its length; backward, it reads the tensor and a
 * gradient, and writes a gradient. */
static void chains_move_their_ends(void **state)
{
    (void)state;
    for (int length = 1; length <= 6; length++) {
        static const char *const previous[] = {"0", "1", "2", "3", "4", "5", "6"};
        network n = {0};
        network_add_matmul(&n, 64, 64, "");
        for (int i = 0; i < length; i++) network_add(&n, i % 2 ? "Sigmoid" : "Relu", 0, previous[i]);
        network_add_matmul(&n, 64, 64, previous[length]);
        assert_tensors(&n, 2, 3);
    }
}

/* Operators of one kernel read a tensor of another kernel once, and views cost nothing. */
static void a_kernel_reads_a_tensor_once(void **state)
{
    (void)state;
    network n = {0};
    network_add_matmul(&n, 64, 64, "");
    network_add(&n, "Transpose", 0, "0");
    network_add(&n, "Relu", 0, "1");
    network_add(&n, "Sigmoid", 0, "1");
    network_add(&n, "Add", 0, "2,3");
    network_add_matmul(&n, 64, 64, "4");
    assert_tensors(&n, 2, 3);
}

/* A residual stream is written for the kernel behind the next matmul, and each matmul that reads a tensor returns a
 * gradient. */
static void tensors_of_other_kernels_are_written(void **state)
{
    (void)state;
    network n = {0};
    network_add_matmul(&n, 64, 64, "");
    network_add(&n, "Relu", 0, "0"); /* kernel 1 reads 0, writes 1 */
    network_add_matmul(&n, 64, 64, "1");
    network_add_matmul(&n, 64, 64, "1");
    network_add(&n, "Add", 0, "1,2"); /* kernel 2 reads 1 and 2, writes 4 */
    network_add_matmul(&n, 64, 64, "4");
    /* backward: kernel 1 reads 0 and three gradients, writes one; kernel 2 reads 1, 2 and a gradient, writes two */
    assert_tensors(&n, 5, 5 + 5);
}

/* A look-up runs alone, and its table's gradient counts. */
static void look_ups_are_not_fused(void **state)
{
    (void)state;
    network n = {0};
    mdot_job_operator *gather = network_add(&n, "Gather", 10, "");
    gather->per_sample[MDOT_PHASE_FORWARD].bytes_read = TENSOR;
    gather->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_read = TENSOR;
    network_add(&n, "Relu", 0, "0");
    network_add_matmul(&n, 64, 64, "1");
    assert_tensors(&n, 4, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_move_their_ends),
        cmocka_unit_test(a_kernel_reads_a_tensor_once),
        cmocka_unit_test(tensors_of_other_kernels_are_written),
        cmocka_unit_test(look_ups_are_not_fused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
