/* training_options.c — see training_options.h. */
#include "base/training/training_options.h"
#include "base/command/quantity.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cli_training_begin(cli_training *training)
{
    *training = (cli_training){0};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].kind == RT_KIND_CHOICE) training->value[i].choice = CLI_NO_CHOICE;
}

bool cli_parse_link(const char *command, char *text, void *training)
{
    cli_training *t = training;
    const char *const *names = rt_link_names + 1; /* all but the default */
    const rt_option *rate = &rt_options[RT_OPTION_link_gbps];
    t->value[RT_OPTION_link].choice = CLI_NO_CHOICE;
    t->value[RT_OPTION_link_gbps].real = 0;
    double gbps = 0;
    const char *reason = cli_read_rate(text, &gbps);
    if (reason == NULL && gbps >= rate->least && gbps <= rate->most) {
        t->value[RT_OPTION_link_gbps].real = gbps;
        return true;
    }
    if (*text >= '0' && *text <= '9')
        return cli_refuse(command, "--link takes a rate from %g to %.0f GB/s, or pcie or nvlink, not \"%s\"%s%s",
                          rate->least, rate->most, text, reason != NULL ? ": " : "", reason != NULL ? reason : "");
    int choice = bs_find_choice(text, names, NULL);
    if (choice == CLI_NO_CHOICE) return cli_refuse_choice(command, "--link", text, names, NULL, "a number (GB/s)");
    t->value[RT_OPTION_link].choice = choice + 1;
    return true;
}

/* The keys of --parallel: rows in the section DEGREE. */
typedef struct degrees {
    size_t option[RT_OPTION_COUNT]; /* RT_OPTION_… of each key */
    const char *names[RT_OPTION_COUNT + 1];
    bs_choice_word words[RT_OPTION_COUNT + 4];
    size_t count;
} degrees;

/* The key for data parallelism with ZeRO stage 3: the last name. */
#define FSDP "fsdp"

static void list_degrees(degrees *out)
{
    static const bs_choice_word nearest[] = {{"tensor", "tp", false}, {"expert", "ep", false}};
    *out = (degrees){0};
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        if (rt_options[i].section != RT_SECTION_DEGREE) continue;
        out->words[out->count] = (bs_choice_word){rt_options[i].field, rt_options[i].command, true};
        out->option[out->count] = i;
        out->names[out->count++] = rt_options[i].command;
    }
    memcpy(out->words + out->count, nearest, sizeof nearest);
    out->option[out->count] = RT_OPTION_data_parallel;
    out->names[out->count++] = FSDP;
}

bool cli_parse_parallel(const char *command, char *text, void *training)
{
    cli_training *t = training;
    degrees keys;
    list_degrees(&keys);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (t->by_parallel[i]) t->value[i].whole = 0;
    memset(t->by_parallel, 0, sizeof t->by_parallel);
    bool is_set[RT_OPTION_COUNT] = {false}, shards = false;
    const char *items[RT_OPTION_COUNT];
    size_t count;
    if (!cli_split_list(command, "--parallel", text, keys.count, items, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        char *equals = strchr(items[i], '=');
        int key;
        if (equals == NULL)
            return cli_refuse(command, "--parallel takes KIND=N,… as in dp=4,tp=2, not \"%s\"", items[i]);
        *equals = '\0';
        if (!cli_parse_choice(command, "--parallel", items[i], keys.names, keys.words, &key)) return false;
        char what[32];
        snprintf(what, sizeof what, "--parallel %s", keys.names[key]);
        const rt_option *option = &rt_options[keys.option[key]];
        if (!cli_parse_int(command, what, equals + 1, (int64_t)option->least, (int64_t)option->most,
                           &t->value[keys.option[key]].whole))
            return false;
        if (is_set[keys.option[key]]) return cli_refuse(command, "--parallel has %s twice", option->command);
        is_set[keys.option[key]] = t->by_parallel[keys.option[key]] = true;
        if (strcmp(keys.names[key], FSDP) == 0) shards = true;
    }
    if (!shards) return true;
    if (is_set[RT_OPTION_zero_stage] && t->value[RT_OPTION_zero_stage].whole != 3)
        return cli_refuse(command, "--parallel fsdp=N is dp=N,zero=3 and excludes another ZeRO stage");
    t->value[RT_OPTION_zero_stage].whole = 3;
    t->by_parallel[RT_OPTION_zero_stage] = true;
    return true;
}

bool cli_parse_stages(const char *command, char *text, void *training)
{
    enum { MAX_STAGES = 256 };
    cli_training *t = training;
    const char *items[MAX_STAGES];
    size_t count;
    int64_t blocks[MAX_STAGES], sum = 0;
    if (!cli_split_list(command, "--stages", text, MAX_STAGES, items, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        bool is_end = i == 0 || i + 1 == count;
        if (!cli_parse_int(command, "--stages", items[i], is_end ? 0 : 1, MDOT_STAGE_WITHOUT_BLOCKS - 1, &blocks[i]))
            return false;
        sum += blocks[i];
        for (size_t k = 1; k < i && !is_end; k++) /* equal shares, rounded */
            if (llabs(blocks[i] - blocks[k]) > 1)
                return cli_refuse(command,
                                  "--stages takes numbers that differ by at most 1 between the first and the last "
                                  "stage, not %s and %s",
                                  items[k], items[i]);
    }
    if (count < 2) return cli_refuse(command, "--stages takes the blocks of at least two stages, as in 6,8,8,7");
    t->value[RT_OPTION_pipeline_parallel].whole = (int64_t)count;
    t->value[RT_OPTION_pipeline_blocks].whole = sum;
    t->value[RT_OPTION_first_stage_blocks].whole = blocks[0] > 0 ? blocks[0] : MDOT_STAGE_WITHOUT_BLOCKS;
    t->value[RT_OPTION_last_stage_blocks].whole = blocks[count - 1] > 0 ? blocks[count - 1] : MDOT_STAGE_WITHOUT_BLOCKS;
    return true;
}

/* Parses "2.4", or the version of a wheel: "2.4.1+cu121". */
static bool read_version(const char *command, const char *text, uint32_t *out)
{
    enum { DIGITS = 2 }; /* most digits of either number */
    size_t major = strspn(text, "0123456789");
    const char *point = text + major, *behind = point + (*point == '.');
    size_t minor = strspn(behind, "0123456789");
    const char *end = behind + minor;
    bool is_version = major > 0 && major <= DIGITS && *text != '0' && minor > 0 && minor <= DIGITS && *point == '.' &&
                      (*end == '\0' || *end == '.' || *end == '+');
    if (!is_version) return cli_refuse(command, "--torch takes a version as in 1.12 or 2.4, not \"%s\"", text);
    *out = (uint32_t)(100 * strtol(text, NULL, 10) + strtol(behind, NULL, 10));
    return true;
}

bool cli_parse_torch(const char *command, char *text, void *training)
{
    cli_training *t = training;
    const char *items[CLI_MAX_VERSIONS];
    size_t count;
    if (!cli_split_list(command, "--torch", text, CLI_MAX_VERSIONS - t->torch_count, items, &count)) return false;
    for (size_t i = 0; i < count; i++)
        if (!read_version(command, items[i], &t->torch[t->torch_count++])) return false;
    return true;
}

/* Returns the value of option i, or a fallback if the command line omits it. */
static double value_of(const cli_training *t, size_t i)
{
    const cli_training_value *value = &t->value[i];
    switch (rt_options[i].kind) {
    case RT_KIND_WHOLE:
    case RT_KIND_COUNT: return (double)value->whole;
    case RT_KIND_REAL: return value->real;
    case RT_KIND_CHOICE: return value->choice == CLI_NO_CHOICE ? rt_options[i].fallback : value->choice;
    case RT_KIND_FLAG: return value->flag;
    case RT_KIND_VERSION: return t->torch_count > 0 ? t->torch[0] : 0;
    case RT_KIND_GPU: break;
    }
    return 0;
}

bool cli_training_states(const cli_training *t, size_t i)
{
    return t->by_parallel[i] || value_of(t, i) != 0 ||
           (rt_options[i].kind == RT_KIND_CHOICE && t->value[i].choice != CLI_NO_CHOICE);
}

void cli_training_apply(const cli_training *t, const mdot_job_info *job, mdot_configuration *c)
{
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].section != RT_SECTION_JOB) rt_option_set(c, &rt_options[i], value_of(t, i));
    if (t->value[RT_OPTION_optimizer].choice == CLI_NO_CHOICE) c->optimizer = job->optimizer;
}

static int at_least_one(uint32_t number) { return number > 0 ? (int)number : 1; }

int cli_gpu_count(const mdot_configuration *c)
{
    if (c->gpu_count > 0) return c->gpu_count;
    return at_least_one(c->data_parallel) * at_least_one(c->tensor_parallel) * at_least_one(c->pipeline_parallel) *
           at_least_one(c->expert_parallel) * at_least_one(c->context_parallel);
}

const char *cli_parameters(const mdot_job_info *job, char out[CLI_PARAMETERS_SIZE])
{
    char all[16], trained[16];
    snprintf(out, CLI_PARAMETERS_SIZE, "%s parameters",
             cli_short_number(job->parameters + job->frozen_parameters, all));
    if (job->frozen_parameters > 0)
        snprintf(out + strlen(out), CLI_PARAMETERS_SIZE - strlen(out), ", %s of them trained",
                 cli_short_number(job->parameters, trained));
    return out;
}

/* A worker is a group of GPUs with one shared batch. Workers are data-parallel and also expert-parallel. */
static int worker_count(const mdot_configuration *c)
{
    return cli_gpu_count(c) / at_least_one(c->tensor_parallel) / at_least_one(c->pipeline_parallel) /
           at_least_one(c->context_parallel);
}

double cli_samples_of_step(const mdot_configuration *c)
{
    return (double)c->batch * at_least_one(c->accumulate) * worker_count(c);
}

static void put(cli_sentence *out, const char *format, ...)
{
    size_t used = strlen(out->text);
    va_list args;
    va_start(args, format);
    vsnprintf(out->text + used, sizeof out->text - used, format, args);
    va_end(args);
}

static bool has_degrees(const cli_training *t)
{
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].section == RT_SECTION_DEGREE && t->value[i].whole > 0) return true;
    return false;
}

static bool is_chosen(const cli_training *t, int option) { return t->value[option].choice != CLI_NO_CHOICE; }

static void put_cluster(cli_sentence *out, const cli_training *t, const mdot_configuration *c, bool is_estimated)
{
    int gpus = cli_gpu_count(c);
    put(out, ", %d GPU%s", gpus, gpus == 1 ? "" : "s");
    if (has_degrees(t)) {
        put(out, " (%d data-parallel", worker_count(c) / at_least_one(c->expert_parallel));
        if (c->expert_parallel > 1) put(out, ", %u expert-parallel", c->expert_parallel);
        if (c->tensor_parallel > 1) put(out, ", %u tensor-parallel", c->tensor_parallel);
        if (c->sequence_parallel != 0) put(out, " with divided sequences");
        if (c->context_parallel > 1) put(out, ", %u context-parallel", c->context_parallel);
        if (c->pipeline_parallel > 1) put(out, ", %u stages", c->pipeline_parallel);
        if (c->pipeline_parallel > 1 && c->micro_batches > 0) put(out, " of %u micro-batches", c->micro_batches);
        if (c->first_stage_blocks > 0) put(out, ", %u blocks in the first", c->first_stage_blocks & 0xffff);
        if (c->last_stage_blocks > 0) put(out, ", %u blocks in the last", c->last_stage_blocks & 0xffff);
        if (c->virtual_stages > 1) put(out, ", %u virtual stages each", c->virtual_stages);
        if (c->schedule != MDOT_SCHEDULE_1F1B) put(out, ", %s", rt_schedule_names[c->schedule]);
        if (c->zero_stage > 0) put(out, ", ZeRO %u", c->zero_stage);
        if (c->servers > 0)
            put(out, ", %u parameter server%s, %s", c->servers, c->servers == 1 ? "" : "s", rt_sync_names[c->sync]);
        put(out, ")");
    }
    if (gpus == 1) return;
    if (c->node_count > 1) put(out, " on %u nodes", c->node_count);
    if (c->link_gbps > 0) put(out, ", linked at %g GB/s", c->link_gbps);
    if (c->link != MDOT_LINK_DEFAULT) put(out, ", linked by %s", c->link == MDOT_LINK_PCIE ? "PCIe" : "NVLink");
    if (c->link_gbps == 0 && c->link == MDOT_LINK_DEFAULT)
        put(out, ", linked %s (default)",
            is_estimated ? "by NVLink if present, else PCIe" : "as the predictor assumes");
    if (c->node_count > 1)
        put(out, ", network at %g GB/s%s", c->network_gbps > 0 ? c->network_gbps : rt_usual_network_gbps(c->gpu_spec),
            c->network_gbps > 0 ? "" : " (default)");
}

/* Options left out at their defaults. */
static void put_training(cli_sentence *out, const mdot_configuration *c)
{
    if (c->optimizer_kernels != MDOT_OPTIMIZER_KERNELS_DEFAULT)
        put(out, ", %s update", rt_optimizer_kernels_names[c->optimizer_kernels]);
    if (c->step_in_backward != 0) put(out, ", update in the backward pass");
    if (c->gradient_type != MDOT_NUMBER_DEFAULT) put(out, ", %s gradients", rt_gradient_type_names[c->gradient_type]);
    if (c->reduce_type != MDOT_NUMBER_DEFAULT) put(out, ", sums in %s", rt_reduce_type_names[c->reduce_type]);
    if (c->offload == MDOT_OFFLOAD_PAGES)
        put(out, ", optimizer's state in managed memory");
    else if (c->offload != MDOT_OFFLOAD_NOTHING)
        put(out, ", %s in host memory", rt_offload_names[c->offload]);
    if (c->offload_activations != 0) put(out, ", activations in host memory");
    if (c->loss != MDOT_LOSS_WHOLE) put(out, ", %s loss", rt_loss_names[c->loss]);
    if (c->frozen_weights != MDOT_FROZEN_UNCHANGED)
        put(out, ", frozen weights in %s", rt_frozen_weights_names[c->frozen_weights]);
    if (c->host_launch_us > 0) put(out, ", %g µs for a launch by the host", c->host_launch_us);
    if (c->loader_rate > 0) put(out, ", data at %g samples/s", c->loader_rate);
    if (c->cpu_rate > 0) put(out, ", %g CPU%s for data", c->cpus, c->cpus == 1 ? "" : "s");
    if (c->power_limit > 0) put(out, ", limited to %g W", c->power_limit);
    if (c->ema != 0) put(out, ", moving average of weights");
    if (c->grad_scaler != 0) put(out, ", scaled losses");
    if (c->keep_gathered != 0) put(out, ", gathered weights kept");
    if (c->whole_gradients != 0) put(out, ", whole gradients until the last pass");
}

cli_job_choices cli_choices_of(const mdot_job *job)
{
    cli_job_choices choices = {.precision = MDOT_PRECISION_PYTORCH, .attention = MDOT_ATTENTION_FLASH};
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    for (size_t i = 0; i < info.operator_count && !choices.attends; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(job, i, &op);
        choices.attends = op.setting[MDOT_SETTING_HEADS] > 0;
    }
    mdot_job_program program = MDOT_INIT(mdot_job_program);
    choices.is_program = mdot_job_get_program(job, &program) == MDOT_OK;
    if (!choices.is_program) return choices;
    choices.precision = program.precision;
    if (program.attention != MDOT_ATTENTION_PROGRAM) choices.attention = program.attention;
    return choices;
}

mdot_configuration cli_plan_base(const mdot_job *job, const mdot_gpu *gpus, size_t gpu_count)
{
    enum { FIRST_BF16 = 8 };
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    cli_job_choices choices = cli_choices_of(job);
    bool has_bf16 = choices.attends && choices.precision == MDOT_PRECISION_PYTORCH;
    for (size_t i = 0; i < gpu_count; i++) has_bf16 = has_bf16 && gpus[i].compute_capability >= FIRST_BF16;
    return (mdot_configuration){.struct_size = sizeof(mdot_configuration),
                                .batch = 1,
                                .precision = has_bf16 ? MDOT_PRECISION_MIXED_BF16 : MDOT_PRECISION_PYTORCH,
                                .optimizer = info.has_optimizer ? info.optimizer : MDOT_OPTIMIZER_ADAMW};
}

const char *cli_describe_training(cli_sentence *out, const cli_training *t, const mdot_configuration *c,
                                  const mdot_job_info *job, const cli_job_choices *choices, bool is_estimated)
{
    out->text[0] = '\0';
    const char *by_default = choices->is_program ? " (the program's)" : " (default)";
    bool is_left = c->precision == MDOT_PRECISION_PYTORCH;
    put(out, "%s", rt_precision_names[is_left ? choices->precision : c->precision]);
    if (!is_chosen(t, RT_OPTION_precision)) put(out, "%s", by_default);
    put(out, ", %s%s", rt_layout_names[c->layout], !is_chosen(t, RT_OPTION_layout) ? " (default)" : "");
    if (c->mode == MDOT_MODE_INFERENCE)
        put(out, ", inference");
    else
        put(out, ", %s%s", rt_optimizer_names[c->optimizer],
            is_chosen(t, RT_OPTION_optimizer) ? ""
            : job->has_optimizer              ? " (the file's)"
                                              : " (default)");
    mdot_attention attention = c->attention == MDOT_ATTENTION_PROGRAM ? choices->attention : c->attention;
    if (choices->attends || is_chosen(t, RT_OPTION_attention))
        put(out, ", %s attention%s", rt_attention_names[attention],
            is_chosen(t, RT_OPTION_attention) ? "" : by_default);
    if (job->frozen_parameters > 0)
        put(out, ", %.3g %% of parameters frozen",
            100 * job->frozen_parameters / (job->parameters + job->frozen_parameters));
    if (c->compiled != 0) put(out, ", compiled");
    if (c->recompute == MDOT_RECOMPUTE_BLOCKS) put(out, ", blocks recomputed");
    if (c->recompute == MDOT_RECOMPUTE_SELECTIVE) put(out, ", all but matmuls recomputed");
    if (c->accumulate > 1) put(out, ", %u passes a step", c->accumulate);
    put_training(out, c);
    uint32_t assumed = choices->torch;
    if (c->torch > 0 && t->torch_count == 1)
        put(out, ", PyTorch " RT_VERSION_FORMAT, RT_VERSION_PARTS(c->torch));
    else if (c->torch == 0 && assumed > 0)
        put(out, ", PyTorch " RT_VERSION_FORMAT " (default)", RT_VERSION_PARTS(assumed));
    else if (c->torch == 0)
        put(out, ", unstated PyTorch (default)");
    put_cluster(out, t, c, is_estimated);
    return out->text;
}

uint32_t cli_shown_warnings(const mdot_prediction *p)
{
    /* This reason is excluded because it is also set for a predictor that ignores versions. It therefore does not
     * explain the general warning. */
    uint32_t reasons = MDOT_WARN_OUTSIDE_REASONS & ~(uint32_t)MDOT_WARN_SOFTWARE_NOT_MEASURED;
    return (p->warnings & reasons) != 0 ? p->warnings & ~(uint32_t)MDOT_WARN_OUTSIDE_TRAINING : p->warnings;
}

/* Fills in GPU counts, degrees and micro-batches that are still 0. */
static mdot_configuration with_defaults(const mdot_configuration *configuration)
{
    mdot_configuration c = *configuration;
    c.gpu_count = cli_gpu_count(configuration);
    c.data_parallel = (uint32_t)(worker_count(configuration) / at_least_one(configuration->expert_parallel));
    if (c.micro_batches == 0) c.micro_batches = c.pipeline_parallel;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].kind == RT_KIND_COUNT && rt_option_get(&c, &rt_options[i]) == 0)
            rt_option_set(&c, &rt_options[i], 1);
    return c;
}

static void put_json_value(FILE *stream, const rt_option *option, double value)
{
    char number[BS_NUMBER_BYTES];
    switch (option->kind) {
    case RT_KIND_WHOLE:
    case RT_KIND_COUNT: fputs(bs_number_print(value, 15, number), stream); break;
    case RT_KIND_REAL: fputs(bs_number_print(value, 6, number), stream); break;
    case RT_KIND_CHOICE:
        putc('"', stream);
        fputs(option->choices[(int)value], stream);
        putc('"', stream);
        break;
    case RT_KIND_FLAG: fputs(value != 0 ? "true" : "false", stream); break;
    case RT_KIND_VERSION: fprintf(stream, "\"" RT_VERSION_FORMAT "\"", RT_VERSION_PARTS(value)); break;
    case RT_KIND_GPU: break;
    }
}

void cli_json_training(FILE *stream, const mdot_configuration *configuration)
{
    enum { MEMBERS_OF_A_LINE = 9 };
    mdot_configuration c = with_defaults(configuration);
    int count = 0;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        size_t length = strcspn(option->json, "?");
        double value = rt_option_get(&c, option);
        bool is_default = value == (option->kind == RT_KIND_COUNT ? 1 : 0);
        if (length == 0 || option->kind == RT_KIND_GPU || (option->json[length] == '?' && is_default)) continue;
        fputs(count++ == MEMBERS_OF_A_LINE ? ",\n   \"" : ", \"", stream);
        fwrite(option->json, 1, length, stream);
        fputs("\": ", stream);
        if (i == RT_OPTION_link && c.link_gbps > 0) /* one member for both */
            put_json_value(stream, &rt_options[RT_OPTION_link_gbps], c.link_gbps);
        else
            put_json_value(stream, option, value);
    }
}
