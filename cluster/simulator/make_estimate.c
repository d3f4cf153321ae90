/* make_estimate.c — makes an estimator from --estimate, --factors and --upper. */
#include "base/status.h"
#include "base/text.h"
#include "simulator/estimate/estimators.h"
#include "simulator/simulate_options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *sc_name_estimate(const sc_request *request)
{
    if (request->factors_path != NULL) return "factors";
    if (request->predictions_path != NULL) return "predictions";
    return request->estimate != NULL ? request->estimate : "oracle";
}

/* Estimates that learn from completed jobs, and requested limits. */
static const struct {
    const char *name;
    mdot_status (*make)(const sc_workload *workload, sc_estimator *out_estimator, mdot_error *err);
    sc_errors errors;
} by_name[] = {{"history", sc_estimator_make_history, SC_ERRORS_RESIDUAL},
               {"rolling", sc_estimator_make_rolling, SC_ERRORS_TOTAL},
               {"last-two", sc_estimator_make_last_two, SC_ERRORS_TOTAL},
               {"survival", sc_estimator_make_survival, SC_ERRORS_RESIDUAL},
               {"limit", sc_estimator_make_limits, SC_ERRORS_TOTAL}};
enum { NAMES = sizeof by_name / sizeof by_name[0] };

/* Makes the estimator of `error:M[,MODEL]`. */
static mdot_status make_errors(const sc_request *request, const char *text, const sc_workload *workload,
                               sc_estimator *out_estimator, mdot_error *err)
{
    static const char *const models[] = {"", ",log-normal", ",normal", ",two-point"};
    const char *end;
    double error = bs_number_read(text, &end);
    int model = 0;
    while (model < 4 && strcmp(end, models[model]) != 0) model++;
    if (end == text || model == 4 || !(error >= 0 && error <= 2))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "--estimate error:M[,MODEL] takes a mean error from 0 to 2 and one of the models log-normal, "
                         "normal and two-point, not \"%s\"",
                         text);
    return sc_estimator_make_errors(workload->job_count, model > 0 ? (sc_error_model)(model - 1) : SC_ERROR_LOG_NORMAL,
                                    error, (uint64_t)request->seed, out_estimator, err);
}

static mdot_status make_predicted(const sc_request *request, const sc_workload *workload, sc_estimator *out_estimator,
                                  mdot_error *err)
{
    const char *predictor = request->predicted_by != NULL ? request->predicted_by : "mdot";
    double *ratios = NULL;
    size_t count = 0;
    sc_estimator known = {0};
    mdot_status status = sc_read_predictions(request->predictions_path, predictor, &ratios, &count, err);
    if (status == MDOT_OK)
        status =
            sc_estimator_make_predicted(workload, ratios, count, (uint64_t)request->seed, request->learns, &known, err);
    free(ratios);
    if (status == MDOT_OK && request->known_share < 1)
        return sc_estimator_make_mixed(workload, &known, request->known_share, (uint64_t)request->seed, out_estimator,
                                       err);
    if (status == MDOT_OK) *out_estimator = known;
    return status;
}

static mdot_status make_base(const sc_request *request, const sc_workload *workload, sc_estimator *out_estimator,
                             sc_errors *out_errors, mdot_error *err)
{
    const char *name = sc_name_estimate(request);
    size_t index = 0;
    while (index < NAMES && strcmp(name, by_name[index].name) != 0) index++;
    *out_errors = request->known_share < 1 ? SC_ERRORS_RESIDUAL
                  : request->errors >= 0   ? (sc_errors)request->errors
                  : index < NAMES          ? by_name[index].errors
                                           : SC_ERRORS_SCALE;
    if (request->factors_path != NULL) {
        double *factors;
        mdot_status status = sc_read_factors(request->factors_path, workload, &factors, err);
        return status == MDOT_OK ? sc_estimator_make_fixed(factors, out_estimator, err) : status;
    }
    if (request->predictions_path != NULL) return make_predicted(request, workload, out_estimator, err);
    if (strncmp(name, "trees:", 6) == 0) {
        if (request->errors < 0) *out_errors = SC_ERRORS_RESIDUAL;
        return sc_estimator_make_trees(workload, name + 6, out_estimator, err);
    }
    if (index < NAMES) return by_name[index].make(workload, out_estimator, err);
    if (strncmp(name, "error:", 6) == 0) return make_errors(request, name + 6, workload, out_estimator, err);
    if (strcmp(name, "oracle") != 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "unknown estimate \"%s\"; known are oracle, history, rolling, last-two, survival, limit, "
                         "trees:FILE, error:M",
                         name);
    *out_estimator = sc_estimator_oracle();
    return MDOT_OK;
}

mdot_status sc_make_estimator(const sc_request *request, const sc_workload *workload, sc_estimator *out_estimator,
                              sc_errors *out_errors, mdot_error *err)
{
    sc_estimator base = {0};
    BS_TRY(make_base(request, workload, &base, out_errors, err));
    if (request->learns && request->predictions_path == NULL)
        return sc_estimator_make_learning(workload, &base, NULL, out_estimator, err);
    *out_estimator = base;
    return MDOT_OK;
}

/* If a prediction is f times the truth and f = exp(σ z), 95 % of jobs take at most exp(1.645 σ) times it. */
static double upper_of(const sc_request *request)
{
    static const double quantile = 1.645;
    const char *name = sc_name_estimate(request);
    if (request->upper > 0) return request->upper;
    return strncmp(name, "error:", 6) == 0 ? exp(quantile * sc_error_sigma(strtod(name + 6, NULL))) : 1;
}

mdot_status sc_make_upper_quantiles(const sc_request *request, const sc_workload *workload, double **out_predicted_s,
                                    mdot_error *err)
{
    sc_estimator estimator = {0};
    sc_errors errors;
    double *predicted_s = calloc(workload->job_count + 1, sizeof *predicted_s);
    if (predicted_s == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = sc_make_estimator(request, workload, &estimator, &errors, err);
    if (status == MDOT_OK && estimator.learn != NULL)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "--idle excludes estimates that learn");
    for (uint32_t i = 0; status == MDOT_OK && i < workload->job_count; i++) {
        double work_s = workload->jobs[i].work;
        predicted_s[i] = upper_of(request) * work_s * estimator.factor(estimator.self, workload, i, work_s);
    }
    sc_estimator_destroy(&estimator);
    if (status == MDOT_OK)
        *out_predicted_s = predicted_s;
    else
        free(predicted_s);
    return status;
}
