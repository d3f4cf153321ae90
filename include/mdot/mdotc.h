/* mdotc.h — compile trained predictors (ONNX) into artefacts, and check compiled code against the reference evaluator.
 *
 * Library libmdotc. Functions may be called from several threads at once on different files. Nothing is printed;
 * warnings and progress go to callbacks. Strings passed in are read during the call only.
 */
#ifndef MDOTC_H
#define MDOTC_H

#include "mdot_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* The library's version: "0.3.0", static, and as MDOT_VERSION_NUMBER. */
const char *mdotc_version(void);
uint32_t mdotc_version_number(void);

/* Of a bucket. */
enum { MDOTC_MAX_LENGTH = 1 << 20 };

typedef struct mdotc_entry {
    size_t struct_size;
    const char *name;       /* the entry point's name, "predict" by custom */
    const char *model_path; /* an ONNX file */
} mdotc_entry;

/* Called with text that is valid during the call only. `done` of `total` steps. */
typedef void (*mdotc_progress_fn)(void *user, const char *step, size_t done, size_t total);
typedef void (*mdotc_message_fn)(void *user, const char *message);

typedef struct mdotc_options { /* zero means default throughout */
    size_t struct_size;
    const int64_t *buckets; /* ascending lengths up to MDOTC_MAX_LENGTH; none: 32, 64, 128, 256, 512, 1024, less those
                               the model is too short for */
    size_t bucket_count;
    const char *const *targets; /* "cpu" (every CPU level), "cpu:x86-64-v3", …; "sm_90a" and other GPU architectures,
                                   "cuda" (those in use). NULL: "cpu". There is CPU code in any case: every level, where
                                   only GPUs are named */
    size_t target_count;
    const char
        *kernel_precision; /* arithmetic of matrix kernels: "cuda=bf16" (fp16 on sm_75, which lacks it), "cuda=fp32",
                            "cpu=fp32", "cpu=bf16" (where a CPU lacks it, weights alone are bf16) or several of them
                            after commas; without a kind, "bf16", both are meant. Of several for one kind each target gets code in all, the first being used unless another is
                            asked for at open. NULL: "cuda=bf16,cpu=fp32". Sums are f32 in all of them */
    const mdot_dim_binding *dims; /* for models with several symbolic dimensions: all but one must be bound. An unbound
                              one that only ever leads (a batch) is bound to 1 with a warning. */
    size_t dim_count;
    const char *name;      /* of the predictor; NULL: the first model's file name without its suffix */
    const char *dump_pass; /* a pass, or "import", "plan", "llvm", "asm", "cuda" (the kernels' source),
                              "ptxas" (what NVIDIA's assembler says of them); text goes to `dump` */
    mdotc_message_fn dump;
    mdotc_message_fn warning;
    mdotc_progress_fn progress;
    void *user; /* handed to the callbacks */
    int64_t
        min_length; /* calls are at least so long, which a model may need (TopK of 8 elements); 0: 1. Shorter ones are
                           OUT_OF_RANGE. Default buckets below it are left out */
} mdotc_options;

/* Compiles the entries into one artefact at `artefact_path`, which appears complete or not at all: it is written beside
 * itself under another name and renamed. UNSUPPORTED lists every unsupported operator with its node.
 *
 * A GPU architecture takes NVRTC: TOOLCHAIN says what to install. A model whose plan is not a Transformer encoder's
 * gets no GPU code, and one whose kernels take more than some architecture has gets none for that one: both are
 * warnings, and the artefact runs on CPUs.
 *
 * LLVM runs in a child process, and the linker is another: where none can be started, TOOLCHAIN, or OUT_OF_MEMORY for
 * want of memory. */
mdot_status mdotc_compile(const mdotc_entry *entries, size_t entry_count, const char *artefact_path,
                          const mdotc_options *options, mdot_error *err);

/* Worst difference found for one bucket on one CPU level or GPU, over full and partial lengths and several random
 * inputs. Relative error: max |got - want| / max(1e-3, max |want|) over one output. */
typedef struct mdotc_verify_row {
    size_t struct_size; /* as the library knows the struct */
    const char *entry;
    const char *level;    /* "x86-64-v4", "cuda:0" */
    bool passed;          /* never where an output is NaN throughout: then nothing was verified */
    int64_t max_length;   /* the bucket; 0 without a length */
    int64_t worst_length; /* where the worst error was seen */
    double worst_error;
    double bound; /* that it was held to */
} mdotc_verify_row;

typedef struct mdotc_verify_options {
    size_t struct_size;
    const mdot_dim_binding *dims; /* as compiled */
    size_t dim_count;
    const char *entry; /* NULL: the only one, or "predict" */
    double tolerance;  /* 0: 1e-4; more where bf16 or fp16 is multiplied: four times what rounding the factors of every
                          product costs the evaluator on the same inputs, at least one such rounding */
    uint64_t seed;     /* of the random inputs */
    void (*row)(void *user, const mdotc_verify_row *row);
    mdotc_message_fn warning; /* CUDA code that no GPU here can run; outputs of the model that are not finite */
    void *user;
    const char *inputs; /* a folder with input_0.pb, input_1.pb, … (TensorProto, as in ONNX's tests), verified on
                           instead of random inputs: for models that cannot read any number; NULL: random */
    /* Rows of real jobs instead of random inputs: what the entry reads of jobs[i] under configurations[i], as
     * mdot_predict would have it (mdot_job_inputs). Not with `inputs`. */
    const struct mdot_job *const *jobs;
    const struct mdot_configuration *configurations;
    size_t job_count;
} mdotc_verify_options;

/* Holds an artefact's code, on every CPU level that this machine runs and on its first GPU where the artefact has code
 * for it, to the double-precision evaluation of the model. OK when it ran; *out_passed says whether every row passed.
 * DEVICE when the GPU failed on the way. */
mdot_status mdotc_verify(const char *artefact_path, const char *model_path, const mdotc_verify_options *options,
                         bool *out_passed, mdot_error *err);

typedef enum mdotc_check_result { MDOTC_CHECK_PASS, MDOTC_CHECK_FAIL, MDOTC_CHECK_UNSUPPORTED } mdotc_check_result;

typedef struct mdotc_check_options {
    size_t struct_size;
    const char *level;         /* CPU level to run on; NULL: the best this machine has */
    double relative_tolerance; /* 0: 1e-4; |got - want| <= absolute + relative * |want|, ONNX's own rule */
    double absolute_tolerance; /* 0: 1e-6 */
} mdotc_check_options;

typedef struct mdotc_check_report {
    size_t struct_size;
    mdotc_check_result result;
    double worst_error; /* largest |got - want| / max(|want|, 1) of a floating output */
    size_t data_sets;   /* test_data_set_* folders run */
    char detail[1024];  /* of a failure the output and element, of an unsupported model the operators; of a pass
                           the inputs whose content decides shapes, which were compiled in as constants */
} mdotc_check_report;

/* Compiles DIRECTORY/model.onnx and runs every test_data_set_*: input_k.pb in, output_k.pb compared. The model is
 * bound to the inputs' shapes; where one dimension is symbolic, one bucket is compiled per length. Returns OK with a
 * report whether or not the outputs agree; an error means that the directory could not be read. */
mdot_status mdotc_check(const char *directory, const mdotc_check_options *options, mdotc_check_report *out_report,
                        mdot_error *err);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
