/* gpus.c — GET /v1/gpus: the GPU table, in the form of `mdot gpus --json`. */
#include "base/command/command.h"
#include "base/text.h"
#include "service/service.h"

void sv_handle_gpus(sv_state *state, const sv_request *request, sv_answer *out)
{
    (void)request;
    bs_memstream stream;
    if (!bs_memstream_open(&stream)) {
        sv_answer_problem(out, 503, "memory ran out");
        return;
    }
    sv_model *model = sv_state_model(state);
    fputs("{\"schema\": \"mdot-gpus/1\", \"gpus\": [", stream.file);
    for (size_t i = 0; i < model->gpus.count; i++) {
        const mdot_gpu *gpu = &model->gpus.item[i];
        fprintf(stream.file, "%s\n  {\"name\": ", i > 0 ? "," : "");
        cli_json_string(stream.file, gpu->name);
        for (size_t k = 0; k < SV_GPU_NUMBERS; k++)
            fprintf(stream.file, ", \"%s\": %g", sv_gpu_numbers[k].name,
                    *(const double *)((const char *)gpu + sv_gpu_numbers[k].offset));
        fprintf(stream.file, ", \"source\": \"%s\"}", i < model->gpus.site_count ? "site" : "mdot");
    }
    fputs("\n ]}\n", stream.file);
    sv_model_release(model);
    sv_answer_stream(out, &stream, sv_json_type);
}
