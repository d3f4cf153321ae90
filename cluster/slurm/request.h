/* request.h — the text behind --mdot=: a training job's file, its training configuration and its length.
 *
 *     resnet50.job,batch=256,precision=amp,epochs=90,dataset=1281167
 *
 * The submit side parses it to find the file and reports faults to the user. The controller parses the settings
 * behind the file again, because it must not trust the user's side.
 */
#ifndef SL_REQUEST_H
#define SL_REQUEST_H

#include "mdot/mdot.h"

enum { SL_REQUEST_BYTES = 1024 }; /* size of the whole text, including the NUL */

typedef struct sl_request {
    char file[SL_REQUEST_BYTES]; /* empty if the text names none */
    mdot_configuration training; /* GPUs are left out, because Slurm knows them; batch 0: the job's batch */
    bool has_optimizer;          /* the text names an optimizer; otherwise the job's is used */
    double steps;                /* 0: unspecified */
    double epochs, dataset;      /* set both or neither; 0: unspecified */
} sl_request;

/* `text` begins with a file unless it begins with KEY=. INVALID_ARGUMENT names the key; messages are free of control
 * characters. */
mdot_status sl_request_parse(const char *text, sl_request *out_request, mdot_error *err);

/* Returns the part of `text` behind the file. */
const char *sl_request_settings(const char *text);

/* Returns the number of steps of the whole training, given the samples per step; 0 if unspecified. */
double sl_request_steps(const sl_request *request, double samples_of_step);

#endif
