/* prediction_json.c — see prediction_json.h. */
#include "base/training/prediction_json.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The software and the host that the answer stands for, with the job's choices where the options leave them open. */
static void print_software(FILE *stream, const cli_job_choices *choices, const mdot_configuration *c)
{
    mdot_attention attention = c->attention == MDOT_ATTENTION_PROGRAM ? choices->attention : c->attention;
    uint32_t torch = c->torch > 0 ? c->torch : choices->torch;
    fputs(",\n   \"software\": {\"torch\": ", stream);
    if (torch > 0)
        fprintf(stream, "\"" RT_VERSION_FORMAT "\"", RT_VERSION_PARTS(torch));
    else
        fputs("\"unknown\"", stream);
    if (choices->attends) fprintf(stream, ", \"attention\": \"%s\"", rt_attention_names[attention]);
    fputs(", \"host\": ", stream);
    if (c->host_launch_us > 0)
        fprintf(stream, "\"%g us\"}", c->host_launch_us);
    else
        fputs("\"default\"}", stream);
}

/* Prints a text and a number: %.9g, or %.0f for 0 digits. Most of the time of a warm answer is printing. */
static void put(FILE *stream, const char *text, double value, int digits)
{
    char line[128];
    size_t used = strlen(text);
    memcpy(line, text, used);
    if (digits > 0)
        bs_number_print(value, digits, line + used);
    else if (value >= 0 && value < 1e15)
        bs_number_print(rint(value), 15, line + used);
    else
        snprintf(line + used, sizeof line - used, "%.0f", value);
    fputs(line, stream);
}

void cli_json_step(FILE *stream, const mdot_configuration *c, const mdot_prediction *p, const cli_job_choices *choices,
                   double tokens_per_sample)
{
    double samples_per_second = 1000 * cli_samples_of_step(c) / p->step_ms;
    cli_json_member(stream, "{", "gpu", c->gpu_spec->name);
    cli_json_training(stream, c);
    print_software(stream, choices, c);
    put(stream, ",\n   \"step_ms\": ", p->step_ms, 9);
    put(stream, ", \"lower_ms\": ", p->lower_ms, 9);
    put(stream, ", \"upper_ms\": ", p->upper_ms, 9);
    if (p->loader_ms > 0) {
        put(stream, ", \"gpu_ms\": ", p->gpu_ms, 9);
        put(stream, ", \"loader_ms\": ", p->loader_ms, 9);
    }
    put(stream, ", \"samples_per_second\": ", samples_per_second, 9);
    put(stream, ",\n   \"peak_memory_bytes\": ", (double)p->peak_memory_bytes, 0);
    put(stream, ", \"gpu_memory_bytes\": ", c->gpu_spec->memory_gib * CLI_GIB, 0);
    fputs(p->fits ? ", \"fits\": true, " : ", \"fits\": false, ", stream);
    if (tokens_per_sample > 0) {
        put(stream, "\"tokens_per_second\": ", tokens_per_sample * samples_per_second, 9);
        fputs(", ", stream);
    }
}

void cli_json_memory(FILE *stream, const mdot_configuration *c, const mdot_prediction *p)
{
    put(stream, "\"weight_bytes\": ", p->weight_bytes, 0);
    put(stream, ", \"gradient_bytes\": ", p->gradient_bytes, 0);
    put(stream, ", \"optimizer_bytes\": ", p->optimizer_bytes, 0);
    put(stream, ", \"activation_bytes\": ", p->activation_bytes, 0);
    put(stream, ", \n   \"memory_lower_bytes\": ", (double)p->memory_lower_bytes, 0);
    put(stream, ", \"memory_upper_bytes\": ", (double)p->memory_upper_bytes, 0);
    put(stream, ", \"reserved_bytes\": ", (double)p->reserved_bytes, 0);
    put(stream, ", \"usable_bytes\": ", (double)p->usable_bytes, 0);
    put(stream, ", \"rounding_bytes\": ", p->rounding_bytes, 0);
    put(stream, ", \"context_bytes\": ", p->context_bytes, 0);
    put(stream, ", \"workspace_bytes\": ", p->workspace_bytes, 0);
    put(stream, ", \"collective_bytes\": ", p->collective_bytes, 0);
    fputs(",\n   ", stream);
    if (c->pipeline_parallel > 1) {
        put(stream, "\"first_stage_bytes\": ", (double)p->first_stage_bytes, 0);
        put(stream, ", \"last_stage_bytes\": ", (double)p->last_stage_bytes, 0);
        fputs(", ", stream);
    }
    put(stream, "\"average_watts\": ", p->average_watts, 6);
    put(stream, ", \"energy_joules\": ", p->energy_joules, 6);
    put(stream, ", \"compute_share\": ", p->compute_share, 6);
    put(stream, ", \"memory_share\": ", p->memory_share, 6);
    put(stream, ", \"unknown_share\": ", p->unknown_share, 6);
    fputs(", \"warnings\": [", stream);
    const char *comma = "";
    for (uint32_t warning = 1; warning != 0; warning <<= 1) {
        if ((p->warnings & warning) == 0) continue;
        fprintf(stream, "%s\"%s\"", comma, mdot_warning_name(warning));
        comma = ", ";
    }
    fputs("]", stream);
    if (p->implausible != 0) fprintf(stream, ", \"implausible\": \"%s\"", mdot_implausible_name(p->implausible));
}

void cli_json_layout(FILE *stream, const mdot_plan_layout *layout, const mdot_training_cost *k, bool has_prices)
{
    const mdot_configuration *c = &layout->configuration;
    const mdot_prediction *p = &layout->prediction;
    cli_json_member(stream, "{", "gpu", c->gpu_spec->name);
    cli_json_training(stream, c);
    fprintf(stream,
            ",\n   \"samples_of_a_step\": %.0f, \"pipeline_share\": %.6g, \"step_ms\": %.9g, \"lower_ms\": %.9g, "
            "\"upper_ms\": %.9g, \"reserved_bytes\": %" PRIu64 ", \"usable_bytes\": %" PRIu64 ",\n   ",
            layout->samples, layout->pipeline_share, p->step_ms, p->lower_ms, p->upper_ms, p->reserved_bytes,
            p->usable_bytes);
    fprintf(stream,
            "\"steps\": %.0f, \"hours\": %.9g, \"lower_hours\": %.9g, \"upper_hours\": %.9g, \"gpu_hours\": %.9g, ",
            k->steps, k->hours, k->lower_hours, k->upper_hours, k->gpu_hours);
    if (has_prices)
        fprintf(stream, "\"cost\": %.9g, \"lower_cost\": %.9g, \"upper_cost\": %.9g, ", k->cost, k->lower_cost,
                k->upper_cost);
    fprintf(stream,
            "\"kwh\": %.6g, \"co2_kg\": %.6g,\n   \"step_hours\": %.9g, \"evaluation_hours\": %.9g, "
            "\"checkpoint_hours\": %.9g, \"failure_hours\": %.9g, \"startup_hours\": %.9g, ",
            k->kwh, k->co2_kg, k->step_hours, k->evaluation_hours, k->checkpoint_hours, k->failure_hours,
            k->startup_hours);
    fprintf(stream, "\"checkpoint_minutes\": %.6g, \"in_time\": %.6g, \"in_budget\": %.6g", k->checkpoint_minutes,
            k->in_time, k->in_budget);
}

void cli_json_origin_begin(FILE *stream, const char *schema, const cli_json_origin *o)
{
    fprintf(stream, "{\"schema\": \"%s\", \"mdot\": \"%s\"", schema, mdot_version());
    cli_json_member(stream, ", ", "predictor", o->predictor);
    cli_json_member(stream, ", ", "compiler", o->compiler);
    if (o->calibrated_rows > 0) fprintf(stream, ", \"calibrated_by\": %zu", o->calibrated_rows);
    if (o->calibration != NULL) fprintf(stream, ", \"calibration\": \"%s\"", o->calibration);
    cli_json_member(stream, ",\n ", "job", o->job);
}

void cli_json_begin(FILE *stream, const cli_json_origin *o)
{
    cli_json_origin_begin(stream, "mdot-predict/1", o);
    fprintf(
        stream,
        ", \"operators\": %zu, \"unknown\": %zu, \"parameters\": %.0f, \"frozen_parameters\": %.0f, \"file_batch\": "
        "%" PRId64 ", \"flops_per_sample\": %.0f,\n \"predictions\": [",
        o->info->operator_count, o->info->unknown_count, o->info->parameters, o->info->frozen_parameters,
        o->info->batch, o->flops_per_sample);
}
