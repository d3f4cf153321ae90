/* store_fixture.h — a store in a temporary folder, with two small jobs. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include "mdot/mdot_store.h"

typedef struct store_fixture {
    char *folder, *path;
    mdot_store *store;
    mdot_job *job, *other; /* two operators, and three */
    char digest[MDOT_STORE_DIGEST_BYTES], other_digest[MDOT_STORE_DIGEST_BYTES];
    mdot_error err;
} store_fixture;

/* For cmocka: *state becomes a store_fixture, whose store is open and has both jobs. */
int store_fixture_set_up(void **state);
int store_fixture_tear_down(void **state);

/* A job of `operators` linears at this batch. */
mdot_job *store_fixture_job(size_t operators, int64_t batch);

/* A row of the first job on an A100, with this time. */
mdot_store_row store_fixture_row(const store_fixture *f, double ms);
/* Adds one row and expects success. */
void store_fixture_add(store_fixture *f, mdot_store_row row);

/* Fails with the error's message unless the status is MDOT_OK. */
void store_expect_ok(mdot_status status, const mdot_error *err);
/* Expects a failure whose message has a part. */
void store_expect_failure(mdot_status status, const mdot_error *err, mdot_status wanted, const char *part);

/* Expects INVALID_ARGUMENT with a message that something is missing. */
void store_expect_missing(mdot_status status, mdot_error *err);

/* Row count, jobs and outcomes in a store. */
mdot_store_info store_count(mdot_store *store);

#endif
