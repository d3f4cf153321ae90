/* scaling.c — step times between measured ones, and gains of batch sizes. */
#include "simulator/core/scaling.h"
#include "simulator/core/arrays.h"

#include <math.h>
#include <stdlib.h>

enum { MOST_DIGITS = 10 };

void sc_scaling_destroy(sc_scaling *scaling)
{
    if (scaling == NULL) return;
    for (size_t type = 0; type < SC_MAX_TYPES; type++) free(scaling->tables[type].rows);
    free(scaling->noise);
    free(scaling);
}

mdot_status sc_step_table_add(sc_step_table *table, sc_step_row row, mdot_error *err)
{
    if (!sc_grow(&table->rows, table->row_count, sizeof *table->rows)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    table->rows[table->row_count++] = row;
    return MDOT_OK;
}

void sc_placement_add(sc_placement *placement, int gpus)
{
    uint64_t limit = 1;
    for (int i = 1; i < MOST_DIGITS; i++) limit *= 10;
    bool fits = gpus > 0 && gpus < 10 && placement->pattern < limit;
    /* A number of more digits is an unknown pattern, and stays one. */
    placement->pattern = fits ? 10 * placement->pattern + (uint64_t)gpus : 10 * limit;
}

/* Returns the smallest number among the rotations of the pattern's digits, because nodes in a ring have no first one;
 * 0: the pattern is unknown. */
static uint64_t normalise(uint64_t pattern)
{
    uint64_t top = 1, best = pattern, limit = 1;
    for (int i = 0; i < MOST_DIGITS; i++) limit *= 10;
    if (pattern >= limit) return 0;
    int digits = 1;
    for (; pattern / top >= 10; top *= 10) digits++;
    for (int i = 1; i < digits; i++) {
        pattern = pattern % top * 10 + pattern / top;
        if (pattern < best) best = pattern;
    }
    return best;
}

static int compare_placements(const sc_placement *a, const sc_placement *b)
{
    if (a->nodes != b->nodes) return a->nodes < b->nodes ? -1 : 1;
    if (a->gpus != b->gpus) return a->gpus < b->gpus ? -1 : 1;
    return (a->pattern > b->pattern) - (a->pattern < b->pattern);
}

static int by_placement(const void *left, const void *right)
{
    const sc_step_row *a = left, *b = right;
    int order = compare_placements(&a->placement, &b->placement);
    return order != 0 ? order : (a->samples > b->samples) - (a->samples < b->samples);
}

void sc_step_table_sort(sc_step_table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->row_count; i++) {
        sc_placement *placement = &table->rows[i].placement;
        placement->pattern = normalise(placement->pattern);
        int widest = placement->nodes == 1 ? placement->gpus : 1;
        for (uint64_t rest = placement->pattern; rest > 0; rest /= 10)
            if ((int)(rest % 10) > widest) widest = (int)(rest % 10);
        if (widest > table->widest_node) table->widest_node = widest;
        table->most_samples = fmax(table->most_samples, table->rows[i].samples);
    }
    qsort(table->rows, table->row_count, sizeof *table->rows, by_placement);
    for (size_t i = 0, end; i < table->row_count; i = end) {
        sc_step_row mean = table->rows[i];
        for (end = i + 1; end < table->row_count && by_placement(&table->rows[i], &table->rows[end]) == 0; end++) {
            mean.step_s += table->rows[end].step_s;
            mean.sync_s += table->rows[end].sync_s;
        }
        mean.step_s /= (double)(end - i);
        mean.sync_s /= (double)(end - i);
        table->rows[kept++] = mean;
    }
    table->row_count = kept;
}

double sc_step_model_s(const sc_step_model *model, int nodes, int gpus, double samples, int passes)
{
    double grad_s = model->grad_s + model->grad_per_sample_s * samples, sync_s = 0;
    if (gpus > 1 && nodes == 1) sync_s = model->local_s + model->local_per_gpu_s * (gpus - 2);
    if (gpus > 1 && nodes > 1) sync_s = model->node_s + model->node_per_gpu_s * (gpus - 2);
    /* The larger one is a factor, because its powers cannot overflow then. */
    double larger = fmax(grad_s, sync_s), smaller = fmin(grad_s, sync_s);
    double both_s = larger * pow(1 + pow(smaller / larger, model->overlap), 1 / model->overlap);
    return (passes - 1) * grad_s + both_s;
}

/* How a batch is divided: samples per GPU in each of `passes` micro-batches. */
static double divide(const sc_step_table *table, int gpus, double batch, int *out_passes)
{
    double item = batch / gpus;
    *out_passes = (int)ceil(fmin(item / table->most_samples * (1 - 1e-12), 1e6));
    if (*out_passes < 1) *out_passes = 1;
    return item / *out_passes;
}

/* Finds a placement's rows, or the nearest one's: first equal nodes and GPUs, then the logarithms of both. */
static const sc_step_row *find_rows(const sc_step_table *table, const sc_placement *placement, size_t *out_count)
{
    sc_placement wanted = {placement->nodes, placement->gpus, normalise(placement->pattern)};
    const sc_step_row *best = NULL;
    double minimum = INFINITY;
    for (size_t i = 0, end; i < table->row_count; i = end) {
        const sc_placement *p = &table->rows[i].placement;
        for (end = i + 1; end < table->row_count && compare_placements(p, &table->rows[end].placement) == 0;) end++;
        double distance = fabs(log((double)p->gpus / placement->gpus)) + fabs(log((double)p->nodes / placement->nodes));
        if (compare_placements(p, &wanted) == 0) distance = -1;
        if ((p->nodes == 1) != (placement->nodes == 1)) distance += 100; /* another kind of network */
        if (distance >= minimum) continue;
        minimum = distance;
        best = &table->rows[i];
        *out_count = end - i;
    }
    return best;
}

/* Interpolates between the rows of one placement. */
static void read_rows(const sc_step_row *rows, size_t count, double samples, double *out_step_s, double *out_sync_s)
{
    size_t above = 0;
    while (above < count && rows[above].samples < samples) above++;
    const sc_step_row *low = &rows[above > 0 ? above - 1 : 0], *high = &rows[above < count ? above : count - 1];
    double part = low == high ? 0 : log(samples / low->samples) / log(high->samples / low->samples);
    *out_step_s = low->step_s * pow(high->step_s / low->step_s, part);
    *out_sync_s = low->sync_s + (high->sync_s - low->sync_s) * part;
}

static double measured_s(const sc_step_table *table, const sc_placement *placement, double samples, int passes)
{
    size_t count = 0;
    double step_s, sync_s;
    const sc_step_row *rows = find_rows(table, placement, &count);
    const sc_placement *there = &rows->placement;
    double inside = fmin(fmax(samples, rows[0].samples), rows[count - 1].samples);
    read_rows(rows, count, inside, &step_s, &sync_s);
    double ratio = sc_step_model_s(&table->model, placement->nodes, placement->gpus, samples, 1) /
                   sc_step_model_s(&table->model, there->nodes, there->gpus, inside, 1);
    return ratio * (step_s + (passes - 1) * fmax(0, step_s - sync_s));
}

/* Returns the one-GPU time of `type` over the source type's. */
static double ratio_to_source(const sc_scaling *scaling, unsigned type, double samples)
{
    static const sc_placement one = {.nodes = 1, .gpus = 1, .pattern = 1};
    unsigned source = scaling->source[type];
    if (source == type) return 1;
    const sc_step_table *requested = &scaling->tables[type], *partner = &scaling->tables[source];
    double inside = fmin(samples, fmin(requested->most_samples, partner->most_samples));
    return measured_s(requested, &one, inside, 1) / measured_s(partner, &one, inside, 1);
}

double sc_scaling_step_s(const sc_scaling *scaling, unsigned type, const sc_placement *placement, double batch)
{
    int passes;
    unsigned source = scaling->source[type];
    int gpus = placement->gpus;
    bool is_unknown = scaling->is_predicted && ((gpus & (gpus - 1)) != 0 || batch < gpus); /* each needs a sample */
    if (source == SC_MAX_TYPES || is_unknown) return 0;
    double samples = divide(&scaling->tables[type], gpus, batch, &passes);
    return ratio_to_source(scaling, type, samples) * measured_s(&scaling->tables[source], placement, samples, passes);
}

double sc_scaling_model_s(const sc_scaling *scaling, unsigned type, int nodes, int gpus, double batch)
{
    int passes;
    unsigned source = scaling->source[type];
    if (source == SC_MAX_TYPES) return 0;
    if (scaling->is_predicted)
        return sc_scaling_step_s(scaling, type, &(sc_placement){.nodes = nodes, .gpus = gpus}, batch);
    double samples = divide(&scaling->tables[type], gpus, batch, &passes);
    return ratio_to_source(scaling, type, samples) *
           sc_step_model_s(&scaling->tables[source].model, nodes, gpus, samples, passes);
}

/* Interpolates one batch size's noise over progress, from rows `first` to `end`. */
static double noise_at(const sc_noise_row *rows, size_t first, size_t end, double progress)
{
    size_t above = first;
    while (above < end && rows[above].progress < progress) above++;
    if (above == first) return rows[first].noise;
    if (above == end) return rows[end - 1].noise;
    const sc_noise_row *low = &rows[above - 1], *high = &rows[above];
    return low->noise + (high->noise - low->noise) * (progress - low->progress) / (high->progress - low->progress);
}

double sc_scaling_gain(const sc_scaling *scaling, double batch, double progress)
{
    if (batch <= scaling->least_batch) return 1;
    double scale = batch / scaling->least_batch, noise = 0, below = 0, below_noise = 0;
    if (scaling->noise_count == 0) return scale;
    for (size_t first = 0, end; first < scaling->noise_count; first = end) {
        double here = scaling->noise[first].batch;
        for (end = first + 1; end < scaling->noise_count && scaling->noise[end].batch == here;) end++;
        noise = noise_at(scaling->noise, first, end, progress);
        if (here >= batch) {
            if (below > 0) noise = below_noise + (noise - below_noise) * log(batch / below) / log(here / below);
            break;
        }
        below = here;
        below_noise = noise;
    }
    return (noise + 1) / (noise / scale + 1);
}

double sc_scaling_speed(const sc_scaling *scaling, unsigned type, const sc_placement *placement, double batch,
                        double progress)
{
    if (batch == 0) batch = scaling->least_batch;
    double step_s = sc_scaling_step_s(scaling, type, placement, batch);
    return step_s > 0 ? sc_scaling_gain(scaling, batch, progress) / step_s : 0;
}

static sc_placement narrowest(const sc_scaling *scaling, unsigned type, int gpus)
{
    unsigned source = scaling->source[type];
    int widest = source == SC_MAX_TYPES ? gpus : scaling->tables[source].widest_node;
    sc_placement placement = {.nodes = (gpus + widest - 1) / widest, .gpus = gpus};
    for (int left = gpus; left > 0; left -= widest) sc_placement_add(&placement, left < widest ? left : widest);
    return placement;
}

double sc_scaling_mean_speed(const sc_scaling *scaling, unsigned type, int gpus, double batch, double work)
{
    enum { PARTS = 16 };
    sc_placement placement = narrowest(scaling, type, gpus);
    if (batch == 0) batch = scaling->least_batch;
    double steps = 0, step_s = sc_scaling_step_s(scaling, type, &placement, batch);
    for (int i = 0; i < PARTS; i++) steps += 1 / sc_scaling_gain(scaling, batch, (i + .5) / PARTS * work);
    return step_s > 0 ? PARTS / steps / step_s : 0;
}

double sc_scaling_spread(const sc_scaling *scaling, unsigned type, int gpus, double batch)
{
    if (scaling->source[type] == SC_MAX_TYPES) return 1;
    sc_placement placement = narrowest(scaling, type, gpus), wider = {.nodes = placement.nodes + 1, .gpus = gpus};
    if (batch == 0) batch = scaling->least_batch;
    if (wider.nodes > gpus) return 1;
    return fmax(1,
                sc_scaling_step_s(scaling, type, &wider, batch) / sc_scaling_step_s(scaling, type, &placement, batch));
}
