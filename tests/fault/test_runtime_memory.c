/* test_runtime_memory.c — memory that runs out during open and create. The limit rises by one allocation until
 * everything succeeds, so every exit path runs. Each failure must be clean and free all allocations. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MORE_THAN_ENOUGH = 100, MAX_BLOCKS = 16 };

/* Grants `limit` allocations and counts those that are live. */
typedef struct ledger {
    int limit, granted, refused, live;
    void *block[MAX_BLOCKS];
} ledger;

static void *take(void *user, size_t bytes, size_t alignment)
{
    ledger *l = user;
    assert_compare(bytes, >, 0);
    assert_int_equal(alignment, MDOT_ABI_ALIGNMENT);
    if (l->granted >= l->limit) {
        l->refused++;
        return NULL;
    }
    assert_compare(l->live, <, MAX_BLOCKS);
    void *memory = aligned_alloc(alignment, bytes);
    assert_non_null(memory);
    memset(memory, 0xA5, bytes); /* fresh memory may contain anything */
    l->granted++;
    l->block[l->live++] = memory;
    return memory;
}

static void give_back(void *user, void *memory)
{
    ledger *l = user;
    for (int i = 0; i < l->live; i++) {
        if (l->block[i] != memory) continue;
        l->block[i] = l->block[--l->live];
        free(memory);
        return;
    }
    fail_msg("released what was not allocated");
}

static mdot_status open_and_create(const char *path, ledger *l, mdot_error *err)
{
    mdot_open_options options = {.struct_size = sizeof options, .allocate = take, .release = give_back, .user = l};
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_status status = mdot_predictor_open(path, &options, &predictor, err);
    if (status != MDOT_OK) {
        assert_null(predictor);
        return status;
    }
    status = mdot_context_create(predictor, &context, err);
    if (status != MDOT_OK) assert_null(context);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status;
}

static void every_refused_allocation_is_a_clean_failure(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) skip();
    fixture f;
    fixture_open(&f);
    char *path = fixture_save(&f, f.bytes, f.size_bytes);
    mdot_status status = MDOT_OUT_OF_MEMORY;
    int limit = 0;
    for (; status != MDOT_OK && limit < MORE_THAN_ENOUGH; limit++) {
        ledger l = {.limit = limit};
        mdot_error err = {0};
        status = open_and_create(path, &l, &err);
        assert_int_equal(l.live, 0);
        if (status == MDOT_OK) {
            assert_int_equal(l.granted, limit);
            assert_int_equal(l.refused, 0);
            continue;
        }
        assert_int_equal(status, MDOT_OUT_OF_MEMORY);
        assert_int_equal(err.status, MDOT_OUT_OF_MEMORY);
        assert_compare(err.message[0], !=, '\0');
        assert_compare(l.refused, >, 0);
    }
    assert_int_equal(status, MDOT_OK);
    assert_compare(limit, >, 2); /* the allocations of a predictor and a context, at least, were refused before */
    free(path);
    fixture_close(&f);
}

static void damaged_file_releases_its_memory(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    f.bytes[f.table_at + 100] ^= 1;
    char *path = fixture_save(&f, f.bytes, f.size_bytes);
    ledger l = {.limit = MORE_THAN_ENOUGH};
    assert_int_equal(open_and_create(path, &l, NULL), MDOT_CORRUPT);
    assert_int_equal(l.live, 0);
    free(path);
    fixture_close(&f);
}

/* The size of the scratch memory exceeds every machine. The request itself must fail, and computing the size must not
 * overflow. */
static void impossible_scratch_memory_is_out_of_memory(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) skip();
    fixture f;
    fixture_open(&f);
    for (int i = 0; i < FIXTURE_LEVELS; i++) fixture_table_of(&f)->function[i][1].scratch_bytes = UINT64_MAX / 4;
    fixture_seal(&f);
    char *path = fixture_save(&f, f.bytes, f.size_bytes);
    ledger l = {.limit = 2}; /* the predictor, and the first of the context's two allocations */
    assert_int_equal(open_and_create(path, &l, NULL), MDOT_OUT_OF_MEMORY);
    assert_int_equal(l.live, 0);
    free(path);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_refused_allocation_is_a_clean_failure),
        cmocka_unit_test(damaged_file_releases_its_memory),
        cmocka_unit_test(impossible_scratch_memory_is_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
