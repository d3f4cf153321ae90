/* shard.h — runs a part of a program's test cases, so a long program becomes several ctest entries.
 *
 * tests/mdot_test.cmake registers such a program once for each shard and sets MDOT_TEST_SHARD, for example "2/3": the
 * second of three shards runs the cases 2, 5, 8 and so on. Together the shards run every case once, and a new case
 * joins a shard automatically. Without the variable all cases run. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

/* Does the item number `index`, from 0 on, belong to the shard `shard` ("2/3")? Every item does if it is NULL. */
bool shard_has(const char *shard, size_t index);

/* As cmocka_run_group_tests. */
#define shard_run_group_tests(tests, setup, teardown)                                                                  \
    shard_run(#tests, tests, sizeof(tests) / sizeof(tests)[0], setup, teardown)
int shard_run(const char *group, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
              CMFixtureFunction teardown);
