/* linear.c — a linear program, built term by term and solved by CLP or CBC. */
#include "simulator/solve/linear.h"
#include "simulator/core/arrays.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef SC_HAVE_CLP
#include <Clp_C_Interface.h>
#endif
#ifdef SC_HAVE_CBC
#include <Cbc_C_Interface.h>
#endif

typedef struct term {
    size_t row, column;
    double value;
} term;

typedef struct range {
    double cost, lower, upper; /* rows have zero cost */
    bool is_integer;
} range;

struct sc_linear {
    range *rows, *columns;
    term *terms;
    size_t row_count, column_count, term_count;
    bool ran_out, has_integers;
};

mdot_status sc_linear_create(sc_linear **out_linear, mdot_error *err)
{
    sc_linear *linear = calloc(1, sizeof *linear);
    if (linear == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    *out_linear = linear;
    return MDOT_OK;
}

void sc_linear_destroy(sc_linear *linear)
{
    if (linear == NULL) return;
    free(linear->rows);
    free(linear->columns);
    free(linear->terms);
    free(linear);
}

static size_t add_range(sc_linear *linear, range **ranges, size_t *count, range added)
{
    if (linear->ran_out || *count > INT_MAX / 2 || !sc_grow(ranges, *count, sizeof **ranges)) {
        linear->ran_out = true;
        return 0;
    }
    (*ranges)[*count] = added;
    return (*count)++;
}

size_t sc_linear_add_column(sc_linear *linear, double cost, double lower, double upper)
{
    return add_range(linear, &linear->columns, &linear->column_count, (range){cost, lower, upper, false});
}

size_t sc_linear_add_integer_column(sc_linear *linear, double cost, double lower, double upper)
{
    linear->has_integers = true;
    return add_range(linear, &linear->columns, &linear->column_count, (range){cost, lower, upper, true});
}

size_t sc_linear_add_row(sc_linear *linear, double lower, double upper)
{
    return add_range(linear, &linear->rows, &linear->row_count, (range){0, lower, upper, false});
}

void sc_linear_add_term(sc_linear *linear, size_t row, size_t column, double value)
{
    if (linear->ran_out || linear->term_count > INT_MAX / 2 ||
        !sc_grow(&linear->terms, linear->term_count, sizeof *linear->terms)) {
        linear->ran_out = true;
        return;
    }
    linear->terms[linear->term_count++] = (term){row, column, value};
}

#ifdef SC_HAVE_CLP

bool sc_linear_is_available(void) { return true; }

/* Input of CLP: terms column by column, with bounds and costs in separate arrays. */
typedef struct arrays {
    int *start, *row;
    double *value, *column_lower, *column_upper, *cost, *row_lower, *row_upper;
} arrays;

static void free_arrays(arrays *a)
{
    free(a->start);
    free(a->row);
    free(a->value);
    free(a->column_lower);
    free(a->column_upper);
    free(a->cost);
    free(a->row_lower);
    free(a->row_upper);
}

static bool fill_arrays(const sc_linear *linear, arrays *a)
{
    size_t columns = linear->column_count, rows = linear->row_count, terms = linear->term_count;
    *a = (arrays){.start = calloc(columns + 2, sizeof *a->start),
                  .row = calloc(terms + 1, sizeof *a->row),
                  .value = calloc(terms + 1, sizeof *a->value),
                  .column_lower = calloc(columns + 1, sizeof *a->column_lower),
                  .column_upper = calloc(columns + 1, sizeof *a->column_upper),
                  .cost = calloc(columns + 1, sizeof *a->cost),
                  .row_lower = calloc(rows + 1, sizeof *a->row_lower),
                  .row_upper = calloc(rows + 1, sizeof *a->row_upper)};
    if (a->start == NULL || a->row == NULL || a->value == NULL || a->column_lower == NULL || a->column_upper == NULL ||
        a->cost == NULL || a->row_lower == NULL || a->row_upper == NULL)
        return false;
    for (size_t i = 0; i < columns; i++) {
        a->column_lower[i] = linear->columns[i].lower;
        a->column_upper[i] = linear->columns[i].upper;
        a->cost[i] = linear->columns[i].cost;
    }
    for (size_t i = 0; i < rows; i++) {
        a->row_lower[i] = linear->rows[i].lower;
        a->row_upper[i] = linear->rows[i].upper;
    }
    /* first start[c + 2] counts the terms of column c; then start[c + 1] is the position of the next term, and finally
     * the end */
    for (size_t i = 0; i < terms; i++)
        if (linear->terms[i].column + 2 <= columns) a->start[linear->terms[i].column + 2]++;
    for (size_t i = 2; i <= columns; i++) a->start[i] += a->start[i - 1];
    for (size_t i = 0; i < terms; i++) {
        const term *t = &linear->terms[i];
        int position = a->start[t->column + 1]++;
        a->row[position] = (int)t->row;
        a->value[position] = t->value;
    }
    return true;
}

static mdot_status no_solution(mdot_error *err)
{
    return mdot_fail(err, MDOT_OUT_OF_RANGE, "a linear program has no solution");
}

/* Work of about a second: simplex iterations on a program with a few hundred rows, and search nodes for whole
 * numbers. */
enum { ITERATIONS_PER_S = 20000, NODES_PER_S = 500 };

static int work_of(double limit_s, int per_s) { return (int)fmin(fmax(limit_s, 0) * per_s, INT_MAX); }

/* Elapsed time is a guard against hangs only, so that a slow machine has the same answers. */
static double guard_s(double limit_s) { return 60 + 20 * limit_s; }

static mdot_status not_in_time(double limit_s, mdot_error *err)
{
    return mdot_fail(err, MDOT_DEVICE, "a linear program needs more than the work of %g s", limit_s);
}

static mdot_status solve(const sc_linear *linear, const arrays *a, double limit_s, double *out_values, double *out_cost,
                         mdot_error *err)
{
    mdot_status status = MDOT_OK;
    Clp_Simplex *model = Clp_newModel();
    Clp_setLogLevel(model, 0);
    Clp_loadProblem(model, (int)linear->column_count, (int)linear->row_count, a->start, a->row, a->value,
                    a->column_lower, a->column_upper, a->cost, a->row_lower, a->row_upper);
    Clp_setMaximumIterations(model, work_of(limit_s, ITERATIONS_PER_S));
    Clp_setMaximumSeconds(model, guard_s(limit_s));
    Clp_dual(model, 0);
    switch (Clp_status(model)) {
    case 0:
        memcpy(out_values, Clp_getColSolution(model), linear->column_count * sizeof *out_values);
        *out_cost = Clp_objectiveValue(model);
        break;
    case 1:
    case 2: status = no_solution(err); break;
    default: status = not_in_time(limit_s, err);
    }
    Clp_deleteModel(model);
    return status;
}

#ifdef SC_HAVE_CBC

bool sc_linear_solves_integers(void) { return true; }

static mdot_status solve_integers(const sc_linear *linear, const arrays *a, double limit_s, double *out_values,
                                  double *out_cost, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    Cbc_Model *model = Cbc_newModel();
    Cbc_setLogLevel(model, 0);
    Cbc_loadProblem(model, (int)linear->column_count, (int)linear->row_count, a->start, a->row, a->value,
                    a->column_lower, a->column_upper, a->cost, a->row_lower, a->row_upper);
    for (size_t i = 0; i < linear->column_count; i++)
        if (linear->columns[i].is_integer) Cbc_setInteger(model, (int)i);
    Cbc_setMaximumNodes(model, work_of(limit_s, NODES_PER_S));
    Cbc_setMaximumSeconds(model, guard_s(limit_s));
    Cbc_solve(model);
    if (Cbc_isProvenOptimal(model)) {
        memcpy(out_values, Cbc_getColSolution(model), linear->column_count * sizeof *out_values);
        *out_cost = Cbc_getObjValue(model);
    } else if (Cbc_isProvenInfeasible(model) || Cbc_isContinuousUnbounded(model)) {
        status = no_solution(err);
    } else {
        status = not_in_time(limit_s, err);
    }
    Cbc_deleteModel(model);
    return status;
}

#else

bool sc_linear_solves_integers(void) { return false; }

static mdot_status solve_integers(const sc_linear *linear, const arrays *a, double limit_s, double *out_values,
                                  double *out_cost, mdot_error *err)
{
    return mdot_fail(err, MDOT_UNSUPPORTED,
                     "built without COIN-OR CBC (coinor-libcbc-dev), which solves programs in whole numbers");
}

#endif

mdot_status sc_linear_solve(sc_linear *linear, double limit_s, double *out_values, double *out_cost, mdot_error *err)
{
    arrays a = {0};
    mdot_status status = MDOT_OK;
    if (linear->ran_out || !fill_arrays(linear, &a))
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    else if (linear->has_integers)
        status = solve_integers(linear, &a, limit_s, out_values, out_cost, err);
    else
        status = solve(linear, &a, limit_s, out_values, out_cost, err);
    free_arrays(&a);
    return status;
}

#else

bool sc_linear_is_available(void) { return false; }

bool sc_linear_solves_integers(void) { return false; }

mdot_status sc_linear_solve(sc_linear *linear, double limit_s, double *out_values, double *out_cost, mdot_error *err)
{
    return mdot_fail(err, MDOT_UNSUPPORTED,
                     "built without COIN-OR CLP (coinor-libclp-dev), which solves linear programs");
}

#endif
