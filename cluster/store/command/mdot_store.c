/* mdot_store.c — the program mdot-store: measured steps and job outcomes in a file shared by many processes. */
#include "store/command/store_actions.h"

#include <signal.h>
#include <string.h>

typedef enum selection { SELECTS_NOTHING, SELECTS_GROUPS, SELECTS_ROWS } selection;

typedef struct named_action {
    const char *name;
    const char *operands; /* behind the store */
    int least, most;      /* number of operands, the store included */
    selection selection;  /* groups have no date, thus no --since */
    store_action *run;
} named_action;

enum { ANY = 1 << 20 };
static const named_action actions[] = {
    {"add", "COLUMN=VALUE…", 2, ANY, SELECTS_NOTHING, store_add},
    {"import", "FILE…", 2, ANY, SELECTS_NOTHING, store_import},
    {"export", "", 1, 1, SELECTS_ROWS, store_export},
    {"list", "", 1, 1, SELECTS_ROWS, store_list},
    {"jobs", "", 1, 1, SELECTS_NOTHING, store_jobs},
    {"outcomes", "", 1, 1, SELECTS_NOTHING, store_outcomes},
    {"outliers", "", 1, 1, SELECTS_ROWS, store_outliers},
    {"calibrate", "-o FILE.cal", 1, 1, SELECTS_GROUPS, store_calibrate},
    {"drift", "", 1, 1, SELECTS_NOTHING, store_drift},
    {"check", "", 1, 1, SELECTS_NOTHING, store_check},
    {"recover", "NEW_STORE", 2, 2, SELECTS_NOTHING, store_recover},
    {"migrate", "", 1, 1, SELECTS_NOTHING, store_migrate},
};
static const char *const names[] = {"add",       "import", "export", "list",    "jobs",    "outcomes", "outliers",
                                    "calibrate", "drift",  "check",  "recover", "migrate", NULL};

static const cli_option options[] = {
    CLI_OUTPUT_OPTION(store_request, output, "FILE", "output file of `export` (default: stdout) and `calibrate`",
                      "csv|cal"),
    CLI_TEXT_ROW("jobs", "FOLDER", store_request, jobs,
                 "with `export`: write the jobs to this folder, and let the table name them there"),
    CLI_FLAG_ROW("plain", store_request, plain,
                 "with `export`: only the columns that `mdot calibrate` uses, and the note"),
    CLI_TEXT_ROW("gpu", "NAME", store_request, gpu, "only rows of this GPU model",
                 .heading = "Selection of rows, with `export`, `list`, `outliers` and `calibrate`",
                 .names = mdot_gpu_names),
    CLI_TEXT_ROW("software", "TEXT", store_request, software, "only rows of this software, exactly as it was recorded"),
    CLI_TEXT_ROW("job", "DIGEST", store_request, digest, "only rows of the job whose digest begins with these digits"),
    CLI_TEXT_ROW("since", "DATE", store_request, since,
                 "only rows that were measured on this day (2026-11-24, UTC) or later; not with `calibrate`"),
    CLI_TEXT_ROW("cluster", "NAME", store_request, cluster,
                 "with `import`: name of the cluster where Slurm's accounting lacks it", .heading = "Other options"),
    PREDICT_MODEL_OPTION(
        store_request, model_path, NULL,
        "with `calibrate` and `drift`: the compiled predictor (default: the same as for `mdot predict`)"),
    CLI_TEXT_ROW("calibration", "FILE.cal", store_request, calibration_path,
                 "with `drift`: compare with calibrated predictions", .letter = 'c', .files = "cal"),
    CLI_JSON_OPTION(store_request, json, "with `list`, `jobs`, `outcomes`, `outliers` and `drift`: print JSON"),
    CLI_QUIET_OPTION(store_request, quiet, "suppress warnings about jobs"),
};

/* Refuses a selection option ignored by the action. */
static bool accepts_selection(const named_action *action, const store_request *r)
{
    const char *ignored = NULL;
    if (action->selection < SELECTS_ROWS && r->since != NULL) ignored = "--since";
    if (action->selection < SELECTS_GROUPS && r->software != NULL) ignored = "--software";
    if (action->selection < SELECTS_GROUPS && r->digest != NULL) ignored = "--job";
    if (action->selection < SELECTS_GROUPS && r->gpu != NULL) ignored = "--gpu";
    if (ignored != NULL) cli_usage_error(PROGRAM, "`" PROGRAM " %s` takes no %s", action->name, ignored);
    return ignored == NULL;
}

static int run(int argc, char **argv)
{
    store_request request = {0};
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_program, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count == 0) return cli_usage_error(PROGRAM, "expected an action, for example import");
    int found;
    if (!cli_parse_choice(PROGRAM, "the action", operands.item[0], names, NULL, &found)) return CLI_USAGE;
    const named_action *action = &actions[found];
    int count = operands.count - 1;
    if (count < action->least || count > action->most)
        return cli_usage_error(PROGRAM, "expected `" PROGRAM " %s STORE%s%s`", action->name,
                               *action->operands != '\0' ? " " : "", action->operands);
    if (!accepts_selection(action, &request)) return CLI_USAGE;
    /* Beyond the limit of file sizes, a write then fails and is reported, instead of ending the process. */
    signal(SIGXFSZ, SIG_IGN);
    return action->run(&request, operands.item + 1, count);
}

static const cli_variable environment[] = {
    {"MDOT_PREDICTOR", "the predictor of `calibrate` and `drift`; --model overrides it. If it is unset, the default "
                       "predictor of the installation is used"},
    {"TMPDIR", "the folder of temporary files (default /tmp)"},
    {NULL, NULL},
};

const cli_command cli_program = {
    .name = PROGRAM,
    .summary = "keep measured steps and outcomes of jobs, and calibrate from them",
    .synopsis = "add STORE COLUMN=VALUE…\n"
                "import STORE FILE…\n"
                "export STORE [-o FILE.csv] [--jobs FOLDER] [--plain]\n"
                "list|jobs|outcomes|outliers STORE [--json]\n"
                "calibrate STORE -o FILE.cal\n"
                "drift STORE [-c FILE.cal] [--json]\n"
                "check|migrate STORE\n"
                "recover STORE NEW_STORE",
    .description =
        "Keeps measured training steps, their jobs, and outcomes of cluster jobs in one file, a database. Several "
        "processes may write at once, and a step that was added survives a crash and a full disk.\n\n"
        "add: adds one step. COLUMN is a column of a table of `mdot calibrate`, for example job=bert.onnx gpu=A100 "
        "batch=32 "
        "ms=161.5, or software, host, predictor, gib, measured_at (seconds since 1970; default: now).\n\n"
        "import: adds the rows of tables of measured steps (CSV, see `mdot calibrate`), and the jobs of Slurm's "
        "accounting "
        "(`sacct -P`). FILE - is stdin, for accounting. Repeating an import adds only what is new.\n\n"
        "export: writes the rows as a table. With --jobs it is complete, and `mdot-store import` reads it on any "
        "machine.\n\n"
        "list, jobs, outcomes: print rows, networks and executions. outliers: prints rows that differ from repetitions "
        "of "
        "the same measurement, for example because the GPU was throttled or shared.\n\n"
        "calibrate: makes a calibration from all rows, as `mdot calibrate` does. Repeated measurements count as one, "
        "with a "
        "robust mean; only groups with new rows are computed again.\n\n"
        "drift: compares measurements with predictions for each GPU model and software version. It tests whether "
        "predictions are right within their intervals, whether times changed at some moment, and whether they changed "
        "with the software. All p-values are corrected for the number of tests.\n\n"
        "check: reads everything and verifies checksums. recover: copies all records that can be read from a damaged "
        "store. migrate: brings a store of an older mdot to this version.",
    CLI_OPTIONS(options),
    .notes =
        "For example:\n\nmdot-store import site.store steps.csv\n"
        "sacct -aP -o JobID,JobName,User,State,Submit,Elapsed,Timelimit,AllocTRES |\n  mdot-store import site.store -\n"
        "mdot-store calibrate site.store -o site.cal",
    .exit_status = "0 success, 1 failure (also for malformed lines of accounting), 2 usage error",
    .files = "store|csv",
    .actions = names,
    .environment = environment,
    .run = run,
};

int main(int argc, char **argv) { return cli_run_program(argc, argv); }
