/* beside.c — a job's load on a GPU, and the slowdown of two jobs on one GPU. */
#include "base/struct_version.h"
#include "mdot/mdot_beside.h"
#include "runtime/core/core.h"
#include "runtime/job/gpus.h"
#include "runtime/predict/predict.h"

#include <math.h>
#include <string.h>

enum { LOAD_NUMBERS = 9, QUANTILES = 3 };

static const double MAXIMUM = 1e12; /* of a load's number */

static const bs_struct_version load_type = BS_SIZED(mdot_gpu_load, usable_bytes);
static const bs_struct_version beside_type = BS_SIZED(mdot_beside, extrapolated);

static mdot_status load_of(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                           mdot_gpu_load *out_load, mdot_error *err)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    mdot_explanation *explanation = NULL;
    mdot_gpu found;
    const mdot_gpu *known = NULL;
    BS_TRY(mdot_predict(context, job, configuration, &p, err));
    BS_TRY(mdot_explain(context, job, configuration, &explanation, err));
    mdot_explanation_get_info(explanation, &info);
    mdot_explanation_destroy(explanation);
    if (configuration->gpu_spec != NULL)
        BS_TRY(bs_read_struct(&rt_gpu_type, configuration->gpu_spec, &found, err));
    else
        BS_TRY(rt_gpu_find(configuration->gpu, &known, err));
    const mdot_gpu *gpu = known != NULL ? known : &found;
    const mdot_gpu_load load = {.struct_size = sizeof load,
                                .step_ms = info.step_ms,
                                .gpu_busy_ms = fmin(info.gpu_busy_ms, info.step_ms),
                                .host_busy_ms = info.host_busy_ms,
                                .operator_count = (double)info.operator_count,
                                .compute_share = p.compute_share,
                                .memory_share = p.memory_share,
                                .fp32_tflops = gpu->fp32_tflops,
                                .memory_gbps = gpu->memory_gbps,
                                .peak_memory_bytes = p.peak_memory_bytes,
                                .reserved_bytes = p.reserved_bytes,
                                .usable_bytes = p.usable_bytes};
    return bs_fill_struct(&load_type, &load, out_load, err);
}

mdot_status mdot_gpu_load_of(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                             mdot_gpu_load *out_load, mdot_error *err)
{
    if (context == NULL || job == NULL || configuration == NULL || out_load == NULL)
        return BS_INVALID(err, "mdot_gpu_load_of: context, job, configuration or out_load is NULL");
    BS_TRY(bs_check_struct(&load_type, out_load, err));
    BS_TRY(rt_handle_enter(context, __func__, err));
    mdot_status status = rt_handle_check(job, RT_JOB, __func__, err);
    rt_handle_leave(context);
    return status == MDOT_OK ? load_of(context, job, configuration, out_load, err) : status;
}

/* Reads a load, and makes the artefact's numbers from it. */
static mdot_status read_load(const mdot_gpu_load *from, const char *name, mdot_gpu_load *out, float *numbers,
                             mdot_error *err)
{
    BS_TRY(bs_read_struct(&load_type, from, out, err));
    const double all[LOAD_NUMBERS] = {out->step_ms,
                                      fmin(out->gpu_busy_ms / out->step_ms, 1),
                                      out->gpu_busy_ms / fmax(out->operator_count, 1),
                                      fmin(out->compute_share, 1),
                                      fmin(out->memory_share, 1),
                                      fmin(out->host_busy_ms / out->step_ms, 1),
                                      (double)out->peak_memory_bytes / (1u << 30),
                                      out->fp32_tflops,
                                      out->memory_gbps};
    const double given[LOAD_NUMBERS] = {out->step_ms,       out->gpu_busy_ms,  out->host_busy_ms,
                                        out->compute_share, out->memory_share, out->operator_count,
                                        out->fp32_tflops,   out->memory_gbps,  0};
    for (size_t i = 0; i < LOAD_NUMBERS; i++) {
        if (!(out->step_ms > 0 && given[i] >= 0 && given[i] <= MAXIMUM))
            return BS_INVALID(err,
                              "mdot_predict_beside: the %s has a value outside 0 to %g, or no step time; "
                              "mdot_gpu_load_of computes it",
                              name, MAXIMUM);
        numbers[i] = (float)all[i];
    }
    return MDOT_OK;
}

static bool is_tensor(const mdot_tensor_info *tensor, const char *name, int64_t columns)
{
    return strcmp(tensor->name, name) == 0 && tensor->dtype == MDOT_DTYPE_F32 && tensor->rank == 2 &&
           mdot_tensor_extent(tensor, 0, 1) == 1 && mdot_tensor_extent(tensor, 1, 1) == columns;
}

/* Only the artefact's first entry counts. */
static mdot_status check_artefact(const mdot_predictor *predictor, mdot_error *err)
{
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    mdot_tensor_info own = MDOT_INIT(mdot_tensor_info), partner = own, slowdown = own, outside = own;
    mdot_status status = mdot_predictor_get_entry(predictor, 0, &entry);
    if (status == MDOT_OK && entry.input_count == 2 && entry.output_count <= 2) {
        mdot_predictor_get_input(predictor, 0, 0, &own);
        mdot_predictor_get_input(predictor, 0, 1, &partner);
        mdot_predictor_get_output(predictor, 0, 0, &slowdown);
        if (entry.output_count == 2) mdot_predictor_get_output(predictor, 0, 1, &outside);
        if (is_tensor(&own, "own", LOAD_NUMBERS) && is_tensor(&partner, "partner", LOAD_NUMBERS) &&
            is_tensor(&slowdown, "slowdown", QUANTILES) &&
            (entry.output_count == 1 || is_tensor(&outside, "outside_training", 1)))
            return MDOT_OK;
    }
    return mdot_fail(err, MDOT_INCOMPATIBLE,
                     "the artefact predicts no slowdown: its entry must read own and partner, f32 [1, 9], and write "
                     "slowdown, f32 [1, 3], and perhaps outside_training, f32 [1, 1], as interference.mdot does");
}

static mdot_status predict_beside(mdot_context *context, const mdot_gpu_load *load, const mdot_gpu_load *partner,
                                  mdot_beside *out, mdot_error *err)
{
    mdot_gpu_load own, other;
    float numbers[2][LOAD_NUMBERS], slowdown[QUANTILES], outside = 0;
    BS_TRY(read_load(load, "load", &own, numbers[0], err));
    BS_TRY(read_load(partner, "partner", &other, numbers[1], err));
    BS_TRY(check_artefact(rt_context_predictor(context), err));
    if (own.fp32_tflops != other.fp32_tflops || own.memory_gbps != other.memory_gbps)
        return BS_INVALID(err, "mdot_predict_beside: the loads belong to two GPU models, but the jobs share one GPU");
    const void *const inputs[] = {numbers[0], numbers[1]};
    void *const outputs[] = {slowdown, &outside};
    rt_item item = {inputs, outputs};
    rt_run_many(context, rt_entry(rt_predictor_artefact(rt_context_predictor(context))->table, 0), 0, &item, 1);
    if (!(slowdown[0] >= 1 && slowdown[1] >= slowdown[0] && slowdown[2] >= slowdown[1] && isfinite(slowdown[2])))
        return mdot_fail(err, MDOT_MALFORMED, "the artefact's slowdowns must ascend from 1, and be finite");
    double bytes = (double)own.reserved_bytes + (double)other.reserved_bytes;
    *out = (mdot_beside){.struct_size = sizeof *out,
                         .slowdown = (double)slowdown[1],
                         .lower_slowdown = (double)slowdown[0],
                         .upper_slowdown = (double)slowdown[2],
                         .step_ms = own.step_ms * (double)slowdown[1],
                         .reserved_bytes = bytes,
                         .fits = bytes <= (double)own.usable_bytes,
                         .extrapolated = outside > 0};
    return MDOT_OK;
}

mdot_status mdot_predict_beside(mdot_context *context, const mdot_gpu_load *load, const mdot_gpu_load *partner,
                                mdot_beside *out_beside, mdot_error *err)
{
    mdot_beside answer;
    if (context == NULL || load == NULL || partner == NULL || out_beside == NULL)
        return BS_INVALID(err, "mdot_predict_beside: context, load, partner or out_beside is NULL");
    BS_TRY(bs_check_struct(&beside_type, out_beside, err));
    BS_TRY(rt_handle_enter(context, __func__, err));
    mdot_status status = predict_beside(context, load, partner, &answer, err);
    rt_handle_leave(context);
    return status == MDOT_OK ? bs_fill_struct(&beside_type, &answer, out_beside, err) : status;
}
