/* adapters.c — low-rank adapters (LoRA) in a family's network: operators beside the adapted ones (config.h). */
#include "frontend/config/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adapted modules end with one of the names; "all-linear" is every linear layer except the last one, the head. */
static bool is_named(const char *module, const fe_targets *targets, bool is_last)
{
    for (size_t i = 0; i < targets->count; i++) {
        const char *name = targets->names[i];
        size_t length = strlen(name), size = strlen(module);
        if (strcmp(name, "all-linear") == 0 && !is_last) return true;
        if (size < length || strcmp(module + size - length, name) != 0) continue;
        if (size == length || module[size - length - 1] == '.') return true;
    }
    return false;
}

bool fe_mark_adapted(const mdot_job_operator *operators, size_t count, const fe_targets *targets, bool *out_marks)
{
    bool any = false;
    size_t last = count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(operators[i].type, "Linear") == 0) last = i;
    for (size_t i = 0; i < count; i++) {
        const mdot_job_operator *op = &operators[i];
        out_marks[i] = strcmp(op->type, "Linear") == 0 && op->parameters > 0 && op->module != NULL &&
                       op->input_count == 1 && is_named(op->module, targets, i == last);
        any = any || out_marks[i];
    }
    return any;
}

static void set_loads(mdot_load *load, double flops, double bytes_read, double bytes_written)
{
    *load = (mdot_load){.flops = flops, .bytes_read = bytes_read, .bytes_written = bytes_written};
}

/* A linear layer without bias, which reads and writes these bytes in the forward pass of a sample. */
static void make_linear(mdot_job_operator *op, int64_t from, int64_t to, double bytes_read, double bytes_written)
{
    enum { FORWARD = MDOT_PHASE_FORWARD, DATA = MDOT_PHASE_DATA_GRADIENT, WEIGHT = MDOT_PHASE_WEIGHT_GRADIENT };
    double flops = bytes_read / 4 * 2 * (double)to;
    op->setting[MDOT_SETTING_CHANNELS_IN] = from;
    op->setting[MDOT_SETTING_CHANNELS_OUT] = to;
    op->parameters = (double)from * (double)to;
    set_loads(&op->per_sample[FORWARD], flops, bytes_read, bytes_written);
    set_loads(&op->per_sample[DATA], flops, bytes_written, bytes_read);
    set_loads(&op->per_sample[WEIGHT], flops, bytes_read + bytes_written, 0);
    set_loads(&op->per_step[FORWARD], 0, 4 * op->parameters, 0);
    set_loads(&op->per_step[DATA], 0, 4 * op->parameters, 0);
    set_loads(&op->per_step[WEIGHT], 0, 0, 4 * op->parameters);
}

/* A multiplication by a number, or a sum of two tensors, of a result of `bytes` for a sample. */
static void make_pointwise(mdot_job_operator *op, const char *type, int inputs, double bytes)
{
    op->type = type;
    memset(op->setting, 0, sizeof op->setting);
    op->setting[MDOT_SETTING_INPUTS] = inputs;
    op->parameters = 0;
    set_loads(&op->per_sample[MDOT_PHASE_FORWARD], bytes / 4, inputs * bytes, bytes);
    if (inputs == 1) set_loads(&op->per_sample[MDOT_PHASE_DATA_GRADIENT], bytes / 4, 2 * bytes, bytes);
    mdot_operator_traits_find(type, &op->traits);
}

/* Appends A, B, their scale and the sum behind the adapted operator, which is the last of `out`. */
static void append_adapter(fe_adapted *out, uint32_t rank, bool is_half)
{
    const mdot_job_operator *base = &out->operators[out->count - 1];
    const mdot_load *forward = &base->per_sample[MDOT_PHASE_FORWARD];
    int64_t from = base->setting[MDOT_SETTING_CHANNELS_IN], to = base->setting[MDOT_SETTING_CHANNELS_OUT];
    double read = forward->bytes_read, written = forward->bytes_written, hidden = read / (double)from * rank;
    uint32_t source = base->inputs[0], index = (uint32_t)(out->count - 1);
    const uint32_t inputs[4] = {source, index + 1, index + 2, index + 3};
    for (int i = 0; i < 4; i++) {
        mdot_job_operator *op = &out->operators[out->count];
        *op = (mdot_job_operator){.struct_size = sizeof *op,
                                  .type = base->type,
                                  .known = true,
                                  .traits = base->traits,
                                  .block = base->block,
                                  .flags = is_half ? MDOT_OPERATOR_RAN_FULL : 0,
                                  .module = base->module,
                                  .input_count = i == 3 ? 2 : 1,
                                  .inputs = out->inputs + out->input_count};
        if (i == 3) out->inputs[out->input_count++] = index;
        out->inputs[out->input_count++] = inputs[i];
        if (i < 2) {
            memcpy(op->setting, base->setting, sizeof op->setting);
            make_linear(op, i == 0 ? from : rank, i == 0 ? rank : to, i == 0 ? read : hidden,
                        i == 0 ? hidden : written);
            op->module = out->names[out->name_count];
            snprintf(out->names[out->name_count++], FE_MODULE_BYTES, "%.*s.lora_%c", FE_MODULE_BYTES - 9, base->module,
                     "AB"[i]);
        } else {
            make_pointwise(op, i == 2 ? "Mul" : "Add", i - 1, written);
        }
        out->count++;
    }
    /* The adapter's gradient is added to the others of the common input. */
    mdot_load *sum = &out->operators[source].per_sample[MDOT_PHASE_DATA_GRADIENT];
    set_loads(sum, sum->flops + read / 4, sum->bytes_read + 2 * read, sum->bytes_written + read);
}

void fe_free_adapted(fe_adapted *adapted)
{
    free(adapted->operators);
    free(adapted->inputs);
    free(adapted->names);
    *adapted = (fe_adapted){0};
}

mdot_status fe_adapt(const mdot_job_operator *operators, size_t count, const bool *marks, uint32_t rank, bool is_half,
                     fe_adapted *out, mdot_error *err)
{
    static const char *const trained[] = {"*.lora_A", "*.lora_B"};
    const mdot_job_freezing freezing = {.struct_size = sizeof freezing, .trained = trained, .trained_count = 2};
    size_t adapted = 0, inputs = 0;
    for (size_t i = 0; i < count; i++) {
        adapted += marks[i];
        inputs += operators[i].input_count;
    }
    *out = (fe_adapted){.operators = calloc(count + 4 * adapted, sizeof *out->operators),
                        .inputs = calloc(inputs + 5 * adapted + 1, sizeof *out->inputs),
                        .names = calloc(2 * adapted, sizeof *out->names)};
    uint32_t *results = calloc(count + 1, sizeof *results);
    mdot_status status = MDOT_OK;
    if (out->operators == NULL || out->inputs == NULL || out->names == NULL || results == NULL)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < count && status == MDOT_OK; i++) {
        mdot_job_operator *op = &out->operators[out->count++];
        *op = operators[i];
        op->inputs = out->inputs + out->input_count;
        for (size_t k = 0; k < op->input_count; k++) out->inputs[out->input_count++] = results[operators[i].inputs[k]];
        if (marks[i]) append_adapter(out, rank, is_half);
        results[i] = (uint32_t)(out->count - 1);
    }
    free(results);
    return status == MDOT_OK ? mdot_operators_freeze(&freezing, out->operators, out->count, err) : status;
}
