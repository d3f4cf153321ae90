/* operator_features.c — a job as the rows that a predictor reads.
 *
 * An entry that reads positions gets the operators in their order. For any other entry a job is a multiset: equal
 * operators become one row with a count (operator_groups.c), which makes a network several times shorter. A job that is
 * still longer than the largest bucket is shortened. Neighbours are merged as long as the cost of a row stays within
 * a limit. The limit is the least one that makes few enough rows, found by bisection. So cheap operators are merged
 * and expensive ones stay separate. A job of any length is accepted and needs no extra memory.
 *
 * A merged row has the type, settings and position of its most expensive operator. It has the FLOPs and bytes of all
 * its operators: their mean if the entry reads counts, otherwise their sum.
 *
 * If several GPUs share the operators (sharding.h), rows describe one of them. FLOPs, bytes and widths are those of
 * the shard, and counts are multiplied by the GPU's part, which can make them fractional.
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/predict/predictor_tensors.h"

#include <string.h>

/* An element of the job as the entry sees it before shortening. */
typedef struct item {
    uint32_t index;
    double count; /* number of equal operators, times their part on one GPU */
} item;

typedef struct sequence {
    const mdot_job *job;
    const rt_sharding *sharding;
    const rt_shard *shard;
    const rt_operator_groups *groups; /* NULL: operators in their order */
    size_t length;
} sequence;

static item get_item(const sequence *s, size_t at)
{
    uint32_t index = s->groups == NULL ? (uint32_t)at : s->groups->items[at].first;
    double part = s->shard->of[s->sharding->position[index]];
    return (item){index, s->groups == NULL ? part : part * s->groups->items[at].count};
}

static double cost_of(const sequence *s, item i) { return s->job->analysis->op_costs.cost[i.index] * i.count; }

enum { LIMIT_BISECTIONS = 64 };
static const double nothing_merged = -1;

/* The index behind the last item in the row that starts at `start`. */
static size_t end_of_row(const sequence *s, size_t start, double limit)
{
    double cost = cost_of(s, get_item(s, start));
    size_t end = start + 1;
    while (end < s->length) {
        cost += cost_of(s, get_item(s, end));
        if (cost > limit) break;
        end++;
    }
    return end;
}

static size_t count_rows(const sequence *s, double limit)
{
    size_t count = 0;
    for (size_t start = 0; start < s->length; start = end_of_row(s, start, limit)) count++;
    return count;
}

/* The number of rows falls as the limit rises, because greedy cutting makes the fewest rows within a limit. Two
 * neighbouring rows together cost more than the limit, so that a limit of twice the mean makes few enough rows. */
static double find_limit(const sequence *s, size_t capacity)
{
    if (s->length <= capacity) return nothing_merged;
    double total = 0;
    for (size_t index = 0; index < s->length; index++) total += cost_of(s, get_item(s, index));
    double too_low = 0, enough = capacity > 2 ? 2 * total / (double)(capacity - 1) : total;
    for (int i = 0; i < LIMIT_BISECTIONS && enough - too_low > enough / 1024; i++) {
        double middle = too_low + (enough - too_low) / 2;
        *(count_rows(s, middle) <= capacity ? &enough : &too_low) = middle;
    }
    return enough;
}

static void add_load(double *sums, const mdot_load *loads, double weight)
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        sums[RT_LOAD_NUMBERS * phase] += weight * loads[phase].flops;
        sums[RT_LOAD_NUMBERS * phase + 1] += weight * loads[phase].bytes_read;
        sums[RT_LOAD_NUMBERS * phase + 2] += weight * loads[phase].bytes_written;
    }
}

/* `divisor` is 1 for sums. */
static void write_loads(const sequence *s, size_t start, size_t end, double divisor, float *row)
{
    double sums[RT_LOAD_COLUMNS] = {0};
    for (size_t index = start; index < end; index++) {
        item i = get_item(s, index);
        mdot_job_operator buffer;
        const mdot_job_operator *op = rt_sharded_operator(s->job, s->sharding, i.index, s->shard, &buffer);
        double weight = i.count / divisor;
        add_load(sums, op->per_sample, weight);
        add_load(sums + MDOT_PHASE_COUNT * RT_LOAD_NUMBERS, op->per_step, weight);
        sums[RT_LOAD_COLUMNS - 1] += weight * rt_dense_parameters(op);
    }
    for (int i = 0; i < RT_LOAD_COLUMNS; i++) row[i] = (float)sums[i];
}

/* Predictors multiply settings with each other in f32. For example, they multiply the sides of a window and
 * channels, or the steps of a recurrence, its directions and its channels twice, by a batch of up to 2^24. Settings
 * are therefore cut to values beyond any real operator, so that products of extreme settings stay finite: positions
 * and extents to 2^31, directions to 2, all others to 2^24, up to which f32 represents every integer. */
static float cut_setting(size_t setting, int64_t value)
{
    int64_t maximum = INT64_C(1) << 24;
    if (setting == MDOT_SETTING_SIZE_IN || setting == MDOT_SETTING_SIZE_OUT || setting == MDOT_SETTING_EXTENT)
        maximum = INT64_C(1) << 31;
    if (setting == MDOT_SETTING_DIRECTIONS) maximum = 2;
    return (float)(value > maximum ? maximum : value < -maximum ? -maximum : value);
}

static void write_position(const mdot_job_operator *op, uint32_t index, float *row, size_t columns)
{
    const float position[RT_POSITION_COLUMNS] = {(float)index, (float)op->depth, (float)op->height,
                                                 (float)op->input_count, (float)op->out_degree};
    memcpy(row, position, columns * sizeof *row);
}

static void write_row(const sequence *s, size_t start, size_t end, rt_job_tensors *tensors, size_t row)
{
    item top = get_item(s, start);
    double count = 0;
    for (size_t index = start; index < end; index++) {
        item i = get_item(s, index);
        count += i.count;
        if (cost_of(s, i) > cost_of(s, top)) top = i;
    }
    mdot_job_operator buffer;
    const mdot_job_operator *op = rt_sharded_operator(s->job, s->sharding, top.index, s->shard, &buffer);
    int64_t *type = tensors->rows[RT_JOB_INPUT_TYPE];
    float *setting = tensors->rows[RT_JOB_INPUT_SETTING], *load = tensors->rows[RT_JOB_INPUT_LOAD];
    float *position = tensors->rows[RT_JOB_INPUT_POSITION], *counts = tensors->rows[RT_JOB_INPUT_REPEATS];
    const size_t *columns = tensors->schema.columns, *known = tensors->schema.known;
    if (type != NULL) type[row] = op->traits.number < tensors->schema.type_count ? op->traits.number : 0;
    for (size_t i = 0; setting != NULL && i < known[RT_JOB_INPUT_SETTING]; i++)
        setting[columns[RT_JOB_INPUT_SETTING] * row + i] = cut_setting(i, op->setting[i]);
    if (load != NULL) write_loads(s, start, end, counts != NULL && count > 0 ? count : 1, load + RT_LOAD_COLUMNS * row);
    if (position != NULL)
        write_position(op, top.index, position + columns[RT_JOB_INPUT_POSITION] * row, known[RT_JOB_INPUT_POSITION]);
    if (counts != NULL) counts[row] = (float)count;
}

static sequence sequence_of(const mdot_job *job, const rt_shard *shard, const rt_job_tensors *tensors)
{
    bool in_order = tensors->rows[RT_JOB_INPUT_POSITION] != NULL;
    const rt_analysis *a = job->analysis;
    const rt_operator_groups *groups = rt_is_unsharded(shard) ? &a->groups : &a->sharded_groups;
    size_t length = in_order ? job->info.operator_count : groups->count;
    return (sequence){job, &a->sharding, shard, in_order ? NULL : groups, length};
}

void rt_write_operator_features(const mdot_job *job, const rt_shard *shard, rt_job_tensors *tensors)
{
    sequence s = sequence_of(job, shard, tensors);
    tensors->encoded = NULL;
    tensors->row_count = 0;
    tensors->shortened = false;
    if (tensors->schema.row_capacity == 0) return;
    double limit = find_limit(&s, tensors->schema.row_capacity);
    for (size_t start = 0, end; start < s.length; start = end) {
        end = end_of_row(&s, start, limit);
        write_row(&s, start, end, tensors, tensors->row_count++);
    }
    tensors->shortened = tensors->row_count < s.length;
}

void rt_find_feature_rows(const mdot_job *job, const rt_shard *shard, const rt_job_tensors *tensors, uint32_t *out_row)
{
    sequence s = sequence_of(job, shard, tensors);
    double limit = find_limit(&s, tensors->schema.row_capacity);
    size_t row = 0, end = s.length > 0 ? end_of_row(&s, 0, limit) : 0;
    for (size_t i = 0; i < job->info.operator_count; i++) out_row[i] = 0;
    for (size_t index = 0; index < s.length; index++) {
        if (index == end) {
            end = end_of_row(&s, index, limit);
            row++;
        }
        out_row[get_item(&s, index).index] = (uint32_t)row;
    }
    for (size_t i = 0; s.groups != NULL && i < job->info.operator_count; i++)
        out_row[i] = out_row[s.groups->items[s.groups->of[i]].first];
}
