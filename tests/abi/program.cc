// program.cc — all three libraries from C++: a prediction by name and by figures, and that headers and libraries agree.
//
//     program JOB.onnx PREDICTOR.mdot
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"

#include <cstdio>
#include <cstring>
#include <vector>

namespace {

int fail(const mdot_error &err)
{
    std::fprintf(stderr, "%s: %s\n", mdot_status_name(err.status), err.message);
    return 1;
}

bool agree()
{
    return mdot_version_number() == MDOT_VERSION_NUMBER && mdotjob_version_number() == MDOT_VERSION_NUMBER &&
           mdotc_version_number() == MDOT_VERSION_NUMBER && std::strcmp(mdot_version(), MDOT_VERSION_STRING) == 0;
}

int predict(mdot_context *context, const mdot_job *job)
{
    mdot_error err = mdot_error();
    mdot_gpu card = MDOT_INIT(mdot_gpu);
    if (mdot_gpu_find("A100", &card, &err) != MDOT_OK) return fail(err);
    std::vector<mdot_configuration> asked(2, MDOT_INIT(mdot_configuration));
    asked[0].gpu = "A100";
    asked[1].gpu_spec = &card;
    for (size_t i = 0; i < asked.size(); i++) asked[i].batch = 64;
    std::vector<mdot_prediction> answers(asked.size(), MDOT_INIT(mdot_prediction));
    if (mdot_sweep(context, job, asked.data(), asked.size(), answers.data(), &err) != MDOT_OK) return fail(err);
    std::printf("%g ms\n", answers[0].step_ms);
    return answers[0].step_ms > 0 && answers[0].step_ms == answers[1].step_ms ? 0 : 1;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 3 || !agree()) return 2;
    mdot_job *job = NULL;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_error err = mdot_error();
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    int result = 1;
    if (mdot_job_read(argv[1], &options, &job, &err) != MDOT_OK ||
        mdot_predictor_open(argv[2], NULL, &predictor, &err) != MDOT_OK ||
        mdot_context_create(predictor, &context, &err) != MDOT_OK) {
        result = fail(err);
    } else {
        result = predict(context, job);
    }
    mdotc_entry nothing = MDOT_INIT(mdotc_entry);
    if (mdotc_compile(&nothing, 0, "nowhere", NULL, &err) != MDOT_INVALID_ARGUMENT) result = 1;
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    mdot_job_destroy(job);
    return result;
}
