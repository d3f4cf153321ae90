/* test_config.c — frontend/config: jobs from a config.json, and ready jobs by name. Laws: parameters and FLOPs are
 * those of the published networks, and each hostile file is refused with its field. */
#include "base/file.h"
#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define JOBS MDOT_SOURCE_DIR "/weights/jobs"

static int use_shipped_jobs(void **state)
{
    (void)state;
    return setenv("MDOT_JOBS", JOBS, 1);
}

/* Adds "key": value to a configuration; the last one of several counts. */
#define LLAMA(more)                                                                                                    \
    "{\"model_type\": \"llama\", \"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_attention_heads\": 32, "   \
    "\"num_hidden_layers\": 32, \"num_key_value_heads\": 8, \"vocab_size\": 128256, \"dtype\": \"bfloat16\"" more "}"

static mdot_status read_text(const char *text, int64_t length, mdot_job **out_job, mdot_error *err)
{
    const mdot_dim_binding dim = {.name = "length", .value = length};
    const mdot_job_options options = {
        .struct_size = sizeof options, .dims = &dim, .dim_count = length > 0 ? 1 : 0, .keep_names = 1};
    return mdot_job_read_bytes(text, strlen(text), "config.json", &options, out_job, err);
}

static mdot_job *job_of(const char *text, int64_t length)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (read_text(text, length, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static double forward_flops(const mdot_job *job)
{
    double sum = 0;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        sum += op.per_sample[MDOT_PHASE_FORWARD].flops + op.per_step[MDOT_PHASE_FORWARD].flops;
    }
    return sum;
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

/* Published parameter counts. */
static void a_ready_job_has_the_published_parameters(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double parameters;
    } networks[] = {
        {"llama-3-8b", 8030261248.0},   {"llama-2-70b", 68976648192.0},       {"gpt2", 124439808.0},
        {"t5-base", 222903552.0},       {"bloom-560m", 559214592.0},          {"opt-125m", 125239296.0},
        {"phi-3-mini", 3821079552.0},   {"qwen3-30b-a3b", 30532122624.0},     {"smollm3-3b", 3075098624.0},
        {"gpt-oss-20b", 20914757184.0}, {"qwen1.5-moe-a2.7b", 14315784192.0}, {"command-r-35b", 34980831232.0},
        {"olmoe-1b-7b", 6919161856.0},  {"gpt-neo-1.3b", 1315575808.0},       {"deepseek-v2-lite", 15706484224.0},
        {"deepseek-v3", 671026404352.0}};
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        mdot_job *job = NULL;
        mdot_error err = {0};
        if (mdot_job_read(networks[i].name, NULL, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job_get_info(job, &info);
        assert_compare(info.parameters, ==, networks[i].parameters);
        assert_int_equal(info.unknown_count, 0);
        mdot_job_destroy(job);
    }
}

/* Products are 2 FLOPs per token and parameter, except for the table of embeddings, and attention has 4 per pair of
 * tokens and channel. Everything else is below 3 %. */
static void flops_follow_from_the_parameters(void **state)
{
    (void)state;
    for (double length = 512; length <= 8192; length *= 4) {
        mdot_job *job = job_of(LLAMA(), (int64_t)length);
        double products = 2 * length * (8030261248.0 - 128256.0 * 4096), pairs = 4 * 32 * 4096 * length * length;
        double ratio = forward_flops(job) / (products + pairs);
        if (!(ratio > 0.99 && ratio < 1.03)) fail_msg("length %g: %g of the expected FLOPs", length, ratio);
        mdot_job_destroy(job);
    }
}

static void a_configuration_has_a_program_and_a_length(void **state)
{
    (void)state;
    mdot_job *job = job_of(LLAMA(), 0);
    mdot_job_program program = MDOT_INIT(mdot_job_program);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    assert_string_equal(info.length_name, "length");
    assert_int_equal(info.block_count, 32);
    assert_int_equal(mdot_job_get_program(job, &program), MDOT_OK);
    assert_int_equal(program.precision, MDOT_PRECISION_BF16);
    assert_compare(program.trained_bytes, ==, 2 * info.parameters);
    assert_true(program.recorded_count > 0);
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    size_t layers = 0;
    for (size_t i = 0; i < info.operator_count; i++) {
        mdot_job_get_operator(job, i, &op);
        layers += op.module != NULL && strcmp(op.module, "model.layers.31.mlp.down_proj") == 0;
    }
    assert_int_equal(layers, 1);
    mdot_job_destroy(job);
}

/* A network has as many parameters as its layers, and each layer has as many as another one. */
/* Bytes of the job's file. The caller frees them. */
static unsigned char *bytes_of(const mdot_job *job, size_t *size)
{
    unsigned char *bytes = NULL;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "saved.job");
    assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
    assert_int_equal(bs_read_file(path, &bytes, size, NULL), MDOT_OK);
    free(path);
    process_remove_folder(folder);
    return bytes;
}

/* A job that is read with a freezing is the whole job, frozen afterwards: also the memory that was recorded. */
static void freezing_may_come_before_or_after_reading(void **state)
{
    (void)state;
    static const struct {
        const char *name, *pattern;
        bool trains;
    } cases[] = {{"gpt2", "*.h.11", true},       {"gpt2", "*.h.?", false},      {"llama-3-8b", "*.31.*", true},
                 {"llama-3-8b", "*mlp*", false}, {"bert-base", "*.11.*", true}, {"qwen3-30b-a3b", "*.self_attn", false},
                 {"t5-base", "encoder", false},  {"opt-125m", "*fc?", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *pattern = &cases[i].pattern;
        const mdot_job_freezing freezing = {.struct_size = sizeof freezing,
                                            .frozen = cases[i].trains ? NULL : pattern,
                                            .frozen_count = cases[i].trains ? 0 : 1,
                                            .trained = cases[i].trains ? pattern : NULL,
                                            .trained_count = cases[i].trains ? 1 : 0};
        mdot_job_options options = {.struct_size = sizeof options, .keep_names = 1};
        mdot_job *whole = NULL, *after = NULL, *before = NULL;
        mdot_error err = {0};
        if (mdot_job_read(cases[i].name, &options, &whole, &err) != MDOT_OK) fail_msg("%s", err.message);
        if (mdot_job_freeze(whole, &freezing, &after, &err) != MDOT_OK) fail_msg("%s", err.message);
        options.freezing = &freezing;
        if (mdot_job_read(cases[i].name, &options, &before, &err) != MDOT_OK) fail_msg("%s", err.message);
        size_t size, other_size;
        unsigned char *bytes = bytes_of(after, &size), *other = bytes_of(before, &other_size);
        if (size != other_size || memcmp(bytes, other, size) != 0) fail_msg("%s differs", cases[i].name);
        free(bytes);
        free(other);
        mdot_job_destroy(whole);
        mdot_job_destroy(after);
        mdot_job_destroy(before);
    }
}

static void each_layer_adds_the_same(void **state)
{
    (void)state;
    double parameters[4], flops[4];
    for (int layers = 2; layers < 6; layers++) {
        char text[600];
        snprintf(text, sizeof text, LLAMA(", \"num_hidden_layers\": %d"), layers);
        mdot_job *job = job_of(text, 1024);
        mdot_job_info info = MDOT_INIT(mdot_job_info);
        mdot_job_get_info(job, &info);
        parameters[layers - 2] = info.parameters;
        flops[layers - 2] = forward_flops(job);
        mdot_job_destroy(job);
    }
    for (int i = 2; i < 4; i++) {
        assert_compare(parameters[i] - parameters[i - 1], ==, parameters[1] - parameters[0]);
        assert_compare(flops[i] - flops[i - 1], ==, flops[1] - flops[0]);
    }
}

static void a_folder_and_a_file_are_read(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "config.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(LLAMA(), file);
    assert_int_equal(fclose(file), 0);
    const char *const paths[] = {folder, path};
    for (int i = 0; i < 2; i++) {
        mdot_job *job = NULL;
        mdot_error err = {0};
        if (mdot_job_read(paths[i], NULL, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
        mdot_job_destroy(job);
    }
    assert_int_equal(remove(path), 0);
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_read(folder, NULL, &job, &err), MDOT_NOT_FOUND);
    expect_contains(err.message, "config.json");
    free(path);
    process_remove_folder(folder);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void an_impossible_configuration_is_refused_with_its_field(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        mdot_status status;
        const char *part;
    } files[] = {
        {"{}", MDOT_MALFORMED, "model_type is missing"},
        {"[1]", MDOT_MALFORMED, "config.json"},
        {"{\"model_type\": \"llama\"", MDOT_MALFORMED, "ends too early"},
        {"{\"model_type\": \"llama\"}", MDOT_MALFORMED, "num_hidden_layers is missing"},
        {"{\"model_type\": \"../llama\"}", MDOT_UNSUPPORTED, "model_type"},
        {"{\"model_type\": 3}", MDOT_MALFORMED, "model_type"},
        {"{\"model_type\": \"lama\"}", MDOT_UNSUPPORTED, "llama"},
        {LLAMA(", \"hidden_size\": -1"), MDOT_MALFORMED, "hidden_size is -1"},
        {LLAMA(", \"hidden_size\": 0"), MDOT_MALFORMED, "hidden_size is 0"},
        {LLAMA(", \"hidden_size\": 9007199254740994"), MDOT_MALFORMED, "hidden_size"},
        {LLAMA(", \"hidden_size\": 1e300"), MDOT_MALFORMED, "hidden_size"},
        {LLAMA(", \"hidden_size\": 99999999999999999999999999"), MDOT_MALFORMED, "hidden_size"},
        {LLAMA(", \"hidden_size\": 4096.5"), MDOT_MALFORMED, "hidden_size"},
        {LLAMA(", \"hidden_size\": \"4096\""), MDOT_MALFORMED, "hidden_size"},
        {LLAMA(", \"hidden_size\": [4096]"), MDOT_MALFORMED, "hidden_size"},
        {LLAMA(", \"hidden_size\": true"), MDOT_MALFORMED, "hidden_size"},
        {LLAMA(", \"hidden_size\": 4097"), MDOT_MALFORMED, "d/h"},
        {LLAMA(", \"vocab_size\": 1000000000000, \"hidden_size\": 1099511627776"), MDOT_MALFORMED, "2^62"},
        {LLAMA(", \"num_hidden_layers\": 1000000000"), MDOT_MALFORMED, "operators"},
        {LLAMA(", \"num_hidden_layers\": 1"), MDOT_UNSUPPORTED, "layers"},
        {LLAMA(", \"hidden_act\": \"gelu\""), MDOT_UNSUPPORTED, "hidden_act"},
        {LLAMA(", \"attention_bias\": true"), MDOT_UNSUPPORTED, "attention_bias"},
        {"{\"traceEvents\": []}", MDOT_UNSUPPORTED, "a profiler's trace; make a job of it with Python: `mdot export"},
        {"{\"nodes\": []}", MDOT_UNSUPPORTED, "a profiler's trace"},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        mdot_job *job = NULL;
        mdot_error err = {0};
        mdot_status status = read_text(files[i].text, 0, &job, &err);
        if (status != files[i].status || strstr(err.message, files[i].part) == NULL)
            fail_msg("%s: %s: %s", files[i].text, mdot_status_name(status), err.message);
        if (status == MDOT_UNSUPPORTED && files[i].status == MDOT_UNSUPPORTED && i != 19)
            expect_contains(err.message, "mdot export");
        assert_null(job);
    }
}

/* A description or a traced network that is cut off or changed at any of many bytes is refused, with its path. */
static void refuse_damage(const char *file, const char *source)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    char from[256];
    snprintf(from, sizeof from, "%s/%s", JOBS, file);
    assert_int_equal(bs_read_file(from, &bytes, &size, NULL), MDOT_OK);
    char *folder = process_make_folder(), *path = process_in_folder(folder, file);
    char *library = process_in_folder(folder, "library.json");
    static const char content[] = "{\"sdxl\": {\"title\": \"\", \"file\": \"sdxl.job.gz\", \"parameters\": 1}}";
    assert_int_equal(bs_write_file(library, content, sizeof content - 1, NULL), MDOT_OK);
    assert_int_equal(setenv("MDOT_JOBS", folder, 1), 0);
    for (size_t i = 0; i < 200; i++) {
        size_t at = i < 100 ? 10 + i * (size - 10) / 100 : size - 1 - (i - 100) % 8, cut = i % 3 == 0 ? at : size;
        bytes[at] ^= (unsigned char)(1 + i % 255);
        assert_int_equal(bs_write_file(path, bytes, cut, NULL), MDOT_OK);
        bytes[at] ^= (unsigned char)(1 + i % 255);
        mdot_job *job = NULL;
        mdot_error err = {0};
        mdot_status status =
            source != NULL ? read_text(source, 0, &job, &err) : mdot_job_read("sdxl", NULL, &job, &err);
        if (status != MDOT_MALFORMED || strstr(err.message, file) == NULL)
            fail_msg("byte %zu of %zu: %s: %s", at, cut, mdot_status_name(status), err.message);
    }
    free(bytes);
    free(path);
    free(library);
    process_remove_folder(folder);
}

static void damaged_data_are_refused(void **state)
{
    refuse_damage("gpt2.json.gz", "{\"model_type\": \"gpt2\"}");
    refuse_damage("sdxl.job.gz", NULL);
    use_shipped_jobs(state);
}

#define GPT2                                                                                                           \
    "{\"model_type\": \"gpt2\", \"n_layer\": 12, \"n_head\": 12, \"n_embd\": 768, \"vocab_size\": 50257, "             \
    "\"n_positions\": 1024}"

/* Words that a later version might write. The message names the writer's version, this one and the remedy. */
static void descriptions_of_another_version_are_refused_with_both_versions(void **state)
{
    static const char *const changes[][3] = {
        {"\"amp-fp16\",\"nothing\"", "\"amp-fp8\",\"nothing\"", "has an invalid record"},
        {"\"fp32\",\"selective\"", "\"fp32\",\"layers\"", "has an invalid record"},
        {"[[\"1\",", "[[\"1?2\",", "has an invalid count"},
        {"[\"0\",\"2\"", "[\"0\",\"V@2\"", "has an invalid formula"},
        {"[\"Gather\"", "[\"Gather2\"", "has an invalid operator"}};
    static const char *const writers[][2] = {{"", "mdot (unknown version) wrote it"},
                                             {"\"mdot\":\"9.8.7\",", "mdot 9.8.7 wrote it"}};
    process_result result;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "gpt2.json.gz"), *command = NULL;
    unsigned char *text = NULL;
    size_t size = 0;
    assert_true(asprintf(&command, "gzip -dc " JOBS "/gpt2.json.gz > %s; printf '\\0' >> %s", path, path) > 0);
    process_run((const char *const[]){"/bin/sh", "-c", command, NULL}, &result);
    assert_int_equal(bs_read_file(path, &text, &size, NULL), MDOT_OK);
    const char *description = strstr((const char *)text, "\"family\"") - 1; /* without the writer's version */
    assert_int_equal(setenv("MDOT_JOBS", folder, 1), 0);
    for (size_t i = 0; i < 2 * sizeof changes / sizeof *changes; i++) {
        const char *const *change = changes[i / 2], *place = strstr(description, change[0]);
        assert_non_null(place);
        FILE *file = fopen(path, "w");
        fprintf(file, "{%s%.*s%s%s", writers[i % 2][0], (int)(place - description) - 1, description + 1, change[1],
                place + strlen(change[0]));
        assert_int_equal(fclose(file), 0);
        mdot_job *job = NULL;
        mdot_error err = {0};
        assert_int_equal(read_text(GPT2, 0, &job, &err), MDOT_MALFORMED);
        expect_contains(err.message, change[2]);
        expect_contains(err.message, writers[i % 2][1]);
        expect_contains(err.message, "this is mdot " MDOT_PROJECT_VERSION ": use the ready jobs of this version");
    }
    free(text);
    free(command);
    free(path);
    process_remove_folder(folder);
    use_shipped_jobs(state);
}

static void deep_json_is_refused(void **state)
{
    (void)state;
    enum { DEPTH = 100000 };
    char *text = malloc(DEPTH + 1);
    assert_non_null(text);
    memset(text, '[', DEPTH);
    memcpy(text, "{\"a\":", 5);
    text[DEPTH] = '\0';
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(read_text(text, 0, &job, &err), MDOT_MALFORMED);
    free(text);
}

static void an_unknown_name_lists_the_nearest(void **state)
{
    (void)state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_read("llama-3-8bb", NULL, &job, &err), MDOT_NOT_FOUND);
    expect_contains(err.message, "llama-3-8b,");
    expect_contains(err.message, "mdot jobs");
    assert_int_equal(mdot_job_read("./llama-3-8b", NULL, &job, &err), MDOT_NOT_FOUND);
}

static mdot_job_info read_info(const char *name)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    if (mdot_job_read(name, NULL, &job, &err) != MDOT_OK) fail_msg("%s: %s", name, err.message);
    mdot_job_get_info(job, &info);
    mdot_job_destroy(job);
    return info;
}

/* Each job is read once, by its own name or by a hub's name for it, because reading all takes 20 s. The sanitizers read
 * every fourth. */
static void compare_job(void *user, const mdot_ready_job *job)
{
    size_t *count = user;
    size_t number = (*count)++;
    char name[128] = "Some-Org/", *end = name + strlen(name);
#ifdef MDOT_SANITIZED
    if (number % 4 != 0) return;
#endif
    assert_compare(strlen(job->name), <, sizeof name - 16);
    for (const char *c = job->name; *c != '\0'; c++) *end++ = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
    *end = '\0';
    mdot_job_info info = read_info(number % 8 == 0 ? job->name : name);
    if (info.parameters != job->parameters || info.length != job->length)
        fail_msg("%s: %.0f parameters, length %lld; listed are %.0f and %lld", job->name, info.parameters,
                 (long long)info.length, job->parameters, (long long)job->length);
    if (info.unknown_count > 0 || *job->title == '\0')
        fail_msg("%s: %zu unknown operators", job->name, info.unknown_count);
}

static void names_of_a_hub_are_understood(void **state)
{
    (void)state;
    mdot_error err = {0};
    mdot_job *job = NULL;
    assert_int_equal(mdot_job_read("timm:resnet-50", NULL, &job, &err), MDOT_OK);
    mdot_job_destroy(job);
    assert_int_equal(mdot_job_read("meta-llama/Llama-3-9B", NULL, &job, &err), MDOT_NOT_FOUND);
    expect_contains(err.message, "llama-3-8b");
}

/* Names of hubs, in the spelling that their pages have. Words about weights lead to the same job; other words are
 * refused with the nearest name. */
static void names_with_more_words_are_understood_or_led_on(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool is_ready;
        const char *job;
    } cases[] = {{"meta-llama/Meta-Llama-3-8B-Instruct", true, "llama-3-8b"},
                 {"NousResearch/Meta-Llama-3-8B", true, "llama-3-8b"},
                 {"meta-llama/Llama-2-7b-chat-hf", true, "llama-2-7b"},
                 {"mistralai/Mixtral-8x7B-Instruct-v0.1", true, "mixtral-8x7b"},
                 {"google-bert/bert-base-uncased", true, "bert-base"},
                 {"google/gemma-2-2b-it", true, "gemma-2-2b"},
                 {"EleutherAI/pythia-1.4b-deduped", true, "pythia-1.4b"},
                 {"Qwen/Qwen3-8B-Base", true, "qwen3-8b"},
                 {"stable-diffusion-xl", true, "sdxl"},
                 {"stabilityai/sd1.5", true, "sd-unet"},
                 {"timm:vit-b/16", true, "vit_b_16"},
                 {"timm:inception_v3", false, "are inception_v3,"},
                 {"timm/Inception-v3", false, "are inception_v3,"},
                 {"torchvision:inception_v3", true, "inception_v3"},
                 {"timm:vit_huge_patch14_224", false, "are vit-huge-patch14-224,"},
                 {"timm:convnext_base", false, "are convnext_tiny,"},
                 {"convnext-chat", true, "convnext_tiny"},
                 {"mistralai/Mistral", true, "mistral-7b"},
                 {"vit-l/16", true, "vit-large-patch16-224"},
                 {"clip-vit-b/32", true, "clip-vit-base-patch32"},
                 {"meta-llama/Llama-3-405B-Instruct", true, "llama-3.1-405b"},
                 {"stabilityai/stable-diffusion-3-medium", true, "sd3-medium"},
                 {"openai/whisper-large-v3-turbo", false, "are whisper-large-v3,"},
                 {"google/vit-base-patch16-224-in21k", false, "are vit-base-patch16-224,"},
                 {"llama-3-8bit", false, "llama-3-8b"},
                 {"mistralai/Mistral-7B-v0.15", false, "are mistral-7b,"},
                 {"bert-large-cased", false, "bert-large"},
                 {"llama-3-8b-instruct--it", false, "llama-3-8b"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mdot_error err = {0};
        mdot_job *job = NULL, *ready = NULL;
        mdot_job_info info = MDOT_INIT(mdot_job_info), expected = MDOT_INIT(mdot_job_info);
        mdot_status status = mdot_job_read(cases[i].name, NULL, &job, &err);
        if ((status == MDOT_OK) != cases[i].is_ready) fail_msg("%s: %s", cases[i].name, err.message);
        if (!cases[i].is_ready) {
            expect_contains(err.message, cases[i].job);
            continue;
        }
        assert_int_equal(mdot_job_read(cases[i].job, NULL, &ready, &err), MDOT_OK);
        mdot_job_get_info(job, &info);
        mdot_job_get_info(ready, &expected);
        assert_compare(info.parameters, ==, expected.parameters);
        assert_int_equal(info.operator_count, expected.operator_count);
        mdot_job_destroy(job);
        mdot_job_destroy(ready);
    }
}

static void each_ready_job_is_as_listed_also_by_a_name_of_a_hub(void **state)
{
    (void)state;
    size_t count = 0;
    mdot_error err = {0};
    assert_int_equal(mdot_ready_jobs(compare_job, &count, &err), MDOT_OK);
    assert_compare(count, >=, 205);
    assert_int_equal(mdot_ready_jobs(NULL, NULL, &err), MDOT_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ready_job_has_the_published_parameters),
        cmocka_unit_test(flops_follow_from_the_parameters),
        cmocka_unit_test(a_configuration_has_a_program_and_a_length),
        cmocka_unit_test(freezing_may_come_before_or_after_reading),
        cmocka_unit_test(each_layer_adds_the_same),
        cmocka_unit_test(a_folder_and_a_file_are_read),
        cmocka_unit_test(an_impossible_configuration_is_refused_with_its_field),
        cmocka_unit_test(damaged_data_are_refused),
        cmocka_unit_test(descriptions_of_another_version_are_refused_with_both_versions),
        cmocka_unit_test(deep_json_is_refused),
        cmocka_unit_test(an_unknown_name_lists_the_nearest),
        cmocka_unit_test(names_of_a_hub_are_understood),
        cmocka_unit_test(names_with_more_words_are_understood_or_led_on),
        cmocka_unit_test(each_ready_job_is_as_listed_also_by_a_name_of_a_hub),
    };
    return cmocka_run_group_tests(tests, use_shipped_jobs, NULL);
}
