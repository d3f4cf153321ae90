/* predict_beside.c — `mdot predict A --beside B`: both jobs' steps on one GPU, and whether packing pays. */
#include "cli/predict/predict_request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static mdot_status open_interference(const predict_request *r, mdot_predictor **out_predictor,
                                     mdot_context **out_context, mdot_error *err)
{
    char *shipped = NULL, *path = NULL;
    if (r->model_path == NULL) BS_TRY(predict_find_default(&shipped, err));
    const char *predictor = shipped != NULL ? shipped : r->model_path, *slash = strrchr(predictor, '/');
    mdot_status status = MDOT_OK;
    if (asprintf(&path, "%.*sinterference.mdot", slash != NULL ? (int)(slash - predictor) + 1 : 0, predictor) < 0) {
        path = NULL;
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    const mdot_open_options on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
    if (status == MDOT_OK) status = mdot_predictor_open(path, &on_cpu, out_predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(*out_predictor, out_context, err);
    free(path);
    free(shipped);
    return status;
}

/* Computes a load, and corrects it as the calibration corrects the step and the memory. */
static mdot_status load_of(mdot_context *context, const mdot_job *job, const mdot_configuration *c,
                           const mdot_calibration *calibration, mdot_gpu_load *out, mdot_error *err)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    BS_TRY(mdot_gpu_load_of(context, job, c, out, err));
    if (calibration == NULL) return MDOT_OK;
    BS_TRY(mdot_predict(context, job, c, &p, err));
    BS_TRY(mdot_calibration_apply_to_job(calibration, job, c, &p, err));
    out->compute_share *= out->step_ms / p.step_ms;
    out->memory_share *= out->step_ms / p.step_ms;
    out->step_ms = p.step_ms;
    out->peak_memory_bytes = p.peak_memory_bytes;
    out->reserved_bytes = p.reserved_bytes;
    return MDOT_OK;
}

static mdot_status load_partner(const predict_request *r, mdot_context *context, predict_answers *answers,
                                mdot_gpu_load *out_load, mdot_error *err)
{
    mdot_job *job = NULL;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    const cli_reading reading = {.quiet = r->reading.quiet}; /* sizes and adapters are the first job's */
    mdot_status status = cli_read_job("predict", r->beside_path, &reading, &job, err);
    if (status == MDOT_OK) status = mdot_job_get_info(job, &info);
    if (status == MDOT_OK) {
        mdot_configuration c = {.struct_size = sizeof c,
                                .batch = r->beside_batch > 0 ? r->beside_batch : cli_job_batch(&info),
                                .gpu_spec = answers->configurations[0].gpu_spec};
        cli_training_apply(&r->training, &info, &c);
        c.torch = answers->configurations[0].torch;
        answers->beside_batch = c.batch;
        status = load_of(context, job, &c, answers->calibration, out_load, err);
    }
    mdot_job_destroy(job);
    return status;
}

mdot_status predict_beside(const predict_request *r, mdot_context *context, predict_answers *answers, mdot_error *err)
{
    mdot_predictor *interference = NULL;
    mdot_context *pairs = NULL;
    mdot_gpu_load loads[2] = {MDOT_INIT(mdot_gpu_load), MDOT_INIT(mdot_gpu_load)};
    mdot_status status = open_interference(r, &interference, &pairs, err);
    if (status == MDOT_OK)
        status =
            load_of(context, answers->first_job, &answers->configurations[0], answers->calibration, &loads[0], err);
    if (status == MDOT_OK) status = load_partner(r, context, answers, &loads[1], err);
    if (status == MDOT_OK && cli_gpu_count(&answers->configurations[0]) > 1 && !r->reading.quiet)
        cli_message("predict", "warning: --beside was measured with jobs on one GPU: on several, a job waits for its "
                               "slowest GPU, and exchanges of both jobs share the links");
    for (int side = 0; status == MDOT_OK && side < 2; side++) {
        answers->beside[side] = (mdot_beside)MDOT_INIT(mdot_beside);
        status = mdot_predict_beside(pairs, &loads[side], &loads[1 - side], &answers->beside[side], err);
    }
    if (status == MDOT_OK && answers->beside[0].extrapolated != 0 && !r->reading.quiet)
        cli_message("predict",
                    "warning: no pairs were measured on this kind of GPU; --beside assumes time slicing, with "
                    "a wide interval: measure a pair before you rely on it");
    mdot_context_destroy(pairs);
    mdot_predictor_close(interference);
    return status;
}

static double gain_of(const predict_answers *answers)
{
    return 1 / answers->beside[0].slowdown + 1 / answers->beside[1].slowdown;
}

void predict_print_beside(const predict_request *r, const predict_answers *answers)
{
    cli_text name;
    const mdot_beside *own = &answers->beside[0], *partner = &answers->beside[1];
    double usable = (double)answers->predictions[0].usable_bytes / CLI_GIB, gain = gain_of(answers);
    printf("\n  beside      %s, batch %" PRId64 ", on the same GPU\n", cli_printable(&name, r->beside_path),
           answers->beside_batch);
    for (const mdot_beside *b = own; b <= partner; b++)
        printf("  %s   %.*f ms, slowdown %.2f, 90 %% interval %.2f to %.2f\n", b == own ? "this job " : "the other",
               predict_decimals(b->step_ms), b->step_ms, b->slowdown, b->lower_slowdown, b->upper_slowdown);
    printf("  together    %.1f of %.1f GiB usable: %s\n", own->reserved_bytes / CLI_GIB, usable,
           own->fits ? "fit" : "do not fit");
    printf("  packing     %s: both do %.2f times the work of one after the other; %.2f to %.2f by the intervals\n",
           !own->fits ? "needs more memory"
           : gain > 1 ? "pays"
                      : "does not pay",
           gain, 1 / own->upper_slowdown + 1 / partner->upper_slowdown,
           1 / own->lower_slowdown + 1 / partner->lower_slowdown);
}

void predict_json_beside(const predict_request *r, const predict_answers *answers)
{
    printf(", \"beside\": {\"job\": ");
    cli_json_string(stdout, r->beside_path);
    printf(", \"batch\": %" PRId64, answers->beside_batch);
    for (const mdot_beside *b = answers->beside; b <= &answers->beside[1]; b++)
        printf(", \"%s\": {\"step_ms\": %.9g, \"slowdown\": %.9g, \"lower_slowdown\": %.9g, \"upper_slowdown\": %.9g}",
               b == answers->beside ? "own" : "partner", b->step_ms, b->slowdown, b->lower_slowdown, b->upper_slowdown);
    printf(", \"reserved_bytes\": %.0f, \"fits\": %s, \"extrapolated\": %s, \"gain\": %.9g}",
           answers->beside[0].reserved_bytes, answers->beside[0].fits ? "true" : "false",
           answers->beside[0].extrapolated != 0 ? "true" : "false", gain_of(answers));
}
