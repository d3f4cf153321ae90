/* arms.c — the list of policies and estimates to compare. */
#include "simulator/experiment/experiment.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <string.h>

static const double errors[] = {.1, .25, .5, .75};

static mdot_status add(ex_setup *setup, ex_arm arm, const char *policy, mdot_error *err)
{
    if (setup->arm_count == EX_MAX_ARMS)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "more than %d arms: fewer predictors", EX_MAX_ARMS);
    mdot_status status = sc_policy_find(policy, &arm.policy, err);
    if (status == MDOT_OK) setup->arms[setup->arm_count++] = arm;
    return status;
}

static mdot_status add_errors(ex_setup *setup, ex_kind kind, const char *what, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < sizeof errors / sizeof errors[0]; i++) {
        ex_arm arm = {.kind = kind, .error = errors[i], .column = EX_NO_COLUMN};
        snprintf(arm.label, sizeof arm.label, "SRSF, %s off by %.0f %%", what, 100 * errors[i]);
        status = add(setup, arm, "srsf", err);
    }
    return status;
}

static double mean_error(const ex_predictions *p, size_t column)
{
    double error = 0;
    for (size_t j = 0; j < p->network_count; j++)
        error += fabs(p->factors[column * p->network_count + j] - 1) / (double)p->network_count;
    return error;
}

static mdot_status add_predictors(ex_setup *setup, mdot_error *err)
{
    const ex_predictions *p = &setup->predictions;
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < p->predictor_count; i++) {
        ex_arm arm = {.kind = EX_PREDICTED, .error = mean_error(p, i), .column = (int)i};
        snprintf(arm.label, sizeof arm.label, "SRSF, %.30s", p->names[i]);
        status = add(setup, arm, "srsf", err);
    }
    return status;
}

mdot_status ex_list_arms(ex_setup *setup, mdot_error *err)
{
    static const struct {
        const char *label, *policy;
    } blind[] = {
        {"LAS, continuous", "las"}, {"LAS, three levels", "dlas"}, {"FIFO that skips", "fjf"}, {"FIFO", "fifo"}};
    mdot_status status =
        add(setup, (ex_arm){.label = "SRSF, exact", .kind = EX_EXACT, .column = EX_NO_COLUMN}, "srsf", err);
    if (status == MDOT_OK) status = add_errors(setup, EX_SCALE, "step times", err);
    if (status == MDOT_OK) status = add_errors(setup, EX_TOTAL, "totals", err);
    if (status == MDOT_OK) status = add_predictors(setup, err);
    for (size_t i = 0; status == MDOT_OK && i < sizeof blind / sizeof blind[0]; i++) {
        ex_arm arm = {.kind = EX_BLIND, .column = EX_NO_COLUMN};
        strcpy(arm.label, blind[i].label);
        status = add(setup, arm, blind[i].policy, err);
    }
    return status;
}

/* Returns the column of the predictor mdot. */
static mdot_status find_mdot(const ex_predictions *p, int *out_column, mdot_error *err)
{
    for (size_t i = 0; i < p->predictor_count; i++) {
        if (strcmp(p->names[i], "mdot") != 0) continue;
        *out_column = (int)i;
        return MDOT_OK;
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "--predictions must name a table with the column mdot");
}

mdot_status ex_list_learning_arms(ex_setup *setup, mdot_error *err)
{
    static const struct {
        const char *label, *policy;
        ex_kind kind;
    } arms[] = {{"SRSF, exact", "srsf", EX_EXACT},
                {"SRSF, cold mdot", "srsf", EX_PREDICTED},
                {"SRSF, mdot that learns", "srsf", EX_LEARNED},
                {"SRSF, history", "srsf", EX_HISTORY},
                {"SRSF, mdot or history", "srsf", EX_MIXED},
                {"SRSF, rolling means", "srsf", EX_ROLLING},
                {"SRSF, last two", "srsf", EX_LAST_TWO},
                {"LAS, continuous", "las", EX_BLIND},
                {"FIFO that skips", "fjf", EX_BLIND}};
    int column = EX_NO_COLUMN;
    mdot_status status = find_mdot(&setup->predictions, &column, err);
    for (size_t i = 0; status == MDOT_OK && i < sizeof arms / sizeof arms[0]; i++) {
        bool is_predicted = arms[i].kind == EX_PREDICTED || arms[i].kind == EX_LEARNED || arms[i].kind == EX_MIXED;
        ex_arm arm = {.kind = arms[i].kind, .error = -1, .column = is_predicted ? column : EX_NO_COLUMN};
        if (arm.kind == EX_EXACT) arm.error = 0;
        if (arm.kind == EX_PREDICTED) arm.error = mean_error(&setup->predictions, (size_t)column);
        snprintf(arm.label, sizeof arm.label, "%s", arms[i].label);
        if (arm.kind == EX_MIXED)
            snprintf(arm.label, sizeof arm.label, "SRSF, mdot for %.0f %%, else history", 100 * setup->known_share);
        status = add(setup, arm, arms[i].policy, err);
    }
    return status;
}
