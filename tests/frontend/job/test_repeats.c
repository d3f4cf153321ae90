/* test_repeats.c — frontend/job/repeats.c against a slow search that follows its definitions, on random sequences. */
#include "frontend/job/operator_sequence.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 128, MOST_INPUTS = 3, MOST_PERIODS = 32, ROUNDS = 3000 };

typedef struct sequence {
    uint32_t count, kind[MOST], inputs[MOST][MOST_INPUTS];
    mdot_job_operator operators[MOST];
} sequence;

static uint32_t draw(uint64_t *seed, uint32_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*seed >> 33) % below);
}

/* Appends a block of random kinds some times, with an inner block inside, and other kinds between the blocks. */
static sequence draw_sequence(uint64_t *seed)
{
    sequence s = {0};
    uint32_t kinds = 1 + draw(seed, 6), most = draw(seed, MOST + 1);
    while (s.count < most) {
        uint32_t block[16], size = 1 + draw(seed, 15), times = 1 + draw(seed, 5), inner = 1 + draw(seed, size);
        for (uint32_t i = 0; i < size; i++) block[i] = i > 0 && draw(seed, 4) == 0 ? block[i - 1] : draw(seed, kinds);
        for (uint32_t i = inner; draw(seed, 2) == 0 && i < size; i++) block[i] = block[i - inner];
        for (uint32_t i = 0; i < size * times && s.count < most; i++) s.kind[s.count++] = block[i % size];
        for (uint32_t i = draw(seed, 4); i > 0 && s.count < most; i--) s.kind[s.count++] = draw(seed, kinds);
    }
    uint32_t distance = 1 + draw(seed, 12), least_kind = draw(seed, 3);
    for (uint32_t i = 0; i < s.count; i++) s.kind[i] += least_kind;
    for (uint32_t i = 0; i < s.count; i++)
        for (uint32_t k = draw(seed, MOST_INPUTS + 1); i > 0 && k > 0; k--)
            s.inputs[i][s.operators[i].input_count++] = i - 1 - draw(seed, i < distance ? i : distance);
    return s;
}

/* Two equal words whose length is a power of two, without an equal word between, vote for their distance. */
static void count_votes(const sequence *s, uint32_t votes[MOST])
{
    for (uint32_t length = 1; length <= s->count / 2; length *= 2)
        for (uint32_t i = 0; i + length <= s->count; i++)
            for (uint32_t k = i + 1; k + length <= s->count; k++)
                if (memcmp(&s->kind[i], &s->kind[k], length * sizeof *s->kind) == 0) {
                    votes[k - i]++;
                    break;
                }
}

/* Earlier results that the operator or a later one reads. */
static uint32_t across(const sequence *s, uint32_t operator)
{
    uint32_t count = 0;
    for (uint32_t result = 0; result < operator; result++) {
        bool is_read = false;
        for (uint32_t i = operator; i < s->count; i++)
            for (size_t k = 0; k < s->operators[i].input_count; k++) is_read = is_read || s->inputs[i][k] == result;
        count += is_read;
    }
    return count;
}

typedef struct stretch_run {
    uint32_t first, end, period;
} stretch_run;

static uint32_t covered(const stretch_run *r) { return (r->end - r->first) / r->period * r->period; }

static int compare(const void *a, const void *b)
{
    const stretch_run *x = a, *y = b;
    if (covered(x) != covered(y)) return covered(x) > covered(y) ? -1 : 1;
    if (x->period != y->period) return x->period < y->period ? -1 : 1;
    return x->first < y->first ? -1 : 1;
}

/* Longest stretches of at least two periods, whose operators differ in kind. */
static size_t find_runs(const sequence *s, uint32_t period, stretch_run *out)
{
    size_t count = 0;
    for (uint32_t first = 0; first < s->count; first++) {
        uint32_t end = first;
        while (end + period < s->count && s->kind[end] == s->kind[end + period]) end++;
        if (end - first < period) continue;
        bool is_longest = first == 0 || s->kind[first - 1] != s->kind[first - 1 + period], differs = false;
        for (uint32_t i = first; i < end; i++) differs = differs || s->kind[i] != s->kind[first];
        if (is_longest && differs) out[count++] = (stretch_run){first, end + period, period};
    }
    return count;
}

static uint32_t expected_stretches(const sequence *s, fe_stretch *out)
{
    uint32_t votes[MOST] = {0}, count = 0;
    stretch_run runs[MOST * MOST];
    size_t run_count = 0;
    bool taken[MOST] = {false};
    count_votes(s, votes);
    for (int i = 0; i < MOST_PERIODS; i++) {
        uint32_t best = 0;
        for (uint32_t p = s->count / 2; p >= 2; p--)
            if (votes[p] > 0 && (best == 0 || votes[p] >= votes[best])) best = p;
        if (best == 0) break;
        votes[best] = 0;
        run_count += find_runs(s, best, &runs[run_count]);
    }
    qsort(runs, run_count, sizeof *runs, compare);
    for (size_t r = 0; r < run_count; r++) {
        uint32_t period = runs[r].period;
        for (uint32_t first = runs[r].first, end; first < runs[r].end; first = end + 1) {
            for (end = first; end < runs[r].end && !taken[end];) end++;
            if (end - first < 2 * period) continue;
            uint32_t start = first;
            for (uint32_t i = first; i <= first + (end - first) % period; i++)
                if (across(s, i + period) <= across(s, start + period)) start = i;
            for (uint32_t group = count; start + period <= end; start += period) {
                out[count++] = (fe_stretch){start, start + period, group};
                for (uint32_t i = start; i < start + period; i++) taken[i] = true;
            }
        }
    }
    return count;
}

static void stretches_follow_their_definition(void **state)
{
    (void)state;
    uint64_t seed = 1;
    size_t found = 0, ungrouped = 0;
    for (int round = 0; round < ROUNDS; round++) {
        sequence s = draw_sequence(&seed);
        for (uint32_t i = 0; i < s.count; i++) s.operators[i].inputs = s.inputs[i];
        fe_stretch got[MOST], wanted[MOST];
        ir_graph graph = {.arena = ir_arena_create(0)};
        const fe_job job = {.graph = &graph};
        uint32_t count = fe_find_repeats(&job, s.operators, s.kind, s.count, got);
        assert_false(ir_arena_failed(graph.arena));
        uint32_t wanted_count = expected_stretches(&s, wanted);
        if (count != wanted_count) fail_msg("round %d: %u stretches instead of %u", round, count, wanted_count);
        for (uint32_t i = 0; i < count; i++) {
            if (got[i].first != wanted[i].first || got[i].end != wanted[i].end)
                fail_msg("round %d: stretch %u is %u to %u instead of %u to %u", round, i, got[i].first, got[i].end,
                         wanted[i].first, wanted[i].end);
            for (uint32_t k = 0; k < i; k++)
                assert_int_equal(got[i].hash == got[k].hash, wanted[i].hash == wanted[k].hash);
        }
        found += count;
        ungrouped += count > 0 && got[0].hash != got[count - 1].hash;
        ir_arena_destroy(graph.arena);
    }
    assert_compare(found, >, ROUNDS);
    assert_compare(ungrouped, >, ROUNDS / 20);
}

/* Of 40 networks that repeat three times, the 32 with the longest blocks have the most equal words. */
static void the_commonest_periods_are_found(void **state)
{
    (void)state;
    enum { LEAST_PERIOD = 2, LAST_PERIOD = 41, TIMES = 3, ALL = TIMES * (LAST_PERIOD * (LAST_PERIOD + 1) / 2 - 1) };
    static uint32_t kind[ALL], first[LAST_PERIOD + 1], inputs[ALL];
    static mdot_job_operator operators[ALL];
    static fe_stretch got[ALL];
    uint32_t count = 0, kinds = 0;
    for (uint32_t period = LEAST_PERIOD; period <= LAST_PERIOD; kinds += period++) {
        first[period] = count;
        for (uint32_t i = 0; i < TIMES * period; i++) kind[count++] = kinds + i % period;
    }
    assert_int_equal(count, ALL);
    for (uint32_t i = 1; i < count; i++) {
        inputs[i] = i - 1;
        operators[i] = (mdot_job_operator){.inputs = &inputs[i], .input_count = 1};
    }
    ir_graph graph = {.arena = ir_arena_create(0)};
    const fe_job job = {.graph = &graph};
    assert_int_equal(fe_find_repeats(&job, operators, kind, count, got), TIMES * MOST_PERIODS);
    for (uint32_t i = 0; i < TIMES * MOST_PERIODS; i++) {
        uint32_t period = LAST_PERIOD - i / TIMES;
        assert_int_equal(got[i].first, first[period] + i % TIMES * period);
        assert_int_equal(got[i].end, got[i].first + period);
    }
    ir_arena_destroy(graph.arena);
}

/* Three blocks of 300 different kinds. */
static void long_blocks_are_found(void **state)
{
    (void)state;
    enum { BLOCK = 300, BLOCKS = 3, LONG = BLOCK * BLOCKS };
    static uint32_t kind[LONG], inputs[LONG];
    static mdot_job_operator operators[LONG];
    static fe_stretch got[LONG];
    for (uint32_t i = 0; i < LONG; i++) {
        kind[i] = i % BLOCK;
        inputs[i] = i - 1;
        operators[i] = (mdot_job_operator){.inputs = &inputs[i], .input_count = i > 0};
    }
    ir_graph graph = {.arena = ir_arena_create(0)};
    const fe_job job = {.graph = &graph};
    assert_int_equal(fe_find_repeats(&job, operators, kind, LONG, got), BLOCKS);
    for (uint32_t i = 0; i < BLOCKS; i++) assert_int_equal(got[i].first, i * BLOCK);
    ir_arena_destroy(graph.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stretches_follow_their_definition),
        cmocka_unit_test(the_commonest_periods_are_found),
        cmocka_unit_test(long_blocks_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
