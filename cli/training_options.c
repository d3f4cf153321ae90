/* training_options.c — see training_options.h. */
#include "cli/training_options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const char *const cli_precision_names[CLI_PRECISION_COUNT + 1] = {[MDOT_PRECISION_FP32] = "fp32",
                                                                  [MDOT_PRECISION_TF32] = "tf32",
                                                                  [MDOT_PRECISION_AMP] = "amp-fp16",
                                                                  [MDOT_PRECISION_AMP_BF16] = "amp-bf16",
                                                                  [MDOT_PRECISION_BF16] = "bf16",
                                                                  [MDOT_PRECISION_PYTORCH] = "pytorch",
                                                                  NULL};
const char *const cli_layout_names[CLI_LAYOUT_COUNT + 1] = {
    [MDOT_LAYOUT_NCHW] = "nchw", [MDOT_LAYOUT_NHWC] = "nhwc", NULL};
const char *const cli_attention_names[CLI_ATTENTION_COUNT + 1] = {
    [MDOT_ATTENTION_FLASH] = "flash", [MDOT_ATTENTION_EAGER] = "eager", NULL};
const char *const cli_recompute_names[CLI_RECOMPUTE_COUNT + 1] = {[MDOT_RECOMPUTE_NOTHING] = "nothing",
                                                                  [MDOT_RECOMPUTE_BLOCKS] = "blocks",
                                                                  [MDOT_RECOMPUTE_SELECTIVE] = "selective",
                                                                  NULL};

/* Other words for the choices, including Lightning's for precisions and transformers' for optimizers and attention.
 * Weights in half precision are unsupported. */
const cli_word cli_precision_words[] = {{"amp", "amp-fp16", true},          {"amp_fp16", "amp-fp16", true},
                                        {"16-mixed", "amp-fp16", true},     {"amp_bf16", "amp-bf16", true},
                                        {"amp_bfloat16", "amp-bf16", true}, {"bf16-mixed", "amp-bf16", true},
                                        {"float32", "fp32", true},          {"single", "fp32", true},
                                        {"bfloat16", "bf16", true},         {"fp16", "amp-fp16", false},
                                        {"float16", "amp-fp16", false},     {"f16", "amp-fp16", false},
                                        {"half", "amp-fp16", false},        {0}};
const cli_word cli_layout_words[] = {{"channels_first", "nchw", true}, {"channels_last", "nhwc", true}, {0}};
const cli_word cli_optimizer_words[] = {
    {"adamw_torch", "adamw", true}, {"momentum", "sgd", false}, {"adamw_8bit", "adamw", false}, {0}};
const cli_word cli_attention_words[] = {
    {"sdpa", "flash", true}, {"flash_attention_2", "flash", true}, {"math", "eager", true}, {0}};
const cli_word cli_recompute_words[] = {{"none", "nothing", true}, {"full", "blocks", true}, {0}};

/* ---- From the command line --------------------------------------------------------------------------------------- */

void cli_training_begin(cli_training *training)
{
    *training = (cli_training){.precision = CLI_NO_CHOICE,
                               .layout = CLI_NO_CHOICE,
                               .optimizer = CLI_NO_CHOICE,
                               .attention = CLI_NO_CHOICE,
                               .recompute = CLI_NO_CHOICE};
}

bool cli_parse_link(const char *command, char *text, void *training)
{
    cli_training *t = training;
    static const char *const names[] = {"pcie", "nvlink", NULL};
    char *end;
    double gbps = strtod(text, &end);
    if (end != text && *end == '\0' && gbps > 0 && gbps <= 1 << 20) {
        t->link_gbps = gbps;
        return true;
    }
    int choice = cli_find_choice(text, names, NULL);
    if (choice == CLI_NO_CHOICE) return cli_refuse_choice(command, "--link", text, names, NULL, "a number (GB/s)");
    t->link = choice == 0 ? MDOT_LINK_PCIE : MDOT_LINK_NVLINK;
    return true;
}

bool cli_parse_parallel(const char *command, char *text, void *training)
{
    cli_training *t = training;
    static const char *const names[] = {"dp", "tp", "pp", "ep", "micro", "zero", NULL};
    static const cli_word words[] = {{"data_parallel", "dp", true},     {"tensor_parallel", "tp", true},
                                     {"pipeline_parallel", "pp", true}, {"expert_parallel", "ep", true},
                                     {"micro_batches", "micro", true},  {"zero_stage", "zero", true},
                                     {"tensor", "tp", false},           {"expert", "ep", false},
                                     {"fsdp", "zero", false},           {0}};
    uint32_t *const places[] = {&t->data_parallel,   &t->tensor_parallel, &t->pipeline_parallel,
                                &t->expert_parallel, &t->micro_batches,   &t->zero_stage};
    enum { COUNT = sizeof places / sizeof *places, ZERO = COUNT - 1 };
    bool given[COUNT] = {false};
    const char *items[COUNT];
    size_t count;
    if (!cli_split_list(command, "--parallel", text, COUNT, items, &count)) return false;
    for (size_t i = 0; i < count; i++) {
        char *equals = strchr(items[i], '=');
        int kind;
        int64_t number;
        if (equals == NULL) {
            cli_usage_error(command, "--parallel takes KIND=N,… as in dp=4,tp=2, not \"%s\"", items[i]);
            return false;
        }
        *equals = '\0';
        if (!cli_parse_choice(command, "--parallel", items[i], names, words, &kind)) return false;
        char what[32];
        snprintf(what, sizeof what, "--parallel %s", names[kind]);
        if (!cli_parse_int(command, what, equals + 1, kind == ZERO ? 0 : 1, kind == ZERO ? 3 : 1 << 16, &number))
            return false;
        if (given[kind]) {
            cli_usage_error(command, "--parallel has %s twice", names[kind]);
            return false;
        }
        given[kind] = true;
        *places[kind] = (uint32_t)number;
    }
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
    if (!is_version) {
        cli_usage_error(command, "--torch takes a version as in 1.12 or 2.4, not \"%s\"", text);
        return false;
    }
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

static int choice_or(int choice, int fallback)
{
    return choice == CLI_NO_CHOICE ? fallback : choice;
}

void cli_training_apply(const cli_training *t, const mdot_job_info *job, mdot_configuration *c)
{
    c->gpu_count = (int)t->gpu_count;
    c->precision = (mdot_precision)choice_or(t->precision, MDOT_PRECISION_PYTORCH);
    c->layout = (mdot_layout)choice_or(t->layout, MDOT_LAYOUT_NCHW);
    c->optimizer = (mdot_optimizer)choice_or(t->optimizer, (int)job->optimizer);
    c->attention = (mdot_attention)choice_or(t->attention, MDOT_ATTENTION_FLASH);
    c->recompute = (mdot_recompute)choice_or(t->recompute, MDOT_RECOMPUTE_NOTHING);
    c->compiled = t->compiled ? 1 : 0;
    c->accumulate = (uint32_t)t->accumulate;
    c->link = t->link;
    c->node_count = (uint32_t)t->node_count;
    c->link_gbps = t->link_gbps;
    c->network_gbps = t->network_gbps;
    c->data_parallel = t->data_parallel;
    c->tensor_parallel = t->tensor_parallel;
    c->pipeline_parallel = t->pipeline_parallel;
    c->expert_parallel = t->expert_parallel;
    c->micro_batches = t->micro_batches;
    c->zero_stage = t->zero_stage;
    c->torch = t->torch_count > 0 ? t->torch[0] : 0;
}

/* ---- Description of a configuration ------------------------------------------------------------------------------ */

static int at_least_one(uint32_t number)
{
    return number > 0 ? (int)number : 1;
}

int cli_gpu_count(const mdot_configuration *c)
{
    if (c->gpu_count > 0) return c->gpu_count;
    return at_least_one(c->data_parallel) * at_least_one(c->tensor_parallel) * at_least_one(c->pipeline_parallel) *
           at_least_one(c->expert_parallel);
}

/* A worker is the group of GPUs that share a batch. Workers are data-parallel and, beside that, expert-parallel. */
static int worker_count(const mdot_configuration *c)
{
    return cli_gpu_count(c) / at_least_one(c->tensor_parallel) / at_least_one(c->pipeline_parallel);
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

static bool says_parallel(const cli_training *t)
{
    return t->expert_parallel + t->data_parallel + t->tensor_parallel + t->pipeline_parallel + t->micro_batches +
               t->zero_stage >
           0;
}

static void put_cluster(cli_sentence *out, const cli_training *t, const mdot_configuration *c, bool is_estimated)
{
    int gpus = cli_gpu_count(c);
    put(out, ", %d GPU%s", gpus, gpus == 1 ? "" : "s");
    if (says_parallel(t)) {
        put(out, " (%d data-parallel", worker_count(c) / at_least_one(c->expert_parallel));
        if (c->expert_parallel > 1) put(out, ", %u expert-parallel", c->expert_parallel);
        if (c->tensor_parallel > 1) put(out, ", %u tensor-parallel", c->tensor_parallel);
        if (c->pipeline_parallel > 1) put(out, ", %u stages", c->pipeline_parallel);
        if (c->pipeline_parallel > 1 && c->micro_batches > 0) put(out, " of %u micro-batches", c->micro_batches);
        if (c->zero_stage > 0) put(out, ", ZeRO %u", c->zero_stage);
        put(out, ")");
    }
    if (gpus == 1) return;
    if (c->node_count > 1) put(out, " on %u nodes", c->node_count);
    if (c->link_gbps > 0) put(out, ", linked at %g GB/s", c->link_gbps);
    if (c->link != MDOT_LINK_DEFAULT) put(out, ", linked by %s", c->link == MDOT_LINK_PCIE ? "PCIe" : "NVLink");
    if (c->link_gbps == 0 && c->link == MDOT_LINK_DEFAULT)
        put(out, ", linked %s (default)", is_estimated ? "by what the board has" : "as the predictor takes it");
    if (c->node_count > 1)
        put(out, ", network at %g GB/s%s", c->network_gbps > 0 ? c->network_gbps : 20,
            c->network_gbps > 0 ? "" : " (default)");
}

const char *cli_describe_training(cli_sentence *out, const cli_training *t, const mdot_configuration *c,
                                  const mdot_job_info *job, bool attends, bool is_estimated)
{
    out->text[0] = '\0';
    put(out, "%s", cli_precision_names[c->precision]);
    if (t->precision == CLI_NO_CHOICE) put(out, " (default)");
    put(out, ", %s%s", cli_layout_names[c->layout], t->layout == CLI_NO_CHOICE ? " (default)" : "");
    put(out, ", %s%s", cli_optimizer_names[c->optimizer],
        t->optimizer != CLI_NO_CHOICE ? ""
        : job->has_optimizer          ? " (the file's)"
                                      : " (default)");
    if (attends || t->attention != CLI_NO_CHOICE)
        put(out, ", %s attention%s", cli_attention_names[c->attention],
            t->attention == CLI_NO_CHOICE ? " (default)" : "");
    if (job->frozen_parameters > 0)
        put(out, ", %.3g %% of parameters frozen",
            100 * job->frozen_parameters / (job->parameters + job->frozen_parameters));
    if (c->compiled != 0) put(out, ", compiled");
    if (c->recompute == MDOT_RECOMPUTE_BLOCKS) put(out, ", blocks recomputed");
    if (c->recompute == MDOT_RECOMPUTE_SELECTIVE) put(out, ", all but products recomputed");
    if (c->accumulate > 1) put(out, ", %u passes a step", c->accumulate);
    if (c->torch > 0 && t->torch_count == 1) put(out, ", PyTorch %u.%u", c->torch / 100, c->torch % 100);
    put_cluster(out, t, c, is_estimated);
    return out->text;
}

uint32_t cli_said_warnings(const mdot_prediction *p)
{
    /* This reason is excluded because it is also set for a predictor that ignores versions, which explains nothing
     * else. */
    uint32_t reasons = MDOT_WARN_OUTSIDE_REASONS & ~(uint32_t)MDOT_WARN_SOFTWARE_NOT_MEASURED;
    return (p->warnings & reasons) != 0 ? p->warnings & ~(uint32_t)MDOT_WARN_OUTSIDE_TRAINING : p->warnings;
}

void cli_json_training(FILE *stream, const mdot_configuration *c)
{
    static const char *const links[] = {"default", "pcie", "nvlink"};
    fprintf(stream, ", \"gpus\": %d, \"batch\": %" PRId64 ", \"precision\": \"%s\", \"layout\": \"%s\"",
            cli_gpu_count(c), c->batch, cli_precision_names[c->precision], cli_layout_names[c->layout]);
    fprintf(stream, ", \"optimizer\": \"%s\", \"attention\": \"%s\", \"compiled\": %s, \"recompute\": \"%s\"",
            cli_optimizer_names[c->optimizer], cli_attention_names[c->attention], c->compiled != 0 ? "true" : "false",
            cli_recompute_names[c->recompute]);
    fprintf(stream, ",\n   \"accumulate\": %d, \"nodes\": %d, \"link\": ", at_least_one(c->accumulate),
            at_least_one(c->node_count));
    if (c->link_gbps > 0)
        fprintf(stream, "%g", c->link_gbps);
    else
        fprintf(stream, "\"%s\"", links[c->link]);
    if (c->network_gbps > 0) fprintf(stream, ", \"network_gbps\": %g", c->network_gbps);
    fprintf(stream, ", \"data_parallel\": %d, \"tensor_parallel\": %d, \"pipeline_parallel\": %d",
            worker_count(c) / at_least_one(c->expert_parallel), at_least_one(c->tensor_parallel),
            at_least_one(c->pipeline_parallel));
    if (c->expert_parallel > 1) fprintf(stream, ", \"expert_parallel\": %u", c->expert_parallel);
    uint32_t micro = c->micro_batches > 0 ? c->micro_batches : c->pipeline_parallel;
    fprintf(stream, ", \"micro_batches\": %d, \"zero_stage\": %u", at_least_one(micro), c->zero_stage);
    if (c->torch > 0) fprintf(stream, ", \"torch\": \"%u.%u\"", c->torch / 100, c->torch % 100);
}
