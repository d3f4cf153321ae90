/* fuzz_config.c — libFuzzer on configurations of models. Any bytes are refused with a message, or become a job. The
 * first byte selects a family, so that the fuzzer reaches its sizes.
 *
 *     scripts/fuzz.sh 600 config */
#include "mdot/mdotjob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const families[] = {"",
                                       "\"model_type\":\"llama\",\"num_attention_heads\":4,\"num_hidden_layers\":3,",
                                       "\"model_type\":\"gpt2\",\"n_layer\":3,\"n_head\":2,\"n_embd\":8,"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { FAMILIES = sizeof families / sizeof *families };
    if (size == 0) return 0;
    const char *start = families[data[0] % FAMILIES];
    size_t length = strlen(start) + size;
    char *text = malloc(length + 1);
    if (text == NULL) return 0;
    int used = sprintf(text, "{%s", start);
    memcpy(text + used, data + 1, size - 1);
    mdot_job *job = NULL;
    mdot_error err = {0};
    mdot_status status = mdot_job_read_bytes(text, (size_t)used + size - 1, "fuzz", NULL, &job, &err);
    if ((status == MDOT_OK) != (job != NULL) || (status != MDOT_OK && err.message[0] == '\0')) abort();
    mdot_job_destroy(job);
    free(text);
    return 0;
}
