/* build_job.c — a family's job at three lengths, and so at any length (config.h). */
#include "frontend/config/config.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPERATORS = 1 << 16, TRIES = 3 };
enum { DEFAULT_LENGTH = 128 };
#define MAX_NUMBER 0x1p62

/* Columns of an operator in a description. */
enum { TYPE, MODULE, KNOWN, FLAGS, HALF_FLAGS, IN_BLOCK, PARAMETERS, SETTINGS, LOADS, INPUTS, BATCH_SETTINGS };

static json_object *entry(json_object *array, int64_t index) { return json_object_array_get_idx(array, (size_t)index); }
static int64_t whole(json_object *array, int64_t index) { return json_object_get_int64(entry(array, index)); }

typedef struct builder {
    const fe_family *family;
    const mdot_job_options *options;
    json_object *operators, *records, *texts, *parts, *adapted_records;
    double *numbers;   /* of the formulas */
    int64_t *copies;   /* of the parts */
    int64_t *position; /* by index in the parts: the operator of the first copy */
    mdot_job_operator *made;
    uint32_t *inputs;
    char (*modules)[FE_MODULE_BYTES];
    size_t operator_count, described_count, input_count, formula_count;
    bool is_quiet; /* warnings were given at another length */
    mdot_error *err;
} builder;

static mdot_status malformed(const builder *b, const char *reason)
{
    const char *version = fe_text(b->family->description, "mdot");
    return mdot_fail(b->err, MDOT_MALFORMED,
                     "%s: the description of the family %s %s; mdot %s wrote it for its own version, and this is mdot "
                     "%s: use the ready jobs of this version (MDOT_JOBS)",
                     b->family->path, fe_text(b->family->description, "family"), reason,
                     version != NULL ? version : "(unknown version)", MDOT_VERSION_STRING);
}

/* Computes the counts of the parts. The formulas may use the number of the middle blocks beyond those of the traces. */
static mdot_status count_copies(builder *b, fe_sizes *sizes)
{
    static const char *const beyond[] = {"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"};
    size_t middles = 0, described = 0;
    double total = 0;
    for (size_t p = 0; p < json_object_array_length(b->parts); p++) {
        json_object *part = entry(b->parts, (int64_t)p);
        const char *formula = json_object_get_string(entry(part, 0));
        size_t size = json_object_array_length(entry(part, 1));
        double count;
        if (!fe_compute(formula, sizes, &count)) return malformed(b, "has an invalid count");
        bool is_middle = strcmp(formula, "1") != 0;
        if (is_middle && count < 0)
            return mdot_fail(b->err, MDOT_UNSUPPORTED,
                             "%s: the network has too few layers (%s = %g); mdot builds networks of at least two",
                             b->family->path, formula, count);
        if (is_middle &&
            (middles == sizeof beyond / sizeof *beyond || !fe_add_size(sizes, beyond[middles++], count - 2)))
            return malformed(b, "has too many parts");
        total += count * (double)size;
        described += size;
        b->copies[p] = (int64_t)fmin(count, MAX_OPERATORS);
        if (total > MAX_OPERATORS)
            return mdot_fail(b->err, MDOT_MALFORMED, "%s: the layers have more than %d operators", b->family->path,
                             MAX_OPERATORS);
    }
    b->operator_count = (size_t)total;
    b->described_count = described;
    b->position = calloc(described + 1, sizeof *b->position);
    b->made = calloc(b->operator_count + 1, sizeof *b->made);
    b->modules = calloc(b->operator_count + 1, sizeof *b->modules);
    bool allocated = b->position != NULL && b->made != NULL && b->modules != NULL;
    return allocated ? MDOT_OK : BS_OUT_OF_MEMORY(b->err, "%s", b->family->path);
}

static mdot_status compute_numbers(builder *b, const fe_sizes *sizes)
{
    json_object *formulas = fe_member(b->family->description, "formulas");
    for (size_t i = 0; i < b->formula_count; i++) {
        const char *formula = json_object_get_string(entry(formulas, (int64_t)i));
        if (!fe_compute(formula, sizes, &b->numbers[i])) return malformed(b, "has an invalid formula");
        b->numbers[i] = fmax(rint(b->numbers[i]), 0);
        if (b->numbers[i] > MAX_NUMBER)
            return mdot_fail(b->err, MDOT_MALFORMED,
                             "%s: the sizes give %s = %g FLOPs, bytes or elements; the limit is 2^62", b->family->path,
                             formula, b->numbers[i]);
    }
    return MDOT_OK;
}

/* The number with this index; 0 for an index beyond the formulas. */
static double number(const builder *b, json_object *array, int64_t index)
{
    int64_t i = whole(array, index);
    return i >= 0 && (size_t)i < b->formula_count ? b->numbers[i] : 0;
}

static void set_load(mdot_job_operator *op, int64_t slot, double value)
{
    enum { PARTS = 3, PAIR = 2 * PARTS, SQUARES = PAIR * MDOT_PHASE_COUNT, END = SQUARES + PARTS * MDOT_PHASE_COUNT };
    if (slot < 0 || slot >= END) return;
    mdot_load *load = slot >= SQUARES        ? &op->per_square[(slot - SQUARES) / PARTS]
                      : slot % PAIR >= PARTS ? &op->per_step[slot / PAIR]
                                             : &op->per_sample[slot / PAIR];
    double *const numbers[PARTS] = {&load->flops, &load->bytes_read, &load->bytes_written};
    *numbers[slot % PARTS] = value;
}

/* The module's name, with the number of its layer in place of '#'. */
static void name_module(char out[FE_MODULE_BYTES], const char *pattern, int64_t layer)
{
    const char *mark = strchr(pattern, '#');
    if (mark == NULL)
        snprintf(out, FE_MODULE_BYTES, "%s", pattern);
    else
        snprintf(out, FE_MODULE_BYTES, "%.*s%lld%s", (int)(mark - pattern), pattern, (long long)layer, mark + 1);
}

/* Inputs are distances, or -1 - i for operator i of all parts. False if one would not come before the operator. */
static bool add_inputs(builder *b, json_object *row, size_t index)
{
    json_object *inputs = entry(row, INPUTS);
    mdot_job_operator *op = &b->made[index];
    op->inputs = b->inputs + b->input_count;
    for (size_t i = 0; i < json_object_array_length(inputs); i++) {
        int64_t source = whole(inputs, (int64_t)i);
        if (source <= -1 - (int64_t)b->described_count) return false;
        source = source > 0 ? (int64_t)index - source : source < 0 ? b->position[-1 - source] : -1;
        if (source < 0 || source >= (int64_t)index) return false;
        b->inputs[b->input_count++] = (uint32_t)source;
    }
    op->input_count = json_object_array_length(inputs);
    return true;
}

static bool add_operator(builder *b, json_object *row, size_t index, uint32_t block, int64_t layer)
{
    mdot_job_operator *op = &b->made[index];
    op->struct_size = sizeof *op;
    op->type = json_object_get_string(entry(b->texts, whole(row, TYPE)));
    op->known = whole(row, KNOWN) != 0;
    op->flags = (uint32_t)whole(row, b->family->is_half ? HALF_FLAGS : FLAGS);
    op->block = block;
    op->parameters = number(b, row, PARAMETERS);
    if (op->type == NULL || row == NULL) return false;
    name_module(b->modules[index], json_object_get_string(entry(b->texts, whole(row, MODULE))), layer);
    if (b->modules[index][0] != '\0') op->module = b->modules[index];
    json_object *settings = entry(row, SETTINGS), *loads = entry(row, LOADS), *scaled = entry(row, BATCH_SETTINGS);
    for (size_t i = 0; i < json_object_array_length(settings); i++) {
        json_object *pair = entry(settings, (int64_t)i);
        int64_t setting = whole(pair, 0);
        if (setting >= 0 && setting < MDOT_SETTING_COUNT) op->setting[setting] = (int64_t)number(b, pair, 1);
    }
    for (size_t i = 0; i < json_object_array_length(loads); i++) {
        json_object *pair = entry(loads, (int64_t)i);
        set_load(op, whole(pair, 0), number(b, pair, 1));
    }
    for (size_t i = 0; i < json_object_array_length(scaled); i++)
        op->batch_settings |= UINT64_C(1) << (whole(scaled, (int64_t)i) & 63);
    if (op->known && mdot_operator_traits_find(op->type, &op->traits) != MDOT_OK) return false;
    return add_inputs(b, row, index);
}

/* Writes the copies of the parts one behind the other. */
static mdot_status add_operators(builder *b)
{
    size_t index = 0, described = 0;
    uint32_t block = 0;
    int64_t layer = 0;
    b->input_count = 0;
    for (size_t p = 0; p < json_object_array_length(b->parts); p++) {
        json_object *members = entry(entry(b->parts, (int64_t)p), 1);
        size_t size = json_object_array_length(members);
        bool in_block = whole(entry(b->operators, whole(members, 0)), IN_BLOCK) != 0;
        layer = in_block ? layer : 0;
        for (size_t i = 0; i < size; i++) b->position[described + i] = (int64_t)(index + i);
        for (int64_t copy = 0; copy < b->copies[p]; copy++) {
            block += in_block;
            for (size_t i = 0; i < size; i++) {
                json_object *row = entry(b->operators, whole(members, (int64_t)i));
                if (!add_operator(b, row, index++, in_block ? block : 0, layer))
                    return malformed(b, "has an invalid operator");
            }
            layer += in_block;
        }
        described += size;
    }
    return MDOT_OK;
}

static size_t count_inputs(const builder *b)
{
    size_t count = 0;
    for (size_t p = 0; p < json_object_array_length(b->parts); p++) {
        json_object *members = entry(entry(b->parts, (int64_t)p), 1);
        for (size_t i = 0; i < json_object_array_length(members); i++) {
            json_object *row = entry(b->operators, whole(members, (int64_t)i));
            count += (size_t)b->copies[p] * json_object_array_length(entry(row, INPUTS));
        }
    }
    return count;
}

static int index_of(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count && name != NULL; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

/* Columns of a moment: bytes by kind, in the order of mdot.trace.timeline's Kind. */
enum { SAMPLES, STEP, WEIGHT_COPIES, GRADIENTS, LOGITS, SQUARES };

/* A recorded pass, with room for its moments. Adapters of a network in 16 bits are in fp32. False if the description is
 * invalid. */
static bool read_record(const builder *b, json_object *row, double parameters, mdot_recorded_memory *out_record,
                        mdot_peak_moment *moments)
{
    static const struct {
        const char *name;
        mdot_precision precision;
    } types[] = {{"fp32", MDOT_PRECISION_FP32}, {"amp-fp16", MDOT_PRECISION_AMP}, {"bf16", MDOT_PRECISION_BF16}};
    enum { COMPILED = 3, WAYS = 5 }; /* from COMPILED on, they are those of compiled code */
    static const char *const ways[WAYS] = {"nothing", "blocks", "selective", "compiled", "compiled blocks"};
    static const mdot_recompute recompute[WAYS] = {MDOT_RECOMPUTE_NOTHING, MDOT_RECOMPUTE_BLOCKS,
                                                   MDOT_RECOMPUTE_SELECTIVE, MDOT_RECOMPUTE_SELECTIVE,
                                                   MDOT_RECOMPUTE_BLOCKS};
    const char *const names[] = {types[0].name, types[1].name, types[2].name};
    int type = index_of(names, 3, json_object_get_string(entry(row, 0)));
    int way = index_of(ways, WAYS, json_object_get_string(entry(row, 1)));
    json_object *rows = entry(row, 2);
    size_t count = rows != NULL ? json_object_array_length(rows) : 0;
    if (type < 0 || way < 0 || count < 1 || count > MDOT_PEAK_MOMENTS_MAX) return false;
    bool is_half = b->family->is_half ? b->options->adapters == NULL : types[type].precision == MDOT_PRECISION_BF16;
    for (size_t i = 0; i < count; i++) {
        json_object *m = entry(rows, (int64_t)i);
        double gradients = parameters > 0 ? number(b, m, GRADIENTS) / (parameters * (is_half ? 2 : 4)) : 0;
        moments[i] = (mdot_peak_moment){.per_sample = number(b, m, SAMPLES) + number(b, m, LOGITS),
                                        .per_step = number(b, m, STEP),
                                        .weight_copies = number(b, m, WEIGHT_COPIES),
                                        .gradients = fmin(gradients, 1),
                                        .logits = number(b, m, LOGITS),
                                        .per_square = number(b, m, SQUARES)};
    }
    *out_record = (mdot_recorded_memory){types[type].precision, recompute[way], count, moments, way >= COMPILED};
    return true;
}

static mdot_status add_program(const builder *b, mdot_job *job, mdot_job **out_job)
{
    json_object *variant = b->family->variant,
                *described = entry(fe_member(variant, "programs"), b->family->is_half ? 1 : 0),
                *records = b->options->adapters != NULL ? b->adapted_records : fe_member(described, "records");
    mdot_peak_moment moments[MDOT_RECORDED_MEMORY_MAX][MDOT_PEAK_MOMENTS_MAX];
    mdot_recorded_memory recorded[MDOT_RECORDED_MEMORY_MAX];
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    size_t count = records != NULL ? json_object_array_length(records) : 0;
    if (count > MDOT_RECORDED_MEMORY_MAX) return malformed(b, "has too many records");
    for (size_t i = 0; i < count; i++)
        if (!read_record(b, entry(b->records, whole(records, (int64_t)i)), info.parameters, &recorded[i], moments[i]))
            return malformed(b, "has an invalid record");
    static const char *const kernels[] = {"program", "eager", "flash"}; /* in the order of mdot_attention */
    int kernel = index_of(kernels, 3, fe_text(described, "attention"));
    int64_t buffers = json_object_get_int64(fe_member(described, "buffers"));
    const mdot_job_program program = {
        .struct_size = sizeof program,
        .precision = b->family->is_half ? MDOT_PRECISION_BF16 : MDOT_PRECISION_PYTORCH,
        .attention = kernel > 0 ? (mdot_attention)kernel : MDOT_ATTENTION_PROGRAM,
        .trained_bytes = info.parameters * (b->family->is_half && b->options->adapters == NULL ? 2 : 4),
        .frozen_bytes = info.frozen_parameters * (b->family->is_half ? 2 : 4),
        .buffer_bytes = buffers >= 0 && (size_t)buffers < b->formula_count ? b->numbers[buffers] : 0,
        .has_loss = json_object_get_boolean(fe_member(variant, "has_loss")) != 0,
        .framework = MDOT_FRAMEWORK_PYTORCH,
        .recorded_count = count,
        .recorded = recorded};
    return mdot_job_with_program(job, &program, out_job, b->err);
}

/* The records of the smallest described set of adapted modules that contains the marked ones. A larger set has a little
 * more memory. */
static void find_adapted_records(builder *b, const bool *marks, bool *others)
{
    json_object *sets = fe_member(b->family->variant, "adapters");
    size_t fewest = SIZE_MAX, marked = 0;
    for (size_t i = 0; i < b->operator_count; i++) marked += marks[i];
    for (size_t s = 0; sets != NULL && s < json_object_array_length(sets); s++) {
        json_object *set = entry(sets, (int64_t)s), *names = fe_member(set, "targets");
        const char *targets[FE_MAX_TARGETS];
        size_t count = json_object_array_length(names), size = 0;
        for (size_t i = 0; i < count && i < FE_MAX_TARGETS; i++)
            targets[i] = json_object_get_string(entry(names, (int64_t)i));
        const fe_targets described = {targets, count < FE_MAX_TARGETS ? count : FE_MAX_TARGETS};
        fe_mark_adapted(b->made, b->operator_count, &described, others);
        bool contains = true;
        for (size_t i = 0; i < b->operator_count; i++) {
            contains = contains && (others[i] || !marks[i]);
            size += others[i];
        }
        if (!contains || size >= fewest) continue;
        fewest = size;
        b->adapted_records = entry(fe_member(set, "records"), b->family->is_half ? 1 : 0);
    }
    if (fewest == marked || b->options->warning == NULL || b->is_quiet) return;
    char text[300];
    snprintf(text, sizeof text, "%s: the memory is %s", b->family->path,
             fewest == SIZE_MAX ? "estimated from the operators, because none was recorded with these adapters"
                                : "that of a network with more adapted modules, which was recorded");
    b->options->warning(b->options->user, text);
}

static mdot_status adapt(builder *b, fe_adapted *out)
{
    const mdot_job_adapters *adapters = b->options->adapters;
    const fe_targets targets = {adapters->targets, adapters->target_count};
    bool *marks = calloc(2 * b->operator_count, sizeof *marks);
    mdot_status status = MDOT_OK;
    *out = (fe_adapted){0};
    for (size_t i = 0; marks != NULL && i < targets.count && b->options->warning != NULL && !b->is_quiet; i++) {
        char text[300];
        if (fe_mark_adapted(b->made, b->operator_count, &(fe_targets){&targets.names[i], 1}, marks)) continue;
        snprintf(text, sizeof text, "%s: no linear layer is named as the target \"%.60s\", so it gets no adapter",
                 b->family->path, targets.names[i]);
        b->options->warning(b->options->user, text);
    }
    if (marks == NULL)
        status = BS_OUT_OF_MEMORY(b->err, "%s", b->family->path);
    else if (!fe_mark_adapted(b->made, b->operator_count, &targets, marks))
        status = mdot_fail(b->err, MDOT_NOT_FOUND, "%s: no linear layer is named as the adapters' targets, \"%.60s\"%s",
                           b->family->path, adapters->targets[0], adapters->target_count > 1 ? " and others" : "");
    if (status == MDOT_OK) {
        find_adapted_records(b, marks, marks + b->operator_count);
        status = fe_adapt(b->made, b->operator_count, marks, adapters->rank, b->family->is_half, out, b->err);
    }
    free(marks);
    return status;
}

static mdot_status finish_operators(builder *b, mdot_job **out_job)
{
    mdot_job *plain = NULL;
    fe_adapted adapted = {.operators = b->made, .count = b->operator_count};
    mdot_status status = b->options->adapters != NULL ? adapt(b, &adapted) : MDOT_OK;
    bool keeps_names = b->options->keep_names != 0 || b->options->freezing != NULL;
    for (size_t i = 0; i < adapted.count && !keeps_names && status == MDOT_OK; i++) adapted.operators[i].module = NULL;
    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = adapted.operators, .operator_count = adapted.count, .batch = 1};
    if (status == MDOT_OK) status = mdot_job_create(&description, &plain, b->err);
    if (status == MDOT_OK) status = add_program(b, plain, out_job);
    mdot_job_destroy(plain);
    if (b->options->adapters != NULL) fe_free_adapted(&adapted);
    return status;
}

static mdot_status build_at(const fe_family *family, const mdot_job_options *options, int64_t length, bool is_quiet,
                            mdot_job **out_job, mdot_error *err)
{
    fe_sizes sizes = family->sizes;
    json_object *description = family->description;
    builder b = {.family = family,
                 .options = options,
                 .operators = fe_member(description, "operators"),
                 .records = fe_member(description, "records"),
                 .texts = fe_member(description, "texts"),
                 .parts = fe_member(family->variant, "parts"),
                 .formula_count = json_object_array_length(fe_member(description, "formulas")),
                 .is_quiet = is_quiet,
                 .err = err};
    double rank = options->adapters != NULL ? options->adapters->rank : 0;
    if (!fe_add_size(&sizes, "L", (double)length) || !fe_add_size(&sizes, "rank", rank))
        return malformed(&b, "has too many sizes");
    b.copies = calloc(json_object_array_length(b.parts) + 1, sizeof *b.copies);
    b.numbers = calloc(b.formula_count + 1, sizeof *b.numbers);
    mdot_status status =
        b.copies != NULL && b.numbers != NULL ? count_copies(&b, &sizes) : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = compute_numbers(&b, &sizes);
    if (status == MDOT_OK) {
        b.inputs = calloc(count_inputs(&b) + 1, sizeof *b.inputs);
        status = b.inputs != NULL ? add_operators(&b) : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (status == MDOT_OK) status = finish_operators(&b, out_job);
    free(b.copies);
    free(b.numbers);
    free(b.position);
    free(b.made);
    free(b.inputs);
    free(b.modules);
    return status;
}

mdot_status fe_build_job(const fe_family *family, const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    if (json_object_get_boolean(fe_member(family->description, "length")) == 0)
        return build_at(family, options, 0, false, out_job, err);
    int64_t first = family->longest > 0 && family->longest < DEFAULT_LENGTH ? (int64_t)family->longest : DEFAULT_LENGTH;
    const int64_t lengths[TRIES] = {first, 2 * first, 4 * first};
    mdot_job *jobs[TRIES] = {NULL, NULL, NULL};
    mdot_status status = MDOT_OK;
    for (int i = 0; i < TRIES && status == MDOT_OK; i++)
        status = build_at(family, options, lengths[i], i > 0, &jobs[i], err);
    if (status == MDOT_OK) status = mdot_job_of_lengths((const mdot_job *const *)jobs, lengths, "length", out_job, err);
    for (int i = 0; i < TRIES; i++) mdot_job_destroy(jobs[i]);
    return status;
}
