/* plan_command.c — the command that predicts a layout, with options beside the defaults of `mdot predict`. */
#include "cli/plan/plan_request.h"

#include <inttypes.h>
#include <string.h>

const char *plan_degrees(const mdot_configuration *c, cell *out)
{
    size_t used = 0;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        double value = rt_option_get(c, option);
        bool is_one = i == RT_OPTION_data_parallel || strcmp(option->default_text, "1") == 0; /* the default */
        bool is_default = value == (option->kind == RT_KIND_COUNT && (is_one || c->pipeline_parallel <= 1));
        if (option->section != RT_SECTION_DEGREE || value == 0 || is_default) continue;
        used += (size_t)snprintf(out->text + used, sizeof out->text - used, "%s%s=%.0f", used > 0 ? "," : "",
                                 option->command, value);
    }
    if (used == 0) out->text[0] = '\0';
    return out->text;
}

/* Prints text for the inside of a shell's single quotes. */
static void print_quoted(const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text);
}

/* Prints an option with a value as one word of a shell, quoted if it has other bytes than usual in names. */
static void print_word(const char *option, const char *value)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-=,:/+";
    bool is_plain = *value != '\0' && value[strspn(value, plain)] == '\0';
    printf(" %s%s", option, is_plain ? "" : "'");
    print_quoted(value);
    if (!is_plain) putchar('\'');
}

/* The value as the command line takes it; empty for the default. */
static const char *value_text(const rt_option *option, double value, cell *out)
{
    if (option->kind == RT_KIND_CHOICE)
        snprintf(out->text, sizeof out->text, "%s", option->choices[(int)value]);
    else if (option->kind == RT_KIND_VERSION && value > 0)
        snprintf(out->text, sizeof out->text, RT_VERSION_FORMAT, RT_VERSION_PARTS(value));
    else if (option->kind == RT_KIND_FLAG)
        snprintf(out->text, sizeof out->text, "%s", value != 0 ? "yes" : "no");
    else
        snprintf(out->text, sizeof out->text, value != 0 ? "%.15g" : "", value);
    return out->text;
}

static bool is_printed(size_t i)
{
    return rt_options[i].section > RT_SECTION_JOB && rt_options[i].section != RT_SECTION_DEGREE;
}

/* Prints a measured step with each option that differs from the layout's, because the command's options are its
 * defaults. */
static void print_step(const measured_steps *steps, size_t i, const mdot_configuration *layout)
{
    const mdot_configuration *c = &steps->item[i].configuration;
    cell text;
    printf(" --measured '");
    if (strcmp(c->gpu_spec->name, layout->gpu_spec->name) != 0) {
        printf("gpu=");
        print_quoted(c->gpu_spec->name);
        putchar(',');
    }
    printf("batch=%" PRId64 ",gpus=%d,parallel=%s", c->batch, cli_gpu_count(c), plan_degrees(c, &text));
    for (size_t k = 0; k < RT_OPTION_COUNT; k++) {
        const rt_option *option = &rt_options[k];
        double value = rt_option_get(c, option);
        if (!is_printed(k) || k == RT_OPTION_gpu_count || value == rt_option_get(layout, option)) continue;
        if (option->section != RT_SECTION_LINK)
            printf(",%s=%s", option->command, value_text(option, value, &text));
        else if (value != 0)
            printf(",link=%s", value_text(option, value, &text));
        else if (c->link == MDOT_LINK_DEFAULT && c->link_gbps == 0)
            printf(",link=");
    }
    if (steps->item[i].ms > 0) printf(",ms=%.15g", steps->item[i].ms);
    if (steps->item[i].gib > 0) printf(",gib=%.15g", steps->item[i].gib);
    putchar('\'');
}

void plan_print_command(const plan_request *r, const plan_answers *answers, const plan_row *row)
{
    const mdot_configuration *c = &row->layout.configuration;
    const char *spec = r->gpus.spec[row->layout.gpu_model];
    mdot_configuration plain = {.struct_size = sizeof plain}; /* the defaults of `mdot predict` */
    cli_training none;
    cell text;
    cli_training_begin(&none);
    cli_training_apply(&none, &answers->info, &plain);
    printf("mdot predict");
    print_word("", r->job_path);
    print_word(spec != NULL ? "--gpu-spec " : "--gpu ", spec != NULL ? spec : c->gpu_spec->name);
    printf(" --gpus %d", c->gpu_count);
    if (*plan_degrees(c, &text) != '\0') printf(" --parallel %s", text.text);
    printf(" --batch %" PRId64, c->batch);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        double value = rt_option_get(c, option), usual = rt_option_get(&plain, option);
        bool is_default = value == usual || (option->kind == RT_KIND_COUNT && value <= 1);
        if (!is_printed(i) || i == RT_OPTION_gpu_count || is_default) continue;
        printf(" --%s", option->command);
        if (option->kind != RT_KIND_FLAG)
            printf("%s%s", option->bare != NULL ? "=" : " ", value_text(option, value, &text));
    }
    for (size_t i = 0; i < r->reading.dims.count; i++) {
        const mdot_dim_binding *dim = &r->reading.dims.item[i];
        char value[24];
        snprintf(value, sizeof value, "%" PRId64, dim->value);
        print_word("--dim ", dim->name);
        putchar('=');
        print_quoted(dim->same_as != NULL ? dim->same_as : value);
    }
    if (r->reading.lora != NULL) print_word("--lora ", r->reading.lora);
    for (size_t i = 0; i < r->reading.frozen.count; i++) print_word("--frozen ", r->reading.frozen.item[i]);
    for (size_t i = 0; i < r->reading.trained.count; i++) print_word("--trained ", r->reading.trained.item[i]);
    if (r->model_path != NULL) print_word("--model ", r->model_path);
    if (r->measured.calibration_path != NULL) print_word("--calibration ", r->measured.calibration_path);
    for (size_t i = 0; i < answers->measured.count; i++) print_step(&answers->measured, i, c);
    if (r->run.samples > 0) printf(" --steps %.0f", row->cost.steps);
    if (r->prices.is_set) print_word("--price ", r->prices.text);
    puts("");
}
