/* predict_explain.c — `mdot predict --explain`: step time and memory by phase, block, operator, module.
 *
 * Each table adds up to the prediction. Operators beyond the table's length share the line "others", and the last line
 * holds time and memory outside all operators. */
#include "cli/predict/predict_request.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define PERCENT_OF_EQUAL 0.1 /* largest difference of equal blocks; memory at the peak differs a little between them */

enum { MOST_LINES = 14, NAME_COLUMNS = 27 };

/* Operators on one line of a table. */
typedef struct group {
    char name[96];
    size_t count; /* number of operators or equal blocks */
    double forward_ms, backward_ms, optimizer_ms, bytes;
} group;

typedef struct groups {
    group *items; /* ordered by first operator */
    size_t count;
    void *by_name; /* tsearch(3) tree of the groups, while they are collected */
} groups;

static double all_ms(const group *g) { return g->forward_ms + g->backward_ms + g->optimizer_ms; }

static void add_time(group *sum, const mdot_operator_time *s)
{
    sum->count++;
    sum->forward_ms += s->forward_ms;
    sum->backward_ms += s->data_gradient_ms + s->weight_gradient_ms;
    sum->optimizer_ms += s->optimizer_ms;
    sum->bytes += s->weight_bytes + s->gradient_bytes + s->optimizer_bytes + s->activation_bytes;
}

static void add_group(group *sum, const group *part)
{
    sum->count += part->count;
    sum->forward_ms += part->forward_ms;
    sum->backward_ms += part->backward_ms;
    sum->optimizer_ms += part->optimizer_ms;
    sum->bytes += part->bytes;
}

/* Common prefix of a block's module names, as in "encoder.layer.3"; "" if there is none. */
typedef char block_name[96];

static void shorten_to_common(block_name name, const char *module)
{
    size_t common = 0, whole = 0;
    for (; name[common] != '\0' && name[common] == module[common]; common++)
        if (name[common] == '.') whole = common;
    bool ends = (name[common] == '\0' || name[common] == '.') && (module[common] == '\0' || module[common] == '.');
    name[ends ? common : whole] = '\0';
}

/* Finds the names of all blocks, from 1 on. False: memory ran out. */
static bool name_blocks(const predict_answers *answers, block_name **out_names)
{
    block_name *names = calloc((size_t)answers->job.block_count + 1, sizeof *names);
    bool *begun = calloc((size_t)answers->job.block_count + 1, sizeof *begun);
    for (size_t i = 0; names != NULL && begun != NULL && i < answers->job.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(answers->first_job, i, &op);
        if (op.block == 0 || op.module == NULL) continue;
        if (begun[op.block])
            shorten_to_common(names[op.block], op.module);
        else
            snprintf(names[op.block], sizeof *names, "%s", op.module);
        begun[op.block] = true;
    }
    bool allocated = names != NULL && begun != NULL;
    free(begun);
    if (!allocated) free(names);
    if (allocated) *out_names = names;
    return allocated;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const group *)a)->name, ((const group *)b)->name);
}

/* Finds or creates the group of this name; NULL: memory ran out. */
static group *find_group(groups *set, const char *name)
{
    group *added = &set->items[set->count];
    *added = (group){.count = 0};
    snprintf(added->name, sizeof added->name, "%s", name);
    group **found = tsearch(added, &set->by_name, compare_names);
    if (found == NULL) return NULL;
    if (*found == added) set->count++;
    return *found;
}

static void keep_node(void *of_groups) { (void)of_groups; }

typedef enum grouping { BY_BLOCK, BY_TYPE, BY_MODULE } grouping;

/* Returns the end of a long name: the end is more specific than the beginning. */
static const char *end_of(const char *name, size_t columns)
{
    size_t length = strlen(name);
    return length > columns ? name + length - columns : name;
}

static void name_group(const mdot_job_operator *op, grouping key, const block_name *blocks, bool behind,
                       char name[sizeof((group *)NULL)->name])
{
    enum { BYTES = sizeof((group *)NULL)->name };
    const char *module = op->module != NULL ? op->module : "";
    const char *block = blocks[op->block];
    size_t within = strlen(block);
    if (key == BY_TYPE) {
        snprintf(name, BYTES, "%s", op->type);
    } else if (key == BY_MODULE) {
        bool is_inside = op->block > 0 && within > 0 && strncmp(module, block, within) == 0;
        module += is_inside ? within : 0;
        module += *module == '.';
        snprintf(name, BYTES, "%s%s%s", module, *module == '\0' ? "" : " ", op->type);
    } else if (op->block == 0) {
        snprintf(name, BYTES, "%s", behind ? "after blocks" : "before blocks");
    } else {
        int before = snprintf(name, BYTES, "%" PRIu32 "%s", op->block, *block == '\0' ? "" : ": ");
        size_t columns = NAME_COLUMNS - (size_t)before;
        const char *end = within > columns ? end_of(block, columns - strlen("..")) : block;
        snprintf(name + before, BYTES - (size_t)before, "%s%s", end == block ? "" : "..", end);
    }
}

mdot_explanation_info predict_explained(const mdot_explanation *explanation, const mdot_prediction *p)
{
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    mdot_explanation_get_info(explanation, &info);
    double scale = p->gpu_ms / (info.step_ms - info.data_ms);
    double *const ms[] = {
        &info.forward_ms,       &info.data_gradient_ms, &info.weight_gradient_ms, &info.optimizer_ms, &info.host_ms,
        &info.communication_ms, &info.idle_ms,          &info.gpu_busy_ms,        &info.host_busy_ms, &info.overlap_ms};
    for (size_t k = 0; k < sizeof ms / sizeof *ms; k++) *ms[k] *= scale;
    info.step_ms = p->step_ms;
    info.data_ms = p->step_ms - p->gpu_ms;
    return info;
}

mdot_operator_time predict_explained_operator(const mdot_explanation *explanation, const mdot_prediction *p,
                                              size_t index)
{
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    mdot_operator_time time = MDOT_INIT(mdot_operator_time);
    mdot_explanation_get_info(explanation, &info);
    mdot_explanation_get_operator(explanation, index, &time);
    double scale = p->gpu_ms / (info.step_ms - info.data_ms);
    time.forward_ms *= scale;
    time.data_gradient_ms *= scale;
    time.weight_gradient_ms *= scale;
    time.optimizer_ms *= scale;
    return time;
}

static mdot_explanation_info info_of(const predict_answers *answers, size_t i)
{
    return predict_explained(answers->explanations[i], &answers->predictions[i]);
}

static mdot_operator_time operator_time_of(const predict_answers *answers, size_t i, size_t index)
{
    return predict_explained_operator(answers->explanations[i], &answers->predictions[i], index);
}

/* The caller frees the items. */
static mdot_status collect(const predict_answers *answers, grouping key, groups *out, mdot_error *err)
{
    block_name *blocks = NULL;
    /* one more than needed, because find_group builds the name to compare in the next free item */
    *out = (groups){.items = calloc(answers->job.operator_count + 1, sizeof *out->items)};
    bool is_allocated = out->items != NULL && name_blocks(answers, &blocks), behind = false;
    for (size_t i = 0; i < answers->job.operator_count && is_allocated; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_operator_time time = operator_time_of(answers, 0, i);
        char name[sizeof out->items->name];
        mdot_job_get_operator(answers->first_job, i, &op);
        behind = behind || op.block > 0;
        name_group(&op, key, blocks, behind, name);
        group *g = find_group(out, name);
        is_allocated = g != NULL;
        if (is_allocated) add_time(g, &time);
    }
    tdestroy(out->by_name, keep_node);
    out->by_name = NULL;
    free(blocks);
    if (is_allocated) return MDOT_OK;
    free(out->items);
    return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
}

static bool is_number(char first) { return first >= '0' && first <= '9'; }

/* Joins neighbouring blocks with equal time into one line with a count. */
static void join_equal_blocks(groups *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        bool is_block = is_number(set->items[i].name[0]);
        if (is_block) set->items[i].count = 1;
        group *previous = kept > 0 ? &set->items[kept - 1] : NULL;
        if (is_block && previous != NULL && is_number(previous->name[0])) {
            double one = all_ms(previous) / (double)previous->count, this = all_ms(&set->items[i]);
            if (this <= one * (1 + PERCENT_OF_EQUAL / 100) && one <= this * (1 + PERCENT_OF_EQUAL / 100)) {
                add_group(previous, &set->items[i]);
                continue;
            }
        }
        set->items[kept++] = set->items[i];
    }
    set->count = kept;
}

static int compare(const void *a, const void *b)
{
    double x = all_ms(a), y = all_ms(b);
    return x > y ? -1 : x < y ? 1 : strcmp(((const group *)a)->name, ((const group *)b)->name);
}

/* Keeps the longest lines and sums the rest in one. */
static void keep_longest(groups *set)
{
    qsort(set->items, set->count, sizeof *set->items, compare);
    if (set->count <= MOST_LINES) return;
    group others = {.name = "others"};
    for (size_t i = MOST_LINES - 1; i < set->count; i++) add_group(&others, &set->items[i]);
    set->items[MOST_LINES - 1] = others;
    set->count = MOST_LINES;
}

static void print_line(const group *g, double step_ms, double bytes)
{
    cli_text name;
    const char *shown = end_of(cli_printable(&name, g->name), NAME_COLUMNS);
    if (shown != name.text) shown += strlen("..");
    printf("    %s%-*s %5zu %7.2f %8.2f %6.2f %5.1f %6.2f %5.1f\n", shown != name.text ? ".." : "",
           shown != name.text ? NAME_COLUMNS - 2 : NAME_COLUMNS, shown, g->count, g->forward_ms, g->backward_ms,
           g->optimizer_ms, 100 * all_ms(g) / step_ms, g->bytes / CLI_GIB, bytes > 0 ? 100 * g->bytes / bytes : 0);
}

static void print_table(const char *title, const groups *set, const mdot_explanation_info *info, double bytes)
{
    printf("\n  %-*s %5s %7s %8s %6s %5s %6s %5s\n", NAME_COLUMNS + 2, title, "times", "forward", "backward", "update",
           "%", "GiB", "%");
    for (size_t i = 0; i < set->count; i++) print_line(&set->items[i], info->step_ms, bytes);
    double waited_ms = info->host_ms + info->communication_ms + info->idle_ms + info->data_ms;
    if (waited_ms > 0) printf("    %-*s %29s %5.1f\n", NAME_COLUMNS, "waiting", "", 100 * waited_ms / info->step_ms);
}

static mdot_status print_grouped(const predict_answers *answers, grouping key, const char *title, mdot_error *err)
{
    groups set;
    mdot_explanation_info info = info_of(answers, 0);
    BS_TRY(collect(answers, key, &set, err));
    if (key == BY_BLOCK)
        join_equal_blocks(&set);
    else
        keep_longest(&set);
    double bytes = info.weight_bytes + info.gradient_bytes + info.optimizer_bytes + info.activation_bytes;
    print_table(title, &set, &info, bytes);
    free(set.items);
    return MDOT_OK;
}

static void print_part(const char *name, double ms, double step_ms)
{
    if (ms > 0) printf("    %-44s %9.2f ms %6.1f %%\n", name, ms, 100 * ms / step_ms);
}

static bool has_modules(const predict_answers *answers)
{
    for (size_t i = 0; i < answers->job.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(answers->first_job, i, &op);
        if (op.module != NULL) return true;
    }
    return false;
}

mdot_status predict_explain(const predict_answers *answers, mdot_error *err)
{
    mdot_explanation_info info = info_of(answers, 0);
    printf("\n  time by phase%s\n",
           (info.approximate & MDOT_EXPLAINED_BY_ROOFLINE) != 0 ? ", estimated from times at peak rates"
           : info.approximate != 0 ? ", estimated analytically where the predictor lacks an input"
                                   : "");
    print_part("forward", info.forward_ms, info.step_ms);
    print_part("backward: data gradients", info.data_gradient_ms, info.step_ms);
    print_part("backward: weight gradients", info.weight_gradient_ms, info.step_ms);
    print_part("optimizer update", info.optimizer_ms, info.step_ms);
    print_part("waiting for kernel launches by the host", info.host_ms, info.step_ms);
    print_part("communication with other GPUs", info.communication_ms, info.step_ms);
    print_part("idle in the pipeline bubble", info.idle_ms, info.step_ms);
    print_part("waiting for data loaders", info.data_ms, info.step_ms);
    if (info.overlap_ms > 0)
        printf("    busy: the GPU %.2f ms, the host %.2f, both at once %.2f\n", info.gpu_busy_ms, info.host_busy_ms,
               info.overlap_ms);
    cli_print_check(answers->first_job, "    ");
    if (answers->job.block_count > 0) BS_TRY(print_grouped(answers, BY_BLOCK, "by block, ms", err));
    BS_TRY(print_grouped(answers, BY_TYPE, "by operator, ms", err));
    if (has_modules(answers)) BS_TRY(print_grouped(answers, BY_MODULE, "by module, ms", err));
    return MDOT_OK;
}

static void print_json_operator(const predict_answers *answers, size_t i, size_t index)
{
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    mdot_operator_time s = operator_time_of(answers, i, index);
    mdot_job_get_operator(answers->variants[answers->variant[i]].job, index, &op);
    printf("%s\n     {\"operator\": %zu", index == 0 ? "" : ",", index);
    cli_json_member(stdout, ", ", "type", op.type);
    printf(", \"block\": %" PRIu32, op.block);
    if (op.module != NULL) cli_json_member(stdout, ", ", "module", op.module);
    printf(", \"forward_ms\": %.9g, \"data_gradient_ms\": %.9g, \"weight_gradient_ms\": %.9g, \"optimizer_ms\": %.9g, ",
           s.forward_ms, s.data_gradient_ms, s.weight_gradient_ms, s.optimizer_ms);
    printf("\"weight_bytes\": %.0f, \"gradient_bytes\": %.0f, \"optimizer_bytes\": %.0f, \"activation_bytes\": %.0f}",
           s.weight_bytes, s.gradient_bytes, s.optimizer_bytes, s.activation_bytes);
}

void predict_json_explanation(const predict_answers *answers, size_t i)
{
    mdot_explanation_info info = info_of(answers, i);
    printf(",\n   \"explanation\": {\"by_roofline\": %s, \"analytic_estimate\": %s, \"forward_ms\": %.9g, "
           "\"data_gradient_ms\": %.9g, ",
           (info.approximate & MDOT_EXPLAINED_BY_ROOFLINE) != 0 ? "true" : "false",
           (info.approximate & MDOT_EXPLAINED_BY_MODEL) != 0 ? "true" : "false", info.forward_ms,
           info.data_gradient_ms);
    printf("\"weight_gradient_ms\": %.9g, \"optimizer_ms\": %.9g,\n    \"host_ms\": %.9g, \"communication_ms\": %.9g, "
           "\"idle_ms\": %.9g, \"data_ms\": %.9g,\n    ",
           info.weight_gradient_ms, info.optimizer_ms, info.host_ms, info.communication_ms, info.idle_ms, info.data_ms);
    printf("\"gpu_busy_ms\": %.9g, \"host_busy_ms\": %.9g, \"overlap_ms\": %.9g,\n    \"operators\": [",
           info.gpu_busy_ms, info.host_busy_ms, info.overlap_ms);
    for (size_t k = 0; k < info.operator_count; k++) print_json_operator(answers, i, k);
    printf("]}");
}
