/* store_fixture.c — see store_fixture.h. */
#include "tests/store/support/store_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_OPERATORS = 3 };

mdot_job *store_fixture_job(size_t operators, int64_t batch)
{
    static const uint32_t inputs[MOST_OPERATORS] = {0, 1, 2};
    mdot_job_operator list[MOST_OPERATORS];
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_true(operators <= MOST_OPERATORS);
    for (size_t i = 0; i < operators; i++) {
        list[i] = MDOT_INIT(mdot_job_operator);
        list[i].type = "Linear";
        list[i].known = true;
        list[i].parameters = 1000;
        list[i].setting[MDOT_SETTING_CHANNELS_IN] = 10;
        list[i].setting[MDOT_SETTING_CHANNELS_OUT] = 100;
        list[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){2000, 40, 400};
        list[i].per_sample[MDOT_PHASE_DATA_GRADIENT] = (mdot_load){2000, 400, 40};
        list[i].per_sample[MDOT_PHASE_WEIGHT_GRADIENT] = (mdot_load){2000, 440, 0};
        list[i].per_step[MDOT_PHASE_FORWARD] = (mdot_load){0, 4000, 0};
        list[i].input_count = i > 0;
        list[i].inputs = i > 0 ? &inputs[i - 1] : NULL;
    }
    mdot_job_description d = {.struct_size = sizeof d, .operators = list, .operator_count = operators, .batch = batch};
    store_expect_ok(mdot_job_create(&d, &job, &err), &err);
    return job;
}

int store_fixture_set_up(void **state)
{
    store_fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->folder = process_make_folder();
    f->path = process_in_folder(f->folder, "test.store");
    f->job = store_fixture_job(2, 1);
    f->other = store_fixture_job(3, 1);
    store_expect_ok(mdot_store_open(f->path, NULL, &f->store, &f->err), &f->err);
    store_expect_ok(mdot_store_add_job(f->store, f->job, "two.onnx", f->digest, &f->err), &f->err);
    store_expect_ok(mdot_store_add_job(f->store, f->other, "three.onnx", f->other_digest, &f->err), &f->err);
    *state = f;
    return 0;
}

int store_fixture_tear_down(void **state)
{
    store_fixture *f = *state;
    mdot_store_close(f->store);
    mdot_job_destroy(f->job);
    mdot_job_destroy(f->other);
    free(f->path);
    process_remove_folder(f->folder);
    free(f);
    return 0;
}

mdot_store_row store_fixture_row(const store_fixture *f, double ms)
{
    return (mdot_store_row){.struct_size = sizeof(mdot_store_row),
                            .digest = f->digest,
                            .job = "two.onnx",
                            .gpu = "A100",
                            .batch = 32,
                            .ms = ms,
                            .settings = "precision=amp"};
}

void store_fixture_add(store_fixture *f, mdot_store_row row)
{
    size_t added = 0;
    store_expect_ok(mdot_store_add_rows(f->store, &row, 1, &added, &f->err), &f->err);
    assert_int_equal(added, 1);
}

void store_expect_ok(mdot_status status, const mdot_error *err)
{
    if (status != MDOT_OK) fail_msg("%s: %s", mdot_status_name(status), err->message);
}

void store_expect_failure(mdot_status status, const mdot_error *err, mdot_status wanted, const char *part)
{
    if (status != wanted)
        fail_msg("%s instead of %s: %s", mdot_status_name(status), mdot_status_name(wanted), err->message);
    expect_contains(err->message, part);
}

void store_expect_missing(mdot_status status, mdot_error *err)
{
    if (status != MDOT_INVALID_ARGUMENT || strstr(err->message, "missing") == NULL)
        fail_msg("%s: %s", mdot_status_name(status), err->message);
    *err = (mdot_error){0};
}

mdot_store_info store_count(mdot_store *store)
{
    mdot_store_info info = MDOT_INIT(mdot_store_info);
    mdot_error err = {0};
    store_expect_ok(mdot_store_get_info(store, &info, &err), &err);
    return info;
}
