/* configuration_table.h — the training options of configuration.def as arrays, for programs that read, check or print
 * them: the libraries, the command, the Slurm plugin, the simulator and the text generator (scripts/tables). The header
 * contains data and includes only headers that need no library. */
#pragma once

#include "base/choice_word.h"
#include "mdot/mdot_configuration.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef enum rt_option_kind {
    RT_KIND_WHOLE,
    RT_KIND_COUNT,
    RT_KIND_REAL,
    RT_KIND_CHOICE,
    RT_KIND_FLAG,
    RT_KIND_VERSION,
    RT_KIND_GPU
} rt_option_kind;

/* A version of PyTorch, 100 * major + minor, for printf: (RT_VERSION_FORMAT, RT_VERSION_PARTS(212)) is "2.12". */
#define RT_VERSION_FORMAT "%u.%u"
#define RT_VERSION_PARTS(version) (unsigned)(version) / 100, (unsigned)(version) % 100

typedef enum rt_option_section {
    RT_SECTION_JOB,
    RT_SECTION_TRAINING,
    RT_SECTION_CLUSTER,
    RT_SECTION_DEGREE,
    RT_SECTION_LINK
} rt_option_section;

/* A member's type in mdot_configuration. Enums have the type unsigned int. */
typedef enum rt_member_type {
    RT_MEMBER_INT,
    RT_MEMBER_UINT32,
    RT_MEMBER_INT64,
    RT_MEMBER_DOUBLE,
    RT_MEMBER_POINTER
} rt_member_type;
#define RT_MEMBER_TYPE(field)                                                                                          \
    _Generic(((const mdot_configuration *)0)->field,                                                                   \
        int: RT_MEMBER_INT,                                                                                            \
        uint32_t: RT_MEMBER_UINT32,                                                                                    \
        int64_t: RT_MEMBER_INT64,                                                                                      \
        double: RT_MEMBER_DOUBLE,                                                                                      \
        const char *: RT_MEMBER_POINTER,                                                                               \
        const mdot_gpu *: RT_MEMBER_POINTER)

/* The column `facts`. Functions of configuration_facts.c are made of it. */
typedef enum rt_option_fact {
    RT_NO_FACTS = 0,
    RT_TRAINING_ONLY = 1, /* inference refuses it */
    RT_SEVERAL_GPUS = 2,  /* inference, which covers one GPU, refuses it */
    RT_CORRECTED = 4,     /* some predictors lack it as an input: its effect is estimated analytically then */
    RT_UNREAD = 8,        /* all predictors lack it as an input: they are queried at its default */
    RT_MICRO_STEP = 16,   /* the time of one shard's micro-step depends on it */
    RT_KERNELS = 32       /* selects kernels for operators or for the update */
} rt_option_fact;
#define RT_DEFAULT_FACTS (RT_TRAINING_ONLY | RT_UNREAD | RT_KERNELS)
/* A row's facts, from the columns behind `fallback`. */
#define RT_FACTS(...) RT_FACTS_COLUMN(__VA_ARGS__, RT_DEFAULT_FACTS, 0)
#define RT_FACTS_COLUMN(DEFAULT, COMMAND, BARE, VALUE, JSON, SLURM, PYTHON, HELP, MEANING, FACTS, ...) (FACTS)

/* One row; configuration.def describes the columns. */
typedef struct rt_option {
    rt_option_section section;
    const char *field;
    rt_member_type type;
    size_t offset, size_bytes; /* of the member */
    rt_option_kind kind;
    double least, most;
    bool accepts_zero; /* besides the range, and selects the default */
    double fallback;
    const char *default_text;
    const char *command, *bare, *value, *json, *slurm, *python, *help, *meaning;
    const char *const *choices; /* names in the order of the enum, terminated by NULL; NULL for other kinds */
    const bs_choice_word *words;
    int facts; /* bits of rt_option_fact */
} rt_option;

/* ---- Choices ----------------------------------------------------------------------------------------------------- */

/* rt_precision_names, rt_precision_words and so on. */
/* clang-format off */
#define CHOICES(field) static const char *const rt_##field##_names[] = {
#define CHOICE(kind, id, name) name,
#define CHOICES_END NULL};
#include "runtime/job/configuration.def"
#define CHOICES(field) static const bs_choice_word rt_##field##_words[] = {
#define WORD(word, name, is_same) {word, name, is_same},
#define CHOICES_END {NULL, NULL, false}};
#include "runtime/job/configuration.def"
/* clang-format on */
#define rt_reduce_type_names rt_gradient_type_names
#define rt_reduce_type_words rt_gradient_type_words

/* Names of options in other programs. Synonyms are accepted, and the others name the nearest option. */
static const bs_choice_word rt_option_words[] = {
#define OPTION_WORD(word, name) {word, name, false},
#define OPTION_SYNONYM(word, name) {word, name, true},
#include "runtime/job/option_words.def"
    {NULL, NULL, false}};

/* ---- Options ----------------------------------------------------------------------------------------------------- */

/* Option numbers in table order: RT_OPTION_precision and so on. */
enum {
#define OPTION(field, ...) RT_OPTION_##field,
#include "runtime/job/configuration.def"
    RT_OPTION_COUNT
};

#define RT_CHOICES_CHOICE(field) .choices = rt_##field##_names, .words = rt_##field##_words
#define RT_CHOICES_WHOLE(field) .accepts_zero = false
#define RT_CHOICES_COUNT(field) .accepts_zero = true
#define RT_CHOICES_REAL(field) .accepts_zero = true
#define RT_CHOICES_FLAG(field) .accepts_zero = false
#define RT_CHOICES_VERSION(field) .accepts_zero = true
#define RT_CHOICES_GPU(field) .accepts_zero = true
#define RT_OPTION_ROW(SECTION, FIELD, KIND, LEAST, MOST, FALLBACK, DEFAULT, COMMAND, BARE, VALUE, JSON, SLURM, PYTHON, \
                      HELP, MEANING, FACTS, ...)                                                                       \
    {.section = RT_SECTION_##SECTION,                                                                                  \
     .field = #FIELD,                                                                                                  \
     .type = RT_MEMBER_TYPE(FIELD),                                                                                    \
     .offset = offsetof(mdot_configuration, FIELD),                                                                    \
     .size_bytes = sizeof(((const mdot_configuration *)0)->FIELD),                                                     \
     .kind = RT_KIND_##KIND,                                                                                           \
     .least = (LEAST),                                                                                                 \
     .most = (MOST),                                                                                                   \
     .fallback = (FALLBACK),                                                                                           \
     .default_text = (DEFAULT),                                                                                        \
     .command = (COMMAND),                                                                                             \
     .bare = (BARE),                                                                                                   \
     .value = (VALUE),                                                                                                 \
     .json = (JSON),                                                                                                   \
     .slurm = (SLURM),                                                                                                 \
     .python = (PYTHON),                                                                                               \
     .help = (HELP),                                                                                                   \
     .meaning = (MEANING),                                                                                             \
     .facts = (FACTS),                                                                                                 \
     RT_CHOICES_##KIND(FIELD)},

static const rt_option rt_options[RT_OPTION_COUNT] = {
#define JOB(...) RT_OPTION_ROW(JOB, __VA_ARGS__, RT_DEFAULT_FACTS, 0)
#define TRAINING(...) RT_OPTION_ROW(TRAINING, __VA_ARGS__, RT_DEFAULT_FACTS, 0)
#define CLUSTER(...) RT_OPTION_ROW(CLUSTER, __VA_ARGS__, RT_DEFAULT_FACTS, 0)
#define DEGREE(...) RT_OPTION_ROW(DEGREE, __VA_ARGS__, RT_DEFAULT_FACTS, 0)
#define LINK(...) RT_OPTION_ROW(LINK, __VA_ARGS__, RT_DEFAULT_FACTS, 0)
#include "runtime/job/configuration.def"
};

/* ---- Inputs of predictors ---------------------------------------------------------------------------------------- */

/* A predictor input, in the order of MDOT_CONFIGURATION_MAP. */
typedef struct rt_option_input {
    const char *name;
    int option;    /* RT_OPTION_… whose value it is */
    uint32_t ones; /* choices for which it is 1, a bit each; 0: it is the value */
} rt_option_input;

static const rt_option_input rt_option_inputs[] = {
#define INPUT(id, name, field, ones) {name, RT_OPTION_##field, ones},
#include "runtime/job/configuration.def"
};
enum { RT_OPTION_INPUT_COUNT = sizeof rt_option_inputs / sizeof *rt_option_inputs };

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* An option's name in messages: "--gpus", or "--parallel tp". Bindings replace it by their own name. */
typedef struct rt_option_label {
    char text[40];
} rt_option_label;
static inline rt_option_label rt_option_label_of(const rt_option *option)
{
    rt_option_label label;
    snprintf(label.text, sizeof label.text, "--%s%s", option->section == RT_SECTION_DEGREE ? "parallel " : "",
             option->command);
    return label;
}

/* Returns the value of an option; 0 for a pointer. */
static inline double rt_option_get(const mdot_configuration *c, const rt_option *option)
{
    const char *member = (const char *)c + option->offset;
    switch (option->type) {
    case RT_MEMBER_INT: return *(const int *)member;
    case RT_MEMBER_UINT32: return *(const uint32_t *)member;
    case RT_MEMBER_INT64: return (double)*(const int64_t *)member;
    case RT_MEMBER_DOUBLE: return *(const double *)member;
    case RT_MEMBER_POINTER: break;
    }
    return 0;
}

/* The option differs from its default. In counts, 0 and 1 both mean the default. */
static inline bool rt_option_is_set(const mdot_configuration *c, const rt_option *option)
{
    double value = rt_option_get(c, option);
    return option->kind == RT_KIND_COUNT ? value > 1 : value != option->fallback;
}

/* Returns the choice with this name, or for which this is another word; BS_NO_CHOICE if there is none. */
static inline int rt_option_find_choice(const rt_option *option, const char *text)
{
    return bs_find_choice(text, option->choices, option->words);
}

/* Stores a value in the option's range. Pointers keep their values. */
static inline void rt_option_set(mdot_configuration *c, const rt_option *option, double value)
{
    char *member = (char *)c + option->offset;
    switch (option->type) {
    case RT_MEMBER_INT: *(int *)member = (int)value; break;
    case RT_MEMBER_UINT32: *(uint32_t *)member = (uint32_t)value; break;
    case RT_MEMBER_INT64: *(int64_t *)member = (int64_t)value; break;
    case RT_MEMBER_DOUBLE: *(double *)member = value; break;
    case RT_MEMBER_POINTER: break;
    }
}

/* The rate between nodes where the configuration states none: two ports of InfiniBand from Hopper on, one before. */
static inline double rt_usual_network_gbps(const mdot_gpu *gpu) { return gpu->compute_capability < 9 ? 20 : 40; }
