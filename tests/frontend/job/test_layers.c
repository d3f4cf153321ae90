/* test_layers.c — frontend/job/layers.c and repeats.c: a job's blocks, found by names and by repetition. */
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef enum naming { NO_NAMES, BY_SCOPE, BY_METADATA, BY_PARAMETER, BY_SCOPE_BUT_INDEX } naming;

static void name_node(onnx_builder *b, naming how, int layer, const char *module)
{
    char name[128];
    if (how == BY_METADATA) {
        snprintf(name, sizeof name, "['', 'net.layer.%d', '%s']", layer, module);
        onnx_node_metadata(b, "pkg.torch.onnx.name_scopes", name);
    }
    if (how != BY_SCOPE && how != BY_SCOPE_BUT_INDEX) return;
    snprintf(name, sizeof name, how == BY_SCOPE ? "/net/layer.%d/%s" : "/net/layer%d/%s", layer, module);
    onnx_node_name(b, name);
}

/* Adds x + down(activation(up(x))), from h<layer> to h<layer + 1>. */
static void add_layer(onnx_builder *b, naming how, int layer, int hidden, const char *activation)
{
    char up[64], down[64], shape[32], inputs[160], outputs[64];
    const char *owner = how == BY_PARAMETER ? "net.layer." : "w";
    snprintf(up, sizeof up, "%s%d%s", owner, layer, how == BY_PARAMETER ? ".up.weight" : "up");
    snprintf(down, sizeof down, "%s%d%s", owner, layer, how == BY_PARAMETER ? ".down.weight" : "down");
    snprintf(shape, sizeof shape, "16,%d", hidden);
    onnx_initializer(b, up, MDOT_DTYPE_F32, shape, NULL);
    snprintf(shape, sizeof shape, "%d,16", hidden);
    onnx_initializer(b, down, MDOT_DTYPE_F32, shape, NULL);
    snprintf(inputs, sizeof inputs, "h%d,%s", layer, up);
    snprintf(outputs, sizeof outputs, "u%d", layer);
    onnx_node(b, "MatMul", inputs, outputs);
    name_node(b, how, layer, "up/MatMul");
    snprintf(inputs, sizeof inputs, "u%d", layer);
    snprintf(outputs, sizeof outputs, "a%d", layer);
    onnx_node(b, activation, inputs, outputs);
    name_node(b, how, layer, activation);
    snprintf(inputs, sizeof inputs, "a%d,%s", layer, down);
    snprintf(outputs, sizeof outputs, "d%d", layer);
    onnx_node(b, "MatMul", inputs, outputs);
    name_node(b, how, layer, "down/MatMul");
    snprintf(inputs, sizeof inputs, "h%d,d%d", layer, layer);
    snprintf(outputs, sizeof outputs, "h%d", layer + 1);
    onnx_node(b, "Add", inputs, outputs);
    name_node(b, how, layer, "Add");
}

static onnx_builder *begin(void)
{
    onnx_builder *b = job_begin("N,4,16");
    onnx_node(b, "Tanh", "x", "h0");
    return b;
}

static onnx_builder *end(onnx_builder *b, int layers)
{
    char last[16];
    snprintf(last, sizeof last, "h%d", layers);
    onnx_node(b, "Softmax", last, "y");
    onnx_output(b, "y");
    return b;
}

/* Expects block/count for each operator in order, for example "0 1/2 1/2 2/2 2/2 0". The count is the number of equal
 * blocks. */
static void expect_blocks(onnx_builder *b, const char *expected)
{
    char text[1024] = "";
    size_t used = 0;
    job_reading r = job_expect(b);
    for (size_t i = 0; i < job_info(&r).operator_count; i++) {
        mdot_job_operator op = job_operator(&r, i);
        used += (size_t)snprintf(text + used, sizeof text - used, i == 0 ? "%u" : " %u", (unsigned)op.block);
        if (op.block > 0) used += (size_t)snprintf(text + used, sizeof text - used, "/%u", (unsigned)op.equal_blocks);
    }
    assert_string_equal(text, expected);
    job_end(&r);
}

static const char three[] = "0 1/3 1/3 1/3 1/3 2/3 2/3 2/3 2/3 3/3 3/3 3/3 3/3 0";

static onnx_builder *three_layers(naming how)
{
    onnx_builder *b = begin();
    for (int i = 0; i < 3; i++) add_layer(b, how, i, 32, "Sigmoid");
    return end(b, 3);
}

static void scopes_name_blocks(void **state)
{
    (void)state;
    expect_blocks(three_layers(BY_SCOPE), three);
    expect_blocks(three_layers(BY_METADATA), three);
}

/* The Sigmoid stands between two operators with names. The Add follows them, before the next block and after the
 * last. */
static void parameter_names_define_blocks(void **state)
{
    (void)state;
    expect_blocks(three_layers(BY_PARAMETER), three);
}

static void repetition_defines_blocks_without_names(void **state)
{
    (void)state;
    expect_blocks(three_layers(NO_NAMES), three);
    expect_blocks(three_layers(BY_SCOPE_BUT_INDEX), three);
}

static void differing_block_of_a_level_is_a_block(void **state)
{
    (void)state;
    static const naming named[] = {BY_SCOPE, BY_METADATA, BY_PARAMETER};
    for (size_t n = 0; n < sizeof named / sizeof *named; n++) {
        onnx_builder *b = begin();
        for (int i = 0; i < 3; i++) add_layer(b, named[n], i, i == 1 ? 48 : 32, "Sigmoid");
        expect_blocks(end(b, 3), "0 1/2 1/2 1/2 1/2 2/1 2/1 2/1 2/1 3/2 3/2 3/2 3/2 0");
    }
}

static void level_without_equal_blocks_is_ignored(void **state)
{
    (void)state;
    static const naming all[] = {BY_SCOPE, BY_METADATA, BY_PARAMETER, NO_NAMES};
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) {
        onnx_builder *b = begin();
        for (int i = 0; i < 3; i++) add_layer(b, all[n], i, 32 + 8 * i, "Sigmoid");
        expect_blocks(end(b, 3), "0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    }
}

/* stages.0 and stages.1 differ, and each has two equal blocks: stages.0.0 … */
static void inner_level_is_used_without_outer_blocks(void **state)
{
    (void)state;
    static const char *const operators[2][2] = {{"Sigmoid", "Tanh"}, {"Relu", "Exp"}};
    onnx_builder *b = begin();
    char in[16], out[16], name[64];
    int at = 0;
    for (int stage = 0; stage < 2; stage++) {
        for (int block = 0; block < 2 + stage; block++) {
            for (int k = 0; k < 2; k++, at++) {
                snprintf(in, sizeof in, "h%d", at);
                snprintf(out, sizeof out, "h%d", at + 1);
                onnx_node(b, operators[stage][k], in, out);
                snprintf(name, sizeof name, "/stages.%d/stages.%d.%d/%s", stage, stage, block, operators[stage][k]);
                onnx_node_name(b, name);
            }
        }
    }
    expect_blocks(end(b, at), "0 1/2 1/2 2/2 2/2 3/3 3/3 4/3 4/3 5/3 5/3 0");
}

/* A chain of pointwise operators, given by initials: S(igmoid), T(anh), R(elu), E(xp), A(bs), and P(roduct), the
 * operator Mul, which also reads the result three operators before it. */
enum { BEFORE = 3 };

static onnx_builder *chain(const char *letters)
{
    static const char *const types[] = {"Sigmoid", "Tanh", "Relu", "Exp", "Abs", "Product"};
    onnx_builder *b = onnx_begin(17);
    char in[16] = "x", out[16];
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,16");
    for (int i = 0; letters[i] != '\0'; i++) {
        size_t t = 0;
        while (types[t][0] != letters[i]) t++;
        snprintf(out, sizeof out, "v%d", i);
        if (letters[i] == 'P') {
            char both[40];
            snprintf(both, sizeof both, "%s,v%d", in, i - BEFORE);
            onnx_node(b, "Mul", both, out);
        } else {
            onnx_node(b, types[t], in, out);
        }
        memcpy(in, out, sizeof in);
    }
    onnx_output(b, in);
    return b;
}

static void repeated_single_operator_forms_no_block(void **state)
{
    (void)state;
    expect_blocks(chain("TTTT"), "0 0 0 0");
    expect_blocks(chain("TTTTT"), "0 0 0 0 0");
    expect_blocks(chain("ST"), "0 0");
    expect_blocks(chain("S"), "0");
}

static void longest_repetition_takes_precedence(void **state)
{
    (void)state;
    /* (STSTR)(STSTR) covers ten operators, ST twice only four */
    expect_blocks(chain("ESTSTRSTSTRA"), "0 1/2 1/2 1/2 1/2 1/2 2/2 2/2 2/2 2/2 2/2 0");
    /* the shortest period with the same coverage */
    expect_blocks(chain("STSTSTST"), "1/4 1/4 2/4 2/4 3/4 3/4 4/4 4/4");
    /* EA repeats at the end, but the longer blocks leave it once */
    expect_blocks(chain("STREASTREASTREAEAE"), "1/3 1/3 1/3 1/3 1/3 2/3 2/3 2/3 2/3 2/3 3/3 3/3 3/3 3/3 3/3 0 0 0");
    /* twice, and nothing else */
    expect_blocks(chain("STREASTREA"), "1/2 1/2 1/2 1/2 1/2 2/2 2/2 2/2 2/2 2/2");
    /* two repetitions in sequence */
    expect_blocks(chain("STSTARERERE"), "1/2 1/2 2/2 2/2 0 3/3 3/3 4/3 4/3 5/3 5/3");
}

/* ---- Repetitions against all periods ----------------------------------------------------------------------------- */

enum { MOST_LETTERS = 40 };

typedef struct repeat {
    int first, length, period;
} repeat;

static int whole_blocks(const repeat *r) { return r->length / r->period * r->period; }

/* Longer coverage first, then the shorter period, then the earlier one. */
static bool is_before(const repeat *a, const repeat *b)
{
    if (whole_blocks(a) != whole_blocks(b)) return whole_blocks(a) > whole_blocks(b);
    if (a->period != b->period) return a->period < b->period;
    return a->first < b->first;
}

/* The number of results before operator `at` that it or a later one reads. */
static int crossing(const char *letters, int n, int at)
{
    int results = 0;
    for (int i = 0; i < at; i++) {
        bool is_read = i + 1 < n && i + 1 >= at;
        if (i + BEFORE < n && i + BEFORE >= at && letters[i + BEFORE] == 'P') is_read = true;
        results += is_read;
    }
    return results;
}

/* Tries all periods and all places. A run is cut where the fewest results cross, as late as possible. */
static void expect_all_periods(const char *letters)
{
    repeat found[MOST_LETTERS * MOST_LETTERS];
    int count = 0, n = (int)strlen(letters), block_count = 0, block[MOST_LETTERS] = {0};
    struct {
        int first, period;
    } blocks[MOST_LETTERS];
    bool taken[MOST_LETTERS] = {false};
    for (int p = 2; p <= n / 2; p++)
        for (int i = 0; i < n; i++) {
            int length = 0;
            bool differs = false;
            if (i > 0 && i - 1 + p < n && letters[i - 1] == letters[i - 1 + p]) continue; /* begins earlier */
            while (i + length + p < n && letters[i + length] == letters[i + length + p]) length++;
            for (int k = 1; k < p && i + k < n; k++) differs = differs || letters[i + k] != letters[i];
            if (length >= p && differs) found[count++] = (repeat){i, length + p, p};
        }
    for (int k = 0; k < count; k++) {
        for (int m = k + 1; m < count; m++)
            if (is_before(&found[m], &found[k])) {
                repeat swapped = found[k];
                found[k] = found[m];
                found[m] = swapped;
            }
        const repeat *r = &found[k];
        for (int i = r->first; i < r->first + r->length; i++) {
            int length = 0;
            while (i + length < r->first + r->length && !taken[i + length]) length++;
            int begin = i;
            for (int at = i; at <= i + length % r->period; at++)
                if (crossing(letters, n, at + r->period) <= crossing(letters, n, begin + r->period)) begin = at;
            for (; length >= 2 * r->period && begin + r->period <= i + length; begin += r->period) {
                block[begin] = r->period;
                for (int at = begin; at < begin + r->period; at++) taken[at] = true;
            }
            i += length;
        }
    }
    char text[16 * MOST_LETTERS] = "";
    for (int i = 0; i < n; i++)
        if (block[i] > 0) {
            blocks[block_count].first = i;
            blocks[block_count++].period = block[i];
        }
    for (int i = 0, b = -1; i < n; i++) {
        size_t used = strlen(text);
        int equal = 0;
        b += block[i] > 0;
        for (int k = 0; taken[i] && k < block_count;
             k++) /* blocks of the same operators are equal, wherever they are */
            equal += blocks[k].period == blocks[b].period &&
                     memcmp(letters + blocks[k].first, letters + blocks[b].first, (size_t)blocks[b].period) == 0;
        if (taken[i])
            snprintf(text + used, sizeof text - used, "%s%d/%d", i > 0 ? " " : "", b + 1, equal);
        else
            snprintf(text + used, sizeof text - used, "%s0", i > 0 ? " " : "");
    }
    expect_blocks(chain(letters), text);
}

static void repetitions_are_those_of_all_periods(void **state)
{
    (void)state;
    static const char alphabet[] = "STREAP";
    uint32_t seed = 7;
    for (int round = 0; round < 1000; round++) {
        char letters[MOST_LETTERS + 1] = "", block[8];
        int used = 0;
        while (used < MOST_LETTERS - 20) { /* some letters, and a block several times */
            seed = seed * 1664525u + 1013904223u;
            int period = 2 + (int)(seed >> 20) % 4, times = 1 + (int)(seed >> 24) % 4;
            for (int k = 0; k < period; k++) {
                seed = seed * 1664525u + 1013904223u;
                block[k] = alphabet[(seed >> 20) % (used < BEFORE ? 5 : 6)];
            }
            for (int k = 0; k < period * times; k++) letters[used++] = block[k % period];
        }
        letters[used] = '\0';
        expect_all_periods(letters);
    }
}

/* Blocks of two kinds of operators: each short word recurs within the block, so only long words tell its period. */
static void long_words_find_blocks_of_two_kinds(void **state)
{
    (void)state;
    uint32_t seed = 11;
    for (int round = 0; round < 300; round++) {
        char letters[MOST_LETTERS + 1] = "";
        int period = 8 + round % 6;
        for (int i = 0; i < 3 * period; i++) {
            seed = seed * 1664525u + 1013904223u;
            letters[i] = i < period ? "ST"[seed >> 28 & 1] : letters[i - period];
        }
        expect_all_periods(letters);
    }
}

/* More distances than the search tries: the block that repeats is among the commonest ones. */
static void blocks_are_found_in_long_networks(void **state)
{
    (void)state;
    enum { NOISE = 80, PERIOD = 17, TIMES = 6, ALL = 2 * NOISE + PERIOD * TIMES };
    static const char alphabet[] = "STREA";
    uint32_t seed = 13;
    for (int round = 0; round < 10; round++) {
        char letters[ALL + 1] = "";
        for (int i = 0; i < ALL; i++) {
            seed = seed * 1664525u + 1013904223u;
            bool repeats = i >= NOISE + PERIOD && i < NOISE + PERIOD * TIMES;
            letters[i] = repeats ? letters[i - PERIOD] : alphabet[(seed >> 20) % 5];
        }
        job_reading r = job_expect(chain(letters));
        int found[PERIOD * TIMES + 1] = {0}, most = 0;
        for (int i = NOISE; i < NOISE + PERIOD * TIMES; i++) {
            mdot_job_operator op = job_operator(&r, (size_t)i);
            if (op.equal_blocks >= TIMES - 1 && ++found[op.equal_blocks] > most) most = found[op.equal_blocks];
        }
        if (most < PERIOD * (TIMES - 1))
            fail_msg("round %d: %d of %d operators in blocks", round, most, PERIOD * TIMES);
        job_end(&r);
    }
}

/* If a run can be cut at several places, it is cut after the sum, because only one result continues there. */
static void repeats_are_cut_at_single_results(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,4,16");
    onnx_node(b, "Exp", "x", "p");
    onnx_node(b, "Abs", "x", "q");
    onnx_node(b, "Add", "p,q", "h0"); /* the same as each layer's last operator */
    for (int i = 0; i < 3; i++) add_layer(b, NO_NAMES, i, 32, "Sigmoid");
    expect_blocks(end(b, 3), "0 0 0 1/3 1/3 1/3 1/3 2/3 2/3 2/3 2/3 3/3 3/3 3/3 3/3 0");
}

static mdot_job *read_example(const char *file)
{
    static const mdot_dim_binding length = {"sequence", 128, NULL};
    char path[1024];
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    mdot_job *job = NULL;
    mdot_error err = {0};
    options.dims = &length;
    options.dim_count = strncmp(file, "bert", 4) == 0;
    snprintf(path, sizeof path, MDOT_SOURCE_DIR "/examples/jobs/%s", file);
    if (mdot_job_read(path, &options, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

/* Per block, from 1: the operator count and the number of equal blocks. */
static void expect_example(const char *file, const uint32_t (*expected)[2], uint32_t count)
{
    mdot_job *job = read_example(file);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    uint32_t operators[32] = {0}, last = 0;
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        if (op.block == 0) continue;
        assert_in_range(op.block, 1, count);
        assert_int_equal(op.equal_blocks, expected[op.block - 1][1]);
        operators[op.block - 1]++;
        last = op.block;
    }
    assert_int_equal(last, count);
    for (uint32_t k = 0; k < count; k++) assert_int_equal(operators[k], expected[k][0]);
    mdot_job_destroy(job);
}

static void bert_has_twelve_equal_layers(void **state)
{
    (void)state;
    uint32_t layers[12][2];
    for (int i = 0; i < 12; i++) layers[i][0] = layers[i][1] = 12;
    expect_example("bert_base.onnx", (const uint32_t(*)[2])layers, 12);
}

/* Four stages with 3, 4, 6 and 3 blocks. Each stage's first block has one additional convolution. */
static void resnet_has_the_blocks_of_its_stages(void **state)
{
    (void)state;
    static const uint32_t blocks[16][2] = {{8, 1}, {7, 2}, {7, 2}, {8, 1}, {7, 3}, {7, 3}, {7, 3}, {8, 1},
                                           {7, 5}, {7, 5}, {7, 5}, {7, 5}, {7, 5}, {8, 1}, {7, 2}, {7, 2}};
    expect_example("resnet50.onnx", blocks, 16);
}

/* Two equal blocks by name, whose operators may alternate in the file. Then the names give no blocks, because a block
 * is one stretch. Each block of a job equals another. */
static void blocks_that_overlap_by_name_are_no_blocks(void **state)
{
    (void)state;
    static const char *const types[] = {"Relu", "Sigmoid", "Softplus", "Erf"};
    for (unsigned word = 0; word < 256; word++) {
        if (__builtin_popcount(word) != 4) continue;
        onnx_builder *b = job_begin("N,16");
        int used[2] = {0};
        for (int i = 0; i < 8; i++) {
            char in[8], out[8], name[32];
            int block = word >> i & 1;
            const char *type = types[used[block]++];
            snprintf(in, sizeof in, i == 0 ? "x" : "v%d", i - 1);
            snprintf(out, sizeof out, i == 7 ? "y" : "v%d", i);
            snprintf(name, sizeof name, "/layer.%d/%s", block, type);
            onnx_node(b, type, in, out);
            onnx_node_name(b, name);
        }
        job_reading r = job_expect_output(b, "y");
        char text[9][64] = {""}; /* the types of each block; 0: outside */
        size_t end[9] = {0};
        assert_int_equal(job_info(&r).operator_count, 8);
        for (size_t i = 0; i < 8; i++) {
            mdot_job_operator op = job_operator(&r, i);
            assert_true(op.block < 9 && (op.block == 0 || text[op.block][0] == '\0' || end[op.block] == i));
            end[op.block] = i + 1;
            strcat(strcat(text[op.block], op.type), " ");
        }
        bool is_apart = word == 0x0f || word == 0xf0;
        assert_int_equal(strcmp(text[1], "Relu Sigmoid Softplus Erf ") == 0, is_apart);
        for (int block = 1; block < 9; block++) {
            int equal = 0;
            for (int other = 1; other < 9; other++) equal += strcmp(text[block], text[other]) == 0;
            assert_true(text[block][0] == '\0' || equal > 1);
        }
        job_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_name_blocks),
        cmocka_unit_test(parameter_names_define_blocks),
        cmocka_unit_test(repetition_defines_blocks_without_names),
        cmocka_unit_test(differing_block_of_a_level_is_a_block),
        cmocka_unit_test(level_without_equal_blocks_is_ignored),
        cmocka_unit_test(inner_level_is_used_without_outer_blocks),
        cmocka_unit_test(repeated_single_operator_forms_no_block),
        cmocka_unit_test(longest_repetition_takes_precedence),
        cmocka_unit_test(repetitions_are_those_of_all_periods),
        cmocka_unit_test(long_words_find_blocks_of_two_kinds),
        cmocka_unit_test(blocks_are_found_in_long_networks),
        cmocka_unit_test(repeats_are_cut_at_single_results),
        cmocka_unit_test(bert_has_twelve_equal_layers),
        cmocka_unit_test(resnet_has_the_blocks_of_its_stages),
        cmocka_unit_test(blocks_that_overlap_by_name_are_no_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
