/* lengths.c — jobs with a symbolic length: one job for all lengths, for example of sequences of tokens.
 *
 * A number of a network is a polynomial in the length, of degree two at most: attention's scores grow with the square,
 * and nearly everything else in proportion. So three lengths determine it. Rounded sizes, for example of windows, are
 * polynomials only approximately. A job keeps the three values of each number that varies; its other fields have the
 * values of one length, so that other code reads a job as if its length were fixed.
 */
#include "runtime/job/job_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Slots of operators and of the program. Stored in files: append only. */
enum {
    SLOT_LOADS = MDOT_SETTING_CAPACITY, /* settings come first */
    SLOT_PARAMETERS = SLOT_LOADS + RT_LOAD_COUNT,
    SLOT_FROZEN,
    OPERATOR_SLOTS
};
enum { SLOT_BYTES = 3, MOMENT_FIELDS = 6, RECORD_SLOTS = 1 + MOMENT_FIELDS * MDOT_PEAK_MOMENTS_MAX };
enum { PROGRAM_SLOTS = SLOT_BYTES + RECORD_SLOTS * MDOT_RECORDED_MEMORY_MAX };

double *rt_load_at(mdot_job_operator *op, int k)
{
    enum { PER_PHASE = 6, SQUARES = PER_PHASE * MDOT_PHASE_COUNT };
    mdot_load *load = k >= SQUARES         ? &op->per_square[(k - SQUARES) / 3]
                      : k % PER_PHASE >= 3 ? &op->per_step[k / PER_PHASE]
                                           : &op->per_sample[k / PER_PHASE];
    double *const parts[] = {&load->flops, &load->bytes_read, &load->bytes_written};
    return parts[k % 3];
}

static double *program_number(rt_program *p, uint32_t slot)
{
    double *const bytes[SLOT_BYTES] = {&p->program.trained_bytes, &p->program.frozen_bytes, &p->program.buffer_bytes};
    if (slot < SLOT_BYTES) return bytes[slot];
    uint32_t record = (slot - SLOT_BYTES) / RECORD_SLOTS, k = (slot - SLOT_BYTES) % RECORD_SLOTS;
    if (k == 0) return &p->analytic_bytes[record];
    mdot_peak_moment *m = &p->moments[record][(k - 1) / MOMENT_FIELDS];
    double *const fields[MOMENT_FIELDS] = {&m->per_sample, &m->per_step, &m->weight_copies,
                                           &m->gradients,  &m->logits,   &m->per_square};
    return fields[(k - 1) % MOMENT_FIELDS];
}

/* Files hold whole numbers, and fractions of gradients in units of 2^-20. */
static double unit_of(const rt_job_numbers *n, const rt_varying *v)
{
    bool is_moment = v->owner == n->count && v->slot >= SLOT_BYTES && (v->slot - SLOT_BYTES) % RECORD_SLOTS > 0;
    bool is_fraction = is_moment && ((v->slot - SLOT_BYTES) % RECORD_SLOTS - 1) % MOMENT_FIELDS == 3;
    return is_fraction ? 1.0 / RT_PROGRAM_FRACTIONS : 1;
}

/* Returns NULL for a setting, which is an integer. */
static double *number_at(const rt_job_numbers *n, const rt_varying *v)
{
    if (v->owner == n->count) return program_number(n->program, v->slot);
    mdot_job_operator *op = &n->operators[v->owner];
    if (v->slot < SLOT_LOADS) return NULL;
    if (v->slot < SLOT_PARAMETERS) return rt_load_at(op, (int)(v->slot - SLOT_LOADS));
    return v->slot == SLOT_PARAMETERS ? &op->parameters : &op->frozen_parameters;
}

static bool exists(const rt_job_numbers *n, const rt_varying *v)
{
    return v->owner < n->count ? v->slot < OPERATOR_SLOTS
                               : v->owner == n->count && n->program != NULL && v->slot < PROGRAM_SLOTS;
}

static double get_number(const rt_job_numbers *n, const rt_varying *v)
{
    const double *number = number_at(n, v);
    return number != NULL ? *number / unit_of(n, v) : (double)n->operators[v->owner].setting[v->slot];
}

static void set_number(const rt_job_numbers *n, const rt_varying *v, double value)
{
    double *number = number_at(n, v);
    if (number != NULL)
        *number = value * unit_of(n, v);
    else
        n->operators[v->owner].setting[v->slot] = (int64_t)value;
}

/* The polynomial by Newton's divided differences. Below the three lengths, a number that is no polynomial could be
 * negative, which only padding may be. */
static double value_at(const rt_lengths *lengths, const rt_varying *v, int64_t length)
{
    const int64_t *l = lengths->length;
    for (int i = 0; i < RT_LENGTH_COUNT; i++)
        if (length == l[i]) return v->value[i];
    long double first = ((long double)v->value[1] - v->value[0]) / (l[1] - l[0]);
    long double second = ((long double)v->value[2] - v->value[1]) / (l[2] - l[1]);
    long double square = (second - first) / (l[2] - l[0]);
    long double value = v->value[0] + (length - l[0]) * (first + (length - l[1]) * square);
    bool is_signed = fmin(v->value[0], fmin(v->value[1], v->value[2])) < 0;
    return (double)(value < 0 && !is_signed ? 0 : rintl(value));
}

rt_lengths *rt_lengths_create(size_t count) { return calloc(1, sizeof(rt_lengths) + count * sizeof(rt_varying)); }

rt_lengths *rt_lengths_copy(const rt_lengths *lengths, const rt_job_numbers *n)
{
    rt_lengths *copy = rt_lengths_create(lengths->count);
    if (copy == NULL) return NULL;
    memcpy(copy, lengths, sizeof *copy);
    copy->count = 0;
    for (size_t i = 0; i < lengths->count; i++) {
        rt_varying v = lengths->varying[i];
        double value = value_at(lengths, &v, lengths->current);
        if (!exists(n, &v)) continue;
        /* Freezing moves an operator's parameters. */
        if (v.owner < n->count && v.slot == SLOT_PARAMETERS && get_number(n, &v) != value) v.slot = SLOT_FROZEN;
        if (get_number(n, &v) == value) copy->varying[copy->count++] = v;
    }
    return copy;
}

bool rt_lengths_apply(rt_lengths *lengths, int64_t length, const rt_job_numbers *n)
{
    lengths->current = length;
    for (size_t i = 0; i < lengths->count; i++) {
        double value = value_at(lengths, &lengths->varying[i], length);
        if (!(fabs(value) <= RT_JOB_MAX_COUNT)) return false;
        set_number(n, &lengths->varying[i], value);
    }
    return true;
}

size_t rt_lengths_collect(const rt_job_numbers n[RT_LENGTH_COUNT], rt_varying *out)
{
    size_t count = 0;
    for (size_t owner = 0; owner <= n[0].count; owner++) {
        uint32_t slots = owner < n[0].count ? OPERATOR_SLOTS : n[0].program != NULL ? PROGRAM_SLOTS : 0;
        for (uint32_t slot = 0; slot < slots; slot++) {
            rt_varying v = {.owner = (uint32_t)owner, .slot = slot};
            for (int k = 0; k < RT_LENGTH_COUNT; k++) v.value[k] = get_number(&n[k], &v);
            if (v.value[0] == v.value[1] && v.value[0] == v.value[2]) continue;
            if (out != NULL) out[count] = v;
            count++;
        }
    }
    return count;
}
