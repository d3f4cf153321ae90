/* shard.c — see shard.h. */
#include "tests/support/shard.h"

#include <stdio.h>
#include <stdlib.h>

bool shard_has(const char *shard, size_t index)
{
    unsigned long number, count;
    if (shard == NULL) return true;
    if (sscanf(shard, "%lu/%lu", &number, &count) != 2 || number < 1 || number > count) {
        fprintf(stderr, "MDOT_TEST_SHARD is \"%s\"; the form is 2/3\n", shard);
        exit(2);
    }
    return index % count == number - 1;
}

int shard_run(const char *group, const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
              CMFixtureFunction teardown)
{
    const char *shard = getenv("MDOT_TEST_SHARD");
    struct CMUnitTest *chosen = calloc(count, sizeof *chosen);
    size_t chosen_count = 0;
    if (chosen == NULL) return 2;
    for (size_t i = 0; i < count; i++)
        if (shard_has(shard, i)) chosen[chosen_count++] = tests[i];
    int failed = _cmocka_run_group_tests(group, chosen, chosen_count, setup, teardown);
    free(chosen);
    return failed;
}
