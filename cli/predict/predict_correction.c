/* predict_correction.c — `mdot predict --explain` after calibration: the correcting effects, and how well each is
 * known. */
#include "cli/predict/predict_request.h"

#include <stdio.h>

static const char *const meanings[] = {
    [MDOT_CALIBRATION_EFFECT_SITE] = "the site",
    [MDOT_CALIBRATION_EFFECT_GPU] = "this GPU model",
    [MDOT_CALIBRATION_EFFECT_HOST] = "launch cost of its host",
    [MDOT_CALIBRATION_EFFECT_KERNELS] = "its kernels",
    [MDOT_CALIBRATION_EFFECT_PRECISION] = "its kernels in this precision",
    [MDOT_CALIBRATION_EFFECT_SEVERAL] = "several of these GPUs",
    [MDOT_CALIBRATION_EFFECT_JOB] = "this job on the GPU model",
    [MDOT_CALIBRATION_EFFECT_CONFIGURATION] = "this job in this configuration",
};

static void print_effects(const char *title, const double *factors, const double *believed)
{
    printf("\n  %-30s %8s %7s\n", title, "factor", "known");
    for (int e = 0; e < MDOT_CALIBRATION_EFFECT_COUNT; e++)
        if (believed[e] > 0 || factors[e] != 1)
            printf("    %-28s %8.3f %5.0f %%\n", meanings[e], factors[e], 100 * believed[e]);
}

void predict_correction(const predict_answers *answers)
{
    const mdot_calibration_factors *f = &answers->factors[0];
    printf("\ncorrection  x %.3f, interval x %.2f, by %zu row%s of this GPU model, %zu of this job\n", f->factor,
           f->interval, f->row_count, f->row_count == 1 ? "" : "s", f->job_row_count);
    if (f->factor != 1 || f->interval != 1) print_effects("effect on time", f->by_effect, f->believed);
    if (f->carried_gpu != NULL)
        printf("\n  This job has rows on %s, which give x %.3f of its factor: on jobs that both GPU models\n"
               "  have rows of, the correlation of the residuals is %.2f.\n",
               f->carried_gpu, f->carried_factor, f->carried_correlation);
    if (f->memory_factor == 1 && f->memory_interval == 1) return;
    printf("\n  memory x %.3f, interval x %.2f\n", f->memory_factor, f->memory_interval);
    print_effects("effect on memory", f->memory_by_effect, f->memory_believed);
}

static void print_json_effects(const char *name, const double *factors, const double *believed)
{
    printf(", \"%s\": {", name);
    for (int e = 0; e < MDOT_CALIBRATION_EFFECT_COUNT; e++)
        printf("%s\"%s\": {\"factor\": %.9g, \"known\": %.6g}", e > 0 ? ", " : "",
               mdot_calibration_effect_name((mdot_calibration_effect)e), factors[e], believed[e]);
    printf("}");
}

void predict_json_correction(const predict_answers *answers, size_t i)
{
    const mdot_calibration_factors *f = &answers->factors[i];
    printf(",\n   \"correction\": {\"factor\": %.9g, \"interval\": %.9g, \"rows\": %zu, \"job_rows\": %zu", f->factor,
           f->interval, f->row_count, f->job_row_count);
    print_json_effects("effects", f->by_effect, f->believed);
    if (f->carried_gpu != NULL) {
        cli_json_member(stdout, ",\n    \"carried\": {", "gpu", f->carried_gpu);
        printf(", \"correlation\": %.6g, \"factor\": %.9g}", f->carried_correlation, f->carried_factor);
    }
    printf(",\n    \"memory_factor\": %.9g, \"memory_interval\": %.9g", f->memory_factor, f->memory_interval);
    print_json_effects("memory_effects", f->memory_by_effect, f->memory_believed);
    printf("}");
}
