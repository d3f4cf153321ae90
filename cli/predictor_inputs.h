/* predictor_inputs.h — what a predictor reads of how a job trains, and what is modelled beside it, for `mdot inspect`. */
#ifndef CLI_PREDICTOR_INPUTS_H
#define CLI_PREDICTOR_INPUTS_H

#include "mdot/mdot.h"

/* Lines with the options of `mdot predict` that it reads, reads in part, and does not; nothing of what is no predictor
 * of jobs. */
void cli_print_reads(const mdot_predictor *predictor);
/* The same by the numbers' names (MDOT_CONFIGURATION_MAP), as a member of a JSON object behind a comma. */
void cli_json_reads(const mdot_predictor *predictor);

#endif
