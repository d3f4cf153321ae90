/* repeats.c — finds stretches of a sequence that repeat several times in a row. layers.c uses it where names are
 * missing.
 *
 * A run of period p is a longest stretch in which each operator has the same kind as the operator p positions before
 * it. If a block repeats three times in a row, each word of up to 2p operators at the start recurs p positions later
 * for the first time. Therefore p is the distance between equal words whose length is some power of two. With two
 * repetitions, such a word must also be unique in the block. The search tries the MAX_PERIODS commonest distances, so
 * the work is O(n log^2 n). In a job with more different networks than that, some blocks remain undetected. */
#include "frontend/job/operator_sequence.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_PERIODS = 32 };

typedef struct run {
    uint32_t first, length, period;
} run;

typedef struct word {
    uint32_t half, rest, at; /* numbers of the two halves */
} word;

typedef struct search {
    const uint32_t *kind;
    uint32_t count;
    uint32_t *votes;  /* indexed by period */
    uint32_t *across; /* by operator: number of earlier results still read here or later */
    run *runs;
    uint32_t run_count;
    fe_stretch *out;
    uint32_t out_count;
    bool *taken;
    word *words;
    uint32_t *number; /* by operator: number of the word starting there */
    uint32_t *last;   /* indexed by operator: the last reader, or 0 */
    int64_t *change;  /* indexed by operator: change of `across` */
} search;

static int order(uint32_t a, uint32_t b) { return (a > b) - (a < b); }

static int compare_words(const void *a, const void *b)
{
    const word *x = a, *y = b;
    int halves = order(x->half, y->half), rests = order(x->rest, y->rest);
    return halves != 0 ? halves : rests != 0 ? rests : order(x->at, y->at);
}

static bool same_words(const word *x, const word *y) { return x->half == y->half && x->rest == y->rest; }

/* Numbers the words of each length by the numbers of both halves. */
static void vote(const search *s)
{
    word *words = s->words;
    uint32_t *number = s->number;
    for (uint32_t length = 1; length <= s->count / 2; length *= 2) {
        uint32_t count = s->count - length + 1, half = length / 2;
        for (uint32_t i = 0; i < count; i++) words[i] = (word){number[i], number[i + half], i};
        qsort(words, count, sizeof *words, compare_words);
        for (uint32_t i = 0, next_index = 0; i < count; i++) {
            bool again = i > 0 && same_words(&words[i - 1], &words[i]);
            if (again) s->votes[words[i].at - words[i - 1].at]++;
            next_index += i > 0 && !again;
            number[words[i].at] = next_index;
        }
    }
}

/* The remaining period with the most votes; the shortest wins a tie. 0: all periods are taken. */
static uint32_t pop_period(const search *s)
{
    uint32_t best = 0;
    for (uint32_t p = 2; p <= s->count / 2; p++)
        if (s->votes[p] > s->votes[best]) best = p; /* nothing votes for 0 */
    s->votes[best] = 0;
    return best;
}

/* Do all operators of the period have the same kind? Such a repetition is not a block of several operators. */
static bool is_monotone(const search *s, uint32_t first, uint32_t period)
{
    for (uint32_t i = 1; i < period; i++)
        if (s->kind[first + i] != s->kind[first]) return false;
    return true;
}

/* Operators of a run covered by whole blocks. */
static uint32_t coverage(const run *r) { return r->length - r->length % r->period; }

/* Runs of one period overlap by less than the period, and each covers at least two periods. */
static void list_runs(search *s, uint32_t period)
{
    for (uint32_t i = 0; i + period < s->count; i++) {
        uint32_t first = i;
        while (i + period < s->count && s->kind[i] == s->kind[i + period]) i++;
        if (i - first < period || is_monotone(s, first, period)) continue;
        s->runs[s->run_count++] = (run){first, i - first + period, period};
    }
}

static int compare_runs(const void *a, const void *b)
{
    const run *x = a, *y = b;
    int coverages = order(coverage(y), coverage(x)), periods = order(x->period, y->period);
    return coverages != 0 ? coverages : periods != 0 ? periods : order(x->first, y->first);
}

/* Blocks usually pass on one result. Therefore the run is cut where the fewest results cross, as late as possible. */
static uint32_t find_start(const search *s, const run *r)
{
    uint32_t best = r->first;
    for (uint32_t i = r->first; i <= r->first + r->length % r->period; i++)
        if (s->across[i + r->period] <= s->across[best + r->period]) best = i;
    return best;
}

static void mark_run(search *s, const run *r, uint32_t group)
{
    uint32_t first = find_start(s, r);
    for (; first + r->period <= r->first + r->length; first += r->period) {
        s->out[s->out_count++] = (fe_stretch){.first = first, .end = first + r->period, .hash = group};
        for (uint32_t i = first; i < first + r->period; i++) s->taken[i] = true;
    }
}

/* Takes what longer runs left of this one, if two blocks or more. */
static void mark_free_parts(search *s, const run *r, uint32_t *group)
{
    uint32_t end = r->first + r->length;
    for (uint32_t i = r->first; i < end; i++) {
        uint32_t first = i;
        while (i < end && !s->taken[i]) i++;
        if (i - first >= 2 * r->period) mark_run(s, &(run){first, i - first, r->period}, (*group)++);
    }
}

static void count_across(const search *s, const mdot_job_operator *operators)
{
    for (uint32_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < operators[i].input_count; k++) s->last[operators[i].inputs[k]] = i;
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->last[i] == 0) continue;
        s->change[i + 1]++;
        s->change[s->last[i] + 1]--;
    }
    int64_t crossing = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        crossing += s->change[i];
        s->across[i] = (uint32_t)crossing;
    }
}

uint32_t fe_find_repeats(const fe_job *job, const mdot_job_operator *operators, const uint32_t *kind, uint32_t count,
                         fe_stretch *out)
{
    ir_arena *arena = job->graph->arena;
    search s = {.kind = kind,
                .count = count,
                .out = out,
                .votes = IR_NEW_ARRAY(arena, uint32_t, count + 1),
                .across = IR_NEW_ARRAY(arena, uint32_t, count),
                .taken = IR_NEW_ARRAY(arena, bool, count),
                .runs = IR_NEW_ARRAY(arena, run, (size_t)count / 2 * MAX_PERIODS + 1),
                .words = IR_NEW_ARRAY(arena, word, count),
                .number = IR_NEW_ARRAY(arena, uint32_t, count),
                .last = IR_NEW_ARRAY(arena, uint32_t, count),
                .change = IR_NEW_ARRAY(arena, int64_t, count + 2)};
    if (ir_arena_failed(arena)) return 0;
    memcpy(s.number, kind, count * sizeof *kind);
    vote(&s);
    count_across(&s, operators);
    for (int i = 0; i < MAX_PERIODS; i++) {
        uint32_t period = pop_period(&s);
        if (period > 0) list_runs(&s, period);
    }
    qsort(s.runs, s.run_count, sizeof *s.runs, compare_runs);
    uint32_t group = 0;
    for (uint32_t i = 0; i < s.run_count; i++) mark_free_parts(&s, &s.runs[i], &group);
    return s.out_count;
}
