/* test_cli_plan.c — `mdot plan`: its recommendation, the numbers behind it, and its messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/predict_command.h"

enum { MOST = 64 };

#define PLAN(f, ...)                                                                                                   \
    process_run((const char *const[]){MDOT_CLI, "plan", bert, "--dim", "sequence=128", __VA_ARGS__, NULL}, &(f)->result)

static size_t numbers(const predict_command *f, const char *key, double *out)
{
    return json_numbers(f->result.out, key, out, MOST);
}

/* The cheapest layout that meets the deadline with the requested probability is recommended, for each deadline. */
static void the_cheapest_layout_in_time_is_recommended(void **state)
{
    predict_command *f = *state;
    static const char *const deadlines[] = {"40h", "10h", "5h", "2h", "1min"};
    for (size_t d = 0; d < sizeof deadlines / sizeof *deadlines; d++) {
        PLAN(f, "--gpu", "A100,T4", "--gpus", "1..8", "--tokens", "1e9", "--price", "2", "--deadline", deadlines[d],
             "--global-batch", "64", "--json");
        assert_int_equal(f->result.status, OK);
        assert_true(json_is_valid(f->result.out));
        double cost[MOST], in_time[MOST], hours[MOST], cheapest = INFINITY, likeliest = 0;
        size_t count = numbers(f, "cost", cost);
        assert_int_equal(numbers(f, "in_time", in_time), count);
        assert_int_equal(numbers(f, "hours", hours), count);
        for (size_t i = 0; i < count; i++) {
            if (in_time[i] >= 0.8 && cost[i] < cheapest) cheapest = cost[i];
            if (in_time[i] > likeliest) likeliest = in_time[i];
        }
        size_t recommended = 0, seen = 0;
        for (const char *cursor = f->result.out; (cursor = strstr(cursor, "\"is_recommended\": ")) != NULL; seen++) {
            cursor += strlen("\"is_recommended\": ");
            if (*cursor == 't') recommended = seen + 1;
        }
        assert_int_equal(seen, count);
        assert_compare(recommended, >, 0);
        if (isfinite(cheapest))
            assert_compare(cost[recommended - 1], ==, cheapest);
        else
            assert_compare(in_time[recommended - 1], ==, likeliest);
    }
}

/* Options of the random sets: each group adds at most one of its words, "|" between two arguments. PRICES and CAL are
 * replaced by files of the test. */
static const char *const option_groups[][6] = {
    {"--gpus|1", "--gpus|8", "--gpus|16", "--gpus|2"},
    {"--gpu|A100", "--gpu|RTX 4090", "--gpu-spec|name=my card,tflops=300,memory=40,bandwidth=1500", "--gpu|H100,L40S",
     "--gpu|A100:3g.20gb"},
    {NULL, "--precision|fp32", "--precision|bf16", "--precision|amp,amp-bf16"},
    {NULL, "--optimizer|sgd", "--optimizer|adam", "--optimizer-kernels|for-loop"},
    {NULL, "--parallel|ps=2", "--parallel|pp=2", "--parallel|tp=2,sp=1", "--parallel|zero=3",
     "--parallel|pp=2,micro=4"},
    {NULL, "--link|pcie", "--link|123.456", "--network|12.5", "--node-gpus|2"},
    {NULL, "--torch|2.4", "--compile", "--framework|megatron"},
    {NULL, "--checkpoint|blocks", "--checkpoint", "--offload|optimizer", "--offload"},
    {NULL, "--frozen|bert.embeddings*", "--ema", "--loader-rate|333.25", "--power-limit|251.5"},
    {NULL, "--host-launch-us|7.123456789", "--step-in-backward", "--reduce-type|fp32", "--loss|fused"},
    {NULL, "--measured|ms=41,batch=8,gpu=A100", "--measured|ms=19.5,batch=4,gpu=H100,parallel=dp=4,precision=fp32",
     "--measured|gib=11.5,batch=8,gpu=A100,gpus=2,compile=no,torch=2.1,optimizer=sgd", "--calibration|CAL"},
    {NULL, "--price|2.25", "--price|PRICES", "--price|PRICES,provider=one cloud"},
    {NULL, "--global-batch|64", "--accumulate|2"},
    {NULL, "--samples|1e6", "--tokens|1e9", "--epochs|3|--dataset|1000000"}};

/* Adds the arguments of "--a|b". */
static size_t add_words(const char *words, char *storage, const char **argv, size_t count)
{
    strcpy(storage, words);
    for (char *word = strtok(storage, "|"); word != NULL; word = strtok(NULL, "|")) argv[count++] = word;
    return count;
}

static const char *with_file(const predict_command *f, const char *words, char *out)
{
    const char *price = strstr(words, "PRICES"), *cal = strstr(words, "CAL");
    if (price != NULL)
        sprintf(out, "%.*s%s/my prices.csv%s", (int)(price - words), words, f->folder, price + strlen("PRICES"));
    else if (cal != NULL)
        sprintf(out, "%.*s%s/it's.cal", (int)(cal - words), words, f->folder);
    else
        strcpy(out, words);
    return out;
}

static double recommended(const char *json, const char *key)
{
    double values[MOST];
    size_t count = json_numbers(json, key, values, MOST), row = 0;
    for (const char *at = json; (at = strstr(at, "\"is_recommended\": ")) != NULL; row++) {
        at += strlen("\"is_recommended\": ");
        if (*at == 't') return row < count ? values[row] : NAN;
    }
    return NAN;
}

/* Whatever options a plan has, the printed command is a shell's line that predicts the chosen layout's time, memory and
 * cost. */
static void the_printed_command_predicts_the_layout(void **state)
{
    enum { TRIED = 24, GROUPS = sizeof option_groups / sizeof *option_groups, WORDS = 1024 };
    predict_command *f = *state;
    static char storage[GROUPS + 1][WORDS], folder[GROUPS][WORDS];
    unsigned seed = getenv("SEED") != NULL ? (unsigned)atoi(getenv("SEED")) : 48;
    char *prices = NULL, *steps = NULL, *cal = NULL;
    assert_compare(asprintf(&prices, "%s/my prices.csv", f->folder), >, 0);
    assert_compare(asprintf(&steps, "%s/steps.csv", f->folder), >, 0);
    assert_compare(asprintf(&cal, "%s/it's.cal", f->folder), >, 0);
    FILE *file = fopen(prices, "w");
    fputs("gpu,price,provider\nA100,2.125,one cloud\nH100,4.5,one cloud\nH100,3.5,two\nRTX-4090,.4,one cloud\n"
          "L40S,1.1,one cloud\nmy card,1,one cloud\nA100-SXM-40GB:3g.20gb,1,one cloud\n",
          file);
    fclose(file);
    file = fopen(steps, "w");
    fprintf(file, "job,dim,gpu,batch,ms\n%s,sequence=128,A100,8,52\n", bert);
    fclose(file);
    process_run((const char *const[]){MDOT_CLI, "calibrate", steps, "-o", cal, NULL}, &f->result);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    size_t compared = 0;
    for (int i = 0; i < TRIED; i++) {
        const char *argv[64] = {MDOT_CLI, "plan", bert, "--dim", "sequence=128", "-q"};
        size_t count = 6;
        char shown[4096] = "";
        for (size_t g = 0; g < GROUPS; g++) {
            size_t choices = 0;
            while (choices < 6 && (choices == 0 || option_groups[g][choices] != NULL)) choices++;
            seed = seed * 1103515245 + 12345;
            const char *words = option_groups[g][(seed >> 16) % choices];
            if (words == NULL) continue;
            sprintf(shown + strlen(shown), " %s", words);
            count = add_words(with_file(f, words, folder[g]), storage[g], argv, count);
        }
        argv[count] = "--json";
        process_run(argv, &f->result);
        double ms = recommended(f->result.out, "step_ms"), bytes = recommended(f->result.out, "reserved_bytes");
        double cost = recommended(f->result.out, "cost");
        argv[count] = NULL;
        process_run(argv, &f->result);
        char *line = f->result.status == OK ? strstr(f->result.out, "  mdot predict ") : NULL;
        if (line == NULL) continue; /* refused options, or no layout fits */
        line[strcspn(line, "\n")] = '\0';
        char *command = NULL;
        assert_compare(asprintf(&command, "%s %s --json", MDOT_CLI, line + strlen("  mdot ")), >, 0);
        process_run((const char *const[]){"/bin/sh", "-c", command, NULL}, &f->result);
        if (f->result.status != OK) fail_msg("%s:\n%s\n%s", shown, command, f->result.err);
        const char *const keys[] = {"step_ms", "reserved_bytes", "cost"};
        const double planned[] = {ms, bytes, cost};
        for (int k = 0; k < 3; k++) {
            double value;
            if (isnan(planned[k]) && k == 2) continue; /* no price */
            if (json_numbers(f->result.out, keys[k], &value, 1) != 1) fail_msg("%s lacks %s", command, keys[k]);
            if (!(fabs(value - planned[k]) <= 1e-6 * planned[k]))
                fail_msg("%s:\n%s\n%s is %g, planned %g", shown, command, keys[k], value, planned[k]);
        }
        compared++;
        free(command);
    }
    assert_compare(compared, >, TRIED / 5);
    free(prices);
    free(steps);
    free(cal);
}

/* A batch in tokens is rounded to samples that workers can divide. */
static void tokens_become_samples(void **state)
{
    predict_command *f = *state;
    double samples[MOST], steps[MOST];
    PLAN(f, "--gpu", "A100", "--gpus", "8", "--tokens", "1e9", "--global-batch", "66k-tokens", "--json");
    assert_compare(numbers(f, "samples_of_a_step", samples), ==, 1);
    assert_compare(samples[0], ==, 512);
    numbers(f, "steps", steps);
    assert_compare(steps[0], ==, ceil(1e9 / 128 / 512));
    process_run((const char *const[]){MDOT_CLI, "plan", resnet, "--gpu", "A100", "--tokens", "1e9", NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "no tokens");
}

static void a_plan_states_why_layouts_are_missing(void **state)
{
    predict_command *f = *state;
    PLAN(f, "--gpu", "name=tiny,tflops=10,memory=1,bandwidth=100", "--gpus", "1");
    assert_int_equal(f->result.status, USAGE); /* spec values belong to --gpu-spec */
    PLAN(f, "--gpu-spec", "name=tiny,tflops=10,memory=1,bandwidth=100", "--gpus", "1");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "No layout fits");
    expect_contains(f->result.out, "exceed the memory");
}

static void wrong_options_are_refused_by_name(void **state)
{
    predict_command *f = *state;
    static const struct {
        const char *option, *value, *word;
    } cases[] = {{"--deadline", "7", "7d"},       {"--deadline", "7d", "--tokens"},
                 {"--gpus", "8..4", "ascend"},    {"--gpus", "0", "--gpus"},
                 {"--budget", "5", "--tokens"},   {"--global-batch", "4M-words", "tokens"},
                 {"--grid", "clean", "350g/kWh"}, {"--epochs", "3", "dataset"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PLAN(f, "--gpu", "A100", cases[i].option, cases[i].value);
        assert_int_equal(f->result.status, USAGE);
        expect_contains(f->result.err, cases[i].word);
    }
    static const char *const outputs[][2] = {{"--json", NULL}, {"--emit", "torchrun"}};
    for (size_t i = 0; i < 2; i++) {
        PLAN(f, "--gpu", "A100", "-o", "unwritten.html", outputs[i][0], outputs[i][1]);
        assert_int_equal(f->result.status, USAGE);
        expect_contains(f->result.err, "--output");
    }
    PLAN(f, "--gpu", "A100", "--gpus", "12");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "12 GPUs");
    PLAN(f, "--gpus", "8");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "--gpu");
}

/* If no layout can run, the options are at fault, and more GPUs are no remedy. */
static void options_that_no_layout_can_have_are_refused_with_the_reason(void **state)
{
    predict_command *f = *state;
    static const char *const cases[][5] = {{"--cpu-rate", "3", "", "--cpus"},
                                           {"--parallel", "ps=2", "--gpus=1", "--parallel ps"},
                                           {"--parallel", "ps=2,zero=1", "--gpus=8", "--parallel ps"},
                                           {"--parallel", "vpp=2,pp=1", "--gpus=8", "pp"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        PLAN(f, "--gpu", "A100", cases[i][0], cases[i][1], cases[i][2][0] != '\0' ? cases[i][2] : NULL);
        if (f->result.status == OK) fail_msg("case %zu: %s", i, f->result.out);
        expect_contains(f->result.err, cases[i][3]);
    }
}

static double priced_layouts(predict_command *f, const char *option)
{
    double count;
    PLAN(f, "--gpu", "A100", "--gpus", "8", option, "--json");
    if (f->result.status != OK) fail_msg("%s: %s", option, f->result.err);
    assert_int_equal(json_numbers(f->result.out, "priced", &count, 1), 1);
    return count;
}

/* A list's layouts are those of its values, each of which the search keeps even if it is the default. */
static void a_list_has_the_layouts_of_each_value(void **state)
{
    static const char *const cases[][4] = {
        {"--precision=fp32,amp-bf16,bf16", "--precision=fp32", "--precision=amp-bf16", "--precision=bf16"},
        {"--parallel=dp=4,zero=0,1,3", "--parallel=dp=4,zero=0", "--parallel=dp=4,zero=1", "--parallel=dp=4,zero=3"},
        {"--parallel=tp=1,2", "--parallel=tp=1", "--parallel=tp=2"},
        {"--checkpoint=nothing,blocks", "--checkpoint=nothing", "--checkpoint=blocks"},
        {"--offload=nothing,optimizer", "--offload=nothing", "--offload=optimizer"},
        {"--optimizer=sgd,adamw", "--optimizer=sgd", "--optimizer=adamw"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double sum = 0;
        for (size_t k = 1; k < 4 && cases[i][k] != NULL; k++) {
            double count = priced_layouts(*state, cases[i][k]);
            assert_compare(count, >, 0);
            sum += count;
        }
        assert_compare(priced_layouts(*state, cases[i][0]), ==, sum);
    }
}

static void a_length_is_a_dimension(void **state)
{
    predict_command *f = *state;
    double by_length, by_dim, longer;
    static const char *const words[] = {"--length=1024", "--dim=length=1024", "--length=2048"};
    double *const steps[] = {&by_length, &by_dim, &longer};
    for (int i = 0; i < 3; i++) {
        process_run((const char *const[]){MDOT_CLI, "plan", "gpt2", "--gpu", "A100", words[i], "--json", NULL},
                    &f->result);
        if (f->result.status != OK) fail_msg("%s: %s", words[i], f->result.err);
        assert_compare(json_numbers(f->result.out, "step_ms", steps[i], 1), >=, 1);
    }
    assert_compare(by_length, ==, by_dim);
    assert_compare(longer, !=, by_dim);
}

static void a_table_shows_the_values_of_a_list(void **state)
{
    predict_command *f = *state;
    PLAN(f, "--gpu", "A100", "--gpus", "8", "--precision", "fp32,bf16", "--offload=nothing,optimizer", "--top", "50");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "precision, offload");
    expect_contains(f->result.out, "bf16, nothing");
    expect_contains(f->result.out, "bf16, optimizer");
}

/* The number behind a name in printed settings; 1 if the name is absent. */
static double setting(const char *settings, const char *name)
{
    const char *found = strstr(settings, name);
    return found != NULL ? strtod(found + strlen(name), NULL) : 1;
}

/* The emitted settings of every program use all GPUs and give the samples of the recommended layout's step. */
static void emitted_settings_use_all_gpus_and_samples(void **state)
{
    predict_command *f = *state;
    static const char *const layouts[] = {"--parallel=dp=8", "--parallel=tp=2,pp=1", "--parallel=pp=2,tp=1",
                                          "--parallel=tp=2,pp=2,vpp=2", "--parallel=zero=3,tp=1,pp=1"};
    static const char *const sizes[] = {"8", "32"};
    for (size_t i = 0; i < 10; i++) {
        const char *gpus = sizes[i % 2], *layout = layouts[i / 2];
        double count = atof(gpus), steps[MOST];
        PLAN(f, "--gpu=A100", "--gpus", gpus, "--samples=1e6", "--global-batch=256", layout);
        expect_contains(f->result.out, "1.00M samples to train on");
        PLAN(f, "--gpu=A100", "--gpus", gpus, "--samples=1e6", "--global-batch=256", layout, "--json");

        assert_compare(numbers(f, "steps", steps), ==, 1);
        PLAN(f, "--gpu=A100", "--gpus", gpus, "--samples=1e6", "--global-batch=256", layout, "--emit=torchtitan");
        assert_int_equal(f->result.status, OK);
        const char *out = f->result.out;
        assert_compare(setting(out, "--nnodes ") * setting(out, "--nproc-per-node "), ==, count);
        double workers = setting(out, "replicate_degree = ") * setting(out, "shard_degree = ");
        double sharded = setting(out, "tensor_parallel_degree = ") * setting(out, "context_parallel_degree = ") *
                         setting(out, "pipeline_parallel_degree = ");
        assert_compare(workers * sharded, ==, count);
        assert_compare(setting(out, "global_batch_size = "), ==, 256);
        assert_compare(fmod(256, setting(out, "local_batch_size = ") * workers), ==, 0);
        assert_compare(setting(out, "steps = "), ==, steps[0]);
        assert_compare(setting(out, "seq_len = "), ==, 128);
        PLAN(f, "--gpu=A100", "--gpus", gpus, "--samples=1e6", "--global-batch=256", layout, "--emit=megatron");
        assert_int_equal(f->result.status, OK);
        out = f->result.out;
        assert_compare(setting(out, "--global-batch-size "), ==, 256);
        assert_compare(setting(out, "--tensor-model-parallel-size ") * setting(out, "--context-parallel-size ") *
                           setting(out, "--pipeline-model-parallel-size "),
                       ==, sharded);
        assert_compare(fmod(256, setting(out, "--micro-batch-size ") * workers), ==, 0);
        PLAN(f, "--gpu=A100", "--gpus", gpus, "--samples=1e6", "--global-batch=256", layout, "--emit=torchrun");
        out = f->result.out;
        if (sharded == 1)
            assert_compare(setting(out, "_batch_size ") * setting(out, "accumulation_steps ") * count, ==, 256);
        else
            expect_contains(f->result.err, "--emit torchtitan or megatron");
    }
    PLAN(f, "--gpu-spec", "name=tiny,tflops=10,memory=1,bandwidth=100", "--gpus", "1", "--emit", "megatron");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "none fits");
}

/* A plan's JSON follows docs/plan.schema.json for all kinds of questions, and the schema refuses other texts. */
static void output_matches_the_schema(void **state)
{
    predict_command *f = *state;
    static const char *const lines[][5] = {
        {"--gpu=A100"},
        {"--gpu=A100,T4", "--gpus=1,8", "--tokens=1e9", "--price=2.5", "--top=2"},
        {"--gpu=H100", "--gpus=16", "--samples=1e6", "--deadline=1d", "--grid=350g/kWh"},
        {"--gpu=H100", "--gpus=8,64", "--precision=bf16,fp8", "--parallel=tp=1,2,zero=0,3", "--compile"},
        {"--gpu-spec=name=tiny,tflops=10,memory=1,bandwidth=100", "--gpus=1"}};
    static const char *const changes[][2] = {{"\"mdot-plan/1\"", "\"mdot-plan/9\""},
                                             {"\"step_ms\": ", "\"step_ms\": -"},
                                             {"\"hours\": ", "\"hour\": "},
                                             {"\"is_front\": ", "\"front\": "},
                                             {"\"nchw\"", "\"chwn\""},
                                             {"\"gpus\": ", "\"gpus\": 0."}};
    unsigned char *schema = NULL;
    size_t size;
    assert_int_equal(bs_read_file(MDOT_SOURCE_DIR "/docs/plan.schema.json", &schema, &size, NULL), MDOT_OK);
    char *text = strndup((char *)schema, size);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        PLAN(f, "--json", lines[i][0], lines[i][1], lines[i][2], lines[i][3], lines[i][4]);
        if (f->result.status != OK) fail_msg("%s", f->result.err);
        json_assert_schema(text, f->result.out);
    }
    PLAN(f, "--json", "--gpu=A100");
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *at = strstr(f->result.out, changes[i][0]);
        char *wrong = NULL;
        assert_non_null(at);
        assert_compare(asprintf(&wrong, "%.*s%s%s", (int)(at - f->result.out), f->result.out, changes[i][1],
                                at + strlen(changes[i][0])),
                       >, 0);
        if (json_fits_schema(text, wrong)) fail_msg("%s", changes[i][1]);
        free(wrong);
    }
    free(text);
    free(schema);
}

/* Each layout is a point inside both drawings of a page without scripts. `mdot report --plan` and `mdot plan -o` write
 * the same page. */
static void a_page_draws_each_layout(void **state)
{
    predict_command *f = *state;
    static const char *const cases[][8] = {
        {"--gpu=A100,T4", "--gpus=1..16", "--tokens=1e9", "--price=2", "--deadline=10h", "--global-batch=64"},
        {"--gpu=A100", "--gpus=8", "--tokens=1e9", "--global-batch=64"}, /* one layout */
        {"--gpu=A100,T4,H100,V100", "--gpus=8..64", "--epochs=3", "--dataset=10000", "--top=4"},
        {"--gpu=A100", "--gpus=1..8"},     /* no whole training */
        {"--gpu-spec=like=T4,memory=0.5"}, /* no layout fits */
    };
    static const char *const forbidden[] = {"http:", "https:", "<script", "nan", "inf ", "-inf", "%!"};
    char *path = process_in_folder(f->folder, "plan.html"), *twin = process_in_folder(f->folder, "twin.html");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *c = cases[i];
        PLAN(f, "--json", c[0], c[1], c[2], c[3], c[4], c[5]);
        assert_int_equal(f->result.status, OK);
        double steps[4 * MOST], x;
        size_t layouts = json_numbers(f->result.out, "step_ms", steps, 4 * MOST), points = 0, drawings = 0;
        PLAN(f, "-o", twin, c[0], c[1], c[2], c[3], c[4], c[5]);
        assert_int_equal(f->result.status, OK);
        process_run((const char *const[]){MDOT_CLI, "report", i % 2 == 0 ? "--plan" : bert,
                                          i % 2 == 0 ? bert : "--plan", "--dim", "sequence=128", "-o", path, c[0], c[1],
                                          c[2], c[3], c[4], c[5], NULL},
                    &f->result);
        assert_int_equal(f->result.status, OK);
        unsigned char *bytes = NULL, *other = NULL;
        size_t size = 0, other_size = 0;
        assert_int_equal(bs_read_file(path, &bytes, &size, NULL), MDOT_OK);
        assert_int_equal(bs_read_file(twin, &other, &other_size, NULL), MDOT_OK);
        assert_int_equal(size, other_size);
        assert_memory_equal(bytes, other, size);
        char *page = strndup((const char *)bytes, size);
        for (const char *cursor = page; (cursor = strstr(cursor, "<circle cx=\"")) != NULL; points++) {
            assert_int_equal(sscanf(cursor += strlen("<circle cx=\""), "%lf", &x), 1);
            assert_compare(x, >, 0);
            assert_compare(x, <, 1180);
        }
        for (const char *cursor = page; (cursor = strstr(cursor, "aria-label=\"Time against cost\"")) != NULL;
             drawings++)
            cursor++;
        assert_int_equal(points, 3 * layouts);
        assert_int_equal(drawings, layouts > 0 ? 3 : 0);
        for (size_t k = 0; k < sizeof forbidden / sizeof *forbidden; k++)
            if (strstr(page, forbidden[k]) != NULL) fail_msg("case %zu has %s", i, forbidden[k]);
        free(bytes);
        free(other);
        free(page);
    }
    free(path);
    free(twin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_draws_each_layout),
        cmocka_unit_test(the_cheapest_layout_in_time_is_recommended),
        cmocka_unit_test(the_printed_command_predicts_the_layout),
        cmocka_unit_test(tokens_become_samples),
        cmocka_unit_test(a_plan_states_why_layouts_are_missing),
        cmocka_unit_test(wrong_options_are_refused_by_name),
        cmocka_unit_test(options_that_no_layout_can_have_are_refused_with_the_reason),
        cmocka_unit_test(a_list_has_the_layouts_of_each_value),
        cmocka_unit_test(a_length_is_a_dimension),
        cmocka_unit_test(a_table_shows_the_values_of_a_list),
        cmocka_unit_test(emitted_settings_use_all_gpus_and_samples),
        cmocka_unit_test(output_matches_the_schema),
    };
    return cmocka_run_group_tests_name("mdot plan", tests, predict_command_set_up, predict_command_tear_down);
}
