/* store_operations.h — one call of each function of the store. */
#ifndef TESTS_STORE_OPERATIONS_H
#define TESTS_STORE_OPERATIONS_H

#include "tests/store/support/store_fixture.h"

typedef struct store_operation {
    const char *name;
    mdot_status (*run)(store_fixture *f, mdot_error *err);
    bool has_own_connection;
} store_operation;

enum { STORE_OPERATIONS = 22, STORE_READERS = 11 /* the first ones */ };
extern const store_operation store_operations[STORE_OPERATIONS];

/* A hash over all values that a call answered. */
extern uint64_t store_answer;

/* Operations for which tests prepare something. */
mdot_status store_try_add_job(store_fixture *f, mdot_error *err);
mdot_status store_try_import_row(store_fixture *f, mdot_error *err);
mdot_status store_try_refresh(store_fixture *f, mdot_error *err);
/* Recovers PATH.damaged into a new store, and removes that. */
mdot_status store_try_recover(store_fixture *f, mdot_error *err);
/* The numbers of records of all tables, as one number. */
int64_t store_count_records(store_fixture *f);

#endif
