/* serving.c — `--output-tokens`: how long a batch of requests to a language model takes. The forward pass over the
 * prompt is predicted. Output tokens follow one after the other and are analytic: each reads all weights, and the keys
 * and values of the tokens before it. A CUDA graph launches the kernels. */
#include "cli/predict/predict_request.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SUSTAINED_BANDWIDTH 0.8 /* share of the data sheet's, for reads of weights */
#define SUSTAINED_RATE 0.7      /* share of the data sheet's FLOP/s */
#define KERNEL_US 5.0           /* of a matmul or attention beside its reads, with the small kernels around it */
#define FP32_BYTES 4.0
#define GIB 1073741824.0

/* Returns the bytes of keys and values that one sample keeps, in fp32. An attention's smallest input has the size of
 * the values; if one matmul computes all three inputs, the values have the size of the queries. */
static double cache_bytes(const mdot_job *job, size_t operator_count)
{
    double bytes = 0;
    for (size_t i = 0; i < operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        if (strcmp(op.type, "Attention") != 0) continue;
        double smallest = FP32_BYTES * (double)op.setting[MDOT_SETTING_HEADS] *
                          (double)op.setting[MDOT_SETTING_HEAD_SIZE] * (double)op.setting[MDOT_SETTING_KEYS];
        for (size_t k = 0; k < op.input_count; k++) {
            mdot_job_operator input = MDOT_INIT(mdot_job_operator);
            mdot_job_get_operator(job, op.inputs[k], &input);
            double written = input.per_sample[MDOT_PHASE_FORWARD].bytes_written;
            if (written > 0) smallest = fmin(smallest, written);
        }
        bytes += 2 * smallest;
    }
    return bytes;
}

static mdot_status serve(const predict_request *r, const predict_answers *answers, size_t i, mdot_error *err)
{
    const mdot_configuration *c = &answers->configurations[i];
    const mdot_prediction *p = &answers->predictions[i];
    const predict_variant *variant = &answers->variants[answers->variant[i]];
    double batch = (double)c->batch, cache = cache_bytes(variant->job, variant->info.operator_count);
    if (variant->info.length == 0 || cache == 0 || c->mode != MDOT_MODE_INFERENCE)
        return BS_INVALID(err, "--output-tokens requires --mode inference and a language model with a symbolic length, "
                               "for example llama-3-8b");
    mdot_job *token = NULL;
    BS_TRY(mdot_job_with_length(variant->job, 1, &token, err));
    double flops = 0, bytes = 0;
    int kernels = 0;
    for (size_t k = 0; k < variant->info.operator_count; k++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(token, k, &op);
        const mdot_load *sample = &op.per_sample[MDOT_PHASE_FORWARD], *step = &op.per_step[MDOT_PHASE_FORWARD];
        flops += batch * sample->flops + step->flops;
        bytes += batch * sample->bytes_read + step->bytes_read;
        kernels += op.parameters + op.frozen_parameters > 0 || strcmp(op.type, "Attention") == 0;
    }
    mdot_job_destroy(token);
    double weights = FP32_BYTES * (variant->info.parameters + variant->info.frozen_parameters);
    double weight_share = p->weight_bytes / weights, cache_share = fmin(1, fmax(0.5, weight_share));
    double peak = cache_share < 1 ? c->gpu_spec->fp16_tflops : c->gpu_spec->fp32_tflops;
    double length = (double)variant->info.length, output = (double)r->output_tokens;
    cache *= batch * cache_share / length; /* of one token */
    double reads = weight_share * bytes + cache * (length + 0.5 * output);
    double read_ms = reads / (SUSTAINED_BANDWIDTH * c->gpu_spec->memory_gbps * 1e6);
    double flop_ms = flops / (SUSTAINED_RATE * peak * 1e9);
    predict_serving *out = &answers->servings[i];
    out->token_ms = fmax(read_ms, flop_ms) + kernels * KERNEL_US * 1e-3;
    out->cache_bytes = cache * (length + output);
    out->total_ms = p->step_ms + (output - 1) * out->token_ms;
    out->fits = (double)p->reserved_bytes + out->cache_bytes <= (double)p->usable_bytes;
    return MDOT_OK;
}

mdot_status predict_serve(const predict_request *r, predict_answers *answers, mdot_error *err)
{
    answers->servings = calloc(answers->count + 1, sizeof *answers->servings);
    mdot_status status = answers->servings != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < answers->count; i++) status = serve(r, answers, i, err);
    return status;
}

static double tokens_per_second(const predict_request *r, const predict_answers *answers, size_t i)
{
    return 1000 * (double)(answers->configurations[i].batch * r->output_tokens) / answers->servings[i].total_ms;
}

void predict_print_servings(const predict_request *r, const predict_answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        const mdot_configuration *c = &answers->configurations[i];
        const predict_serving *s = &answers->servings[i];
        if (answers->count > 1)
            printf("%s%s, batch %" PRId64 ": ", i == 0 ? "\n" : "", c->gpu_spec->name, c->batch);
        else
            fputs("  serving     ", stdout);
        double first_ms = answers->predictions[i].step_ms, total_s = s->total_ms / 1000;
        printf("first token after %.*f ms, then %.*f ms each (analytic): %.*f s for %" PRId64
               " tokens, %.0f tokens/s\n%scache %.3g GiB: %s\n",
               predict_decimals(first_ms), first_ms, predict_decimals(s->token_ms), s->token_ms,
               predict_decimals(total_s), total_s, r->output_tokens, tokens_per_second(r, answers, i),
               answers->count > 1 ? "  " : "              ", s->cache_bytes / GIB, s->fits ? "fits" : "does not fit");
    }
}

void predict_json_serving(const predict_answers *answers, size_t i)
{
    const predict_serving *s = &answers->servings[i];
    printf(", \"serving\": {\"first_token_ms\": %.9g, \"token_ms\": %.9g, \"total_ms\": %.9g, \"cache_bytes\": %.0f, "
           "\"fits\": %s}",
           answers->predictions[i].step_ms, s->token_ms, s->total_ms, s->cache_bytes, s->fits ? "true" : "false");
}
