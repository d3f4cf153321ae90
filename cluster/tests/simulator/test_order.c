/* test_order.c — the job treap, compared with a list sorted by brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "simulator/core/job_order.h"
#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"

enum { JOBS = 60 };

typedef struct list {
    uint32_t job[JOBS];
    double key[JOBS];
    size_t count;
} list;

static void list_remove(list *l, uint32_t job)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (l->job[i] == job) continue;
        l->job[kept] = l->job[i];
        l->key[kept++] = l->key[i];
    }
    l->count = kept;
}

static void list_put(list *l, uint32_t job, double key, bool is_last)
{
    size_t position = 0;
    list_remove(l, job);
    while (position < l->count && (l->key[position] < key || (is_last && l->key[position] == key))) position++;
    memmove(&l->job[position + 1], &l->job[position], (l->count - position) * sizeof l->job[0]);
    memmove(&l->key[position + 1], &l->key[position], (l->count - position) * sizeof l->key[0]);
    l->job[position] = job;
    l->key[position] = key;
    l->count++;
}

static void expect_equal(const sc_order *order, const list *l, const sc_workload *workload, int gpus)
{
    uint32_t job = SC_NONE;
    assert_int_equal(sc_order_count(order), l->count);
    for (size_t i = 0; i < l->count; i++) {
        if (workload->jobs[l->job[i]].gpus > gpus) continue;
        job = sc_order_next(order, job, gpus);
        assert_int_equal(job, l->job[i]);
        expect_number(sc_order_key(order, job), l->key[i]);
    }
    assert_int_equal(sc_order_next(order, job, gpus), SC_NONE);
}

static void an_order_matches_a_sorted_list(void **state)
{
    (void)state;
    sc_workload workload = workload_random(JOBS, 5, 3);
    sc_order *order;
    list l = {0};
    uint64_t random = 7;
    assert_int_equal(sc_order_create(&workload, &order, NULL), MDOT_OK);
    for (int step = 0; step < 4000; step++) {
        uint32_t job = (uint32_t)(sc_random_next(&random) % JOBS);
        double key = (double)(sc_random_next(&random) % 7);
        switch (sc_random_next(&random) % 3) {
        case 0:
            sc_order_put_last(order, job, key);
            list_put(&l, job, key, true);
            break;
        case 1:
            sc_order_put_first(order, job, key);
            list_put(&l, job, key, false);
            break;
        default: sc_order_remove(order, job); list_remove(&l, job);
        }
        expect_equal(order, &l, &workload, 1 + step % 5);
    }
    free(order);
    sc_workload_free(&workload);
}

/* The keys of some jobs all shrink or all grow, by so little that many become equal. */
static void settling_an_order_sorts_stably(void **state)
{
    (void)state;
    sc_workload workload = workload_random(JOBS, 5, 3);
    sc_order *order;
    list l = {0};
    uint64_t random = 11;
    assert_int_equal(sc_order_create(&workload, &order, NULL), MDOT_OK);
    for (uint32_t job = 0; job < JOBS; job++) {
        double key = (double)(sc_random_next(&random) % 20);
        sc_order_put_last(order, job, key);
        list_put(&l, job, key, true);
    }
    for (int step = 0; step < 300; step++) {
        double direction = step / 20 % 2 == 0 ? -1 : 1;
        uint32_t jobs[8];
        double keys[8];
        size_t count = 0;
        for (size_t i = 0; i < JOBS && count < 8; i++) {
            if (sc_random_next(&random) % 6 != 0) continue;
            jobs[count] = l.job[i];
            keys[count++] = l.key[i] += direction * (double)(sc_random_next(&random) % 4);
        }
        if (count > 1) { /* the order of the arguments is irrelevant */
            uint32_t job = jobs[0];
            double key = keys[0];
            jobs[0] = jobs[count - 1];
            keys[0] = keys[count - 1];
            jobs[count - 1] = job;
            keys[count - 1] = key;
        }
        sc_order_settle(order, jobs, keys, count);
        for (size_t i = 1; i < JOBS; i++) {
            uint32_t job = l.job[i];
            double key = l.key[i];
            size_t j = i;
            for (; j > 0 && l.key[j - 1] > key; j--) {
                l.job[j] = l.job[j - 1];
                l.key[j] = l.key[j - 1];
            }
            l.job[j] = job;
            l.key[j] = key;
        }
        expect_equal(order, &l, &workload, 5);
    }
    free(order);
    sc_workload_free(&workload);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_matches_a_sorted_list),
        cmocka_unit_test(settling_an_order_sorts_stably),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
